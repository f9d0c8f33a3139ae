"""LitData: writes photos/test as chunks, and streams them with a transform."""

import hashlib
import pathlib

import torch
from litdata import Jpeg, StreamingDataLoader, StreamingDataset, optimize
from torchvision.transforms import v2

files = sorted(pathlib.Path("photos/test").glob("*/*.jpg"))
classes = sorted({path.parent.name for path in files})
crop = v2.Compose([v2.Resize(72, antialias=True), v2.CenterCrop(64)])


def sample_of(path):
    return {"image": Jpeg(path=str(path), max_quality=None), "label": classes.index(path.parent.name)}


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return crop(sample["image"]), sample["label"]


if __name__ == "__main__":
    optimize(fn=sample_of, inputs=files, output_dir="chunks", chunk_size=16, num_workers=1, keep_data_ordered=True)
    labels = []
    for images, batch_labels in StreamingDataLoader(Photos("chunks"), batch_size=16):
        assert images.dtype == torch.uint8 and images.shape[1:] == (3, 64, 64)
        labels += batch_labels.tolist()
    print("samples", len(labels))
    print("labels", labels)

    decoded = hashlib.sha256()
    for sample in StreamingDataset("chunks"):
        decoded.update(sample["image"].permute(1, 2, 0).contiguous().numpy().tobytes())
    print("pixels", decoded.hexdigest())
