"""Annotations of pictures: boxes, masks, keypoints and label images, which move with the pixels."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stoker import _core
from stoker._arguments import choose, yes_or_no
from stoker._recipe import made
from stoker._target_values import packed
from stoker._views import check_source

BOX_FORMATS = {each.name: each for each in _core.BoxFormat}
# The rotated ones, and of how many numbers they are.
ROTATED = {"xyxyxyxy": 8, "xywhr": 5, "cxcywhr": 5}
_MASKS = {None: _core.RowMasks.none, "bytes": _core.RowMasks.bytes, "bits": _core.RowMasks.bits}
_TOO_MANY = {each.name: each for each in _core.TooManyObjects}
ENTRIES = (
    "boxes", "labels", "ids", "area", "iscrowd", "keypoints", "masks", "label_image", "size",
    "image_id",
)  # fmt: skip


@dataclass(frozen=True)
class Annotations:
    """How a Loader hands on what lies on the pictures of its source: Loader(annotations=).

    Batch.targets has it as arrays on the Loader's device, padded to max_objects places in each row;
    behind a row's last object everything is 0, labels are -1, and masks are whatever was there:
        boxes: float32 (rows, max_objects, 4), or 5 or 8 numbers if they are rotated
        labels, object_ids: int64 (rows, max_objects); area: float32; iscrowd: uint8
        keypoints: float32 (rows, max_objects, points, 3): x, y, visibility
        masks: uint8 (rows, max_objects, height, width), or its bits
        object_count: int32 (rows); picture_box: int32 (rows, 4), as Batch.picture_boxes
        image_id: int64 (rows), the data's number of the picture (COCO's); -1: it has none
        label_image: uint8 (int32 for panoptic ids) (rows, height, width)

    max_objects: places in each row.
    too_many: of a row with more objects: 'keep_largest', by the area of their boxes
        (Loader.stats() counts 'full_rows' and 'objects_left_out'), or 'fail', a bad sample.
    box_format: 'xyxy', 'xywh', 'cxcywh'; of rotated boxes 'xyxyxyxy', 'xywhr', 'cxcywhr', as
        torchvision names them; default: 'xyxy', 'cxcywhr'.
    masks: None: masks of objects are not made; 'bytes': 0 or 1 for each pixel; 'bits': eight pixels
        in a byte, the leftmost in the lowest bit, and lines begin with a byte.
    ignore_label: the label of a label image where there is no picture.
    packed: True: besides, boxes to keypoints of all rows one behind the other, without gaps:
        'packed_boxes' and so on, of the shapes above; row r's objects are at object_offsets[r]
        (int32) of packed_boxes.reshape(-1, 4), and as many as object_count[r].
    """

    max_objects: int = 100
    too_many: str = "keep_largest"
    box_format: str | None = None
    masks: str | None = None
    ignore_label: int = 255
    packed: bool = False

    def core(self, source: _core.Source) -> _core.AnnotationOptions:
        """Returns the options for a source. ValueError: an argument, with its value."""
        options = _core.AnnotationOptions()
        options.max_objects = self._whole("max_objects", 1 << 16)
        options.too_many = choose("too_many", self.too_many, _TOO_MANY)
        usual = "cxcywhr" if source.annotations.get("rotated") else "xyxy"
        options.box_format = choose("box_format", self.box_format or usual, BOX_FORMATS)
        if self.masks not in _MASKS:
            raise ValueError(f"masks is {self.masks!r}, must be None, 'bytes' or 'bits'")
        options.masks = _MASKS[self.masks]
        options.packed = yes_or_no("packed", self.packed)
        options.ignore_label = self._whole("ignore_label", (1 << 31) - 1)
        return options

    def _whole(self, field: str, most: int) -> int:
        value = getattr(self, field)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise ValueError(f"{field} is {value!r}, must be a whole number up to {most}")
        return value


def with_annotations(
    source: _core.Source,
    annotations: Sequence[Mapping[str, Any]] | Callable[[str], Mapping[str, Any]],
    *,
    class_names: Sequence[str] = (),
    keypoint_names: Sequence[str] = (),
    box_format: str = "xyxy",
) -> _core.Source:
    """The same samples with what lies on their pictures. Unlike targets, it moves with the pixels:
    crops, resizes, flips, rotations and warps of a Loader move boxes, masks and keypoints as
    torchvision.transforms.v2 moves its tv_tensors.

        source = stoker.with_annotations(stoker.files(paths), [
            {"boxes": [[10, 20, 50, 60]], "labels": [3], "size": (480, 640)}, ...])

    annotations: for each sample, in the order of the source, a dict; or a function that returns it
        for a sample's name, which is called once for each. All entries but boxes and labels are
        optional, and every sample has the same ones:
            boxes: (n, 4), in pixels of the picture; or rotated ones (n, 5) or (n, 8)
            labels: (n,) whole numbers, 0 or more
            ids, area, iscrowd: (n,); default: 0, 1, ...; the boxes' areas; False
            keypoints: (n, points, 2), or (n, points, 3) with COCO's visibility
            masks: n of: polygons, a list of [x0, y0, x1, y1, ...]; or COCO's run lengths, a dict of
                size and counts (a list, or the compressed text); or an array (height, width)
            label_image: the path of a PNG of classes (gray, or the numbers of a palette)
            size: (height, width) of the picture, by which one of another size is found out
            image_id: a number of the picture's own; default: its place in the source
        A sample with only a label_image has no boxes and labels.
    class_names: by label. keypoint_names: as many as there are points.
    box_format: that of the boxes; 'xywh' is COCO's.

    ValueError, TypeError: what does not fit, with the sample's name.
    """
    check_source("source", source)
    choose("box_format", box_format, BOX_FORMATS)
    names = [source.name(i) for i in range(len(source))]
    rows = [annotations(name) for name in names] if callable(annotations) else list(annotations)
    if len(rows) != len(names):
        raise ValueError(f"annotations has {len(rows)} entries, and there are {len(names)} samples")
    root = os.getcwd()
    pictures = [
        picture_of(row, box_format, Where(name, place, root, f"annotations of {name!r}"))
        for place, (name, row) in enumerate(zip(names, rows, strict=True))
    ]
    info = Info.of(pictures, list(class_names), list(keypoint_names), box_format)
    return _with_annotations(source, info, [picture.tuple() for picture in pictures])


@dataclass
class Picture:
    """Annotations of one picture, as the C++ part takes them."""

    name: str
    keys: frozenset[str]
    size: tuple[int, int] | None
    objects: list[Any]
    corners: list[Any]
    keypoints: list[tuple[float, float, float]]
    points: int  # of each object
    masks: list[Any]
    label_file: str
    picture_id: int

    def tuple(self) -> tuple[Any, ...]:
        return (
            self.name, self.size, self.objects, self.corners, self.keypoints, self.masks,
            self.label_file, self.picture_id,
        )  # fmt: skip


@dataclass(frozen=True)
class Info:
    """The kinds of annotations of a source."""

    objects: bool
    rotated: bool
    masks: bool
    keypoints: int
    label_bytes: int
    class_names: list[str]
    keypoint_names: list[str]

    @staticmethod
    def of(
        pictures: list[Picture], class_names: list[str], keypoint_names: list[str], box_format: str
    ) -> Info:
        keys = pictures[0].keys if pictures else frozenset()
        for picture in pictures:
            if picture.keys != keys:
                others = ", ".join(sorted(picture.keys ^ keys))
                raise ValueError(
                    f"annotations of {picture.name!r}: others have {others}, or it alone has; all "
                    "samples must have the same entries"
                )
        points = max((picture.points for picture in pictures), default=0)
        for picture in pictures:
            if picture.objects and picture.points != points:
                raise ValueError(
                    f"annotations of {picture.name!r}: {picture.points} keypoints of each object, "
                    f"others have {points}"
                )
        if keypoint_names and len(keypoint_names) != points:
            raise ValueError(f"{len(keypoint_names)} keypoint_names for {points} keypoints")
        return Info(
            objects="boxes" in keys,
            rotated=box_format in ROTATED,
            masks="masks" in keys,
            keypoints=points,
            label_bytes=1 if "label_image" in keys else 0,
            class_names=class_names,
            keypoint_names=keypoint_names,
        )

    def core(self) -> _core.AnnotationInfo:
        return _core.AnnotationInfo(
            self.objects, self.rotated, self.masks, self.keypoints, self.label_bytes,
            self.class_names, self.keypoint_names,
        )  # fmt: skip


class Where(NamedTuple):
    """Which sample annotations are of."""

    name: str
    place: int  # in the source
    root: str  # what the label image's path is relative to
    words: str  # at the beginning of an error


def picture_of(row: Any, box_format: str, where: Where) -> Picture:
    """Returns what a dict of with_annotations() says. ValueError, TypeError: what does not fit."""
    picture: Picture = _named(where.words, _picture, row, box_format, where)
    return picture


def _named(words: str, convert: Callable[..., Any], *values: Any) -> Any:
    """Returns convert(*values), whose error gets the words in front."""
    try:
        return convert(*values)
    except (ValueError, TypeError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{words}: {error}") from None


def _picture(row: Any, box_format: str, where: Where) -> Picture:
    if not isinstance(row, Mapping):
        raise TypeError(f"{type(row).__name__}, must be a dict")
    unknown = [key for key in row if key not in ENTRIES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no entry; there are {', '.join(ENTRIES)}")
    objects, corners = _objects(row, box_format)
    keypoints, points = _keypoints(row, len(objects))
    masks = [_named(f"object {i}", _mask, mask) for i, mask in enumerate(row.get("masks", ()))]
    if masks and len(masks) != len(objects):
        raise ValueError(f"{len(masks)} masks for {len(objects)} boxes")
    label_image = row.get("label_image")
    label_file = "" if label_image is None else os.path.join(where.root, os.fspath(label_image))
    return Picture(
        name=where.name,
        keys=frozenset(key for key in row if key in ("boxes", "masks", "label_image")),
        size=_size(row.get("size")),
        objects=objects,
        corners=corners,
        keypoints=keypoints,
        points=points,
        masks=masks,
        label_file=label_file,
        picture_id=_whole("image_id", row.get("image_id", where.place)),
    )


def _size(given: Any) -> tuple[int, int] | None:
    """Returns (width, height)."""
    if given is None:
        return None
    sides = [operator.index(side) for side in given]
    if len(sides) != 2 or not all(0 <= side < 1 << 31 for side in sides):
        raise ValueError(f"size is {given}, must be (height, width)")
    return sides[1], sides[0]


def _numbers(field: str, values: Any, each: int, count: int | None = None) -> list[Any]:
    """Returns `values` as a list of lists of `each` numbers, or of numbers if that is 0."""
    given = list(values.tolist() if hasattr(values, "tolist") else values)
    if count is not None and len(given) != count:
        raise ValueError(f"{len(given)} of {field} for {count} boxes")
    for i, value in enumerate(given if each else ()):
        if len(value) != each:
            numbers = f"{len(value)} numbers in {value}"
            raise ValueError(f"object {i}: {field} has {numbers}, must be {each}")
    return given


def _objects(row: Mapping[str, Any], box_format: str) -> tuple[list[Any], list[Any]]:
    if "boxes" not in row:
        return [], []
    numbers = ROTATED.get(box_format, 4)
    given = _numbers("boxes", row["boxes"], numbers)
    if "labels" not in row:
        raise ValueError("there are boxes and no labels")
    count = len(given)
    corners = [_named(f"object {i}", _corners, box_format, box) for i, box in enumerate(given)]
    if numbers == 4:
        boxes = [(*c[:2], *c[4:6]) for c in corners]
    else:
        boxes = [(min(c[0::2]), min(c[1::2]), max(c[0::2]), max(c[1::2])) for c in corners]
    labels = _numbers("labels", row["labels"], 0, count)
    ids = _numbers("ids", row.get("ids", range(count)), 0, count)
    areas = row.get("area")
    if areas is None:
        areas = [_area(c) for c in corners]
    areas = _numbers("area", areas, 0, count)
    crowds = _numbers("iscrowd", row.get("iscrowd", [False] * count), 0, count)
    parts = zip(boxes, labels, ids, areas, crowds, strict=True)
    objects = [_named(f"object {i}", _object, *each) for i, each in enumerate(parts)]
    return objects, corners if numbers > 4 else []


def _object(box: Any, label: Any, id_: Any, area: Any, crowd: Any) -> Any:
    return box, _whole("label", label), _whole("id", id_), float(area), bool(crowd)


def _whole(field: str, value: Any) -> int:
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"the {field} is {number}")
    return number


def _corners(box_format: str, box: Any) -> list[float]:
    return _core.box_corners(BOX_FORMATS[box_format], [float(number) for number in box])


def _area(corners: list[float]) -> float:
    """The area of the box with these corners: x0, y0, x1, y1, ..."""
    x, y = corners[0::2], corners[1::2]
    return math.hypot(x[1] - x[0], y[1] - y[0]) * math.hypot(x[2] - x[1], y[2] - y[1])


def _keypoints(row: Mapping[str, Any], count: int) -> tuple[list[Any], int]:
    given = row.get("keypoints")
    if given is None:
        return [], 0
    given = _numbers("keypoints", given, 0, count)
    points = len(given[0]) if given else 0
    flat = []
    for i, each in enumerate(given):
        if len(each) != points:
            raise ValueError(f"object {i}: {len(each)} keypoints, others have {points}")
        flat += [_named(f"object {i}", _keypoint, point) for point in each]
    return flat, points


def _keypoint(point: Any) -> tuple[float, float, float]:
    if len(point) not in (2, 3):
        raise ValueError(f"the keypoint {point} must be (x, y[, visibility])")
    x, y, visibility = (*map(float, point), 2.0)[:3]
    return x, y, visibility


def _mask(mask: Any) -> tuple[list[Any], list[int]]:
    """Returns (polygons, run lengths), one of them empty."""
    if isinstance(mask, Mapping):
        if "counts" not in mask:
            raise ValueError(f"a mask of {', '.join(map(repr, mask))}, must have 'counts'")
        counts = mask["counts"]
        if isinstance(counts, bytes):
            counts = counts.decode("ascii")
        runs = _core.text_runs(counts) if isinstance(counts, str) else [int(n) for n in counts]
        if not all(0 <= run < 1 << 32 for run in runs):
            raise ValueError(f"a mask has run lengths from {min(runs)} to {max(runs)}")
        return [], runs
    if hasattr(mask, "shape") and len(mask.shape) == 2:
        kind, (height, width), pixels = packed("a mask", mask)
        if kind != "uint8":
            raise TypeError(f"a mask of {kind}, must be bool or uint8")
        return [], _core.plane_runs(bytes(pixels), height, width)
    polygons = []
    for polygon in mask:
        flat = _numbers("a polygon", polygon, 0)
        if len(flat) % 2:
            raise ValueError(f"a polygon of {len(flat)} numbers, must be x, y, x, y, ...")
        polygons.append([(float(x), float(y)) for x, y in zip(flat[0::2], flat[1::2], strict=True)])
    return polygons, []


# This function makes a source from what a pickle of it holds.


def _with_annotations(source: _core.Source, info: Info, pictures: list[Any]) -> _core.Source:
    core = info.core()
    builder = _core.AnnotationSetBuilder(core)
    for picture in pictures:
        builder.add(core, picture)
    return made(
        _core.with_annotations(source, builder),
        _with_annotations,
        lambda _: (source, info, pictures),
        shows=(source,),
    )
