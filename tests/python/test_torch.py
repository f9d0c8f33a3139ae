"""stoker.torch compared with torchvision and PyTorch, if they are installed."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

import stoker  # noqa: E402
import stoker.torch as stoker_torch  # noqa: E402
from conftest import damaged_folder  # noqa: E402
from torch.utils.data import DistributedSampler, RandomSampler  # noqa: E402
from torch_pictures import EVAL, NORMALIZE, pictures_of, same  # noqa: E402
from torchvision import transforms  # noqa: E402
from torchvision.transforms.functional import InterpolationMode  # noqa: E402

TRAIN = transforms.Compose(
    [
        transforms.RandomResizedCrop(32, interpolation=InterpolationMode.BICUBIC),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(brightness=0.4, hue=0.1),
        transforms.ToTensor(),
        NORMALIZE,
    ]
)


def loader(root: Path, transform: object = TRAIN, **options: object) -> stoker_torch.DataLoader:
    return stoker_torch.DataLoader(
        stoker_torch.ImageFolder(root, transform), num_workers=1, **options
    )


@pytest.mark.parametrize(
    "transform",
    [
        EVAL,
        transforms.Compose([transforms.Resize((24, 32)), transforms.ToTensor()]),
        transforms.Compose([transforms.Resize((24, 32)), transforms.PILToTensor()]),
    ],
)
def test_gives_what_torchvision_and_the_data_loader_give(pictures, transform):
    theirs = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(pictures, transform), batch_size=10
    )
    ours = loader(pictures, transform, batch_size=10)
    assert ours.dataset.classes == theirs.dataset.classes
    assert ours.dataset.class_to_idx == theirs.dataset.class_to_idx
    assert ours.dataset.samples == theirs.dataset.samples
    assert len(ours) == len(theirs) == 4
    assert len(ours.dataset) == 37
    rows = 0
    for (images, labels), (expected, expected_labels) in zip(ours, theirs, strict=True):
        assert images.dtype == expected.dtype and labels.dtype == expected_labels.dtype
        assert torch.equal(images, expected) and torch.equal(labels, expected_labels)
        rows += len(labels)
    assert rows == 37


def test_transforms_are_read_with_their_numbers(pictures):
    plan = stoker_torch.ImageFolder(pictures, TRAIN).plan
    expected = stoker.random_resized_crop(32, filter="bicubic") | stoker.flip()
    assert plan.augment == expected | stoker.color_jitter(brightness=0.4, hue=0.1)
    assert plan[1:] == ((32, 32), "float32", tuple(NORMALIZE.mean), tuple(NORMALIZE.std))


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ([transforms.FiveCrop(8)], "ends in PIL images"),
        ([transforms.FiveCrop(8), transforms.Lambda(torch.stack)], r"ToTensor\(\) and Normalize"),
        ([transforms.FiveCrop(8), transforms.Grayscale(3)], "Grayscale.* behind FiveCrop"),
        ([transforms.TenCrop(8), transforms.RandomErasing()], "RandomErasing.* behind TenCrop"),
        ([transforms.Lambda(abs)], "does not do torchvision.*Lambda"),
        ([transforms.Resize(32), transforms.ToTensor()], "rows of one size"),
        ([transforms.ToTensor()], "rows of one size"),
        ([transforms.RandomResizedCrop(32)], "ends in PIL images"),
        ([transforms.RandomErasing()], "RandomErasing.* on PIL images"),
        ([transforms.ToTensor(), transforms.CenterCrop(8)], "CenterCrop.* behind ToTensor"),
        ([transforms.ToTensor(), transforms.ToTensor()], "ToTensor.* behind ToTensor"),
        ([transforms.ToTensor(), NORMALIZE, NORMALIZE], "a second Normalize"),
        ([transforms.Grayscale(), transforms.ToTensor()], "num_output_channels=3"),
        ([*TRAIN.transforms[:1], transforms.PILToTensor(), NORMALIZE], "on uint8"),
        ([transforms.ConvertImageDtype(torch.float)], "on PIL images: put PILToTensor"),
        ([transforms.PILToTensor(), transforms.ConvertImageDtype(torch.half)], "gives float32"),
        ([transforms.PILToTensor(), transforms.RandomErasing(value="random")], "behind Normalize"),
        (
            [transforms.Resize(32, InterpolationMode.BICUBIC, antialias=False)],
            "antialias=False",
        ),
        ([transforms.RandomRotation(9, fill=0.5)], "fill is 0.5, must be"),
        ([transforms.RandomChoice([transforms.ToTensor()])], "RandomChoice of what .*ToTensor"),
        ([transforms.RandomApply([transforms.FiveCrop(8)])], "RandomApply of what .*FiveCrop"),
    ],
)
def test_transforms_that_stoker_has_not_are_refused_by_name(pictures, steps, complaint):
    with pytest.raises(ValueError, match=complaint):
        stoker_torch.ImageFolder(pictures, transforms.Compose(steps))


CROP = transforms.RandomResizedCrop(32)
FLIP = transforms.RandomHorizontalFlip()


def namespaces() -> list:
    """torchvision's transforms, and their second version if there is one."""
    found = [pytest.param(transforms, id="v1")]
    with contextlib.suppress(ImportError):
        found.append(pytest.param(importlib.import_module("torchvision.transforms.v2"), id="v2"))
    return found


