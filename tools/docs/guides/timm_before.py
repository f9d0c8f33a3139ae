"""timm: its data set, evaluation transform and loader on photos/test."""

import hashlib

from timm.data import create_dataset, create_loader

dataset = create_dataset("", root="photos/test")
loader = create_loader(
    dataset, input_size=(3, 64, 64), batch_size=16, crop_pct=0.9, interpolation="bicubic",
    use_prefetcher=False, num_workers=1, persistent_workers=False, pin_memory=False,
)

labels, pixels = [], hashlib.sha256()
for images, batch_labels in loader:
    labels += batch_labels.tolist()
    pixels.update(images.numpy().tobytes())
print("samples", len(labels))
print("labels", labels)
print("pixels", pixels.hexdigest())
