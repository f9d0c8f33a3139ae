"""Draws a step again, as it was fed: by random access, beside whatever runs."""

from __future__ import annotations

import base64
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from stoker import _core
from stoker._adapter import loader_in
from stoker._arguments import in_range
from stoker._batch import Batch
from stoker._feeds import read_state
from stoker._loader import Loader
from stoker._options import image_format
from stoker._recipe import readers_of
from stoker._watch import Watch

if TYPE_CHECKING:
    from stoker.losses import Losses

_MOST_STEPS = 1 << 62
_EVERY_BAD_SAMPLE = float(1 << 31)  # the budget is the run's; this is a single step


class RewoundRow(NamedTuple):
    """A row of a step."""

    row: int  #: its place in the batch
    id: int  #: of the sample in the source
    name: str
    label: int
    counts: bool  #: False: padding, or a substitute for a bad sample
    draws: str  #: see Batch.draws
    loss: float  #: nan: not known


@dataclass
class Rewound:
    """A step as it was fed, and what is known of its rows. See rewind()."""

    batch: Any  #: what the loader gave, before on_batch
    step: int
    epoch: int
    step_in_epoch: int
    rank: int
    rows: list[RewoundRow]  #: all, in the batch's order
    _pictures: Callable[[], _core.Batch]

    def with_losses(self, losses: Iterable[float]) -> Rewound:
        """The same step with other losses: for each row, or for each row that counts, as a net
        gives them now. ValueError: another number of them.
        """
        values = [float(loss) for loss in losses]
        counted = [each.row for each in self.rows if each.counts]
        places = counted if len(values) == len(counted) else range(len(self.rows))
        if len(values) != len(places):
            raise ValueError(
                f"{len(values)} losses, and step {self.step} has {len(self.rows)} rows, of which "
                f"{len(counted)} count"
            )
        known = dict(zip(places, values))
        rows = [each._replace(loss=known.get(each.row, math.nan)) for each in self.rows]
        return Rewound(
            self.batch, self.step, self.epoch, self.step_in_epoch, self.rank, rows, self._pictures
        )

    def ranked(self) -> list[RewoundRow]:
        """Returns the rows that count, by their loss, highest first; those that are nan (or not
        known) come before all."""
        rows = [each for each in self.rows if each.counts]
        return sorted(rows, key=lambda row: -math.inf if math.isnan(row.loss) else -row.loss)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with the pictures of ranked(), as they were before they were normalised. It
        needs no network. OSError: `path` cannot be written.
        """
        place = f"step {self.step}, epoch {self.epoch}, rank {self.rank}"
        pictures = _pngs(self._pictures().images)
        figures = "\n".join(_figure(row, pictures[row.row]) for row in self.ranked())
        page = _PAGE.replace("PLACE", place).replace("FIGURES", figures)
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)


def rewind(
    of: Any,
    step: int,
    *,
    loader: Any = None,
    rank: int | None = None,
) -> Rewound:
    """Draws the batch of a step again: the same bytes, on the same device. It takes the time of one
    batch, wherever the step lies; the running loader goes on undisturbed, and may be closed.

        suspect = watched.spikes()[0]
        step = stoker.rewind(watched, suspect.step)
        for row in step.ranked()[:8]:
            print(row.loss, row.name, row.label, row.draws)
        step.to_html("step.html")

    of: a stoker.Loader, a loader of stoker.torch, keras or jax, or a stoker.watch() around one. Or
        what is left of a run: its state_dict(), or the folder of watch(folder=). These hold a
        position and losses but no data set, so `loader` must be one that was made in the same way.
    step: Batch.step, as in Watch.spikes(): counted over all epochs. After
        `state = loader.state_dict()` the last batch was state["next_step"] - 1.
    loader: made as that of the run was; device, dtype, workers and epochs may differ. Its position
        stays as it is.
    rank: whose rows of the step; default: those of the loader's own rank.

    What bears no part in the bytes is left out: share=, remote=, cache=, quarantine=, on_batch=. A
    file that has changed since gives other bytes.

    ValueError: a state of another configuration; a step that the loader does not have, or of an
    epoch whose samples another loop's sampler has listed. TypeError: no loader of stoker.
    """
    given, state, losses = _parts(of, loader)
    inner = loader_in(given)
    if inner is None:
        raise TypeError(
            f"loader is {given!r}: give the stoker.Loader, or a loader of stoker.torch, keras or "
            "jax, that fed the step, or one that was made in the same way"
        )
    step = in_range("step", step, 0, _MOST_STEPS)
    own = inner.rank if rank is None else in_range("rank", rank, 0, inner.world - 1)
    seed = inner.seed if state is None or inner._is_seeded else read_state(state)[1]
    options = _options_of(inner, step, own, seed)
    taken = _drawn(inner, options, inner._output, state)
    return Rewound(
        batch=_given(given, Batch(taken, inner.source, inner._batches.metadata)),
        step=taken.step,
        epoch=taken.epoch,
        step_in_epoch=taken.step_in_epoch,
        rank=own,
        rows=list(_rows(taken, inner.source, _kept(losses, step, own))),
        _pictures=lambda: _drawn(inner, options, _SHOWN, None),
    )


def _parts(of: Any, loader: Any) -> tuple[Any, Mapping[str, Any] | None, Losses | None]:
    """Returns the loader, the state of the run that it must be able to continue, and the losses."""
    state, losses = None, None
    if isinstance(of, Mapping):
        state = of
    elif isinstance(of, (str, os.PathLike)):
        from stoker.losses import Losses  # which needs NumPy

        losses = Losses(of)
        state = losses.state
    elif loader is None:
        loader = of
    if isinstance(loader, Watch):
        losses = losses or loader.kept_losses()
        loader = loader.watched
    return loader, state, losses


_SHOWN = ("cpu:0", image_format("uint8", "NHWC", None, None), False, False)


def _options_of(loader: Loader[Any], step: int, rank: int, seed: int) -> _core.LoaderOptions:
    """Returns those of a feed of this step, which shares nothing with the loader's own."""
    options = _core.LoaderOptions(loader._options)
    options.first_step, options.seed, options.rank = step, seed, rank
    options.epochs = -1.0
    options.ring_depth = options.leases = 1
    options.remote_rows = False
    options.share = _core.ShareOptions()
    options.feed.cache = None
    options.feed.seek_index = "off"
    options.feed.max_bad = _EVERY_BAD_SAMPLE
    options.quarantine_file = ""
    return options


