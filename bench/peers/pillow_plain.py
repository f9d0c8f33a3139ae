"""Pillow alone, the reference of the quality column: open, convert, crop, resize (antialiased), flip."""

import io
from concurrent.futures import ThreadPoolExecutor

import PIL
from PIL import Image

from peer import BATCH, Peer

BILINEAR = Image.Resampling.BILINEAR
MIRROR = Image.Transpose.FLIP_LEFT_RIGHT


def make_row(data, draw, width, height):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image = image.crop((draw.x, draw.y, draw.x + draw.width, draw.y + draw.height))
    if draw.resized != image.size:
        image = image.resize(draw.resized, BILINEAR)
    x, y = draw.window[0] + draw.shift[0], draw.window[1] + draw.shift[1]
    if (x, y, width, height) != (0, 0, *image.size):
        image = image.crop((x, y, x + width, y + height))  # zeros outside
    return image.transpose(MIRROR) if draw.flip else image


class Participant(Peer):
    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        self.data = plan.read_files()
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def version(self):
        return f"Pillow {PIL.__version__}"

    def _row(self, item):
        image, draw = item
        return make_row(self.data[image], draw, self.plan.width, self.plan.height).tobytes()

    def batches(self, first, count):
        items = list(self.plan.items(first, count))
        rows = self.pool.map(self._row, items) if self.pool else map(self._row, items)
        batch = []
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def rows(self, batch):
        return b"".join(batch)
