"""Pictures with objects in COCO's layout, and the loaders of python/examples that trainers of them
get."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from conftest import picture

EXAMPLES = Path(__file__).parents[2] / "python" / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def like(kind: str, /, **attributes: Any) -> Any:
    """An object of a trainer's class, of which the loader sees the name and these attributes."""
    return type(kind, (), attributes)()


def coco_folder(folder: Path, sizes: list[tuple[int, int]]) -> Path:
    """COCO's layout: pictures in another order than their ids, one of which has nothing on it, and
    a crowd of run lengths."""
    (folder / "train2017").mkdir()
    (folder / "annotations").mkdir()
    random = np.random.default_rng(0)
    images: list[Any] = []
    objects: list[Any] = []
    for number, (width, height) in enumerate(sizes):
        name, id_ = f"{number}.png", (number * 37 + 3) % 100
        picture(number, width, height).save(folder / "train2017" / name)
        images.append({"id": id_, "file_name": name, "width": width, "height": height})
        for _ in range(2 * (number % 4)):
            x, y = (round(random.uniform(0, side / 2), 2) for side in (width, height))
            w, h = (round(random.uniform(8, side / 2), 2) for side in (width, height))
            objects.append({
                "id": len(objects) + 1, "image_id": id_, "iscrowd": 0, "area": w * h,
                "category_id": int(random.integers(1, 8)), "bbox": [x, y, w, h],
                "segmentation": [[x, y, x + w, y, x + w, y + h, x + w / 3, y + h / 2]],
            })  # fmt: skip
    width, height = sizes[1]
    objects[0].update(
        iscrowd=1, segmentation={"size": [height, width], "counts": [90, 200, width * height - 290]}
    )
    data = {
        "images": images,
        "annotations": objects,
        "categories": [{"id": number, "name": f"class {number}"} for number in range(1, 8)],
    }
    (folder / "annotations" / "instances_train2017.json").write_text(json.dumps(data))
    return folder


def add_odd_objects(folder: Path) -> Path:
    """Adds to each picture objects that trainers treat apart: one that reaches out of it, one of
    less than a pixel, one without an area."""
    path = folder / "annotations" / "instances_train2017.json"
    data = json.loads(path.read_text())
    for image in data["images"]:
        right, bottom = image["width"] - 20, image["height"] - 15
        for area, box in ((200, [right, 2, 40, 30]), (1, [9, 9, 0.4, 12]), (0, [5, bottom, 9, 8])):
            data["annotations"].append({
                "id": len(data["annotations"]) + 1, "image_id": image["id"], "iscrowd": 0,
                "area": area, "category_id": 2, "bbox": box, "segmentation": [],
            })  # fmt: skip
    path.write_text(json.dumps(data))
    return folder
