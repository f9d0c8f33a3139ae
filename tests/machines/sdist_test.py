#!/usr/bin/env python3
"""`pip install` of the sdist in a root that has Python, pip and a compiler, and nothing else.

    sdist_test.py [--list] SDIST ROOTS SUITE

    --list   only the first half, which takes seconds: the other compiles for four CPU minutes
    SDIST    the .tar.gz that `tools/wheel --out` made
    ROOTS    a folder in which roots are kept (bare_root.py)
    SUITE    a release of Debian or Ubuntu: bookworm, trixie, noble

First nothing of what the build needs is there: pip must end in one list of all of it, with the command that installs it. Then
that command is carried out, and pip must install a package that works. CMake and Ninja come from PyPI.
Exit codes: 0 passed, 1 failed, 2 usage, 77 no root, no package archive or no package index can be had, with the reason.
"""
import os
import re
import sys

from bare_root import APT, BareRoot, NotHere, conclude

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden", "decode")
PIP = "/env/bin/pip"


def missing_packages(said):
    """Reads what pip printed for somebody who lacks libraries; returns the packages of Debian that the command installs."""
    assert said.count("what the build needs is not on this machine") == 1 and "Traceback" not in said, said
    command = re.search(r"^ *apt-get install (.+)$", said, re.MULTILINE)
    assert command, said
    listed = re.search(r"is not on this machine:\n(.*?)On Debian", said, re.DOTALL)[1]
    # A line for each: what it is, at least one space, the package.
    assert [line.split()[-1] for line in listed.splitlines() if line.strip()] == command[1].split(), said
    return command[1].split()


def check(sdist, roots, suite, list_only):
    with BareRoot(suite, roots) as root:
        name = "/" + os.path.basename(sdist)
        root.add(sdist, name)
        root.add(GOLDEN, "/golden")
        for script in ("sdist_in_root.py", "package_in_root.py"):
            root.add(os.path.join(HERE, script), f"/check/{script}")
        root.update_lists()
        root.install("g++")
        root.run_well("python3", "-m", "venv", "/env")
        if root.run(PIP, "download", "--no-deps", "-d", "/probe", "nanobind").returncode != 0:
            raise NotHere("no package index can be reached")
        refused = root.run(PIP, "install", name)
        assert refused.returncode != 0, "pip built the package without what it needs"
        packages = missing_packages(refused.stdout + refused.stderr)
        print("missing, as pip said:", *packages, flush=True)
        if list_only:
            # Whether the release has all of them is enough.
            root.run_well(*APT, "install", "--simulate", *packages)
            return
        root.install(*packages)
        root.run_well(PIP, "install", name)
        print(root.run_well("/env/bin/python", "/check/sdist_in_root.py", "/golden"))


def main():
    words = sys.argv[1:]
    list_only = words[:1] == ["--list"]
    if len(words) != 3 + list_only:
        print(__doc__, file=sys.stderr)
        return 2
    sdist, roots, suite = words[list_only:]
    return conclude(check, os.path.abspath(sdist), os.path.abspath(roots), suite, list_only)


if __name__ == "__main__":
    sys.exit(main())
