"""The same of stoker.torch: see typed_use.py."""

from typing import Any

import stoker
import stoker.torch
from torch import Tensor
from typing_extensions import assert_type

WithTargets = tuple[Tensor, Tensor, dict[str, Tensor]]


def count(batch: tuple[Tensor, Tensor]) -> int:
    return len(batch[1])


def main() -> None:
    photos = stoker.synthetic(20, size=32)
    train = stoker.torch.DataLoader(photos, batch_size=8, shuffle=True, seed=1)
    assert_type(train, stoker.torch.DataLoader[tuple[Tensor, Tensor]])
    for images, labels in train:
        assert_type(images, Tensor)
        assert_type(labels, Tensor)
    for made in stoker.torch.DataLoader(photos, batch_size=8, on_batch=count):
        assert_type(made, int)
    aged = stoker.with_targets(photos, {"age": [1.0] * 20})
    wide: stoker.torch.DataLoader[WithTargets] = stoker.torch.DataLoader(aged, batch_size=8)
    for _, _, targets in wide:
        assert_type(targets["age"], Tensor)
    assert_type(train.state_dict(), dict[str, Any])
    assert_type((train.num_workers, train.pin_memory, train.drop_last), tuple[int, bool, bool])


if __name__ == "__main__":
    main()
