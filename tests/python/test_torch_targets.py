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


def test_a_loss_of_soft_targets_learns():
    torch.manual_seed(0)
    pictures = stoker.synthetic(SAMPLES, 16, classes=3)
    soft = torch.nn.functional.one_hot(torch.tensor(pictures.labels()), 3) * 0.9 + 0.1 / 3
    source = stoker.with_targets(pictures, {"soft": soft})
    loader = stoker_torch.DataLoader(source, batch_size=11, shuffle=True, num_workers=1, seed=1)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16 * 16 * 3, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses = []
    for _ in range(10):
        for images, _, targets in loader:
            loss = torch.nn.functional.cross_entropy(model(images), targets["soft"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_views_are_a_list_of_tensors_and_mixed_rows_have_targets():
    pictures = stoker.synthetic(SAMPLES, 16, classes=3)
    views = stoker.augment.Augment("views(flip, random_resized_crop(8), counts=(1, 2))")
    options = {"batch_size": 8, "num_workers": 1, "seed": 1}
    rows = 0
    for images, labels in stoker_torch.DataLoader(pictures, augment=views, **options):
        shapes = [tuple(view.shape) for view in images]
        n = len(labels)
        assert shapes == [(n, 3, 16, 16), (n, 3, 8, 8), (n, 3, 8, 8)]
        assert all(view.dtype == torch.float32 for view in images)
        assert not torch.equal(images[1], images[2])
        rows += n
    assert rows == SAMPLES
    mixed = stoker_torch.DataLoader(pictures, augment="mix(mixup=1)", **options)
    for images, labels, targets in mixed:
        assert images.shape[1:] == (3, 16, 16) and list(targets) == ["mix_label", "mix_weight"]
        assert len(labels) == len(targets["mix_label"]) == len(targets["mix_weight"])
