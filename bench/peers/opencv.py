"""Arrays: a library decodes to one, crops are slices, a library resizes, OpenCV flips; a pool of threads, one image per thread.
OpenCV's bilinear resize is not antialiased (and INTER_AREA is slower), so its pixels differ from Pillow's."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np

from peer import BATCH, PAD, Peer

DECODE = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION


class Participant(Peer):
    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        cv2.setNumThreads(1)
        self.data = plan.read_files()
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def version(self):
        return f"OpenCV {cv2.__version__}"

    def decode(self, data):
        """Returns (H, W, 3) u8."""
        return cv2.imdecode(np.frombuffer(data, np.uint8), DECODE)

    def resize(self, pixels, size):
        """Returns the pixels with another (width, height)."""
        return cv2.resize(pixels, size, interpolation=cv2.INTER_LINEAR)

    def row(self, item):
        image, draw = item
        pixels = self.decode(self.data[image])
        width, height = self.plan.width, self.plan.height
        if self.plan.mode == "cifar":
            pixels = cv2.copyMakeBorder(pixels, PAD, PAD, PAD, PAD, cv2.BORDER_CONSTANT)
            x, y = PAD + draw.shift[0], PAD + draw.shift[1]
        else:
            pixels = self.resize(pixels[draw.y : draw.y + draw.height, draw.x : draw.x + draw.width], draw.resized)
            x, y = draw.window
        pixels = pixels[y : y + height, x : x + width]
        return cv2.flip(pixels, 1) if draw.flip else pixels

    def _fill(self, item, out):
        out[:] = self.row(item)

    def batches(self, first, count):
        items = list(self.plan.items(first, count))
        run = self.pool.map if self.pool else map
        for start in range(0, len(items), BATCH):
            chunk = items[start : start + BATCH]
            batch = np.empty((len(chunk), self.plan.height, self.plan.width, 3), np.uint8)
            list(run(self._fill, chunk, batch))
            yield batch

    def rows(self, batch):
        return batch.tobytes()