TAKEN = (
    (
        lambda t: t.RandomResizedCrop((8, 9), (0.2, 0.9), (0.5, 2)),
        "random_resized_crop((8, 9), scale=(0.2, 0.9), ratio=(0.5, 2))",
    ),
    (lambda t: t.Resize(40), "resize(size=40)"),
    (lambda t: t.Resize([40], max_size=60), "resize(size=40, max_size=60)"),
    (
        lambda t: t.Resize((40, 41), InterpolationMode.LANCZOS),
        "resize(size=(40, 41), filter='lanczos')",
    ),
    (lambda t: t.CenterCrop(9), "center_crop(9)"),
    (lambda t: t.RandomCrop(9, padding=4), "random_crop(9, padding=4)"),
    (
        lambda t: t.RandomCrop((9, 8), (1, 2, 3, 4), True, (5, 6, 7), "edge"),
        "random_crop((9, 8), padding=(1, 2, 3, 4), mode='edge', fill=(5, 6, 7), "
        "pad_if_needed=True)",
    ),
    (lambda t: t.RandomCrop(9, padding=(1, 2)), "random_crop(9, padding=(1, 2))"),
    (
        lambda t: t.Pad((1, 2), fill=3, padding_mode="reflect"),
        "pad((1, 2), fill=3, mode='reflect')",
    ),
    (lambda t: t.RandomHorizontalFlip(0.3), "flip(p=0.3)"),
    (lambda t: t.RandomVerticalFlip(), "vertical_flip"),
    (lambda t: t.RandomRotation(30), "rotate(30)"),
    (
        lambda t: t.RandomRotation((5, 30), InterpolationMode.BICUBIC, True, (3, 4), 9),
        "rotate((5, 30), interpolation='bicubic', expand=True, center=(3, 4), fill=9)",
    ),
    (lambda t: t.RandomAffine(10), "affine(10)"),
    (
        lambda t: t.RandomAffine((5, 9), (0.1, 0.2), (0.5, 2), 7, InterpolationMode.BILINEAR, 4),
        "affine((5, 9), translate=(0.1, 0.2), scale=(0.5, 2), shear=7, "
        "interpolation='bilinear', fill=4)",
    ),
    (
        lambda t: t.RandomAffine(0, shear=(1, 2, 3, 4), center=(1, 2)),
        "affine(0, shear=(1, 2, 3, 4), center=(1, 2))",
    ),
    (
        lambda t: t.RandomPerspective(0.3, 0.4, InterpolationMode.NEAREST, 8),
        "perspective(distortion_scale=0.3, interpolation='nearest', fill=8, p=0.4)",
    ),
    (
        lambda t: t.ColorJitter(0.4, (0.5, 2.0), 1.5, (-0.1, 0.2)),
        "color_jitter(brightness=0.4, contrast=(0.5, 2), saturation=1.5, hue=(-0.1, 0.2))",
    ),
    (lambda t: t.Grayscale(3), "grayscale"),
    (lambda t: t.RandomGrayscale(0.2), "grayscale(p=0.2)"),
    (lambda t: t.RandomInvert(), "invert(p=0.5)"),
    (lambda t: t.RandomPosterize(3), "posterize(3, p=0.5)"),
    (lambda t: t.RandomSolarize(99, 0.2), "solarize(99, p=0.2)"),
    (lambda t: t.RandomAdjustSharpness(2), "sharpness(2, p=0.5)"),
    (lambda t: t.RandomAutocontrast(), "autocontrast(p=0.5)"),
    (lambda t: t.RandomEqualize(1), "equalize"),
    (lambda t: t.GaussianBlur((3, 5), (0.2, 3)), "gaussian_blur((5, 3), sigma=(0.2, 3))"),
    (lambda t: t.AutoAugment(transforms.AutoAugmentPolicy.SVHN), "auto_augment(policy='svhn')"),
    (
        lambda t: t.RandAugment(3, 5, 11, InterpolationMode.BILINEAR, [1, 2, 3]),
        "random_augment(num_ops=3, magnitude=5, num_magnitude_bins=11, "
        "interpolation='bilinear', fill=(1, 2, 3))",
    ),
    (lambda t: t.TrivialAugmentWide(9), "trivial_augment_wide(num_magnitude_bins=9)"),
    (
        lambda t: t.AugMix(5, 2, 1, 0.5, False),
        "aug_mix(severity=5, mixture_width=2, chain_depth=1, alpha=0.5, all_ops=False)",
    ),
    (
        lambda t: t.RandomApply([t.ColorJitter(0.4), t.RandomInvert(1)], p=0.8),
        "random_apply(color_jitter(brightness=0.4) | invert, p=0.8)",
    ),
    (
        lambda t: t.RandomChoice(
            [t.RandomInvert(1), t.Compose([t.Pad(1), t.Pad(2)])], p=[0.25, 0.75]
        ),
        "random_choice(invert, pad(1) | pad(2), weights=(0.25, 0.75))",
    ),
    (
        lambda t: t.RandomChoice([t.RandomInvert(1), torch.nn.Sequential()]),
        "random_choice(invert, flip(p=0))",
    ),
    (
        lambda t: t.RandomOrder([t.RandomInvert(1), t.Compose([t.Pad(1), t.Pad(2)])]),
        "random_order(invert | random_apply(pad(1) | pad(2), p=1))",
    ),
)


