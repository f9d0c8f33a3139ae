"""Folders of images as torchvision's data sets have them: stoker's own, and torchvision's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from stoker._arguments import whole
from stoker._core import Source
from stoker._sources import files, folder, relabel
from stoker._torchvision import Plan, from_torchvision

_ADVICE = (
    "stoker reads the files and runs the transforms in C++. An object with __getitem__ becomes a "
    "source by stoker.dataset() if its items are (image, label) with the image as bytes of a file, "
    "a path, uint8 pixels or a PIL picture: leave ToTensor and all other transforms out of it, "
    "and give them to the loader, DataLoader(stoker.dataset(data), ..., "
    "**stoker.torch.from_torchvision(transform)._asdict())"
)


class ImageFolder:
    """root/CLASS/**/FILE and a transform of torchvision: the samples, order and labels of
    torchvision's ImageFolder, whose arguments and attributes these are. A DataLoader is made from
    it, and reads the files itself.

    transform: read by from_torchvision(); it must give rows of one size. It may be set anew before
        a DataLoader is made.
    target_transform: a function of the label, called once for each class, here. It must give an
        int, always the same one: stoker.with_targets() has other targets.
    loader: None or torchvision's default_loader; the files are decoded in C++, to the same pixels.
    is_valid_file: a function of a path, called for all files; those that it takes are the samples,
        whatever their names end with.
    allow_empty: whether there may be classes without a file.
    dataset[i]: the sample as torchvision's data set gives it, with its loader, its transform and
        PyTorch's random numbers: for a look, not for a loop. Needs torchvision.

    Raises what stoker.folder() raises; ValueError for a transform that stoker does not support,
    with its name; TypeError for another loader; FileNotFoundError for an empty class.
    """

    __module__ = "stoker.torch"  # where programs and pickles find it

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Any = None,
        target_transform: Callable[[int], int] | None = None,
        loader: Callable[[str], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ):
        if not _is_default_loader(loader):
            raise TypeError(f"loader is {loader!r}, must be None or torchvision's: {_ADVICE}")
        self.transform = transform
        self.root = os.fspath(root)
        self.is_valid_file = is_valid_file
        self.allow_empty = allow_empty
        self._files = (
            folder(root) if is_valid_file is None else _valid_files(self.root, is_valid_file)
        )
        self.classes = list(self._files.classes)
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}
        self.target_transform = target_transform
        if not allow_empty:
            self._check_classes()

    def _check_classes(self) -> None:
        full = set(self.targets)
        empty = [name for name, label in self.class_to_idx.items() if label not in full]
        if empty:
            raise FileNotFoundError(
                f"{self.root}: there is no valid file in the classes {', '.join(empty)}; "
                "allow_empty=True takes classes without files"
            )

    @property
    def transform(self) -> Any:
        return self._transform

    @transform.setter
    def transform(self, transform: Any) -> None:
        self.plan = plan_of(transform)
        self._transform = transform

    @property
    def target_transform(self) -> Callable[[int], int] | None:
        return self._target_transform

    @target_transform.setter
    def target_transform(self, function: Callable[[int], int] | None) -> None:
        self.source = _with_targets_of(self._files, function)
        self._target_transform = function

    @property
    def loader(self) -> Callable[[str], Any]:
        """torchvision's default_loader, which gives the pixels that a DataLoader decodes."""
        folders: Any = import_module("torchvision.datasets.folder")  # only if it is asked for
        given: Callable[[str], Any] = folders.default_loader
        return given

    @property
    def targets(self) -> list[int]:
        """The number of each sample's class, before target_transform."""
        return self._files.labels()

    @property
    def samples(self) -> list[tuple[str, int]]:
        paths = (os.path.join(self.root, self._files.name(i)) for i in range(len(self)))
        return list(zip(paths, self.targets, strict=True))

    imgs = samples

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        sample = self._files[index]
        image = self.transform(self.loader(os.path.join(self.root, sample.name)))
        function = self.target_transform
        return image, sample.label if function is None else function(sample.label)

    def __reduce__(self) -> Any:
        # torch.save() of a data set keeps the path and the functions, not the list of files.
        functions = (self.transform, self.target_transform, None, self.is_valid_file)
        return type(self), (self.root, *functions, self.allow_empty)

    def __repr__(self) -> str:
        return (
            f"ImageFolder of {len(self)} samples, {len(self.classes)} classes\n{self.transform!r}"
        )


