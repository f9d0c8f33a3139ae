"""The steps of gpu-check, in the order of a first hour on a GPU: correctness before speed, and what the aims need first.

A call of gpu-check takes the steps that are left, in this order, as long as the next one's limit fits into CALL_SECONDS.
"""
from dataclasses import dataclass
from typing import Callable

import steps_correct as correct
import steps_engine as engine
import steps_train as training

CALL_SECONDS = 575  # a call that takes ten minutes is killed by those who lend machines


@dataclass(frozen=True)
class Step:
    """`run(check, seconds)` returns a result; the list and the report print its docstring."""
    name: str
    limit: int  # seconds at most
    run: Callable
    data: bool = False  # whether it needs the step `data` before it, on this machine

    @property
    def what(self):
        return " ".join(self.run.__doc__.split())


DATA = Step("data", 40, correct.data)
STEPS = {step.name: step for step in (
    Step("machine", 25, correct.machine_state),
    Step("torch", 80, correct.import_torch),
    Step("device tests", 35, correct.device_tests),
    Step("engine tests", 140, correct.engine_tests),
    Step("collective tests", 30, correct.collective_tests),
    Step("first steps", 200, engine.first_steps),
    Step("sanitizer", 45, correct.sanitizer),
    Step("models", 200, correct.models, data=True),
    Step("exchanges", 150, correct.exchanges, data=True),
    Step("table", 90, engine.table),
    Step("fusions", 90, engine.fusions),
    Step("ncu", 380, engine.ncu),
    Step("resnet50", 500, training.resnet50, data=True),
    Step("jpeg", 200, training.jpeg, data=True),
    Step("staging", 60, engine.staging),
    Step("slots", 50, training.slots, data=True),
    Step("feeds", 80, training.feeds, data=True),
    Step("slicing", 20, engine.slicing),
    Step("normalise", 20, engine.normalise),
    Step("decode", 85, training.decode, data=True),
    Step("python", 150, training.python, data=True),
    Step("cifar", 400, training.cifar, data=True),
    Step("autotune", 500, training.autotune, data=True),
)}


def left(done):
    """Returns the steps that have no result yet."""
    return [step for step in STEPS.values() if step.name not in done]


def with_data(steps):
    """Returns the steps, and before the first that needs it the one that makes their data, because a fresh machine has none."""
    at = next((i for i, step in enumerate(steps) if step.data), None)
    return [*steps] if at is None else [*steps[:at], DATA, *steps[at:]]


def lines(done):
    """Returns the plan as lines of text: each step, its limit, whether it is done, and what it does."""
    return [f"{step.name:<16} {step.limit:>4} s at most  {'done ' if step.name in done else 'to do'}  {step.what}" for step in STEPS.values()]
