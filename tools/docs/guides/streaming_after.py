"""stoker: the same MDS shards, as they are. No other package is needed to read them."""

import hashlib

import stoker
from stoker.torch import DataLoader

dataset = stoker.mds("mds")

labels, pixels = [], hashlib.sha256()
for images, batch_labels in DataLoader(dataset, batch_size=16, augment="resize_center_crop(72, 64)"):
    labels += batch_labels.tolist()
    pixels.update(images.numpy().tobytes())
print("samples", len(labels))
print("labels", labels)
print("pixels", pixels.hexdigest())
