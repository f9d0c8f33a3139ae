"""Pillow + torchvision's transforms in a DataLoader, as ImageNet recipes do: crop, flip, ToTensor, Normalize."""

import io

import torch
from PIL import Image
from torchvision.transforms import functional

from peer import PAD, versions
from torch_loader import TorchPeer

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def pil_row(data, plan, draw):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    size = [plan.height, plan.width]
    if plan.mode == "train":
        image = functional.resized_crop(image, draw.y, draw.x, draw.height, draw.width, size)
    elif plan.mode == "eval":
        image = functional.center_crop(functional.resize(image, 256), size)
    else:
        image = functional.pad(image, PAD)
        image = functional.crop(image, PAD + draw.shift[1], PAD + draw.shift[0], *size)
    return functional.hflip(image) if draw.flip else image


class Participant(TorchPeer):
    def __init__(self, plan, threads):
        self.data = plan.read_files()
        super().__init__(plan, threads)

    def version(self):
        return versions("torch", "torchvision", "pillow")

    def make_row(self, image, draw):
        row = functional.to_tensor(pil_row(self.data[image], self.plan, draw))
        return functional.normalize(row, MEAN, STD, inplace=True)
