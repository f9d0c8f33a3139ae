"""`python -m stoker doctor`: what works on this machine and what is missing, a line each."""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import stoker
from stoker import _core

# Packages that stoker works with, the versions that ran with it, and the module that uses them. The
# extras of pyproject.toml have the same names.
TESTED = {
    "torch": ("1.13 and 2.15", "stoker.torch"),
    "torchvision": ("0.14 and 0.29", "stoker.torch, which reads its transforms"),
    "timm": ("1.0", "stoker.torch, which reads its transforms"),
    "lightning": ("2.6", "stoker.torch"),
    "accelerate": ("1.15", "stoker.torch"),
    "keras": ("3.15", "stoker.keras"),
    "jax": ("0.10", "stoker.jax"),
    "ray": ("2.60", "stoker.ray"),
}
# Pictures of two pixels, (200, 100, 50), in the formats that a build may lack.
_PICTURES = {
    "WebP": "524946461e000000574542505650384c110000002f010000000750b22257a6ff8188e87f0000",
    "TIFF": "49492a00080000000a000001040001000000020000000101040001000000010000000201030003000000860000"
    "0003010300010000000100000006010300010000000200000011010400010000008c0000001501030001000000"
    "030000001601040001000000010000001701040001000000060000001c01030001000000010000000000000008"
    "0008000800c86432c86432",
}
_SAMPLES, _BATCH = 64, 16
_SUM = 0xEF934768  # of the pixels of _fed(): they are the same on every machine

OK, MISSING, BROKEN = "ok", "missing", "broken"


class Finding(NamedTuple):
    """One line: `what` is ok, missing (an option that this machine has not) or broken."""

    state: str
    what: str
    text: str
    cure: str = ""


def _interpreter() -> Finding:
    number = ".".join(map(str, sys.version_info[:3]))
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    return Finding(OK, "Python", number + ("" if has_lock else ", without the interpreter lock"))


def _package() -> Finding:
    program = os.path.join(os.path.dirname(os.path.abspath(stoker.__file__)), "stoker")
    if os.path.exists(program):
        return Finding(OK, "stoker", f"{stoker.__version__}, with the program `stoker`")
    text = f"{stoker.__version__}, without the program `stoker`: no training and no profiles by it"
    return Finding(MISSING, "stoker", text, "install a wheel, or build with CMake")


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0))
    return Finding(OK, "cores", f"{usable} usable of {os.cpu_count()}")


def _formats() -> Iterator[Finding]:
    read, missing = ["JPEG", "PNG", "GIF", "BMP", "PNM"], []
    for name, picture in _PICTURES.items():
        try:
            stoker.decode(bytes.fromhex(picture))
            read.append(name)
        except stoker.DecodeError as error:
            missing.append(Finding(MISSING, name, str(error), "install a wheel"))
    for name, library, number, problem in _core.codec_plugins():
        if number:
            read.append(name)
        else:
            missing.append(Finding(MISSING, name, f"{library}: {problem}", "install a wheel"))
    yield Finding(OK, "formats", ", ".join(read))
    yield from missing


def _stores() -> Finding:
    # Nobody listens at this port: where the library is, the connection is refused at once.
    try:
        stoker.open("http://127.0.0.1:9/x.tar", store=stoker.Store(tries=1))
    except stoker.StoreError as error:
        if "could not connect" not in str(error):
            return Finding(MISSING, "stores", str(error), "install libcurl4 of the system")
    except (OSError, RuntimeError, ValueError) as error:
        return Finding(MISSING, "stores", str(error), "install libcurl4 of the system")
    return Finding(OK, "stores", "s3://, gs://, az:// and https:// can be read")


def _bytes_of(array: stoker.Array) -> bytes:
    return ctypes.string_at(array.__array_interface__["data"][0], array.nbytes)  # without NumPy


def _fed(device: str) -> tuple[int, int]:
    """Returns how many samples a Loader gave, and, on the host, a sum of their pixels."""
    samples, checksum = 0, 0
    source = stoker.synthetic(_SAMPLES, size=64, seed=1)
    recipe = stoker.random_resized_crop() | stoker.augment.random_augment() | stoker.flip()
    with stoker.Loader(
        source, batch_size=_BATCH, size=48, seed=1, augment=recipe, device=device
    ) as loader:
        for batch in loader:
            samples += batch.valid
            if device == "cpu":
                checksum = zlib.crc32(_bytes_of(batch.images), checksum)
    return samples, checksum


def _feeding(device: str) -> Finding:
    try:
        samples, checksum = _fed(device)
    except Exception as error:
        return Finding(BROKEN, device, f"a Loader ended: {error}")
    if samples != _SAMPLES:
        return Finding(BROKEN, device, f"a Loader gave {samples} of {_SAMPLES} samples")
    if device == "cpu" and checksum != _SUM:
        return Finding(BROKEN, device, f"the pixels are wrong: {checksum:#x}, must be {_SUM:#x}")
    right = " with the right pixels" if device == "cpu" else ""
    return Finding(OK, device, f"a Loader gave {samples} samples{right}")


def _devices() -> Iterator[Finding]:
    yield _feeding("cpu")
    for name in stoker.devices():
        if name.startswith("cuda"):
            yield _feeding(name)
    problem = stoker.why_no_cuda()
    if problem:
        has_plugin = importlib.util.find_spec("stoker_cuda") is not None
        cure = "" if has_plugin else "for NVIDIA's GPUs: their driver, and the wheel stoker-cuda"
        yield Finding(MISSING, "cuda", problem, cure)


def _packages() -> Iterator[Finding]:
    for name, (tested, user) in TESTED.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Finding(MISSING, name, f"for {user}", f"pip install 'stoker[{name}]'")
        else:
            yield Finding(OK, name, f"{found}, for {user} (tested: {tested})")


def findings() -> Iterator[Finding]:
    """Yields what works and what does not, the essential things first."""
    yield _interpreter()
    yield _package()
    yield _cores()
    yield from _formats()
    yield _stores()
    yield from _devices()
    yield from _packages()


def main(words: list[str]) -> int:
    """Prints the findings. Returns 1 if something is broken, else 0."""
    parser = argparse.ArgumentParser(
        prog="stoker doctor",
        description="Says what works on this machine and what is missing, a line each. Decodes "
        "pictures, feeds a few batches to every device, and compares the pixels with known ones.",
        epilog="Exit codes: 0 nothing is broken (something may be missing), 1 something is broken, "
        "2 wrong options.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: a list of objects")
    options = parser.parse_args(words)
    show: Callable[[Finding], None] = (lambda _: None) if options.json else _print
    found = []
    for finding in findings():
        found.append(finding)
        show(finding)
    if options.json:
        print(json.dumps([finding._asdict() for finding in found], indent=1))
    return int(any(finding.state == BROKEN for finding in found))


def _print(finding: Finding) -> None:
    cure = f" -> {finding.cure}" if finding.cure else ""
    print(f"{finding.state:8} {finding.what:12} {finding.text}{cure}", flush=True)