def plan_of(transform: Any) -> Plan:
    """Reads the transform of a folder. ValueError: also if its rows have no size."""
    plan = from_torchvision(transform)
    if plan.size is None:
        raise ValueError(
            f"{transform!r} does not give rows of one size: end it with a RandomResizedCrop, a "
            "CenterCrop, a RandomCrop or Resize((height, width))"
        )
    return plan


def is_torchvisions(dataset: Any) -> bool:
    """Whether it is an ImageFolder of torchvision, or of a class derived from that."""
    return _base_of(dataset) is not None


def of_torchvisions(dataset: Any) -> tuple[Plan, Source]:
    """Takes the samples and transforms that an ImageFolder of torchvision has now. TypeError: its
    class reads items in its own way. ValueError: as ImageFolder.
    """
    name = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
    if type(dataset).__getitem__ is not _base_of(dataset).__getitem__:
        raise TypeError(f"dataset is of {name}, which has its own __getitem__: {_ADVICE}")
    if not _is_default_loader(dataset.loader):
        raise TypeError(f"dataset is of {name} with the loader {dataset.loader!r}: {_ADVICE}")
    samples, root = dataset.samples, os.fspath(dataset.root)
    source = _listed([path for path, _ in samples], [label for _, label in samples], dataset, root)
    return plan_of(dataset.transform), _with_targets_of(source, dataset.target_transform)


def refusal(dataset: Any) -> str:
    """Why a DataLoader does not take it."""
    return (
        f"dataset is {dataset!r}, must be an ImageFolder of stoker.torch or of torchvision, a "
        f"stoker.Source, or a Subset of one: {_ADVICE}"
    )


def _base_of(dataset: Any) -> Any:
    """Returns torchvision's class, which was imported if there is such a data set."""
    for kind in type(dataset).__mro__:
        if (kind.__module__, kind.__name__) == ("torchvision.datasets.folder", "ImageFolder"):
            return kind
    return None


def _is_default_loader(loader: Any) -> bool:
    where = getattr(loader, "__module__", ""), getattr(loader, "__name__", "")
    names = ("default_loader", "pil_loader")
    return loader is None or where in [("torchvision.datasets.folder", name) for name in names]


def _listed(paths: list[str], labels: list[int], dataset: Any, root: str) -> Source:
    start = os.path.join(root, "")
    if all(path.startswith(start) for path in paths):
        paths = [path[len(start) :] for path in paths]
    else:
        root = ""
    return files(paths, labels, classes=dataset.classes, root=root)


def _valid_files(root: str, is_valid_file: Callable[[str], bool]) -> Source:
    """Walks as torchvision's make_dataset() does."""
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"{root} has no class folders")
    paths: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        walk = sorted(os.walk(os.path.join(root, name), followlinks=True))
        every = (os.path.join(where, each) for where, _, found in walk for each in sorted(found))
        taken = [path for path in every if is_valid_file(path)]
        paths += (os.path.relpath(path, root) for path in taken)
        labels += [label] * len(taken)
    return files(paths, labels, classes=classes, root=root)


def _with_targets_of(source: Source, function: Callable[[int], int] | None) -> Source:
    """Returns the source with the labels that a target_transform makes of those of its classes."""
    if function is None:
        return source
    numbers = [_label_of(function(label), label) for label in range(len(source.classes))]
    names: Sequence[str] = [str(number) for number in range(max(numbers, default=-1) + 1)]
    return relabel(source, [numbers[label] for label in source.labels()], names)


def _label_of(target: Any, label: int) -> int:
    try:
        if isinstance(target, bool):
            raise TypeError
        return whole(target, label)
    except (TypeError, ValueError):
        raise TypeError(
            f"target_transform gives {target!r} of the label {label}, must give an int; "
            "stoker.with_targets() has targets of other types"
        ) from None
