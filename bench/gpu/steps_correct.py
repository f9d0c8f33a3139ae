"""Steps that check the machine and that what it computes is right: data, the machine, PyTorch, tests, whole trainings of a few steps
beside the CPU engine's."""
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import machine
import prepare_data
from programs import read_metrics, run_ours, test_summary
from runner import Failed, NotRun, TimedOut, attempt, json_of, last_words, missing, run

# How a test program that needs a GPU is known; all of its tests are then run.
GPU_TESTS = "*Cuda*:*CUDA*:*Cudnn*:*Nccl*:*Gpu*"
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
# The CPU's counterpart of what only devices have.
ON_THE_CPU = {"all-reduce:device": "all-reduce:host", "all-reduce:nccl": "all-reduce:host", "parameter-server:device": "parameter-server:host"}


def data(check, timeout):
    """CIFAR-10 in its binary layout and an image folder large enough for the runs."""
    return {"cifar": attempt(make_cifar, check, timeout), "pictures": attempt(make_pictures, check, timeout)}


def make_cifar(check, timeout):
    source = check.options.cifar or bundled(check, "cifar10.tar.xz")
    if source and os.path.isdir(source):
        return {"folder": os.path.abspath(source), "from": source}
    if not source:
        if check.scale["cifar_stand_in"]:  # a rehearsal trains on drawn shapes in the same way
            return {"folder": draw_shapes(check, 32, 600, timeout), "from": "stoker make-shapes"}
        raise NotRun("no CIFAR-10 in the bundle and none named with --cifar")
    out = os.path.join(check.work, check.scale["name"], "cifar-10-batches-bin")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    try:
        prepare_data.cifar_from_tar(source, out, check.scale["cifar_per_class"])
    except (ImportError, OSError, ValueError) as error:
        raise Failed(f"{source}: {error}") from None
    return {"folder": out, "from": os.path.basename(source)}


def make_pictures(check, timeout):
    source = check.options.images or bundled(check, "images")
    origin = source or "stoker make-shapes"
    if not source:
        source = os.path.join(draw_shapes(check, *check.scale["shapes"], timeout), "train")
    out = os.path.join(check.work, check.scale["name"], "pictures")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    try:
        prepare_data.repeat_pictures(source, out, check.scale["pictures"])
    except (OSError, ValueError) as error:
        raise Failed(f"{source}: {error}") from None
    return {"folder": out, "source": os.path.abspath(source), "from": os.path.basename(origin), "classes": len(os.listdir(out)),
            "different": len(prepare_data.pictures_in(source))}


def bundled(check, name):
    path = os.path.join(check.layout.data or "", name)
    return path if check.layout.data and os.path.exists(path) else None


