"""Reads transforms that programs have as small classes of their own: the filters, and the makers of
several crops, that come with MoCo, SimSiam, DINO and others.

No class is believed by its name. A filter is run on noise, with seeds for the random numbers of the
module `random`, and must give what Pillow gives with these numbers. A maker of crops is called with
markers in place of its transforms, and must do nothing but call them, always in the same order.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from stoker import augment as stages
from stoker.augment import Augment

_SEEDS = range(16)
# Returns what Pillow gives of a picture with these random numbers.
Expected = Callable[[Any, random.Random], Any]


def filter_of_class(step: Any) -> Augment | None:
    """Returns the stage that a blur or a solarisation is; None: it is neither, or another one."""
    name = type(step).__name__.lower()
    known = _blur(step) if "blur" in name else _solarisation(step) if "solari" in name else None
    if known is None:
        return None
    make, expected = known
    chance = _number_in(step, "p", "prob")
    return make(1 if chance is None else chance) if _does(step, chance, expected) else None


def crops_of_class(step: Any) -> list[Any] | None:
    """Returns the transforms whose results an object gives in a list, in that order, each as often
    as it is called; None: it does something else.
    """
    calls = [_calls_of(step) for _ in range(3)]
    if calls[0] is None or len(calls[0]) < 2:
        return None
    same = all(
        each is not None and list(map(id, each)) == list(map(id, calls[0])) for each in calls
    )
    return calls[0] if same else None


def _blur(step: Any) -> tuple[Callable[[float], Augment], Expected] | None:
    sigma = getattr(step, "sigma", None)
    if sigma is None:
        sigma = (_number_in(step, "radius_min"), _number_in(step, "radius_max"))
    if not isinstance(sigma, Sequence) or len(sigma) != 2 or not all(map(_is_number, sigma)):
        return None
    least, most = map(float, sigma)
    pillow: Any = import_module("PIL.ImageFilter")
    return (
        lambda p: stages.pillow_blur((least, most), p),
        lambda image, draws: image.filter(pillow.GaussianBlur(draws.uniform(least, most))),
    )


def _solarisation(step: Any) -> tuple[Callable[[float], Augment], Expected]:
    threshold = _number_in(step, "threshold")
    limit = 128 if threshold is None else threshold
    pillow: Any = import_module("PIL.ImageOps")
    return (
        lambda p: stages.solarize(limit, p),
        lambda image, draws: pillow.solarize(image, limit),
    )


def _does(step: Any, chance: float | None, expected: Expected) -> bool:
    """Whether the step, with its chance, gives what is expected, on pictures of two sizes."""
    pillow: Any = import_module("PIL.Image")
    before = random.getstate()
    try:
        for seed in _SEEDS:
            size = (31, 24) if seed % 2 else (18, 40)
            noise = random.Random(~seed).randbytes(3 * size[0] * size[1])
            image = pillow.frombytes("RGB", size, noise)
            draws = random.Random(seed)
            is_due = chance is None or draws.random() <= chance
            wanted = expected(image, draws) if is_due else image
            random.seed(seed)
            made = step(image.copy())
            if made.mode != "RGB" or made.size != size or made.tobytes() != wanted.tobytes():
                return False
    except Exception:  # whatever a class of somebody else's does with such a picture
        return False
    finally:
        random.setstate(before)
    return True


class _Marked:
    """Stands for a transform: called with the picture, and nothing else, it gives itself."""

    def __init__(self, transform: Any, picture: object):
        self.transform = transform
        self._picture = picture

    def __call__(self, picture: object) -> _Marked:
        if picture is not self._picture:
            raise TypeError("called with something else than the picture")
        return self


def _calls_of(step: Any) -> list[Any] | None:
    picture = object()

    def marked(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(marked, value))
        return _Marked(value, picture) if callable(value) else value

    try:
        twin = copy.copy(step)
        for name, value in vars(step).items():
            setattr(twin, name, marked(value))
        made = twin(picture)
    except Exception:  # it does more than to call its transforms
        return None
    if not isinstance(made, (list, tuple)) or not all(type(each) is _Marked for each in made):
        return None
    return [each.transform for each in made]


def _number_in(step: Any, *names: str) -> float | None:
    """Returns the first of these attributes that is there; None: none of them is a number."""
    values: list[Any] = [getattr(step, name, None) for name in names]
    return next((float(value) for value in values if _is_number(value)), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
