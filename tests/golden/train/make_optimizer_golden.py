#!/usr/bin/python3
"""Writes optimizers.json: the weights of a small net after four steps with each optimizer, by
torch.optim and torch.nn.utils.clip_grad_norm_, in float64. PyTorch has no LARS; its steps are
written out here (You, Gitman, Ginsburg 2017, algorithm 1, with the rate outside of the momentum).

Weights, pictures and labels come from the formulas of make_golden.py. Run with the system's Python:

    /usr/bin/python3 tests/golden/train/make_optimizer_golden.py
"""
import json
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from make_golden import CLASSES, MEAN, ROWS, STDDEV, noise, parameter_values, summary

STEPS, SIZE = 4, 12  # the rate rises linearly over the steps

SGD = {"learning_rate": 0.1, "momentum": 0.9, "nesterov": False, "weight_decay": 0.01,
       "clip_norm": 0}
LARS = {**SGD, "learning_rate": 20, "trust": 0.001}
ADAM = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6, "weight_decay": 0.0,
        "clip_norm": 0}
CASES = [
    ("sgd", SGD),
    ("sgd", {**SGD, "nesterov": True, "clip_norm": 0.5}),
    ("sgd", {**SGD, "clip_norm": 1000}),
    ("lars", LARS),
    ("lars", {**LARS, "nesterov": True, "trust": 0.01, "clip_norm": 0.25}),
    ("adam", ADAM),
    ("adam", {**ADAM, "beta2": 0.999, "weight_decay": 0.1}),
    ("adamw", {**ADAM, "weight_decay": 0.1}),
    ("adamw", {**ADAM, "beta1": 0.8, "weight_decay": 0.05, "clip_norm": 0.5}),
]


def tiny():
    net = nn.Sequential()
    net.add_module("conv", nn.Conv2d(3, 8, 3, padding=1, bias=False))
    net.add_module("norm", nn.BatchNorm2d(8, eps=1e-5, momentum=0.1))
    net.add_module("relu", nn.ReLU())
    net.add_module("pool", nn.AdaptiveAvgPool2d(1))
    net.add_module("flat", nn.Flatten())
    net.add_module("fc", nn.Linear(8, CLASSES))
    return net.double()


def batch(step):
    pixels = (noise(50 + step, ROWS * SIZE * SIZE * 3) & 255).reshape(ROWS, SIZE, SIZE, 3)
    images = torch.from_numpy(pixels).double() / 255 - torch.tensor(MEAN, dtype=torch.float64)
    images = (images / torch.tensor(STDDEV, dtype=torch.float64)).permute(0, 3, 1, 2).contiguous()
    return images, torch.from_numpy(noise(51 + step, ROWS) % CLASSES)


class Lars(torch.optim.Optimizer):
    def __init__(self, groups, lr, momentum, nesterov, trust):
        super().__init__(groups, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "trust": trust})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                g = weight.grad
                decay, norm, of_g = group["weight_decay"], weight.norm(), g.norm()
                ratio = group["trust"] * norm / (of_g + decay * norm) if group["adapted"] else 1.0
                g = ratio * (g + decay * weight)
                velocity = self.state[weight].setdefault("velocity", torch.zeros_like(weight))
                velocity.mul_(group["momentum"]).add_(g)
                if group["nesterov"]:
                    velocity = g + group["momentum"] * velocity
                weight.sub_(group["lr"] * velocity)


def make_optimizer(kind, case, groups):
    rate = case["learning_rate"]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=case["momentum"],
                               nesterov=case["nesterov"])
    if kind == "lars":
        return Lars(groups, rate, case["momentum"], case["nesterov"], case["trust"])
    make = torch.optim.Adam if kind == "adam" else torch.optim.AdamW
    return make(groups, lr=rate, betas=(case["beta1"], case["beta2"]), eps=case["epsilon"])


def golden(kind, case):
    net = tiny()
    named = list(net.named_parameters())
    with torch.no_grad():
        for i, (name, tensor) in enumerate(named):
            tensor.copy_(parameter_values(i, name, tuple(tensor.shape)))
    decayed = [p for n, p in named if n in ("conv.weight", "fc.weight")]
    others = [p for n, p in named if n not in ("conv.weight", "fc.weight")]
    optimizer = make_optimizer(kind, case, [
        {"params": decayed, "weight_decay": case["weight_decay"], "adapted": True},
        {"params": others, "weight_decay": 0.0, "adapted": False}])
    norms = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = case["learning_rate"] * (step + 1) / STEPS
        images, labels = batch(step)
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        limit = case["clip_norm"] if case["clip_norm"] > 0 else float("inf")
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), limit).item())
        optimizer.step()
    return {"kind": kind, **case, "norms": norms, "parameters": {n: summary(p) for n, p in named}}


def main():
    torch.set_num_threads(1)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.json")
    with open(path, "w") as file:
        json.dump({"torch": torch.__version__, "numpy": np.__version__, "rows": ROWS, "size": SIZE,
                   "classes": CLASSES, "steps": STEPS,
                   "cases": [golden(kind, case) for kind, case in CASES]}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
