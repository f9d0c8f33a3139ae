"""on_batch of stoker.torch, if PyTorch and torchvision are installed."""

from __future__ import annotations

import pickle
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import stoker  # noqa: E402
import stoker.torch  # noqa: E402
from stoker.torch import DataLoader  # noqa: E402
from torch_pictures import EVAL  # noqa: E402


def with_classes(batch):
    images, labels = batch
    return images.mean((1, 2, 3)), torch.nn.functional.one_hot(labels, 3)


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_it_gets_what_the_loop_gets(pictures):
    data = stoker.torch.ImageFolder(pictures, EVAL)
    torch.manual_seed(7)
    expected = [with_classes(batch) for _ in range(2) for batch in DataLoader(data, 8)]
    loader = DataLoader(data, 8, on_batch=with_classes, on_batch_ahead=2)
    made = [batch for _ in range(2) for batch in loader]
    assert len(made) == len(expected) == 2 * len(loader)
    assert all(map(same, made, expected))

    loop = iter(loader)
    next(loop)
    state = loader.state_dict()
    resumed = DataLoader(data, 8, on_batch=with_classes)
    resumed.load_state_dict(state)
    assert all(map(same, resumed, expected[1:5]))


def test_targets_and_mixed_rows(source):
    def soft(batch):
        images, labels, targets = batch
        share = targets["mix_weight"][:, None]
        one_hot = torch.nn.functional.one_hot
        mixed = one_hot(targets["mix_label"].long(), 10)
        return images, share * one_hot(labels, 10) + (1 - share) * mixed

    options = dict(size=16, augment="flip | mix(mixup=0.4)", shuffle=True, seed=3)
    expected = [soft(batch) for batch in DataLoader(source, 16, **options)]
    made = list(DataLoader(source, 16, on_batch=soft, **options))
    assert all(map(same, made, expected))
    assert all(torch.allclose(labels.sum(1), torch.ones(1)) for _, labels in made)


@pytest.mark.parametrize("samples", [24, 25])
def test_only_batches_with_rows_that_count(source, samples):
    """In evaluation over several ranks one of them may have a batch less."""
    part = stoker.subset(source, range(samples))
    seen = []
    for rank in range(2):
        sampler = torch.utils.data.DistributedSampler(part, 2, rank, shuffle=False)
        loader = DataLoader(part, 12, sampler=sampler, size=16, on_batch=lambda batch: batch[1])
        labels = list(loader)
        assert all(len(each) for each in labels)
        seen += torch.cat(labels).tolist()
    assert sorted(seen) == sorted(part.labels())


def test_a_sampler_of_the_programs_own(source):
    class Backwards(torch.utils.data.Sampler):
        def __init__(self):  # PyTorch 1 asks for an argument
            pass

        def __iter__(self):
            return iter(range(len(source) - 1, -1, -1))

        def __len__(self):
            return len(source)

    loader = DataLoader(
        source, 16, sampler=Backwards(), size=16, on_batch=lambda batch: batch[1].tolist()
    )
    for _ in range(2):
        assert sum(loader, []) == source.labels()[::-1]
    for _ in loader:
        break
    assert sum(loader, []) == source.labels()[::-1]


def test_it_is_not_pickled(source):
    loader = DataLoader(source, 8, size=16, on_batch=lambda batch: batch)
    with pytest.raises(TypeError, match="cannot be pickled: make one in the process that uses it"):
        pickle.dumps(loader)


def test_it_is_no_function(source):
    with pytest.raises(TypeError, match="on_batch is 'flip', must be a function of a batch"):
        DataLoader(source, 8, size=16, on_batch="flip")


def test_work_on_a_gpu_is_queued_on_the_stream_of_the_loop(source, monkeypatch):
    """PyTorch's GPU is replaced by functions that note the stream, which is a thread's own."""
    entered, inside = [], []

    @contextmanager
    def stream(number):
        entered.append(number)
        inside.append(number)
        yield
        inside.pop()

    monkeypatch.setattr(stoker.torch, "_name", lambda device: "cpu")
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"{device}: {current}")
    loader = DataLoader(source, 40, size=16, on_batch=lambda batch: list(inside))
    assert list(loader) == [[]] * 3 and entered == []
    loader._device = "cuda:1"
    for current in (3, 4):
        assert list(loader) == [[f"cuda:1: {current}"]] * 3
    assert len(entered) == 6
