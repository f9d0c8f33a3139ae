#!/usr/bin/env python3
"""Draws the gallery: every stage that `stoker augment` lists, as a picture that the program makes. gallery.py --out DIR

Writes DIR/gallery.md, which begins as augment/gallery.md, and DIR/gallery/STAGE.webp. A stage without an entry in SHOWN is an error, so a new stage cannot be forgotten.
"""
import argparse
import io
import pathlib
import subprocess
import sys
import tempfile
import textwrap
from typing import NamedTuple

import numpy
import stoker
from PIL import Image, ImageDraw, ImageFont
from scene import NAMES, SIZE, lines_of, scene
from stoker import _core, augment

WIDTH, HEIGHT = SIZE
ROOT = pathlib.Path(__file__).resolve().parents[3]
# By object; each is told from the scene and from the others.
COLOURS = [(255, 0, 200), (255, 255, 0), (0, 255, 255)]


class Shown(NamedTuple):
    call: str  # as one writes it in Python
    see: str  # what one sees: a part of the picture's alternative text
    draws: int = 3  # how many epochs are shown; 1 where nothing is random
    objects: bool = False  # boxes and masks are drawn
    size: tuple | None = None  # (height, width) of the rows; default: the scene's
    seed: int = 7


GROUPS = {
    "Crops and sizes": {
        "random_resized_crop": Shown("augment.random_resized_crop(scale=(0.15, 1))", "three boxes of the scene, each enlarged to the whole picture: one sees other parts, somewhat wider or narrower"),
        "resize_center_crop": Shown("augment.resize_center_crop(short=280)", "the middle of the scene, a little enlarged; the sides are cut off", 1, size=(240, 240)),
        "resize": Shown("augment.resize((120, 320))", "the whole scene, squashed to half its height", 1, size=(120, 320)),
        "resize_keep_ratio": Shown("augment.resize_keep_ratio(longest=1) | augment.pad_to_size((240, 240), fill=114)", "the whole scene, smaller and in its own shape, with grey below it", 1, size=(240, 240)),
        "resize_cover": Shown("augment.resize_cover() | augment.center_crop()", "the scene in its own shape, as large as the square needs; the left and right ends are cut off", 1, size=(240, 240)),
        "center_crop": Shown("augment.center_crop(160)", "the middle of the scene, at its own scale", 1, size=(160, 160)),
        "corner_crop": Shown("augment.corner_crop('bottom_right', 160)", "the lower right corner with the tree, at its own scale", 1, size=(160, 160)),
        "random_crop": Shown("augment.random_crop((160, 220))", "three boxes of one size at different places of the scene", size=(160, 220)),
        "random_size_crop": Shown("augment.random_size_crop(100, 220) | augment.letterbox()", "three boxes with sides of other lengths, each fitted into the picture with grey at its sides"),
        "trim_border": Shown("augment.trim_border(40) | augment.resize()", "the scene without 40 pixels at each side", 1, size=(160, 240)),
        "pad": Shown("augment.resize((240, 320)) | augment.pad(24, mode='reflect')", "the scene with a border of 24 pixels in which its edge is mirrored", 1, size=(288, 368)),
        "random_shortest_size": Shown("augment.random_shortest_size((100, 160, 240)) | augment.pad_to_size((240, 320))", "the scene in three sizes, each at the upper left with black beside it"),
        "random_resize": Shown("augment.random_resize(80, 240) | augment.pad_to_size((240, 320))", "the scene in three random sizes, each at the upper left with black beside it"),
        "scale_jitter": Shown("augment.scale_jitter((240, 320), scale_range=(0.4, 1.6)) | augment.fixed_size_crop((240, 320), fill=114)", "the scene once smaller with grey beside it, and enlarged so that a part fills the picture"),
        "fixed_size_crop": Shown("augment.fixed_size_crop((280, 240), fill=114)", "three boxes of the scene at its own scale, with grey below, because they are higher than the scene", size=(280, 240)),
        "letterbox": Shown("augment.letterbox((240, 240))", "the whole scene in the middle of a square, with grey above and below", 1, size=(240, 240)),
        "pad_to_size": Shown("augment.pad_to_size((280, 360), fill=114)", "the scene at the upper left, with grey at the right and below", 1, size=(280, 360)),
    },
    "For boxes, masks and keypoints": {
        "random_zoom_out": Shown("augment.random_zoom_out(114, side_range=(1.2, 2.5), p=1) | augment.resize()", "the scene small, at random places of a grey canvas, with the boxes and masks of its objects on it", objects=True),
        "random_iou_crop": Shown("augment.random_iou_crop() | augment.resize()", "random parts of the scene, each with at least one object, with cut boxes and masks", objects=True),
        "clamp_boxes": Shown("augment.resize() | augment.affine(0, translate=(0.3, 0.3), fill=114) | augment.clamp_boxes()", "the scene moved; boxes end at the sides of the picture", objects=True),
        "sanitize_boxes": Shown("augment.random_crop(150) | augment.sanitize_boxes(min_visibility=0.5)", "small crops; an object of which less than half is left has neither box nor mask", objects=True, size=(150, 150)),
        "mosaic": Shown("augment.mosaic(200)", "four scenes around a random point of a grey canvas, with the boxes and masks of all of their objects", objects=True, size=(400, 400)),
        "mixup": Shown("augment.resize() | augment.mixup()", "two scenes, one shining through the other, with the boxes and masks of both", objects=True),
        "copy_paste": Shown("augment.resize() | augment.copy_paste()", "objects of another scene, pasted onto this one at their places; what they cover has a cut mask", objects=True, seed=6),
    },
    "Geometry": {
        "flip": Shown("augment.resize() | augment.flip()", "the scene three times, mirrored left to right in some of them", seed=6),
        "vertical_flip": Shown("augment.resize() | augment.vertical_flip(p=1)", "the scene upside down", 1),
        "rotate": Shown("augment.resize() | augment.rotate(30, interpolation='bilinear', fill=114)", "the scene turned by three angles, with grey corners and turned masks", objects=True),
        "affine": Shown("augment.resize() | augment.affine(15, translate=(0.1, 0.1), scale=(0.7, 1.2), shear=10, interpolation='bilinear', fill=114)", "the scene turned, moved, scaled and slanted at once, with moved masks", objects=True),
        "perspective": Shown("augment.resize() | augment.perspective(0.5, fill=114, p=1)", "the scene as a plate that is seen from the side, with moved masks", objects=True),
    },
    "Colours": {
        "color_jitter": Shown("augment.resize() | augment.color_jitter(0.4, 0.4, 0.4, 0.1)", "the scene in three moods: brighter or darker, paler or stronger, with shifted hues"),
        "random_photometric_distort": Shown("augment.resize() | augment.random_photometric_distort(p=0.8)", "the scene with changed contrast and hue; where channels are exchanged, the sky has another colour"),
        "random_hsv": Shown("augment.resize() | augment.random_hsv(0.05)", "the scene with slightly turned hues, paler or stronger, brighter or darker"),
        "grayscale": Shown("augment.resize() | augment.grayscale()", "the scene in greys", 1),
        "invert": Shown("augment.resize() | augment.invert()", "the scene as a negative: an orange sky, a blue roof", 1),
        "posterize": Shown("augment.resize() | augment.posterize(2)", "the scene in few colours; the sky has steps", 1),
        "solarize": Shown("augment.resize() | augment.solarize(128)", "bright parts are inverted: the house and the lower sky are dark", 1),
        "equalize": Shown("augment.resize() | augment.equalize()", "the scene with harder contrasts, each channel evenly spread", 1),
        "autocontrast": Shown("augment.resize() | augment.color_jitter(contrast=(0.3, 0.3)) | augment.autocontrast()", "a scene that was made pale has its full contrast again", 1),
    },
    "Sharpness": {
        "sharpness": Shown("augment.resize() | augment.sharpness(6)", "the scene with hard edges around house, window and pebbles", 1),
        "gaussian_blur": Shown("augment.resize() | augment.gaussian_blur(15, sigma=(0.5, 5))", "the scene three times, out of focus by different amounts"),
        "pillow_blur": Shown("augment.resize() | augment.pillow_blur((0.5, 4))", "the scene three times, out of focus by different amounts"),
    },
    "Choices": {
        "random_apply": Shown("augment.resize() | augment.random_apply(augment.color_jitter(0.4) | augment.grayscale(), p=0.5)", "the scene in greys, and as it is"),
        "random_choice": Shown("augment.resize() | augment.random_choice(augment.invert(), augment.solarize(128), augment.vertical_flip(p=1))", "one change at a time: negative, solarized, or upside down"),
        "random_order": Shown("augment.resize() | augment.random_order(augment.posterize(2) | augment.rotate(20) | augment.invert())", "a turned negative in few colours; the corners are black where it was turned last, white where it was inverted later"),
    },
    "Policies": {
        "random_augment": Shown("augment.resize() | augment.random_augment(2, 12)", "the scene with two random operations each time, such as a slant and other colours"),
        "trivial_augment_wide": Shown("augment.resize() | augment.trivial_augment_wide()", "the scene with one random operation each time", seed=8),
        "auto_augment": Shown("augment.resize() | augment.auto_augment('imagenet')", "the scene with a learned pair of operations each time"),
        "aug_mix": Shown("augment.resize() | augment.aug_mix(severity=6)", "the scene with faint turned and moved copies of itself over it", seed=6),
        "timm_auto_augment": Shown("augment.resize() | augment.timm_auto_augment('rand-m9-mstd0.5-inc1')", "the scene with two of timm's operations each time"),
    },
    "What is covered": {
        "cutout": Shown("augment.resize() | augment.cutout(80)", "a grey square covers another part of the scene each time"),
        "random_erasing": Shown("augment.resize() | augment.random_erasing(p=1, noise=True)", "a box of coloured noise covers another part of the scene each time"),
    },
    "Texts": {
        "drop_text": Shown("augment.resize() | augment.drop_text(0.5)", "the scene stays as it is; the caption below it is there, or is empty", seed=1),
    },
    "Several pictures or rows of a sample": {
        "same": Shown("{'image': augment.same(augment.random_crop(150) | augment.flip()) | augment.color_jitter(0.4), 'edges': augment.same(augment.random_crop(150) | augment.flip())}", "pairs of a crop of the scene and the same crop of its edges, white on black; only the scene changes its colours", size=(150, 150)),
        "pictures": Shown("{'image': augment.resize() | augment.same(augment.rotate(20)), 'edges': augment.resize() | augment.same(augment.rotate(20))}", "pairs of the scene and its edges, white on black, turned by the same angle"),
        "mix": Shown("augment.resize() | augment.mix(mixup=0.8, cutmix=1)", "the scene with another one shining through, or with a box of it", seed=4),
        "views": Shown("augment.views(augment.random_resized_crop(scale=(0.4, 1)) | augment.flip(), augment.random_resized_crop(120, scale=(0.05, 0.3)), counts=(2, 2))", "of one scene two large crops and two small ones", 1, size=(240, 240)),
        "five_crop": Shown("augment.five_crop(150)", "the four corners and the middle of the scene", 1, size=(150, 150)),
        "ten_crop": Shown("augment.ten_crop(150)", "the four corners and the middle of the scene, and the same of its mirror image", 1, size=(150, 150)),
    },
    "Your own": {
        "operation": Shown("augment.resize() | augment.operation('libsolarize.so')", "a stage in C++ of one's own, here one that inverts the bytes above a random threshold in half of the rows"),
    },
}
SHOWN = {name: shown for group in GROUPS.values() for name, shown in group.items()}


