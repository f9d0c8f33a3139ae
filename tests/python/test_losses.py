"""Losses that Watch.record() keeps, the steps that stand out, the ranking of a run's samples."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from conftest import child_environment, damaged_folder, jpeg, must_run, picture

import stoker
from stoker import _loss_writer
from stoker.losses import Losses, duplicates, write_subset


class Value:
    """As a tensor on a device: knows when it was fetched. Its memory gets other values."""

    fetched = 0
    shape: tuple = ()

    def __init__(self, value):
        self.value = value

    def detach(self):
        return self

    def clone(self):
        return Value(self.value)

    def __float__(self):
        Value.fetched += 1
        return float(self.value)


def recorded(losses, norms=None, **options):
    """A watch of a plain list after a loop of these losses."""
    watch = stoker.watch(list(range(len(losses))), **options)
    for i in watch:
        watch.record(losses[i], None if norms is None else norms[i])
    return watch


def rows_of(samples=12, batch_size=5, **options):
    source = stoker.synthetic(samples, size=8, classes=3, seed=1)
    return stoker.Loader(source, batch_size=batch_size, size=8, seed=4, workers=0, **options)


def test_steps_are_kept_as_they_were_recorded(tmp_path):
    watch = recorded([0.5, 0.25, math.nan, 1e300], [1, 2, 3, math.inf], folder=tmp_path)
    steps = watch.kept_losses().steps()
    assert steps["step"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(steps["loss"], [0.5, 0.25, math.nan, 1e300])
    np.testing.assert_array_equal(steps["grad_norm"], [1, 2, 3, math.inf])
    assert np.isnan(recorded([1.0]).kept_losses().steps()["grad_norm"]).all()
    assert stoker.watch([1]).kept_losses() is None
    assert stoker.watch([1]).spikes() == []


def test_values_on_a_device_are_fetched_together_and_later():
    Value.fetched = 0
    value = Value(0.0)
    watch = stoker.watch(range(_loss_writer.HELD_STEPS))
    for i in watch:
        value.value = i  # the same memory, as in a CUDA graph
        assert Value.fetched == 0
        watch.record(value)
    assert Value.fetched == _loss_writer.HELD_STEPS
    assert watch.kept_losses().steps()["loss"].tolist() == list(range(_loss_writer.HELD_STEPS))


def test_rows_are_kept_with_their_samples(tmp_path):
    loader = rows_of(12, 5)  # the last batch has 2 rows that count
    watch = stoker.watch(loader, folder=tmp_path)
    expected = []
    for number, batch in enumerate(watch):
        ids, counted = batch.ids.tolist(), batch.counted_rows
        every = [float(sample) for sample in ids]
        only = np.array([every[row] for row in counted])
        watch.record(1.0, rows=only if number % 2 else every)
        only[:] = -1  # it is the program's
        expected.append([(ids[row], every[row]) for row in counted])
    kept = watch.kept_losses()
    assert [kept.of_step(step) for step in range(3)] == expected
    assert kept.of_step(3) == []
    rewound = stoker.rewind(watch, 2)
    assert [row.loss for row in rewound.rows if row.counts] == [loss for _, loss in expected[2]]
    assert [row.id for row in rewound.ranked()] == sorted((i for i, _ in expected[2]), reverse=True)


def test_samples_that_come_twice_in_a_step_keep_both_losses(source):
    loader = stoker.Loader(source, batch_size=6, seed=1, order=stoker.repeated(3))
    watch = stoker.watch(loader)
    batches = iter(watch)
    next(batches)
    watch.record(1.0, rows=[1, 2, 3, 4, 5, 6])
    assert [row.loss for row in stoker.rewind(watch, 0).rows] == [1, 2, 3, 4, 5, 6]


def test_a_resumed_run_goes_on_in_its_folder(tmp_path):
    loader = rows_of(20, 4)
    watch = stoker.watch(loader, folder=tmp_path)
    for batch in watch:
        watch.record(batch.step, rows=[0.0] * 4)
        if batch.step == 1:
            state = loader.state_dict()
        if batch.step == 3:
            break
    watch.kept_losses()
    with open(tmp_path / "steps-0.bin", "ab") as file:
        file.write(b"half a step")
    with open(tmp_path / "losses-0.bin", "ab") as file:
        file.write(bytes(4 * 3))
    again = rows_of(20, 4)
    again.load_state_dict(state)
    watch = stoker.watch(again, folder=tmp_path)
    for batch in watch:
        watch.record(10 + batch.step, rows=[1.0] * 4)
    kept = watch.kept_losses()
    assert kept.steps()["loss"].tolist() == [0, 1, 12, 13, 14]
    assert [kept.of_step(step)[0][1] for step in range(5)] == [0, 0, 1, 1, 1]
    rewound = stoker.rewind(tmp_path, 4, loader=rows_of(20, 4))
    assert [row.loss for row in rewound.rows] == [1.0] * 4
    with pytest.raises(ValueError, match="another configuration"):
        stoker.rewind(tmp_path, 4, loader=rows_of(20, 5))
    other = stoker.watch(rows_of(20, 5), folder=tmp_path)
    with pytest.raises(ValueError, match=r"watch-0\.json is of a run with another configuration"):
        for _ in other:
            other.record(1.0)


def test_steps_that_are_cut_are_left_out(tmp_path):
    watch = stoker.watch(rows_of(20, 4), folder=tmp_path)
    for batch in watch:
        watch.record(batch.step, rows=[1.0] * 4)
    watch.kept_losses()
    os.truncate(tmp_path / "ids-0.bin", 4 * 11)  # two steps and three rows
    assert Losses(tmp_path).steps()["step"].tolist() == [0, 1]
    _loss_writer.LossWriter(tmp_path, 0, lambda: None)
    assert Losses(tmp_path).state["fingerprint"] == watch.state_dict()["fingerprint"]
    assert [os.path.getsize(tmp_path / f"{name}-0.bin") for name in ("steps", "ids", "losses")] == [
        2 * _loss_writer.STEP.size, 32, 32,
    ]  # fmt: skip


def test_an_exception_that_ends_the_program_loses_nothing(tmp_path):
    program = """
        import sys, stoker
        watch = stoker.watch(range(10), folder=sys.argv[1])
        for i in watch:
            watch.record(float(i))
            if i == 6:
                raise RuntimeError("diverged")
    """
    import textwrap

    command = [sys.executable, "-c", textwrap.dedent(program), tmp_path]
    done = subprocess.run(command, env=child_environment(), capture_output=True, check=False)
    assert b"diverged" in done.stderr
    assert Losses(tmp_path).steps()["loss"].tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_value_that_is_none_spoils_no_other_step():
    watch = stoker.watch(rows_of(20, 4))
    for batch in watch:
        watch.record(float(batch.step), rows=[batch.step] * 4)
        if batch.step == 1:
            watch.record(1.0, rows=["many"] * 4)
    with pytest.raises(TypeError):
        watch.kept_losses()
    kept = watch.kept_losses()
    assert [kept.of_step(step)[0][1] for step in range(5)] == [0, 1, 2, 3, 4]


def test_a_forked_child_writes_nothing(tmp_path):
    must_run(
        f"""
        import os, sys, stoker
        watch = stoker.watch(range(3), folder={str(tmp_path)!r})
        for i in watch:
            watch.record(i)
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        """
    )
    assert len(Losses(tmp_path).steps()) == 3
    assert os.path.getsize(tmp_path / "steps-0.bin") == 3 * _loss_writer.STEP.size


def test_what_record_refuses(tmp_path):
    watch = stoker.watch(rows_of())
    with pytest.raises(RuntimeError, match="there is no batch now"):
        watch.record(1.0)
    for _ in watch:
        with pytest.raises(ValueError, match=r"loss has shape \(2,\), must be one number"):
            watch.record(np.zeros(2))
        with pytest.raises(ValueError, match=r"grad_norm has shape \(1, 2\)"):
            watch.record(1.0, np.zeros((1, 2)))
        with pytest.raises(ValueError, match="rows has 3 losses, and step 0 has 5 rows"):
            watch.record(1.0, rows=[1, 2, 3])
        with pytest.raises(ValueError, match=r"rows has shape \(5, 1\)"):
            watch.record(1.0, rows=np.zeros((5, 1)))
        with pytest.raises(ValueError, match=r"ids of step 0 must be whole numbers below 2\^32"):
            watch.record(1.0, rows=[1.0], ids=[-1])
        break
    with pytest.raises(RuntimeError, match="there is no batch now"):
        watch.record(1.0)
    watch = stoker.watch([1])
    for _ in watch:
        with pytest.raises(ValueError, match="list does not name: give ids="):
            watch.record(1.0, rows=[1.0])
    with pytest.raises(FileNotFoundError, match=r"has no watch-0\.json"):
        Losses(tmp_path)
    (tmp_path / "watch-0.json").write_text("[]")
    with pytest.raises(ValueError, match="was not written by stoker.watch"):
        Losses(tmp_path)


def plain_scores(values):
    """The twin of losses._scores(), step by step."""
    scores = []
    for i, value in enumerate(values):
        before = [x for x in values[max(0, i - 64) : i] if math.isfinite(x)]
        if not math.isfinite(value):
            scores.append(math.inf)
            continue
        if len(before) < 8:
            scores.append(-math.inf)
            continue
        median = float(np.median(before))
        apart = [abs(x - median) for x in before]
        spread = max(1.4826 * float(np.median(apart)), abs(median) / 50)
        scores.append((value - median) / spread)
    return scores


def test_scores_are_those_of_the_plain_formula(monkeypatch):
    monkeypatch.setattr(stoker.losses, "_STEPS_AT_ONCE", 50)
    drawn = random.Random(3)
    values = [drawn.gauss(2, 0.1) for _ in range(300)]
    values[100], values[150], values[151] = 9.0, math.nan, -math.inf
    values[200:260] = [1.0] * 59 + [1.5]
    found = stoker.losses._scores(np.array(values))
    np.testing.assert_allclose(found, plain_scores(values), rtol=1e-9)


def test_steps_that_stand_out_are_found_by_loss_and_by_norm():
    drawn = random.Random(1)
    losses = [2 * 0.999**i + drawn.gauss(0, 0.02) for i in range(500)]
    norms = [1 + drawn.gauss(0, 0.05) for _ in range(500)]
    losses[77] += 1
    norms[300] = 40.0
    losses[400] = math.nan
    spikes = recorded(losses, norms).spikes()
    assert [spike.step for spike in spikes] == [400, 300, 77]
    assert spikes[0].score == math.inf
    assert spikes[1].grad_norm == 40.0
    assert [each.step for each in recorded(losses, norms).spikes(most=1)] == [400]
    assert recorded([1.0] * 50).spikes() == []


def test_spikes_of_all_ranks(tmp_path):
    for rank in (0, 1):
        watch = stoker.watch(rows_of(400, 4, rank=rank, world=2), folder=tmp_path)
        for batch in watch:
            watch.record(9.0 if (batch.step, rank) == (30, 1) else 1 + batch.step % 3 / 10)
        watch.kept_losses()
    (spike,) = Losses(tmp_path).spikes()
    assert (spike.step, spike.rank) == (30, 1)
    rewound = stoker.rewind(tmp_path, spike.step, loader=rows_of(400, 4, rank=0, world=2), rank=1)
    assert rewound.rank == 1
    with pytest.raises(ValueError, match="rank is 2, and .* has the losses of rank 0, 1"):
        Losses(tmp_path).steps(rank=2)


def test_samples_are_ranked_over_a_run(tmp_path):
    loader = rows_of(12, 5)
    watch = stoker.watch(loader, folder=tmp_path)
    for epoch in range(4):
        for batch in watch:
            each = {3: 4.0, 7: 5.0 if epoch else 0.1, 9: math.inf if epoch == 1 else 0.0}
            rows = [each.get(sample, 1 / (1 + epoch)) for sample in batch.ids.tolist()]
            watch.record(1.0, rows=rows)
    kept = watch.kept_losses()
    assert [(each.id, each.times) for each in kept.hardest(3)] == [(9, 4), (3, 4), (7, 4)]
    assert kept.hardest()[1].loss == 4.0
    assert kept.hardest()[2].loss == pytest.approx((0.1 + 3 * 5) / 4)
    assert [each.id for each in kept.never_learned()] == [3]
    assert len(kept.hardest()) == 12
    write_subset(tmp_path / "hard.txt", [each.id for each in kept.hardest(3)])
    assert (tmp_path / "hard.txt").read_text() == "9\n3\n7\n"
    with pytest.raises(ValueError, match="has no losses of rows"):
        recorded([1.0]).kept_losses().hardest()


def test_another_loader_is_told_which_samples_its_rows_are():
    watch = stoker.watch([[7, 9], [9]])
    for ids in watch:
        watch.record(1.0, rows=[5.0] * len(ids), ids=np.array(ids))
    kept = watch.kept_losses()
    assert [(each.id, each.times) for each in kept.hardest()] == [(7, 1), (9, 2)]
    assert [each.id for each in kept.never_learned()] == [9]  # once says nothing


def test_the_rows_of_only_the_last_batches_are_noted():
    loader = rows_of(200, 2)
    for _ in stoker.watch(loader):
        pass
    assert loader._batches.rows_of(99 - 64) is None
    assert loader._batches.rows_of(99 - 63) is not None


def test_the_program_takes_the_list(tmp_path):
    program = os.environ.get("STOKER_PROGRAM")
    if program is None:
        pytest.skip("STOKER_PROGRAM is not set")
    folder = damaged_folder(tmp_path / "data", 12, [])
    write_subset(tmp_path / "hard.txt", [9, 3])
    command = [program, "dump", "--data", folder, "--subset", tmp_path / "hard.txt"]
    out = tmp_path / "out"
    subprocess.run([*command, "--size", "8", "--out", out, "--batch", "2"], check=True)
    lines = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert {line["name"] for line in lines} == {"cat/009.jpg", "cat/003.jpg"}


def test_duplicates_are_found_by_their_bytes():
    files = [jpeg(picture(i % 4)) for i in range(6)]
    source = stoker.memory(files, range(6))
    assert duplicates(source) == [[0, 4], [1, 5]]
    assert duplicates(source, [5, 2, 1]) == [[5, 1]]
    assert duplicates(stoker.synthetic(5, size=8)) == []  # raw pixels
