"""Epochs, positions, ranks: what a loop over a Loader sees."""

from __future__ import annotations

import operator
import sys
import types

import numpy as np
import pytest

import stoker
from conftest import contents, epochs_of
from stoker._remote import RunningWorkers, Workers


def ids_of(batch: stoker.Batch) -> list[int]:
    return np.asarray(batch.ids).tolist()


def counted(batches: object) -> list[int]:
    """Returns the ids of the rows that count, in order."""
    found = []
    for batch in batches:
        weights = np.asarray(batch.weights)
        found += [i for i, weight in zip(ids_of(batch), weights, strict=True) if weight > 0]
    return found


def positions(loader: stoker.Loader, most: int | None = None) -> list[tuple[int, int, int]]:
    found = []
    for batch in loader:
        found.append((batch.step, batch.epoch, batch.step_in_epoch))
        if most is not None and len(found) == most:
            break
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_has_every_sample_once_and_batches_of_one_shape(source, workers):
    with stoker.Loader(source, batch_size=32, workers=workers) as loader:
        assert len(loader) == 4
        for epoch in range(3):
            seen = []
            for batch in loader:
                assert batch.epoch == epoch
                assert batch.images.shape == (32, 16, 16, 3)
                assert batch.labels.shape == batch.weights.shape == batch.ids.shape == (32,)
                assert len(batch) == 32
                assert batch.valid == (np.asarray(batch.weights) > 0).sum()
                labels = np.asarray(batch.labels)
                assert labels.dtype == np.int32
                assert labels.tolist() == [source.label(i) for i in ids_of(batch)]
                seen += counted([batch])
            assert sorted(seen) == list(range(100))


def test_epochs_have_orders_of_their_own_unless_not_shuffled(source):
    with stoker.Loader(source, batch_size=50) as loader:
        first, second = counted(loader), counted(loader)
    assert first != second
    with stoker.Loader(source, batch_size=50, shuffle=False) as loader:
        assert counted(loader) == counted(loader) == list(range(100))


def test_pixels_follow_from_seed_epoch_and_id_alone(pictures):
    def rows(**options):
        found = {}
        options = {"size": 32, "seed": 5, **options}
        augment = stoker.random_resized_crop() | stoker.flip() | stoker.color_jitter(0.4, 0.4, 0.4)
        with stoker.Loader(stoker.folder(pictures), augment=augment, **options) as loader:
            for batch in loader:
                for i, pixels in zip(ids_of(batch), np.asarray(batch.images), strict=True):
                    found[i] = pixels.tobytes()
        return found

    plain = rows(batch_size=8, workers=0)
    assert len(plain) == 37
    assert rows(batch_size=5, workers=2) == plain
    assert rows(batch_size=5, workers=1, leases=2, ring_depth=2) == plain
    assert rows(batch_size=8, workers=2, copy=True) == plain
    assert rows(batch_size=8, workers=0, seed=6) != plain


def test_a_loop_left_early_is_followed_by_the_next_epoch(source):
    with stoker.Loader(source, batch_size=25) as loader:
        assert positions(loader, most=2) == [(0, 0, 0), (1, 0, 1)]
        assert positions(loader) == [(4, 1, 0), (5, 1, 1), (6, 1, 2), (7, 1, 3)]
        assert positions(loader, most=4)[-1] == (11, 2, 3)  # left at its end
        assert positions(loader, most=1) == [(12, 3, 0)]


def test_an_iterator_that_took_nothing_costs_no_epoch(source):
    with stoker.Loader(source, batch_size=25) as loader:
        first = iter(loader)
        iter(loader)
        with pytest.raises(RuntimeError, match="ended by a newer one"):
            next(first)
        assert positions(loader, most=1) == [(0, 0, 0)]


def test_a_newer_loop_ends_the_older_one(source):
    with stoker.Loader(source, batch_size=25) as loader:
        old = iter(loader)
        next(old)
        new = iter(loader)
        with pytest.raises(RuntimeError, match="ended by a newer one"):
            next(old)
        assert next(new).epoch == 1


