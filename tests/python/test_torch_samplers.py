"""stoker.torch with PyTorch's subsets and samplers, with a program's own, and with orders."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

import stoker  # noqa: E402
import stoker.torch as stoker_torch  # noqa: E402
from torch_pictures import EVAL, pictures_of, same  # noqa: E402
from torch.utils.data import (  # noqa: E402
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)


def ids_of(batches: object) -> list[int]:
    return torch.cat([labels for _, labels in batches]).tolist()


@pytest.fixture
def numbered(pictures) -> stoker.Source:
    """The pictures; the label of each is its id."""
    return stoker.relabel(stoker.folder(pictures), range(37), list(map(str, range(37))))


def of(dataset: object, **options: object) -> stoker_torch.DataLoader:
    return stoker_torch.DataLoader(dataset, 8, num_workers=1, size=16, **options)


def test_subsets_of_pytorch_are_read(pictures, numbered):
    assert ids_of(of(Subset(numbered, [5, 30, 2]))) == [5, 30, 2]
    assert ids_of(of(Subset(Subset(numbered, range(10, 37)), [4, 0, 20]))) == [14, 10, 30]
    assert ids_of(of(Subset(numbered, torch.tensor([7, 3])))) == [7, 3]
    parts = random_split(numbered, [30, 7], generator=torch.Generator().manual_seed(1))
    for part in parts:
        assert ids_of(of(part)) == list(part.indices)
        shuffled = of(part, shuffle=True, seed=1)
        first, second = ids_of(shuffled), ids_of(shuffled)
        assert sorted(first) == sorted(second) == sorted(part.indices) and first != second
        assert len(shuffled) == -(-len(part) // 8)
    whole = stoker_torch.ImageFolder(pictures, EVAL)
    part = Subset(whole, [9, 36, 1])
    theirs = Subset(torchvision.datasets.ImageFolder(pictures, EVAL), [9, 36, 1])
    ours = stoker_torch.DataLoader(part, batch_size=3)
    for found, expected in zip(ours, torch.utils.data.DataLoader(theirs, 3), strict=True):
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def test_subsets_that_are_refused(numbered):
    with pytest.raises(IndexError, match=r"ids\[1\] is 37: the source has the samples 0 to 36"):
        of(Subset(numbered, [1, 37]))
    with pytest.raises(ValueError, match="id 4 at place 1 of 2: it is listed before"):
        of(Subset(numbered, [4, 4]))
    with pytest.raises(TypeError, match="dataset is .*, must be an ImageFolder of stoker.torch"):
        of(Subset([1, 2, 3], [0]))
    with pytest.raises(TypeError, match="dataset is .*Transformed"):
        of(type("Transformed", (Subset,), {})(numbered, [0]))


@pytest.mark.parametrize("shuffle", [True, False])
def test_distributed_samplers_share_a_subset(numbered, shuffle):
    part = Subset(numbered, range(5, 35))
    found = []
    for rank in range(3):
        sampler = DistributedSampler(part, num_replicas=3, rank=rank, shuffle=shuffle)
        found += ids_of(of(part, sampler=sampler))
    assert set(found) == set(range(5, 35)) and (shuffle or len(found) == 30)


def test_subset_random_samplers(numbered):
    indices = [3, 30, 7, 11, 19, 20, 21, 22, 23]
    loader = of(numbered, sampler=SubsetRandomSampler(indices), seed=2)
    first, second = ids_of(loader), ids_of(loader)
    assert sorted(first) == sorted(second) == sorted(indices) and first != second
    part = Subset(numbered, range(20, 37))
    assert sorted(ids_of(of(part, sampler=SubsetRandomSampler([0, 16])))) == [20, 36]


def test_weighted_random_samplers(numbered):
    weights = [float(i % 4) for i in range(37)]
    loader = of(numbered, sampler=WeightedRandomSampler(weights, 4000), seed=2)
    counts = np.bincount(ids_of(loader), minlength=37) / 4000
    np.testing.assert_allclose(counts, np.array(weights) / sum(weights), atol=0.02)
    sampler = WeightedRandomSampler(torch.tensor(weights), 20, replacement=False)
    loader = of(numbered, sampler=sampler, seed=2)
    first, second = ids_of(loader), ids_of(loader)
    for ids in (first, second):
        assert len(set(ids)) == 20 and all(weights[i] > 0 for i in ids)
    assert first != second
    with pytest.raises(ValueError, match="^order has 36 weights, and there are 37 samples$"):
        of(numbered, sampler=WeightedRandomSampler(weights[1:], 10))


def test_random_samplers_of_some_or_with_replacement(numbered):
    again = ids_of(of(numbered, sampler=RandomSampler(numbered, True, 400), seed=1))
    assert len(again) == 400 and set(again) == set(range(37))
    some = of(numbered, sampler=RandomSampler(numbered, num_samples=10), seed=1)
    first, second = ids_of(some), ids_of(some)
    assert len(set(first)) == len(set(second)) == 10 and set(first) != set(second)


@pytest.mark.parametrize(
    "make",
    [
        lambda data: SubsetRandomSampler(range(30), generator=torch.Generator().manual_seed(3)),
        lambda data: WeightedRandomSampler([1] * 37, 40, generator=torch.Generator()),
        lambda data: RandomSampler(data, True, 40, generator=torch.Generator()),
    ],
)
def test_samplers_and_states(numbered, make):
    """The seed is drawn from the sampler's generator; a state continues within an epoch."""
    options = {"augment": stoker.random_resized_crop()}
    train, same_seed = (of(numbered, sampler=make(numbered), **options) for _ in range(2))
    first, second = pictures_of(train), pictures_of(train)
    assert same(pictures_of(same_seed), first) and not same(first, second)
    half = iter(same_seed)
    next(half)
    resumed = of(numbered, sampler=make(numbered), **options)
    resumed.load_state_dict(same_seed.state_dict())
    assert same(pictures_of(resumed), second[1:])


