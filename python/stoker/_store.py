"""How data in a store are reached: s3:// and https:// addresses."""

from __future__ import annotations

import dataclasses
import os
from typing import Literal

from stoker import _core

_SCHEMES = ("s3://", "http://", "https://")
_STYLES = ("auto", "path", "host")


def is_address(path: object) -> bool:
    return isinstance(path, str) and path.startswith(_SCHEMES)


@dataclasses.dataclass(frozen=True)
class Store:
    """How to reach a store, and how much to ask of it at a time; for the argument `store` of
    folder(), tar() and so on. Keys are found as the AWS tools find them (the environment, the files
    in ~/.aws, a container's or an instance's role), and are in no pickle and no message.

    endpoint: the server of s3:// addresses, as 'http://127.0.0.1:8333'; default: that of the AWS
        settings, else Amazon's. region, profile: default: those of the AWS settings.
    style: 'path' or 'host' say where the bucket's name is; 'auto': in the path at an endpoint of
        one's own.
    anonymous: do not sign requests, for a public bucket.
    ca_file: certificates to trust instead of the system's.
    requests: how many are under way at once; None finds the number by measuring.
    memory: bytes of samples that are fetched before they are read.
    tries: how often a request is tried before StoreError is raised.
    cache: a folder on a disk of this machine that keeps a fixed part of the samples between epochs
        and runs, so that they leave the store once; processes may share it. cache_size: the most
        bytes of them, for each data set that is opened. Both or none. A full disk makes it smaller.

    ValueError, TypeError: a value of another kind or out of its range.
    """

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    style: Literal["auto", "path", "host"] = "auto"
    anonymous: bool = False
    ca_file: str | None = None
    requests: int | None = None
    memory: int = 256 << 20
    tries: int = 10
    cache: str | os.PathLike[str] | None = None
    cache_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("endpoint", "region", "profile", "ca_file"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} is {value!r}, must be a text or None")
        if self.endpoint is not None and "@" in self.endpoint:
            raise ValueError(
                f"endpoint is {_core.shown_path(self.endpoint)!r}, must have no user and no "
                "password: keys are found as the AWS tools find them"
            )
        if self.style not in _STYLES:
            raise ValueError(f"style is {self.style!r}, must be one of {', '.join(_STYLES)}")
        for name, value, least, most in (
            ("requests", 1 if self.requests is None else self.requests, 1, 256),
            ("memory", self.memory, 1 << 20, 1 << 50),
            ("tries", self.tries, 1, 1000),
        ):
            if not isinstance(value, int) or not least <= value <= most:
                raise ValueError(
                    f"{name} is {value!r}, must be a whole number of {least} to {most}"
                )
        if self.cache is not None and not isinstance(self.cache, str | os.PathLike):
            raise TypeError(f"cache is {self.cache!r}, must be a path or None")
        if (self.cache is None) != (self.cache_size is None):
            raise ValueError("cache and cache_size are given together, or neither is")
        if self.cache is not None and not os.fspath(self.cache):
            raise ValueError("cache is empty, must be a folder")
        if self.cache_size is not None and not (
            isinstance(self.cache_size, int) and 1 <= self.cache_size <= 10**18
        ):
            raise ValueError(
                f"cache_size is {self.cache_size!r}, must be a whole number of bytes, at least 1"
            )

    def options(self) -> _core.StoreOptions:
        return _core.StoreOptions(
            self.endpoint or "",
            self.region or "",
            self.profile or "",
            self.style,
            bool(self.anonymous),
            self.ca_file or "",
            self.requests or 0,
            self.memory,
            self.tries,
            "" if self.cache is None else os.fspath(self.cache),
            self.cache_size or 0,
        )


def options_for(path: str | list[str], store: object) -> _core.StoreOptions:
    """ValueError, TypeError: `store` is no Store, or the data are in none."""
    if store is None:
        return Store().options()
    if not isinstance(store, Store):
        raise TypeError(f"store is of {type(store)}, must be a stoker.Store")
    first = path if isinstance(path, str) else path[0]
    if not is_address(first):
        raise ValueError(
            f"store is given, and {_core.shown_path(first)} is no address in a store (s3://, "
            "https://)"
        )
    return store.options()
