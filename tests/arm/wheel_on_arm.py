"""The duties of the Python package on 64-bit Arm: run by tests/arm/wheel under QEMU, with the wheel unpacked in PYTHONPATH, and
tests/machines.

    wheel_on_arm.py GOLDEN_DIR      GOLDEN_DIR is tests/golden/decode
"""
import os
import sys

import package_in_root as package


def main():
    assert os.uname().machine == "aarch64", os.uname()
    package.decode_golden(sys.argv[1])
    package.write_pictures()
    package.train_a_loader()
    package.throw_from_a_worker()
    package.without_gpus()
    print("on Arm: all well, Python", sys.version.split()[0])


if __name__ == "__main__":
    main()
