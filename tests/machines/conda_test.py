#!/usr/bin/env python3
"""The conda recipe: rattler-build's own parser takes it, it renders for each Python, and it names what the build asks for.

    conda_test.py      in an environment that has py-rattler-build

Nothing is built: that takes a conda channel. Exit codes: 0 passed, 1 failed, 77 no py-rattler-build.
"""
import pathlib
import re
import sys

try:
    import rattler_build
except ImportError:
    print("left out: the conda recipe (no py-rattler-build)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE, VARIANTS = ROOT / "tools/conda/recipe.yaml", ROOT / "tools/conda/variants.yaml"
# What a wheel is built with: Debian's package, and conda-forge's.
NAMES = {"libtbb-dev": "tbb-devel", "libjpeg-dev": "libjpeg-turbo", "libtiff-dev": "libtiff", "libwebp-dev": "libwebp-base", "libpng-dev": "libpng",
         "libzstd-dev": "zstd", "libhwy-dev": "libhwy", "libcli11-dev": "cli11", "nlohmann-json3-dev": "nlohmann_json", "libfmt-dev": "fmt",
         "libxxhash-dev": "xxhash", "libopenjp2-7-dev": "openjpeg", "libcurl4-openssl-dev": "libcurl", "libssl-dev": "openssl"}


def rendered():
    """Returns the recipes that are rendered, one for each Python, as dictionaries."""
    recipe = rattler_build.Stage0Recipe.from_file(str(RECIPE))
    config = rattler_build.RenderConfig(platform=rattler_build.PlatformConfig(target_platform="linux-64"))
    return [variant.recipe.to_dict() for variant in recipe.render(rattler_build.VariantConfig.from_file(str(VARIANTS)), config)]


def refused(text):
    """Returns whether the parser refuses a recipe: it would pass over nothing that is misspelt."""
    try:
        rattler_build.Stage0Recipe.from_yaml(text)
    except rattler_build.RattlerBuildError:
        return True
    return False


def main():
    recipes = rendered()
    pythons = re.findall(r"^  - (3\.\d+)", VARIANTS.read_text(), re.MULTILINE)
    assert len(recipes) == len(pythons) >= 5, (len(recipes), pythons)
    version = re.search(r"project\(stoker VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    for recipe in recipes:
        assert (recipe["package"]["name"], recipe["package"]["version"]) == ("stoker", version), recipe["package"]
    text = RECIPE.read_text()
    assert refused(text.replace("requirements:", "requirement:")) and refused(text.replace("${{ version }}", "${{ version"))
    host = re.findall(r"^    - ([\w-]+)", re.search(r"^  host:\n((?:    .*\n)+)", text, re.MULTILINE)[1], re.MULTILINE)
    needed = re.search(r"^needed=\((.*?)^\)", (ROOT / "tools/install-deps").read_text(), re.MULTILINE | re.DOTALL)[1]
    unnamed = set(re.findall(r"\blib[\w-]+-dev|nlohmann-json3-dev", needed)) - set(NAMES) - {"libdnnl-dev"}  # it trains on no CPU
    assert not unnamed, f"conda's names of {unnamed} are not here"
    assert set(NAMES.values()) <= set(host), f"the recipe lacks {set(NAMES.values()) - set(host)}"
    print(f"the conda recipe of {version} renders for Python {', '.join(pythons)}")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
