"""The loaders of other people's trainers, as published and as python/examples/adapt replaces them: --clones DIR has rf-detr, detr and YOLOX, of
which nothing is changed. Each side makes the trainer's batches, in this process: normalised floats and targets in its own form.
"""
import contextlib
import importlib
import importlib.util
import itertools
import sys
import types
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "python" / "examples"
ROWS = 4


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def alone(clone, name):
    """Imports a module of a clone without the imports of the packages that it is in."""
    parts = name.split(".")
    for depth in range(1, len(parts)):
        package = types.ModuleType(".".join(parts[:depth]))
        package.__path__ = [str(clone.joinpath(*parts[:depth]))]
        sys.modules.setdefault(package.__name__, package)
    sys.path.insert(0, str(clone))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(clone))


def coco_layout(images, objects):
    """Returns a folder that has the data where these trainers look for COCO's."""
    folder = images.parent / "coco"
    if not folder.is_dir():
        (folder / "annotations").mkdir(parents=True)
        (folder / "annotations" / "instances_train2017.json").symlink_to(objects)
        (folder / "train2017").symlink_to(images)
    return folder


def whole(loader):
    def run():
        for _ in loader:
            pass

    return run


def epochs(loader):
    """A round of a loader that has no end, but a length."""
    batches = iter(loader)

    def run():
        for _ in itertools.islice(batches, len(loader)):
            pass

    return run


def detr(coco, sets, misc, transforms):
    """RF-DETR's data set is DETR's."""
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler

    with contextlib.redirect_stdout(sys.stderr):
        data = sets.CocoDetection(coco / "train2017", coco / "annotations" / "instances_train2017.json", transforms, False)
    loader = {"batch_sampler": BatchSampler(RandomSampler(data), ROWS, drop_last=False), "collate_fn": misc.collate_fn, "num_workers": 0}
    return {
        "stoker, as adapted": whole(example("reference_detr").training_loader(data, **loader, device="cpu")),
        "the trainer's own": whole(DataLoader(data, **loader)),
    }


def yolox(coco, clone, mixup):
    sys.path.insert(0, str(clone))
    import cv2
    from yolox.exp import Exp

    cv2.setNumThreads(1)
    exp = Exp()
    exp.data_dir, exp.data_num_workers, exp.enable_mixup = str(coco), 0, mixup
    with contextlib.redirect_stdout(sys.stderr):
        exp.dataset = exp.get_dataset()
    own = exp.get_data_loader(ROWS, is_distributed=False)
    adapted = example("reference_yolox").training_loader(
        exp.dataset, num_workers=0, batch_sampler=own.batch_sampler, pin_memory=True, worker_init_fn=None)
    return {"stoker, as adapted": epochs(adapted), "the trainer's own": epochs(own)}


def comparisons(images, objects, clones):
    """Yields as those of `run`, of the clones that are there."""
    coco = coco_layout(images, objects)
    if (clone := clones / "rf-detr").is_dir():
        sets, misc = alone(clone, "rfdetr.datasets.coco"), alone(clone, "rfdetr.util.misc")
        yield "rf-detr", "RF-DETR's squares of 576, flip, half of them cropped; boxes", detr(
            coco, sets, misc, sets.make_coco_transforms_square_div_64("train", 576))
    if (clone := clones / "detr").is_dir():
        sets, misc = alone(clone, "datasets.coco"), alone(clone, "util.misc")
        yield "detr", "DETR's short sides of 480 to 800, at most 1333, flip, half of them cropped; boxes", detr(
            coco, sets, misc, sets.make_coco_transforms("train"))
    if (clone := clones / "YOLOX").is_dir():
        yield "mosaic", "YOLOX's mosaic, affine, colours and flip, 640; boxes", yolox(coco, clone, mixup=False)
        yield "yolox", "the same with mixup of a mosaic and a picture", yolox(coco, clone, mixup=True)