@pytest.mark.parametrize("t", namespaces())
@pytest.mark.parametrize(("made", "text"), TAKEN, ids=[text for _, text in TAKEN])
def test_every_transform_is_read_in_any_place(t, made, text):
    first, last = t.RandomInvert(1), t.RandomSolarize(7, 1)
    for transform in (
        t.Compose([first, made(t), last, transforms.ToTensor()]),
        t.Compose([t.Compose([first, made(t)]), last, transforms.ToTensor()]),
        transforms.Compose([torch.nn.Sequential(first), made(t), last, transforms.PILToTensor()]),
    ):
        plan = stoker_torch.from_torchvision(transform)
        assert repr(plan.augment) == f"invert | {text} | solarize(7)"


@pytest.mark.parametrize("t", namespaces())
@pytest.mark.parametrize("crops", ["FiveCrop", "TenCrop"])
def test_crops_of_one_image_are_views(pictures, t, crops):
    before = [t.Resize(40), getattr(t, crops)((20, 28))]
    last = transforms.Compose([transforms.ToTensor(), NORMALIZE])
    stacked = [*before, transforms.Lambda(lambda images: torch.stack(list(map(last, images))))]
    theirs = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(pictures, t.Compose(stacked)), batch_size=10
    )
    ours = loader(pictures, t.Compose([*before, *last.transforms]), batch_size=10)
    for (views, labels), (expected, expected_labels) in zip(ours, theirs, strict=True):
        assert torch.equal(torch.stack(views, 1), expected)
        assert torch.equal(labels, expected_labels)


def test_erasing_takes_the_byte_that_is_nearest():
    def erased(*steps: object) -> str:
        plan = stoker_torch.from_torchvision(transforms.Compose(steps))
        return repr(plan.augment)

    erasing = transforms.RandomErasing
    assert erased(transforms.PILToTensor(), erasing(value=(1, 2, 3))) == (
        "random_erasing(value=(1, 2, 3))"
    )
    assert erased(transforms.ToTensor(), erasing(0.1, (0.1, 0.2), (0.5, 2), 0.2)) == (
        "random_erasing(p=0.1, scale=(0.1, 0.2), ratio=(0.5, 2), value=(51, 51, 51))"
    )
    mean = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert erased(transforms.ToTensor(), mean, erasing()) == (
        "random_erasing(value=(124, 116, 104))"
    )
    assert erased(transforms.ToTensor(), mean, erasing(value="random")) == (
        "random_erasing(noise=True)"
    )
    with pytest.raises(ValueError, match="the colour is"):
        erased(transforms.ToTensor(), mean, erasing(value=9))


