"""stoker.keras in model.fit, if Keras 3 and a backend are installed."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pytest
from PIL import Image

for backend in ("tensorflow", "jax", "torch"):  # by default Keras takes only the first
    if importlib.util.find_spec(backend):
        os.environ.setdefault("KERAS_BACKEND", backend)
        break
keras = pytest.importorskip("keras", minversion="3")

import stoker  # noqa: E402
from stoker.keras import Dataset  # noqa: E402


def model() -> keras.Model:
    made = keras.Sequential(
        [keras.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(10)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
    return made


def test_fit_learns_and_validates_on_every_sample_once(source):
    train = Dataset(source, batch_size=16, seed=1, workers=1)
    val = Dataset(source, batch_size=16, shuffle=False, workers=1)
    fitted = model()
    history = fitted.fit(train, validation_data=val, epochs=6, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert train.epoch == 6

    images = [images for images, _ in (val[i] for i in range(len(val)))]
    assert sum(map(len, images)) == len(source)
    scores = fitted.predict(np.concatenate(images), verbose=0)
    hits = np.mean(scores.argmax(-1) == np.array(source.labels()))
    assert history["val_accuracy"][-1] == pytest.approx(hits, abs=1e-6)


def test_epochs_are_those_of_the_loader(source):
    data = Dataset(source, batch_size=40, seed=3, workers=1)
    seen = []
    for _ in range(2):
        data.on_epoch_begin()
        seen.append([data[i][1].tolist() for i in range(len(data))])
        data.on_epoch_end()
    loader = stoker.Loader(source, batch_size=40, seed=3, workers=1, copy=True)
    expected = [
        [np.asarray(b.labels)[np.asarray(b.weights) > 0].tolist() for b in loader] for _ in range(2)
    ]
    assert seen == expected
    assert [len(labels) for labels in seen[0]] == [40, 40, 20]
    data.epoch = 1  # as after a restart
    data.on_epoch_begin()
    assert data[0][1].tolist() == expected[1][0]


def test_a_target_in_place_of_the_labels(source):
    several = (np.arange(len(source))[:, None] % np.array([2, 3, 5]) == 0).astype("float32")
    with_targets = stoker.with_targets(source, {"bits": several, "number": np.arange(len(source))})
    data = Dataset(with_targets, batch_size=40, target="bits", shuffle=False, workers=1)
    data.on_epoch_begin()
    given = np.concatenate([data[i][1] for i in range(len(data))])
    np.testing.assert_array_equal(given, several)
    fitted = keras.Sequential(
        [keras.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(3)]
    )
    fitted.compile("adam", loss=keras.losses.BinaryCrossentropy(from_logits=True))
    assert np.isfinite(fitted.fit(data, epochs=1, verbose=0).history["loss"][0])

    both = Dataset(with_targets, batch_size=40, target=["number", "bits"], workers=1)
    both.on_epoch_begin()
    for i in range(len(both)):
        targets = both[i][1]
        assert list(targets) == ["number", "bits"]
        np.testing.assert_array_equal(targets["bits"], several[targets["number"]])
    with pytest.raises(ValueError, match="target is 'bit'; the targets .* are 'bits', 'number'"):
        Dataset(with_targets, target="bit")
    with pytest.raises(ValueError, match="the targets of the source are none"):
        Dataset(source, target="bits")


def test_mixed_rows_as_soft_labels_made_ahead(source):
    names = []

    def soft(batch):
        images, mixed = batch
        names.append(list(mixed))
        share = mixed["mix_weight"][:, None]
        classes = np.eye(10, dtype="float32")
        labels = share * classes[mixed["label"]] + (1 - share) * classes[mixed["mix_label"]]
        return images, labels

    options = dict(batch_size=40, seed=3, workers=1, augment="flip | mix(mixup=1)")
    data = Dataset(source, on_batch=soft, on_batch_ahead=2, **options)
    data.on_epoch_begin()
    given = [data[i] for i in range(len(data))]
    plain = Dataset(source, **options)
    plain.on_epoch_begin()
    for i, (images, labels) in enumerate(given):
        expected = soft(plain[i])
        np.testing.assert_array_equal(images, expected[0])
        np.testing.assert_array_equal(labels, expected[1])
    assert names == [["label", "mix_label", "mix_weight"]] * 6
    assert [len(labels) for _, labels in given] == [40, 40, 20]
    with pytest.raises(IndexError, match="batch 3: the epoch's 3 batches were given"):
        data[3]
    made = model()
    made.compile("adam", loss=keras.losses.CategoricalCrossentropy(from_logits=True))
    assert np.isfinite(made.fit(data, epochs=2, verbose=0).history["loss"]).all()
    assert data.epoch == 2


def with_objects(source):
    """Sample i has i % 3 objects."""
    one = {"boxes": [1, 2, 9, 8], "labels": 4, "masks": [[1, 2, 9, 2, 9, 8]]}
    rows = [{name: [value] * (i % 3) for name, value in one.items()} for i in range(len(source))]
    return stoker.with_annotations(source, rows)


def test_annotations_as_padded_arrays(source):
    carried = with_objects(source)
    room = stoker.Annotations(max_objects=2, masks="bytes")
    options = dict(batch_size=40, seed=3, workers=1, annotations=room, augment="random_crop(12)")
    data = Dataset(carried, **options)
    data.on_epoch_begin()
    for i, batch in enumerate(stoker.Loader(carried, copy=True, **options)):
        images, targets = data[i]
        assert targets.keys() == batch.targets.keys() and len(images) == batch.valid
        for name, values in batch.targets.items():
            np.testing.assert_array_equal(targets[name], np.asarray(values)[: batch.valid])
        assert targets["boxes"].shape == (batch.valid, 2, 4)
        assert targets["labels"][0].tolist().count(-1) == 2 - batch.object_counts[0]

    chosen = Dataset(carried, target=["object_count", "masks"], **options)
    chosen.on_epoch_begin()
    images, targets = chosen[0]
    assert list(targets) == ["object_count", "masks"] and targets["masks"].shape == (40, 2, 12, 12)
    with pytest.raises(ValueError, match="target is 'keypoints'; the targets of .* are 'boxes', "):
        Dataset(carried, target="keypoints", **options)
    with pytest.raises(ValueError, match="packed arrays cannot be cut by rows"):
        Dataset(carried, annotations=stoker.Annotations(packed=True))

    count = Dataset(carried, batch_size=40, target="object_count", workers=1)
    fitted = keras.Sequential(
        [keras.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(3)]
    )
    fitted.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert np.isfinite(fitted.fit(count, epochs=1, verbose=0).history["loss"][0])


def test_label_images_alone(source, tmp_path):
    rows = []
    for i in range(len(source)):
        rows.append({"label_image": tmp_path / f"{i}.png"})
        Image.fromarray(np.full((16, 16), i % 4, np.uint8)).save(rows[-1]["label_image"])
    data = Dataset(stoker.with_annotations(source, rows), batch_size=40, shuffle=False, workers=1)
    data.on_epoch_begin()
    given = np.concatenate([data[i][1] for i in range(len(data))])
    assert given.shape == (100, 16, 16)
    assert (given == (np.arange(100) % 4)[:, None, None]).all()
    fitted = keras.Sequential([keras.Input((16, 16, 3)), keras.layers.Conv2D(4, 1)])
    fitted.compile(
        "adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=255),
    )
    assert np.isfinite(fitted.fit(data, epochs=1, verbose=0).history["loss"][0])
