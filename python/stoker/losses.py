"""The losses that stoker.watch() kept: the steps that stand out, and the samples of a run by their
losses. Needs NumPy.

    losses = stoker.losses.Losses("runs/7/watch")            # also of a run that died
    worst = losses.never_learned()                            # wrong labels are among them
    stoker.losses.write_subset("look.txt", [each.id for each in worst[:100]])
"""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from stoker import _core
from stoker._loss_writer import ID, LOSS, STEP_FIELDS, read_facts

__all__ = ["Losses", "Ranked", "Spike", "duplicates", "write_subset"]

_NEIGHBOURS = 64  # steps before a step, with which it is compared
_ENOUGH = 8  # of them
_SIGMA = 1.4826  # standard deviations of a normal distribution in its MAD
_LEAST_SPREAD = 0.02  # of the median, as in `stoker rewind --spike`
_ROWS_AT_ONCE = 1 << 22
_STEPS_AT_ONCE = 1 << 14


class Spike(NamedTuple):
    """A step that stands out."""

    step: int
    rank: int
    loss: float
    grad_norm: float  #: nan: was not recorded
    score: float  #: the larger one of both, in standard deviations; inf: one is nan or infinite


class Ranked(NamedTuple):
    """A sample of a ranking."""

    id: int
    loss: float  #: by which it is ranked
    times: int  #: how often the run had its loss


