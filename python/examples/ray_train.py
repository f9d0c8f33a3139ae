#!/usr/bin/env python3
"""ResNet-18 with Ray Train, on an image folder with train/ and val/: any number of trainers, whose
pictures are filled by their own cores and by CPU workers on whatever machines Ray has.

    export PYTHONPATH=build/python
    python python/examples/ray_train.py DIR --trainers 2 --cpu-workers 2 --storage /shared/runs
    python python/examples/ray_train.py DIR --gpu --trainers 8 --cpu-workers 16 --cpus 8

Every trainer has a stoker.Loader of its part of the epoch, with CPU workers of its own. The losses
are the same with and without them. Ray's checkpoint has the place of the loader: when Ray Train
starts the trainers again, they go on at the epoch after the last checkpoint.
"""

import argparse
import tempfile
from pathlib import Path

import ray
import ray.train
import ray.train.torch
import torch
import torchvision
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from torch.nn.functional import cross_entropy

import stoker
import stoker.ray


def loader_of(config, split, augment, device):
    """Ray Train has initialised torch.distributed, which says the rank."""
    workers = None
    if split == "train" and config["cpu_workers"]:
        workers = stoker.ray.workers(config["cpu_workers"], cpus=config["cpus"])
    return stoker.Loader(
        stoker.folder(config["folder"], split=split),
        batch_size=config["batch_size"],
        augment=augment,
        seed=1,
        shuffle=split == "train",
        workers=config["own_workers"],
        remote=workers,
        device=device,
        dtype="float32",
        layout="channels_last",
        mean=stoker.IMAGENET_MEAN,
        std=stoker.IMAGENET_STD,
    )


def classes_of(loader):
    """A function that does not use torch: otherwise Ray would take `classes` for torch.classes,
    which cannot be pickled.
    """
    return len(loader.source.classes)


def epoch_of(model, loader, device, optimizer=None):
    """Returns the mean loss and the share of right answers, over all trainers."""
    total = torch.zeros(3, device=device)
    for batch in loader:
        images, weights = torch.from_dlpack(batch.images), torch.from_dlpack(batch.weights)
        labels = torch.from_dlpack(batch.labels).long()
        scores = model(images)
        losses = cross_entropy(scores, labels, reduction="none") * weights
        if optimizer is not None:
            optimizer.zero_grad()
            (losses.sum() / weights.sum().clamp(min=1)).backward()
            optimizer.step()
        right = (scores.argmax(1) == labels).float() * weights
        total += torch.stack([losses.detach().sum(), right.sum(), weights.sum()])
    if torch.distributed.is_initialized():  # not with a single trainer on every version
        torch.distributed.all_reduce(total)
    loss, right, rows = total.tolist()
    return loss / rows, right / rows, int(rows)


def train(config):
    torch.manual_seed(1)
    device = ray.train.torch.get_device()
    train_loader = loader_of(config, "train", "random_resized_crop(64) | flip", device)
    val_loader = loader_of(config, "test", "resize_center_crop(size=64)", device)
    bare = torchvision.models.resnet18(num_classes=classes_of(train_loader))
    model = ray.train.torch.prepare_model(bare)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            state = torch.load(Path(folder) / "state.pt", map_location=device)
        bare.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        train_loader.load_state_dict(state["loader"])
    with train_loader, val_loader:
        while train_loader.epoch < config["epochs"]:
            epoch = train_loader.epoch
            model.train()
            loss, _, rows = epoch_of(model, train_loader, device, optimizer)
            model.eval()
            with torch.no_grad():
                _, top1, val_rows = epoch_of(model, val_loader, device)
            measured = {
                "epoch": epoch,
                "loss": loss,
                "rows": rows,
                "top1": top1,
                "val_rows": val_rows,
                "rows_of_cpu_workers": train_loader.stats()["remote"]["rows"],
            }
            with tempfile.TemporaryDirectory() as folder:
                saved = None
                if ray.train.get_context().get_world_rank() == 0:
                    state = {
                        "model": bare.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "loader": train_loader.state_dict(),
                    }
                    torch.save(state, Path(folder) / "state.pt")
                    saved = Checkpoint.from_directory(folder)
                    print(f"epoch {epoch}: loss {loss:.6f} of {rows} rows")
                ray.train.report(measured, checkpoint=saved)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32, help="rows of each trainer")
    parser.add_argument("--trainers", type=int, default=1)
    parser.add_argument("--gpu", action="store_true", help="a GPU for each trainer")
    parser.add_argument("--cpu-workers", type=int, default=0, help="of each trainer")
    parser.add_argument("--cpus", type=int, default=1, help="of each CPU worker")
    parser.add_argument("--own-workers", type=int, help="threads of each loader")
    parser.add_argument("--storage", default="ray_runs", help="folder of Ray's checkpoints")
    args = parser.parse_args()
    result = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={
            "folder": str(Path(args.folder).resolve()),
            "epochs": args.epochs,
            "batch_size": args.batch_size,
            "cpu_workers": args.cpu_workers,
            "cpus": args.cpus,
            "own_workers": args.own_workers,
        },
        scaling_config=ScalingConfig(num_workers=args.trainers, use_gpu=args.gpu),
        run_config=RunConfig(
            storage_path=str(Path(args.storage).resolve()),
            failure_config=FailureConfig(max_failures=2),
        ),
    ).fit()
    names = ("epoch", "loss", "rows", "top1", "val_rows", "rows_of_cpu_workers")
    print("result", {name: result.metrics[name] for name in names})


if __name__ == "__main__":
    main()