class Reversed:
    """A program's own sampler: backwards, with the epoch's number of repetitions of sample 0."""

    def __init__(self, samples: int):
        self.samples = samples
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self):
        return iter([*reversed(range(self.samples)), *[0] * self.epoch])

    def __len__(self) -> int:
        return self.samples + self.epoch


def test_the_indices_of_other_samplers_are_taken(numbered):
    options = {"augment": stoker.random_resized_crop(), "seed": 3}
    sampler = Reversed(37)
    loader = of(numbered, sampler=sampler, **options)
    backwards = list(range(36, -1, -1))
    assert len(loader) == 5
    first, second = list(loader), list(loader)
    assert ids_of(first) == ids_of(second) == backwards
    assert not same(pictures_of(first), pictures_of(second)), "each epoch has crops of its own"
    sampler.set_epoch(5)
    fifth = list(loader)
    assert ids_of(fifth) == [*backwards, 0, 0, 0, 0, 0] and len(loader) == 6
    crops = torch.cat([images for images, _ in fifth])[36:]
    assert len({crop.numpy().tobytes() for crop in crops}) == 6
    loader.set_epoch(0)
    sampler.set_epoch(0)
    assert same(pictures_of(loader), pictures_of(first))
    loader.set_epoch(0)
    next(iter(loader))  # left early: the next loop is the epoch after it
    assert same(pictures_of(loader), pictures_of(second))
    sampler.set_epoch(5)
    assert same(pictures_of(loader), pictures_of(fifth))
    jumped = of(numbered, sampler=sampler, **options)
    jumped.set_epoch(5)
    assert same(pictures_of(jumped), pictures_of(fifth)), "the number is that of set_epoch()"
    drawing = of(numbered, sampler=DrawnSampler(37))
    assert ids_of(drawing) != ids_of(drawing), "it is asked before every loop"
    assert ids_of(of(numbered, sampler=[5, 4, 4])) == [5, 4, 4]