def test_classes_of_other_packages_are_not_taken_for_torchvisions(pictures):
    normalize = type("Normalize", (), {"mean": (0, 0, 0), "std": (1, 1, 1)})()
    compose = type("Compose", (), {"transforms": TRAIN.transforms})()
    for other, name in ((compose, "Compose"), (normalize, "Normalize")):
        for transform in (other, transforms.Compose([other])):
            with pytest.raises(ValueError, match=rf"does not do test_torch\.{name}: "):
                stoker_torch.ImageFolder(pictures, transform)


@pytest.mark.parametrize("t", namespaces())
def test_numbers_that_torchvision_takes_are_read_or_refused(pictures, t):
    def plan(*steps: object) -> object:
        return stoker_torch.ImageFolder(pictures, t.Compose([*steps])).plan

    for normalize in (
        transforms.Normalize(0.5, 0.25),  # v2 does not accept plain numbers
        t.Normalize([0.5], [0.25]),
        t.Normalize((0.5,) * 3, (0.25,) * 3),
    ):
        assert plan(CROP, transforms.ToTensor(), normalize)[3:] == ((0.5,) * 3, (0.25,) * 3)
    with pytest.raises(ValueError, match="3 channels, not 4"):
        plan(CROP, transforms.ToTensor(), t.Normalize((0.5,) * 4, (0.5,) * 4))


@pytest.mark.parametrize("t", namespaces())
def test_the_steps_of_torchvisions_reference_training_are_read(pictures, t):
    """Its presets are objects that contain a Compose, from a module `presets`."""
    is_v2 = hasattr(t, "ToDtype")
    to_float = t.ToDtype(torch.float, scale=True) if is_v2 else t.ConvertImageDtype(torch.float)
    last = [t.PILToTensor(), to_float, t.Normalize(NORMALIZE.mean, NORMALIZE.std)]
    last += [t.ToPureTensor()] if hasattr(t, "ToPureTensor") else []
    preset = type("ClassificationPresetEval", (), {"__module__": "presets"})()
    preset.transforms = t.Compose([t.Resize(40), t.CenterCrop(32), *last])
    plan = stoker_torch.ImageFolder(pictures, preset).plan
    assert plan == stoker_torch.ImageFolder(pictures, EVAL).plan
    theirs = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(pictures, preset.transforms), batch_size=10
    )
    for images, expected in zip(pictures_of(loader(pictures, preset, batch_size=10)), theirs):
        np.testing.assert_allclose(images, expected[0].numpy(), rtol=0, atol=1e-6)
    preset = type("ClassificationPresetTrain", (), {"__module__": "references.presets"})()
    policies = [t.RandAugment(magnitude=9), t.AutoAugment(), t.AugMix(), t.TrivialAugmentWide()]
    for policy in policies:
        preset.transforms = t.Compose([CROP, FLIP, policy, *last, t.RandomErasing(0.1)])
        plan = stoker_torch.ImageFolder(pictures, preset).plan
        name = repr(stoker_torch.from_torchvision(t.Compose([policy, *last])).augment)
        assert repr(plan.augment) == (
            f"random_resized_crop(32) | flip | {name} | "
            "random_erasing(p=0.1, value=(124, 116, 104))"
        )


def test_the_transforms_of_torchvisions_weights_are_read(pictures):
    weights = torchvision.models.get_weight("ResNet18_Weights.IMAGENET1K_V1")
    plan = stoker_torch.ImageFolder(pictures, weights.transforms()).plan
    assert plan == (
        stoker.augment.resize(256) | stoker.augment.center_crop(224),
        (224, 224),
        "float32",
        stoker.IMAGENET_MEAN,
        stoker.IMAGENET_STD,
    )


def test_epochs_differ_and_a_state_goes_on_within_one(pictures):
    train = loader(pictures, batch_size=8, shuffle=True, seed=5)
    first, second = pictures_of(train), pictures_of(train)
    assert not same(first, second)
    again = loader(pictures, batch_size=8, shuffle=True, seed=5)
    assert same(pictures_of(again), first)
    half = iter(again)
    for _ in range(2):
        next(half)
    state = again.state_dict()
    resumed = loader(pictures, batch_size=8, shuffle=True, seed=5)
    resumed.load_state_dict(state)
    assert same(pictures_of(resumed), second[2:])


