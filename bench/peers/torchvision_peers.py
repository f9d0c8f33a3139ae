"""torchvision in torch's DataLoader: files in memory, one worker process per core (none on one core), persistent workers, batches of BATCH."""

import io

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Sampler
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import functional

from peer import BATCH, PAD, Peer, versions

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


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


def pil_row(data, plan, draw):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    size = [plan.height, plan.width]
    if plan.mode == "train":
        image = functional.resized_crop(image, draw.y, draw.x, draw.height, draw.width, size)
    elif plan.mode == "eval":
        image = functional.center_crop(functional.resize(image, 256), size)
    else:
        image = functional.pad(image, PAD)
        image = functional.crop(image, PAD + draw.shift[1], PAD + draw.shift[0], *size)
    return functional.hflip(image) if draw.flip else image


class Pil(TorchPeer):
    """Pillow + transforms, as ImageNet recipes do: crop, flip, ToTensor, Normalize."""

    def __init__(self, plan, threads):
        self.data = plan.read_files()
        super().__init__(plan, threads)

    def version(self):
        return versions("torch", "torchvision", "pillow")

    def make_row(self, image, draw):
        row = functional.to_tensor(pil_row(self.data[image], self.plan, draw))
        return functional.normalize(row, MEAN, STD, inplace=True)


class PilBytes(Pil):
    """As Pil, but the sample stays uint8 (PILToTensor), as stoker's does, which is fairer."""

    def make_row(self, image, draw):
        return functional.pil_to_tensor(pil_row(self.data[image], self.plan, draw))


class V2(TorchPeer):
    """decode_jpeg and v2 transforms on uint8 tensors, antialiased."""

    def __init__(self, plan, threads):
        self.data = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in plan.read_files()]
        super().__init__(plan, threads)

    def version(self):
        return versions("torch", "torchvision")

    def decode(self, data):
        return decode_jpeg(data, ImageReadMode.RGB)

    def make_row(self, image, draw):
        from torchvision.transforms.v2 import functional as v2  # older versions have none

        row = self.decode(self.data[image])
        size = [self.plan.height, self.plan.width]
        if self.plan.mode == "train":
            row = v2.resized_crop(row, draw.y, draw.x, draw.height, draw.width, size, antialias=True)
        elif self.plan.mode == "eval":
            row = v2.center_crop(v2.resize(row, [256], antialias=True), size)
        else:
            row = v2.pad(row, [PAD])
            row = v2.crop(row, PAD + draw.shift[1], PAD + draw.shift[0], *size)
        return v2.horizontal_flip(row) if draw.flip else row
