"""Random polygons and motions, and the masks that pycocotools and torchvision make of them: for make_masks.py and
check_masks.py. A request is a list of lines for `mask_rows` (tests/pipeline/mask_request.h)."""
import math

import numpy
import torch
from pycocotools import mask as coco
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional._geometry import _get_inverse_affine_matrix

BIG = 70000  # labels of 4 bytes are so many times as large


def star(rng, x, y, radius, points):
    """A star-shaped polygon around a point, as outlines of objects are."""
    polygon = []
    for i in range(points):
        angle, length = 2 * math.pi * (i + rng.uniform(0, 0.9)) / points, radius * rng.uniform(0.5, 1)
        polygon += [x + length * math.cos(angle), y + length * math.sin(angle)]
    return polygon


def draw_polygon(rng, width, height):
    """Any polygon: outlines, tangles, points on halves and whole numbers, outside the picture, far away, all on one spot."""
    digits = rng.choice([0, 1, 2, 2, 3, 15])
    return [round(float(v), digits) for v in draw_points(rng, width, height)]


def draw_points(rng, width, height):
    kind, points = rng.randrange(8), rng.choice([3, 3, 4, 5, 8, 20, 60])
    xs = [rng.uniform(0, width) for _ in range(points)]
    ys = [rng.uniform(0, height) for _ in range(points)]
    if kind == 0:
        return star(rng, rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.3, max(width, height)), points)
    if kind == 1:  # on the fine grid of rleFrPoly(), and between its points
        xs, ys = [[math.floor(v * 10) / 10 for v in values] for values in (xs, ys)]
    elif kind == 2:
        steps = rng.choice([1, 2, 5])
        xs, ys = [[math.floor(v * steps) / steps for v in values] for values in (xs, ys)]
    elif kind == 3:
        xs, ys = [3 * v - width for v in xs], [3 * v - height for v in ys]
    elif kind == 4:
        x, y = rng.uniform(-1, width), rng.uniform(-1, height)
        xs, ys = [x + rng.uniform(0, 1.5) for _ in xs], [y + rng.uniform(0, 1.5) for _ in ys]
    elif kind == 5:  # repeated points, and edges without a length
        i = rng.randrange(points)
        xs[i], ys[i] = xs[i - 1] + rng.uniform(0, 0.1), ys[i - 1]
        xs, ys = xs + xs[:2], ys + ys[:2]
    elif kind == 6:  # the corners of a box
        left, right = sorted(xs[:2])
        top, bottom = sorted(ys[:2])
        return [left, top, right, top, right, bottom, left, bottom]
    elif kind == 7:
        far = 300000 if points < 5 else 9000
        xs, ys = [[v + rng.choice([0, 0, -far, far]) for v in values] for values in (xs, ys)]
    return [v for point in zip(xs, ys) for v in point]


def draw_size(rng):
    most = rng.choice([3, 20, 80, 200]) if rng.random() < 0.98 else 700
    return rng.randint(1, most), rng.randint(1, most)


def polygon_lines(polygons):
    return ["polygon " + " ".join(repr(float(v)) for v in polygon) for polygon in polygons]


def coco_mask(polygons, width, height):
    return coco.merge(coco.frPyObjects(polygons, height, width))


def counts_of(compressed):
    """The run lengths of a compressed text, as pycocotools writes it."""
    counts, at = [], 0
    while at < len(compressed):
        number, shift, more = 0, 0, True
        while more:
            digit = compressed[at] - 48
            number |= (digit & 31) << shift
            more, at, shift = digit & 32, at + 1, shift + 5
        if digit & 16:
            number -= 1 << shift
        counts.append(number + (counts[-2] if len(counts) > 2 else 0))
    return counts


def label_image(width, height, fill):
    y, x = numpy.mgrid[:height, :width]
    return torch.from_numpy(((31 * x + 17 * y) % 97 + fill + 1).astype(numpy.int32))


def line_of(name, width, height, values):
    return f"move {name} {width} {height} " + " ".join(repr(float(v)) for v in values)


def size_of(masks):
    return masks[0].shape[-1], masks[0].shape[-2]


def crop(rng, masks, fills):
    width, height = size_of(masks)
    new_width, new_height = rng.randint(1, width), rng.randint(1, height)
    x, y = rng.randint(0, width - new_width), rng.randint(0, height - new_height)
    line = line_of("crop", new_width, new_height, [x, y, new_width, new_height])
    return [F.crop_mask(mask, y, x, new_height, new_width) for mask in masks], line


def resize(rng, masks, fills):
    width, height = [max(1, min(700, round(side * rng.choice([1, 2, 0.5, 3, rng.uniform(0.2, 3)])))) for side in size_of(masks)]
    return [F.resize_mask(mask, [height, width]) for mask in masks], line_of("resize", width, height, [width, height])


def flip(rng, masks, fills):
    return [F.horizontal_flip_mask(mask) for mask in masks], line_of("flip", *size_of(masks), [])


def vertical_flip(rng, masks, fills):
    return [F.vertical_flip_mask(mask) for mask in masks], line_of("vertical_flip", *size_of(masks), [])


