"""The duties of a Python package that pip has built with the libraries that it cannot do without, and no others: run by
sdist_test.py, in an environment that has the package.

    sdist_in_root.py GOLDEN_DIR      GOLDEN_DIR is tests/golden/decode
"""
import subprocess
import sys

import package_in_root as package


def main():
    package.decode_golden(sys.argv[1], refused=("tif", "webp", "jp2", "avif"))
    package.write_pictures()
    package.train_a_loader()
    package.throw_from_a_worker()
    package.without_gpus()
    module = subprocess.run([sys.executable, "-m", "stoker"], capture_output=True, text=True, check=False)
    assert module.returncode == 1 and "built without the program" in module.stderr, module
    print("in the root: all well, Python", sys.version.split()[0])


if __name__ == "__main__":
    main()
