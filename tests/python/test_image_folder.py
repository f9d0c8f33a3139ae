"""Folders as torchvision's data sets have them: the same samples, labels and pixels as those."""

from __future__ import annotations

import copy
import pickle
import shutil

import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

import stoker  # noqa: E402
import stoker.torch as stoker_torch  # noqa: E402
from torch.utils.data import Subset  # noqa: E402
from torch_pictures import EVAL  # noqa: E402
from torchvision import datasets, transforms  # noqa: E402
from torchvision.datasets.folder import default_loader  # noqa: E402


def batches(dataset: object, kind: type = stoker_torch.DataLoader) -> list:
    return list(kind(dataset, batch_size=10))


def check(ours: object, theirs: object) -> None:
    """Both give the same batches, `theirs` by PyTorch's loader."""
    made, expected = batches(ours), batches(theirs, torch.utils.data.DataLoader)
    for (images, labels), (pixels, numbers) in zip(made, expected, strict=True):
        assert torch.equal(images, pixels) and torch.equal(labels, numbers)
        assert labels.dtype == numbers.dtype


def is_odd(path: str) -> bool:
    return int(path[-7:-4]) % 2 == 1


def swapped(label: int) -> int:
    return [7, 0, 3][label]


@pytest.fixture
def odd_names(pictures, tmp_path):
    """The pictures, some of which have names that say nothing of their format."""
    root = tmp_path / "odd"
    shutil.copytree(pictures, root)
    for i, path in enumerate(sorted(root.glob("*/*.jpg"))):
        if i % 4 == 0:
            path.rename(path.with_suffix(".dat"))
    return root


def test_arguments_of_torchvision_are_obeyed(odd_names):
    arguments = (odd_names, EVAL, swapped, default_loader, is_odd)
    ours, theirs = stoker_torch.ImageFolder(*arguments), datasets.ImageFolder(*arguments)
    assert any(path.endswith(".dat") for path, _ in ours.samples)
    for name in ("classes", "class_to_idx", "samples", "imgs", "targets", "transform", "loader"):
        assert getattr(ours, name) == getattr(theirs, name), name
    check(ours, theirs)
    again = pickle.loads(pickle.dumps(ours))
    assert again.samples == ours.samples and again.target_transform is swapped
    for i in (0, -1):
        (image, label), (expected, number) = ours[i], theirs[i]
        assert torch.equal(image, expected) and label == number


def test_a_transform_may_be_set_anew(pictures):
    dataset = stoker_torch.ImageFolder(pictures, EVAL)
    dataset.transform = transforms.Compose([transforms.Resize((8, 9)), transforms.ToTensor()])
    dataset.target_transform = swapped
    images, labels = batches(dataset)[-1]
    assert images.shape == (7, 3, 8, 9) and labels.tolist() == [3] * 7
    assert dataset.targets[-1] == 2
    with pytest.raises(ValueError, match="rows of one size"):
        dataset.transform = transforms.ToTensor()


@pytest.mark.parametrize("target", [0.5, True, None, "cat"])
def test_other_targets_and_loaders_are_refused(pictures, target):
    with pytest.raises(TypeError, match="of the label 0, must give an int; stoker.with_targets"):
        stoker_torch.ImageFolder(pictures, EVAL, lambda label: target)
    with pytest.raises(TypeError, match="loader is .*, must be None or torchvision's: .*dataset"):
        stoker_torch.ImageFolder(pictures, EVAL, loader=lambda path: path)


def test_an_empty_class_is_refused_as_there(pictures, tmp_path):
    root = tmp_path / "with_empty"
    shutil.copytree(pictures, root)
    (root / "nobody").mkdir()
    for filter_of in (None, is_odd):
        for kind in (stoker_torch.ImageFolder, datasets.ImageFolder):
            with pytest.raises(FileNotFoundError, match="no valid file .* classes nobody"):
                kind(root, EVAL, is_valid_file=filter_of)
        taken = stoker_torch.ImageFolder(root, EVAL, is_valid_file=filter_of, allow_empty=True)
        assert taken.classes[-1] == "nobody" and 3 not in taken.targets


class Chosen(datasets.ImageFolder):
    """Changes what is found, and not how an item is made."""

    def find_classes(self, directory):
        return ["class_1", "class_2"], {"class_1": 1, "class_2": 0}


class Doubled(datasets.ImageFolder):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return image, 2 * label


def test_a_folder_of_torchvision_is_taken_as_it_is(odd_names):
    plain = datasets.ImageFolder(odd_names, EVAL)
    check(plain, plain)
    check(Subset(plain, [5, 3, 8]), Subset(plain, [5, 3, 8]))
    chosen = Chosen(odd_names, EVAL, swapped, is_valid_file=is_odd)
    check(chosen, chosen)
    less = copy.copy(plain)
    less.samples = [plain.samples[4], plain.samples[2]]  # as programs that clean their data do
    check(less, less)
    loader = stoker_torch.DataLoader(plain, 10)
    assert loader.loader.source.name(0) == stoker.folder(odd_names).name(0)
    assert loader.dataset is plain


def test_other_data_sets_are_refused_with_advice_that_works(pictures):
    own_loader = datasets.ImageFolder(pictures, EVAL, loader=lambda path: default_loader(path))
    with pytest.raises(TypeError, match="Doubled, which has its own __getitem__: .*ToTensor"):
        stoker_torch.DataLoader(Doubled(pictures, EVAL))
    with pytest.raises(TypeError, match="ImageFolder with the loader <function"):
        stoker_torch.DataLoader(own_loader)
    with pytest.raises(TypeError, match="must be an ImageFolder .*stoker.dataset()"):
        stoker_torch.DataLoader([1, 2])
    plain = Doubled(pictures)  # no ToTensor, as the advice says
    data = stoker.dataset(plain, processes=False)
    made = batches(data, lambda data, **options: stoker_torch.DataLoader(
        data, **options, **stoker_torch.from_torchvision(EVAL)._asdict()
    ))
    expected = batches(Doubled(pictures, EVAL), torch.utils.data.DataLoader)
    for (images, labels), (pixels, numbers) in zip(made, expected, strict=True):
        assert torch.equal(images, pixels) and torch.equal(labels, numbers)
