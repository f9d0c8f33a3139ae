"""stoker: nothing to write; the files are read as they are."""

import hashlib
import pathlib

import numpy

import stoker
from stoker.torch import DataLoader

photos = stoker.folder("photos/test")
labels = []
for images, batch_labels in DataLoader(photos, batch_size=16, augment="resize_center_crop(72, 64)"):
    labels += batch_labels.tolist()
print("samples", len(labels))
print("labels", labels)

decoded = hashlib.sha256()
for path in sorted(pathlib.Path("photos/test").glob("*/*.jpg")):
    decoded.update(numpy.asarray(stoker.decode(path.read_bytes())).tobytes())
print("pixels", decoded.hexdigest())
