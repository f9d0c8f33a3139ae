"""torchcodec decodes a JPEG file into a tensor; torchvision's v2 makes the row."""

import hashlib
import pathlib

import torch
from torchcodec.decoders import decode_jpeg
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

crop = v2.Compose([v2.Resize(72, antialias=True), v2.CenterCrop(64)])


class Photos(Dataset):
    def __init__(self, root):
        self.files = sorted(pathlib.Path(root).glob("*/*.jpg"))
        self.classes = sorted({path.parent.name for path in self.files})

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        data = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
        return crop(decode_jpeg(data)), self.classes.index(path.parent.name)


photos = Photos("photos/test")
labels = []
for images, batch_labels in DataLoader(photos, batch_size=16):
    labels += batch_labels.tolist()
print("samples", len(labels))
print("labels", labels)

decoded = hashlib.sha256()
for path in photos.files:
    data = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    decoded.update(decode_jpeg(data).permute(1, 2, 0).contiguous().numpy().tobytes())
print("pixels", decoded.hexdigest())
