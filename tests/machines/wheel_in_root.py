"""The duties of a wheel of stoker where there is nothing but Python: run by wheel_test.py, in an environment that
has the wheel.

    wheel_in_root.py GOLDEN_DIR      GOLDEN_DIR is tests/golden/decode
"""

import os
import re
import subprocess
import sys

import package_in_root as package
import stoker

# Files that may be mapped from outside of the environment: Python's own, and the libraries of C and C++.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+))\.so[.0-9]*")
PROGRAM = [os.path.join(os.path.dirname(sys.executable), "stoker")]


def ours_alone():
    """Every mapped file comes from the environment or from Python, or is a library of C and C++; and the wheel has names of its own."""
    environment = os.path.realpath(sys.prefix)
    mapped = {line.split()[-1] for line in package.read("/proc/self/maps").decode().splitlines() if ".so" in line}
    foreign = {file for file in mapped if not os.path.realpath(file).startswith(environment + "/")}
    of_python = re.compile(r".*/lib-dynload/.*|.*/libpython[0-9.]+\.so.*")
    extensions = {name for name in foreign if of_python.fullmatch(name)}
    needed_by_python = {name for name in foreign - extensions if re.fullmatch(r"lib(z|expat|lzma|bz2|ffi|crypto|ssl)\.so[.0-9]*", os.path.basename(name))}
    others = {name for name in foreign - extensions - needed_by_python if not SYSTEM.fullmatch(os.path.basename(name))}
    assert not others, others
    bundled = sorted(os.path.basename(file) for file in mapped - foreign)
    assert all(re.search(r"-[0-9a-f]{8}\.so", name) for name in bundled if re.match("lib(?!stoker_)", name)), bundled
    assert any(name.startswith("libtbb-") for name in bundled), bundled
    print("mapped:", *bundled)


def run(*words, code=0, said=""):
    result = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert result.returncode == code and said in result.stdout + result.stderr, (words, result)
    return result.stdout


def use_the_program():
    run("--version", said=stoker.__version__)
    print(run("info"))
    run("make-shapes", "--out", package.path("shapes"), "--count", "60", "--test-count", "20")
    run("check", "--data", package.path("shapes"))
    run("dump", "--data", package.path("shapes"), "--batch", "16", "--size", "32", "--steps", "2", "--out", package.path("dump"))
    run("peek", "--data", package.path("shapes"), "-o", package.path("sheet.png"))
    assert stoker.image_info(package.read(package.path("sheet.png"))).width > 0
    run("pack", "--data", package.path("shapes"), "--format", "parquet", "--out", package.path("packed"))
    assert len(stoker.parquet(package.path("packed"))) > 0
    run("train", "--data", package.path("shapes"), "--model", "airnet-narrow", "--out", package.path("run"), code=3, said="Debian's package of stoker")
    run("no-such-command", code=2)
    module = subprocess.run([sys.executable, "-m", "stoker", "--version"], capture_output=True, text=True, check=True)
    assert stoker.__version__ in module.stdout


def main():
    assert stoker.devices()[0] == "cpu:0", stoker.devices()
    has_avif = os.path.exists(os.path.join(os.path.dirname(stoker.__file__), "libstoker_avif.so"))  # tools/wheel says why it has not
    package.decode_golden(sys.argv[1], refused=() if has_avif else ("avif",))
    package.write_pictures()
    package.train_a_loader()
    package.throw_from_a_worker()
    ours_alone()
    package.without_gpus()
    use_the_program()
    print("in the root: all well, Python", sys.version.split()[0])


if __name__ == "__main__":
    main()
