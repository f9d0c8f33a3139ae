"""A program as users write it, for type checkers: test_types.py has mypy --strict and pyright read
it, and runs it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stoker
import stoker.losses
from stoker import augment
from typing_extensions import assert_type


def brightness(batch: stoker.Batch) -> float:
    return float(batch.images.numpy().mean())


def rows(loader: stoker.Loader) -> Iterator[tuple[str, int]]:  # a Loader of Batches
    for batch in loader:
        assert_type(batch, stoker.Batch)
        yield from zip(batch.names, batch.labels.tolist(), strict=True)


def open_photos(folder: Path | None) -> stoker.Source:
    if folder is not None:
        return stoker.folder(folder, label_fn=lambda name, label: label % 5)
    return stoker.with_targets(stoker.synthetic(100, size=32), {"age": [1.0] * 100})


def main() -> None:
    photos = open_photos(None)
    train, held_out = stoker.random_split(photos, [0.9, 0.1], seed=0)
    colours = augment.random_apply(augment.color_jitter(0.4), p=0.8)
    recipe = augment.random_resized_crop(24) | colours
    assert_type(recipe, stoker.Augment)
    options = stoker.weighted([1.0] * len(train))
    with stoker.Loader(train, batch_size=32, augment=recipe, order=options, seed=1) as loader:
        assert_type(loader, stoker.Loader[stoker.Batch])
        for batch in loader:
            assert_type(batch, stoker.Batch)
            assert_type(batch.images, stoker.Array)
            assert_type(batch.images.shape, tuple[int, ...])
            assert_type(batch.valid, int)
            assert_type(batch.targets, dict[str, Any])
            assert_type(batch.names, list[str])
            images, labels = batch
            assert_type(images, stoker.Array)
            print(batch.step, images[0].shape, labels.tolist()[: batch.valid], batch.draws[0])
        loader.load_state_dict(loader.state_dict())
    for mean in stoker.Loader(held_out, batch_size=8, on_batch=brightness):
        assert_type(mean, float)
    for batch in stoker.Loader(held_out, batch_size=8, on_batch=None):
        assert_type(batch, stoker.Batch)
    for valid in stoker.Loader(held_out, batch_size=8, on_batch=lambda batch: batch.valid):
        assert_type(valid, int)
    watch = stoker.watch(stoker.Loader(held_out, batch_size=8, shuffle=False))
    for watched in watch:
        assert_type(watched, stoker.Batch)
        watch.record(0.5, rows=[0.5] * watched.valid)
    rewound = stoker.rewind(watch, 0)
    assert_type(rewound, stoker.Rewound)
    assert_type(rewound.ranked(), list[stoker.RewoundRow])
    assert_type(watch.spikes(), list[stoker.losses.Spike])
    assert_type(photos[0], stoker.Sample)
    assert_type(photos[0].image(), stoker.Array)
    assert_type(photos.labels(), list[int])
    blend = stoker.blend({train: 0.7, held_out: 0.3})
    assert_type(list(rows(stoker.Loader(blend, batch_size=8, size=16))), list[tuple[str, int]])


if __name__ == "__main__":
    main()
