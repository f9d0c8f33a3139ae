"""The transforms of timm's create_transform(), compared with timm itself, if it is installed."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
timm_data = pytest.importorskip("timm.data")

import stoker  # noqa: E402
from conftest import PIXELS  # noqa: E402
import stoker.torch as stoker_torch  # noqa: E402
from stoker import augment  # noqa: E402
from stoker._drawn_steps import run_steps  # noqa: E402
from timm.data import auto_augment as timm_policies  # noqa: E402
from timm.data import transforms as timm_transforms  # noqa: E402
from timm.data.random_erasing import RandomErasing  # noqa: E402
from torch_pictures import pictures_of  # noqa: E402
from torchvision import transforms  # noqa: E402

EITHER = "random_choice(random_resized_crop(224), random_resized_crop(224, filter='bicubic')) | "
BICUBIC = "random_resized_crop(224, filter='bicubic') | flip | "
FILL = "fill=(124, 116, 104))"
RATIO = "ratio=(0.3, 3.333333333333)"
NOISE = f"random_erasing(p=0.25, scale=(0.02, 0.3333333333333333), {RATIO}, noise=True)"


def text_of(**options: object) -> str:
    made = timm_data.create_transform(input_size=(3, 224, 224), **options)
    return repr(stoker_torch.from_torchvision(made).augment)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        # The defaults of timm's train.py.
        (
            {"interpolation": "random", "color_jitter": 0.4},
            EITHER + "flip | color_jitter(brightness=0.4, contrast=0.4, saturation=0.4)",
        ),
        # DeiT; Swin and ConvNeXt have the same.
        (
            {
                "color_jitter": 0.3,
                "auto_augment": "rand-m9-mstd0.5-inc1",
                "interpolation": "bicubic",
                "re_prob": 0.25,
                "re_mode": "pixel",
            },
            BICUBIC + "timm_auto_augment('rand-m9-mstd0.5-inc1', interpolation='bicubic', "
            f"{FILL} | {NOISE}",
        ),
        # DeiT III.
        (
            {"color_jitter": 0.3, "auto_augment": "3a", "interpolation": "bicubic"},
            BICUBIC + f"timm_auto_augment('3a', interpolation='bicubic', {FILL} | "
            "color_jitter(brightness=0.3, contrast=0.3, saturation=0.3)",
        ),
        # "ResNet strikes back", A1 and A2, and A3.
        (
            {"auto_augment": "rand-m7-mstd0.5-inc1", "interpolation": "random"},
            EITHER + f"flip | timm_auto_augment('rand-m7-mstd0.5-inc1', {FILL}",
        ),
        (
            {"auto_augment": "rand-m6-mstd0.5-inc1", "interpolation": "bicubic"},
            BICUBIC + f"timm_auto_augment('rand-m6-mstd0.5-inc1', interpolation='bicubic', {FILL}",
        ),
        (
            {"auto_augment": "augmix-m5-w4-d2", "interpolation": "bilinear", "vflip": 0.5},
            "random_resized_crop(224) | flip | vertical_flip | "
            f"timm_auto_augment('augmix-m5-w4-d2', interpolation='bilinear', {FILL}",
        ),
        (
            {
                "hflip": 0.0,
                "color_jitter": (0.4, 0.4, 0.2, 0.1),
                "color_jitter_prob": 0.8,
                "grayscale_prob": 0.2,
                "gaussian_blur_prob": 0.5,
                "use_prefetcher": True,
            },
            "random_resized_crop(224) | random_apply(color_jitter(brightness=0.4, contrast=0.4, "
            "saturation=0.2, hue=0.1), p=0.8) | grayscale(p=0.2) | "
            "random_apply(gaussian_blur((23, 23)))",
        ),
        (
            {"train_crop_mode": "rkrr", "hflip": 0.0, "color_jitter": None},
            "resize_keep_ratio(224, scale_p=0.5, scale=(0.8, 1), scale_area=True, aspect_p=0.5, "
            "aspect=(0.9, 1.1111111111111112)) | "
            "random_crop(224, mode='reflect', pad_if_needed=True)",
        ),
        (
            {"train_crop_mode": "rkrc", "hflip": 0.0, "color_jitter": None, "re_prob": 0.1},
            "resize_keep_ratio(224, scale_p=0.5, scale=(0.8, 1), scale_area=True, aspect_p=0.5, "
            "aspect=(0.9, 1.1111111111111112)) | center_crop(224, mode='reflect') | "
            f"random_erasing(p=0.1, scale=(0.02, 0.3333333333333333), {RATIO}, "
            "value=(124, 116, 104))",
        ),
    ],
)
def test_training_transforms_are_read(options, text):
    assert text_of(is_training=True, **options) == text


@pytest.mark.parametrize("scheme", ["original", "originalr-mstd0.5", "v0", "v0r", "3a-mstd0.5"])
def test_learned_policies_are_known(scheme):
    made = timm_policies.auto_augment_transform(scheme)
    assert text_with(made) == f"timm_auto_augment('{scheme}')"


@pytest.mark.parametrize("sections", ["", "-inc1", "-tweights", "-t3a", "-t3aw"])
def test_sets_of_operations_are_known(sections):
    config = f"rand-m5-n3-p0.7-mstd101-mmax20{sections}"
    made = timm_policies.rand_augment_transform(config)
    assert text_with(made) == f"timm_auto_augment('{config}')"


def text_with(step: object) -> str:
    made = transforms.Compose([step, transforms.PILToTensor()])
    return repr(stoker_torch.from_torchvision(made).augment)


def test_values_are_those_of_the_recipe():
    for prefetches, dtype in ((False, "float32"), (True, "uint8")):
        made = timm_data.create_transform(224, is_training=True, use_prefetcher=prefetches)
        plan = stoker_torch.from_torchvision(made)
        assert plan.dtype == dtype and plan.size == (224, 224)
        assert plan.mean == (None if prefetches else stoker.IMAGENET_MEAN)
    made = timm_data.create_transform(224, normalize=False)
    assert stoker_torch.from_torchvision(made).dtype == "uint8"
    # Transforms that timm's prefetcher took before MaybePILToTensor.
    older = transforms.Compose([timm_transforms.ToNumpy()])
    assert stoker_torch.from_torchvision(older).dtype == "uint8"


def test_several_boxes_share_the_area():
    made = timm_data.create_transform(
        32, is_training=True, re_prob=0.5, re_count=2, hflip=0, color_jitter=None
    )
    box = f"random_erasing(p=1, scale=(0.02, 0.3333333333333333), {RATIO}, value=(124, 116, 104))"
    half = box.replace("(0.02, 0.3333333333333333)", "(0.01, 0.16666666666666666)")
    text = f"random_resized_crop(32) | random_apply(random_choice({box}, {half} | {half}))"
    assert repr(stoker_torch.from_torchvision(made).augment) == text


@pytest.mark.parametrize(
    "options",
    [
        {"crop_pct": 0.875},
        {"crop_pct": 0.9, "interpolation": "bicubic"},
        {"crop_mode": "squash", "interpolation": "bicubic"},
        {"crop_mode": "border", "mean": (0.2, 0.9, 0.3)},
        {"crop_mode": "border", "crop_pct": 1.0},
        {"input_size": (3, 24, 40), "crop_border_pixels": 5},
        {"input_size": (3, 40, 24), "crop_pct": 0.8},
        {"use_prefetcher": True},
        {"is_training": True, "no_aug": True, "interpolation": "random"},
    ],
)
def test_evaluation_gives_timms_numbers(pictures, options):
    made = timm_data.create_transform(**{"input_size": 32, **options})
    ours = stoker_torch.DataLoader(stoker_torch.ImageFolder(pictures, made), batch_size=10)
    rows = 0
    for images in pictures_of(ours):
        for image in images:
            path, _ = ours.dataset.samples[rows]
            expected = made(Image.open(path).convert("RGB")).numpy()
            np.testing.assert_array_equal(image, expected)
            rows += 1
    assert rows == 37


class Numbers:
    """Gives timm the numbers that it would draw: each call of it is answered alike."""

    def __init__(self, patch: pytest.MonkeyPatch):
        self._patch = patch

    def set(self, uniform: float, interpolation: int) -> None:
        self._patch.setattr(random, "random", lambda: uniform)
        self._patch.setattr(random, "choice", lambda values: values[interpolation])


def images_of(operation: object, image: Image.Image, numbers: Numbers) -> set[bytes]:
    """Possible results of an operation on the image, with both signs and interpolations."""
    found = set()
    for uniform in (0.0, 0.9):
        for interpolation in (0, 1):
            numbers.set(uniform, interpolation)
            found.add(np.asarray(operation(image)).tobytes())
    return found


@pytest.mark.parametrize("magnitude", [3, 9])
@pytest.mark.parametrize("sections", ["", "-inc1", "-t3a", "-t3aw"])
def test_every_operation_gives_timms_bytes(pictures, monkeypatch, magnitude, sections):
    """Each row is what one of timm's operations makes of the image, and every one comes."""
    config = f"rand-m{magnitude}-n1-p1{sections}"
    hparams = {"img_mean": (124, 116, 104)}
    made = timm_policies.rand_augment_transform(config, hparams)
    stages = f"resize((40, 52)) | timm_auto_augment('{config}', fill=(124, 116, 104))"
    source = stoker.files([next(pictures.rglob("*.jpg"))] * 400, [0] * 400)
    image = Image.open(next(pictures.rglob("*.jpg"))).convert("RGB")
    image = image.resize((52, 40), Image.Resampling.BILINEAR)
    numbers = Numbers(monkeypatch)
    results = {each.name: images_of(each, image, numbers) for each in made.ops}
    monkeypatch.undo()
    loader = stoker.Loader(source, batch_size=400, augment=stages, seed=3, pixels=PIXELS)
    batch = next(iter(loader))
    rows = zip(np.asarray(batch.images), batch.draws, strict=True)
    drawn = {row.tobytes(): steps for row, steps in rows}
    for name, images in results.items():
        assert images & drawn.keys(), f"{name} was never drawn"
    known = set.union(*results.values())
    assert [steps for row, steps in drawn.items() if row not in known] == []
    # With both signs, and both interpolations where they differ.
    assert known == set(drawn)


