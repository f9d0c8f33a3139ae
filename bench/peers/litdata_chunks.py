"""LitData: a StreamingDataset over chunks that its own writer made of the files' bytes; it decodes them (by torchvision's decode_jpeg), v2
makes the rows. Reads the chunks from files, and draws its own crops; for the quality column it is given the plan's."""

import tempfile

import torch
from litdata import Jpeg, StreamingDataLoader, StreamingDataset, optimize
from torchvision.transforms import v2

from peer import BATCH, versions
from torchvision_peers import V2

CHUNK = 50  # samples; a worker takes whole chunks


def _sample(path):
    return Jpeg(path=path, max_quality=None)  # the bytes as they are


class Participant(V2):
    given = "distribution"

    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        self.folder = tempfile.TemporaryDirectory()
        optimize(fn=_sample, inputs=plan.files, output_dir=self.folder.name, chunk_size=CHUNK, num_workers=1, keep_data_ordered=True)
        transform = v2.Compose([v2.RandomResizedCrop((plan.height, plan.width), antialias=True), v2.RandomHorizontalFlip()])
        workers = threads if threads > 1 else 0
        self.loader = StreamingDataLoader(StreamingDataset(self.folder.name, transform=transform), batch_size=BATCH, num_workers=workers,
                                          persistent_workers=workers > 0)

    def version(self):
        return versions("litdata", "torch", "torchvision")

    def batches(self, first, count):
        for _ in range(count):
            yield from self.loader

    def plan_batches(self):
        self.data = StreamingDataset(self.folder.name)
        draws = self.plan.draws[0]
        for start in range(0, len(draws), BATCH):
            yield torch.stack([self.make_row(image, draws[image]) for image in range(start, min(start + BATCH, len(draws)))])

    def decode(self, data):
        return data  # LitData did
