"""torch.distributed with real processes: each gets its part of every epoch, and each sample is
there once."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from conftest import child_environment

torch = pytest.importorskip("torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

PROGRAM = """
import datetime, json, sys
import torch
import torch.distributed as dist
import stoker
import stoker.torch

source = stoker.synthetic(101, size=8, classes=10, seed=3)
options = dict(batch_size=8, workers=1, shuffle=True, seed=4)
before = stoker.Loader(source, **options)  # not initialised yet: alone
assert (before.rank, before.world) == (0, 1)
before.close()
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]),
                        world_size=2, timeout=datetime.timedelta(seconds=60))
epochs = []
with stoker.Loader(source, **options) as loader:
    assert (loader.rank, loader.world) == (dist.get_rank(), 2)
    for _ in range(2):
        ids = []
        for batch in loader:
            counts = torch.from_dlpack(batch.weights) > 0
            ids += torch.from_dlpack(batch.ids)[counts].tolist()
            total = counts.sum()
            dist.all_reduce(total)  # hangs where a rank has a step less
        epochs.append(ids)
    try:
        stoker.Loader(source, rank=0)
    except ValueError as error:
        assert "give both or neither" in str(error)
    else:
        raise SystemExit("rank without world was taken")
with stoker.Loader(source, rank=0, world=1, **options) as alone:  # what is said counts
    assert (alone.rank, alone.world) == (0, 1)
sampler = torch.utils.data.DistributedSampler(range(len(source)), shuffle=False)
rows = sum(len(labels) for _, labels in stoker.torch.DataLoader(source, 8, sampler=sampler))
print(json.dumps({"epochs": epochs, "rows": rows}))
dist.destroy_process_group()
"""


def test_ranks_share_every_epoch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(tmp_path / "meet"), str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**child_environment(), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    results = []
    for rank in ranks:
        try:
            out, error = rank.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            for each in ranks:
                each.kill()
            raise
        assert rank.returncode == 0, error
        results.append(json.loads(out))
    first, second = results
    for mine, others in zip(first["epochs"], second["epochs"], strict=True):
        assert set(mine).isdisjoint(others)
        assert sorted(mine + others) == list(range(101))
    assert first["epochs"][0] != first["epochs"][1], "every epoch is dealt anew"
    assert first["rows"] + second["rows"] == 101
