"""torchvision's decode_jpeg and v2 transforms on uint8 tensors, antialiased, in a DataLoader."""

import torch
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms.v2 import functional

from peer import PAD, versions
from torch_loader import TorchPeer


class Participant(TorchPeer):
    def __init__(self, plan, threads):
        self.data = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in plan.read_files()]
        super().__init__(plan, threads)

    def version(self):
        return versions("torch", "torchvision")

    def make_row(self, image, draw):
        row = decode_jpeg(self.data[image], ImageReadMode.RGB)
        size = [self.plan.height, self.plan.width]
        if self.plan.mode == "train":
            row = functional.resized_crop(row, draw.y, draw.x, draw.height, draw.width, size, antialias=True)
        elif self.plan.mode == "eval":
            row = functional.center_crop(functional.resize(row, [256], antialias=True), size)
        else:
            row = functional.pad(row, [PAD])
            row = functional.crop(row, PAD + draw.shift[1], PAD + draw.shift[0], *size)
        return functional.horizontal_flip(row) if draw.flip else row