def listed():
    """The names that `stoker augment` prints: both come from the library's table."""
    return [name for name, _, _ in _core.stage_table()]


def forgotten():
    return sorted(set(listed()) ^ set(SHOWN))


def png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def plain_source(scenes):
    return stoker.memory([png(each.image) for each in scenes], [0] * len(scenes))


def source_for(name, shown, scenes):
    plain = plain_source(scenes)
    if name in ("same", "pictures"):
        return stoker.with_pictures(plain, {"edges": stoker.memory([png(lines_of(each.image)) for each in scenes], [0] * len(scenes))})
    if name == "drop_text":
        return stoker.with_targets(plain, {"caption": ["a house, a tree and a balloon"] * len(scenes)})
    if shown.objects:
        return stoker.with_annotations(
            plain,
            [{"boxes": each.boxes, "labels": [0, 1, 2], "size": (HEIGHT, WIDTH), "masks": [[[v for point in line for v in point]] for line in each.outlines]}
             for each in scenes],
            class_names=NAMES)
    return plain


def solarize_library(folder):
    """Builds the operation of tests/consumer, with the headers as an installation lays them out."""
    headers = pathlib.Path(folder) / "include/stoker"
    headers.mkdir(parents=True)
    for part in ("decode", "pipeline", "staging"):
        (headers / part).symlink_to(ROOT / part)
    numbers = stoker.__version__.split(".")
    (headers / "version.h").write_text(f'#define STOKER_VERSION "{stoker.__version__}"\n' + "".join(
        f"#define STOKER_VERSION_{part} {number}\n" for part, number in zip(("MAJOR", "MINOR", "PATCH"), numbers)))
    library = pathlib.Path(folder) / "libsolarize.so"
    subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", f"-I{headers.parent}", f"-I{ROOT}",
                    ROOT / "tests/consumer/operation/solarize.cc", "-o", library], check=True)
    return library


