"""Rows that Ray's workers fill: the same bytes as a local run's, whatever becomes of the workers.

Ray runs embedded, with as many processes as there are workers. Nothing here depends on time: what a
worker did is counted.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from conftest import child_environment, damaged_folder, jpeg, picture, run_program, run_python

ray = pytest.importorskip("ray")

import stoker.ray  # noqa: E402

SOON_S = 120  # a busy machine
EXAMPLE = Path(__file__).parents[2] / "python" / "examples" / "ray_train.py"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ.update(RAY_ENABLE_UV_RUN_RUNTIME_ENV="0", RAY_DEDUP_LOGS="0")
    os.environ["PYTHONPATH"] = child_environment()["PYTHONPATH"]
    ray.init(
        num_cpus=16,  # a promise, not a number of cores: workers sleep while they have no rows
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=200 << 20,
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def bad_pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image folder: 3 classes, 60 JPEGs, two of them damaged."""
    root = tmp_path_factory.mktemp("bad_pictures")
    return damaged_folder(root, 60, (7, 20), "class_0 class_1 class_2")


def receipt(batch: stoker.Batch) -> str:
    """A digest of everything in a batch."""
    digest = hashlib.sha256()
    arrays = [batch.images, batch.labels, batch.weights, batch.ids, *batch.targets.values()]
    for array in [*arrays, *batch.views[1:]]:
        digest.update(np.asarray(array).tobytes())
    digest.update(repr((batch.step, batch.epoch, batch.valid, batch.draws)).encode())
    return digest.hexdigest()


def run(source: object, **options: object) -> list[str]:
    """Returns the receipts of two epochs."""
    with stoker.Loader(source, **{"batch_size": 8, "seed": 5, **options}) as loader:
        return [receipt(batch) for _ in range(2) for batch in loader]


