"""Grain: a shuffled epoch of photos/train, decoded and resized by Pillow."""

import pathlib

import grain
import numpy
from PIL import Image

files = sorted(pathlib.Path("photos/train").glob("*/*.jpg"))
classes = sorted({path.parent.name for path in files})


def row(path):
    image = Image.open(path).convert("RGB").resize((64, 64), Image.BILINEAR)
    return {"image": numpy.asarray(image), "label": classes.index(path.parent.name)}


dataset = grain.MapDataset.source(files).shuffle(seed=1).map(row).to_iter_dataset()
taken = []
total = 0
for batch in dataset.batch(16):
    taken += batch["label"].tolist()
    total += int(batch["image"].sum(dtype=numpy.int64))
print("samples", len(taken))
print("labels", sorted(taken))
print("sum of all pixels", total)
