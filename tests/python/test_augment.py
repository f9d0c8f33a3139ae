"""Lists of stages: their functions, what a Loader does with them, and what a Batch says of it."""

from __future__ import annotations

import ast
import inspect
import pickle
import pydoc
import re
import typing
from pathlib import Path

import numpy as np
import pytest
from conftest import PIXELS
from PIL import Image

import stoker
from stoker import _stages, augment
from stoker._adapter import with_one_view
from stoker._drawn_steps import run_steps


# Names that programs write; a change here breaks them.
SIGNATURES = """
affine(degrees, translate=(0, 0), scale=(1, 1), shear=0, interpolation='nearest', fill=0,
    center=None, p=1)
aug_mix(severity=3, mixture_width=3, chain_depth=-1, alpha=1, all_ops=True,
    interpolation='bilinear', fill=0, p=1)
auto_augment(policy='imagenet', interpolation='nearest', fill=0, p=1)
autocontrast(p=1)
center_crop(size=None, fill=0, mode='constant')
clamp_boxes()
color_jitter(brightness=0, contrast=0, saturation=0, hue=0, p=1)
corner_crop(corner, size=None)
cutout(size, value=127, p=1)
equalize(p=1)
five_crop(size=None)
fixed_size_crop(size=None, fill=0, mode='constant')
flip(alternating=False, p=0.5)
gaussian_blur(kernel_size, sigma=(0.1, 2), p=1)
grayscale(p=1)
invert(p=1)
letterbox(size=None, fill=114, filter='bilinear')
mix(mixup=0, cutmix=0, p=1, switch_p=0.5, per_batch=False)
operation(path, p=1, moves=True)
pad(padding, fill=0, mode='constant')
pad_to_size(size=None, fill=0)
perspective(distortion_scale=0.5, interpolation='bilinear', fill=0, p=1)
pillow_blur(radius=(0.1, 2), p=1)
posterize(bits, p=1)
random_apply(stages, p=0.5)
random_augment(num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation='nearest', fill=0,
    p=1)
random_choice(*stages, weights=None, p=1)
random_crop(size=None, padding=0, mode='constant', fill=0, pad_if_needed=False)
random_erasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, noise=False, mean=(0.485,
    0.456, 0.406), std=(0.229, 0.224, 0.225))
random_hsv(hue=0.015, saturation=0.7, value=0.4, p=1)
random_iou_crop(min_scale=0.3, max_scale=1, min_aspect_ratio=0.5, max_aspect_ratio=2,
    sampler_options=(0, 0.1, 0.3, 0.5, 0.7, 0.9, 1), trials=40)
random_order(stages, p=1)
random_photometric_distort(brightness=(0.875, 1.125), contrast=(0.5, 1.5), hue=(-0.05,
    0.05), saturation=(0.5, 1.5), p=0.5)
random_resize(min_size, max_size, filter='bilinear')
random_resized_crop(size=None, scale=(0.08, 1), ratio=(0.75, 1.3333333333333333),
    filter='bilinear')
random_shortest_size(min_size, max_size=0, filter='bilinear')
random_size_crop(min_size, max_size)
random_zoom_out(fill=0, side_range=(1, 4), p=0.5)
resize(size=None, filter='bilinear', max_size=0)
resize_center_crop(short=0, size=None, filter='bilinear')
resize_keep_ratio(size=None, longest=0, filter='bilinear', scale_p=0, scale=(0.85, 1.05),
    scale_area=False, aspect_p=0, aspect=(0.9, 1.11))
rotate(degrees, interpolation='nearest', expand=False, center=None, fill=0, p=1)
sanitize_boxes(min_size=1, min_area=1, min_visibility=0)
scale_jitter(target_size=None, scale_range=(0.1, 2), filter='bilinear')
sharpness(factor, p=1)
solarize(threshold, p=1)
ten_crop(size=None, vertical_flip=False)
timm_auto_augment(config, interpolation='random', fill=128, p=1)
trim_border(border)
trivial_augment_wide(num_magnitude_bins=31, interpolation='nearest', fill=0, p=1)
vertical_flip(p=0.5)
views(*stages, counts=None)
"""


