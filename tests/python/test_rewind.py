"""stoker.rewind(): the batch of any step again, as it was fed."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from conftest import contents, damaged_folder, jpeg, picture

import stoker

VARIANTS = {
    "padded": {},
    "dropped": {"last_batch": "drop"},
    "wrapped": {"last_batch": "wrap"},
    "listed": {"shuffle": False},
    "float": {"dtype": "float32", "layout": "NCHW", "mean": 0.4, "std": 0.2},
    "class_balanced": {"order": stoker.class_balanced(length=50)},
    "weighted": {"order": stoker.weighted([1.0 + i for i in range(37)], 30, replacement=False)},
    "repeated": {"order": stoker.repeated(3)},
    "step_sizes": {"size": stoker.step_sizes([24, 32], hold=2)},
    "mixed": {"augment": "random_resized_crop(32) | flip | mix(mixup=0.2)"},
}


def loader_of(pictures, **options):
    source = stoker.folder(pictures)
    given = {"size": 32, "augment": "random_resized_crop | flip", "batch_size": 4, "seed": 5}
    return stoker.Loader(source, **{**given, "workers": 1, **options})


def check_all_steps(loader, epochs=2):
    fed = [(contents(b), b.draws) for _ in range(epochs) for b in loader]
    for step in [*range(len(fed) - 1, -1, -3), len(loader)]:
        rewound = stoker.rewind(loader, step)
        assert contents(rewound.batch) == fed[step][0]
        assert [row.draws for row in rewound.rows] == fed[step][1]
        assert [row.name for row in rewound.rows] == rewound.batch.names


@pytest.mark.parametrize("name", VARIANTS)
def test_a_step_comes_again_with_the_same_bytes(pictures, name):
    check_all_steps(loader_of(pictures, **VARIANTS[name]))


def test_a_step_of_buckets_comes_again():
    sizes = [(96, 72), (72, 96)]
    files = [jpeg(picture(i, *sizes[i % 3 == 0])) for i in range(31)]
    loader = stoker.Loader(
        stoker.memory(files, range(31)),
        batch_size=4,
        seed=2,
        buckets=[(36, 48), (48, 36)],
        last_batch="merge",
    )
    check_all_steps(loader)


def test_a_step_of_a_blend_comes_again(source):
    small = stoker.subset(source, range(7))
    blend = stoker.blend([(0, {source: 0.7, small: 0.3}), (20, [0.2, 0.8])])
    check_all_steps(stoker.Loader(blend, batch_size=8, seed=2))


def test_the_running_loop_goes_on_undisturbed(pictures):
    plain = [contents(b) for b in loader_of(pictures)]
    loader = loader_of(pictures)
    seen = []
    for batch in loader:
        seen.append(contents(batch))
        assert contents(stoker.rewind(loader, 9 - batch.step).batch) == plain[9 - batch.step]
    assert seen == plain
    loader.close()
    assert contents(stoker.rewind(loader, 3).batch) == plain[3]


def test_a_rank_sees_the_rows_of_another(pictures):
    loaders = [loader_of(pictures, rank=rank, world=2) for rank in (0, 1)]
    fed = [[contents(b) for b in loader] for loader in loaders]
    assert contents(stoker.rewind(loaders[0], 3, rank=1).batch) == fed[1][3]
    assert contents(stoker.rewind(loaders[0], 3).batch) == fed[0][3]


@pytest.mark.parametrize("threads", [0, 1])
def test_only_that_step_is_made(threads):
    asked = []

    class Items:
        def __len__(self):
            return 1000

        def __getitem__(self, i):
            asked.append(i)
            return np.full((8, 8, 3), i % 256, np.uint8), i

    source = stoker.dataset(Items(), processes=False)
    options = {"workers": threads, "io_threads": threads}
    loader = stoker.Loader(source, batch_size=4, size=8, seed=1, **options)
    loader.close()
    asked.clear()
    rewound = stoker.rewind(loader, 10**9)
    assert rewound.epoch == 10**9 // 250
    assert sorted(asked) == sorted(row.id for row in rewound.rows)


def test_a_state_and_a_loader_made_again_are_enough(pictures):
    loader = loader_of(pictures, seed=None, on_batch=lambda batch: contents(batch))
    fed = list(loader)
    again = loader_of(pictures, seed=None, workers=2)
    rewound = stoker.rewind(loader.state_dict(), 7, loader=again)
    assert contents(rewound.batch) == fed[7]
    assert again.state_dict()["next_step"] == 0
    other = loader_of(pictures, augment="resize")
    with pytest.raises(ValueError, match="the state is of another configuration"):
        stoker.rewind(loader.state_dict(), 7, loader=other)


def test_damaged_files_are_substituted_as_in_the_run(tmp_path):
    bad = damaged_folder(tmp_path / "bad", 24, [3, 11, 12])
    options = {"max_bad": 3.0, "quarantine": tmp_path / "bad.jsonl"}
    loader = loader_of(bad, **options)
    fed = [contents(batch) for batch in loader]
    noted = (tmp_path / "bad.jsonl").read_bytes()
    again = [stoker.rewind(loader, step) for step in range(6)]
    assert [contents(each.batch) for each in again] == fed
    assert sum(not row.counts for each in again for row in each.rows) == 3
    assert (tmp_path / "bad.jsonl").read_bytes() == noted


def test_what_is_refused(pictures):
    loader = loader_of(pictures, epochs=1.5)
    with pytest.raises(ValueError, match=r"step is 15, must be 0 to 14"):
        stoker.rewind(loader, 15)
    with pytest.raises(ValueError, match=r"step is 100, must be 0 to 14"):
        stoker.rewind(loader, 100)
    with pytest.raises(ValueError, match=r"step is -1, must be a whole number"):
        stoker.rewind(loader, -1)
    with pytest.raises(ValueError, match=r"rank is 1, must be a whole number from 0 to 0"):
        stoker.rewind(loader, 1, rank=1)
    with pytest.raises(TypeError, match=r"loader is \[1\]: give the stoker.Loader"):
        stoker.rewind([1], 1)
    with pytest.raises(TypeError, match="loader is None"):
        stoker.rewind(loader.state_dict(), 1)
    with pytest.raises(ValueError, match="not a state"):
        stoker.rewind({}, 1, loader=loader)


def test_rows_are_ranked_and_shown(pictures, tmp_path):
    loader = loader_of(pictures, dtype="float32", mean=0.5)
    rewound = stoker.rewind(loader, 9)  # one row counts
    with pytest.raises(ValueError, match="3 losses, and step 9 has 4 rows, of which 1 count"):
        rewound.with_losses([1, 2, 3])
    assert [row.loss for row in rewound.with_losses([2.5]).ranked()] == [2.5]
    rewound = stoker.rewind(loader, 2).with_losses([0.1, float("nan"), 0.3, 0.2])
    assert [row.row for row in rewound.ranked()] == [1, 2, 3, 0]
    rewound.to_html(tmp_path / "step.html")
    page = (tmp_path / "step.html").read_text()
    shown = re.findall(r"<b>(.*?)</b><br>(?:loss (.*?), )?label", page)
    assert shown == [
        (row.name, "" if row.row == 1 else f"{row.loss:.4g}") for row in rewound.ranked()
    ]
    assert pixels_in(page)[1].tolist() == np.asarray(uint8_rows(pictures, 2))[2].tolist()


def uint8_rows(pictures, step):
    return stoker.rewind(loader_of(pictures), step).batch.images


def pixels_in(page):
    found = re.findall(r"base64,([A-Za-z0-9+/=]+)", page)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(text)))) for text in found]
