"""Small classes that programs have of their own, as those for contrastive learning: they are taken
as what they do, and not as what they are called.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

import stoker.torch as stoker_torch  # noqa: E402
from PIL import Image, ImageFilter, ImageOps  # noqa: E402
from torch_pictures import NORMALIZE  # noqa: E402
from torchvision import transforms  # noqa: E402


class GaussianBlur:  # as SimSiam and MoCo have it
    def __init__(self, sigma):
        self.sigma = sigma

    def __call__(self, image):
        low, high = self.sigma
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(low, high)))


class BlurSometimes:  # as DINO has it
    def __init__(self, p, radius_min=0.1, radius_max=2.0):
        self.prob, self.radius_min, self.radius_max = p, radius_min, radius_max

    def __call__(self, image):
        if random.random() > self.prob:
            return image
        radius = random.uniform(self.radius_min, self.radius_max)
        return image.filter(ImageFilter.GaussianBlur(radius=radius))


class Solarization:
    def __init__(self, p):
        self.p = p

    def __call__(self, image):
        return ImageOps.solarize(image) if random.random() < self.p else image


class Solarize:  # as MoCo v3 has it
    def __call__(self, image):
        return ImageOps.solarize(image)


class TwoCrops:
    def __init__(self, base_transform):
        self.base_transform = base_transform

    def __call__(self, image):
        return [self.base_transform(image) for _ in range(2)]


class TwoDifferent:
    def __init__(self, first, second):
        self.base_transform1, self.base_transform2 = first, second

    def __call__(self, image):
        return self.base_transform1(image), self.base_transform2(image)


class Several:  # as DINO has it
    def __init__(self, wide, other, local, count):
        self.wide, self.other, self.local, self.count = wide, other, local, count

    def __call__(self, image):
        crops = [self.wide(image), self.other(image)]
        for _ in range(self.count):
            crops.append(self.local(image))
        return crops


class Listed:
    def __init__(self, *chains):
        self.chains = chains

    def __call__(self, image):
        return [chain(image) for chain in self.chains]


TENSOR = (transforms.ToTensor(), NORMALIZE)
CROP = transforms.RandomResizedCrop(32, scale=(0.4, 1.0))
SMALL = transforms.RandomResizedCrop(16)
CROP_TEXT, SMALL_TEXT = "random_resized_crop(32, scale=(0.4, 1))", "random_resized_crop(16)"


def chain(*steps: object) -> transforms.Compose:
    return transforms.Compose([*steps, *TENSOR])


def text_of(transform: object) -> str:
    plan = stoker_torch.from_torchvision(transform)
    assert plan[2:] == ("float32", tuple(NORMALIZE.mean), tuple(NORMALIZE.std))
    return repr(plan.augment)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (GaussianBlur([0.1, 2.0]), "pillow_blur"),
        (GaussianBlur((0.5, 1)), "pillow_blur(radius=(0.5, 1))"),
        (BlurSometimes(0.1), "pillow_blur(p=0.1)"),
        (BlurSometimes(1.0, 0.2, 0.9), "pillow_blur(radius=(0.2, 0.9))"),
        (Solarization(0.2), "solarize(128, p=0.2)"),
        (Solarize(), "solarize(128)"),
        (transforms.RandomApply([GaussianBlur([0.1, 2.0])], p=0.5), "random_apply(pillow_blur)"),
        (
            transforms.RandomOrder([Solarize(), transforms.RandomHorizontalFlip()]),
            "random_order(solarize(128) | flip)",
        ),
    ],
)
def test_filters_are_read_with_their_numbers(step, text):
    state = random.getstate()
    assert text_of(chain(CROP, step)) == f"{CROP_TEXT} | {text}"
    assert random.getstate() == state


def test_a_filter_gives_the_same_bytes(pictures):
    to_size = transforms.Resize((24, 32))
    transform = transforms.Compose(
        [to_size, GaussianBlur([1.3, 1.3]), Solarize(), transforms.ToTensor()]
    )
    theirs = torchvision.datasets.ImageFolder(pictures, transform)
    expected = torch.utils.data.DataLoader(theirs, batch_size=10)
    for (images, _), (pixels, _) in zip(
        stoker_torch.DataLoader(theirs, batch_size=10), expected, strict=True
    ):
        assert torch.equal(images, pixels)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (TwoCrops(chain(CROP)), f"views({CROP_TEXT}, counts=2)"),
        (
            TwoDifferent(chain(CROP), chain(SMALL)),
            f"views({CROP_TEXT}, {SMALL_TEXT}, counts=(1, 1))",
        ),
        (Listed(chain(SMALL), chain(CROP)), f"views({SMALL_TEXT}, {CROP_TEXT}, counts=(1, 1))"),
        (
            Several(
                chain(CROP, BlurSometimes(1.0)),
                chain(CROP, BlurSometimes(0.1), Solarization(0.2)),
                chain(SMALL, BlurSometimes(0.5)),
                6,
            ),
            f"views({CROP_TEXT} | pillow_blur, "
            f"{CROP_TEXT} | pillow_blur(p=0.1) | solarize(128, p=0.2), "
            f"{SMALL_TEXT} | pillow_blur(p=0.5), counts=(1, 1, 6))",
        ),
    ],
)
def test_makers_of_crops_are_views(step, text):
    assert text_of(step) == text
    assert text_of(transforms.Compose([step])) == text


def test_a_loop_gets_the_list_that_it_is_written_for(pictures):
    step = Several(chain(CROP), chain(CROP), chain(SMALL), 3)
    loader = stoker_torch.DataLoader(
        torchvision.datasets.ImageFolder(pictures, step), batch_size=10, shuffle=True, seed=1
    )
    expected = [(3, 32, 32)] * 2 + [(3, 16, 16)] * 3
    for images, labels in loader:
        assert [tuple(view.shape[1:]) for view in images] == expected
        assert all(len(view) == len(labels) for view in images)
    flat = transforms.Compose([transforms.Resize((24, 32)), transforms.ToTensor()])
    twice = torchvision.datasets.ImageFolder(pictures, TwoCrops(flat))
    ours, theirs = (
        kind(twice, batch_size=10)
        for kind in (stoker_torch.DataLoader, torch.utils.data.DataLoader)
    )
    for (images, _), (pixels, _) in zip(ours, theirs, strict=True):
        assert all(map(torch.equal, images, pixels)) and len(images) == 2


class BoxBlur(GaussianBlur):
    """Has all that a Gaussian blur has, but what it does."""

    def __call__(self, image):
        return image.filter(ImageFilter.BoxBlur(random.uniform(*self.sigma)))


class NumpyBlur(GaussianBlur):
    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(np.random.uniform(*self.sigma)))


class RareBlur(BlurSometimes):
    """Blurs when DINO's does not."""

    def __call__(self, image):
        if random.random() < self.prob:
            return image
        return image.filter(
            ImageFilter.GaussianBlur(random.uniform(self.radius_min, self.radius_max))
        )


