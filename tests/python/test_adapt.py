"""python/examples/adapt on scripts that make the calls it looks for, written here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import run_program

ADAPT = Path(__file__).parents[2] / "python" / "examples" / "adapt"
REFERENCE = """\
import torch
import torchvision


def load(traindir, valdir):
    dataset = torchvision.datasets.ImageFolder(
        traindir,
        None,
    )
    return dataset, torchvision.datasets.ImageFolder(valdir, None)


def main(device, dataset, dataset_test):
    é = torch.utils.data.DataLoader(dataset, batch_size=4)
    return é, torch.utils.data.DataLoader(
        dataset_test,
        num_workers=2,  # ü
    )
"""
ADAPTED = """\
import torch
import torchvision
from stoker.torch import DataLoader, ImageFolder


def load(traindir, valdir):
    dataset = ImageFolder(
        traindir,
        None,
    )
    return dataset, ImageFolder(valdir, None)


def main(device, dataset, dataset_test):
    é = DataLoader(dataset, batch_size=4, device=device)
    return é, DataLoader(
        dataset_test,
        num_workers=2, device=device,  # ü
    )
"""
EXAMPLE = """\
import torch.utils.data.distributed
from torchvision import datasets

def main_worker(traindir, valdir, device):
    train_dataset = datasets.ImageFolder(traindir)
    val_dataset = datasets.ImageFolder(valdir)
    a = torch.utils.data.distributed.DistributedSampler(train_dataset)
    b = torch.utils.data.distributed.DistributedSampler(val_dataset, shuffle=False, drop_last=True)
    c = torch.utils.data.DataLoader(train_dataset, sampler=a)
    d = torch.utils.data.DataLoader(val_dataset, sampler=b)
    return c, d, torch.utils.data.DataLoader(rest_of(val_dataset))
"""
OBJECTS = """\
import torch
import utils

def main(args, device):
    dataset, dataset_test = make(args)
    data_loader = torch.utils.data.DataLoader(
        dataset, batch_sampler=batches(dataset), collate_fn=utils.collate_fn
    )
    return data_loader, torch.utils.data.DataLoader(dataset_test, batch_size=1)
"""


DETR = """\
from torch.utils.data import DataLoader
import util.misc as utils

def main(args, device):
    dataset_train, dataset_val = make(args)
    loader = DataLoader(dataset_train, batch_sampler=batches, collate_fn=utils.collate_fn)
    return loader, DataLoader(dataset_val, args.batch_size)
"""
RF_DETR = DETR.replace("    return", """\
    if few:
        loader = DataLoader(dataset_train, sampler=drawn, num_workers=2)
    return""")

YOLOX = """\
from .base_exp import BaseExp

class Exp(BaseExp):
    def get_data_loader(self):
        from yolox.data import DataLoader

        return DataLoader(self.dataset, **self.given)
"""

OPEN_CLIP = """\
import torch
from open_clip_train.data import get_data

def main(args):
    data = get_data(
        args,
        (train, val),
        tokenizer=tokenizer,
    )
    return data
"""
CAPTIONS = """\
import torch

def main(args):
    train_dataloader = torch.utils.data.DataLoader(
        train_dataset, shuffle=True, collate_fn=collate_fn, batch_size=4
    )
    return torch.utils.data.DataLoader(sample_dataset)
"""
DREAMBOOTH = """\
import torch

class DreamBoothDataset(torch.utils.data.Dataset):
    pass

def main(args):
    train_dataset = DreamBoothDataset(
        instance_data_root=args.instance_data_dir,
    )
    loader = torch.utils.data.DataLoader(train_dataset, batch_sampler=batches(train_dataset))
