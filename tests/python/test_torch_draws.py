"""A row's draws done again with torchvision, if it is installed."""

from __future__ import annotations

import pytest
from PIL import Image

pytest.importorskip("torch")
pytest.importorskip("torchvision")

import numpy as np  # noqa: E402
import stoker  # noqa: E402
from conftest import PIXELS  # noqa: E402
import stoker.torch as stoker_torch  # noqa: E402


@pytest.mark.parametrize(
    ("stages", "most"),
    [
        ("color_jitter(0.4, 0.4, 0.4, 0.5) | random_resized_crop(40)", 0),
        ("random_photometric_distort | random_resize(20, 40) | fixed_size_crop(32)", 0),
        # torchvision's kernel depends on the processor: a sum at half a byte may round either way.
        ("resize_center_crop(48, 40) | gaussian_blur((5, 7), sigma=(0.5, 2))", 1),
    ],
)
def test_rows_are_torchvisions(pictures, stages, most):
    options = {"batch_size": 37, "seed": 5, "pixels": PIXELS}
    batch = next(iter(stoker.Loader(stoker.folder(pictures), augment=stages, **options)))
    for row, name, drawn in zip(np.asarray(batch.images), batch.names, batch.draws, strict=True):
        image = Image.open(pictures / name).convert("RGB")
        wanted = np.asarray(stoker_torch.to_torchvision(drawn, image))
        off = np.abs(row.astype(int) - wanted)
        assert off.max() <= most and (off > 0).mean() <= 0.001, drawn
