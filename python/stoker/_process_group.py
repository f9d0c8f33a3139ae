"""The part of an epoch that this process gets."""

from __future__ import annotations

import sys


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
