"""Feeds PyTorch and JAX on a GPU with stoker's Python package, for gpu-check; prints one line of JSON.

First what must hold: the tensors on the GPU are those of the host, bit for bit as bytes and within rounding as normalised
floats; a step that is late does not change what it reads, on any stream; tensors that are held keep their values while
later batches are made. Then images/s of torchvision's ResNet-18 (224 px, bf16, channels_last) on a batch that stays on the
GPU, fed by stoker, and fed by torchvision's ImageFolder and DataLoader, in turn.
"""
import argparse
import os
import statistics
import sys
import time
import traceback
from types import SimpleNamespace

import torch_resnet
from runner import summary
from torch_answers import import_torch, say

HELD = 2  # batches that are held at once; a loader leases three


def same_tensors(torch, stoker, source):
    """Returns the number of batches whose tensors were compared with the host's."""
    options = {"batch_size": 64, "size": 160, "augment": stoker.random_resized_crop() | stoker.flip(), "seed": 3, "epochs": 1}
    kinds = ({}, {"dtype": "float32", "layout": "NCHW", "mean": stoker.IMAGENET_MEAN, "std": stoker.IMAGENET_STD},
             {"dtype": "float16", "layout": "channels_last", "mean": stoker.IMAGENET_MEAN, "std": stoker.IMAGENET_STD})
    side, compared, largest = torch.cuda.Stream(), 0, 0.0
    for kind in kinds:
        with stoker.Loader(source, copy=True, **options, **kind) as host:
            expected = [(torch.from_dlpack(b.images).clone(), torch.from_dlpack(b.labels).clone()) for b, _ in zip(host, range(12))]
        with stoker.Loader(source, device="cuda:0", **options, **kind) as loader:
            kept = []
            for number, (batch, (images, labels)) in enumerate(zip(loader, expected)):
                stream = side if number % 2 else torch.cuda.current_stream()
                with torch.cuda.stream(stream):
                    torch.cuda._sleep(20_000_000)  # a step that is late: about ten milliseconds
                    ours, answers = torch.from_dlpack(batch.images), torch.from_dlpack(batch.labels)
                    assert ours.is_cuda and ours.shape == images.shape and ours.dtype == images.dtype, (ours.shape, ours.dtype)
                    kept.append((ours.clone(), answers.clone(), images, labels))
                del ours, answers, batch
            torch.cuda.synchronize()
            for ours, answers, images, labels in kept:
                compared += 1
                assert torch.equal(answers.cpu(), labels), "labels differ"
                difference = (ours.cpu().float() - images.float()).abs().max().item()
                largest = max(largest, difference)
                bound = 0 if ours.dtype == torch.uint8 else 2e-6 if ours.dtype == torch.float32 else 2e-3
                assert difference <= bound, f"{kind}: batch differs by {difference}"
    return {"batches": compared, "largest_difference": largest}


def held_batches(torch, stoker, source):
    """Returns how many batches kept their values while others were made, each held for as long as it may be."""
    held, count = [], 0
    with stoker.Loader(source, device="cuda:0", batch_size=64, size=96, augment="random_resized_crop(96)", seed=1) as loader:
        for _, batch in zip(range(10), loader):
            images = torch.from_dlpack(batch.images)
            held.append((images, images.clone()))
            if len(held) == HELD:
                torch.cuda.synchronize()
                assert all(torch.equal(a, b) for a, b in held), "a tensor that is held changed"
                held.pop(0)
                count += 1
            del images, batch
    return {"held": count}


