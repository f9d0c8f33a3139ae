"""stoker feeds trainers with images: it reads, decodes and augments them on the CPU, without the
interpreter lock, and hands out fixed-size batches without a copy.

    import stoker
    train = stoker.Loader(stoker.folder("/data/imagenet/train"), batch_size=256, size=224,
                          augment=stoker.random_resized_crop() | stoker.flip(),
                          device="cuda:0", seed=0)
    for batch in train:                           # one epoch
        images = torch.from_dlpack(batch.images)  # (256, 224, 224, 3) uint8, no copy

Pixels are a pure function of (seed, epoch, sample id); every batch has the same shape, and the last
one of an epoch is padded with rows of weight 0; `state_dict()` resumes exactly, even within an
epoch. The pages of tools/docs/feed have everything else.
"""

from stoker import augment
from stoker._annotations import Annotations, with_annotations
from stoker._batch import Batch
from stoker._blend import Blend, blend
from stoker._core import Array, DecodeError, FeedError, Sample, Source, StoreError
from stoker._core import VERSION as _VERSION
from stoker._dataset import dataset
from stoker._decoded_cache import DecodedCache
from stoker._emulate import Emulation, emulate
from stoker._image import ImageInfo, crop_resize, decode, image_info, resize
from stoker._index import BadSample, SeekIndex, index
from stoker._loader import Loader
from stoker._options import IMAGENET_MEAN, IMAGENET_STD, devices, why_no_cuda
from stoker._orders import Order, block_shuffled, class_balanced, repeated, weighted
from stoker._rewind import Rewound, RewoundRow, rewind
from stoker._sources import (
    cifar,
    csv,
    files,
    folder,
    huggingface,
    mds,
    memory,
    open,
    parquet,
    relabel,
    synthetic,
    tar,
    tfrecord,
)
from stoker._step_sizes import Bucket, Buckets, StepSizes, buckets, step_sizes
from stoker._store import Store
from stoker._targets import with_targets
from stoker._views import concat, random_split, subset, with_labels, with_pictures
from stoker._watch import Watch, WatchedIterator, watch
from stoker.augment import (
    Augment,
    color_jitter,
    cutout,
    flip,
    operation,
    random_resized_crop,
    resize_center_crop,
)

__version__ = _VERSION

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Array",
    "Augment",
    "BadSample",
    "Batch",
    "Blend",
    "Bucket",
    "Buckets",
    "DecodeError",
    "DecodedCache",
    "Emulation",
    "FeedError",
    "ImageInfo",
    "Loader",
    "Order",
    "Rewound",
    "RewoundRow",
    "Sample",
    "SeekIndex",
    "Source",
    "StepSizes",
    "Store",
    "StoreError",
    "Watch",
    "WatchedIterator",
    "augment",
    "blend",
    "block_shuffled",
    "buckets",
    "cifar",
    "class_balanced",
    "color_jitter",
    "concat",
    "crop_resize",
    "csv",
    "dataset",
    "cutout",
    "decode",
    "devices",
    "emulate",
    "files",
    "flip",
    "folder",
    "huggingface",
    "image_info",
    "index",
    "mds",
    "memory",
    "open",
    "operation",
    "parquet",
    "random_resized_crop",
    "random_split",
    "relabel",
    "repeated",
    "resize",
    "resize_center_crop",
    "rewind",
    "step_sizes",
    "subset",
    "synthetic",
    "tar",
    "tfrecord",
    "watch",
    "weighted",
    "why_no_cuda",
    "with_labels",
    "with_pictures",
    "with_annotations",
    "with_targets",
]

_GONE = {
    "pad_random_crop": "stoker.augment.random_crop(padding=4, mode='reflect')",
    "resize_whole": "stoker.augment.resize()",
}


def __dir__() -> list[str]:
    imported = {"jax", "keras", "losses", "ray", "torch"} & globals().keys()
    return sorted([*__all__, *imported, "__all__", "__doc__", "__file__", "__version__"])


def __getattr__(name: str) -> object:
    if name in _GONE:
        raise AttributeError(f"stoker.{name}() is {_GONE[name]} now")
    raise AttributeError(f"module 'stoker' has no attribute {name!r}")
