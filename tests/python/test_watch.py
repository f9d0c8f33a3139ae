"""stoker.watch(): what a loop learns about its loader. Time is a counter that both advance."""

from __future__ import annotations

import collections.abc
import gc
import json
import re
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import stoker
from stoker._watch_report import FED, WORDS, profile_page
from stoker._watch_steps import PHASES, first_extent

DATA = re.compile(r'<script type="application/json" id="profile">(.*?)</script', re.DOTALL)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Batch(list):
    """A type that supports weak references."""


class Loader:
    """Waits `waits[i % n]` seconds for every batch, of 4 samples."""

    num_workers = 2

    def __init__(self, clock, count, waits):
        self.clock, self.count, self.waits = clock, count, waits

    def __len__(self):
        return self.count

    def __iter__(self):
        for i in range(self.count):
            self.clock.now += self.waits[i % len(self.waits)]
            yield Batch([i])


def watched(count=45, waits=(3.0,), compute=7.0, passes=1, **options):
    clock = Clock()
    cpu_clock = options.pop("cpu_clock", lambda: 0.0)
    loader = Loader(clock, count, waits)
    watch = stoker.Watch(loader, clock=clock, cpu_clock=cpu_clock, batch_size=4, **options)
    for _ in range(passes):
        for _ in watch:
            clock.now += compute
    return watch


def test_batches_come_as_they_are():
    batches = [object() for _ in range(5)]
    watch = stoker.watch(batches)
    assert list(watch) == batches
    assert list(watch) == batches
    assert len(watch) == 5
    assert watch.index(batches[3]) == 3  # the list's own method
    assert list(stoker.watch(x for x in batches)) == batches


def test_waiting_and_computing_are_told_apart():
    verdict = watched().to_dict()["verdict"]
    assert verdict["limit"] == "loader"
    assert verdict["headline"] == "the loader limits: the device waits 30.0% of the time"
    assert verdict["waiting_share"] == pytest.approx(0.3)
    assert verdict["bound_images_per_second"] == pytest.approx(4 / 7)
    assert verdict["confidence"] == 1
    assert verdict["bursts"] is None


def test_a_loop_that_hardly_waits_is_fed():
    watch = watched(waits=(0.1,))
    report = watch.report()
    assert watch.to_dict()["verdict"]["limit"] == "device"
    assert "VERDICT     the device is fed: it waits 1.4% of the time" in report
    assert "a faster loader brings at most +1.4%" in report


@pytest.mark.parametrize(("wait", "limit"), [(0.36, "device"), (0.38, "loader")])
def test_five_percent_of_waiting_is_the_limit(wait, limit):
    assert watched(waits=(wait,)).to_dict()["verdict"]["limit"] == limit


def test_a_loop_without_a_core_is_told(monkeypatch):
    delays = iter([10.0, 55.0])
    monkeypatch.setattr("stoker._watch._delay_seconds", lambda: next(delays))
    assert "waited for a core 10.0% of the time" in watched().report()  # 45 of 450 s


def test_first_steps_are_left_out_and_reported():
    profile = watched(count=25, waits=(500.0,) + (1.0,) * 24, warm_up=3).to_dict()
    assert profile["measured"]["steps"] == 22
    assert profile["measured"]["latency"]["input wait"]["max_s"] == pytest.approx(1)
    assert profile["warm_up"] == {
        "seconds": pytest.approx(500 + 1 + 1 + 3 * 7),
        "steps": 3,
        "first_batch_s": pytest.approx(500),
    }


def test_every_pass_begins_with_a_warm_up():
    watch = watched(count=25, waits=(500.0,) + (1.0,) * 24, warm_up=3, passes=2)
    profile = watch.to_dict()
    assert profile["measured"]["steps"] == 44
    assert profile["verdict"]["waiting_share"] == pytest.approx(1 / 8)
    assert "a later pass waits 500.00 s for its first batch" in watch.report()


def test_percentiles_and_jitter():
    measured = watched(count=100, waits=[float(i) for i in range(100)], warm_up=0).to_dict()[
        "measured"
    ]
    wait = measured["latency"]["input wait"]
    assert (wait["p50_s"], wait["p90_s"], wait["p99_s"], wait["max_s"]) == pytest.approx(
        (49, 89, 98, 99)
    )
    assert measured["jitter"] == pytest.approx((89 - 9) / 2 / (49 + 7))
    assert watched().to_dict()["measured"]["jitter"] == 0


