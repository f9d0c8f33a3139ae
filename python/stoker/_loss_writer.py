"""Keeps what a loop says of its steps (Watch.record()) in files that survive it.

A folder has four files for each rank, so that ranks need not know of each other:

    watch-0.json    the loader's state, and the NumPy types of the others
    steps-0.bin     for each step: its number, loss, gradient norm, and how many rows are kept of it
    ids-0.bin       the sample ids of these rows, step by step
    losses-0.bin    their losses
"""

from __future__ import annotations

import json
import os
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

STEP = struct.Struct("<qddi")
STEP_FIELDS = [("step", "<i8"), ("loss", "<f8"), ("grad_norm", "<f8"), ("rows", "<i4")]
ID, LOSS = "<u4", "<f4"
# So many steps are fetched from the device, and written, together: a loop on a GPU waits for it
# once in so many steps.
HELD_STEPS = 64
_VALUE_BYTES = 4  # of an id, and of a loss


class Rows(NamedTuple):
    """Rows whose losses are kept."""

    ids: array[int]
    places: Sequence[int]  # in the array of losses

    @classmethod
    def of(cls, ids: Sequence[int], counted: Sequence[int], losses: int, step: int) -> Rows:
        """`losses`: how many there are: of all rows, or of those that count. ValueError: neither;
        an id that is none.
        """
        if losses not in (len(ids), len(counted)):
            raise ValueError(
                f"rows has {losses} losses, and step {step} has {len(ids)} rows, of which "
                f"{len(counted)} count"
            )
        places = range(losses) if losses == len(counted) else counted
        try:
            return cls(array("I", [ids[row] for row in counted]), places)
        except (OverflowError, TypeError):
            raise ValueError(f"ids of step {step} must be whole numbers below 2^32") from None


class _Step(NamedTuple):
    number: int
    loss: Any
    grad_norm: Any
    losses: Any  # of rows, some of which are kept; None: none are
    rows: Rows | None


class LossWriter:
    """Appends to the files of a rank in `folder`, or without one in a temporary folder, which is
    removed with this. Holds HELD_STEPS steps, whatever the length of the run.

    state_of: gives the loader's state; None: there is none, or it would have to be waited for.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        rank: int,
        state_of: Callable[[], dict[str, Any] | None],
    ):
        if folder is None:
            import tempfile  # half of what this module would add to `import stoker`

            self._temporary = tempfile.TemporaryDirectory()
            folder = self._temporary.name
        self.folder = os.fspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        self._rank = rank
        self._state_of = state_of
        self._has_state = False
        self._held: list[_Step] = []
        self._process = os.getpid()
        paths = [self._path(name) for name in ("steps-{}.bin", "ids-{}.bin", "losses-{}.bin")]
        _cut_last_step(*paths)
        self._steps, self._ids, self._losses = (open(path, "ab") for path in paths)
        self._write_facts()

    def add(self, step: int, loss: Any, grad_norm: Any, losses: Any, rows: Rows | None) -> None:
        """Values, `losses` among them, may be tensors, on any device."""
        self._held.append(_Step(step, _later(loss), _later(grad_norm), _later(losses), rows))
        if len(self._held) >= HELD_STEPS:
            self.flush()

    def flush(self) -> None:
        """Writes what is held. Does nothing in a child made by fork(), whose parent does it."""
        if os.getpid() != self._process:
            return
        if not self._has_state:
            self._write_facts()
        while self._held:
            self._write(self._held.pop(0))
        for file in (self._ids, self._losses, self._steps):  # rows before the step that has them
            file.flush()

    def _write(self, step: _Step) -> None:
        ids, losses = array("I"), array("f")
        if step.rows is not None:
            given = _listed(step.losses)
            ids, losses = step.rows.ids, array("f", [given[place] for place in step.rows.places])
        norm = float("nan") if step.grad_norm is None else float(step.grad_norm)
        packed = STEP.pack(step.number, float(step.loss), norm, len(ids))
        # Values that are no numbers have raised by now: the files get a whole step, or nothing.
        self._ids.write(ids.tobytes())
        self._losses.write(losses.tobytes())
        self._steps.write(packed)

    def _write_facts(self) -> None:
        state = self._state_of()
        path = self._path("watch-{}.json")
        before = read_facts(path)["state"] if os.path.exists(path) else None
        if state and before and not _is_same_run(state, before):
            raise ValueError(
                f"{path} is of a run with another configuration or seed: give watch() another "
                f"folder=, or remove {self.folder}"
            )
        facts = {
            "version": 1,
            "state": state or before,
            "steps": STEP_FIELDS,
            "ids": ID,
            "losses": LOSS,
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=1)
        self._has_state = state is not None

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name.format(self._rank))


def read_facts(path: str) -> dict[str, Any]:
    """ValueError: it is not what a LossWriter wrote. OSError."""
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        if facts["version"] == 1 and isinstance(facts["state"], (dict, type(None))):
            return dict(facts)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} was not written by stoker.watch(): {error!r}") from None
    raise ValueError(f"{path} was written by another version of stoker")


def _is_same_run(state: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(state[key] == other.get(key) for key in ("seed", "fingerprint"))


def _cut_last_step(steps: str, ids: str, losses: str) -> None:
    """Cuts off what a run that died has written of a step."""
    if not os.path.exists(steps):
        return
    there = min(os.path.getsize(path) for path in (ids, losses)) // _VALUE_BYTES
    rows = whole = 0
    with open(steps, "rb") as file:
        while len(packed := file.read(STEP.size)) == STEP.size:
            more = STEP.unpack(packed)[3]
            if not 0 <= more <= there - rows:
                break
            rows, whole = rows + more, whole + 1
    os.truncate(steps, whole * STEP.size)
    os.truncate(ids, rows * _VALUE_BYTES)
    os.truncate(losses, rows * _VALUE_BYTES)


def _later(value: Any) -> Any:
    """Returns what has the value of now, to be read later. A tensor's memory may have another value
    by then (an accumulated loss, a CUDA graph), so a copy is queued behind the work that makes it.
    """
    if hasattr(value, "detach"):
        return value.detach().clone()
    # An array of JAX never changes; a NumPy array may.
    is_host_array = hasattr(value, "tolist") and not hasattr(value, "block_until_ready")
    return value.tolist() if is_host_array else value


def _listed(values: Any) -> Sequence[float]:
    numbers: Sequence[float] = values.tolist() if hasattr(values, "tolist") else values
    return numbers
