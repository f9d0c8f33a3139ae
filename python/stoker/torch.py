"""In place of torchvision's ImageFolder and PyTorch's DataLoader: the same names, arguments and
iteration, fed by stoker.

    from stoker.torch import DataLoader, ImageFolder
    train = DataLoader(ImageFolder(root, transform), batch_size=256, shuffle=True, device="cuda")
    for images, labels in train:  # tensors on the device: (rows, 3, height, width), (rows,) int64

The transform is torchvision's own Compose, read and run in C++: the crops, resizes and colours are
those of torchvision on PIL images, the random numbers are stoker's. Threads do the work: there are
no worker processes and no pickling.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    default_collate,
)

from stoker._adapter import Adapter
from stoker._batch import Batch
from stoker._core import Source
from stoker._loader import Loader
from stoker._options import DrawnSeed
from stoker._sources import folder
from stoker._torchvision import read_transform

__all__ = ["DataLoader", "ImageFolder"]


class ImageFolder:
    """root/CLASS/**/FILE and a transform of torchvision: the samples, order and labels of
    torchvision's ImageFolder. Raises what stoker.folder() raises; ValueError for a transform that
    stoker does not support, with its name. A DataLoader is made from it; it does not read single
    samples.
    """

    def __init__(self, root: str | os.PathLike[str], transform: Any = None):
        self.plan = read_transform(transform)
        self.root = os.fspath(root)
        self.transform = transform
        self.source = folder(root)
        self.classes = list(self.source.classes)
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}

    @property
    def targets(self) -> list[int]:
        return self.source.labels()

    @property
    def samples(self) -> list[tuple[str, int]]:
        paths = (os.path.join(self.root, self.source.name(i)) for i in range(len(self)))
        return list(zip(paths, self.targets, strict=True))

    imgs = samples

    def __len__(self) -> int:
        return len(self.source)

    def __reduce__(self) -> Any:
        # torch.save() of a data set keeps the path and the transform, not the list of files.
        return type(self), (self.root, self.transform)

    def __repr__(self) -> str:
        return (
            f"ImageFolder of {len(self)} samples, {len(self.classes)} classes\n{self.transform!r}"
        )


class DataLoader(Adapter):
    """Yields (images, labels). Only rows that count are included: an epoch's last batch may be
    smaller, and a damaged file's row is left out. The tensors may be kept for any time on the host;
    on a GPU the last `leases` (3) batches.

    dataset: an ImageFolder of this module, or a stoker.Source (then give size=, augment=, mean=,
        ...).
    batch_size, shuffle, drop_last: as in PyTorch.
    sampler: RandomSampler, SequentialSampler or DistributedSampler of PyTorch, whose rank,
        replicas, seed and set_epoch() are used. In training over several ranks every rank makes the
        same number of steps; in evaluation (not shuffled) every sample is given once over all
        ranks, and a rank may have one batch less.
    num_workers: threads; None: one per core; 0: none.
    collate_fn: None or PyTorch's default_collate, which makes the same from samples.
    pin_memory, pin_memory_device, persistent_workers, prefetch_factor, in_order: accepted, without
        effect.
    generator: the seed is drawn from it; default: the generator of the RandomSampler.
    seed: of order and augmentation; default: the DistributedSampler's, else drawn from PyTorch's
        generator, as PyTorch's DataLoader draws one: torch.manual_seed() fixes it.
    device: 'cpu', 'cuda', 'cuda:1', a torch.device: the device of the tensors.
    options: others of stoker.Loader: pixels='fast', layout='channels_last', leases=, ...
    Refused: batch_sampler, any other collate_fn; worker_init_fn and multiprocessing_context,
    because
        there are no worker processes; timeout, because nothing can time out.

    state_dict() and load_state_dict() are those of torchdata's StatefulDataLoader: exact even
    within an epoch, and only a few numbers. TypeError, ValueError: an argument that stoker does not
    support.
    """

    #: None: batches are made in C++. (Lightning asks.)
    batch_sampler = None

    def __init__(
        self,
        dataset: ImageFolder | Source,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Sampler[int] | None = None,
        batch_sampler: None = None,
        num_workers: int | None = None,
        collate_fn: Callable[..., Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: None = None,
        multiprocessing_context: None = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        device: str | torch.device = "cpu",
        seed: int | None = None,
        **options: Any,
    ):
        _refuse(batch_sampler, collate_fn, timeout, worker_init_fn, multiprocessing_context)
        if num_workers is not None and num_workers < 0:
            raise ValueError(f"num_workers is {num_workers}, must be 0 or more, or None")
        if sampler is not None and shuffle:
            raise ValueError("sampler and shuffle=True: give one of them")
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.generator = generator
        given = {**_of_dataset(dataset), "layout": "NCHW", **_of_sampler(sampler), **options}
        if given.get("dtype") == "uint8" and given["layout"] == "NCHW":
            given["layout"] = "channels_last"  # the same shape
        if drop_last:
            given["last_batch"] = "drop"
        given["seed"] = _seed(seed, generator, sampler)
        source = dataset.source if isinstance(dataset, ImageFolder) else dataset
        self.loader = Loader(
            source, batch_size=batch_size, workers=num_workers, device=_name(device), **given
        )
        self._sampler_epoch = getattr(sampler, "epoch", None)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        epoch = getattr(self.sampler, "epoch", None)
        if epoch != self._sampler_epoch:  # the loop that set_epoch() was called for
            self._sampler_epoch = epoch
            if epoch is not None and epoch != self.loader.epoch:
                self.loader.set_epoch(epoch)
        return _Tensors(iter(self.loader))


class _Tensors:
    """One epoch."""

    def __init__(self, batches: Iterator[Batch]):
        self._batches = batches

    def __iter__(self) -> _Tensors:
        return self

    def __next__(self) -> tuple[torch.Tensor, torch.Tensor]:
        batch = next(self._batches)
        while batch.valid == 0:  # the epoch's last rows belong to another rank
            batch = next(self._batches)
        images = torch.from_dlpack(batch.images)
        labels = torch.from_dlpack(batch.labels).long()
        if batch.valid < len(batch):
            counts = torch.from_dlpack(batch.weights) > 0
            images, labels = images[counts], labels[counts]
        return images, labels


def _of_dataset(dataset: Any) -> dict[str, Any]:
    if isinstance(dataset, ImageFolder):
        return dataset.plan._asdict()
    if isinstance(dataset, Source):
        return {"dtype": "float32"}
    raise TypeError(
        f"dataset is {dataset!r}, must be a stoker.torch.ImageFolder or a stoker.Source"
    )


def _refuse(
    batch_sampler: object,
    collate_fn: object,
    timeout: float,
    worker_init_fn: object,
    multiprocessing_context: object,
) -> None:
    """TypeError, ValueError: names the argument of PyTorch's that is not supported, and why."""
    if batch_sampler is not None:
        raise TypeError("batch_sampler: stoker makes the batches; give batch_size= and sampler=")
    if collate_fn not in (None, default_collate):
        raise TypeError(
            f"collate_fn is {collate_fn!r}: batches are made in C++, as default_collate makes "
            "them; do the rest to what the loader yields"
        )
    for name, value in (
        ("worker_init_fn", worker_init_fn),
        ("multiprocessing_context", multiprocessing_context),
    ):
        if value is not None:
            raise TypeError(
                f"{name}: stoker's workers are threads that run no Python; leave it out (seed= or "
                "generator= make a run repeatable)"
            )
    if timeout != 0:
        raise ValueError(f"timeout is {timeout!r}: there is no worker process to give up on")