class HalfSolarize:
    def __call__(self, image):
        return Image.blend(image, ImageOps.solarize(image), 0.5)


class Stacked(TwoCrops):
    def __call__(self, image):
        return torch.stack(super().__call__(image))


class FlippedSecond(TwoCrops):
    def __call__(self, image):
        return [self.base_transform(image), self.base_transform(ImageOps.mirror(image))]


class Either(TwoDifferent):
    def __call__(self, image):
        chosen = [self.base_transform1, self.base_transform2]
        return [random.choice(chosen)(image) for _ in range(16)]


class Untouched(TwoCrops):
    def __call__(self, image):
        return [image, self.base_transform(image)]


class Wrapped(TwoCrops):
    def __call__(self, image):
        return [self.base_transform(image), self.base_transform([image])]


@pytest.mark.parametrize(
    "transform",
    [
        chain(CROP, BoxBlur([0.1, 2.0])),
        chain(CROP, NumpyBlur([0.1, 2.0])),
        chain(CROP, RareBlur(0.1)),
        chain(CROP, HalfSolarize()),
        chain(CROP, transforms.RandomApply([BoxBlur([0.1, 2.0])])),
        Stacked(chain(CROP)),
        FlippedSecond(chain(CROP)),
        Either(chain(CROP), chain(CROP)),
        Untouched(chain(CROP)),
        Wrapped(chain(CROP)),
        transforms.Compose([CROP, TwoCrops(chain())]),
    ],
)
def test_what_does_something_else_is_refused_by_name(transform):
    with pytest.raises(ValueError, match=r"does not do:? test_own_transforms\."):
        stoker_torch.from_torchvision(transform)


def test_views_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match="end in different ways, in .*uint8.* and .*float32"):
        uint8 = transforms.Compose([CROP, transforms.PILToTensor()])
        stoker_torch.from_torchvision(TwoDifferent(chain(CROP), uint8))
    with pytest.raises(ValueError, match="each of its transforms must give rows of one size"):
        stoker_torch.from_torchvision(TwoCrops(chain()))
