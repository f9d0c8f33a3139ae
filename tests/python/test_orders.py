"""Which samples an epoch takes, in which order: the orders, blends, and that all of a Loader works
with them."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from conftest import epochs_of
from test_loader import counted, ids_of

import stoker

WEIGHTS = [(i % 10) + (i == 7) * 200 for i in range(100)]
ORDERS: dict[str, Callable[[], stoker.Order]] = {
    "weighted": lambda: stoker.weighted(WEIGHTS, length=110),
    "without replacement": lambda: stoker.weighted(WEIGHTS, length=80, replacement=False),
    "class_balanced": lambda: stoker.class_balanced(length=95),
    "repeated": lambda: stoker.repeated(length=107),
    "block_shuffled": lambda: stoker.block_shuffled(block=6, mixed=4),
}
CROP = stoker.augment.random_crop(padding=3, mode="reflect") | stoker.flip()


@pytest.fixture
def other() -> stoker.Source:
    """40 samples that may be mixed with `source`."""
    return stoker.synthetic(40, size=16, classes=10, seed=8)


def two_parts(source: stoker.Source) -> list[stoker.Source]:
    return [stoker.subset(source, range(70)), stoker.subset(source, range(70, 100))]


def options_of(kind: str, source: stoker.Source) -> dict[str, object]:
    """Arguments of a Loader with an order of this kind."""
    if kind in ORDERS:
        return {"source": source, "order": ORDERS[kind]()}
    small, large = two_parts(source)
    if kind == "blend":
        return {"source": stoker.blend({small: 0.7, large: 0.3}, length=110)}
    return {"source": stoker.blend([(0, {small: 3, large: 1}), (6, [1, 2])], length=93)}


KINDS = [*ORDERS, "blend", "schedule"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_goes_on_bit_for_bit(source, kind, workers):
    """From the middle of an epoch, and across the border of epochs."""
    given = options_of(kind, source)
    options = {**given, "batch_size": 25, "seed": 9, "augment": CROP}
    with stoker.Loader(workers=workers, **options) as loader:
        steps = len(loader)
        whole = epochs_of(loader, 3)
    assert len(whole) == 3 * steps
    for taken in (1, steps, steps + 2):
        with stoker.Loader(workers=workers, **options) as loader:
            left = taken
            while left > 0:
                for _ in loader:
                    left -= 1
                    if left == 0:
                        state = loader.state_dict()
                        break
        again = {**options, **pickle.loads(pickle.dumps(given)), "seed": None}
        with stoker.Loader(workers=2 - workers, **again) as resumed:
            resumed.load_state_dict(state)
            assert epochs_of(resumed, 3 - taken // steps) == whole[taken:]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("weighted", "weighted with replacement, length 110, "),
        ("without replacement", "weighted without replacement, length 80, "),
        ("class_balanced", "class balanced, length 95, 10 classes "),
        ("repeated", "repeated 3 times, length 107"),
        ("block_shuffled", "shuffled by blocks of 6, 4 mixed"),
    ],
)
def test_the_library_makes_what_was_asked_for(source, kind, text):
    """Its orders are tested in tests/pipeline/sample_order_test.cc."""
    bound = ORDERS[kind]().bind(source, stoker._core.LoaderOptions())
    assert bound.describe().startswith(text)


def ids_of_epochs(loader: stoker.Loader, epochs: int) -> list[list[int]]:
    return [counted(loader) for _ in range(epochs)]


def test_one_order_serves_any_source(source, other):
    for order in (stoker.class_balanced(), stoker.repeated(), stoker.block_shuffled()):
        for data in (source, other, stoker.subset(source, [1, 2, 3])):
            with stoker.Loader(data, batch_size=7, order=order) as loader:
                assert len(counted(loader)) == len(data)


@pytest.mark.parametrize("form", [list, tuple, np.array, np.float32, iter])
def test_weights_of_any_kind(source, form):
    order = stoker.weighted(form(WEIGHTS))
    with (
        stoker.Loader(source, order=order, seed=1) as one,
        stoker.Loader(source, order=stoker.weighted(WEIGHTS), seed=1) as two,
    ):
        assert one.state_dict() == two.state_dict()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: stoker.weighted([1, -2]), ValueError, "^weighted order: weight 1 of 2 is -2.0"),
        (lambda: stoker.weighted([float("nan")]), ValueError, "weight 0 of 1 is nan"),
        (lambda: stoker.weighted([1, float("inf")]), ValueError, "weight 1 of 2 is inf"),
        (lambda: stoker.weighted([0, 0]), ValueError, "the sum of 2 weights is 0.0"),
        (lambda: stoker.weighted([]), ValueError, "the sum of 0 weights is 0.0|samples is 0"),
        (lambda: stoker.weighted([1, "a"]), TypeError, r"^weights\[1\] is 'a', must be a number$"),
        (lambda: stoker.weighted(3), TypeError, "^weights is 3, must be a sequence$"),
        (lambda: stoker.weighted([1], length=0), ValueError, "^length is 0, must be a whole"),
        (lambda: stoker.weighted([1], length=2.5), ValueError, "^length is 2.5, must be a whole"),
        (lambda: stoker.weighted([1], replacement=1), TypeError, "^replacement is 1, must be True"),
        (
            lambda: stoker.weighted([1, 0, 1], replacement=False),
            ValueError,
            "length is 3, but only 2 of 3 weights are above 0",
        ),
        (lambda: stoker.class_balanced(-1), ValueError, "^length is -1, must be a whole number"),
        (lambda: stoker.class_balanced(2**41), ValueError, "^length is 2199023255552, must be"),
        (lambda: stoker.repeated(0), ValueError, "^repeats is 0, must be a whole number from 1"),
        (lambda: stoker.repeated(1.5), ValueError, "^repeats is 1.5, must be a whole number"),
        (lambda: stoker.block_shuffled(0), ValueError, "^block is 0, must be a whole number"),
        (lambda: stoker.block_shuffled(mixed=2**21), ValueError, "^mixed is 2097152, must be a"),
    ],
)
def test_numbers_that_make_no_order(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_orders_that_do_not_fit_a_loader(source):
    def refused(error: type, message: str, data: object = source, **options: object) -> None:
        with pytest.raises(error, match=message):
            stoker.Loader(data, **options)

    refused(
        ValueError,
        "^order has 3 weights, and there are 100 samples$",
        order=stoker.weighted([1, 2, 3]),
    )
    refused(
        ValueError,
        "length is 301, more than 100 samples x 3 repeats",
        order=stoker.repeated(3, 301),
    )
    refused(
        ValueError,
        "label of sample 0 is -1, must be 0 or more",
        stoker.relabel(source, [-1] * 100),
        order=stoker.class_balanced(),
    )
    refused(TypeError, "^order is 'weighted', must be made by stoker.weighted", order="weighted")
    for shuffle in (True, False):
        refused(
            ValueError,
            rf"^shuffle is {shuffle}, but stoker.repeated\(repeats=3, length=None\) says",
            order=stoker.repeated(),
            shuffle=shuffle,
        )
    refused(
        ValueError,
        "^batch_size is 50, and an epoch has 40 samples",
        order=stoker.repeated(length=40),
        batch_size=50,
        last_batch="drop",
    )
    refused(ValueError, "give all the same seed=", order=stoker.repeated(), rank=0, world=2)


def test_a_state_of_another_order_is_refused(source):
    orders = [None, *(make() for make in ORDERS.values()), stoker.repeated(2, 107)]
    states = []
    for order in orders:
        with stoker.Loader(source, seed=1, order=order) as loader:
            states.append(loader.state_dict())
    for i, order in enumerate(orders):
        with stoker.Loader(source, seed=1, order=order) as loader:
            for j, state in enumerate(states):
                if i == j:
                    loader.load_state_dict(state)
                    continue
                with pytest.raises(ValueError, match="another configuration"):
                    loader.load_state_dict(state)


def test_orders_do_not_change_and_can_be_pickled():
    for order in [make() for make in ORDERS.values()]:
        with pytest.raises(AttributeError):
            order._call = "x"
        assert repr(pickle.loads(pickle.dumps(order))) == repr(order)
    assert repr(stoker.weighted([1, 2])) == (
        "stoker.weighted(<2 weights>, length=2, replacement=True)"
    )
    assert repr(stoker.class_balanced()) == "stoker.class_balanced(length=None)"


def shares(ids: list[int], border: int) -> tuple[int, int]:
    first = sum(i < border for i in ids)
    return first, len(ids) - first


def test_a_blend_gives_each_source_its_share(source, other):
    mixed = stoker.blend({source: 0.7, other: 0.3})
    assert len(mixed) == 140 and mixed.sources == (source, other)
    with stoker.Loader(mixed, batch_size=20, seed=1) as loader:
        assert len(loader) == 7 and loader.source is mixed.source
        for epoch in range(3):
            ids = counted(loader)
            for end in range(1, 141):
                assert abs(shares(ids[:end], 100)[0] - 0.7 * end) <= 1, epoch
        batch = next(iter(loader))
        labels = np.asarray(batch.labels).tolist()
        assert labels == [mixed.source.label(i) for i in ids_of(batch)]
        assert batch.names == [mixed.source.name(i) for i in ids_of(batch)]


def test_the_forms_of_a_blend(source, other):
    forms = [
        {source: 0.75, other: 0.25},
        {source: 3, other: 1},
        [(source, 3), (other, 1)],
        [(0, {source: 3, other: 1})],
        [(0, [(source, np.float32(3)), (other, 1)])],
        [(0, {source: 3, other: 1}), (5, np.array([3, 1]))],
    ]
    epochs = []
    for form in forms:
        with stoker.Loader(stoker.blend(form), batch_size=10, seed=1) as loader:
            epochs.append(ids_of_epochs(loader, 2))
    assert all(each == epochs[0] for each in epochs[:5])
    assert [len(ids) for ids in epochs[5]] == [140, 140]


@pytest.mark.parametrize("last_batch", ["pad", "drop", "wrap"])
def test_a_schedule_counts_the_steps_of_the_loader(source, other, last_batch):
    """Its pieces begin with Batch.step, also after an epoch whose last batch is not full."""
    mixed = stoker.blend([(0, {source: 1}), (3, {other: 1}), (8, [1, 3]), (13, {source: 1})], 95)
    for world in (1, 2):
        found: dict[int, list[int]] = {}
        for rank in range(world):
            options = {"rank": rank, "world": world, "seed": 1, "last_batch": last_batch}
            with stoker.Loader(mixed, batch_size=20 // world, **options) as loader:
                assert len(loader) == (4 if last_batch == "drop" else 5)
                for _ in range(4):
                    for batch in loader:
                        found.setdefault(batch.step, []).extend(counted([batch]))
        for step, ids in found.items():
            first, second = shares(ids, 100)
            whole = last_batch != "wrap" or (step + 1) % 5 != 0  # no samples of the next epoch
            if step < 3 or step >= 13:
                assert second == 0 or not whole, step
            elif step < 8:
                assert first == 0 or not whole, step
            elif whole:
                assert abs(first - len(ids) / 4) <= 1, step


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (lambda a, b: {a: 1, b: -1}, ValueError, "^blend order: piece 0 of 1: weight 1 of 2 is -1"),
        (lambda a, b: {a: float("nan"), b: 1}, ValueError, "weight 0 of 2 is nan"),
        (lambda a, b: {a: 0, b: 0}, ValueError, "the sum of 2 weights is 0.0"),
        (lambda a, b: [(0, {a: 1, b: 1}), (4, [0, 0])], ValueError, "piece 1 of 2: the sum of 2"),
        (
            lambda a, b: [(0, {a: 1, b: 1}), (4, [1])],
            ValueError,
            "piece 1 of 2 has 1 weights for 2",
        ),
        (lambda a, b: [(1, {a: 1})], ValueError, r"^the step of weights\[0\] is 1, must be 0$"),
        (
            lambda a, b: [(0, {a: 1}), (3, {b: 1}), (3, {a: 1})],
            ValueError,
            r"^the step of weights\[2\] is 3, must be after 3$",
        ),
        (lambda a, b: [(0, {a: 1}), (-1, {b: 1})], ValueError, r"weights\[1\] is -1, must be a wh"),
        (lambda a, b: [(0.5, {a: 1})], TypeError, r"^weights\[0\] begins with 0.5, must be a"),
        (lambda a, b: {}, ValueError, "^weights names no source$"),
        (lambda a, b: [], ValueError, "^weights names no source$"),
        (lambda a, b: [(0, [1, 2])], ValueError, "^weights names no source$"),
        (lambda a, b: [(a, 1), (b, 1), (a, 2)], ValueError, "^source 2 of .* is source 0 again$"),
        (lambda a, b: {a: "x"}, TypeError, r"^weights\[0\] is 'x', must be a number$"),
        (lambda a, b: {"a": 1}, TypeError, "^a source of weights is 'a', must be a stoker.Source$"),
        (lambda a, b: [a, b], TypeError, "must be {source: weight}, a list of"),
        (lambda a, b: 3, TypeError, "^weights is 3, must be {source: weight}"),
        (lambda a, b: {a: 1, stoker.synthetic(3): 1}, ValueError, "^source 1 has .* as source 0$"),
    ],
)
def test_weights_that_make_no_blend(source, other, weights, error, message):
    with pytest.raises(error, match=message):
        stoker.blend(weights(source, other))


def test_what_a_blend_does_not_go_with(source, other):
    mixed = stoker.blend({source: 1, other: 1})
    with pytest.raises(ValueError, match="^length is 0, must be a whole number from 1 to"):
        stoker.blend({source: 1}, length=0)
    with pytest.raises(ValueError, match="^order is stoker.repeated.*, but a blend has its own"):
        stoker.Loader(mixed, order=stoker.repeated())
    with pytest.raises(ValueError, match=r"^shuffle is True, but stoker.blend\(<2 sources, 1 pie"):
        stoker.Loader(mixed, shuffle=True)
    with pytest.raises(TypeError, match="^source is stoker.blend.*, must be a stoker.Source$"):
        stoker.subset(mixed, [1])