def test_bursts_followed_by_pauses_are_named():
    text = watched(count=85, waits=(20.0,) + (0.01,) * 7).to_dict()["verdict"]["bursts"]
    assert text.startswith("bursts followed by pauses: 100% of the waiting is in 12% of the steps")
    assert "every 8 steps a pause of 2e+04 ms" in text
    pairs = watched(count=85, waits=(9.0, 0.01)).to_dict()["verdict"]["bursts"]
    assert "50% of the steps, every 2 steps" in pairs
    uneven = (9.0, 0.01, 9.0, 9.0, 0.01, 0.01, 9.0, 0.01, 9.0, 9.0, 9.0, 0.01, 0.01)
    hardly = (4.0, *(0.001,) * 60)  # pauses, and next to no waiting
    assert watched(count=200, waits=hardly).to_dict()["verdict"]["bursts"] is None
    for waits in ((3.0, 2.5, 3.5), uneven):
        assert watched(count=85, waits=waits).to_dict()["verdict"]["bursts"] is None


def test_unsure_where_steps_differ_and_where_they_are_few():
    sure = watched(waits=(3.0,)).to_dict()["verdict"]
    unsure = watched(count=45, waits=(0.0,) * 20 + (15.0,)).to_dict()["verdict"]
    few = watched(count=9).to_dict()["verdict"]
    assert sure["confidence_text"].startswith("high: 200 of 200")
    assert unsure["confidence"] < sure["confidence"]
    assert few["confidence"] == pytest.approx(4 / 20)
    assert few["confidence_text"].startswith("low") and "4 steps are few" in few["confidence_text"]


def test_replay_gives_one_batch_again_and_bounds_the_pace():
    clock = Clock()
    watch = stoker.Watch(Loader(clock, 60, (3.0,)), clock=clock, batch_size=4, replay=10)
    seen = []
    for batch in watch:
        again = bool(seen) and batch[0] == seen[-1]
        clock.now += 5 if again else 7  # the loader's threads slow the step down
        seen.append(batch[0])
    assert len(seen) == 70
    assert seen[15:26] == [14] * 10 + [15]  # 5 warm-up and 10 measured steps, the last batch held
    assert sorted(set(seen)) == list(range(60))
    profile = watch.to_dict()
    assert profile["replayed"]["steps"] == 10
    assert profile["measured"]["steps"] == 60 - 5 - 5  # warm-up, and settling after the replay
    assert profile["verdict"]["bound_images_per_second"] == pytest.approx(4 / 5)
    assert "a faster loader brings at most +100.0%" in watch.report()
    assert "10 steps that replayed a batch" in watch.report()


def test_a_pass_begins_with_a_batch_of_its_own():
    """Also where the one before it ended when its steps were replayed."""
    watch, seen = stoker.watch([1, 2, 3, 4], warm_up=0, replay=3), []
    for batch in watch:
        seen.append(batch)
        if seen == [1, 2, 3, 3]:
            break
    assert next(iter(watch)) == 1


def test_a_bound_is_no_less_than_what_was_measured():
    clock = Clock()
    watch = stoker.Watch(Loader(clock, 60, (3.0,)), clock=clock, batch_size=4, replay=10)
    last = None
    for batch in watch:
        clock.now += 20 if batch is last else 7  # slower every time, whatever the reason
        last = batch
    profile = watch.to_dict()
    assert profile["replayed"]["steps"] == 10
    assert profile["verdict"]["bound_images_per_second"] == pytest.approx(4 / 10)


def test_replay_that_comes_too_late_is_said():
    watch = watched(count=20, replay=30)
    assert len(watch.log) == 20
    assert "no step replayed a batch, 30 asked for, came too late" in watch.report()


@pytest.mark.parametrize(
    ("alone_wait", "loop_wait", "words"),
    [
        (3.0, 3.0, "it does not work ahead: making a batch and using it take turns"),
        (10.0, 3.0, "it has to become 1.4 times as fast"),
        (2.0, 6.0, "it works in bursts"),
    ],
)
def test_the_loader_alone_says_what_is_wrong(alone_wait, loop_wait, words):
    watch = watched(waits=(loop_wait,))
    watch._loader.waits = (alone_wait,)
    assert watch.measure_loader(steps=20) == pytest.approx(4 / alone_wait)
    profile = watch.to_dict()
    assert profile["loader_alone"]["steps"] == 15
    assert words in profile["verdict"]["detail"]


def test_a_loader_in_the_loop_s_own_thread_is_told_from_one_that_works_ahead():
    own = [0.0]

    def cpu_clock():  # read before and after each wait
        own[0] += 0.9
        return own[0]

    profile = watched(cpu_clock=cpu_clock).to_dict()
    assert profile["measured"]["step"]["input_wait_cpu_share"] == pytest.approx(0.3)
    assert "own thread makes the batches" in profile["verdict"]["detail"]
    assert "work ahead" not in watched().to_dict()["verdict"]["detail"]


def test_what_cannot_be_run_again():
    with pytest.raises(TypeError, match=r"generator is an iterator"):
        stoker.watch(x for x in range(9)).measure_loader()
    with pytest.raises(RuntimeError, match="the loader gave 3 batches, 5 are warm-up"):
        stoker.watch([1, 2, 3]).measure_loader()


