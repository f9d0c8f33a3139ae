"""A full disk: one clear error with the file's name, and no batch is lost. A limit on the size of
files stands in for the disk: nothing beyond it can be written.
"""

from __future__ import annotations

import json

from conftest import damaged_folder, run_python


def test_a_quarantine_file_that_grows_too_large(tmp_path):
    """Every later next() raises the error again. With room, a Loader that continues from the state
    lists every bad sample that the first one did not list."""
    damaged_folder(tmp_path / "data", 24, range(1, 24, 4))
    done = run_python(
        f"""
        import resource
        import stoker

        def make():
            return stoker.Loader(stoker.folder({str(tmp_path / "data")!r}), batch_size=4, size=32,
                                 shuffle=False, max_bad=24, workers=1,
                                 quarantine={str(tmp_path / "bad.jsonl")!r})

        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, most))
        with make() as loader:
            loop, steps = iter(loader), []
            try:
                while True:
                    steps.append(next(loop).step)
            except stoker.FeedError as error:
                first = str(error)
            print(first)
            for _ in range(2):
                try:
                    next(loop)
                except stoker.FeedError as error:
                    assert str(error) == first
            state = loader.state_dict()
            assert state["next_step"] == len(steps) > 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        with make() as loader:
            loader.load_state_dict(state)
            steps += [batch.step for batch in loader]
        assert steps == list(range(6))
        """
    )
    assert done.returncode == 0, done.stderr
    wanted = f"cannot write the quarantine file {tmp_path / 'bad.jsonl'}: File too large\n"
    assert done.stdout == wanted
    found = set()
    for line in (tmp_path / "bad.jsonl").read_text().splitlines():
        try:
            found.add(json.loads(line)["sample_id"])
        except json.JSONDecodeError:  # the line at which the disk was full
            assert line.startswith('{"sample_id":')
    assert found == set(range(1, 24, 4))
