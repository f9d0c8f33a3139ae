"""stoker.jax on four devices, if JAX is installed. In a separate program, because the number of
devices is fixed when JAX starts.
"""

from __future__ import annotations

import importlib.util

import pytest
from conftest import must_run

if importlib.util.find_spec("jax") is None:
    pytest.skip("JAX is not installed", allow_module_level=True)

PROGRAM = """
    import os
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax, numpy as np, stoker
    from stoker.jax import Loader

    source = stoker.synthetic(100, size=16, classes=10, seed=3)
    options = dict(batch_size=40, seed=1, workers=1)
    loader = Loader(source, **options)
    plain = stoker.Loader(source, dtype="float32", copy=True, **options)
    kept = []
    for batch, expected in zip(loader, plain, strict=True):
        assert len(batch.images.sharding.device_set) == 4
        assert batch.images.addressable_shards[1].data.shape == (10, 16, 16, 3)
        for ours, theirs in zip(batch, (expected.images, expected.labels, expected.weights)):
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
        kept.append(batch)
    assert len(kept) == len(loader) == 3
    assert sum(float(jax.jit(lambda w: w.sum())(b.weights)) for b in kept) == 100

    step = iter(loader); next(step)
    state = loader.state_dict()
    rest = [np.asarray(b.labels) for b in step]
    again = Loader(source, **options)
    again.load_state_dict(state)
    np.testing.assert_array_equal(rest, [np.asarray(b.labels) for b in again])

    numbers = np.arange(100, dtype="float32")
    with_targets = stoker.with_targets(source, {"numbers": numbers})
    for images, labels, weights, targets in Loader(with_targets, **options):
        assert targets["numbers"].addressable_shards[1].data.shape == (10,)
        rows = np.asarray(targets["numbers"]).astype(int)
        assert [source.label(i) for i in rows] == np.asarray(labels).tolist()

    one = dict(boxes=[1, 2, 9, 8], labels=4, masks=[[1, 2, 9, 2, 9, 8]])
    objects = [{name: [value] * (i % 3) for name, value in one.items()} for i in range(100)]
    carried = stoker.with_annotations(source, objects)
    room = stoker.Annotations(max_objects=2, masks="bytes")
    with_objects = Loader(carried, annotations=room, augment="random_crop(12) | flip", **options)
    plain = stoker.Loader(
        carried, annotations=room, augment="random_crop(12) | flip", copy=True, **options
    )
    for (_, labels, weights, targets), expected in zip(with_objects, plain, strict=True):
        assert targets["boxes"].addressable_shards[1].data.shape == (10, 2, 4)
        assert targets.keys() == expected.targets.keys()
        for name, values in expected.targets.items():
            np.testing.assert_array_equal(np.asarray(targets[name]), np.asarray(values))
        assert targets["object_count"].tolist() == expected.object_counts
    try:
        Loader(carried, annotations=stoker.Annotations(packed=True), **options)
    except ValueError as error:
        assert "packed arrays cannot be cut by rows" in str(error)
    else:
        raise AssertionError

    ahead = Loader(source, on_batch=lambda batch: (batch.images.mean((1, 2, 3)), batch), **options)
    for (means, batch), expected in zip(ahead, kept, strict=True):
        np.testing.assert_array_equal(np.asarray(batch.images), np.asarray(expected.images))
        assert len(means.sharding.device_set) == 4 and means.shape == (40,)

    try:
        Loader(source, batch_size=6)
    except ValueError as error:
        print(error)
"""


def test_batches_are_sharded_over_the_devices():
    assert must_run(PROGRAM, timeout=240) == "batch_size is 6, must be a multiple of 4 devices\n"
