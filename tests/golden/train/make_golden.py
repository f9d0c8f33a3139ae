#!/usr/bin/python3
"""Writes a file for each of some models: PyTorch's results for one training step, in float64. In
airnet_mixed.json each row has two labels, with a share of its own. Dropout is off, because PyTorch
draws its own. VGG's widths are small, by torchvision's own class.

Weights, statistics and pictures come from a formula that golden_test.cc also has, so the files
have only results. Run with the system's Python (python3-torch, python3-torchvision); without names
it writes all files:

    /usr/bin/python3 tests/golden/train/make_golden.py [NAME...]

The files contain the versions that made them.
"""
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

CLASSES, SEED = 10, 77
MEAN, STDDEV = (0.5, 0.45, 0.4), (0.25, 0.22, 0.2)
LEARNING_RATE, WEIGHT_DECAY, MOMENTUM = 0.05, 5e-4, 0.9
KEPT = 4  # leading values per tensor


def noise(seed, count):
    """Returns 32 well-mixed bits per index (SplitMix64 of seed << 32 | index)."""
    with np.errstate(over="ignore"):
        z = (np.uint64(seed) << np.uint64(32)) | np.arange(count, dtype=np.uint64)
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z >> np.uint64(32)).astype(np.int64)


def centred(seed, shape):
    """Returns values in [-1, 1), float64."""
    return (noise(seed, math.prod(shape)) / 2147483648.0 - 1.0).reshape(shape)


def parameter_values(index, name, shape):
    values = centred(1000 + index, shape)
    if len(shape) == 4:
        values = values * math.sqrt(6.0 / (shape[0] * shape[2] * shape[3]))
    elif len(shape) == 2:
        values = values / math.sqrt(shape[1])
    elif name.endswith("weight"):
        values = 1.0 + 0.2 * values
    else:
        values = 0.2 * values
    return torch.from_numpy(values.astype(np.float32).astype(np.float64))


def statistics_values(index, name, shape):
    values = centred(5000 + index, shape)
    values = 0.1 * values if name.endswith("mean") else 1.0 + 0.5 * values
    return torch.from_numpy(values.astype(np.float32).astype(np.float64))


class AirBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding="same", bias=False)
        self.norm1 = nn.BatchNorm2d(outputs, eps=1e-5, momentum=0.4)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding="same", bias=False)
        self.norm2 = nn.BatchNorm2d(outputs, eps=1e-5, momentum=0.4)

    def forward(self, x):
        x = F.gelu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        return F.gelu(self.norm2(self.conv2(x)))


class AirNet(nn.Module):
    """cifar10-airbench's airbench94 net."""

    def __init__(self):
        super().__init__()
        self.whiten = nn.Conv2d(3, 24, 2, padding=0, bias=True)
        self.layers = nn.ModuleList([AirBlock(24, 64), AirBlock(64, 256), AirBlock(256, 256)])
        self.head = nn.Linear(256, CLASSES, bias=False)

    def forward(self, x):
        x = F.gelu(self.whiten(x))
        for layer in self.layers:
            x = layer(x)
        return self.head(F.max_pool2d(x, 3).flatten(1)) / 9


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.conv1(F.relu(self.norm1(x)))], 1)


class DenseTransition(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, channels, 1, bias=False)

    def forward(self, x):
        return F.avg_pool2d(self.conv(F.relu(self.norm(x))), 2)


