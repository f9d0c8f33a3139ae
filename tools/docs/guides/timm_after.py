"""stoker.torch with timm's own transform, which it reads."""

import hashlib

from timm.data import create_transform

from stoker.torch import DataLoader, ImageFolder

transform = create_transform((3, 64, 64), crop_pct=0.9, interpolation="bicubic")
loader = DataLoader(ImageFolder("photos/test", transform), batch_size=16)

labels, pixels = [], hashlib.sha256()
for images, batch_labels in loader:
    labels += batch_labels.tolist()
    pixels.update(images.numpy().tobytes())
print("samples", len(labels))
print("labels", labels)
print("pixels", pixels.hexdigest())