def test_the_seed_is_pytorchs(pictures):
    torch.manual_seed(11)
    one = pictures_of(loader(pictures, batch_size=8, shuffle=True))
    torch.manual_seed(11)
    assert same(pictures_of(loader(pictures, batch_size=8, shuffle=True)), one)
    torch.manual_seed(12)
    assert not same(pictures_of(loader(pictures, batch_size=8, shuffle=True)), one)


def test_a_generator_gives_the_seed(pictures):
    def of(**options: object) -> list[np.ndarray]:
        return pictures_of(loader(pictures, batch_size=8, **options))

    def generator(seed: int = 3) -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    one = of(shuffle=True, generator=generator())
    assert same(of(shuffle=True, generator=generator()), one)
    assert not same(of(shuffle=True, generator=generator(4)), one)
    dataset = stoker_torch.ImageFolder(pictures, TRAIN)
    assert same(of(sampler=RandomSampler(dataset, generator=generator())), one)
    before = torch.random.get_rng_state()
    of(shuffle=True, generator=generator())
    of(shuffle=True, seed=4)
    assert torch.equal(torch.random.get_rng_state(), before), "PyTorch's own is not touched"
    assert not same(of(shuffle=True), of(shuffle=True)), "each loader draws another one"
    assert not same(of(), of())


def test_a_drawn_seed_is_part_of_the_state(pictures):
    options = {"batch_size": 8, "shuffle": True}
    train = loader(pictures, **options)
    loop = iter(train)
    next(loop)
    state = train.state_dict()
    rest = pictures_of(loop)
    resumed = loader(pictures, **options)
    resumed.load_state_dict(state)
    assert same(pictures_of(resumed), rest)
    with pytest.raises(ValueError, match="another configuration"):
        loader(pictures, seed=1, **options).load_state_dict(state)


def test_everyday_code_that_keeps_tensors(pictures):
    """list(loader), a first batch for a plot, accumulation, a queue of four."""
    train = loader(pictures, batch_size=4, shuffle=True, seed=1)
    truth = pictures_of(train)
    assert len(truth) == 10
    train.set_epoch(0)
    kept = list(train)
    assert same([images.numpy() for images, _ in kept], truth)
    assert same(pictures_of(kept), truth)
    train.close()
    assert same(pictures_of(kept), truth)


def test_distributed_samplers_share_the_epoch(pictures):
    dataset = stoker_torch.ImageFolder(pictures, EVAL)

    def ranks(**options: object) -> list[stoker_torch.DataLoader]:
        return [
            stoker_torch.DataLoader(
                dataset,
                batch_size=4,
                num_workers=1,
                sampler=DistributedSampler(dataset, num_replicas=3, rank=rank, **options),
            )
            for rank in range(3)
        ]

    evaluation = [labels for part in ranks(shuffle=False) for _, labels in part]
    assert sorted(torch.cat(evaluation).tolist()) == sorted(dataset.targets)  # each sample once
    training = ranks(shuffle=True)
    # If a rank had fewer steps, the others would wait forever.
    assert [sum(1 for _ in part) for part in training] == [4, 4, 4]
    part = training[0]
    part.sampler.set_epoch(7)
    seventh = pictures_of(part)
    part.sampler.set_epoch(8)
    assert not same(pictures_of(part), seventh)
    part.sampler.set_epoch(7)
    assert same(pictures_of(part), seventh)


def test_damaged_files_are_left_out(tmp_path):
    root = damaged_folder(tmp_path / "data", 13, [3])
    rows = [len(labels) for _, labels in loader(root, EVAL, batch_size=5, max_bad=5)]
    assert sum(rows) == 12 and len(rows) == 3  # of 13 files


