"""Makes the data that gpu-check trains on from a bundle's data (or the user's).

CIFAR-10: a tar of {train,test}/CLASS/*.jpg, or a folder of *.bin, becomes CIFAR-10's binary layout (needs Pillow for the tar).
Pictures: a folder CLASS/*.jpg becomes a folder of as many files as a measurement needs, hard links to the same pictures.
"""
import io
import itertools
import multiprocessing
import os
import random
import shutil
import tarfile

CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()
PICTURES = (".jpg", ".jpeg")


def record(labelled):
    """Converts (label, JPEG bytes) to a CIFAR-10 record: the label, then the red, green and blue
    planes."""
    from PIL import Image  # imported here, because only the tar needs it
    label, data = labelled
    planes = Image.open(io.BytesIO(data)).convert("RGB").split()
    return bytes([label]) + b"".join(plane.tobytes() for plane in planes)


def read_tar(archive, limit):
    """Returns {"train": [(label, bytes)], "test": [...]} sorted by class and name; `limit` > 0: at
    most this many of each class and split."""
    rows = {"train": [], "test": []}
    counts = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = member.name.split("/")
            if not member.isfile() or len(parts) < 3 or parts[-3] not in rows or parts[-2] not in CLASSES:
                continue
            counts[parts[-3], parts[-2]] = counts.get((parts[-3], parts[-2]), 0) + 1
            if limit and counts[parts[-3], parts[-2]] > limit:
                continue
            rows[parts[-3]].append((CLASSES.index(parts[-2]), parts[-1], tar.extractfile(member).read()))
    if not rows["train"] or not rows["test"]:
        raise ValueError(f"{archive} holds no train/CLASS/*.jpg and test/CLASS/*.jpg of CIFAR-10")
    return {split: [(label, data) for label, _, data in sorted(found)] for split, found in rows.items()}


def cifar_from_tar(archive, out, limit_per_class=0):
    """Writes `out`/{data_batch_1..5,test_batch}.bin unless `out` exists; returns `out`."""
    if os.path.isdir(out):
        return out
    part = f"{out}.{os.getpid()}"
    os.makedirs(part)
    rows = read_tar(archive, limit_per_class)
    with multiprocessing.Pool() as pool:
        for split, names in (("train", [f"data_batch_{i}.bin" for i in range(1, 6)]), ("test", ["test_batch.bin"])):
            random.Random(10).shuffle(rows[split])
            records = pool.imap(record, rows[split], chunksize=500)
            per_file = -(-len(rows[split]) // len(names))
            for name in names:
                with open(os.path.join(part, name), "wb") as file:
                    file.writelines(itertools.islice(records, per_file))
    with open(os.path.join(part, "batches.meta.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(CLASSES) + "\n")
    os.rename(part, out)
    return out


def pictures_in(folder):
    """Returns [(class, path)] of an image folder CLASS/*.jpg."""
    found = []
    for name in sorted(os.listdir(folder)):
        inner = os.path.join(folder, name)
        if os.path.isdir(inner):
            found += [(name, os.path.join(inner, f)) for f in sorted(os.listdir(inner)) if f.lower().endswith(PICTURES)]
    return found


def link(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system, or hard links are refused
        os.symlink(os.path.abspath(source), target)


def repeat_pictures(folder, out, count):
    """Makes a folder `out`/CLASS/*.jpg of at least `count` files that repeat the pictures in
    `folder`."""
    if os.path.isdir(out):
        return out
    found = pictures_in(folder)
    if not found:
        raise ValueError(f"{folder} holds no CLASS/*.jpg")
    part = f"{out}.{os.getpid()}"
    for name in {name for name, _ in found}:
        os.makedirs(os.path.join(part, name))
    # Copy the pictures to this file system, because hard links from another one are impossible.
    originals = os.path.join(f"{out}.originals")
    os.makedirs(originals, exist_ok=True)
    for number, (name, path) in enumerate(found):
        original = os.path.join(originals, f"{number}.jpg")
        shutil.copyfile(path, original)
        for copy in range(-(-count // len(found))):
            link(original, os.path.join(part, name, f"{number:05}_{copy:04}.jpg"))
    os.rename(part, out)
    return out
