"""kornia-rs alone: its Image decodes, crops, resizes and flips, on a pool of threads, one image per thread. Its bilinear resize is not
antialiased. It has two decoders: libjpeg-turbo, which Image takes, and zune-jpeg."""

import os

os.environ["RAYON_NUM_THREADS"] = "1"  # of one image; several are made at once

import numpy as np
from kornia_rs.image import Image
from kornia_rs.io import decode_image_jpeg

import opencv
from peer import versions


class Participant(opencv.Participant):
    def version(self):
        return versions("kornia-rs")

    def image(self, data):
        return Image.decode(data)

    def row(self, item):
        number, draw = item
        image = self.image(self.data[number]).crop(draw.x, draw.y, draw.width, draw.height).resize(*draw.resized)
        if self.plan.mode == "eval":
            image = image.crop(*draw.window, self.plan.width, self.plan.height)
        return (image.flip_horizontal() if draw.flip else image).numpy()


class Zune(Participant):
    def version(self):
        return f"{super().version()} (zune-jpeg 0.5.15)"

    def image(self, data):
        pixels = decode_image_jpeg(data)
        return Image.from_numpy(pixels if pixels.shape[2] == 3 else np.repeat(pixels, 3, axis=2))
