"""Makes C++ options of a Loader's arguments: its feed, its device, the format of its images. Errors
name the argument, with its value.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Sequence
from numbers import Real

from stoker import _core
from stoker._arguments import (
    LAST_BATCH,
    ON_BAD,
    TEXTS,
    TOO_LONG,
    choose,
    decode_options,
    yes_or_no,
)
from stoker._decoded_cache import DecodedCache, core_of

IMAGENET_MEAN = (0.485, 0.456, 0.406)  #: of pixels / 255, RGB
IMAGENET_STD = (0.229, 0.224, 0.225)

_TYPES = {
    "uint8": None,
    "float32": _core.PixelType.float32,
    "float16": _core.PixelType.float16,
    "bfloat16": _core.PixelType.bfloat16,
}
_LAYOUTS = {  # the bytes' order, and whether the shape is (rows, 3, height, width)
    "NHWC": (_core.PixelOrder.nhwc, False),
    "NCHW": (_core.PixelOrder.nchw, True),
    "channels_last": (_core.PixelOrder.nhwc, True),
}


class DrawnSeed(int):
    """A seed that was drawn, not given; a state's seed may replace it."""

    @classmethod
    def draw(cls) -> DrawnSeed:
        return cls(int.from_bytes(os.urandom(8), "little") >> 1)


def memory_bytes(memory: int | str | None) -> int:
    """Bytes of Loader(memory=); 0: its default. ValueError: neither a number nor like '2G'."""
    if memory is None:
        return 0
    if isinstance(memory, str):
        units = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
        match = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", memory.strip(), re.IGNORECASE)
        bytes_ = int(match[1]) << units[match[2].upper()] if match else 0
    else:
        bytes_ = memory
    if not isinstance(bytes_, int) or isinstance(bytes_, bool) or not 0 < bytes_ < 1 << 62:
        raise ValueError(f"memory is {memory!r}, must be bytes above 0, or a text such as '2G'")
    return bytes_


def loader_options(
    *,
    batch_size: int,
    seed: int,
    shuffle: bool | None,
    last_batch: str,
    rank: int | None,
    world: int | None,
    epochs: float | None,
    workers: int | None,
    io_threads: int,
    memory: int | str | None,
    ring_depth: int | None,
    is_remote: bool,
    share: str | None,
    share_steps: int,
    share_wait: float,
    leases: int,
    pixels: str,
    exif: str,
    max_pixels: int,
    seek_index: str | os.PathLike[str],
    cache: DecodedCache | None,
    on_bad: str,
    max_bad: float,
    quarantine: str | os.PathLike[str] | None,
    texts: str,
    max_target_bytes: int,
    too_long: str,
) -> _core.LoaderOptions:
    """See Loader. ValueError: an argument, with its value; combinations of arguments are checked
    when the feed is made.
    """
    options = _core.LoaderOptions()
    if isinstance(workers, int) and workers < 0:
        raise ValueError(f"workers is {workers}, must be 0 to 1024, or None: one per core")
    options.rank, options.world = rank_and_world(rank, world)
    options.shuffle = shuffle is None or yes_or_no("shuffle", shuffle)
    if isinstance(seed, DrawnSeed) and options.shuffle and options.world > 1:
        raise ValueError(
            f"seed is None, but {options.world} ranks share each epoch: give all the same seed="
        )
    _set_integers(options, batch_size=batch_size, seed=seed, leases=leases)
    _set_integers(
        options.feed, io_threads=io_threads, workers=-1 if workers is None else workers
    )
    options.feed.memory = memory_bytes(memory)
    options.remote_rows = is_remote
    _set_share(options, share, share_steps, share_wait)
    if share is not None and isinstance(seed, DrawnSeed):
        raise ValueError(
            f"seed is None, but share={share!r}: give all processes that share rows the same seed="
        )
    # Rows that are filled elsewhere are under way for longer.
    ahead = 8 if is_remote else 3
    _set_integers(options, ring_depth=options.leases + ahead if ring_depth is None else ring_depth)
    options.last_batch = choose("last_batch", last_batch, LAST_BATCH)
    options.epochs = -1.0 if epochs is None else _positive("epochs", epochs)
    options.feed.decode = decode_options(pixels, exif, max_pixels)
    options.feed.seek_index = os.fspath(seek_index)
    options.feed.cache = core_of(cache)
    options.feed.on_bad_sample = choose("on_bad", on_bad, ON_BAD)
    options.feed.max_bad = _number("max_bad", max_bad)
    options.quarantine_file = "" if quarantine is None else os.fspath(quarantine)
    options.varying = _core.VaryingOptions()
    options.varying.texts = choose("texts", texts, TEXTS)
    options.varying.too_long = choose("too_long", too_long, TOO_LONG)
    options.varying.max_bytes = _whole("max_target_bytes", max_target_bytes)
    return options


def _set_share(options: _core.LoaderOptions, name: str | None, steps: int, wait: float) -> None:
    if name is None:
        if steps != _core.ShareOptions().steps or wait != _core.ShareOptions().wait_s:
            raise ValueError(
                f"share_steps is {steps} and share_wait is {wait}, but there is no share="
            )
        return
    if not isinstance(name, str):
        raise TypeError(f"share is {name!r}, must be a name, the same in all processes, or None")
    if not name:
        raise ValueError("share is '', must be a name, the same in all processes, or None")
    if options.remote_rows:
        raise ValueError(
            f"share is {name!r}, but remote= has rows filled elsewhere: give one of them"
        )
    share = _core.ShareOptions()
    share.name = name
    share.steps = _whole("share_steps", steps)
    share.wait_s = _number("share_wait", wait)
    options.share = share


