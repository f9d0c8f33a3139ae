"""Writes annotations as large as COCO's instances_train2017.json: the same numbers of images and objects, with polygons of as many
points, and crowds with run lengths. Drawn, and the same at every call.

  bench/peers/coco_json.py FILE [IMAGES] [OBJECTS]
"""

import json
import random
import sys

HEIGHT, WIDTH = 480, 640
IMAGE = {
    "license": 3,
    "coco_url": "http://images.cocodataset.org/train2017/000000391895.jpg",
    "height": HEIGHT,
    "width": WIDTH,
    "date_captured": "2013-11-14 11:18:45",
    "flickr_url": "http://farm9.staticflickr.com/8186/8119368305_4e622c8349_z.jpg",
}


def polygon(draw):
    x, y = draw.uniform(0, 600), draw.uniform(0, 440)
    points = 4 + int(draw.expovariate(1 / 23))
    return [round(start + draw.uniform(0, 40), 2) for _ in range(points) for start in (x, y)]


def run_lengths(draw):
    cuts = sorted(draw.sample(range(HEIGHT * WIDTH), draw.randrange(20, 220)))
    return {"counts": [b - a for a, b in zip([0] + cuts, cuts + [HEIGHT * WIDTH])], "size": [HEIGHT, WIDTH]}


def masks(draw, count):
    """Texts of masks, and whether they are those of crowds: 1 of 85, as there."""
    for i in range(count):
        is_crowd = i % 85 == 0
        mask = run_lengths(draw) if is_crowd else [polygon(draw) for _ in range(1 + (draw.random() < 0.15))]
        yield int(is_crowd), json.dumps(mask)


def write(path, images, objects):
    draw = random.Random(1)
    some_masks = list(masks(draw, 4250))
    with open(path, "w") as out:
        out.write('{"info": {"year": 2017}, "licenses": [], "images": [')
        for i in range(1, images + 1):
            out.write(("," if i > 1 else "") + json.dumps(IMAGE | {"file_name": f"{i:012}.jpg", "id": i}))
        out.write('], "annotations": [')
        for i in range(1, objects + 1):
            is_crowd, mask = draw.choice(some_masks)
            box = [round(draw.uniform(0, limit), 2) for limit in (500, 300, 100, 100)]
            out.write(
                f'{"," if i > 1 else ""}{{"segmentation": {mask}, "area": {draw.uniform(0, 10000)}, "iscrowd": {is_crowd}, '
                f'"image_id": {draw.randint(1, images)}, "bbox": {box}, "category_id": {draw.randint(1, 90)}, "id": {i}}}'
            )
        names = [{"supercategory": "thing", "id": i, "name": f"class {i}"} for i in range(1, 91)]
        out.write('], "categories": ' + json.dumps(names) + "}")


if __name__ == "__main__":
    write(sys.argv[1], *(int(text) for text in (sys.argv[2:] + ["118287", "860001"][len(sys.argv) - 2 :])))
