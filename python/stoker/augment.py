"""The augmentation of a row: a list of stages, in any order, joined by `|`.

    from stoker import augment
    train = augment.random_resized_crop(224) | augment.random_augment(2, 9) | augment.flip()
    loader = stoker.Loader(source, augment=train)

The functions of this module are the stages of the C++ library, with its names, parameters and
defaults; a list is its text, which Loader(augment=) and `stoker train --augment` take, too:

    augment="random_resized_crop(224) | random_augment | flip"

The pixels are those of torchvision's transforms on PIL images. Every random number is drawn only
from (seed, epoch, sample id): Batch.draws says for each row what was drawn. `p` is the probability
with which a stage is applied. A size is a number of pixels, or (height, width); None: the Loader's
size. A colour is a grey, or (red, green, blue), 0 to 255. `filter` is one of 'bilinear', 'bicubic',
'nearest', 'box', 'hamming' and 'lanczos', antialiased as in Pillow; `interpolation` is one of
'nearest', 'bilinear' and 'bicubic'; `mode` is one of 'constant', 'edge', 'reflect' and 'symmetric'.

ValueError, from every function: the stage, the argument, its value and what it must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stoker import _core, _stages
from stoker._augment import Augment, Augments, Size, of_pictures
from stoker._arguments import height_and_width

if TYPE_CHECKING:
    from stoker._stages import *  # noqa: F403

__all__ = ["Augment", "draw", "explain"]
__all__ += _stages.__all__


def draw(
    augment: Augments | str,
    source: int | tuple[int, int],
    *,
    seed: int,
    epoch: int = 0,
    sample: int = 0,
    size: Size = None,
    view: int = 0,
) -> str:
    """Returns what a Loader with this seed does to a sample in an epoch: steps with all their
    numbers, such as "crop(x=3, y=5, width=111, height=77) | resize(...) | flip".

    source: (height, width) of the sample's image. size: as for the Loader. ValueError: also for an
    image that this cannot be done to.
    """
    spec = make_spec(augment, size, None)
    return spec.draw(height_and_width("source", source), seed, epoch, sample, view)


def explain(augment: Augments | str, *, size: Size = None) -> list[str]:
    """Returns lines that say which stages are done while an image is decoded, and which of the
    others are joined.
    """
    return make_spec(augment, size, None).explain()


def make_spec(
    augment: Augments | str | None, size: object, raw_size: tuple[int, int] | None
) -> _core.AugmentSpec:
    """Returns the C++ settings of a Loader. augment None: the whole image if pixels are raw,
    otherwise resize and centre crop. size None: the list's own, else that of raw pixels, else 224.
    """
    if augment is None:
        augment = "resize_center_crop" if raw_size is None else "resize"
    if isinstance(augment, str):
        augment = Augment(augment)
    if isinstance(augment, Mapping):
        augment = of_pictures(augment)
    if not isinstance(augment, Augment):
        raise TypeError(
            f"augment is {augment!r}, must be stages of stoker.augment, joined by |, or their text"
        )
    if size is None:
        size = augment.size or raw_size or 224
    return _core.AugmentSpec(repr(augment), height_and_width("size", size))


def __getattr__(name: str) -> object:
    if name not in _stages.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_stages, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_stages.__all__})
