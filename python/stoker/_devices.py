"""Which devices there are."""

from __future__ import annotations

from stoker import _core


def devices() -> list[str]:
    """Names that Loader(device=...) takes here: 'cpu:0', and 'cuda:N' for each GPU that
    CUDA_VISIBLE_DEVICES leaves. Creates no context on any.
    """
    return list(_core.device_names())


def why_no_cuda() -> str:
    """Why no GPU can be fed, in one line; '' if they can."""
    return _core.cuda_problem()
