"""The calls of gpu-check, in the order of a first hour on a GPU: correctness before speed, and what the aims need first.

A call never takes longer than CALL_SECONDS: the limits of its steps sum to less, which a test
asserts. The `expected` seconds are for one H200 with 16 cores (README.md says which are guesses); a test
asserts that all calls and the starts of their machines fit into LENT_SECONDS.
"""
from dataclasses import dataclass
from typing import Callable

import steps_decode
import steps_engine
import steps_machine
import steps_models
import steps_python
import steps_staging
import steps_train

CALL_SECONDS = 560  # a call that takes ten minutes is killed
SPARE_SECONDS = 15  # for what happens between the steps
MACHINE_START = 30  # seconds that a fresh machine takes
LENT_SECONDS = 1800  # seconds for which a machine is lent


@dataclass(frozen=True)
class Step:
    """`run(check, seconds)` returns a result; the report prints its docstring."""
    name: str
    expected: int  # seconds
    limit: int  # seconds at most
    run: Callable
    data: bool = False  # whether it needs the step `data` before it, on this machine


@dataclass(frozen=True)
class Call:
    name: str
    what: str
    steps: tuple


DATA = Step("data", 6, 40, steps_machine.data)

CALLS = (
    Call("correct", "what the machine is, every test that needs it, the first training steps, the sanitizer", (
        Step("machine", 2, 25, steps_machine.machine_state),
        Step("torch", 20, 80, steps_machine.import_torch),
        Step("device tests", 2, 35, steps_machine.device_tests),
        Step("engine tests", 45, 140, steps_machine.engine_tests),
        Step("collective tests", 5, 30, steps_machine.collective_tests),
        Step("first steps", 30, 200, steps_engine.first_steps),
        Step("sanitizer", 20, 45, steps_machine.sanitizer),
    )),
    Call("compare", "whole trainings of a few steps on the device and on the CPU: the same losses", (
        Step("models", 45, 200, steps_models.models, data=True),
        Step("exchanges", 10, 150, steps_models.exchanges, data=True),
    )),
    Call("profile", "where a step's time goes: operation by operation, then kernel by kernel", (
        Step("table", 25, 90, steps_engine.table),
        Step("fusions", 40, 90, steps_engine.fusions),
        Step("ncu", 90, 380, steps_engine.ncu),
    )),
    Call("resnet50", "ResNet-50 beside PyTorch, eager and compiled", (
        Step("resnet50", 120, 500, steps_train.resnet50, data=True),
    )),
    Call("feed", "training fed from JPEG files, and each part of the feed alone", (
        Step("jpeg", 90, 200, steps_train.jpeg, data=True),
        Step("staging", 30, 60, steps_staging.staging),
        Step("slots", 20, 50, steps_train.slots, data=True),
        Step("feeds", 30, 80, steps_train.feeds, data=True),
        Step("slicing", 5, 20, steps_staging.slicing),
        Step("normalise", 5, 20, steps_staging.normalise),
        Step("decode", 50, 85, steps_decode.decode, data=True),
    )),
    Call("python", "PyTorch and JAX fed by the Python package", (
        Step("python", 50, 150, steps_python.python, data=True),
    )),
    Call("cifar", "CIFAR-10 through the real feed beside airbench94, seed by seed", (
        Step("cifar", 120, 400, steps_train.cifar, data=True),
    )),
    Call("autotune", "ResNet-50 beside PyTorch compiled with max-autotune, which takes minutes to compile", (
        Step("autotune", 240, 500, steps_train.autotune, data=True),
    )),
)
STEPS = {step.name: step for call in CALLS for step in call.steps}


def with_data(steps):
    """Returns the steps in order, after the step that makes their data if one of them needs it,
    because a fresh machine has none."""
    return ((DATA,) if any(step.data for step in steps) else ()) + tuple(steps)


def limit_of(steps):
    return sum(step.limit for step in with_data(steps))


def expected_of(steps):
    return sum(step.expected for step in with_data(steps))


def left_of(call, done):
    """Returns the steps of the call that have no result yet."""
    return tuple(step for step in call.steps if step.name not in done)


def next_call(done):
    """Returns the first call with steps that have no result yet, and these steps; (None, ()) if
    nothing is left."""
    return next(((call, left) for call in CALLS if (left := left_of(call, done))), (None, ()))


def lines(done):
    """Returns the plan as lines of text: what each call does, how long it takes, and what is
    done."""
    text = []
    for number, call in enumerate(CALLS, 1):
        left = left_of(call, done)
        state = "done" if not left else "to do" if left == call.steps else "to do: " + ", ".join(s.name for s in left)
        text.append(f"{number}. {call.name:<9} {expected_of(call.steps):>4} s expected, {limit_of(call.steps)} s at most; {state}")
        text.append(f"   {call.what}")
    return text