def test_an_iterator_at_its_end_stays_there(source):
    with stoker.Loader(source, batch_size=50) as loader:
        loop = iter(loader)
        assert operator.length_hint(loop) == 2
        next(loop)
        assert operator.length_hint(loop) == 1
        assert len(list(loop)) == 1
        with pytest.raises(StopIteration):
            next(loop)
        assert loop._feed is None, "it keeps no threads alive"
        assert next(iter(loader)).epoch == 1


def test_set_epoch(source):
    with stoker.Loader(source, batch_size=25) as loader:
        loader.set_epoch(0)
        feed = loader._feed
        first = counted(loader)
        loader.set_epoch(1)
        assert loader._feed is feed, "the epoch that comes anyway costs nothing"
        loader.set_epoch(5)
        assert loader.epoch == 5
        assert positions(loader, most=1) == [(20, 5, 0)]
        loader.set_epoch(0)
        assert counted(loader) == first
        for bad in (-1, 1.5, "2"):
            with pytest.raises(ValueError, match="epoch is"):
                loader.set_epoch(bad)


def test_the_feed_ends_where_epochs_says(source):
    with stoker.Loader(source, batch_size=25, epochs=1.5) as loader:
        assert len(positions(loader)) == 4
        assert positions(loader) == [(4, 1, 0), (5, 1, 1)]
        with pytest.raises(RuntimeError, match="the feed ended at step 6"):
            iter(loader)
        with pytest.raises(ValueError, match="epoch is 2, but epochs="):
            loader.set_epoch(2)
        loader.set_epoch(1)
        assert positions(loader) == [(4, 1, 0), (5, 1, 1)]
    with stoker.Loader(source, batch_size=25, epochs=1) as loader:
        assert len(positions(loader)) == 4
        with pytest.raises(RuntimeError, match="the feed ended at step 4"):
            iter(loader)


def test_a_batch_that_an_interrupt_left_is_not_for_another_epoch(source):
    with stoker.Loader(source, batch_size=25) as loader:
        loader._feed.get().next(4, taken := [])
        loader._feed._kept.extend(taken)
        assert loader.state_dict()["next_step"] == 0
        loader.set_epoch(2)
        assert positions(loader, most=1) == [(8, 2, 0)]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("steps", [0, 1, 3, 4, 6])
def test_a_state_goes_on_exactly_where_it_was_taken(source, workers, steps):
    options = {
        "batch_size": 25,
        "seed": 9,
        "augment": stoker.augment.random_crop(padding=2, mode="reflect") | stoker.flip(),
    }

    with stoker.Loader(source, workers=workers, **options) as loader:
        taken = 0
        state = loader.state_dict() if steps == 0 else None
        rest = []
        for _ in range(3):
            for batch in loader:
                taken += 1
                if taken > steps:
                    rest.append(contents(batch))
                elif taken == steps:
                    state = loader.state_dict()
    assert state["next_step"] == steps
    assert state["epoch"] == steps // 4
    assert state["step_in_epoch"] == steps % 4
    with stoker.Loader(source, workers=2 - workers, **options) as resumed:
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        first_loop = [contents(batch) for batch in resumed]
        assert len(first_loop) == 4 - steps % 4, "the rest of the epoch that it was in"
        while len(first_loop) < len(rest):
            first_loop += [contents(batch) for batch in resumed]
        assert first_loop == rest


def test_a_resumed_loop_left_early_is_followed_by_the_next_epoch(source):
    with stoker.Loader(source, batch_size=25) as loader:
        positions(loader, most=1)
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert positions(loader, most=1) == [(1, 0, 1)]
        assert positions(loader, most=1) == [(4, 1, 0)]


