"""Runs PyTorch's training step of a torchvision ResNet for gpu-check. Answers each line on stdin
with one line of JSON.

It is set up as PyTorch's guides recommend: channels_last, bf16 autocast, cudnn.benchmark, a fused
SGD; --compile adds torch.compile on the model. Without --data the batch is random, on the device,
and already normalised, which saves it work that stoker's step includes. With --data DIR torchvision
feeds it: ImageFolder, RandomResizedCrop, flip, DataLoader with pinned memory; pixels are copied as
bytes and normalised on the device, which is faster than in the workers.

"run N" on stdin times N steps and answers {"images_per_second": ..., "step_ms": ...}; the program
ends with stdin.
"""
import argparse
import os
import shutil
import sys
import time

from torch_answers import import_torch, say


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--compile", choices=["none", "default", "max-autotune"], default="none")
    parser.add_argument("--warmup", type=int, default=10, help="steps before the first answer")
    parser.add_argument("--data", help="an image folder: fed by a DataLoader")
    parser.add_argument("--workers", type=int, default=16)
    return parser.parse_args()


def need_shared_memory(args):
    """Exits if /dev/shm is too small for the workers' batches, two per worker: the workers would
    die."""
    needed = (2 * args.workers + 1) * args.batch * 3 * args.size * args.size
    free = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    if args.workers and free < needed:
        say(not_run=f"/dev/shm has {free >> 20} MiB, {args.workers} workers of a DataLoader need {needed >> 20}")
        sys.exit(0)


def fed_batches(args, torch):
    """Yields batches of the image folder endlessly, read as in PyTorch's ImageNet example, as bytes
    up to the device."""
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms
    dataset = datasets.ImageFolder(args.data, transforms.Compose([
        transforms.RandomResizedCrop(args.size), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]))
    loader = DataLoader(dataset, args.batch, shuffle=True, num_workers=args.workers, drop_last=True,
                        pin_memory=args.device != "cpu", persistent_workers=args.workers > 0)
    mean = 255 * torch.tensor((0.485, 0.456, 0.406), device=args.device).view(1, 3, 1, 1)
    deviation = 255 * torch.tensor((0.229, 0.224, 0.225), device=args.device).view(1, 3, 1, 1)
    while True:
        for images, labels in loader:
            images = images.to(args.device, non_blocking=True).to(memory_format=torch.channels_last)
            yield (images - mean) / deviation, labels.to(args.device, non_blocking=True)


def batches(args, torch):
    if args.data:
        yield from fed_batches(args, torch)
    images = torch.randn(args.batch, 3, args.size, args.size, device=args.device)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, args.classes, (args.batch,), device=args.device)
    while True:
        yield images, labels


def make_step(args, torch):
    import torchvision
    model = getattr(torchvision.models, args.model)(num_classes=args.classes)
    model = model.to(args.device, memory_format=torch.channels_last)
    fused = {"fused": True} if args.device != "cpu" else {}
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-5, **fused)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    net = model if args.compile == "none" else torch.compile(model, mode=args.compile)
    feed = batches(args, torch)

    def step():
        images, labels = next(feed)
        with torch.autocast(args.device.split(":")[0], dtype=torch.bfloat16):
            loss = loss_of(net(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss
    return step


def compile_problem(dynamo):
    """Returns why torch.compile did not compile the whole step, or None. It continues eagerly and
    only its counters show that. `dynamo` is torch._dynamo."""
    counters = dynamo.utils.counters
    breaks, frames = dict(counters["graph_break"]), counters["frames"]
    if dynamo.config.suppress_errors:
        return "torch._dynamo.config.suppress_errors is on: errors would fall back to eager"
    if breaks:
        return f"{sum(breaks.values())} graph breaks: {'; '.join(breaks)}"
    if frames["ok"] != frames["total"] or not counters["stats"]["unique_graphs"]:
        return f"{frames['ok']} of {frames['total']} frames were compiled, {counters['stats']['unique_graphs']} graphs"
    return None


def compile_note(dynamo):
    """Returns a note about CUDA graphs that torch.compile left out without falling back to
    eager."""
    skips = dynamo.utils.counters["inductor"]["cudagraph_skips"]
    return {"note": f"Inductor used no CUDA graph {skips} times"} if skips else {}


def timed(step, count, wait):
    wait()
    start = time.monotonic()
    for _ in range(count):
        step()
    wait()
    return time.monotonic() - start


def main():
    args = parse()
    torch, _ = import_torch(args.device)
    if args.compile != "none" and not hasattr(torch, "compile"):
        return say(not_run=f"torch {torch.__version__} has no torch.compile")
    if args.data:
        need_shared_memory(args)
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    wait = torch.cuda.synchronize if args.device != "cpu" else (lambda: None)
    step = make_step(args, torch)
    seconds = timed(step, args.warmup, wait)
    note = {}
    if args.compile != "none":
        problem = compile_problem(torch._dynamo)
        if problem:
            return say(failed=f"torch.compile fell back to eager: {problem}")
        note = compile_note(torch._dynamo)
    say(ready=True, torch=torch.__version__, warmup_seconds=seconds, **note)
    for line in sys.stdin:
        count = int(line.split()[1])
        seconds = timed(step, count, wait)
        say(images_per_second=count * args.batch / seconds, step_ms=1e3 * seconds / count)


if __name__ == "__main__":
    main()
