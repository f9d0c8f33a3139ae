#!/usr/bin/env python3
"""Runs the programs of the guides from other loaders, before and after, on the same small data: both must print the same.

    tests/docs/guides_test.py [--all] [NAME...]     (default: those of tools/docs/guides whose peer is installed)

NAME_before.py uses the peer, NAME_after.py stoker. They print how many samples an epoch had, the labels, and a digest or a
sum of all pixels where both libraries are exact. What is not installed beside this Python is left out (with --all: fails).
Each says how long it took, and the version of the peer.

Exit codes: 0 none failed, 1 one did, 2 usage.
"""
import argparse
import ctypes.util
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile
import time

GUIDES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "docs" / "guides"
LIMIT_S = 180
# The peers, by the packages that they need; `libavdevice` is a library of the system.
PEERS = {
    "dataloader": ["torch", "torchvision"],
    "torchcodec": ["torchcodec", "torchvision"],
    "dali": ["nvidia-dali-cuda120"],
    "ffcv": ["ffcv", "torchvision"],
    "tfdata": ["tensorflow-cpu", "keras"],
    "webdataset": ["webdataset", "torchvision"],
    "streaming": ["mosaicml-streaming", "torchvision"],
    "litdata": ["litdata", "torchvision"],
    "grain": ["grain", "pillow"],
    "spdl": ["spdl-io", "libavdevice"],
    "timm": ["timm", "torchvision"],
}


def version_of(package):
    """Returns a version, or None if it is not there."""
    if package.startswith("lib"):
        return ctypes.util.find_library(package[len("lib") :])
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def make_data(folder):
    """What the programs read: photos/, and tar shards of its test half."""
    for line in (
        "make-shapes --out photos --count 200 --test-count 100 --size 96",
        "pack --data photos --split test --format tar --shard-mib 1 --out shards",
    ):
        subprocess.run(
            [sys.executable, "-m", "stoker", *line.split()], cwd=folder, check=True, capture_output=True
        )


def run(program, folder):
    """Returns the lines that it printed, or raises RuntimeError, and the seconds it took."""
    begun = time.monotonic()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(
            [sys.executable, str(program)], cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{program.name} has not ended after {LIMIT_S} s") from None
    if done.returncode != 0:
        raise RuntimeError(f"{program.name} ended with {done.returncode}:\n{done.stdout[-500:]}{done.stderr[-2500:]}")
    kept = ("samples ", "labels ", "pixels ", "sum of all pixels ")
    return [line for line in done.stdout.splitlines() if line.startswith(kept)], time.monotonic() - begun


def problem_of(name, folder):
    """Returns what is wrong with a guide, or None, and the seconds of both programs."""
    try:
        before, first = run(GUIDES / f"{name}_before.py", folder)
        after, second = run(GUIDES / f"{name}_after.py", folder)
    except RuntimeError as error:
        return str(error), ()
    if len(before) < 2 or before != after:
        return "\n".join(["before:", *before, "after:", *after]), ()
    return None, (first, second)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *PEERS], help=", ".join(PEERS))
    parser.add_argument("--all", action="store_true", help="what is not installed fails")
    options = parser.parse_args()
    on_disk = {path.stem for path in GUIDES.glob("*.md")} - {"index"}
    failed = sorted(on_disk ^ set(PEERS))  # a page without programs, or the other way round
    for name in failed:
        print(f"FAILED {name}: it is only one of a page and an entry in PEERS")
    with tempfile.TemporaryDirectory(prefix="stoker_guides_") as folder:
        make_data(folder)
        for name in options.names or PEERS:
            versions = {package: version_of(package) for package in PEERS[name]}
            absent = [package for package, version in versions.items() if version is None]
            if absent:
                print(f"{'FAILED' if options.all else 'left out:'} {name} (not installed: {', '.join(absent)})")
                failed += [name] if options.all else []
                continue
            problem, seconds = problem_of(name, folder)
            if problem:
                print(f"FAILED {name}\n{problem}")
                failed.append(name)
            else:
                beside = ", ".join(f"{package} {version}" for package, version in versions.items())
                print(f"passed {name}: {seconds[0]:.1f} s before, {seconds[1]:.1f} s after ({beside})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