def test_a_batch_is_let_go_before_the_next_one_is_made():
    alive = []

    class Careful(Loader):
        def __iter__(self):
            last = None
            for i in range(self.count):
                gc.collect()
                alive.append(last is not None and last() is not None)
                batch = Batch([i])
                last = weakref.ref(batch)
                yield batch
                del batch

    clock = Clock()
    for batch in stoker.Watch(Careful(clock, 6, (0.0,)), clock=clock):
        del batch
    assert alive == [False] * 6


def test_errors_and_an_early_end_pass_through():
    def broken():
        yield 1
        yield 2
        raise KeyError("shard 7")

    watch = stoker.watch(broken(), warm_up=0)
    with pytest.raises(KeyError, match="shard 7"):
        list(watch)
    assert len(watch.log) == 2
    early = stoker.watch([1, 2, 3, 4], warm_up=0)
    for batch in early:
        if batch == 3:
            break
    assert len(early.log) == 2  # the end of the third step was not recorded


def test_synchronize_belongs_to_the_step():
    clock = Clock()

    def device_is_done():
        clock.now += 5

    watch = stoker.Watch(Loader(clock, 30, (3.0,)), clock=clock, synchronize=device_is_done)
    for _ in watch:
        clock.now += 2
    profile = watch.to_dict()
    assert profile["measured"]["step"]["compute_s"] == pytest.approx(7)
    assert not any("synchronize" in text for text in profile["verdict"]["unknown"])


def test_nothing_measured_is_said_and_written(tmp_path):
    for watch in (stoker.watch([]), stoker.watch([1])):
        list(watch)
        assert "steps are too few" in watch.report()
        watch.to_html(tmp_path / "page.html")
        json.loads(DATA.search((tmp_path / "page.html").read_text()).group(1))


def test_arguments_out_of_range():
    with pytest.raises(ValueError, match="warm_up is -1"):
        stoker.watch([], warm_up=-1)
    with pytest.raises(ValueError, match="replay is 0.5"):
        stoker.watch([], replay=0.5)
    for size in (0, -5, "8"):
        with pytest.raises(ValueError, match="batch_size is"):
            stoker.watch([], batch_size=size)
    with pytest.raises(TypeError, match="loader is 5: there is nothing to iterate over"):
        stoker.watch(5)
    with pytest.raises(ValueError, match="steps is 5, must be above the 5 of warm-up"):
        stoker.watch([1] * 9).measure_loader(steps=5)


class Batches:  # with only what the old protocol needs
    def __getitem__(self, index):
        if index == 9:
            raise IndexError
        return {"image": np.zeros((4, 2))}


class Iterator:  # like those of DALI and Grain, whose states can be saved
    def __init__(self):
        self.given = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.given == 9:
            raise StopIteration
        self.given += 1
        return [{"data": np.zeros((4, 2))}]

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


@pytest.mark.parametrize("make", [Batches, Iterator, lambda: iter(Batches()), lambda: range(9)])
def test_anything_to_iterate_over_can_be_watched(make):
    watch = stoker.watch(make(), batch_size=4)
    assert watch
    assert len(list(watch)) == 9
    assert len(watch.log.of_phase("measured")) == 4
    assert "images/s" in watch.report()


def test_a_state_is_the_loader_s():
    watch = stoker.watch(Iterator())
    for _ in watch:
        if watch.state_dict()["given"] == 4:
            break
    again = stoker.watch(Iterator())
    again.load_state_dict(watch.state_dict())
    assert len(list(again)) == 5


def test_around_an_iterator_it_is_one():
    watch = stoker.watch(Iterator(), batch_size=4, warm_up=0)
    assert iter(watch) is watch and isinstance(watch, collections.abc.Iterator)
    assert not isinstance(stoker.watch([1]), collections.abc.Iterator)
    batches = [next(watch) for _ in range(9)]
    assert len(watch.log) == 8, "the last step is not over"
    assert "8 steps" in watch.report()
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(watch)
    assert len(batches) == len(watch.log) == 9


def test_loops_over_an_iterator_go_on_where_the_last_one_ended():
    watch = stoker.watch(iter(range(8)), warm_up=2)
    assert next(watch) == 0
    for batch in watch:
        if batch == 3:
            break
    assert list(watch) == [4, 5, 6, 7]
    assert list(watch) == []
    # Each is a separate pass, whose last step counts if its end was recorded.
    assert [PHASES[i] for i in watch.log.phases] == ["warm-up"] * 4 + ["measured"] * 2