def pad(rng, masks, fills):
    sides = [rng.choice([0, rng.randint(0, 20)]) for _ in range(4)]
    moved = [F.pad_mask(mask, sides, fill=fill) for mask, fill in zip(masks, fills)]
    return moved, line_of("pad", *size_of(moved), sides)


def turn(rng, masks, fills):
    quarters = rng.randint(1, 3)
    moved = [F.rotate_mask(mask, 90 * quarters, expand=True) for mask in masks]
    return moved, line_of("turn", *size_of(moved), [quarters])


def affine(rng, masks, fills):
    width, height = size_of(masks)
    angle = rng.choice([0.0, 90.0, 45.0, rng.uniform(-180, 180)])
    translate = [rng.choice([0, rng.randint(-9, 9), rng.uniform(-20, 20)]) for _ in range(2)]
    scale, shear = rng.choice([1.0, 2.0, 0.5, rng.uniform(0.4, 2)]), [rng.choice([0.0, rng.uniform(-25, 25)]) for _ in range(2)]
    center = rng.choice([None, [rng.uniform(0, width), rng.uniform(0, height)]])
    matrix = _get_inverse_affine_matrix(center or [width * 0.5, height * 0.5], angle, translate, scale, shear)
    moved = [F.affine_mask(mask, angle, translate, scale, shear, fill=fill, center=center) for mask, fill in zip(masks, fills)]
    return moved, line_of("affine", width, height, matrix)


def rotate(rng, masks, fills):
    """With the matrix of Image.rotate of Pillow."""
    width, height = size_of(masks)
    angle = rng.choice([30.0, 45.0, rng.uniform(1, 89), rng.uniform(91, 179), rng.uniform(181, 269), rng.uniform(271, 359)])
    center = rng.choice([None, [rng.uniform(0, width), rng.uniform(0, height)]])
    expand = center is None and rng.random() < 0.5
    radians = -math.radians(angle)
    cosine, sine = round(math.cos(radians), 15), round(math.sin(radians), 15)
    matrix = [cosine, sine, 0.0, round(-math.sin(radians), 15), cosine, 0.0]
    x, y = center or (width / 2, height / 2)
    matrix[2] = matrix[0] * -x + matrix[1] * -y + x
    matrix[5] = matrix[3] * -x + matrix[4] * -y + y
    moved = [F.rotate_mask(mask, angle, expand=expand, center=center, fill=fill) for mask, fill in zip(masks, fills)]
    new_width, new_height = size_of(moved)
    if expand:
        dx, dy = -(new_width - width) / 2.0, -(new_height - height) / 2.0
        matrix[2], matrix[5] = matrix[0] * dx + matrix[1] * dy + matrix[2], matrix[3] * dx + matrix[4] * dy + matrix[5]
    return moved, line_of("affine", new_width, new_height, matrix)


def perspective(rng, masks, fills):
    width, height = size_of(masks)
    coefficients = [1 + rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), rng.uniform(-0.2, 0.2) * width,
                    rng.uniform(-0.3, 0.3), 1 + rng.uniform(-0.3, 0.3), rng.uniform(-0.2, 0.2) * height,
                    rng.uniform(-0.5, 0.5) / width, rng.uniform(-0.5, 0.5) / height]
    coefficients = [float(numpy.float32(v)) for v in coefficients]
    moved = [F.perspective_mask(mask, None, None, fill=fill, coefficients=coefficients) for mask, fill in zip(masks, fills)]
    return moved, line_of("perspective", width, height, coefficients)


SEPARABLE = [crop, resize, flip, vertical_flip, pad, turn]
WARPS = [affine, rotate, perspective]


def draw_moved(rng, motions):
    """Draws an object, labels and some motions. Returns the lines for mask_rows and the expected answers."""
    width, height = draw_size(rng)
    polygons = [draw_polygon(rng, width, height) for _ in range(rng.choice([1, 1, 2, 3]))]
    mask = coco_mask(polygons, width, height)
    if rng.random() < 0.3:
        lines = ["runs " + " ".join(map(str, counts_of(mask["counts"])))]
    else:
        lines = polygon_lines(polygons)
    fill = rng.choice([0, 7, 150])
    labels = label_image(width, height, fill)
    masks = [torch.from_numpy(numpy.ascontiguousarray(coco.decode(mask))), labels.to(torch.uint8), labels * BIG]
    fills = [0, fill, fill]
    for _ in range(rng.randint(1, 5)):
        masks, line = rng.choice(motions)(rng, masks, fills)
        lines.append(line)
    if rng.random() < 0.5:
        masks, line = crop(rng, masks, fills)
        lines.append(line)
    masks = [moved.numpy() for moved in masks]
    bits = numpy.packbits(masks[0], axis=1, bitorder="little")
    answers = {"bytes": masks[0].tobytes(), "bits": bits.tobytes(), f"labels {fill}": masks[1].tobytes(),
               f"wide {fill}": masks[2].astype(numpy.int32).tobytes()}
    return [f"picture {width} {height}", *lines], answers
