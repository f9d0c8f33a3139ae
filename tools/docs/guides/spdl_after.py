"""stoker: its threads decode and resize photos/test."""

import numpy

import stoker

loader = stoker.Loader(
    stoker.folder("photos/test"), batch_size=16, size=64, augment="resize", shuffle=False
)
taken = []
for batch in loader:
    assert batch.images.shape[1:] == (64, 64, 3)
    counts = numpy.asarray(batch.weights) > 0  # the last batch is padded with rows of weight 0
    taken += numpy.asarray(batch.labels)[counts].tolist()
print("samples", len(taken))
print("labels", taken)