# The slots of a GPU.
_MAX_GPU_LEASES = 3


def leases_for(leases: int | None, device: str, on_batch: object, ahead: int) -> int:
    """Returns how many batches are lent. TypeError, ValueError: arguments of on_batch."""
    if on_batch is not None and not callable(on_batch):
        raise TypeError(f"on_batch is {on_batch!r}, must be a function of a batch")
    if not isinstance(ahead, int) or isinstance(ahead, bool) or ahead < 1:
        raise ValueError(f"on_batch_ahead is {ahead!r}, must be a whole number from 1 on")
    if on_batch is None and ahead != 1:
        raise ValueError(f"on_batch_ahead is {ahead}, but there is no on_batch=")
    if leases is None and not device.startswith("cpu") and 2 + ahead > _MAX_GPU_LEASES:
        raise ValueError(
            f"on_batch_ahead is {ahead} on {device}: with the 2 batches of the usual loop "
            f"{ahead + 2} are held, and a GPU lends {_MAX_GPU_LEASES}; give on_batch_ahead=1, or "
            f"leases={_MAX_GPU_LEASES} for a loop that holds fewer"
        )
    if leases is None:
        return 2 + ahead
    if on_batch is not None and isinstance(leases, int) and leases <= ahead:
        raise ValueError(
            f"leases is {leases}, but on_batch_ahead={ahead} batches are held ahead, and the loop "
            f"holds another: give leases={ahead + 2} or leave it out"
        )
    return leases


def _number(field: str, value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{field} is {value!r}, must be a number") from None


def _positive(field: str, value: float) -> float:
    number = _number(field, value)
    if not number > 0:
        raise ValueError(f"{field} is {value!r}, must be more than 0")
    return number


def _whole(field: str, value: int) -> int:
    if not isinstance(value, int) or not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{field} is {value!r}, must be a whole number in range")
    return value


def _set_integers(options: _core.LoaderOptions | _core.FeedOptions, **values: int) -> None:
    for field, value in values.items():
        try:
            setattr(options, field, value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{field} is {value!r}, must be a whole number in range") from None


def rank_and_world(rank: int | None, world: int | None) -> tuple[int, int]:
    """Returns both as given; or those of torch.distributed, if the program has initialised it; or 0
    of 1. Never imports torch. ValueError: one without the other, or out of range.
    """
    if (rank is None) != (world is None):
        raise ValueError(f"rank is {rank} and world is {world}: give both or neither")
    if rank is not None and world is not None:
        if not isinstance(rank, int) or not isinstance(world, int) or not 0 <= rank < world:
            raise ValueError(f"rank is {rank!r} of a world of {world!r}, must be 0 to world - 1")
        return rank, world
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return 0, 1
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def devices() -> list[str]:
    """Returns the names that Loader(device=...) takes here: 'cpu:0', and 'cuda:N' for each GPU that
    CUDA_VISIBLE_DEVICES leaves. Creates no context on any GPU.
    """
    return list(_core.device_names())


def why_no_cuda() -> str:
    """Returns why no GPU can be fed, in one line; '' if they can."""
    return _core.cuda_problem()


def device_name(device: object) -> str:
    """Returns the C++ name of `device`, which has a number; `device` is a name or a torch.device,
    else TypeError. Never imports torch.
    """
    kind = type(device)
    if not isinstance(device, str) and (kind.__module__, kind.__name__) != ("torch", "device"):
        raise TypeError(f"device is {device!r}, must be a name ('cpu', 'cuda:0') or a torch.device")
    name = str(device)
    if name == "cpu":
        return "cpu:0"
    if name == "cuda":
        torch = sys.modules.get("torch")
        has_one = torch is not None and torch.cuda.is_available()
        return f"cuda:{torch.cuda.current_device() if has_one else 0}"
    return name


def image_format(
    dtype: str,
    layout: str,
    mean: float | Sequence[float] | None,
    std: float | Sequence[float] | None,
) -> _core.ImageFormat:
    image = _core.ImageFormat()
    image.type = choose("dtype", dtype, _TYPES)
    image.order, image.channels_second = choose("layout", layout, _LAYOUTS)
    if image.type is None:
        if layout == "NCHW":
            raise ValueError(
                "layout is 'NCHW' with dtype 'uint8': pixels are stored NHWC. Take 'channels_last' "
                "(the same shape, no copy) or another dtype"
            )
        if mean is not None or std is not None:
            raise ValueError("mean and std are for dtype float32, float16 and bfloat16, not uint8")
    image.mean = _three("mean", 0 if mean is None else mean)
    image.stddev = _three("std", 1 if std is None else std)
    if not all(deviation > 0 for deviation in image.stddev):
        raise ValueError(f"std is {std!r}, must be positive")
    # A mean of pixels / 255 is at most 1, and a deviation at most 0.5.
    for field, values, most in (("mean", image.mean, 1), ("std", image.stddev, 2)):
        if max(values) > most:
            raise ValueError(
                f"{field} is {values!r}: it is of pixels / 255, this is as of 0..255; divide by 255"
            )
    return image


def _three(field: str, values: float | Sequence[float]) -> list[float]:
    """Repeats one number for all channels."""
    try:
        numbers = [float(values)] * 3 if isinstance(values, Real) else list(map(float, values))
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{field} is {values!r}, must be a number or three, RGB")
    return numbers