class DrawnSampler(torch.utils.data.Sampler):
    """Draws anew each time it is asked."""

    def __init__(self, samples: int):
        self.samples = samples

    def __iter__(self):
        return iter(torch.randperm(self.samples).tolist())


@pytest.mark.parametrize("taken", [1, 5, 7])
@pytest.mark.parametrize("seed", [3, None])
def test_states_with_other_samplers(numbered, taken, seed):
    options = {"augment": stoker.random_resized_crop(), "seed": seed}
    loader = of(numbered, sampler=Reversed(37), **options)
    images = []
    for _ in range(3):
        for image, _ in loader:
            images.append(image.numpy().copy())
            if len(images) == taken:
                state = loader.state_dict()
    assert len(images) == 15
    resumed = of(numbered, sampler=Reversed(37), **options)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    rest = [batch for _ in range(3 - taken // 5) for batch in pictures_of(resumed)]
    assert same(rest, images[taken:])
    other = of(numbered, sampler=[*range(37)], **options)
    other.load_state_dict(state)
    if taken % 5 != 0:
        with pytest.raises(ValueError, match="another configuration"):
            iter(other)
    with pytest.raises(ValueError, match="not a state of a stoker.Loader"):
        other.load_state_dict({"epoch": 1})
    other.load_state_dict(state)
    other.set_epoch(4)  # takes the place of the state
    assert len(list(other)) == 5 and other.loader.epoch == 5


def test_ranks_with_samplers_of_their_own_have_other_crops(numbered):
    """As in repeated augmentation that deals a sample's repetitions to different ranks."""
    found = []
    for rank in range(2):
        sampler = Reversed(37)
        sampler.rank = rank
        options = {"augment": stoker.random_resized_crop(), "seed": 3}
        found.append(pictures_of(of(numbered, sampler=sampler, **options)))
    assert not any(np.array_equal(*pair) for pair in zip(*found))


def test_indices_that_are_refused(numbered):
    for sampler, error, message in (
        ([0, 37], ValueError, "^id 37 at place 1 of 2: the source has the samples 0 to 36$"),
        ([[0, 1]], TypeError, r"^ids\[0\] is \[0, 1\], must be an int$"),
        ([], ValueError, "^listed order: length is 0"),
        (7, TypeError, "^ids is 7, must be a sequence$"),
    ):
        with pytest.raises(error, match=message):
            of(numbered, sampler=sampler)
    with pytest.raises(ValueError, match="^sampler is .* for 10 samples, and the data set has 37$"):
        of(numbered, sampler=RandomSampler(range(10)))
    with pytest.raises(ValueError, match="^share is 'a', but .* lists each epoch anew"):
        of(numbered, sampler=Reversed(37), seed=1, share="a")
    loader = of(numbered, sampler=Reversed(37))
    with pytest.raises(ValueError, match="^epoch is -1, must be 0 or more$"):
        loader.set_epoch(-1)


def test_orders_and_blends(numbered):
    loader = of(numbered, order=stoker.repeated(), seed=1)
    ids = ids_of(loader)
    assert len(ids) == 37 and ids[:36:3] == ids[1:36:3] == ids[2:36:3]
    parts = stoker.random_split(numbered, [30, 7])
    mixed = stoker.blend({parts[0]: 1, parts[1]: 1}, length=40)
    loader = of(mixed, seed=1)
    assert len(loader) == 5
    assert sum(i in parts[1].labels() for i in ids_of(loader)) == 20
    for data, options in ((mixed, {}), (numbered, {"order": stoker.repeated()})):
        for given in ({"shuffle": True}, {"sampler": SequentialSampler(data)}):
            with pytest.raises(ValueError, match="shuffle or sampler, and order= or a blend"):
                of(data, **options, **given)
