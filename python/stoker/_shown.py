"""How sources and loaders show themselves: repr(), and tables for notebooks. Nothing is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import _core

_SHOWN = 5  # classes


def source_text(source: _core.Source) -> str:
    return f"<stoker.Source of {', '.join(_facts(source).values())}>"


def source_html(source: _core.Source) -> str:
    return _table("stoker.Source", _facts(source))


def loader_html(loader: Any) -> str:
    return _table("stoker.Loader", _loader_facts(loader))


def adapter_html(adapter: Any, loader: Any) -> str:
    kind = type(adapter)
    return _table(f"{kind.__module__}.{kind.__qualname__}", _loader_facts(loader))


def _facts(source: _core.Source) -> dict[str, str]:
    """Facts about a source, without waiting for a list that is still being made."""
    place = {"at": f"at {source.root}"} if source.root else {}
    if source.is_growing:
        return {"samples": "a list that grows", **place}
    facts = {"samples": _count(len(source), "sample")}
    if source.raw_size is not None:
        facts["pixels"] = "{1} x {0} pixels".format(*source.raw_size)
    classes = source.classes
    if classes:
        names = ", ".join(classes[:_SHOWN]) + (", ..." if len(classes) > _SHOWN else "")
        facts["classes"] = f"{_count(len(classes), 'class', 'es')} ({names})"
    if source.targets:
        facts["targets"] = f"targets {', '.join(source.targets)}"
    return {**facts, **place}


def _loader_facts(loader: Any) -> dict[str, str]:
    return {
        **_facts(loader.source),
        "batches": f"batches of {loader.batch_size}"
        + (f" in {loader.views} views" if loader.views > 1 else ""),
        "loader": repr(loader),
    }


def _count(number: int, what: str, ending: str = "s") -> str:
    return f"{number:,} {what}{ending if number != 1 else ''}"


def _table(title: str, facts: Mapping[str, str]) -> str:
    from html import escape

    rows = "".join(
        f"<tr><th style='text-align: left'>{escape(name)}</th>"
        f"<td style='text-align: left'>{escape(text)}</td></tr>"
        for name, text in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