def test_a_state_of_another_configuration_is_refused_and_changes_nothing(source):
    with stoker.Loader(source, batch_size=25, seed=0) as loader:
        positions(loader, most=1)
        before = loader.state_dict()
        for other in ({"batch_size": 20}, {"seed": 1}, {"augment": stoker.flip()}):
            with stoker.Loader(source, **{"batch_size": 25, "seed": 0, **other}) as another:
                state = another.state_dict()
            with pytest.raises(ValueError, match="another configuration"):
                loader.load_state_dict(state)
        for bad in (
            {},
            {**before, "version": 7},
            {**before, "next_step": -1},
            {**before, "seed": None},
            {**before, "seed": -1},
            {**before, "fingerprint": 3},
        ):
            with pytest.raises(ValueError, match="state|version|next_step|seed"):
                loader.load_state_dict(bad)
        assert loader.state_dict() == before


def test_a_state_does_not_depend_on_workers_type_or_leases(source):
    with (
        stoker.Loader(source, batch_size=25, seed=7, workers=0) as one,
        stoker.Loader(
            source, batch_size=25, seed=7, dtype="float32", layout="NCHW", leases=1
        ) as other,
    ):
        assert one.state_dict() == other.state_dict()


RANDOM = stoker.augment.random_crop(padding=4, mode="reflect") | stoker.flip()


def test_without_a_seed_every_loader_draws_one(source):
    """Two views of the same pictures, with a new Loader for each epoch."""
    options = {"batch_size": 25, "augment": RANDOM, "shuffle": False}
    found = []
    for _ in range(3):
        with stoker.Loader(source, **options) as loader:
            found.append(epochs_of(loader))
            seed = loader.seed
    assert len({tuple(views) for views in found}) == 3
    with stoker.Loader(source, seed=seed, **options) as loader:
        assert (loader.seed, epochs_of(loader)) == (seed, found[-1])


def test_a_drawn_seed_is_part_of_the_state(source):
    options = {"batch_size": 25, "augment": RANDOM}
    with stoker.Loader(source, **options) as loader:
        first = loader.state_dict()
        loop = iter(loader)
        next(loop)
        state = loader.state_dict()
        rest = epochs_of(loop) + epochs_of(loader)
    with stoker.Loader(source, **options) as resumed:
        assert resumed.seed != state["seed"]
        for each in (first, state):  # the first is at the step where `resumed` is
            resumed.load_state_dict(each)
            assert resumed.seed == state["seed"] and resumed.state_dict() == each
        assert epochs_of(resumed) + epochs_of(resumed) == rest
        before = resumed.state_dict()
        with pytest.raises(ValueError, match="another configuration"):
            resumed.load_state_dict({**state, "seed": 1})
        assert resumed.state_dict() == before
    with stoker.Loader(source, seed=state["seed"], **options) as named:
        named.load_state_dict(state)
        assert epochs_of(named) + epochs_of(named) == rest
    with (
        stoker.Loader(source, seed=3, **options) as named,
        pytest.raises(ValueError, match="another configuration"),
    ):
        named.load_state_dict(state)


def test_a_state_of_the_version_before_had_seed_0(source):
    with stoker.Loader(source, batch_size=25, seed=0) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with stoker.Loader(source, batch_size=25) as unseeded:
        unseeded.load_state_dict({**state, "version": 1, "seed": "none"})
        assert unseeded.state_dict() == state


def test_ranks_that_shuffle_must_be_given_a_seed(source):
    with pytest.raises(ValueError, match="seed is None, but 2 ranks share each epoch"):
        stoker.Loader(source, rank=0, world=2)
    with stoker.Loader(source, rank=0, world=2, shuffle=False) as loader:
        assert len(loader) == 1


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_an_epoch(source, world):
    seen, lengths = [], set()
    for rank in range(world):
        with stoker.Loader(source, batch_size=16, rank=rank, world=world, seed=2) as loader:
            assert (loader.rank, loader.world) == (rank, world)
            lengths.add(len(loader))
            seen += counted(loader)
    assert len(lengths) == 1
    assert sorted(seen) == list(range(100))


