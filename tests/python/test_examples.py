"""The examples of trainers run to their end, if what they are about is installed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from conftest import child_environment, jpeg, picture, run_program
from shard_files import tar_file

EXAMPLES = Path(__file__).parents[2] / "python" / "examples"
needs_accelerate = pytest.mark.skipif(
    importlib.util.find_spec("accelerate") is None, reason="Accelerate is not installed"
)
needs_lightning = pytest.mark.skipif(
    importlib.util.find_spec("lightning") is None, reason="Lightning is not installed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, pictures) -> Path:
    """37 pictures to train with, the same ones to validate."""
    root = tmp_path_factory.mktemp("parts")
    for part in ("train", "val"):
        (root / part).symlink_to(pictures)
    return root


def run(*command: object) -> str:
    """Returns what it printed."""
    env = {**child_environment(), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = run_program([sys.executable, *command], 240, env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def module_of(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Two processes with steps of 4 rows each take 5 steps: 40 rows, of which 37 count.
IN_TWO_PROCESSES = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


@needs_accelerate
def test_accelerate_in_two_processes_and_resumed(folder, tmp_path):
    command = [EXAMPLES / "accelerate_train.py", folder, "--batch-size", 4, "--every", 3]
    command = [*IN_TWO_PROCESSES, *command, "--epochs", 2, "--out", tmp_path]
    whole = run(*command).splitlines()
    assert [re.findall(r"of ([0-9.]+)", line) for line in whole] == [["37", "37"]] * 2
    assert all(line.endswith("2 processes") for line in whole)
    resumed = run(*command, "--resume", tmp_path / "step_3").splitlines()
    assert re.findall(r"of ([0-9.]+)", resumed[0]) == ["13", "37"], "37 rows less 3 x 8"
    assert resumed[0].split("top-1")[1] == whole[0].split("top-1")[1], "the same weights"
    assert resumed[1] == whole[1]


@needs_accelerate
def test_accelerate_feeds_every_picture_once(folder, monkeypatch):
    example = module_of("accelerate_train")
    monkeypatch.setattr(
        example,
        "tensors",
        lambda classes, batch: (np.asarray(batch.ids), np.asarray(batch.weights)),
    )
    source = example.source_of(folder, "train", None)
    for epoch in range(2):
        seen = []
        for rank in range(2):
            accelerator = SimpleNamespace(process_index=rank, num_processes=2, device="cpu")
            loader = example.loader_of(source, accelerator, example.MIXED, batch_size=4, seed=1)
            loader.set_epoch(epoch)
            assert len(loader) == 5
            for ids, weights in loader:
                seen += ids[weights > 0].tolist()
        assert sorted(seen) == list(range(37))


@needs_lightning
@pytest.mark.parametrize("devices", [1, 2])
def test_lightning_and_resumed(folder, tmp_path, devices):
    command = [EXAMPLES / "lightning_fit.py", folder, "--batch-size", 8 // devices, "--every", 3]
    command += ["--accelerator", "cpu", "--devices", devices, "--epochs", 2, "--out", tmp_path]
    whole = run(*command).splitlines()[-1]
    assert whole.startswith("epoch 2, step 10: ")
    assert "'val_rows': 37.0" in whole and "'rows': 37.0" in whole
    assert run(*command, "--resume", tmp_path / "step=3.ckpt").splitlines()[-1] == whole


def test_tokens_of_captions(tmp_path):
    pytest.importorskip("tokenizers")
    members = []
    for i in range(12):
        members.append((f"{i:02}.jpg", jpeg(picture(i))))
        members.append((f"{i:02}.txt", f"picture {i}, {'very ' * i}nice".encode()))
    tar_file(tmp_path / "x.tar", members)
    lines = run(EXAMPLES / "caption_tokens.py", tmp_path / "x.tar").splitlines()
    shown = r"step {}: images \(8, 64, 64, 3\), tokens \(8, (8|16|24)\)"
    assert [bool(re.fullmatch(shown.format(i), line)) for i, line in enumerate(lines)] == [True] * 2