def worker_pids() -> list[int]:
    """The processes that have a worker, busy or not."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            title = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if title.startswith("ray::StokerRows"):
            found.append(int(process.name))
    return found


def soon(what: Callable[[], Any]) -> Any:
    """Returns what it gives, as soon as that is true."""
    end = time.monotonic() + SOON_S
    while not (value := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


LISTS = {
    "plain": {"size": 48, "augment": stoker.random_resized_crop() | stoker.flip()},
    "mixed": {"augment": "random_resized_crop(40) | flip | mix(mixup=0.4, cutmix=1)"},
    "views": {"augment": "views(random_resized_crop(40) | flip, random_resized_crop(24))"},
    "converted": {"size": 40, "dtype": "float32", "layout": "NCHW", "mean": 0.5, "std": 0.25},
}


@pytest.mark.parametrize("name", LISTS)
def test_all_rows_of_workers_are_those_of_a_local_run(bad_pictures, name):
    source = stoker.folder(bad_pictures)
    expected = run(source, workers=1, **LISTS[name])
    with stoker.Loader(
        source,
        batch_size=8,
        seed=5,
        workers=0,
        remote=stoker.ray.workers(2),
        **LISTS[name],
    ) as loader:
        assert [receipt(batch) for _ in range(2) for batch in loader] == expected
        stats = loader.stats()
    assert stats["remote"]["rows"] >= 8 * len(expected)
    assert stats["decode"]["items"] == 0


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_worker_killed_in_every_epoch_changes_nothing(bad_pictures, tmp_path, count):
    """SIGKILL, while it has rows: they are asked of another, or of it when it is begun again."""
    source = stoker.folder(bad_pictures)
    options = {"batch_size": 8, "seed": 5, **LISTS["plain"]}
    with stoker.Loader(source, workers=1, quarantine=tmp_path / "local", **options) as loader:
        expected = [receipt(batch) for _ in range(3) for batch in loader]
    remote = stoker.ray.workers(count)
    killed = 0
    with stoker.Loader(
        source, workers=0, remote=remote, quarantine=tmp_path / "remote", **options
    ) as loader:
        got = []
        for _ in range(3):
            for batch in loader:
                got.append(receipt(batch))
                if batch.step_in_epoch == 2:
                    os.kill(soon(worker_pids)[0], signal.SIGKILL)
                    killed += 1
        assert got == expected
        stats = loader.stats()
        # Rows that were given up may have been filled here.
        assert stats["remote"]["rows"] + stats["decode"]["items"] >= 8 * len(expected)
        assert stats["remote"]["rows"] > 4 * len(expected)
    assert killed == 3
    assert (tmp_path / "remote").read_text() == (tmp_path / "local").read_text()
    assert len((tmp_path / "local").read_text().splitlines()) == 6  # 2 in each epoch


def test_own_workers_and_others_share_the_rows(pictures):
    """Reading is slow here and not there: some rows are filled by others, and the rest here."""
    source = stoker.folder(pictures)
    expected = run(source, workers=1, size=200)
    for _ in range(20):
        options = {"batch_size": 8, "seed": 5, "size": 200, "workers": 1, "ring_depth": 12}
        with stoker.Loader(source, remote=stoker.ray.workers(2), **options) as loader:
            assert [receipt(batch) for _ in range(2) for batch in loader] == expected
            stats = loader.stats()
        assert stats["decode"]["items"] > 0
        if stats["remote"]["rows"] > 0:
            break


def test_orders_blends_targets_ranks_and_states(pictures):
    source = stoker.folder(pictures)
    remote = stoker.ray.workers(2)
    ages = np.arange(len(source), dtype=np.float32)
    with_ages = stoker.with_targets(source, {"age": ages})
    few = stoker.subset(source, range(9))
    blend = stoker.blend([(0, {source: 0.5, few: 0.5}), (6, [0.1, 0.9])])
    for data, options in [
        (with_ages, {"order": stoker.class_balanced()}),
        (with_ages, {"order": stoker.weighted(ages + 1)}),
        (blend, {}),
        (source, {"rank": 1, "world": 2, "last_batch": "wrap"}),
        (stoker.synthetic(50, size=16), {"shuffle": False}),
    ]:
        options["size"] = 16
        expected = run(data, workers=1, **options)
        assert run(data, workers=0, remote=remote, **options) == expected
    with stoker.Loader(source, batch_size=8, seed=5, size=16, workers=1) as loader:
        expected = [receipt(batch) for _ in range(2) for batch in loader]
    with stoker.Loader(source, batch_size=8, size=16, workers=0, remote=remote) as loader:
        loop = iter(loader)
        next(loop)
        loader.load_state_dict(_state_after(source, 3))
        assert [receipt(batch) for batch in loader] == expected[3:5]
        loader.set_epoch(1)
        assert [receipt(batch) for batch in loader] == expected[5:]


def _state_after(source: stoker.Source, steps: int) -> dict[str, object]:
    with stoker.Loader(source, batch_size=8, seed=5, size=16, workers=1) as loader:
        loop = iter(loader)
        for _ in range(steps):
            next(loop)
        return loader.state_dict()


def test_own_datasets_are_read_by_the_workers():
    class Pictures:  # Ray's workers cannot import this file, which pickles by reference would need
        def __len__(self) -> int:
            return 20

        def __getitem__(self, i: int) -> tuple[bytes, int]:
            return jpegs[i], i % 4

    jpegs = [jpeg(picture(i)) for i in range(20)]
    source = stoker.dataset(Pictures(), labels=[i % 4 for i in range(20)], processes=False)
    expected = run(source, workers=1, size=32)
    assert run(source, workers=0, size=32, remote=stoker.ray.workers(2)) == expected


def test_workers_with_other_data_are_refused_with_both_fingerprints(tmp_path):
    for i in range(12):
        (tmp_path / f"class_{i % 3}").mkdir(exist_ok=True)
        (tmp_path / f"class_{i % 3}" / f"{i}.jpg").write_bytes(jpeg(picture(i)))
    source = stoker.folder(tmp_path)
    (tmp_path / "class_0" / "0.jpg").unlink()
    changed = stoker.folder(tmp_path)
    remote = stoker.ray.workers(1)
    with stoker.Loader(source, batch_size=4, size=16, workers=0, remote=remote) as loader:
        with pytest.raises(stoker.FeedError) as error:
            next(iter(loader))
    text = str(error.value)
    assert f"{source.fingerprint:016x}" in text and f"{changed.fingerprint:016x}" in text
    assert "Ray's worker 0" in text and len(text.splitlines()) == 1


def test_workers_with_another_version_are_refused_with_both_versions(pictures, tmp_path):
    package = Path(stoker.__file__).parent
    shutil.copytree(package, tmp_path / "stoker", symlinks=False)
    libraries = package.with_name("stoker.libs")  # of a wheel
    if libraries.exists():
        shutil.copytree(libraries, tmp_path / libraries.name)
    init = tmp_path / "stoker" / "__init__.py"
    init.write_text(init.read_text().replace("__version__ = _VERSION", '__version__ = "0.0.9"'))
    other = {"env_vars": {"PYTHONPATH": str(tmp_path)}}
    remote = stoker.ray.workers(1, runtime_env=other)
    source = stoker.folder(pictures)
    with stoker.Loader(source, batch_size=4, size=16, workers=0, remote=remote) as loader:
        with pytest.raises(stoker.FeedError) as error:
            next(iter(loader))
    assert str(error.value) == (
        f"Ray's worker 0: it has version 0.0.9 of stoker, and the Loader has {stoker.__version__}"
    )


def test_a_worker_that_cannot_start_is_an_error_and_no_hang(pictures, tmp_path):
    (tmp_path / "stoker").mkdir()
    (tmp_path / "stoker" / "__init__.py").write_text("import a_missing_module")
    remote = stoker.ray.workers(1, runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path)}})
    source = stoker.folder(pictures)
    with stoker.Loader(source, batch_size=4, size=16, workers=0, remote=remote) as loader:
        expected = "it cannot be started: ModuleNotFoundError: No module named 'a_missing_module'"
        with pytest.raises(stoker.FeedError, match=expected):
            next(iter(loader))


def test_arguments_are_checked():
    for wrong, error in [
        ({"count": 0}, ValueError),
        ({"count": 2.0}, TypeError),
        ({"count": 1, "cpus": 0}, ValueError),
        ({"count": 1, "threads": "2"}, TypeError),
        ({"count": 1, "max_restarts": 3}, ValueError),
    ]:
        with pytest.raises(error, match=str(next(reversed(wrong)))):
            stoker.ray.workers(**wrong)
    with pytest.raises(TypeError, match="remote is 2, must be made by stoker.ray.workers"):
        stoker.Loader(stoker.synthetic(10, size=16), remote=2)


def test_the_workers_end_with_their_loader(pictures):
    source = stoker.folder(pictures)
    remote = stoker.ray.workers(2)
    before = set(worker_pids())
    loader = stoker.Loader(source, batch_size=8, size=16, workers=0, remote=remote)
    next(iter(loader))
    own = set(worker_pids()) - before
    assert own
    loader.close()
    loader.close()
    other = stoker.Loader(source, batch_size=8, size=16, workers=0, remote=remote)
    next(iter(other))
    own |= set(worker_pids()) - before
    del other
    soon(lambda: not own & set(worker_pids()))


@pytest.mark.parametrize(
    "how", ["pass", "loader.close()", "loader.close(); ray.shutdown()", "del loader, loop"]
)
def test_the_interpreter_ends_with_workers_under_way(how):
    done = run_python(
        f"""
        import stoker, stoker.ray, ray
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 object_store_memory=100 << 20)
        loader = stoker.Loader(stoker.synthetic(10000, size=64), batch_size=64, workers=0,
                               remote=stoker.ray.workers(2))
        loop = iter(loader)
        print(next(loop).step)
        {how}
        """,
        timeout=SOON_S,
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_without_ray_the_error_says_what_to_install():
    done = run_python(
        """
        import sys
        sys.modules["ray"] = None  # as if it were not installed
        import stoker.ray
        """
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: stoker.ray needs Ray, which is not installed: pip install 'stoker[ray]'"
    )


def test_the_example_of_ray_train_has_the_losses_of_a_local_run(bad_pictures, tmp_path):
    """Two trainers. Every picture counts once, and comes from workers in one of the two runs."""
    pytest.importorskip("torchvision")
    pytest.importorskip("ray.train")
    for part in ("train", "val"):
        (tmp_path / part).symlink_to(bad_pictures)
    results = []
    for more in (["--cpu-workers", "0"], ["--cpu-workers", "1", "--own-workers", "0"]):
        address = ray.get_runtime_context().gcs_address
        done = run_program(
            [sys.executable, EXAMPLE, tmp_path, "--trainers", 2, "--batch-size", 8]
            + ["--storage", tmp_path / "runs", *more],
            600,
            {**child_environment(), "RAY_ADDRESS": address, "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        results.append(ast.literal_eval(done.stdout.split("result ")[1].splitlines()[0]))
    alone, helped = results
    assert (alone["loss"], alone["rows"]) == (helped["loss"], helped["rows"])
    assert alone["rows"] == 58  # two of the 60 are damaged
    assert alone["rows_of_cpu_workers"] == 0
    assert helped["rows_of_cpu_workers"] >= 29
