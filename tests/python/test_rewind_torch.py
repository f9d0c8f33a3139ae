"""Rewinding what a loop of PyTorch was fed: adapters, and a wrong label behind a spike."""

from __future__ import annotations

import numpy as np
import pytest

import stoker

torch = pytest.importorskip("torch")
import stoker.torch  # noqa: E402

SEEDS = 20
SAMPLES, BATCH, EPOCHS = 240, 16, 6


def test_a_step_of_the_adapter_comes_again(pictures):
    loader = stoker.torch.DataLoader(
        stoker.folder(pictures), 5, shuffle=True, size=24, seed=3, on_batch=lambda item: [*item]
    )
    fed = [item for _ in range(2) for item in loader]
    rewound = stoker.rewind(stoker.watch(loader), 11)
    images, labels = rewound.batch
    assert torch.equal(images, fed[11][0])
    assert torch.equal(labels, fed[11][1])
    assert [row.label for row in rewound.rows] == labels.tolist()


def test_rows_that_do_not_count_are_left_out_of_both(pictures):
    loader = stoker.torch.DataLoader(stoker.folder(pictures), 5, size=24)
    watch = stoker.watch(loader)
    for images, labels in watch:
        watch.record(images.mean(), rows=labels.float())
    rewound = stoker.rewind(watch, 7)
    assert len(rewound.batch[1]) == 2
    assert [row.loss for row in rewound.rows[:2]] == rewound.batch[1].tolist()
    assert len(rewound.ranked()) == 2


def test_only_the_last_list_of_a_sampler_is_known(pictures):
    source = stoker.folder(pictures)
    lists = iter([[3, 1, 2], [5, 4, 6]])

    class Listed(torch.utils.data.Sampler):
        def __init__(self):  # that of PyTorch 1 takes a data source
            pass

        def __iter__(self):
            return iter(next(lists))

        def __len__(self):
            return 3

    loader = stoker.torch.DataLoader(source, 1, sampler=Listed(), size=8)
    fed = [labels for _ in range(2) for _, labels in loader]
    assert torch.equal(stoker.rewind(loader, 4).batch[1], fed[4])
    assert stoker.rewind(loader, 4).rows[0].id == 4
    with pytest.raises(ValueError, match=r"step is 2, must be 3 to 5: its sampler lists"):
        stoker.rewind(loader, 2)


def squares(seed):
    """Pictures of which a net learns the class at once, and the sample that has a wrong one."""
    drawn = np.random.default_rng(seed)
    labels = drawn.integers(0, 4, SAMPLES)
    images = drawn.integers(0, 60, (SAMPLES, 8, 8, 3), np.uint8)
    for image, label in zip(images, labels):
        image[4 * (label // 2) :][:4, 4 * (label % 2) :][:, :4] += 120
    wrong = int(drawn.integers(SAMPLES))
    return images, labels, wrong


def run(seed, folder):
    """Trains; one label is wrong from the fifth epoch on. Returns the watch and the sample."""
    torch.manual_seed(seed)
    images, labels, wrong = squares(seed)
    items = stoker.dataset(list(zip(images, labels.tolist())), processes=False)
    source = stoker.with_targets(items, {"id": np.arange(SAMPLES)})
    loader = stoker.torch.DataLoader(source, BATCH, shuffle=True, size=8, seed=seed, num_workers=1)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 32), torch.nn.ReLU(),
                                torch.nn.Linear(32, 4))  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    watch = stoker.watch(loader, folder=folder)
    for epoch in range(EPOCHS):
        for images, labels, targets in watch:
            if epoch >= EPOCHS - 2:
                labels = torch.where(targets["id"] == wrong, (labels + 1) % 4, labels)
            each = torch.nn.functional.cross_entropy(model(images), labels, reduction="none")
            optimizer.zero_grad()
            each.mean().backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            watch.record(each.mean(), norm, rows=each)
    return watch, wrong


@pytest.fixture
def _one_thread():
    """On a busy machine the threads of PyTorch wait for each other in every small operation."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_one_thread")
def test_the_wrong_label_behind_a_spike_is_named_first(tmp_path):
    named = 0
    for seed in range(SEEDS):
        watch, wrong = run(seed, tmp_path / str(seed))
        spikes = watch.spikes()
        named += bool(spikes) and stoker.rewind(watch, spikes[0].step).ranked()[0].id == wrong
    assert named >= 19
