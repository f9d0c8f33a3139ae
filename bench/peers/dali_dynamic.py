"""DALI's dynamic mode, CPU only: the operators of dali.py, called one after the other on batches, without a pipeline or prefetching."""

import numpy as np
import nvidia.dali.experimental.dynamic as ndd
from nvidia.dali import __version__, types

from peer import BATCH, Peer


def _batch(values, kind):
    return ndd.as_batch([np.array(value, kind) for value in values])


class Participant(Peer):
    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        self.data = [np.frombuffer(data, np.uint8) for data in plan.read_files()]
        self.context = ndd.EvalContext(num_threads=threads)

    def version(self):
        return f"DALI {__version__}"

    def _rows(self, chunk):
        draws = [draw for _, draw in chunk]
        files = ndd.as_batch([self.data[image] for image, _ in chunk])
        anchor, shape = _batch([(d.y, d.x) for d in draws], np.int32), _batch([(d.height, d.width) for d in draws], np.int32)
        images = ndd.decoders.image_slice(files, anchor, shape, axis_names="HW", adjust_orientation=False)
        size = _batch([d.resized[::-1] for d in draws], np.float32)
        images = ndd.resize(images, size=size, interp_type=types.INTERP_LINEAR, antialias=True)
        if self.plan.mode == "eval":
            images = ndd.slice(images, _batch([d.window[::-1] for d in draws], np.int32), (self.plan.height, self.plan.width), axis_names="HW")
        return ndd.as_tensor(ndd.flip(images, horizontal=_batch([d.flip for d in draws], np.int32)))

    def batches(self, first, count):
        items = list(self.plan.items(first, count))
        with self.context:
            for start in range(0, len(items), BATCH):
                yield np.asarray(self._rows(items[start : start + BATCH]))

    def rows(self, batch):
        return batch.tobytes()
