"""SPDL: a pipeline of threads; FFmpeg decodes and resizes photos/test."""

import pathlib

import spdl.io
from spdl.pipeline import PipelineBuilder

files = sorted(pathlib.Path("photos/test").glob("*/*.jpg"))
classes = sorted({path.parent.name for path in files})


def decode(path):
    packets = spdl.io.demux_image(str(path))
    filters = "scale=64:64:flags=bilinear,format=pix_fmts=rgb24"
    return spdl.io.decode_packets(packets, filter_desc=filters), classes.index(path.parent.name)


def batch_of(rows):
    frames, labels = zip(*rows)
    return spdl.io.to_numpy(spdl.io.convert_frames(list(frames))), labels


builder = PipelineBuilder().add_source(files).pipe(decode, concurrency=2, output_order="input")
pipeline = builder.aggregate(16).pipe(batch_of).add_sink(2).build(num_threads=2)
taken = []
with pipeline.auto_stop():
    for images, labels in pipeline:
        assert images.shape[1:] == (64, 64, 3)
        taken += labels
print("samples", len(taken))
print("labels", taken)
