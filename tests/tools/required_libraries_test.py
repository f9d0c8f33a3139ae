#!/usr/bin/env python3
"""A machine that lacks libraries: configuring names all of them at once, with packages that tools/install-deps knows."""
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Nothing is found: everything is looked for in a folder that does not exist.
NOTHING = ["-DCMAKE_FIND_ROOT_PATH=/nonexistent", "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON",
           *(f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=ONLY" for kind in ("INCLUDE", "LIBRARY", "PACKAGE"))]
LIBRARY = {"pkg-config", "libjpeg-dev", "libtbb-dev", "nlohmann-json3-dev", "libhwy-dev", "libxxhash-dev"}
PROGRAM = {"libcli11-dev", "libfmt-dev", "libpng-dev"}
TESTS = {"libgtest-dev", "libgmock-dev", "zlib1g-dev"}
OPTIONAL = {"libtiff-dev", "libwebp-dev", "libzstd-dev", "libcurl4-openssl-dev", "libssl-dev"}


def configure(*options):
    """Returns what cmake says, where it must fail."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(["cmake", "-S", ROOT, "-B", folder, *options], capture_output=True, text=True, check=False,
                                env={**os.environ, "LC_ALL": "C"})
    assert result.returncode != 0, result.stdout
    return result.stderr


def to_install(said):
    return set(re.search(r"apt-get install (.*)", said)[1].split())


def installed_by_script(*lists):
    """Returns the packages of some lists of install-deps: `needed` is what the program is built with, `all` the rest."""
    with open(os.path.join(ROOT, "tools", "install-deps"), encoding="utf-8") as file:
        text = file.read()
    words = [re.search(rf"^{name}=\((.*?)^\)", text, re.MULTILINE | re.DOTALL)[1] for name in lists]
    return set(re.sub(r"#.*", "", "".join(words)).split())


class RequiredLibraries(unittest.TestCase):
    def test_all_are_named_at_once(self):
        said = configure(*NOTHING)
        self.assertEqual(to_install(said), LIBRARY | PROGRAM | TESTS)
        self.assertEqual(said.count("CMake Error"), 1, said)
        for package in OPTIONAL:
            self.assertRegex(said, rf"(?s)optional.*{package} \(with")

    def test_the_script_installs_them(self):
        self.assertLessEqual(to_install(configure(*NOTHING)) | OPTIONAL, installed_by_script("needed", "all"))

    def test_the_script_installs_what_the_program_needs(self):
        said = configure(*NOTHING, "-DSTOKER_TESTS=OFF")
        self.assertEqual(to_install(said), LIBRARY | PROGRAM)
        self.assertLessEqual(LIBRARY | PROGRAM, installed_by_script("needed"))

    def test_the_python_package_needs_less(self):
        parts = [f"-DSTOKER_{part}=OFF" for part in ("PROGRAM", "TESTS", "BENCH", "CODECS", "ZSTD", "STORE")]
        said = configure(*NOTHING, "-DSKBUILD=2", *parts)
        self.assertEqual(to_install(said), LIBRARY | {"python3-dev"})
        self.assertNotIn("optional", said)

    def test_what_is_there_is_not_named(self):
        said = configure("-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON")
        self.assertEqual(to_install(said), {"libjpeg-dev", "libfmt-dev"})


if __name__ == "__main__":
    unittest.main()
