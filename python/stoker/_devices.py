"""The devices that can be used."""

from __future__ import annotations

import sys

from stoker import _core


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
