"""AlbumentationsX in torch's DataLoader: OpenCV decodes, Compose crops and resizes (not antialiased), flips and makes a tensor. It draws its
own crops; for the quality column it is given the plan's."""

import albumentations as A
import cv2
import numpy as np
import torch
from albumentations.pytorch import ToTensorV2

from opencv import DECODE
from peer import BATCH, versions
from torchvision_peers import TorchPeer


def _compose(*steps):
    return A.Compose([*steps, ToTensorV2()], telemetry=False)


class Participant(TorchPeer):
    given = "distribution"

    def __init__(self, plan, threads):
        cv2.setNumThreads(1)
        self.data = [np.frombuffer(data, np.uint8) for data in plan.read_files()]
        self.size = plan.height, plan.width
        crop = [A.SmallestMaxSize(256), A.CenterCrop(*self.size)] if plan.mode == "eval" else [A.RandomResizedCrop(self.size), A.HorizontalFlip()]
        self.transform = _compose(*crop)
        super().__init__(plan, threads)
        self.given = "boxes" if plan.mode == "eval" else "distribution"

    def version(self):
        return versions("albumentationsx", "torch", "opencv-python-headless")

    def make_row(self, image, draw):
        return self._transformed(image, self.transform)

    def _transformed(self, image, transform):
        return transform(image=cv2.imdecode(self.data[image], DECODE))["image"]

    def plan_batches(self):
        if self.plan.mode == "eval":
            yield from self.batches(0, 1)
            return
        draws = self.plan.draws[0]
        for start in range(0, len(draws), BATCH):
            yield torch.stack([self._planned(image, draws[image]) for image in range(start, min(start + BATCH, len(draws)))])

    def _planned(self, image, draw):
        box = A.Crop(draw.x, draw.y, draw.x + draw.width, draw.y + draw.height)
        return self._transformed(image, _compose(box, A.Resize(*self.size), A.HorizontalFlip(p=float(draw.flip))))
