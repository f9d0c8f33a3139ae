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

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import (
    Dataset,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
)

from stoker._adapter import Adapter, Form
from stoker._batch import Batch
from stoker._blend import Blend
from stoker._core import Source, usable_cores
from stoker._image_folder import ImageFolder, is_torchvisions, of_torchvisions, refusal
from stoker._loader import Loader
from stoker._options import DrawnSeed
from stoker._orders import Order, listed, weighted
from stoker._torch_targets import convert_for, padding_mask
from stoker._torchvision import Plan, from_torchvision
from stoker._views import subset

__all__ = [
    "DataLoader", "ImageFolder", "Plan", "from_torchvision", "padding_mask", "to_torchvision",
]  # fmt: skip


# The type that a loop gets; see stoker._loader.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Item = TypeVar("Item", default=tuple[torch.Tensor, torch.Tensor])
else:
    from typing import TypeVar

    Item = TypeVar("Item")


class DataLoader(Adapter[Item]):
    """Yields (images, labels), or (images, labels, targets) if the source has targets besides its
    labels: a dict of tensors by name (stoker.with_targets()), with mix_label and mix_weight if rows
    are mixed (stoker.augment.mix()). With stoker.augment.views() images is a list of tensors, one
    for each view. Only rows that count are included: an epoch's last batch may be smaller, and a
    damaged file's row is left out. The tensors may be kept for any time on the host; on a GPU the
    last `leases` (3) batches.

    If the source has annotations (stoker.open(objects=), stoker.with_annotations()), it yields
    (images, targets) as `targets` says:
        'lists': what torchvision's detection models take: images is a list of tensors (3, height,
            width) without the padding to the right and below; targets a list of dicts of tensors:
            boxes, labels, area, iscrowd, masks, keypoints, with a row for each object; image_id,
            label_image. All are views of the batch's memory.
        'padded': images as they are, and a dict of tensors by name, of stoker.Annotations' shapes;
            padding_mask() makes DETR's mask of its picture_box.
        'packed': the same with the objects of all rows one behind the other, and 'offsets': those
            of row r are offsets[r] to offsets[r + 1]. Needs annotations=Annotations(packed=True).
    By default 'lists'; of label images alone (images, label_images), int64 (rows, height, width).
    tv_tensors=True: boxes, masks and keypoints are torchvision's tv_tensors.

    To type checkers an item is (Tensor, Tensor), or what on_batch returns; where there is more in
    it, say so: `train: DataLoader[tuple[Tensor, Tensor, dict[str, Tensor]]] = DataLoader(...)`.

    dataset: an ImageFolder of this module or of torchvision (its samples and transforms as they are
        now), or a stoker.Source or stoker.blend() (then give size=, augment=, mean=, ...); or a
        Subset of PyTorch of one of these but a blend, as its random_split() makes them, also a
        Subset of a Subset.
    batch_size, shuffle, drop_last: as in PyTorch.
    sampler: one of PyTorch's; stoker takes what it asks for, and draws with its own random numbers.
        SequentialSampler, RandomSampler: with replacement, or with num_samples below the size of
            the data set, as stoker.weighted() with equal weights.
        SubsetRandomSampler: as stoker.subset(), shuffled.
        WeightedRandomSampler: as stoker.weighted(), with a weight for each sample.
        DistributedSampler: its rank, replicas, seed and set_epoch() are used. In training over
            several ranks every rank makes the same number of steps; in evaluation (not shuffled)
            every sample is given once over all ranks, and a rank may have one batch less.
        Any other: each loop takes the indices that it gives, all at once, in their order. An index
            that comes again gets other crops. Between epochs a loop waits for its first batch,
            because the next indices are not known before. A state is exact within an epoch if the
            sampler gives the same indices again, and refused otherwise.
    num_workers: threads; None: one per core; 0: none.
    collate_fn: None or PyTorch's default_collate, which makes the same from samples.
    pin_memory, pin_memory_device, persistent_workers, prefetch_factor, in_order: accepted, without
        effect. The attributes of these names say what is: batches on the host are in no pinned
        memory, the threads stay from epoch to epoch, and no number of batches belongs to a worker.
    generator: the seed is drawn from it; default: the generator of the RandomSampler.
    seed: of order and augmentation; default: the DistributedSampler's, else drawn from PyTorch's
        generator, as PyTorch's DataLoader draws one: torch.manual_seed() fixes it.
    device: 'cpu', 'cuda', 'cuda:1', a torch.device: the device of the tensors.
    on_batch: as in stoker.Loader, a function of what this yields without it, whose result this
        yields: (images, labels) -> ..., in a thread of its own. On a GPU its work is queued on the
        stream that is current where the loop begins, as the loop's own, so tensors need no
        record_stream(). The modes of a thread (no_grad, autocast) are the function's to set.
    options: others of stoker.Loader: pixels='fast', layout='channels_last', leases=, ...; order=
        in place of shuffle and sampler.
    Refused: batch_sampler, any other collate_fn; worker_init_fn and multiprocessing_context,
    because there are no worker processes; timeout, because nothing can time out.

    state_dict() and load_state_dict() are those of torchdata's StatefulDataLoader: exact even
    within an epoch, and only a few numbers. TypeError, ValueError: an argument that stoker does not
    support.
    """

    # Attributes that programs ask a DataLoader of PyTorch for.
    batch_sampler = None  #: batches are made in C++
    pin_memory = False
    pin_memory_device = ""
    persistent_workers = True
    prefetch_factor = None
    in_order = True
    timeout = 0
    worker_init_fn = None
    multiprocessing_context = None

    def __init__(
        self,
        dataset: ImageFolder | Source | Blend | Dataset[Any],
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
        targets: str | None = None,
        tv_tensors: bool = False,
        on_batch: Callable[[Any], Item] | None = None,
        **options: Any,
    ):
        _refuse(batch_sampler, collate_fn, timeout, worker_init_fn, multiprocessing_context)
        if num_workers is not None and num_workers < 0:
            raise ValueError(f"num_workers is {num_workers}, must be 0 or more, or None")
        if sampler is not None and shuffle:
            raise ValueError("sampler and shuffle=True: give one of them")
        plan, source = _plan_and_source(dataset)
        has_order = isinstance(source, Blend) or options.get("order") is not None
        if has_order and (shuffle or sampler is not None):
            raise ValueError(
                "shuffle or sampler, and order= or a blend: give one of them; both say which "
                "samples an epoch takes"
            )
        if sampler is None:
            sized: Any = dataset
            sampler = RandomSampler(sized) if shuffle else SequentialSampler(sized)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.num_workers = usable_cores() if num_workers is None else num_workers
        self.collate_fn = default_collate
        self.generator = generator
        self._listed = None
        if has_order:
            chosen: dict[str, Any] = {**_ALONE}
        elif type(sampler) in _READ:
            chosen = _of_sampler(sampler, len(source))
        else:
            if options.get("share") is not None:
                raise ValueError(
                    f"share is {options['share']!r}, but {sampler!r} lists each epoch anew: give "
                    "shuffle=True, or order=, which all processes have before"
                )
            self._listed = _ListedEpochs(sampler)
            chosen = {**_ALONE, "order": self._listed.order, "epochs": 1}
        given = {**plan, "layout": "NCHW", **chosen, **options}
        if given.get("dtype") == "uint8" and given["layout"] == "NCHW":
            given["layout"] = "channels_last"  # the same shape
        if drop_last:
            given["last_batch"] = "drop"
        self.drop_last: bool = given.get("last_batch") == "drop"
        given["seed"] = _seed(seed, generator, sampler)
        if self._listed is not None:
            given["seed"] = _of_this_rank(given["seed"], sampler)
        if type(sampler) is SubsetRandomSampler:
            source = subset(source, sampler.indices)
        convert = convert_for(source, targets, tv_tensors, options.get("annotations"))
        self._form = _Form(convert or _tensors, on_batch)
        self._device = _name(device)
        self.loader = Loader(
            source,
            batch_size=batch_size,
            workers=num_workers,
            device=self._device,
            on_batch=self._form.for_loader,
            **given,
        )
        self._sampler_epoch = getattr(sampler, "epoch", None)

    def __iter__(self) -> Iterator[Item]:
        if self._listed is not None:
            self._listed.begin(self.loader)
            return self._epoch()
        epoch = getattr(self.sampler, "epoch", None)
        if epoch != self._sampler_epoch:  # the loop that set_epoch() was called for
            self._sampler_epoch = epoch
            if epoch is not None and epoch != self.loader.epoch:
                self.loader.set_epoch(epoch)
        return self._epoch()

    def set_epoch(self, epoch: int) -> None:
        if self._listed is None:
            super().set_epoch(epoch)
        else:
            self._listed.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        pending = None if self._listed is None else self._listed.pending
        return super().state_dict() if pending is None else pending

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self._listed is None:
            super().load_state_dict(state)
        else:
            self._listed.load_state_dict(state)

    def _epoch(self) -> Iterator[Item]:
        self._form.stream = _stream_of_thread(self._device)
        return _Epoch(self._form.epoch(self.loader))