def test_stages_are_functions_with_these_parameters_and_a_documentation():
    def written(name):
        parameters = inspect.signature(getattr(augment, name)).parameters.values()
        return f"{name}({', '.join(str(p.replace(annotation=p.empty)) for p in parameters)})"

    for signature in SIGNATURES.replace("\n    ", " ").strip().split("\n"):
        assert written(signature.split("(")[0]) == signature
    for name in set(augment.__all__) - {"Augment", "draw", "explain"}:
        function = getattr(augment, name)
        assert function.__name__ == name and len(function.__doc__) > 10
        parameters = inspect.signature(function).parameters
        assert function.__annotations__.keys() == {*parameters, "return"}
        assert typing.get_type_hints(function)["return"] is augment.Augment
    shown = pydoc.plain(pydoc.render_doc(augment.random_crop))
    assert re.search(r"random_crop\(\s*size: '?int \| tuple\[int, int\] \| None'? = None,", shown)
    assert "A box at a random place" in shown and "torchvision's RandomCrop" in shown


def test_wrong_calls_are_refused_as_of_any_function():
    with pytest.raises(TypeError, match=r"corner_crop\(\) missing 1 required positional argument"):
        augment.corner_crop()
    with pytest.raises(TypeError, match=r"flip\(\) got an unexpected keyword argument 'q'"):
        augment.flip(q=1)
    with pytest.raises(ValueError, match="random_apply: stages must be stages"):
        augment.random_apply(3)


def test_the_stub_has_all_stages(tmp_path):
    _stages.write_stub(tmp_path / "stages.pyi")
    text = (tmp_path / "stages.pyi").read_text()
    body = ast.parse(text).body
    assert [each.name for each in body if isinstance(each, ast.FunctionDef)] == _stages.__all__
    installed = Path(_stages.__file__).with_suffix(".pyi")
    assert installed.read_text() == text, "the build writes the same beside the module"


def test_an_augment_is_its_text():
    made = (
        augment.random_resized_crop(224, scale=(0.35, 1))
        | augment.random_apply(augment.color_jitter(0.4, hue=(-0.1, 0.05)) | augment.grayscale())
        | augment.random_choice(augment.flip(), augment.invert(), weights=(1, 2.5))
        | augment.flip(alternating=True)
    )
    text = (
        "random_resized_crop(224, scale=(0.35, 1)) | "
        "random_apply(color_jitter(brightness=0.4, hue=(-0.1, 0.05)) | grayscale) | "
        "random_choice(flip, invert, weights=(1, 2.5)) | flip(alternating=True)"
    )
    assert repr(made) == text
    assert augment.Augment(text) == made and hash(augment.Augment(text)) == hash(made)
    assert augment.Augment("flip( p = 0.5 )") == augment.flip() != augment.flip(p=0.4)
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.size == (224, 224) and augment.flip().size is None
    assert augment.center_crop((3, 4)).size == (3, 4)
    assert made != text and made.views == 1
    with pytest.raises(TypeError, match="augment is 3"):
        augment.Augment(3)


def test_numbers_of_numpy_are_numbers():
    values = np.array([0.25, 1])
    assert augment.sharpness(tuple(values)) == augment.sharpness((0.25, 1))
    assert augment.cutout(np.int64(4)) == augment.cutout(4)
    assert augment.rotate(np.float64(1e-7)) == augment.Augment("rotate(1e-07)")


def test_names_that_went_say_what_to_write():
    with pytest.raises(AttributeError, match=r"stoker.augment.random_crop\(padding=4, mode='refl"):
        stoker.pad_random_crop(4)
    with pytest.raises(AttributeError, match=r"resize_whole\(\) is stoker.augment.resize\(\) now"):
        stoker.resize_whole()
    with pytest.raises(AttributeError, match="no attribute 'rotate'"):
        stoker.rotate


def test_a_loader_takes_the_text_and_its_size(source, pictures):
    text = "random_resized_crop((24, 40)) | flip"
    with stoker.Loader(stoker.folder(pictures), batch_size=4, augment=text, seed=1) as loader:
        first = next(iter(loader))
        assert first.images.shape == (4, 24, 40, 3)
    made = augment.random_resized_crop() | augment.flip()
    with stoker.Loader(
        stoker.folder(pictures), batch_size=4, augment=made, seed=1, size=(24, 40)
    ) as loader:
        np.testing.assert_array_equal(next(iter(loader)).images, first.images)
    with stoker.Loader(source, batch_size=4, augment="flip") as loader:
        assert next(iter(loader)).images.shape == (4, 16, 16, 3)
    with stoker.Loader(stoker.folder(pictures), batch_size=1) as loader:
        assert next(iter(loader)).images.shape == (1, 224, 224, 3)
    with pytest.raises(ValueError, match="'flip' gives images of different sizes"):
        stoker.Loader(stoker.folder(pictures), augment="flip")


