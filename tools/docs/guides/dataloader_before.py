"""PyTorch's DataLoader and torchvision's ImageFolder: evaluation on photos/test."""

import hashlib

import torch
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

transform = transforms.Compose(
    [
        transforms.Resize(72),
        transforms.CenterCrop(64),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
)
loader = DataLoader(ImageFolder("photos/test", transform), batch_size=16, num_workers=2)

labels, pixels = [], hashlib.sha256()
for images, batch_labels in loader:
    labels += batch_labels.tolist()
    pixels.update(images.numpy().tobytes())
print("samples", len(labels))
print("labels", labels)
print("pixels", pixels.hexdigest())
assert images.dtype == torch.float32 and images.shape[1:] == (3, 64, 64)