class _Form(Form):
    """Makes (what is yielded,), or None of a batch without rows that count."""

    stream: Any = None  # None: there are none on this device

    def __call__(self, batch: Batch) -> tuple[Any] | None:
        if batch.valid == 0:  # the epoch's last rows belong to another rank
            return None
        with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            return (super().__call__(batch),)


class _Epoch:
    """The results for the batches with rows that count."""

    def __init__(self, made: Iterator[tuple[Any] | None]):
        self._made = made

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> Any:
        made = next(self._made)
        while made is None:
            made = next(self._made)
        return made[0]


def _tensors(batch: Batch) -> tuple[Any, ...]:
    views = [torch.from_dlpack(rows) for rows in batch.views]
    labels = torch.from_dlpack(batch.labels).long()
    targets = {name: torch.from_dlpack(values) for name, values in batch._arrays().items()}
    if batch.valid < len(batch):
        counts = torch.from_dlpack(batch.weights) > 0
        views, labels = [rows[counts] for rows in views], labels[counts]
        targets = {name: values[counts] for name, values in targets.items()}
    for name, values in batch._varying().items():
        targets[name] = values if isinstance(values, list) else torch.from_dlpack(values)
    images = views if len(views) > 1 else views[0]
    return (images, labels, targets) if targets else (images, labels)


