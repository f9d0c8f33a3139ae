"""Sources whose list is still being made: the first batches come before it is complete, and all
batches are those of the complete list. A web server holds later shards back until it is told.
"""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import stoker
from conftest import WebServer, contents, epochs_of
from item_sets import pixels, png
from shard_files import tar_file

SHARDS, PER_SHARD = 4, 12


class Handler(WebServer.Handler):
    def do_GET(self):
        if int(self.path.split("-")[1][0]) >= 2:
            self.server.go_on.wait()
        super().do_GET()


def write_shards(folder, name, label, image=lambda i: png(pixels(i))):
    for shard in range(SHARDS):
        members = []
        for i in range(shard * PER_SHARD, (shard + 1) * PER_SHARD):
            members += [(f"{i:03}.cls", label(i)), (f"{i:03}.png", image(i))]
        tar_file(folder / f"{name}-{shard}.tar", members)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("growing")
    write_shards(path, "train", lambda i: b"%d" % (i % 5))
    write_shards(path, "text", lambda i: [b"ant", b"bee"][i % 2])
    broken = {3: b"no picture", 15: png(pixels(15))[:200]}
    write_shards(
        path, "broken", lambda i: b"%d" % (i % 5), lambda i: broken.get(i, png(pixels(i)))
    )
    write_shards(path, "damaged", lambda i: b"0")
    (path / "damaged-3.tar").write_bytes(b"x" * 2048)
    return path


@pytest.fixture
def server(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    server = WebServer(folder, Handler)
    server.go_on = threading.Event()
    with server.running():
        yield server
        server.go_on.set()


def local(folder, name="train"):
    return stoker.tar(f"{folder}/{name}-{{0..3}}.tar")


def begin(server, name="train"):
    return stoker.tar(f"{server.address}/{name}-{{0..3}}.tar", wait=False)


def loader(source, **arguments):
    augment = stoker.random_resized_crop() | stoker.flip()
    arguments = {"batch_size": 5, "size": 32, "seed": 1, "shuffle": False, **arguments}
    return stoker.Loader(source, augment=augment, **arguments)


def test_the_first_batches_come_before_the_list_is_complete(folder, server):
    source = begin(server)
    feed = loader(source, batch_size=6)
    got = []
    for batch in feed:
        got.append(contents(batch))
        if len(got) == 4:  # of 24 samples
            assert source.is_growing
            assert feed.epoch == 0
            assert "a list that grows" in repr(feed)
            assert feed.stats()["decode"]["items"] > 0
            assert feed.memory_plan()["total_bytes"] > 0
            server.go_on.set()
    whole = loader(local(folder), batch_size=6)
    assert got == epochs_of(whole)
    assert not source.is_growing
    assert epochs_of(feed) == epochs_of(whole)  # the second epoch
    assert len(feed) == len(whole)
    assert source.fingerprint == local(folder).fingerprint
    assert "48 samples" in repr(feed)


@pytest.mark.parametrize("last_batch", ["pad", "drop", "wrap"])
@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_and_last_batches(folder, server, rank, last_batch):
    arguments = {"rank": rank, "world": 2, "last_batch": last_batch, "batch_size": 7, "epochs": 2}
    feed = loader(begin(server), **arguments)
    iterator = iter(feed)
    first = contents(next(iterator))
    server.go_on.set()
    assert [first, *(contents(batch) for batch in iterator)] == (
        epochs_of(whole := loader(local(folder), **arguments))
    )
    assert epochs_of(feed) == epochs_of(whole)


def warned_once(monkeypatch, source, server):
    """Lets the server go on when somebody is warned, which must be before the list is complete."""
    messages = []

    def warn(message, *_, **__):
        assert source.is_growing
        messages.append(str(message))
        server.go_on.set()

    monkeypatch.setattr("stoker._feeds.warnings.warn", warn)
    return messages


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"shuffle": None}, "shuffle=False"),
        ({"epochs": 0.5}, "epochs=0.5"),
        ({"on_batch": lambda batch: batch}, "on_batch="),
        ({"share": f"growing-{os.getpid()}"}, "share="),
    ],
)
def test_what_needs_the_list_waits_and_says_why(folder, server, monkeypatch, arguments, reason):
    source = begin(server)
    messages = warned_once(monkeypatch, source, server)
    feed = loader(source, **arguments)
    assert len(messages) == 1
    assert reason in messages[0]
    assert source.root in messages[0]
    assert epochs_of(feed) == epochs_of(loader(local(folder), **arguments))