def test_rank_and_world_are_those_of_torch_distributed(source, monkeypatch):
    group = types.ModuleType("torch.distributed")
    group.is_available = lambda: True
    group.is_initialized = lambda: False
    group.get_rank = lambda: 1
    group.get_world_size = lambda: 3
    monkeypatch.setitem(sys.modules, "torch.distributed", group)
    with stoker.Loader(source) as loader:
        assert (loader.rank, loader.world) == (0, 1)
    group.is_initialized = lambda: True
    with stoker.Loader(source, seed=2) as loader:
        assert (loader.rank, loader.world) == (1, 3)
    with stoker.Loader(source, rank=0, world=2, seed=2) as loader:
        assert (loader.rank, loader.world) == (0, 2)


def test_the_last_batch(source):
    with stoker.Loader(source, batch_size=100, last_batch="drop") as loader:
        assert [batch.valid for batch in loader] == [100]
    with stoker.Loader(source, batch_size=32, last_batch="drop") as loader:
        assert len(loader) == 3
        assert [batch.valid for batch in loader] == [32] * 3
    with stoker.Loader(source, batch_size=32, last_batch="wrap") as loader:
        assert [batch.valid for batch in loader] == [32] * 4
    with stoker.Loader(source, batch_size=32) as loader:
        assert [batch.valid for batch in loader] == [32, 32, 32, 4]


def test_normalised_pixels(pictures):
    source = stoker.folder(pictures)
    options = {"batch_size": 8, "size": (24, 32), "shuffle": False, "workers": 1}
    with stoker.Loader(source, **options) as loader:
        plain = np.asarray(next(iter(loader)).images).copy()
    assert plain.shape == (8, 24, 32, 3)
    mean = np.float32(stoker.IMAGENET_MEAN)
    std = np.float32(stoker.IMAGENET_STD)
    wanted = (plain.astype(np.float32) / np.float32(255) - mean) / std
    for dtype in ("float32", "float16"):
        for layout in ("NHWC", "NCHW", "channels_last"):
            with stoker.Loader(
                source,
                dtype=dtype,
                layout=layout,
                mean=stoker.IMAGENET_MEAN,
                std=stoker.IMAGENET_STD,
                **options,
            ) as loader:
                images = next(iter(loader)).images
                assert images.dtype == dtype
                assert images.shape == ((8, 24, 32, 3) if layout == "NHWC" else (8, 3, 24, 32))
                found = np.asarray(images)
                assert found.flags.c_contiguous == (layout != "channels_last")
                if layout != "NHWC":
                    found = found.transpose(0, 2, 3, 1)
                np.testing.assert_array_equal(found, wanted.astype(dtype))
    with stoker.Loader(source, layout="channels_last", **options) as loader:
        found = np.asarray(next(iter(loader)).images)
        np.testing.assert_array_equal(found.transpose(0, 2, 3, 1), plain)


def test_bfloat16_has_the_upper_half_of_float32(source):
    options = {"batch_size": 4, "shuffle": False, "workers": 1}
    with stoker.Loader(source, dtype="float32", **options) as loader:
        exact = np.asarray(next(iter(loader)).images).copy()
    with stoker.Loader(source, dtype="bfloat16", **options) as loader:
        images = next(iter(loader)).images
        assert images.dtype == "bfloat16"
        with pytest.raises(TypeError, match="no bfloat16"):
            np.asarray(images)
        torch = pytest.importorskip("torch")
        found = torch.from_dlpack(images).float().numpy()
    np.testing.assert_allclose(found, exact, rtol=2**-8)