def chains_of(drawn: str) -> tuple[list[str], list[float], float]:
    """The steps of every chain of an AugMix, their shares, and the share of their sum."""
    parts = re.split(r" \| blend\(weight=(.*?)\)", drawn.removeprefix("blend_begin(weight=0)"))
    last = re.fullmatch(r" \| blend_over\(weight=(.*)\)", parts[-1])
    assert last
    chains = [chain.removeprefix(" | ") for chain in parts[:-1:2]]
    return chains, [float(share) for share in parts[1::2]], float(last[1])


def test_aug_mix_blends_as_timm(pictures, monkeypatch):
    """timm's own blending of the chains that were drawn, with the shares that were drawn."""
    made = timm_policies.augment_and_mix_transform("augmix-m3-w3", {"translate_pct": 0.3})
    stages = "resize((40, 52)) | timm_auto_augment('augmix-m3-w3')"
    loader = stoker.Loader(
        stoker.folder(pictures), batch_size=37, augment=stages, seed=3, pixels=PIXELS
    )
    batch = next(iter(loader))
    depths = set()
    for row, name, drawn in zip(np.asarray(batch.images), batch.names, batch.draws, strict=True):
        image = Image.open(pictures / name).convert("RGB")
        image = image.resize((52, 40), Image.Resampling.BILINEAR)
        chains, shares, over = chains_of(drawn.partition(" | ")[2])
        depths |= {chain.count(" | ") for chain in chains}
        runs = iter([lambda image, chain=chain: run_steps(chain, image) for chain in chains])
        with monkeypatch.context() as patch:
            patch.setattr(np.random, "dirichlet", lambda _, shares=shares: shares)
            patch.setattr(np.random, "beta", lambda *_, over=over: over)
            patch.setattr(np.random, "randint", lambda *_: 1)
            patch.setattr(np.random, "choice", lambda *_, runs=runs, **__: [next(runs)])
            expected = made(image)
        np.testing.assert_array_equal(row, np.asarray(expected))
    assert depths >= {0, 1, 2}