def with_objects(row, batch, place):
    """Draws what lies on a row: masks as tint, boxes as lines."""
    count = int(numpy.asarray(batch.targets["object_count"])[place])
    boxes = numpy.asarray(batch.targets["boxes"])[place][:count]
    labels = numpy.asarray(batch.targets["labels"])[place][:count]
    masks = numpy.asarray(batch.targets["masks"])[place][:count]
    pixels = row.astype(float)
    for label, mask in zip(labels, masks):
        pixels[mask > 0] = 0.6 * pixels[mask > 0] + 0.4 * numpy.array(COLOURS[label])
    image = Image.fromarray(pixels.astype("uint8"))
    draw = ImageDraw.Draw(image)
    for label, (left, top, right, bottom) in zip(labels, boxes):
        draw.rectangle([left, top, max(left, right - 1), max(top, bottom - 1)], outline=COLOURS[label], width=2)
    return image


def rows_of(name, shown, scenes, library):
    """Returns the pictures of a stage, and what was drawn for each."""
    how = eval(shown.call.replace("libsolarize.so", str(library)), {"augment": augment})
    more = {"annotations": stoker.Annotations(masks="bytes", max_objects=40)} if shown.objects else {}
    if name == "drop_text":
        more["max_target_bytes"] = 256
    loader = stoker.Loader(source_for(name, shown, scenes), batch_size=len(scenes), size=shown.size or (HEIGHT, WIDTH), augment=how,
                           seed=shown.seed, shuffle=False, device="cpu", workers=1, **more)
    pictures, drawn = [], []
    try:
        for _ in range(shown.draws):
            for batch in loader:
                row = numpy.asarray(batch.images)[0]
                parts = [with_objects(row, batch, 0) if shown.objects else Image.fromarray(row)]
                if name in ("same", "pictures"):
                    parts.append(Image.fromarray(numpy.asarray(batch.pictures["edges"])[0]))
                elif getattr(batch, "views", None) and len(batch.views) > 1:
                    parts = [Image.fromarray(numpy.asarray(view)[0]) for view in batch.views]
                elif name == "drop_text":
                    parts[0] = with_caption(parts[0], batch.texts[0])
                pictures += [part.copy() for part in parts]
                drawn.append(batch.draws[0].replace("\n", "; "))
    finally:
        loader.close()
    return pictures, drawn