def test_what_cannot_be_honoured_is_refused(pictures):
    dataset = stoker_torch.ImageFolder(pictures, EVAL)
    with pytest.raises(TypeError, match="collate_fn is <class 'list'>"):
        stoker_torch.DataLoader(dataset, collate_fn=list)
    with pytest.raises(TypeError, match="worker_init_fn: stoker's workers are threads"):
        stoker_torch.DataLoader(dataset, worker_init_fn=print)
    with pytest.raises(TypeError, match="multiprocessing_context"):
        stoker_torch.DataLoader(dataset, multiprocessing_context="spawn")
    with pytest.raises(ValueError, match="timeout is 30"):
        stoker_torch.DataLoader(dataset, timeout=30)
    with pytest.raises(TypeError, match="batch_sampler"):
        stoker_torch.DataLoader(dataset, batch_sampler=[[0, 1]])
    with pytest.raises(ValueError, match="num_workers is -1"):
        stoker_torch.DataLoader(dataset, num_workers=-1)
    with pytest.raises(ValueError, match="seed and generator"):
        stoker_torch.DataLoader(dataset, seed=1, generator=torch.Generator())
    with pytest.raises(TypeError, match="generator is 3"):
        stoker_torch.DataLoader(dataset, generator=3)
    with pytest.raises(ValueError, match="generator with a DistributedSampler"):
        sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
        stoker_torch.DataLoader(dataset, sampler=sampler, generator=torch.Generator())
    with pytest.raises(TypeError, match="dataset is"):
        stoker_torch.DataLoader([1, 2, 3])
    with pytest.raises(ValueError, match="batch_size"):
        stoker_torch.DataLoader(dataset, batch_size=0)
    with pytest.raises(ValueError, match="sampler and shuffle"):
        stoker_torch.DataLoader(dataset, shuffle=True, sampler=RandomSampler(dataset))


def test_arguments_that_change_nothing_are_taken(pictures):
    dataset = stoker_torch.ImageFolder(pictures, EVAL)
    plain = pictures_of(stoker_torch.DataLoader(dataset, 8))
    options = {
        "collate_fn": torch.utils.data.default_collate,
        "pin_memory": True,
        "pin_memory_device": "",
        "timeout": 0,
        "worker_init_fn": None,
        "multiprocessing_context": None,
        "generator": None,
        "prefetch_factor": 4,
        "persistent_workers": True,
        "in_order": False,
    }
    taken = stoker_torch.DataLoader(dataset, 8, False, None, None, 1, **options)
    assert same(pictures_of(taken), plain)
    assert taken.num_workers == 1 and taken.collate_fn is torch.utils.data.default_collate
    # Attributes say what is, and not what was asked for.
    assert (taken.pin_memory, taken.pin_memory_device) == (False, "")
    assert (taken.persistent_workers, taken.prefetch_factor, taken.in_order) == (True, None, True)
    assert (taken.timeout, taken.worker_init_fn, taken.multiprocessing_context) == (0, None, None)
    assert (taken.batch_size, taken.drop_last, taken.batch_sampler) == (8, False, None)
    dropping = stoker_torch.DataLoader(dataset, 8, last_batch="drop")
    assert dropping.drop_last and dropping.num_workers >= 1
    theirs = vars(torch.utils.data.DataLoader(dataset, 8))
    assert [name for name in theirs if name[0] != "_" and not hasattr(taken, name)] == []


def test_it_says_what_it_is(pictures):
    made = loader(pictures, EVAL, batch_size=8)
    assert repr(made) == (
        "<stoker.torch.DataLoader: <stoker.Loader of 37 samples in batches of 8 on cpu:0: "
        "next step 0>>"
    )
    assert made._repr_html_().startswith("<table><caption>stoker.torch.DataLoader</caption>")


def test_a_data_set_is_saved_with_its_transform(pictures, tmp_path):
    dataset = stoker_torch.ImageFolder(pictures, EVAL)
    torch.save((dataset, "path"), tmp_path / "cache.pt")
    options = {"weights_only": False} if torch.__version__ >= "2" else {}
    again, _ = torch.load(tmp_path / "cache.pt", **options)
    assert again.samples == dataset.samples and again.plan == dataset.plan
    assert same(
        pictures_of(stoker_torch.DataLoader(again, 8)),
        pictures_of(stoker_torch.DataLoader(dataset, 8)),
    )


def losses_of(batches: object) -> list[float]:
    """Trains a small net on the batches, from the same start."""
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.LazyLinear(3),
    )
    net(torch.zeros(1, 3, 32, 32))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    found = []
    for _ in range(3):
        for images, labels in batches:
            loss = torch.nn.functional.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found


def test_a_training_is_that_on_the_data_loader_bit_for_bit(pictures):
    theirs = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(pictures, EVAL), batch_size=10
    )
    expected = losses_of(theirs)
    assert losses_of(loader(pictures, EVAL, batch_size=10)) == expected
    assert len(set(expected)) == 12  # the weights move