# Lists whose every step Pillow has alone (hue and gaussian_blur are torchvision's).
LISTS = (
    "random_resized_crop(40, scale=(0.2, 1), filter='lanczos') | random_augment(3, 20) | flip",
    "auto_augment('cifar10', interpolation='bilinear') | resize_center_crop(48, 40)",
    "rotate(30, 'bicubic', fill=(9, 99, 199)) | resize((40, 50), 'box') | cutout(7, (1, 2, 3))",
    "affine(20, (0.1, 0.2), (0.8, 1.2), (-5, 5, -9, 9), 'bilinear') | random_crop(40, 3, 'edge')",
    "perspective(0.7) | resize(50, 'hamming', max_size=60) | center_crop(64) | vertical_flip",
    "color_jitter(0.4, (0.3, 2), 0.9) | grayscale(p=0.3) | sharpness((0, 3)) | resize((30, 40))",
    "random_order(invert(p=0.5) | solarize(99.5) | posterize(3)) | pad((1, 2), 7) | resize((9, 9))",
    "random_choice(equalize, autocontrast, pillow_blur(3)) | random_erasing(1, value=5) | "
    "random_resized_crop(40, filter='nearest')",
    "aug_mix(8, alpha=0.4, chain_depth=2) | trivial_augment_wide | resize((32, 40), 'bicubic')",
    "timm_auto_augment('rand-m8-mstd3-n3-p0.8') | resize_keep_ratio(40, 1, 'box') | "
    "center_crop(40, (1, 2, 3))",
    "timm_auto_augment('v0-mstd1') | timm_auto_augment('augmix-m8-a0.5') | "
    "resize_keep_ratio((30, 50), 0, 'bicubic', 0.5, (0.8, 1), True, 0.5) | "
    "center_crop((30, 50), mode='reflect')",
    "trim_border(9) | timm_auto_augment('3a') | timm_auto_augment('rand-m9-mstd101-inc1', "
    "'nearest', (5, 6, 7)) | random_crop((60, 90), mode='reflect', pad_if_needed=True)",
    "random_zoom_out(7) | clamp_boxes | scale_jitter(40) | fixed_size_crop(40, 9) | sanitize_boxes",
    "random_shortest_size((20, 30), 50) | invert | pad_to_size(50)",
    "random_resize(10, 20) | random_size_crop(9, 30) | letterbox(40) | flip",
    "pad((3, 5, 7, 9), mode='symmetric') | random_crop(30, 4, 'reflect', pad_if_needed=True)",
)


@pytest.mark.parametrize("stages", LISTS)
def test_draws_say_what_pillow_does(pictures, stages):
    loader = stoker.Loader(
        stoker.folder(pictures), batch_size=37, augment=stages, seed=5, pixels=PIXELS
    )
    texts = set()
    for _ in range(2):
        for batch in loader:
            rows, draws = np.asarray(batch.images), batch.draws
            assert batch.draws == draws and len(draws) == len(rows)
            for row, name, drawn in zip(rows, batch.names, draws, strict=True):
                image = Image.open(pictures / name).convert("RGB")
                np.testing.assert_array_equal(row, np.asarray(run_steps(drawn, image)), drawn)
                texts.add(drawn)
            first = batch
    assert len(texts) > 37 or "color" not in stages
    of = dict(seed=5, epoch=first.epoch, sample=int(np.asarray(first.ids)[3]))
    assert augment.draw(stages, (72, 96), **of) == first.draws[3]
    loader.close()
    assert first.draws[3] == augment.draw(stages, (72, 96), **of), "nothing of the Loader is needed"


