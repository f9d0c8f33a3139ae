"""The base class of participants that use torch's DataLoader: files in memory, one worker process
per core (none on one core), persistent workers, batches of BATCH."""

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from peer import BATCH, Peer


class _Rows(Dataset):
    def __init__(self, plan, make_row):
        self.plan = plan
        self.make_row = make_row

    def __len__(self):
        return len(self.plan.files) * len(self.plan.draws)

    def __getitem__(self, index):
        round_, image = divmod(index, len(self.plan.files))
        return self.make_row(image, self.plan.draws[round_][image])


class _Rounds(Sampler):
    def __init__(self):
        self.range = range(0)

    def __len__(self):
        return len(self.range)

    def __iter__(self):
        return iter(self.range)


class TorchPeer(Peer):
    def __init__(self, plan, threads):
        super().__init__(plan, threads)
        torch.set_num_threads(1)
        workers = threads if threads > 1 else 0
        self.rounds = _Rounds()
        self.loader = DataLoader(
            _Rows(plan, self.make_row),
            batch_size=BATCH,
            sampler=self.rounds,
            num_workers=workers,
            persistent_workers=workers > 0,
        )

    def make_row(self, image, draw):
        """Returns the sample as a (3, H, W) tensor."""
        raise NotImplementedError

    def batches(self, first, count):
        images = len(self.plan.files)
        self.rounds.range = range(first * images, (first + count) * images)
        return self.loader

    def rows(self, batch):
        if batch.dtype != torch.uint8:
            return None
        return batch.permute(0, 2, 3, 1).contiguous().numpy().tobytes()