"""


def adapt(clone: Path) -> subprocess.CompletedProcess:
    return run_program([sys.executable, ADAPT, clone])


def write(clone: Path, name: str, text: str) -> Path:
    path = clone / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_reference_training(tmp_path):
    script = write(tmp_path, "references/classification/train.py", REFERENCE)
    done = adapt(tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{script}: adapted\n"), done.stderr
    assert script.read_text(encoding="utf-8") == ADAPTED
    done = adapt(tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"{script}:3: it has stoker in it already; nothing was changed\n"
    assert script.read_text(encoding="utf-8") == ADAPTED


def test_an_imagenet_example(tmp_path):
    script = write(tmp_path, "imagenet/main.py", EXAMPLE)
    assert adapt(tmp_path).returncode == 0
    text = script.read_text(encoding="utf-8")
    assert "val_dataset = ImageFolder(valdir)" in text
    assert "DistributedSampler(val_dataset, shuffle=False)\n" in text
    assert "d = DataLoader(val_dataset, sampler=b, device=device)" in text
    assert "return c, d, torch.utils.data.DataLoader(rest_of(val_dataset))" in text


@pytest.mark.parametrize("kind", ["detection", "segmentation"])
def test_a_training_with_objects(tmp_path, kind):
    script = write(tmp_path, f"references/{kind}/train.py", OBJECTS)
    assert adapt(tmp_path).returncode == 0
    text = script.read_text(encoding="utf-8")
    assert f"import utils\nfrom reference_{kind} import training_loader\n" in text
    assert "data_loader = training_loader(\n        dataset, batch_sampler" in text
    assert "collate_fn=utils.collate_fn, args=args, device=device\n" in text
    assert "torch.utils.data.DataLoader(dataset_test, batch_size=1)\n" in text
    beside = f"reference_{kind}.py"
    assert script.with_name(beside).read_bytes() == ADAPT.with_name(beside).read_bytes()
    done = adapt(tmp_path)
    assert done.returncode == 1 and "train.py:3: it has stoker in it already" in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "module"),
    [
        ("main.py", DETR, "reference_detr"),
        ("rfdetr/main.py", RF_DETR, ".reference_detr"),
    ],
)
def test_detr_and_rf_detr(tmp_path, name, text, module):
    script = write(tmp_path, name, text)
    done = adapt(tmp_path)
    assert done.returncode == 0, done.stderr
    adapted = script.read_text(encoding="utf-8")
    assert f"as utils\nfrom {module} import training_loader\n" in adapted
    assert "training_loader(dataset_train, batch_sampler=batches, coll" in adapted
    assert adapted.count(", device=device)") == text.count("DataLoader(dataset_train")
    assert "DataLoader(dataset_train" not in adapted
    assert "DataLoader(dataset_val, args.batch_size)\n" in adapted
    beside = script.with_name("reference_detr.py")
    assert beside.read_bytes() == ADAPT.with_name(beside.name).read_bytes()
    assert adapt(tmp_path).returncode == 1


def test_yolox(tmp_path):
    script = write(tmp_path, "yolox/exp/yolox_base.py", YOLOX)
    done = adapt(tmp_path)
    assert done.returncode == 0, done.stderr
    added = "BaseExp\nfrom .reference_yolox import training_loader\n"
    expected = YOLOX.replace("BaseExp\n", added, 1).replace("DataLoader(s", "training_loader(s")
    assert script.read_text(encoding="utf-8") == expected
    assert script.with_name("reference_yolox.py").is_file()


def test_open_clip(tmp_path):
    script = write(tmp_path, "src/open_clip_train/main.py", OPEN_CLIP)
    done = adapt(tmp_path)
    assert done.returncode == 0, done.stderr
    added = "get_data\nfrom open_clip_train.reference_open_clip import training_data\n"
    expected = OPEN_CLIP.replace("get_data\n", added, 1).replace("= get_data(", "= training_data(")
    assert script.read_text(encoding="utf-8") == expected
    assert script.with_name("reference_open_clip.py").is_file()


@pytest.mark.parametrize(
    "name", ["text_to_image/train_text_to_image.py", "controlnet/train_controlnet.py"]
)
def test_trainings_with_captions(tmp_path, name):
    script = write(tmp_path, f"examples/{name}", CAPTIONS)
    done = adapt(tmp_path)
    assert done.returncode == 0, done.stderr
    text = script.read_text(encoding="utf-8")
    assert "import torch\nfrom reference_diffusers import training_loader\n" in text
    assert "= training_loader(\n        train_dataset, shuffle=True, collate_fn=coll" in text
    assert "batch_size=4, args=args, accelerator=accelerator, tokenizer=tokenizer\n" in text
    assert "return torch.utils.data.DataLoader(sample_dataset)\n" in text
    assert script.with_name("reference_diffusers.py").is_file()


def test_dreambooth(tmp_path):
    name = "examples/dreambooth/train_dreambooth_lora_flux_kontext.py"
    script = write(tmp_path, name, DREAMBOOTH)
    done = adapt(tmp_path)
    assert done.returncode == 0, done.stderr
    text = script.read_text(encoding="utf-8")
    assert "from reference_diffusers import DreamBoothPictures, dreambooth_loader\n" in text
    assert "train_dataset = DreamBoothPictures(\n        instance_data_root=args" in text
    assert "dreambooth_loader(train_dataset, batch_sampler=batches(train_dataset), acc" in text
    two = write(tmp_path / "two", name, DREAMBOOTH + "    DreamBoothDataset()\n")
    done = adapt(tmp_path / "two")
    assert "calls of DreamBoothDataset are in lines: 7, 11; expected one" in done.stderr
    assert done.returncode == 1 and "stoker" not in two.read_text(encoding="utf-8")


def test_all_scripts_of_a_clone_or_none(tmp_path):
    classifier = write(tmp_path, "references/classification/train.py", REFERENCE)
    moved = OBJECTS.replace("dataset, batch", "other, batch")
    write(tmp_path, "references/detection/train.py", moved)
    assert adapt(tmp_path).returncode == 1
    assert classifier.read_text(encoding="utf-8") == REFERENCE


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "complaint"),
    [
        (
            "references/classification/train.py",
            REFERENCE,
            "DataLoader(dataset,",
            "DataLoader(other,",
            "0 calls of torch.utils.data.DataLoader(dataset, ...), expected 1; calls of "
            "torch.utils.data.DataLoader are in lines: 14 (other), 15 (dataset_test)",
        ),
        (
            "references/classification/train.py",
            REFERENCE,
            "ImageFolder(valdir",
            "ImageFolder(traindir",
            "2 calls of torchvision.datasets.ImageFolder(traindir, ...), expected 1; calls of "
            "torchvision.datasets.ImageFolder are in lines: 6 (traindir), 10 (traindir)",
        ),
        (
            "imagenet/main.py",
            EXAMPLE,
            ", drop_last=True",
            "",
            "main.py:8: drop_last= is not the last argument",
        ),
        ("imagenet/main.py", EXAMPLE, "def main", "deff main", "line 4"),
    ],
)
def test_a_script_that_moved_on_is_left_as_it_is(tmp_path, name, text, old, new, complaint):
    moved = text.replace(old, new)
    script = write(tmp_path, name, moved)
    done = adapt(tmp_path)
    assert done.returncode == 1
    assert complaint in done.stderr and done.stderr.endswith("; nothing was changed\n")
    assert str(script) in done.stderr or script.name in done.stderr
    assert script.read_text(encoding="utf-8") == moved


def test_no_clone(tmp_path):
    done = adapt(tmp_path)
    assert done.returncode == 1 and "there is neither" in done.stderr
    usage = run_program([sys.executable, ADAPT])
    assert usage.returncode == 2 and "CLONE" in usage.stderr


# Makes the data sets and loaders as torchvision's reference training does with its options.
TRAINING = """\
import sys
import torch
import torch.utils.data
import torchvision
from torchvision.transforms import autoaugment, transforms


