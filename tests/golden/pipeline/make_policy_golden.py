#!/usr/bin/env python3
"""Writes policy_magnitudes.txt: what torchvision's policies have in their tables.

  make_policy_golden.py > policy_magnitudes.txt          (PyTorch and torchvision 0.29)

Each line: policy, operation, bins, bin, width, height, and the magnitude as a hexadecimal float.
"""

import random

import torchvision
from torchvision.transforms import v2

POLICIES = {
    "random_augment": v2.RandAugment()._AUGMENTATION_SPACE,
    "trivial_augment_wide": v2.TrivialAugmentWide()._AUGMENTATION_SPACE,
    "auto_augment": v2.AutoAugment()._AUGMENTATION_SPACE,
    "aug_mix": v2.AugMix()._AUGMENTATION_SPACE,
}
BINS = {"random_augment": (31, 10, 7), "trivial_augment_wide": (31, 12), "auto_augment": (10,), "aug_mix": (10,)}


def main():
    draws = random.Random(1)
    print(f"# torchvision {torchvision.__version__}: policy operation bins bin width height magnitude")
    for policy, space in POLICIES.items():
        for name, (magnitudes_of, _) in space.items():
            for bins in BINS[policy]:
                for width, height in [(224, 224), (32, 32), (draws.randint(1, 999), draws.randint(1, 999))]:
                    magnitudes = magnitudes_of(bins, height, width)
                    if magnitudes is None:
                        continue
                    for chosen in range(bins):
                        print(policy, name, bins, chosen, width, height, float(magnitudes[chosen]).hex())


if __name__ == "__main__":
    main()
