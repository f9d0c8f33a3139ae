"""FFCV: it reads its own file format, and its writer encodes the pictures again (JPEG of quality
90, 4:2:0), so it decodes other bytes than the other participants. It uses a Loader with
RandomResizedCropRGBImageDecoder and RandomHorizontalFlip, and draws its own crops."""

import io
import os
import tempfile

import numpy as np
from ffcv.fields import RGBImageField
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, ToTensor
from ffcv.writer import DatasetWriter
from PIL import Image

from peer import BATCH, Peer, versions


class _Pictures:
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return (np.asarray(Image.open(io.BytesIO(self.files[index])).convert("RGB")),)


class Participant(Peer):
    given = "distribution"

    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        self.folder = tempfile.TemporaryDirectory(prefix="stoker-peers-")
        path = os.path.join(self.folder.name, "images.beton")
        field = RGBImageField(write_mode="jpg", jpeg_quality=90)
        DatasetWriter(path, {"image": field}, num_workers=1).from_indexed_dataset(_Pictures(plan.read_files()))
        decoder = RandomResizedCropRGBImageDecoder((plan.height, plan.width))
        self.loader = Loader(
            path,
            batch_size=BATCH,
            num_workers=threads,
            order=OrderOption.SEQUENTIAL,
            os_cache=True,
            drop_last=False,
            pipelines={"image": [decoder, RandomHorizontalFlip(), ToTensor()]},
        )

    def version(self):
        return versions("ffcv", "numba", "torch")

    def batches(self, first, count):
        for _ in range(count):
            for (batch,) in self.loader:
                yield batch
