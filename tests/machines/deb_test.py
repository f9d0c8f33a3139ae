#!/usr/bin/env python3
"""The Debian packages in a root that has none of what they depend on: apt installs them, the program trains, apt removes them.

    deb_test.py PACKAGES ROOTS SUITE

    PACKAGES   a folder with the .deb files that `cpack` made
    ROOTS      a folder in which roots are kept (bare_root.py)
    SUITE      the release of Debian that they were built on

Exit codes: 0 passed, 1 failed, 2 usage, 77 no root or no package archive can be had, with the reason.
"""
import glob
import os
import sys

import library_paths
from bare_root import APT, BareRoot, conclude


def packages(folder, *names):
    """Returns the paths in the root of the packages with these names that were made."""
    return [f"/packages/{os.path.basename(path)}" for name in names for path in glob.glob(os.path.join(folder, f"{name}_*.deb"))]


def train(root):
    """Feeds, trains and evaluates: oneDNN, oneTBB and the codecs are those that apt brought."""
    info = root.run_well("stoker", "info")
    assert "oneDNN" in info, info
    root.run_well("stoker", "make-shapes", "--out", "/tmp/shapes", "--count", "60", "--test-count", "20")
    root.run_well("stoker", "check", "--data", "/tmp/shapes")
    root.run_well("stoker", "train", "--config", "/usr/share/stoker/recipes/airnet-trivial.toml", "--data", "/tmp/shapes", "--batch", "16",
                  "--micro-batch", "16", "--max-steps", "2", "--out", "/tmp/run")
    root.run_well("stoker", "eval", "--checkpoint", "/tmp/run", "--data", "/tmp/shapes")
    root.run_well("stoker", "peek", "--data", "/tmp/shapes", "-o", "/tmp/sheet.png")


def plugins(root, folder):
    """A plugin of its own package lies where the program looks, and the program says that there is no driver."""
    if packages(folder, "stoker-curl"):
        root.install(*packages(folder, "stoker-curl"))
        assert root.run_well("find", "/usr/lib", "-name", "libstoker_curl.so", "-path", "*/stoker/*"), "no plugin"
    if packages(folder, "stoker-cuda"):
        root.install(*packages(folder, "stoker-cuda"))
        assert root.run_well("find", "/usr/lib", "-name", "libstoker_cuda.so", "-path", "*/stoker/*"), "no plugin"
        assert "no NVIDIA driver" in root.run_well("stoker", "info")


def check(folder, roots, suite):
    lines, count = library_paths.read([folder], built=False)
    assert count > 0 and not lines, "\n".join(lines)
    with BareRoot(suite, roots) as root:
        root.add(folder, "/packages")
        root.update_lists()
        assert root.run("stoker", "info").returncode != 0, "the program is there before it is installed"
        root.install(*packages(folder, "stoker"))
        train(root)
        plugins(root, folder)
        # The headers of a consumer are large: whether all of it is there is enough.
        root.run_well(*APT, "install", "--simulate", *packages(folder, "libstoker-dev", "stoker-mpi"))
        root.run_well(*APT, "purge", "stoker")
        left = root.run("find", "/usr", "/etc", "/var/lib", "-name", "*stoker*", "-not", "-path", "/var/lib/dpkg/*").stdout
        assert not left, f"purged, but there is {left}"


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    folder, roots, suite = sys.argv[1:]
    return conclude(check, os.path.abspath(folder), os.path.abspath(roots), suite)


if __name__ == "__main__":
    sys.exit(main())