def _stream_of_thread(device: str) -> Any:
    """Returns the stream on which this thread queues its work for `device`; None on a host."""
    return torch.cuda.current_stream(device) if device.startswith("cuda") else None


def to_torchvision(drawn: str, image: Any) -> Any:
    """Returns what torchvision's transforms make of a picture with the numbers that were drawn for
    it: to check a row's pixels.

    drawn: one line of Batch.draws or of stoker.augment.draw(). image: the sample's PIL image, RGB.
    Every step is one call of Pillow, as torchvision makes it on PIL images; `hue` and
    `gaussian_blur` are calls of torchvision.transforms.functional.

    ValueError: a step whose pixels cannot be made of its numbers alone: noise, an operation of your
    own, rows that are mixed with others; and random_hsv's, whose pixels are OpenCV's. The size
    after a rotation with expand=True is not among the numbers: this makes an image of the size
    before it.
    """
    from torchvision.transforms import functional

    from stoker._drawn_steps import run_steps

    return run_steps(drawn, image, functional)


def _plan_and_source(dataset: Any) -> tuple[dict[str, Any], Any]:
    """Returns the Loader's arguments that the data set gives, and what to read from."""
    if isinstance(dataset, ImageFolder):
        return dataset.plan._asdict(), dataset.source
    if isinstance(dataset, (Source, Blend)):
        return {"dtype": "float32"}, dataset
    if type(dataset) is Subset:  # a class derived from it may have a transform of its own
        plan, source = _plan_and_source(dataset.dataset)
        return plan, subset(source, dataset.indices)
    if is_torchvisions(dataset):
        read, source = of_torchvisions(dataset)
        return read._asdict(), source
    raise TypeError(refusal(dataset))


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
            "them; do the rest to what the loader yields, or ahead in on_batch="
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


