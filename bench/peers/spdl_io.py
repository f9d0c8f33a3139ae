"""SPDL: FFmpeg decodes; its filters crop, scale (swscale's bilinear) and mirror. On several cores
it runs SPDL's own pipeline with one decoding thread per core; on one core it makes the same calls
one after the other."""

import numpy as np
import spdl.io
from spdl.pipeline import PipelineBuilder

from peer import BATCH, Peer, versions


class Participant(Peer):
    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        self.data = plan.read_files()
        self.jpeg = spdl.io.demux_config(format="jpeg_pipe")  # FFmpeg does not look for the format

    def version(self):
        return versions("spdl-core", "spdl-io")

    def _decode(self, item):
        image, draw = item
        filters = [f"crop={draw.width}:{draw.height}:{draw.x}:{draw.y}:exact=1"]
        filters.append("scale={}:{}:flags=bilinear".format(*draw.resized))
        if self.plan.mode == "eval":
            filters.append(f"crop={self.plan.width}:{self.plan.height}:{draw.window[0]}:{draw.window[1]}:exact=1")
        if draw.flip:
            filters.append("hflip")
        filters.append("format=pix_fmts=rgb24")
        packets = spdl.io.demux_image(self.data[image], demux_config=self.jpeg)
        return spdl.io.decode_packets(packets, filter_desc=",".join(filters))

    def _convert(self, frames):
        return spdl.io.to_numpy(spdl.io.convert_frames(frames))

    def batches(self, first, count):
        items = list(self.plan.items(first, count))
        if self.threads == 1:
            for start in range(0, len(items), BATCH):
                yield self._convert([self._decode(item) for item in items[start : start + BATCH]])
            return
        builder = PipelineBuilder().add_source(items)
        builder = builder.pipe(self._decode, concurrency=self.threads, output_order="input")
        builder = builder.aggregate(BATCH).pipe(self._convert).add_sink(2)
        pipeline = builder.build(num_threads=self.threads)
        with pipeline.auto_stop():
            yield from pipeline

    def rows(self, batch):
        return np.ascontiguousarray(batch).tobytes()