def test_classes_that_are_texts_are_known_at_the_end(folder, server, monkeypatch):
    source = begin(server, "text")
    messages = warned_once(monkeypatch, source, server)
    feed = loader(source)
    assert len(messages) == 1
    assert "texts" in messages[0]
    assert epochs_of(feed) == epochs_of(loader(local(folder, "text")))
    assert source.classes == ["ant", "bee"]


def test_a_bad_sample_waits_for_those_that_may_take_its_place(folder, server, tmp_path):
    source = begin(server, "broken")
    # Its first step has a bad sample.
    threading.Timer(0.2, server.go_on.set).start()
    arguments = {"max_bad": 0.5, "quarantine": tmp_path / "bad.jsonl", "epochs": 1}
    feed = loader(source, **arguments)
    expected = epochs_of(loader(local(folder, "broken"), **{**arguments, "quarantine": None}))
    assert epochs_of(feed) == expected
    assert feed.stats()["bad_samples"] == 2
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 2


def test_a_loop_that_is_left_goes_on_with_the_next_epoch(folder, server):
    feed = loader(begin(server))
    iterator = iter(feed)
    next(iterator)
    server.go_on.set()
    whole = loader(local(folder))
    epochs_of(whole)
    assert epochs_of(feed) == epochs_of(whole)
    with pytest.raises(RuntimeError, match="ended by a newer one"):
        next(iterator)


def test_a_state_waits_for_the_list_and_is_that_of_the_whole(folder, server):
    feed = loader(begin(server))
    iterator = iter(feed)
    for _ in range(3):
        next(iterator)
    server.go_on.set()
    state = feed.state_dict()
    assert state["next_step"] == 3
    expected = epochs_of(loader(local(folder)))
    assert [contents(batch) for batch in iterator] == expected[3:]
    other = loader(local(folder))
    assert other.state_dict()["fingerprint"] == state["fingerprint"]
    other.load_state_dict(state)


def test_what_is_wrong_with_a_later_shard_comes_in_its_place(server):
    feed = loader(begin(server, "damaged"))
    iterator = iter(feed)
    for _ in range(4):
        next(iterator)
    server.go_on.set()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"damaged-3\.tar: at byte 0"):
            for _ in iterator:
                pass
    feed.close()


def test_a_loader_closes_while_the_list_grows(server):
    source = begin(server)
    feed = loader(source)
    iterator = iter(feed)
    batch = next(iterator)
    feed.close()
    assert np.asarray(batch.images).any()
    with pytest.raises(RuntimeError, match="closed"):
        next(iterator)
    assert source.is_growing


def test_batches_outlive_the_feed_that_made_them(folder, server):
    feed = loader(begin(server))
    held = []
    for batch in feed:
        held.append(batch)
        if len(held) == 4:
            server.go_on.set()
    assert [contents(batch) for batch in held] == epochs_of(loader(local(folder)))


def test_arguments(folder, server):
    address = f"{server.address}/train-{{0..3}}.tar"
    with pytest.raises(TypeError, match="wait"):
        stoker.tar(address, wait="no")
    with pytest.raises(ValueError, match="label_fn"):
        stoker.tar(address, wait=False, label_fn=lambda name, label: 0)
    # On a disk there is nothing to wait for.
    source = stoker.open(f"{folder}/train-{{0..3}}.tar", wait=False)
    assert not source.is_growing
    assert source.first_samples(0) is None
    assert epochs_of(loader(source)) == epochs_of(loader(local(folder)))


def test_a_step_comes_again_once_the_list_is_complete(folder, server, tmp_path):
    feed = loader(begin(server), batch_size=6)
    watch = stoker.watch(feed, folder=tmp_path)
    got = []
    for batch in watch:
        got.append(contents(batch))
        watch.record(1.0, rows=[1.0] * 6)
        if len(got) == 4:
            assert feed.source.is_growing
            server.go_on.set()
            last = contents(stoker.rewind(feed, 7).batch)  # waits for the list
    assert last == got[7]
    assert [contents(stoker.rewind(watch, step).batch) for step in range(8)] == got
    again = stoker.rewind(tmp_path, 2, loader=loader(local(folder), batch_size=6))
    assert [row.loss for row in again.rows] == [1.0] * 6
    assert contents(again.batch) == got[2]
