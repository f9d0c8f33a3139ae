"""stoker: a shuffled epoch of photos/train."""

import numpy

import stoker

loader = stoker.Loader(
    stoker.folder("photos/train"), batch_size=16, size=64, augment="resize", seed=1
)
taken = []
total = 0
for batch in loader:
    counts = numpy.asarray(batch.weights) > 0  # the last batch is padded with rows of weight 0
    taken += numpy.asarray(batch.labels)[counts].tolist()
    total += int(numpy.asarray(batch.images)[counts].sum(dtype=numpy.int64))
print("samples", len(taken))
print("labels", sorted(taken))
print("sum of all pixels", total)