def test_sizes_of_kept_ratios_are_timms():
    draw = random.Random(4)
    for _ in range(300):
        size = (draw.randrange(1, 300), draw.randrange(1, 300))
        wanted = (draw.randrange(1, 300), draw.randrange(1, 300))
        longest = draw.choice((0, 1, 0.25))
        scale, aspect = draw.uniform(0.7, 1.4), draw.uniform(0.7, 1.4)
        area = draw.random() < 0.5
        image = torch.zeros(3, *size)
        theirs = timm_transforms.ResizeKeepRatio.get_params(
            image, wanted, longest, 1.0, (scale, scale), area, 1.0, (aspect, aspect)
        )
        stages = augment.resize_keep_ratio(
            wanted, longest, "box", 1, (scale, scale), area, 1, (aspect, aspect)
        )
        drawn = augment.draw(stages | augment.resize((1, 1)), size, seed=1)
        height, width = (max(side, 1) for side in theirs)
        start = f"resize(width={width}, height={height}, filter='box')"
        assert drawn.startswith(start) or (height, width) == size, (drawn, theirs)


def test_what_stoker_has_not_is_refused_by_name():
    def refused(*steps: object) -> str:
        with pytest.raises(ValueError) as error:
            stoker_torch.from_torchvision(transforms.Compose(steps))
        return str(error.value)

    tensors = timm_transforms.MaybeToTensor()
    normal = transforms.Normalize((0.5,) * 3, (0.5,) * 3)
    assert "does not do timm.data.transforms.ToTensor" in refused(timm_transforms.ToTensor())
    assert "mode is 'rand'" in refused(tensors, normal, RandomErasing(mode="rand", device="cpu"))
    assert "behind Normalize" in refused(tensors, RandomErasing(device="cpu"))
    naflex = timm_data.create_transform(64, is_training=True, naflex=True)
    assert "RandomResizedCropToSequence" in refused(naflex)
    mixed = timm_policies.augment_and_mix_transform
    assert "blended=True" in refused(mixed("augmix-b1"))
    assert "translate_pct is 0.45; stoker's is 0.3" in refused(mixed("augmix-m3"))
    operations = timm_policies.rand_augment_ops(transforms=["Rotate", "Invert"])
    assert "no set of operations" in refused(timm_policies.RandAugment(operations))
    operations[0].hparams["magnitude_std"] = 3
    assert "different hparams" in refused(timm_policies.RandAugment(operations))
    policy = timm_policies.AutoAugment([[timm_policies.AugmentOp("Rotate")]])
    assert "no policy" in refused(policy)
    half = timm_policies.rand_augment_ops(9.5)
    assert "magnitudes must be whole" in refused(timm_policies.RandAugment(half))