def _drawn(
    loader: Loader[Any],
    options: _core.LoaderOptions,
    output: tuple[str, _core.ImageFormat, bool, bool],
    state: Mapping[str, Any] | None,
) -> _core.Batch:
    uses = [reader.use() for reader in readers_of(loader.source).readers]
    feed = _core.Feed.make(loader.source, loader._spec, options, *output)
    try:
        if state is not None:
            at, _, fingerprint = read_state(state)
            feed.check_state(at, fingerprint, options.seed)
        _check_step(options.first_step, feed.steps_per_epoch, loader)
        taken: list[_core.Batch] = []
        feed.next(options.first_step + 1, taken)
        return taken.pop()
    finally:
        feed.close()
        uses.clear()


def _check_step(step: int, steps_per_epoch: int, loader: Loader[Any]) -> None:
    epochs = loader._options.epochs
    first = loader._first_epoch * steps_per_epoch
    last = math.ceil(epochs * steps_per_epoch) - 1 if epochs >= 0 else _MOST_STEPS
    if first <= step <= last:
        return
    why = ": its sampler lists each epoch anew, and this one's list is known" if first else ""
    raise ValueError(f"step is {step}, must be {first} to {last}{why}")


def _given(loader: Any, batch: Batch) -> Any:
    form = getattr(loader, "_form", None)
    return batch if isinstance(loader, Loader) or form is None else form.convert(batch)


def _kept(losses: Losses | None, step: int, rank: int) -> dict[int, list[float]]:
    """Returns the losses of the rows of each sample, in order."""
    found: dict[int, list[float]] = {}
    for sample, loss in [] if losses is None else losses.of_step(step, rank):
        found.setdefault(sample, []).append(loss)
    return found


def _rows(
    taken: _core.Batch, source: _core.Source, losses: dict[int, list[float]]
) -> Iterator[RewoundRow]:
    counted = set(taken.counted_rows())
    for row, (sample, draws) in enumerate(zip(taken.id_list(), taken.draws())):
        known = losses.get(sample)
        yield RewoundRow(
            row=row,
            id=sample,
            name=source.name(sample),
            label=_core.label_in_batch(source, sample),
            counts=row in counted,
            draws=draws,
            loss=known.pop(0) if known else math.nan,
        )


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>PLACE</title>
<style>
body { font: 14px sans-serif; margin: 2em }
figure { display: inline-block; vertical-align: top; width: 224px; margin: 0 1em 1.5em 0 }
figcaption { overflow-wrap: anywhere }
img { width: 100%; image-rendering: pixelated }
small { color: #666 }
</style>
<h1>PLACE</h1>
FIGURES
</html>
"""


def _figure(row: RewoundRow, png: bytes) -> str:
    loss = "" if math.isnan(row.loss) else f"loss {row.loss:.4g}, "
    return (
        f'<figure><img alt="row {row.row}" '
        f'src="data:image/png;base64,{base64.b64encode(png).decode("ascii")}">'
        f"<figcaption><b>{escape(row.name)}</b><br>{loss}label {row.label}, row {row.row}<br>"
        f"<small>{escape(row.draws)}</small></figcaption></figure>"
    )


def _pngs(images: _core.Array) -> list[bytes]:
    rows, height, width, _ = images.shape
    size = height * width * 3
    pixels = images.numpy().tobytes()
    return [_png(pixels[i * size : (i + 1) * size], width, height) for i in range(rows)]


def _png(pixels: bytes, width: int, height: int) -> bytes:
    """PNG (RFC 2083): the lines, each behind a 0 for no filter, in one deflated chunk."""
    line = 3 * width
    lines = b"".join(b"\0" + pixels[i * line : (i + 1) * line] for i in range(height))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(lines)),
            (b"IEND", b""),
        )
    )
