"""Checks a Loader's arguments and makes the C++ options from them."""

from __future__ import annotations

import os
import sys

from stoker import _core
from stoker._choice import LAST_BATCH, ON_BAD, choose, decode_options
from stoker._decoded_cache import DecodedCache, core_of


class DrawnSeed(int):
    """A seed that was drawn, not given; a state's seed may replace it."""

    @classmethod
    def draw(cls) -> DrawnSeed:
        return cls(int.from_bytes(os.urandom(8), "little") >> 1)


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


def yes_or_no(field: str, value: object) -> bool:
    """TypeError for anything but True and False: "no" would be true."""
    if value is True or value is False:
        return bool(value)
    raise TypeError(f"{field} is {value!r}, must be True or False")


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
