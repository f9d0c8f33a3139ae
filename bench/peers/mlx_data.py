"""Apple's mlx-data: load_image, random_area_crop, resize, random flip, batch, prefetch threads. Its
operations draw their own crops; for the quality column a Python function applies the plan's
crops."""

import mlx.data as dx
import numpy as np

from peer import BATCH, Peer, versions


class Participant(Peer):
    given = "distribution"

    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        data = [np.frombuffer(bytearray(data), np.uint8) for data in plan.read_files()]
        self.files = dx.buffer_from_vector([{"image": d, "number": i} for i, d in enumerate(data)])

    def version(self):
        return versions("mlx-data")

    def batches(self, first, count):
        images = self.files.perm(list(range(len(self.plan.files))) * count)
        images = images.load_image("image", from_memory=True)
        images = images.image_random_area_crop("image", (0.08, 1.0), (3 / 4, 4 / 3))
        images = images.image_resize("image", self.plan.width, self.plan.height)
        images = images.image_random_h_flip("image", 0.5).batch(BATCH)
        stream = images.ordered_prefetch(2, self.threads) if self.threads > 1 else images.to_stream()
        return (batch["image"] for batch in stream)

    def _crop(self, sample):
        d = self.plan.draws[0][int(sample["number"])]
        crop = sample["image"][d.y : d.y + d.height, d.x : d.x + d.width]
        return {"image": np.ascontiguousarray(crop), "number": sample["number"]}

    def plan_batches(self):
        images = self.files.load_image("image", from_memory=True).sample_transform(self._crop)
        images = images.image_resize("image", self.plan.width, self.plan.height).batch(BATCH)
        for start, batch in zip(range(0, len(self.plan.files), BATCH), images.to_stream()):
            rows = batch["image"]
            for row, draw in zip(rows, self.plan.draws[0][start : start + BATCH]):
                if draw.flip:
                    row[:] = row[:, ::-1].copy()
            yield rows

    def rows(self, batch):
        return batch.tobytes()