class CifarDenseNet(nn.Module):
    """Huang et al. 2016 without bottlenecks: three blocks, growth 12."""

    def __init__(self, depth):
        super().__init__()
        channels, growth = 16, 12
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, channels, 3, padding=1, bias=False))
        for block in (1, 2, 3):
            layers = nn.Sequential()
            for layer in range(1, (depth - 4) // 3 + 1):
                layers.add_module(f"denselayer{layer}", DenseLayer(channels, growth))
                channels += growth
            self.features.add_module(f"denseblock{block}", layers)
            if block < 3:
                self.features.add_module(f"transition{block}", DenseTransition(channels))
        self.features.add_module("norm4", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, CLASSES)

    def forward(self, x):
        return self.classifier(F.relu(self.features(x)).mean((2, 3)))


def small_vgg16(batch_norm):
    widths = (8, 16, 16, 24, 24)
    layers = []
    for width, count in zip(widths, (2, 2, 3, 3, 3)):
        layers += [width] * count + ["M"]
    features = torchvision.models.vgg.make_layers(layers, batch_norm=batch_norm)
    model = torchvision.models.vgg.VGG(features, num_classes=CLASSES)
    model.classifier[0] = nn.Linear(widths[-1] * 49, 32)
    model.classifier[3] = nn.Linear(32, 32)
    model.classifier[6] = nn.Linear(32, CLASSES)
    return model


def with_auxiliary(model):
    return model(num_classes=CLASSES, aux_logits=True, init_weights=False)


def summary(tensor):
    flat = tensor.detach().flatten()
    return {"norm": flat.norm().item(), "sum": flat.sum().item(), "first": flat[:KEPT].tolist()}


def mixed_targets(labels):
    """Returns (rows, CLASSES) probabilities: each label with its share, the second with the rest.
    """
    second = torch.from_numpy(noise(SEED + 2, len(labels)) % CLASSES)
    share = torch.from_numpy(noise(SEED + 3, len(labels)) % 1025 / 1024.0)[:, None]
    return share * F.one_hot(labels, CLASSES) + (1 - share) * F.one_hot(second, CLASSES)


def losses(outputs, targets, label_smoothing, auxiliary_weight):
    """Returns the loss of the last head, and the sum over all heads."""
    heads = outputs if isinstance(outputs, tuple) else (outputs,)
    of_head = [F.cross_entropy(h, targets, label_smoothing=label_smoothing) for h in heads]
    return of_head[0], of_head[0] + auxiliary_weight * sum(of_head[1:])


def golden(make, size, label_smoothing, mixed=False, rows=6, auxiliary_weight=0.0):
    model = make().double()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    parameters = list(model.named_parameters())
    statistics = [(n, b) for n, b in model.named_buffers() if b.dtype.is_floating_point]
    with torch.no_grad():
        for i, (name, tensor) in enumerate(parameters):
            tensor.copy_(parameter_values(i, name, tuple(tensor.shape)))
        for i, (name, tensor) in enumerate(statistics):
            tensor.copy_(statistics_values(i, name, tuple(tensor.shape)))
    pixels = (noise(SEED, rows * size * size * 3) & 255).reshape(rows, size, size, 3)
    images = (torch.from_numpy(pixels).double() / 255 - torch.tensor(MEAN, dtype=torch.float64))
    images = (images / torch.tensor(STDDEV, dtype=torch.float64)).permute(0, 3, 1, 2).contiguous()
    labels = torch.from_numpy(noise(SEED + 1, rows) % CLASSES)

    model.eval()
    with torch.no_grad():
        before = model(images)
    model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM,
                                weight_decay=WEIGHT_DECAY, nesterov=True)
    targets = mixed_targets(labels) if mixed else labels
    loss, whole = losses(model(images), targets, label_smoothing, auxiliary_weight)
    whole.backward()
    gradients = {n: summary(p.grad) for n, p in parameters}
    optimiser.step()
    model.eval()
    with torch.no_grad():
        after = model(images)
    return {
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "size": size,
        "rows": rows,
        "classes": CLASSES,
        "seed": SEED,
        "label_smoothing": label_smoothing,
        "mixed": mixed,
        "learning_rate": LEARNING_RATE,
        "weight_decay": WEIGHT_DECAY,
        "momentum": MOMENTUM,
        "logits_before": before.flatten().tolist(),
        "loss": loss.item(),
        "gradients": gradients,
        "parameters": {n: summary(p) for n, p in parameters},
        "statistics": {n: summary(b) for n, b in statistics},
        "logits_after": after.flatten().tolist(),
    }


def main():
    torch.set_num_threads(2)
    zoo = torchvision.models
    folder = os.path.dirname(os.path.abspath(__file__))
    models = {
        "airnet": (AirNet, 32, 0.2),
        "airnet_mixed": (AirNet, 32, 0.2, True),
        "alexnet": (lambda: zoo.alexnet(num_classes=CLASSES), 224, 0.0, False, 2),
        "densenet40": (lambda: CifarDenseNet(40), 32, 0.0),
        "googlenet": (lambda: with_auxiliary(zoo.googlenet), 96, 0.1, False, 4, 0.3),
        "inception_v3": (
            lambda: with_auxiliary(zoo.inception_v3), 299, 0.1, False, 2, 0.4,
        ),
        "resnet18": (lambda: zoo.resnet18(num_classes=CLASSES), 64, 0.1),
        "vgg16": (lambda: small_vgg16(False), 64, 0.0),
        "vgg16_bn": (lambda: small_vgg16(True), 64, 0.0),
    }
    for name in sys.argv[1:] or models:
        arguments = models[name]
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump(golden(*arguments), file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