def preset(policy, erase):
    steps = [transforms.RandomResizedCrop(24), transforms.RandomHorizontalFlip(0.5)]
    if policy == "ra":
        steps.append(autoaugment.RandAugment(magnitude=9))
    elif policy == "ta_wide":
        steps.append(autoaugment.TrivialAugmentWide())
    elif policy == "augmix":
        steps.append(autoaugment.AugMix(severity=3))
    elif policy:
        steps.append(autoaugment.AutoAugment(autoaugment.AutoAugmentPolicy(policy)))
    steps += [transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float)]
    steps.append(transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    if erase:
        steps.append(transforms.RandomErasing(p=erase))
    return transforms.Compose(steps)


def main(traindir, policy, erase, collate, device):
    valdir = traindir
    dataset = torchvision.datasets.ImageFolder(traindir, preset(policy, erase))
    dataset_test = torchvision.datasets.ImageFolder(valdir, preset("", 0))
    collate_fn = (lambda batch: batch) if collate else None
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=8, sampler=torch.utils.data.RandomSampler(dataset), num_workers=1,
        pin_memory=True, collate_fn=collate_fn,
    )
    loader_test = torch.utils.data.DataLoader(
        dataset_test, batch_size=8, num_workers=1, pin_memory=True
    )
    for batches in (loader, loader_test):
        rows = [tuple(images.shape[1:]) for images, labels in batches for _ in labels]
        assert rows == [(3, 24, 24)] * 37, rows
    print(dataset.plan.augment)


main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], torch.device("cpu"))
"""


def run_training(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess:
    pytest.importorskip("torchvision", minversion="0.13")
    script = write(tmp_path, "references/classification/train.py", TRAINING)
    assert adapt(tmp_path).returncode == 0
    return run_program([sys.executable, script, *arguments])


@pytest.mark.parametrize(
    ("policy", "erase", "stage"),
    [
        ("ra", 0, "random_augment"),
        ("ta_wide", 0.1, "trivial_augment_wide"),
        ("imagenet", 0, "auto_augment"),
        ("cifar10", 0, "auto_augment"),
        ("augmix", 0.25, "aug_mix"),
    ],
)
def test_policies_and_erasing_of_the_reference_training(pictures, tmp_path, policy, erase, stage):
    done = run_training(tmp_path, pictures, policy, erase, "")
    assert done.returncode == 0, done.stderr
    assert stage in done.stdout and ("random_erasing" in done.stdout) == (erase > 0), done.stdout


def test_mixup_of_the_reference_training_is_refused(pictures, tmp_path):
    done = run_training(tmp_path, pictures, "", 0, "mixup")
    assert done.returncode == 1
    assert "TypeError: collate_fn is <function" in done.stderr and "on_batch=" in done.stderr