class Losses:
    """The losses of all ranks that Watch.record() kept in a folder: also while the run goes on, or
    after it died.

    FileNotFoundError: no watch kept anything there. ValueError: files of something else.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = os.fspath(folder)
        found = glob.glob(os.path.join(glob.escape(self.folder), "watch-*.json"))
        numbers = [os.path.basename(path)[len("watch-") : -len(".json")] for path in found]
        self._ranks = [
            _Rank(self.folder, rank) for rank in sorted(int(n) for n in numbers if n.isdecimal())
        ]
        if not self._ranks:
            raise FileNotFoundError(f"{self.folder} has no watch-0.json: no losses were kept there")

    @property
    def state(self) -> dict[str, Any] | None:
        """A state of the loader; None: it has none."""
        return next((each.state for each in self._ranks if each.state), None)

    def steps(self, rank: int = 0) -> np.ndarray[Any, Any]:
        """(step, loss, grad_norm, rows) of every step in order, as a structured array. A step that
        was recorded again (the run was resumed) is there once, as it was last. ValueError: nothing
        was kept of that rank.
        """
        return self._rank(rank).last

    def of_step(self, step: int, rank: int = 0) -> list[tuple[int, float]]:
        """Returns (sample id, loss) of the rows of a step; empty: none were kept."""
        kept = self._rank(rank)
        at = int(np.searchsorted(kept.last["step"], step))
        if at == len(kept.last) or kept.last["step"][at] != step:
            return []
        return list(zip(*(part.tolist() for part in kept.rows_of(int(kept.places[at])))))

    def spikes(self, above: float = 4, most: int = 100) -> list[Spike]:
        """Returns the steps whose loss or gradient norm stands out, at most so many, the furthest
        first.

        A value is compared with the (up to) 64 before it, at least 8: its score is its distance
        above their median in standard deviations, estimated by 1.4826 times their median absolute
        deviation, and at least a fiftieth of the median (Hampel's identifier: Hampel, "The
        influence curve and its role in robust estimation", 1974). What is nan or infinite always
        stands out.
        """
        found = [spike for each in self._ranks for spike in each.spikes(above)]
        return sorted(found, key=lambda spike: (-spike.score, spike.step))[:most]

    def hardest(self, most: int | None = None) -> list[Ranked]:
        """Returns the samples by their mean loss over the run, highest first: those that are
        mislabelled come first (O2U-Net, Huang et al. 2019). A loss that is nan or infinite comes
        before all. The run's first epochs say little: record rows later if all are hard then.
        """
        found = self._by_sample()
        return _ranked(found, found.sums / np.maximum(found.times, 1), found.times > 0, most)

    def never_learned(self, above: float = math.log(2), most: int | None = None) -> list[Ranked]:
        """Returns the samples whose loss was above this every time, at least twice, by their lowest
        loss, highest first. ln 2, of a cross-entropy: the label never got half of the probability,
        so these are as the samples that are never learned of Toneva et al., "An Empirical Study of
        Example Forgetting", 2019, of which wrong labels are many.
        """
        found = self._by_sample()
        return _ranked(found, found.lowest, (found.times > 1) & (found.lowest > above), most)

    def _rank(self, rank: int) -> _Rank:
        for each in self._ranks:
            if each.rank == rank:
                return each
        there = ", ".join(str(each.rank) for each in self._ranks)
        raise ValueError(f"rank is {rank}, and {self.folder} has the losses of rank {there}")

    def _by_sample(self) -> _BySample:
        parts = [each for rank in self._ranks for each in rank.rows()]
        if not parts:
            raise ValueError(f"{self.folder} has no losses of rows: see Watch.record(rows=)")
        found = _BySample(1 + max(int(ids.max()) for ids, _ in parts))
        for ids, losses in parts:
            found.add(ids, losses)
        return found


def duplicates(source: _core.Source, ids: Iterable[int] | None = None) -> list[list[int]]:
    """Returns the samples whose bytes are the same as another one's, in groups: of each group all
    but one are too many. Reads every sample once.

    ids: only among these, as those of Losses.hardest(). Keeps 16 bytes of digest for each sample.
    """
    groups: dict[bytes, list[int]] = {}
    for each in range(len(source)) if ids is None else ids:
        sample = source[each]
        data = sample.image().numpy().tobytes() if sample.data is None else sample.data
        digest = blake2b(data, digest_size=16).digest()
        groups.setdefault(digest, []).append(each)
    return [group for group in groups.values() if len(group) > 1]


def write_subset(path: str | os.PathLike[str], ids: Iterable[int]) -> None:
    """Writes a list of samples, as `stoker train --subset FILE` takes it. In Python they are
    stoker.subset(source, ids).

    ids: of the source that the program opens; those of a subset() are others.
    """
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{each:d}\n" for each in ids)


class _Rank:
    """The files of a rank, as far as they are whole."""

    def __init__(self, folder: str, rank: int):
        def values(name: str, kind: Any) -> np.ndarray[Any, Any]:
            path = os.path.join(folder, name.format(rank))
            count = os.path.getsize(path) // np.dtype(kind).itemsize
            return np.memmap(path, kind, "r", shape=(count,)) if count else np.empty(0, kind)

        self.rank = rank
        self.state = read_facts(os.path.join(folder, f"watch-{rank}.json"))["state"]
        every = np.asarray(values("steps-{}.bin", STEP_FIELDS))
        self._ids, self._losses = values("ids-{}.bin", ID), values("losses-{}.bin", LOSS)
        self._ends = np.cumsum(every["rows"], dtype=np.int64)
        there = min(len(self._ids), len(self._losses))
        bad = np.flatnonzero((every["rows"] < 0) | (self._ends > there))
        self._every = every[: bad[0]] if len(bad) else every
        # numpy.unique() finds the first of equal ones.
        _, first = np.unique(self._every["step"][::-1], return_index=True)
        self.places = len(self._every) - 1 - first  # of the steps, in order, as they were last
        self.last = self._every[self.places]

    def rows_of(self, place: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        end = int(self._ends[place])
        part = slice(end - int(self._every["rows"][place]), end)
        return self._ids[part], self._losses[part]

    def rows(self) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """Gives the ids and losses of all rows, in parts. Where a run was resumed, those of the
        steps that it made twice are there twice: each is a loss of that sample.
        """
        end = int(self._ends[len(self._every) - 1]) if len(self._every) else 0
        for begin in range(0, end, _ROWS_AT_ONCE):
            part = slice(begin, min(end, begin + _ROWS_AT_ONCE))
            yield self._ids[part], self._losses[part]

    def spikes(self, above: float) -> list[Spike]:
        losses, norms = self.last["loss"], self.last["grad_norm"]
        # A norm that was not recorded is nan, and no spike; one that was infinite is.
        recorded = not np.isnan(norms).all()
        scores = np.maximum(_scores(losses), _scores(norms) if recorded else -math.inf)
        return [
            Spike(int(step), self.rank, float(loss), float(norm), float(score))
            for (step, loss, norm, _), score in zip(
                self.last[scores > above].tolist(), scores[scores > above].tolist()
            )
        ]


def _scores(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """See Losses.spikes(). -inf: too few neighbours."""
    padded = np.concatenate([np.full(_NEIGHBOURS, np.nan), values.astype(np.float64)])
    padded[~np.isfinite(padded)] = np.nan
    windows = np.lib.stride_tricks.sliding_window_view(padded[:-1], _NEIGHBOURS)
    scores = np.empty(len(values))
    for begin in range(0, len(values), _STEPS_AT_ONCE):
        part = slice(begin, begin + _STEPS_AT_ONCE)
        scores[part] = _scores_beside(padded[_NEIGHBOURS:][part], windows[part])
    scores[~np.isfinite(values)] = np.inf
    return scores


def _scores_beside(
    values: np.ndarray[Any, Any], neighbours: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    counts = np.isfinite(neighbours).sum(axis=1)
    medians = _medians(neighbours, counts)
    apart = np.abs(neighbours - medians[:, None])
    spreads = np.maximum(_SIGMA * _medians(apart, counts), _LEAST_SPREAD * np.abs(medians))
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = (values - medians) / spreads
    return np.where(counts >= _ENOUGH, np.nan_to_num(scores, nan=-np.inf, posinf=np.inf), -np.inf)


def _medians(rows: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns those of the numbers of each row, of which there are so many; the rest are nan."""
    ordered = np.sort(rows, axis=1)  # nan last
    middle = np.stack([np.maximum(counts - 1, 0) // 2, counts // 2], axis=1)
    pairs = np.take_along_axis(ordered, np.minimum(middle, rows.shape[1] - 1), axis=1)
    return np.asarray(pairs.mean(axis=1))


class _BySample:
    """Sums over the rows of each sample."""

    def __init__(self, samples: int):
        self.times = np.zeros(samples, np.int64)
        self.sums = np.zeros(samples)
        self.lowest = np.full(samples, np.inf)

    def add(self, ids: np.ndarray[Any, Any], losses: np.ndarray[Any, Any]) -> None:
        known = np.where(np.isnan(losses), np.inf, losses).astype(np.float64)
        self.times += np.bincount(ids, minlength=len(self.times))
        self.sums += np.bincount(ids, known, minlength=len(self.times))
        np.minimum.at(self.lowest, ids, known)


def _ranked(
    found: _BySample, losses: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any], most: int | None
) -> list[Ranked]:
    ids = np.flatnonzero(chosen)
    ids = ids[np.argsort(-losses[ids], kind="stable")][:most]
    return [Ranked(int(i), float(losses[i]), int(found.times[i])) for i in ids]