def draw_shapes(check, size, count, timeout):
    out = os.path.join(check.work, f"shapes{size}")
    if not os.path.isdir(out):
        part = f"{out}.{os.getpid()}"
        words = [check.layout.stoker, "make-shapes", "--out", part, "--size", str(size), "--count", str(count), "--test-count",
                 str(count // 5)]
        code, output, _ = run_ours(check, words, timeout)
        if code != 0:
            raise Failed(f"stoker make-shapes ended with {code}: {last_words(output)}")
        os.rename(part, out)
    return out


def machine_state(check, timeout):
    """The machine: what nvidia-smi and `stoker info` print about it."""
    end = check.clock() + timeout
    found = {"nvidia-smi": attempt(text_of, check, ["nvidia-smi"], timeout / 2) if check.on_gpu else {"not_run": "a host device"},
             "stoker info": attempt(text_of, check, [check.layout.stoker, "info"], end - check.clock())}
    if check.on_gpu and check.layout.cuda_problem():
        raise Failed(check.layout.cuda_problem(), found)
    return found


def text_of(check, words, timeout):
    code, output, _ = run(words, timeout, check.log, check.layout.env)
    if code != 0:
        raise Failed(f"{os.path.basename(words[0])} ended with {code}: {last_words(output)}")
    return {"text": output.strip()}


def import_torch(check, timeout):
    """PyTorch's versions. The first import reads gigabytes from disk; later peers find them in
    memory."""
    end = check.clock() + timeout
    if not shutil.which(check.options.python):
        raise NotRun(f"there is no Python {check.options.python}")
    code, _, _ = run([check.options.python, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))"], timeout,
                     check.log)
    if code != 0:
        raise NotRun(f"{check.options.python} has no PyTorch")
    script = ("import json, time; start = time.monotonic(); import torch, torchvision; print(json.dumps({'torch': torch.__version__, "
              "'torchvision': torchvision.__version__, 'cuda': torch.version.cuda, 'cudnn': torch.backends.cudnn.version(), "
              "'sees_a_gpu': torch.cuda.is_available(), 'import_seconds': time.monotonic() - start}))")
    code, output, _ = run([check.options.python, "-c", script], end - check.clock(), check.log)
    found = json_of(check.options.python, code, output)
    if check.on_gpu and not found["sees_a_gpu"]:
        raise Failed("PyTorch sees no CUDA device", found)
    return found


def device_tests(check, timeout):
    """The tests of devices, memory, streams and events; on a host device, the tests of the host
    device."""
    if check.on_gpu:
        return run_tests(check, timeout, "cuda_device_test")
    return run_tests(check, timeout, "staging_test", check.scale["test_filter"])


def engine_tests(check, timeout):
    """The tests of the CUDA engine, whose numbers are compared with the CPU's."""
    need_gpu(check)
    return run_tests(check, timeout, "cuda_engine_test")


def collective_tests(check, timeout):
    """The tests of the reductions between replicas; one GPU cannot test NCCL between ranks."""
    need_gpu(check)
    return run_tests(check, timeout, "cuda_collective_test")


def sanitizer(check, timeout):
    """compute-sanitizer around the tests of devices, memory and streams."""
    need_gpu(check)
    tool = tool_of_cuda("compute-sanitizer")
    return run_tests(check, timeout, "cuda_device_test", before=[tool, "--tool", "memcheck", "--error-exitcode", "9"])


def tool_of_cuda(name):
    """Returns the path of a program of the CUDA toolkit."""
    path = shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")
    if not path:
        raise NotRun(f"{name} is not installed")
    return path


def need_gpu(check):
    if not check.on_gpu:
        raise NotRun("this needs a CUDA device")


def run_tests(check, timeout, name, test_filter="*", before=()):
    """Runs a test program and returns its figures. If it is killed or crashes, its tests until then
    count, and the one that was running is named."""
    words = [*before, check.layout.test(name), f"--gtest_filter={test_filter}"]
    try:
        code, output, seconds = run(words, timeout, check.log, check.layout.env)
    except TimedOut as error:
        found = test_summary(error.output) or {}
        during = f" in {found['running']}" if "running" in found else ""
        raise Failed(f"{error}{during}", found) from None
    if "Device not supported" in output:
        raise NotRun(f"{os.path.basename(words[0])} does not support this device")
    found = test_summary(output)
    if found is None:
        raise Failed(f"{name} ended with {code} and ran no test: {last_words(output)}")
    found["seconds"] = seconds
    if "running" in found:
        raise Failed(f"{name} ended with {code} in {found['running']}", found)
    # Some tests need no GPU, and some need more than this machine has. Where most did not run, the GPU was not used.
    skipped = len(found["skipped_tests"])
    if check.on_gpu and skipped > found["passed"]:
        raise Failed(f"{skipped} of {found['tests']} tests of {name} were skipped, see the log", found)
    if code != 0 and not found["failed_tests"]:
        raise Failed(f"ended with {code}: {last_words(output)}", found)
    return found


def folder_of(check, kind):
    result = check.results.get("data", {}).get(kind)
    if missing(result):
        raise NotRun(f"no {kind}: {missing(result)}")
    return result["folder"]


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
