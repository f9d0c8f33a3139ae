"""A feed's position, as the few numbers of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import _core
from stoker._moving_feed import MovingFeed

_VERSION = 2
# States of this version that have no seed were made with seed 0.
_WITHOUT_SEED = 1


def state_of(feed: MovingFeed) -> dict[str, Any]:
    next_step, epoch, step_in_epoch = feed.position()
    return {
        "version": _VERSION,
        "next_step": next_step,
        "epoch": epoch,
        "step_in_epoch": step_in_epoch,
        "seed": feed.seed,
        "fingerprint": f"{feed.get().state()[3]:016x}",
    }


def place_of(
    state: Mapping[str, Any], feed: _core.Feed, own_seed: int | None
) -> tuple[int, int]:
    """Returns the step at which `state` continues, and its seed. own_seed: the seed that it must
    have; None: any. ValueError: it is no state, or not one of such a feed.
    """
    try:
        version, step = int(state["version"]), int(state["next_step"])
        fingerprint = int(state["fingerprint"], 16)
        seed = 0 if version == _WITHOUT_SEED else int(state["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a state of a stoker.Loader: {state!r} ({error!r})") from None
    if version not in (_WITHOUT_SEED, _VERSION):
        raise ValueError(f"a state of version {version}, this is version {_VERSION}")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"not a state of a stoker.Loader: its seed is {seed}")
    if not 0 <= step <= feed.end_step:
        raise ValueError(f"next_step is {step}, must be 0 to {feed.end_step}")
    if own_seed is not None:
        seed = own_seed
    feed.check_state(step, fingerprint, seed)
    return step, seed
