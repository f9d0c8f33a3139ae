"""Grain: a MapDataset of records in memory, whose function is OpenCV's row; one core reads without threads, as Grain advises for records in
memory, several with a thread each."""

import grain

import opencv
from peer import BATCH, versions


class Participant(opencv.Participant):
    def version(self):
        return f"{versions('grain')}, {super().version()}"

    def batches(self, first, count):
        records = grain.MapDataset.source(list(self.plan.items(first, count)))
        threads = self.threads if self.threads > 1 else 0
        options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4 * threads)
        return records.map(self.row).to_iter_dataset(options).batch(BATCH)
