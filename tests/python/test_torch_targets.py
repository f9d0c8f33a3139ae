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