def _of_sampler(sampler: Sampler[int]) -> dict[str, Any]:
    if type(sampler) is SequentialSampler:
        return {"rank": 0, "world": 1, "shuffle": False}
    if type(sampler) is RandomSampler and not sampler.replacement:
        if sampler.num_samples == len(sampler.data_source):
            return {"rank": 0, "world": 1, "shuffle": True}
    if type(sampler) is DistributedSampler:
        last = "drop" if sampler.drop_last else "wrap" if sampler.shuffle else "pad"
        return {
            "rank": sampler.rank,
            "world": sampler.num_replicas,
            "shuffle": sampler.shuffle,
            "last_batch": last,
        }
    raise TypeError(
        f"sampler is {sampler!r}: stoker takes PyTorch's RandomSampler (all samples, "
        "without replacement), SequentialSampler and DistributedSampler"
    )


def _seed(seed: int | None, generator: torch.Generator | None, sampler: Sampler[int]) -> int:
    if generator is None:
        generator = getattr(sampler, "generator", None)
    elif seed is not None:
        raise ValueError("seed and generator: give one of them")
    elif not isinstance(generator, torch.Generator):
        raise TypeError(f"generator is {generator!r}, must be a torch.Generator")
    elif isinstance(sampler, DistributedSampler):
        raise ValueError(
            "generator with a DistributedSampler: all ranks must have one seed, which is the "
            "sampler's; leave generator out"
        )
    if seed is not None:
        return seed
    if isinstance(sampler, DistributedSampler):
        return sampler.seed
    device = "cpu" if generator is None else generator.device
    drawn = torch.empty((), dtype=torch.int64, device=device).random_(generator=generator)
    return DrawnSeed(drawn.item())


def _name(device: str | torch.device) -> str:
    chosen = torch.device(device)
    index = chosen.index
    if index is None:
        index = torch.cuda.current_device() if chosen.type == "cuda" else 0
    return f"{chosen.type}:{index}"
