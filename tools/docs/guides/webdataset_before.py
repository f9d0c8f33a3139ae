"""WebDataset: tar shards of photos/test (as `stoker pack` writes them), decoded by Pillow."""

import glob
import hashlib

import webdataset
from torch.utils.data import DataLoader
from torchvision import transforms

transform = transforms.Compose(
    [transforms.Resize(72), transforms.CenterCrop(64), transforms.ToTensor()]
)
shards = sorted(glob.glob("shards/*.tar"))
dataset = webdataset.WebDataset(shards, shardshuffle=False).decode("pil").to_tuple("jpg", "cls")
dataset = dataset.map_tuple(transform, lambda label: label)

labels, pixels = [], hashlib.sha256()
for images, batch_labels in DataLoader(dataset, batch_size=16):
    labels += batch_labels.tolist()
    pixels.update(images.numpy().tobytes())
print("samples", len(labels))
print("labels", labels)
print("pixels", pixels.hexdigest())