def test_an_iterator_s_error_is_no_end():
    class Stumbling(Iterator):
        def __next__(self):
            batch = super().__next__()
            if self.given == 3:
                raise KeyboardInterrupt
            return batch

    watch = stoker.watch(Stumbling(), batch_size=4, warm_up=1)
    next(watch), next(watch)
    with pytest.raises(KeyboardInterrupt):
        next(watch)
    next(watch), next(watch)  # another pass
    assert [PHASES[i] for i in watch.log.phases] == ["warm-up", "measured", "warm-up"]
    assert len(list(watch)) == 4


def test_a_watch_that_is_left_goes_at_once():
    def batches():
        try:
            yield Batch([1])
        finally:
            closed.append(True)

    closed = []
    watch = stoker.watch(batches())
    held = weakref.ref(next(watch))
    assert held() is not None, "for a replay"
    del watch
    assert closed and held() is None


def test_a_batchs_size_is_that_of_the_first_thing_with_a_shape(source):
    images, labels = np.zeros((8, 3, 4, 4)), np.zeros(5)
    assert first_extent((images, labels)) == 8
    assert first_extent({"image": images, "label": labels}) == 8
    assert first_extent([{"data": images}]) == 8
    assert first_extent(["name", (images,)]) == 8
    assert first_extent([[labels], images]) == 5
    for nothing in ([1, 2, 3], "text", None, np.float32(1)):
        assert first_extent(nothing) == -1
    with stoker.Loader(source, batch_size=10) as loader:
        assert first_extent(next(iter(loader))) == 10
    watch = stoker.watch([(images, labels)] * 30)
    list(watch)
    assert watch.to_dict()["unit"] == "images/s"
    unknown = stoker.watch([1] * 30)
    list(unknown)
    assert unknown.to_dict()["unit"] == "batches/s"
    by_hand = stoker.watch([[1, 2]] * 30, batch_size=len)
    list(by_hand)
    assert by_hand.to_dict()["unit"] == "images/s"


def test_the_page_holds_the_json_whatever_it_says(tmp_path, monkeypatch):
    hostile = "</script><script>alert(1)</script><!-- <script> \u2028 \udce9.jpg"
    monkeypatch.setattr(sys, "argv", ["train.py", hostile])
    watch = watched()
    watch.to_html(tmp_path / "profile.html")
    watch.to_json(tmp_path / "profile.json")
    page = (tmp_path / "profile.html").read_text("utf-8")
    profile = json.loads(DATA.search(page).group(1))
    assert profile == json.loads((tmp_path / "profile.json").read_text("utf-8"))
    assert profile["command"] == f"train.py {hostile}"
    # The page draws this list by its name in the JSON.
    assert set(profile["verdict"]["evidence"][0]) == {"text", "measured_by"}
    assert "verdict.evidence" in page
    assert page.count("<script") == profile_page({}).count("<script")
    assert "__STOKER_PROFILE_JSON__" not in page
    assert not re.search(r"src=|href=|@import|url\(", profile_page({}))


def test_the_command_has_no_query(tmp_path, monkeypatch):
    address = "https://me:swordfish@host/x.tar?sig=swordfish\udce9"
    monkeypatch.setattr(sys, "argv", ["train.py", f"--data={address}", address])
    watched().to_json(tmp_path / "profile.json")
    command = json.loads((tmp_path / "profile.json").read_text("utf-8"))["command"]
    shown = "https://...@host/x.tar?..."
    assert command == f"train.py --data={shown} {shown}"


PROFILE = Path(__file__).parents[2] / "tools" / "profile"


def test_the_page_is_the_program_s():
    page = (PROFILE / "profile_page.html").read_text("utf-8")
    assert profile_page({}) == page.replace("__STOKER_PROFILE_JSON__", "{}")


def test_numbers_and_names_are_those_of_the_program():
    diagnosis = (PROFILE / "diagnosis.cc").read_text("utf-8")
    assert f"constexpr double kFed = {FED};" in diagnosis
    words = re.findall(r'>= ([\d.]+) +\? "(\w+)"', diagnosis)
    assert {**{word: float(least) for least, word in words}, "low": 0} == WORDS
    phases = (PROFILE / "profiled_run.cc").read_text("utf-8").partition("kNames[] =")[2]
    assert set(PHASES) < set(re.findall(r'"(.*?)"', phases))


def test_the_timeline_adds_up():
    watch = watched(count=50, replay=10)
    timeline = watch.to_dict()["timeline"]
    assert len(timeline) == 100
    rows = sum(piece["images_per_second"] * piece["length_s"] for piece in timeline)
    waiting = sum(piece["waiting_share"] * piece["length_s"] for piece in timeline)
    assert rows == pytest.approx(60 * 4)
    assert waiting == pytest.approx(50 * 3)
    assert {piece["phase"] for piece in timeline} == {"warm-up", "measured", "replayed", "settling"}
