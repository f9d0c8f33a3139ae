"""Data at an address: a web server that knows neither ranges nor lists serves the tests' folder."""

from __future__ import annotations

import pickle

import pytest
import stoker
from conftest import WebServer, epochs_of
from item_sets import pixels, png
from shard_files import tar_file

SAMPLES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored")
    for shard in range(2):
        members = []
        for i in range(shard * SAMPLES // 2, (shard + 1) * SAMPLES // 2):
            members += [(f"{i:03}.cls", b"%d" % (i % 3)), (f"{i:03}.png", png(pixels(i)))]
        tar_file(path / f"part-{shard}.tar", members)
    return path


@pytest.fixture(scope="module")
def address(folder):
    with WebServer(folder).running() as server:
        yield server.address


def batches(source):
    augment = stoker.random_resized_crop() | stoker.flip()
    return epochs_of(stoker.Loader(source, batch_size=8, size=32, seed=1, augment=augment))


def test_shards_at_an_address_are_those_of_the_disk(folder, address):
    local = stoker.tar(f"{folder}/part-{{0..1}}.tar")
    stored = stoker.tar(f"{address}/part-{{0..1}}.tar")
    assert [sample.name for sample in stored] == [sample.name for sample in local]
    assert [sample.data for sample in stored] == [sample.data for sample in local]
    assert batches(stored) == batches(local)
    again = pickle.loads(pickle.dumps(stored))
    assert again[5].data == local[5].data


def test_a_file_address_is_a_path(folder):
    plain = stoker.tar(f"{folder}/part-{{0..1}}.tar")
    named = stoker.tar(f"file://{folder}/part-{{0..1}}.tar")
    assert [sample.name for sample in named] == [sample.name for sample in plain]
    assert len(stoker.open([f"file://{folder}/part-0.tar"])) == SAMPLES // 2
    with pytest.raises(RuntimeError, match="another machine"):
        stoker.tar("file://host/part-0.tar")


def test_names_have_no_query_and_tell_objects_apart(folder, address):
    plain = stoker.tar([f"{folder}/part-0.tar", f"{folder}/part-1.tar"])
    signed = stoker.tar([f"{address}/part-0.tar?sig=key", f"{address}/part-1.tar?sig=key"])
    assert [sample.name for sample in signed] == [sample.name for sample in plain]
    assert (signed.root, signed.root.count("key")) == (address, 0)
    both = stoker.tar([f"{address}/part-0.tar?sig=key&n={n}" for n in range(2)])
    half = SAMPLES // 2
    assert [both.name(i).split("/")[0] for i in (0, half)] == ["part-0.tar", "part-0.tar~2"]
    assert [both[i + half].data for i in range(half)] == [plain[i].data for i in range(half)]
    again = pickle.loads(pickle.dumps(both))
    assert [sample.name for sample in again] == [sample.name for sample in both]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("gs://bucket/x.tar", "AWS_ENDPOINT_URL_S3=https://storage.googleapis.com"),
        ("hf://datasets/x", "stoker.huggingface"),
        ("az://container/x", "https://ACCOUNT.blob.core.windows.net"),
        ("HTTPS://host/x.tar?sig=swordfish", "there is no HTTPS://"),
    ],
)
@pytest.mark.parametrize("call", [stoker.open, stoker.tar, stoker.folder])
def test_schemes_that_are_unknown_say_what_to_write(call, address, said):
    with pytest.raises(ValueError, match=said) as error:
        call(address)
    assert "s3://, https://" in str(error.value)
    assert "--" not in str(error.value) and "swordfish" not in str(error.value)


def test_an_endpoint_has_no_password():
    with pytest.raises(ValueError, match="no user and no password") as error:
        stoker.Store(endpoint="http://me:key@host")
    assert "key@" not in str(error.value)


def test_a_cache_changes_nothing(folder, address, tmp_path):
    store = stoker.Store(cache=str(tmp_path / "cache"), cache_size=20_000, memory=1 << 20)
    stored = stoker.tar(f"{address}/part-{{0..1}}.tar", store=store)
    expected = batches(stoker.tar(f"{folder}/part-{{0..1}}.tar"))
    for _ in range(2):  # from the store; then partly from the cache
        assert batches(stored) == expected
    with stoker.Loader(stored, batch_size=8, size=32, seed=1) as loader:
        assert sum(len(batch) for batch in loader) == SAMPLES
        counted = loader.stats()["store"]
    assert counted["cache_hits"] > 0
    assert counted["cache_kept_bytes"] > 0
    assert counted["cache_problem"] == ""
    assert list((tmp_path / "cache").iterdir())


def test_what_is_wrong_is_said(folder, address):
    with pytest.raises(FileNotFoundError, match="part-2.tar"):
        stoker.tar(f"{address}/part-{{0..2}}.tar")
    with pytest.raises(stoker.StoreError, match="has no list"):
        stoker.folder(f"{address}/pictures", split="all")
    with pytest.raises(ValueError, match="no address in a store"):
        stoker.tar(f"{folder}/part-0.tar", store=stoker.Store())
    with pytest.raises(TypeError, match=r"must be a stoker\.Store"):
        stoker.tar(f"{address}/part-0.tar", store={"endpoint": address})
    for wrong in ({"memory": 3}, {"requests": 0}, {"tries": 0}, {"style": "best"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            stoker.Store(**wrong)
    for wrong in ({"cache": "x"}, {"cache_size": 1}):
        with pytest.raises(ValueError, match="given together, or neither is"):
            stoker.Store(**wrong)
