"""Steps about the machine and about staging: data, info, tests, sanitizer, staging, slicing."""
import json
import os
import shutil

import prepare_data
from measure import attempt, missing
from runner import Failed, NotRun, last_words, run, run_json

GPU_TESTS = "*Cuda*:*CUDA*:*Cudnn*:*Nccl*:*Gpu*"
STAGING_TESTS = ("staging_test", "cuda_device_test")
SANITIZER = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer")


def data(check, timeout):
    """CIFAR-10 in its binary layout and an image folder large enough for the runs."""
    return {"cifar": attempt(make_cifar, check, timeout), "pictures": attempt(make_pictures, check, timeout)}


def make_cifar(check, timeout):
    source = check.options.cifar or bundled(check, "cifar10.tar.xz")
    if source and os.path.isdir(source):
        return {"folder": os.path.abspath(source), "from": source}
    if not source:
        if check.scale["cifar_stand_in"]:  # a rehearsal trains on drawn shapes: the way is the same
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
    return {"folder": out, "from": os.path.basename(origin), "classes": len(os.listdir(out)),
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
        code, output, _ = run(words, timeout, check.log, check.layout.env)
        if code != 0:
            raise Failed(f"stoker make-shapes ended with {code}: {last_words(output)}")
        os.rename(part, out)
    return out


def info(check, timeout):
    """What the program sees of the machine."""
    code, output, _ = run([check.layout.stoker, "info"], timeout, check.log, check.layout.env)
    if code != 0:
        raise Failed(f"stoker info ended with {code}: {last_words(output)}")
    return {"text": output.strip()}


def tests(check, timeout):
    """The tests that need a GPU, one program after the other."""
    return run_tests(check, timeout, check.layout.tests, [], GPU_TESTS if check.on_gpu else check.scale["test_filter"])


def sanitizer(check, timeout):
    """compute-sanitizer around the staging tests that use the GPU."""
    if not check.on_gpu:
        raise NotRun("compute-sanitizer needs a CUDA device")
    tool = next(filter(None, map(shutil.which, SANITIZER)), None)
    if not tool:
        raise NotRun("compute-sanitizer is not installed")
    programs = [t for t in check.layout.tests if os.path.basename(t) in STAGING_TESTS]
    return run_tests(check, timeout, programs, [tool, "--tool", "memcheck", "--error-exitcode", "9"], GPU_TESTS)


def run_tests(check, timeout, programs, before, test_filter):
    """{program: {tests, passed, failed, skipped}} of those programs that have tests of that name."""
    results = {}
    end = check.clock() + timeout
    for program in programs:
        result = attempt(one_program, check, end - check.clock(), program, before, test_filter)
        if result:
            results[os.path.basename(program)] = result
    if not results:
        raise NotRun(f"no test's name matches {test_filter}")
    return results


def one_program(check, timeout, program, before, test_filter):
    report = os.path.join(check.work, "tests.json")
    if os.path.exists(report):
        os.remove(report)
    words = [*before, program, f"--gtest_filter={test_filter}", f"--gtest_output=json:{report}"]
    code, output, seconds = run(words, timeout, check.log, check.layout.env)
    if not os.path.exists(report):
        if "Device not supported" in output:
            raise NotRun("compute-sanitizer does not support this device")
        raise Failed(f"ended with {code}: {last_words(output)}")
    with open(report, encoding="utf-8") as file:
        suites = json.load(file)["testsuites"]
    cases = [case for suite in suites for case in suite["testsuite"] if case["status"] == "RUN"]
    if not cases:
        return None
    failed = [f"{c['classname']}.{c['name']}" for c in cases if c.get("failures")]
    skipped = [f"{c['classname']}.{c['name']}" for c in cases if c.get("result") == "SKIPPED"]
    result = {"tests": len(cases), "passed": len(cases) - len(failed) - len(skipped), "failed_tests": failed,
              "skipped_tests": skipped, "exit_code": code, "seconds": seconds}
    if code != 0 and not failed:
        result["failed"] = f"ended with {code}: {last_words(output)}"
    return result


def engine(check, timeout):
    """The CUDA engine's training step alone, its rows on the device for good: images/s, and where the time goes."""
    if not check.on_gpu:
        raise NotRun("the CUDA engine needs a CUDA device")
    end = check.clock() + timeout
    program = check.layout.bench("cuda_step_bench")
    table = {}
    for case in check.scale["engine"]:
        words = [program, *(str(word) for pair in case.items() for word in (f"--{pair[0]}", pair[1]))]
        table[case["model"]] = attempt(run_json, words, end - check.clock(), check.log, check.layout.env)
    return table


def staging(check, timeout):
    """k = 0 to 3 slots: the idle gap between steps, images/s, and what a batch costs the host."""
    end = check.clock() + timeout
    return {case["name"]: attempt(depth, check, end - check.clock(), case) for case in check.scale["staging"]}


def depth(check, timeout, case):
    """Between steps of the model; where that cannot run, between emulated ones of about its length."""
    end = check.clock() + timeout
    options = {"rows": case["rows"], "size": case["size"], "steps": case["steps"], "repeats": case["repeats"]}
    result = attempt(program_bench, check, timeout, "depth", {**options, "model": case["model"]})
    reason = missing(result)
    if not reason:
        return result
    emulated = program_bench(check, end - check.clock(), "depth", {**options, "step-ms": case["step_ms"]})
    return {**emulated, "instead_of_the_model": reason}


def slicing(check, timeout):
    """A batch for N replicas, sliced on the host or on the device: bytes and milliseconds."""
    return program_bench(check, timeout, "slice", check.scale["slicing"])


def normalise(check, timeout):
    """The kernel that turns bytes into the net's input: milliseconds per batch and GB/s, for each type and layout."""
    return program_bench(check, timeout, "layout", check.scale["normalise"])


def program_bench(check, timeout, name, options):
    """What `stoker bench NAME` concludes on the device."""
    words = [check.layout.stoker, "bench", name, "--device", check.device, "--json"]
    for option, value in options.items():
        words += [f"--{option}", str(value)]
    return run_json(words, timeout, check.log, check.layout.env)["results"]
