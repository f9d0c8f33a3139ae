"""A Loader gives the same bytes as `stoker dump`."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import stoker
from conftest import run_program

PROGRAM = os.environ.get("STOKER_PROGRAM", "")


@pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="STOKER_PROGRAM names no program")
@pytest.mark.parametrize(
    ("arguments", "augment"),
    [
        (["--view", "eval"], stoker.resize_center_crop()),
        ([], stoker.random_resized_crop() | stoker.flip()),
        (
            [
                "--augment",
                "random_resized_crop(scale=(0.3, 1), filter=bicubic) | flip | color_jitter(hue=0.1)"
                " | cutout(8)",
            ],
            stoker.random_resized_crop(scale=(0.3, 1), filter="bicubic")
            | stoker.flip()
            | stoker.color_jitter(hue=0.1)
            | stoker.cutout(8),
        ),
        (
            ["--augment", "resize | random_crop(padding=3, mode=reflect) | flip(alternating=True)"],
            stoker.augment.resize()
            | stoker.augment.random_crop(padding=3, mode="reflect")
            | stoker.flip(alternating=True),
        ),
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_loader_feeds_what_dump_writes(pictures, tmp_path, arguments, augment, rank):
    options = f"--size 40 --batch 8 --seed 11 --steps 4 --rank {rank} --world 2".split()
    command = [PROGRAM, "dump", "--data", pictures, "--out", tmp_path, *options, *arguments]
    done = run_program(command)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    source = stoker.open(pictures)
    steps = 0
    with stoker.Loader(
        source, batch_size=8, size=40, seed=11, augment=augment, rank=rank, world=2, workers=2
    ) as loader:
        while steps < 4:
            for batch in loader:
                if steps == 4:
                    break
                for name in ("images", "labels", "weights"):
                    wanted = np.load(tmp_path / f"{name}_{batch.step:05}.npy")
                    np.testing.assert_array_equal(np.asarray(getattr(batch, name)), wanted)
                of_step = [row for row in rows if row["step"] == batch.step]
                assert batch.names == [row["name"] for row in of_step]
                steps += 1
