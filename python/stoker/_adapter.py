"""What the adapters of torch and JAX share: a Loader inside, and its position in the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker._loader import Loader


def with_one_view(loader: Loader) -> Loader:
    """Returns it. ValueError: it has several views, which an adapter does not hand on."""
    if loader.views > 1:
        loader.close()
        raise ValueError("augment has views(): iterate over a stoker.Loader, or stoker.torch's")
    return loader


class Adapter:
    """Derived classes set `loader`."""

    loader: Loader

    def __len__(self) -> int:
        """Returns the number of batches of an epoch."""
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Makes epoch `epoch` the next loop's. Needed only to jump: epochs are counted
        automatically."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """See stoker.Loader.state_dict()."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See stoker.Loader.load_state_dict()."""
        self.loader.load_state_dict(state)

    def close(self) -> None:
        """Ends the threads; so does dropping the last reference."""
        self.loader.close()
