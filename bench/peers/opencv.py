"""OpenCV: imdecode, crop, resize, flip on a pool of threads, one image per thread. Its bilinear
resize is not antialiased (and INTER_AREA is slower), so its pixels differ from Pillow's."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np

from peer import BATCH, PAD, Peer

DECODE = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION


class Participant(Peer):
    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        cv2.setNumThreads(1)
        self.data = [np.frombuffer(data, np.uint8) for data in plan.read_files()]
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def version(self):
        return f"OpenCV {cv2.__version__}"

    def _row(self, image, draw, out):
        pixels = cv2.imdecode(self.data[image], DECODE)
        width, height = self.plan.width, self.plan.height
        if self.plan.mode == "cifar":
            pixels = cv2.copyMakeBorder(pixels, PAD, PAD, PAD, PAD, cv2.BORDER_CONSTANT)
            x, y = PAD + draw.shift[0], PAD + draw.shift[1]
        else:
            pixels = pixels[draw.y : draw.y + draw.height, draw.x : draw.x + draw.width]
            pixels = cv2.resize(pixels, draw.resized, interpolation=cv2.INTER_LINEAR)
            x, y = draw.window
        pixels = pixels[y : y + height, x : x + width]
        out[:] = cv2.flip(pixels, 1) if draw.flip else pixels

    def batches(self, first, count):
        items = list(self.plan.items(first, count))
        for start in range(0, len(items), BATCH):
            chunk = items[start : start + BATCH]
            batch = np.empty((len(chunk), self.plan.height, self.plan.width, 3), np.uint8)
            work = [(image, draw, out) for (image, draw), out in zip(chunk, batch)]
            run = self.pool.map if self.pool else map
            list(run(lambda item: self._row(*item), work))
            yield batch

    def rows(self, batch):
        return batch.tobytes()
