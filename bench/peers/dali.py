"""NVIDIA DALI, CPU only: decoders.image_slice (decodes the crop only), resize (antialiased), flip."""

from itertools import islice

import numpy as np
import nvidia.dali as dali
from nvidia.dali import fn, types

from peer import BATCH, Peer


class Participant(Peer):
    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        self.data = [np.frombuffer(data, np.uint8) for data in plan.read_files()]
        self.pending = iter(())
        self.pipeline = self._pipeline(batch_size=BATCH, num_threads=threads, device_id=None, prefetch_queue_depth=2)
        self.pipeline.build()

    def version(self):
        return f"DALI {dali.__version__}"

    @dali.pipeline_def
    def _pipeline_of(self):
        files, anchor, shape, size, window, flip = fn.external_source(source=self._next, num_outputs=6)
        images = fn.decoders.image_slice(files, anchor, shape, axis_names="HW", adjust_orientation=False)
        images = fn.resize(images, size=size, interp_type=types.INTERP_LINEAR, antialias=True)
        if self.plan.mode == "eval":
            images = fn.slice(images, window, (self.plan.height, self.plan.width), axis_names="HW")
        return fn.flip(images, horizontal=flip)

    def _pipeline(self, **options):
        return Participant._pipeline_of(self, **options)

    def _next(self):
        chunk = list(islice(self.pending, BATCH))
        if not chunk:
            raise StopIteration
        draws = [draw for _, draw in chunk]
        return (
            [self.data[image] for image, _ in chunk],
            [np.array([d.y, d.x], np.int32) for d in draws],
            [np.array([d.height, d.width], np.int32) for d in draws],
            [np.array(d.resized[::-1], np.float32) for d in draws],
            [np.array(d.window[::-1], np.int32) for d in draws],
            [np.array(d.flip, np.int32) for d in draws],
        )

    def batches(self, first, count):
        self.pending = self.plan.items(first, count)
        self.pipeline.reset()
        while True:
            try:
                (batch,) = self.pipeline.run()
            except StopIteration:
                return
            yield batch

    def rows(self, batch):
        return batch.as_array().tobytes()