def adapter(torch, torchvision, folder):
    """Returns the mean loss of the first and of the last ten of 61 steps on stoker.torch's loader."""
    from stoker.torch import DataLoader, ImageFolder
    from torchvision import transforms as t
    transform = t.Compose([t.RandomResizedCrop(128), t.RandomHorizontalFlip(), t.ToTensor(), t.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    loader = DataLoader(ImageFolder(folder, transform), batch_size=64, shuffle=True, device="cuda", num_workers=8)
    torch.manual_seed(0)
    net = torchvision.models.resnet18(num_classes=len(loader.dataset.classes)).cuda()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for number, (images, labels) in enumerate(batch for _ in range(20) for batch in loader):
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
        if number == 60:
            break
    losses = [x.item() for x in losses]
    first, last = statistics.fmean(losses[:10]), statistics.fmean(losses[-10:])
    assert last < first, (first, last)
    return {"first": first, "last": last}


def train_step(torch, torchvision, classes):
    net = torchvision.models.resnet18(num_classes=classes).cuda().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)

    def step(images, labels):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return step


def rate(torch, step, batches, warm_up, count, batch):
    for number, (images, labels) in enumerate(batches):
        if number == warm_up:
            torch.cuda.synchronize()
            start = time.perf_counter()
        step(images, labels)
        if number == warm_up + count - 1:
            break
    torch.cuda.synchronize()
    return count * batch / (time.perf_counter() - start)


def rates(torch, torchvision, stoker, args):
    batch, count, warm_up = 256, args.steps, 20
    source = stoker.folder(args.data)
    step = train_step(torch, torchvision, len(source.classes))

    def theirs(data):
        """As torch_resnet.py is fed: a batch that stays, or a folder by torchvision's ImageFolder and a DataLoader."""
        return torch_resnet.batches(SimpleNamespace(data=data, size=224, batch=batch, classes=len(source.classes), device="cuda",
                                                    workers=args.workers), torch)

    def ours():
        with stoker.Loader(source, batch_size=batch, size=224, augment=stoker.random_resized_crop() | stoker.flip(), dtype="float32",
                           layout="channels_last", mean=stoker.IMAGENET_MEAN, std=stoker.IMAGENET_STD, device="cuda:0", seed=0) as loader:
            while True:
                for b in loader:
                    yield torch.from_dlpack(b.images), torch.from_dlpack(b.labels).long()

    found = {"resident": [], "stoker": [], "torchvision": []}
    for _ in range(args.rounds):
        found["resident"].append(rate(torch, step, theirs(None), warm_up, count, batch))
        found["stoker"].append(rate(torch, step, ours(), warm_up, count, batch))
        found["torchvision"].append(rate(torch, step, theirs(args.data), warm_up, args.their_steps, batch))
    return {name: summary(values) for name, values in found.items()}


def jax_batches(stoker, source):
    """Returns the device of arrays that stoker.jax makes, which must be those of the host's Loader."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
    except ImportError as error:
        return {"not_run": f"this Python has no JAX: {error}"}
    import numpy
    from stoker.jax import Loader
    with stoker.Loader(source, batch_size=32, size=96, augment="resize_center_crop(96)", seed=0, dtype="float32", copy=True) as host:
        expected = numpy.asarray(next(iter(host)).images)
    batch = next(iter(Loader(source, batch_size=32, size=96, augment="resize_center_crop(96)", seed=0)))
    assert numpy.array_equal(numpy.asarray(batch.images), expected), "the arrays differ"
    return {"device": str(next(iter(batch.images.devices()))), "jax": jax.__version__}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="an image folder")
    parser.add_argument("--workers", type=int, default=min(16, os.cpu_count()))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--their-steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    torch, torchvision = import_torch("cpu")
    import stoker
    torch.backends.cudnn.benchmark = True
    source = stoker.folder(args.data)
    found = {"torch": torch.__version__, "devices": stoker.devices()}
    steps = {"tensors": lambda: same_tensors(torch, stoker, source), "held": lambda: held_batches(torch, stoker, source),
             "adapter": lambda: adapter(torch, torchvision, args.data),
             "rates": lambda: rates(torch, torchvision, stoker, args), "jax": lambda: jax_batches(stoker, source)}
    for name, function in steps.items():
        start = time.monotonic()
        try:
            found[name] = function()
        except Exception as error:
            traceback.print_exc()
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:400]}
        found[name]["seconds"] = time.monotonic() - start
    say(**found)
    return 1 if any("failed" in v for v in found.values() if isinstance(v, dict)) else 0


if __name__ == "__main__":
    sys.exit(main())
