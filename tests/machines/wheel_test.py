#!/usr/bin/env python3
"""The wheels of tools/wheel in roots that have Python and nothing else: import, decode, feed, the program.

    wheel_test.py WHEELS ROOTS SUITE...

    WHEELS   what `tools/wheel --out` made
    ROOTS    a folder in which roots are kept (bare_root.py)
    SUITE    a release of Debian or Ubuntu: bookworm, trixie, jammy, noble

First of all each wheel of the package has the files, the needed libraries and the symbols of wheel_contents.txt, which
`wheel_test.py --list WHEEL` prints.

Exit codes: 0 passed, 1 failed, 2 usage, 77 no wheel fits or no root can be had, with the reason.
"""
import difflib
import os
import re
import subprocess
import sys

import library_paths
from bare_root import BareRoot, NotHere, conclude

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden", "decode")


def versions(root):
    text = root.run_well("python3", "-c", "import sys; print(*sys.version_info[:2])")
    return tuple(map(int, text.split()))


def fits(wheel, version):
    tag = re.search(r"-cp(3)(\d+)-(cp|abi)", wheel)
    wanted = (int(tag[1]), int(tag[2]))
    return version >= wanted if tag[3] == "abi" else version == wanted


def check(suite, wheels, roots):
    """Raises NotHere if nothing can be checked."""
    with BareRoot(suite, roots) as root:
        version = versions(root)
        chosen = [wheel for wheel in os.listdir(wheels) if wheel.startswith("stoker-") and wheel.endswith(".whl") and fits(wheel, version)]
        if not chosen:
            raise NotHere(f"{suite}: no wheel for Python {version[0]}.{version[1]}")
        root.add(wheels, "/wheels")
        root.add(GOLDEN, "/golden")
        for name in ("wheel_in_root.py", "package_in_root.py"):
            root.add(os.path.join(HERE, name), f"/check/{name}")
        root.run_well("python3", "-m", "venv", "/env")
        packages = ["stoker"] + ["stoker-cuda"] * any(name.startswith("stoker_cuda-") for name in os.listdir(wheels))
        for package in packages:
            root.run_well("/env/bin/pip", "install", "--no-index", "--find-links", "/wheels", package)
            print(f"=== {suite}: {package}")
            print(root.run_well("/env/bin/python", "/check/wheel_in_root.py", "/golden"), flush=True)


def expect_own_folders(wheels):
    """Every packed library looks for others beside itself and where the system has them."""
    lines, count = library_paths.read([wheels], built=False)
    assert count > 0 and not lines, "\n".join(lines)


def listed(wheel):
    """Returns the lines about what a wheel holds, alike for all versions of Python and of the package."""
    def plain(name):  # the hash of a bundled library, and the tag of an extension module
        return re.sub(r"_core\.[\w-]+\.so", "_core.so", re.sub(r"-[0-9a-f]{8}\.so[.0-9]*", ".so", name))

    lines = set()
    for path, file in library_paths.files_in(wheel):
        name = plain(os.path.relpath(path, wheel))
        if name.split("/")[0].endswith(".dist-info"):
            continue
        lines.add(f"file {name}")
        elf = library_paths.elf_of(file)
        if elf is None:
            continue
        lines |= {f"needs {name} {plain(each)}" for each in elf.needed}
        if library_paths.OURS.fullmatch(os.path.basename(path)):
            symbols = subprocess.run(["nm", "-D", "--defined-only", file], text=True, capture_output=True, check=True).stdout
            lines |= {f"shows {name} {each}" for each in re.findall(r" [TDBR] (\S+)$", symbols, re.MULTILINE)}
    return sorted(lines)


def expect_contents(wheels):
    with open(os.path.join(HERE, "wheel_contents.txt"), encoding="utf-8") as file:
        all_wanted = file.read().splitlines()
    for name in sorted(os.listdir(wheels)):
        if name.startswith("stoker-") and name.endswith(".whl"):
            lines = listed(os.path.join(wheels, name))
            has_avif = "file stoker/libstoker_avif.so" in lines  # tools/wheel says why it has not
            wanted = [line for line in all_wanted if has_avif or not re.search("lib(stoker_avif|avif|dav1d|yuv)", line)]
            changes = list(difflib.unified_diff(wanted, lines, "wheel_contents.txt", name, n=0, lineterm=""))
            assert not changes, "\n".join(changes)


def check_all(suites, wheels, roots):
    """Checks in each root that can be had, and then raises NotHere if there was one that cannot."""
    expect_own_folders(wheels)
    expect_contents(wheels)
    reasons = []
    for suite in suites:
        try:
            check(suite, wheels, roots)
        except NotHere as reason:
            reasons.append(str(reason))
    if reasons:
        raise NotHere("; ".join(reasons))


def main():
    if sys.argv[1:2] == ["--list"]:
        print("\n".join(listed(sys.argv[2])))
        return 0
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    wheels, roots, *suites = sys.argv[1:]
    return conclude(check_all, suites, os.path.abspath(wheels), os.path.abspath(roots))


if __name__ == "__main__":
    sys.exit(main())