class _ListedEpochs:
    """Epochs whose samples a sampler of the program's own lists, anew for each. For a Loader that
    is made with `order` and epochs=1: begin() comes before each of its loops. The list is taken as
    it is: it must end. A state that was taken between epochs is not compared, because the lists
    differ.
    """

    def __init__(self, sampler: Iterable[int]):
        self._sampler = sampler
        self._drawn_in = self._sampler_epoch()
        self.order = listed(sampler)  # of the first loop
        self._unused: Order | None = self.order
        self._epoch: int | None = None
        self.pending: dict[str, Any] | None = None  # the state that the next loop continues

    def begin(self, loader: Loader[Any]) -> None:
        """Moves to the epoch that is next. ValueError: the state is not of such an epoch."""
        state, self.pending = self.pending, None
        jump, self._epoch = self._epoch, None
        at = self._sampler_epoch()
        if state is not None:
            epoch = int(state["epoch"])
        elif jump is not None:
            epoch = jump
        elif at is not None and at != self._drawn_in:
            epoch = at
        else:
            place = loader.state_dict()
            epoch = place["epoch"] + (place["step_in_epoch"] > 0)
        seed = loader.seed if state is None or loader._is_seeded else int(state["seed"])
        if self._unused is None or at != self._drawn_in:
            loader._begin(epoch, listed(self._sampler), seed)
        elif (epoch, seed) != (0, loader.seed):
            loader._begin(epoch, self._unused, seed)
        self._unused, self._drawn_in = None, at
        if state is not None and state["step_in_epoch"] > 0:
            loader.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        """Makes `epoch` the number of the next loop's epoch."""
        if not isinstance(epoch, int) or epoch < 0:
            raise ValueError(f"epoch is {epoch!r}, must be 0 or more")
        self._epoch, self.pending = epoch, None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next loop continues there. ValueError: it is no state; or else from that loop."""
        numbers = [state.get(key) for key in ("epoch", "step_in_epoch", "next_step", "seed")]
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise ValueError(f"not a state of a stoker.Loader: {state!r}")
        self.pending, self._epoch = dict(state), None

    def _sampler_epoch(self) -> int | None:
        epoch = getattr(self._sampler, "epoch", None)
        return epoch if isinstance(epoch, int) else None


# As with PyTorch's DataLoader, only a DistributedSampler shares the epoch among ranks.
_ALONE = {"rank": 0, "world": 1}


_READ = (
    SequentialSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    DistributedSampler,
)


def _of_sampler(sampler: Any, samples: int) -> dict[str, Any]:
    """REQUIRES: a sampler of _READ, none of a class derived from them."""
    _check_size(sampler, samples)
    if type(sampler) is SequentialSampler:
        return {**_ALONE, "shuffle": False}
    if type(sampler) is SubsetRandomSampler:
        return {**_ALONE, "shuffle": True}
    if type(sampler) is RandomSampler:
        length = sampler.num_samples
        if length == samples and not sampler.replacement:
            return {**_ALONE, "shuffle": True}
        return {**_ALONE, "order": weighted([1.0] * samples, length, sampler.replacement)}
    if type(sampler) is WeightedRandomSampler:
        length, again = sampler.num_samples, sampler.replacement
        return {**_ALONE, "order": weighted(sampler.weights, length, again)}
    last = "drop" if sampler.drop_last else "wrap" if sampler.shuffle else "pad"
    return {
        "rank": sampler.rank,
        "world": sampler.num_replicas,
        "shuffle": sampler.shuffle,
        "last_batch": last,
    }


def _check_size(sampler: Any, samples: int) -> None:
    """ValueError: the sampler was made for another data set."""
    data = getattr(sampler, "data_source", getattr(sampler, "dataset", None))
    if data is not None and len(data) != samples:
        raise ValueError(
            f"sampler is {sampler!r} for {len(data)} samples, and the data set has {samples}"
        )


def _of_this_rank(seed: int, sampler: Any) -> int:
    """Several ranks' samplers may give one sample, which must not get the same crops there."""
    is_shared = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank = getattr(sampler, "rank", torch.distributed.get_rank() if is_shared else 0)
    shifted = (seed + rank) % (1 << 64)
    return DrawnSeed(shifted) if isinstance(seed, DrawnSeed) else shifted


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