def with_caption(image, text):
    draw = ImageDraw.Draw(image)
    draw.rectangle([0, HEIGHT - 28, WIDTH, HEIGHT], fill="white")
    draw.text((8, HEIGHT - 24), f"caption: “{text}”", fill="black", font=ImageFont.load_default(16))
    return image


def sheet(pictures):
    """The scene and what was made of it, side by side; two in a line, so that a phone shows them large enough."""
    gap = 8
    tiles = []
    for picture in pictures:
        if picture.width > WIDTH or picture.height > HEIGHT:
            picture.thumbnail((WIDTH, HEIGHT))
        tiles.append(picture)
    across = 2 if len(tiles) < 9 else 3
    lines = [tiles[i:i + across] for i in range(0, len(tiles), across)]
    heights = [max(tile.height for tile in line) for line in lines]
    canvas = Image.new("RGBA", (across * WIDTH + (across - 1) * gap, sum(heights) + gap * (len(lines) - 1)))
    y = 0
    for line, height in zip(lines, heights):
        for i, tile in enumerate(line):
            canvas.paste(tile, (i * (WIDTH + gap) + (WIDTH - tile.width) // 2, y + (height - tile.height) // 2))
        y += height + gap
    return canvas


def short(text, most=400):
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def entry(name, shown, pictures, drawn, before):
    """The stage's part of the page."""
    head, _, _ = next(documentation for each, documentation, _ in _core.stage_table() if each == name).partition("\n")
    call = shown.call.replace(" | ", "\n | ") if len(shown.call) > 90 else shown.call
    how = eval(shown.call, {"augment": augment}) if name != "operation" else None
    lines = [f"### {name}", "", head.rstrip(".") + ".", "", "```python", *textwrap.wrap(call, 100, break_long_words=False, subsequent_indent="    "), "```", ""]
    if isinstance(how, augment.Augment):
        lines += [f"As text: `{how!r}`", ""]
    lines += [f"![{name}: first {before}; then {shown.see}.](gallery/{name}.webp)", ""]
    if len(set(drawn)) > 1:
        lines += ["What was drawn:", "", *(f"{i}. `{short(one)}`" for i, one in enumerate(drawn, 1)), ""]
    elif drawn and drawn[0]:
        lines += [f"What was done: `{short(drawn[0])}`", ""]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--only", help="one stage")
    arguments = parser.parse_args()
    if forgotten():
        sys.exit(f"the gallery and stoker augment differ in: {', '.join(forgotten())}; see SHOWN in {__file__}")
    folder = arguments.out / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    scenes = [scene(i) for i in range(4)]
    page = [(ROOT / "tools/docs/augment/gallery.md").read_text(encoding="utf-8")]
    with tempfile.TemporaryDirectory() as temporary:
        library = solarize_library(temporary)
        for group, stages in GROUPS.items():
            page += [f"## {group}", ""]
            for name, shown in stages.items():
                if arguments.only not in (None, name):
                    continue
                pictures, drawn = rows_of(name, shown, scenes, library)
                drawn = [one.replace(str(library), "libsolarize.so") for one in drawn]
                before = [scenes[0].image.copy()]
                if name in ("same", "pictures"):
                    before.append(lines_of(before[0]))
                sheet(before + pictures).save(folder / f"{name}.webp", quality=88, method=4)
                page += entry(name, shown, pictures, drawn, "the scene (a house, a tree, a balloon)")
    (arguments.out / "gallery.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
