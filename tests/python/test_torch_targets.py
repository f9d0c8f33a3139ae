"""Targets besides the labels in stoker.torch, if PyTorch is installed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import stoker  # noqa: E402
import stoker.torch as stoker_torch  # noqa: E402

SAMPLES = 22


def test_a_third_item_has_them_as_tensors():
    pictures = stoker.synthetic(SAMPLES, 16, classes=3)
    soft = torch.rand(SAMPLES, 3)
    ages = torch.arange(SAMPLES, dtype=torch.float64) / 2
    source = stoker.with_targets(pictures, {"soft": soft, "age": ages})
    loader = stoker_torch.DataLoader(source, batch_size=8, shuffle=True, num_workers=1, seed=1)
    seen = []
    for images, labels, targets in loader:
        assert list(targets) == ["soft", "age"]
        assert targets["soft"].dtype == targets["age"].dtype == torch.float32
        ids = (targets["age"] * 2).long()
        assert len(images) == len(labels) == len(ids)
        assert torch.equal(targets["soft"], soft[ids])
        assert labels.tolist() == [pictures.label(i) for i in ids.tolist()]
        seen += ids.tolist()
    # The rows that pad the last batch are left out.
    assert sorted(seen) == list(range(SAMPLES))


def test_the_padding_mask_is_true_around_each_picture() -> None:
    boxes = torch.tensor([[0, 0, 3, 2], [1, 2, 4, 4], [0, 0, 5, 4]], dtype=torch.int32)
    mask = stoker_torch.padding_mask(boxes, 4, 5)
    shown = torch.zeros(3, 4, 5, dtype=torch.bool)
    shown[0, :2, :3] = shown[1, 2:4, 1:4] = shown[2] = True
    assert mask.dtype == torch.bool and torch.equal(mask, ~shown)