def test_draws_that_cannot_be_done_again_are_refused():
    image = Image.new("RGB", (8, 8))
    for drawn, name in (
        ("noise(x=0, y=0, width=2, height=2)", "noise"),
        ("flip | mixup(own_share=0.5, partner=3)", "mixup"),
        ("operation(mine)", "operation"),
        ("hue(factor=0.1)", "hue"),  # torchvision's
    ):
        with pytest.raises(ValueError, match=f"^{name}: its pixels cannot be made"):
            run_steps(drawn, image)
    with pytest.raises(ValueError, match="not what a Loader draws"):
        run_steps("1 + 2", image)
    assert run_steps("", image) is image
    filled = run_steps("fill(x=0, y=0, width=2, height=2, fill=(9, 9, 9))", image)
    assert (filled.getpixel((0, 0)), image.getpixel((0, 0))) == ((9, 9, 9), (0, 0, 0))
    white = Image.new("RGB", (8, 8), (255, 255, 255))
    assert run_steps("posterize(bits=0)", white).getextrema() == ((0, 0),) * 3


def test_rows_that_are_mixed_say_with_whom(source):
    stages = augment.flip() | augment.mix(mixup=0.4, cutmix=1)
    plain = stoker.Loader(source, batch_size=100, augment="flip", seed=3)
    mixed = stoker.Loader(source, batch_size=100, augment=stages, seed=3)
    own, batch = next(iter(plain)), next(iter(mixed))
    ids, labels = np.asarray(own.ids), np.asarray(own.labels)
    pixels = {int(i): row for i, row in zip(ids, np.asarray(own.images), strict=True)}
    kinds = set()
    for row, i, drawn, weight, other in zip(
        np.asarray(batch.images),
        ids,
        batch.draws,
        np.asarray(batch.targets["mix_weight"]),
        np.asarray(batch.targets["mix_label"]),
        strict=True,
    ):
        kind, _, said = drawn.rpartition(" | ")[2].partition("(")
        numbers = {name: float(v) for name, v in (p.split("=") for p in said[:-1].split(", "))}
        kinds.add(kind)
        partner = int(numbers["partner"])
        assert numbers["own_share"] == pytest.approx(weight)
        assert other == labels[list(ids).index(partner)]
        if kind == "cutmix":
            x, y, w, h = (int(numbers[name]) for name in ("x", "y", "width", "height"))
            wanted = pixels[int(i)].copy()
            wanted[y : y + h, x : x + w] = pixels[partner][y : y + h, x : x + w]
            np.testing.assert_array_equal(row, wanted)
        else:
            wanted = weight * pixels[int(i)].astype(float) + (1 - weight) * pixels[partner]
            assert np.abs(row - wanted).max() <= 0.51
    assert kinds == {"mixup", "cutmix"}
    assert own.targets == {} and set(batch.targets) == {"mix_weight", "mix_label"}


VIEWS = (
    "views(random_resized_crop(32) | flip, random_resized_crop((12, 20)) | grayscale, "
    "counts=(2, 3))"
)


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [
        ("uint8", "NHWC"),
        ("uint8", "channels_last"),
        ("float32", "NHWC"),
        ("float32", "NCHW"),
        ("float32", "channels_last"),
    ],
)
def test_views_are_rows_of_one_sample(pictures, dtype, layout):
    source = stoker.folder(pictures)
    assert augment.Augment(VIEWS).views == 5
    numbers = {"mean": 0.5, "std": 0.25} if dtype == "float32" else {}
    form = {"dtype": dtype, "layout": layout, **numbers}
    loader = stoker.Loader(source, batch_size=8, augment=VIEWS, seed=2, pixels=PIXELS, **form)
    assert loader.views == 5
    kept = []
    for step, batch in enumerate(loader):
        views = batch.views
        assert len(views) == 5 and batch.targets == {}
        rows = [np.asarray(view) for view in views]
        if layout != "NHWC":
            rows = [row.transpose(0, 2, 3, 1) for row in rows]
        assert [row.shape for row in rows] == [(8, 32, 32, 3)] * 2 + [(8, 12, 20, 3)] * 3
        assert (rows[0] != rows[1]).any() and (rows[2] != rows[3]).any()
        for number, (name, drawn) in enumerate(zip(batch.names, batch.draws, strict=True)):
            image = Image.open(Path(pictures) / name).convert("RGB")
            for view, line in zip(rows, drawn.split("\n"), strict=True):
                wanted = np.asarray(run_steps(line, image)).astype(dtype)
                if dtype == "float32":
                    wanted = (wanted / 255 - 0.5) / 0.25
                np.testing.assert_allclose(view[number], wanted, rtol=0, atol=1e-5)
        if step == 0:
            kept = [np.asarray(view) for view in views], [np.array(view) for view in views]
    del batch, views, rows, view
    for lent, copied in zip(*kept, strict=True):  # all of the batch's memory is kept
        np.testing.assert_array_equal(lent, copied)


