"""Steps that compare whole trainings of a few steps on the device with the CPU engine's: one model of each kind,
and every way in which replicas exchange gradients."""
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import machine
from measure import attempt
from runner import Failed, last_words
from steps_machine import need_gpu
from steps_train import folder_of
from stoker_program import run_ours
from stoker_train import read_metrics

# The loss of the second step is the first that depends on gradients. Later ones say less: both sides add in another order, and a deep
# net of many batch norms carries that on.
STEPS = 2
CPU_RUNS_AT_ONCE = 4
LARGEST_DIFFERENCE = 0.01
# 1bit sends a mean per block of the gradient buffer, and the buffers of both sides have other gaps.
LARGEST_OF_1BIT = 0.05
EXCHANGES = {
    "all-reduce:device": [], "all-reduce:host": ["--reduce", "all-reduce:host"],
    "parameter-server:device": ["--reduce", "parameter-server:device"], "independent": ["--reduce", "independent"],
    "sync batch norm": ["--sync-batch-norm"],
    **{wire: ["--reduce", "all-reduce:host", "--grad-wire", wire] for wire in ("bf16", "int8", "1bit")},
}
# For two replicas on a GPU each, where a machine has two.
BETWEEN_GPUS = {
    "all-reduce:nccl": ["--reduce", "all-reduce:nccl"], "all-reduce:host": ["--reduce", "all-reduce:host"],
    "parameter-server:device": ["--reduce", "parameter-server:device"], "sync batch norm": ["--sync-batch-norm"],
    "bf16": ["--reduce", "all-reduce:nccl", "--grad-wire", "bf16"],
}
# What the CPU's replicas do in place of what only devices have.
ON_THE_CPU = {"all-reduce:device": "all-reduce:host", "all-reduce:nccl": "all-reduce:host", "parameter-server:device": "parameter-server:host"}


def losses(check, name, words, timeout):
    """Returns the losses of the first steps of a training in fp32."""
    folder = os.path.join(check.work, "runs", name)
    shutil.rmtree(folder, ignore_errors=True)
    command = [check.layout.stoker, "train", "--out", folder, "--precision", "fp32", "--seed", "1", "--max-steps", str(STEPS),
               "--log-interval", "1", "--limit-train", "400", "--limit-eval", "16", "--no-receipt", "--seek-index", "off", *words]
    code, output, seconds = run_ours(check, command, timeout)
    if code != 0:
        raise Failed(f"stoker train ended with {code}: {last_words(output)}")
    rows = read_metrics(folder)
    shutil.rmtree(folder)
    return {"losses": [r["loss"] for r in rows if r["kind"] == "step"], "seconds": seconds}


def compared(ours, reference, bound):
    """Returns the losses of the device, with the largest relative difference to the CPU's."""
    pairs = [*zip(ours["losses"], reference["losses"], strict=True)]
    difference = max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs)
    found = {**ours, "of_the_cpu": reference, "largest_difference": difference}
    if not difference <= bound:
        raise Failed(f"the losses differ from the CPU's by {difference:.2g}: {pairs}", found)
    return found


def beside_the_cpu(check, timeout, cases):
    """Returns {name: comparison} of `cases`, {name: (words on the device, words on the CPU)}. The CPU's trainings run beside the
    device's, several at once."""
    end = check.clock() + timeout

    def reference(name):
        return attempt(losses, check, f"cpu {name}", cases[name][1], end - check.clock())

    def pair(name, expected):
        ours = losses(check, f"device {name}", cases[name][0], end - check.clock())
        expected = expected.result()
        if "losses" not in expected:
            raise Failed(f"on the CPU: {expected.get('failed', expected.get('not_run'))}", ours)
        return compared(ours, expected, LARGEST_OF_1BIT if name == "1bit" else LARGEST_DIFFERENCE)

    with ThreadPoolExecutor(CPU_RUNS_AT_ONCE) as pool:
        expected = {name: pool.submit(reference, name) for name in cases}
        return {name: attempt(pair, name, expected[name]) for name in cases}


def first_classes(check, pictures, count):
    """Returns a folder with links to the first classes of an image folder."""
    folder = os.path.join(check.work, f"first_{count}_classes")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in sorted(os.listdir(pictures))[:count]:
        os.symlink(os.path.abspath(os.path.join(pictures, name)), os.path.join(folder, name))
    return folder


def models(check, timeout):
    """The first steps of one model of each kind, on the device and on the CPU: the losses must be the same."""
    need_gpu(check)
    pictures = folder_of(check, "pictures")
    cases = {}
    for name in check.scale["models"]:
        data = first_classes(check, pictures, 2) if name == "mlp41m" else pictures  # it tells two classes apart
        words = ["--data", data, "--model", name, "--batch", "8", "--micro-batch", "8"]
        cases[name] = ([*words, "--devices", check.device], [*words, "--devices", "cpu:1"])
    return beside_the_cpu(check, timeout, cases)


def exchanges(check, timeout):
    """The first steps of two replicas on one device, for each exchange of gradients, and of two on the CPU; and of two on two GPUs, if
    there are two."""
    need_gpu(check)
    cifar = folder_of(check, "cifar")
    base = ["--data", cifar, "--model", "resnet20", "--batch", "64", "--micro-batch", "32"]
    cases = {}

    def add(name, words, devices):
        cases[name] = ([*base, *words, "--devices", devices], [*base, *(ON_THE_CPU.get(w, w) for w in words), "--devices", "cpu:2"])

    for name, words in EXCHANGES.items():
        add(name, words, f"{check.device}*2")
    if check.on_gpu and len(machine.gpus()) > 1:
        for name, words in BETWEEN_GPUS.items():
            add(f"{name} between two GPUs", words, "cuda:0,1")
    return beside_the_cpu(check, timeout, cases)
