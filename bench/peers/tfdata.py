"""tf.data: decode_and_crop_jpeg (decodes the crop only), resize, flip. It does not antialias, like
TensorFlow's ImageNet recipes; Antialiased does: Pillow's pixels except for rounding."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

from peer import BATCH, Peer, versions


class Participant(Peer):
    antialias = False

    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        numbers = [
            [d.y, d.x, d.height, d.width, d.resized[1], d.resized[0], d.window[1], d.window[0], d.flip]
            for draws in plan.draws
            for d in draws
        ]
        self.data = tf.constant(plan.read_files())
        self.draws = tf.constant(np.array(numbers, np.int32))
        self.range = tf.Variable([0, 0], dtype=tf.int64)  # the samples of this run, numbered through all rounds
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        options.threading.max_intra_op_parallelism = 1
        options.autotune.enabled = False
        # The range is read when an iterator is made, so that the graph is traced once.
        rows = tf.data.Dataset.from_tensors(0).flat_map(lambda _: tf.data.Dataset.range(self.range[0], self.range[1]))
        rows = rows.map(self._row, num_parallel_calls=threads if threads > 1 else None).batch(BATCH)
        if threads > 1:
            rows = rows.prefetch(2)
        self.dataset = rows.with_options(options)

    def version(self):
        return versions("tensorflow-cpu")

    def _row(self, index):
        draw = self.draws[index]
        pixels = tf.io.decode_and_crop_jpeg(self.data[index % len(self.plan.files)], draw[:4], channels=3)
        pixels = tf.image.resize(pixels, draw[4:6], antialias=self.antialias)
        if self.plan.mode == "eval":
            pixels = tf.slice(pixels, [draw[6], draw[7], 0], [self.plan.height, self.plan.width, 3])
        pixels = tf.cast(tf.clip_by_value(tf.round(pixels), 0, 255), tf.uint8)
        pixels = tf.cond(draw[8] > 0, lambda: pixels[:, ::-1], lambda: pixels)
        return tf.ensure_shape(pixels, (self.plan.height, self.plan.width, 3))

    def batches(self, first, count):
        images = len(self.plan.files)
        self.range.assign([first * images, (first + count) * images])
        return iter(self.dataset)

    def rows(self, batch):
        return batch.numpy().tobytes()


class Antialiased(Participant):
    antialias = True