@pytest.mark.parametrize(
    ("name", "mirror"),
    [
        ("five_crop((20, 28))", None),
        ("ten_crop((20, 28))", Image.Transpose.FLIP_LEFT_RIGHT),
        ("ten_crop((20, 28), vertical_flip=True)", Image.Transpose.FLIP_TOP_BOTTOM),
    ],
)
def test_crops_are_views_of_one_image(pictures, name, mirror):
    stages = augment.resize(36, "bicubic") | augment.rotate(20) | augment.Augment(name)
    assert repr(stages) == f"resize(size=36, filter='bicubic') | rotate(20) | {name}"
    assert stages.size == (20, 28) and stages.views == (10 if mirror is not None else 5)
    assert pickle.loads(pickle.dumps(stages)) == stages
    loader = stoker.Loader(stoker.folder(pictures), batch_size=8, augment=stages, pixels=PIXELS)
    batch = next(iter(loader))
    boxes = [(0, 0), (20, 0), (0, 16), (20, 16), (10, 8)]
    assert len(batch.views) == stages.views
    for number, (path, drawn) in enumerate(zip(batch.names, batch.draws, strict=True)):
        image = Image.open(pictures / path).convert("RGB")
        before = run_steps(drawn.split("\n")[0].rpartition(" | ")[0], image)
        assert before.size == (48, 36)
        for view, rows in enumerate(batch.views):
            if view == 5 and mirror is not None:
                before = before.transpose(mirror)
            left, top = boxes[view % 5]
            crop = before.crop((left, top, left + 28, top + 20))
            np.testing.assert_array_equal(np.asarray(rows)[number], np.asarray(crop))


def test_views_that_cannot_be_made(source):
    for options, message in (
        ({"augment": VIEWS, "dtype": "float16"}, "views are uint8 or float32"),
        ({"augment": f"{VIEWS} | mix(1)"}, "views must stand alone"),
    ):
        with pytest.raises(ValueError, match=message):
            stoker.Loader(source, batch_size=8, **options)


def test_explain_says_who_does_a_stage():
    lines = augment.explain("random_resized_crop(32) | invert")
    assert len(lines) == 2 and "decoder" in lines[0] and lines[1].startswith("invert")


def test_adapters_of_one_picture_refuse_views(source):
    loader = stoker.Loader(source, batch_size=8, augment=VIEWS)
    with pytest.raises(ValueError, match=r"augment has views\(\)"):
        with_one_view(loader)
    with pytest.raises(RuntimeError, match="closed"):
        iter(loader)
    loader = stoker.Loader(source, batch_size=8)
    assert with_one_view(loader) is loader


def test_draws_of_a_sample_that_comes_again_are_its_own(pictures):
    stages = "views(random_resized_crop(20) | flip, random_resized_crop(12))"
    options = {"batch_size": 20, "augment": stages, "seed": 4, "pixels": PIXELS}
    loader = stoker.Loader(stoker.folder(pictures), order=stoker.repeated(3), **options)
    batch = next(iter(loader))
    assert len(set(batch.names)) < len(set(batch.draws)) == 20
    for number, (name, drawn) in enumerate(zip(batch.names, batch.draws, strict=True)):
        image = Image.open(pictures / name).convert("RGB")
        for view, line in zip(batch.views, drawn.split("\n"), strict=True):
            np.testing.assert_array_equal(np.asarray(view)[number], run_steps(line, image))


def test_a_substitute_shows_what_was_drawn_for_it(tmp_path, pictures):
    paths = sorted(pictures.rglob("*.jpg"))[:8]
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(paths[0].read_bytes()[:200])
    source = stoker.files([broken, *paths], [0] * 9)
    options = {"augment": "random_resized_crop(20)", "seed": 4, "pixels": PIXELS, "max_bad": 3}
    batch = next(iter(stoker.Loader(source, batch_size=9, shuffle=False, **options)))
    assert np.asarray(batch.weights).tolist() == [0] + [1] * 8
    row = np.asarray(batch.images)[0]
    images = [Image.open(path).convert("RGB") for path in paths]
    assert any((row == np.asarray(run_steps(batch.draws[0], image))).all() for image in images)
