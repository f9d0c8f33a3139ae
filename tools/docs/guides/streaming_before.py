"""MosaicML Streaming: writes photos/test as MDS shards, and reads them with a transform."""

import hashlib
import pathlib

from PIL import Image
from streaming import MDSWriter, StreamingDataset
from torch.utils.data import DataLoader
from torchvision import transforms

files = sorted(pathlib.Path("photos/test").glob("*/*.jpg"))
classes = sorted({path.parent.name for path in files})
with MDSWriter(out="mds", columns={"image": "jpeg", "label": "int"}, size_limit=1 << 16) as writer:
    for path in files:
        writer.write({"image": Image.open(path), "label": classes.index(path.parent.name)})

transform = transforms.Compose(
    [transforms.Resize(72), transforms.CenterCrop(64), transforms.ToTensor()]
)


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return transform(sample["image"].convert("RGB")), sample["label"]


labels, pixels = [], hashlib.sha256()
dataset = Photos(local="mds", shuffle=False, batch_size=16)
for images, batch_labels in DataLoader(dataset, batch_size=16):
    labels += batch_labels.tolist()
    pixels.update(images.numpy().tobytes())
print("samples", len(labels))
print("labels", labels)
print("pixels", pixels.hexdigest())
