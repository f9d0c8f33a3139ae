"""Shared by the tests of stoker.torch. REQUIRES: torchvision."""

from __future__ import annotations

import numpy as np
from torchvision import transforms

NORMALIZE = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
EVAL = transforms.Compose(
    [transforms.Resize(40), transforms.CenterCrop(32), transforms.ToTensor(), NORMALIZE]
)


def pictures_of(batches: object) -> list[np.ndarray]:
    return [images.numpy().copy() for images, _ in batches]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))
