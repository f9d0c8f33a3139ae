"""Epochs whose samples a sampler of the program's own lists, anew for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stoker._loader import Loader
from stoker._orders import Order, listed


class ListedEpochs:
    """For a Loader that is made with `order` and epochs=1: begin() comes before each of its loops.

    What the Loader promises of its own orders holds, with these differences. Between epochs it
    waits for the first batch, because the next list is not known before. The list is taken as it
    is: it must end. A state is exact within an epoch if the sampler gives the same list again, and
    refused otherwise; one that was taken between epochs is not compared, because the lists differ.
    """

    def __init__(self, sampler: Iterable[int]):
        self._sampler = sampler
        self._drawn_in = self._sampler_epoch()
        self.order = listed(sampler)  # of the first loop
        self._unused: Order | None = self.order
        self._epoch: int | None = None
        self.pending: dict[str, Any] | None = None  # the state that the next loop continues

    def begin(self, loader: Loader[Any]) -> None:
        """Moves to the epoch that is next. ValueError: the state is not of such an epoch."""
        state, self.pending = self.pending, None
        jump, self._epoch = self._epoch, None
        at = self._sampler_epoch()
        if state is not None:
            epoch = int(state["epoch"])
        elif jump is not None:
            epoch = jump
        elif at is not None and at != self._drawn_in:
            epoch = at
        else:
            place = loader.state_dict()
            epoch = place["epoch"] + (place["step_in_epoch"] > 0)
        seed = loader.seed if state is None or loader._is_seeded else int(state["seed"])
        if self._unused is None or at != self._drawn_in:
            loader._begin(epoch, listed(self._sampler), seed)
        elif (epoch, seed) != (0, loader.seed):
            loader._begin(epoch, self._unused, seed)
        self._unused, self._drawn_in = None, at
        if state is not None and state["step_in_epoch"] > 0:
            loader.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        """Makes `epoch` the number of the next loop's epoch."""
        if not isinstance(epoch, int) or epoch < 0:
            raise ValueError(f"epoch is {epoch!r}, must be 0 or more")
        self._epoch, self.pending = epoch, None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next loop continues there. ValueError: it is no state; or else from that loop."""
        numbers = [state.get(key) for key in ("epoch", "step_in_epoch", "next_step", "seed")]
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise ValueError(f"not a state of a stoker.Loader: {state!r}")
        self.pending, self._epoch = dict(state), None

    def _sampler_epoch(self) -> int | None:
        epoch = getattr(self._sampler, "epoch", None)
        return epoch if isinstance(epoch, int) else None