def test_labels_names_and_metadata(pictures):
    def label(name, old):
        assert name.startswith(f"class_{old}/")
        return 10 + old

    source = stoker.folder(pictures, label_fn=label)
    assert len(source) == 37
    assert source.classes == ["class_0", "class_1", "class_2"]
    assert source.labels() == sorted(source.labels()) and set(source.labels()) == {10, 11, 12}
    assert stoker.relabel(source, list(range(37))).labels() == list(range(37))
    assert source.fingerprint != stoker.folder(pictures).fingerprint
    with stoker.Loader(source, batch_size=8, size=8, metadata=lambda n, i: (n, i * 2)) as loader:
        for batch in loader:
            names = [source.name(i) for i in ids_of(batch)]
            assert batch.names == names
            labels = np.asarray(batch.labels).tolist()
            assert batch.metadata == [(n, i * 2) for n, i in zip(names, labels, strict=True)]
    with stoker.Loader(source, size=8) as loader, pytest.raises(AttributeError, match="metadata"):
        _ = next(iter(loader)).metadata


def test_rows_that_others_fill_are_under_way_for_longer(source):
    class Nobody(Workers, RunningWorkers):
        closed = 0

        def begin(self, source):
            return self

        def serve(self, feed, job):
            pass

        def close(self):
            self.closed += 1

    nobody = Nobody()
    with stoker.Loader(source, remote=nobody, workers=1, leases=2) as loader:
        assert loader._options.ring_depth == 2 + 8
        assert sorted(counted(loader)) == list(range(100))
    assert nobody.closed == 1


def test_stats_and_memory_are_told(source):
    with stoker.Loader(source, batch_size=25) as loader:
        for _ in loader:
            pass
        stats = loader.stats()
        assert stats["decode"]["items"] >= 100
        assert stats["staging"]["items"] == 4
        assert stats["staging"]["input_wait_s"] > 0
        assert stats["bad_samples"] == 0
        plan = loader.memory_plan()
        assert plan["ring_bytes"] >= 6 * 25 * 16 * 16 * 3
        assert plan["slot_bytes"] == 0
    with stoker.Loader(source, batch_size=25, dtype="float32", leases=2) as loader:
        plan = loader.memory_plan()
        assert plan["ring_bytes"] >= 5 * 25 * 16 * 16 * 3 * 4 and plan["slot_bytes"] == 0


def test_a_limit_of_memory_changes_no_rows(pictures):
    def loader(memory):
        return stoker.Loader(
            stoker.folder(pictures), batch_size=4, size=64, seed=1, epochs=1, memory=memory
        )

    with loader(None) as plain, loader("300M") as limited:
        assert epochs_of(limited) == epochs_of(plain)
        assert limited.stats()["memory_waits"] == 0
        assert limited.stats()["memory_taken_bytes"] == 0
        plan = limited.memory_plan()
        assert plan["limit_bytes"] == 300 << 20 < plain.memory_plan()["limit_bytes"]
        assert plan["expected_bytes"] <= plan["most_bytes"] <= plan["limit_bytes"]
    too_little = r"memory is 9 MiB, must be at least \d+ MiB: slabs, slots"
    with pytest.raises(ValueError, match=too_little):
        loader(9 << 20)
    for wrong in ("2 gigs", "", 0, -1, True, 1.5):
        with pytest.raises(ValueError, match=f"memory is {wrong!r}, must be bytes above 0"):
            loader(wrong)


def test_a_closed_loader_says_so(source):
    loader = stoker.Loader(source, batch_size=25)
    loop = iter(loader)
    batch = next(loop)
    loader.close()
    loader.close()
    assert np.asarray(batch.images).shape == (25, 16, 16, 3), "a batch held stays valid"
    for call in (lambda: next(loop), loader.__len__, loader.state_dict, lambda: iter(loader)):
        with pytest.raises(RuntimeError, match="the Loader was closed"):
            call()


def test_an_operation_must_be_a_library_of_this_version(tmp_path):
    with pytest.raises(RuntimeError, match="there is no such file"):
        stoker.operation(tmp_path / "libmine.so")
    (tmp_path / "libmine.so").write_text("no library")
    with pytest.raises(RuntimeError, match=r"operation .*libmine\.so: cannot be opened"):
        stoker.operation(tmp_path / "libmine.so")
