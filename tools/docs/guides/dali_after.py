"""stoker: a shuffled epoch of random crops and flips of photos/train."""

import numpy

import stoker

loader = stoker.Loader(
    stoker.folder("photos/train"),
    batch_size=16,
    augment=stoker.random_resized_crop(64) | stoker.flip(),
    dtype="float32",
    layout="NCHW",
    mean=stoker.IMAGENET_MEAN,
    std=stoker.IMAGENET_STD,
    seed=1,
)
taken = []
for batch in loader:
    assert batch.images.shape == (16, 3, 64, 64)
    counts = numpy.asarray(batch.weights) > 0  # the last batch is padded with rows of weight 0
    taken += numpy.asarray(batch.labels)[counts].tolist()
print("samples", len(taken))
print("labels", sorted(taken))
