"""Times one full training step of a model in PyTorch on the CPU; prints one JSON object.

The counterpart of train_step_bench.cc: the same nets, batch and precision, channels_last, autocast
for bf16, SGD with momentum. The input is normalised beforehand, which saves PyTorch work that
stoker's step includes.
"""
import argparse
import json
import pathlib
import resource
import sys
import time

import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class AirnetGroup(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.activation = nn.GELU()

    def forward(self, x):
        x = self.activation(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        return self.activation(self.norm2(self.conv2(x)))


def airnet(classes):
    whiten = nn.Conv2d(3, 24, 2)
    whiten.weight.requires_grad = False
    return nn.Sequential(whiten, nn.GELU(), AirnetGroup(24, 64), AirnetGroup(64, 256), AirnetGroup(256, 256),
                         nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, classes, bias=False))


def densenet(depth, classes):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests/golden/train"))
    import make_golden

    net = make_golden.CifarDenseNet(depth)
    net.classifier = nn.Linear(net.classifier.in_features, classes)
    return net


def build(model, classes):
    if model == "airnet":
        return airnet(classes)
    if model in ("densenet40", "densenet100"):
        return densenet(int(model.removeprefix("densenet")), classes)
    return getattr(torchvision.models, model)(num_classes=classes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="airnet")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = build(args.model, args.classes).to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01, momentum=0.9)
    images = torch.randn(args.batch, 3, args.size, args.size).to(memory_format=torch.channels_last)
    labels = torch.arange(args.batch) % args.classes

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            logits = model(images)
        loss = F.cross_entropy(logits.float(), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    step()
    step()
    rates = []
    cpu_before = time.process_time()
    for _ in range(args.steps):
        start = time.monotonic()
        step()
        rates.append(args.batch / (time.monotonic() - start))
    cpu = time.process_time() - cpu_before
    rates.sort()
    print(json.dumps({
        "library": f"torch {torch.__version__}", "model": args.model, "precision": args.precision, "batch": args.batch,
        "size": args.size, "images_per_second_median": rates[len(rates) // 2],
        "images_per_second_min": rates[0], "images_per_second_max": rates[-1],
        "cpu_seconds_per_1000_images": 1000 * cpu / (args.steps * args.batch),
        "peak_resident_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
