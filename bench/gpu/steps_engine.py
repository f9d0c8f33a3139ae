"""Steps that measure parts of the device's work alone: a training step on a batch that stays there, its kernels, staging slots, slices for
replicas, the kernel that normalises."""
import csv
import os
import re

from programs import as_words, program_bench, run_ours, run_ours_json
from runner import Failed, attempt, last_words
from steps_correct import need_gpu, tool_of_cuda

PLAIN, PLANS_CACHED = "bf16", "bf16, plans cached"
# The simplest step goes first: if it fails, the graphs, the plans and bf16 are not the reason.
FIRST_STEPS = {
    "fp32, batch of 64, no graphs, no autotune": ["--batch", "64", "--fp32", "--no-graphs", "--no-autotune"],
    PLAIN: ["--batch", "256"],
    "bf16, no graphs": ["--batch", "256", "--no-graphs"],
    "bf16, no autotune": ["--batch", "256", "--no-autotune"],
    PLANS_CACHED: ["--batch", "256"],
}
# The limit leaves time for the others if one hangs; the first tuned one compiles and times plans.
FIRST_STEP_SECONDS = 100
KEPT_FIGURES = ("images_per_second", "step_ms", "host_us_per_step", "start_seconds", "finite", "loss", "planned_mib")
# Nsight Compute skips this many launches of a step bench without graphs, because the first steps
# load kernels, and then profiles about two steps.
SKIPPED_LAUNCHES, TIMED_LAUNCHES = 1000, 1000
NORM_KERNELS, CONVOLUTIONS = 4, 5
# The numbers of a kernel's launches that are profiled in detail, so that several layers are among
# them; a kernel of only one layer has few launches.
CLOSER_LAUNCHES = "2|60|75|95"
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "MemoryWorkloadAnalysis", "WarpStateStats")
NAME_LENGTH = 400  # of a kernel in a regular expression; cuDNN's names have thousands of characters


def step_bench(check, timeout, options, words=()):
    """Returns what cuda_step_bench reports of one training step. Raises Failed if the loss is not
    finite."""
    command = [check.layout.bench("cuda_step_bench"), *as_words(options), *words]
    result = run_ours_json(check, command, timeout)
    if not result["finite"]:
        raise Failed("the loss is not finite", {name: result[name] for name in KEPT_FIGURES if name in result})
    return result


def first_steps(check, timeout):
    """The first training steps: without graphs and tuned plans, with both, and from the plans that were kept."""
    need_gpu(check)
    end, table = check.clock() + timeout, {}
    for name, words in FIRST_STEPS.items():
        result = attempt(step_bench, check, min(FIRST_STEP_SECONDS, end - check.clock()), check.scale["first_steps"], words)
        table[name] = {k: result[k] for k in (*KEPT_FIGURES, "failed", "not_run") if k in result}
    return table


def table(check, timeout):
    """The training step alone, operation by operation: images/s, and where the time goes."""
    need_gpu(check)
    end = check.clock() + timeout
    return {case["model"]: attempt(step_bench, check, end - check.clock(), case, ["--table", "60"]) for case in check.scale["table"]}


def fusions(check, timeout):
    """Lists what cuDNN could fuse with the convolutions of the largest outputs: each fused plan beside
    the same work unfused."""
    need_gpu(check)
    command = [check.layout.bench("cuda_step_bench"), *as_words(check.scale["fusions"])]
    rows = run_ours_json(check, command, timeout)["fusions"]
    return {f"{row['fusion']}, {row['input']} -> {row['output']}, kernel {row['kernel']}": fused_or_not(row) for row in rows}


def fused_or_not(row):
    if not row["plan"]:
        return {"not_run": "cuDNN has no such plan, or there was no memory to time it"}
    return {"apart_ms": row["apart_ms"], "fused_ms": row["fused_ms"], "saved": 1 - row["fused_ms"] / row["apart_ms"], "plan": row["plan"]}


def ncu(check, timeout):
    """Nsight Compute: the time of every kernel of two steps, then the four slowest kernels of batch
    norm and the five slowest convolutions in detail. Its text is in ncu.txt."""
    need_gpu(check)
    tool = tool_of_cuda("ncu")
    end = check.clock() + timeout
    bench = [check.layout.bench("cuda_step_bench"), "--model", "resnet50", "--batch", "256", "--no-graphs", "--steps", "3"]
    names = ["--print-kernel-base", "demangled"]
    timed = [tool, *names, "--csv", "--print-units", "base", "--metrics", "gpu__time_duration.sum", "--launch-skip",
             str(SKIPPED_LAUNCHES), "--launch-count", str(TIMED_LAUNCHES), *bench]
    kernels = slowest(profiled(check, timed, (end - check.clock()) / 2))
    found = {"kernels": len(kernels), "batch norm": dict(of_norm(kernels)), "convolutions": dict(of_convolutions(kernels))}
    wanted = [*found["batch norm"], *found["convolutions"]]
    if not wanted:
        raise Failed("ncu saw no kernel of batch norm and no convolution", found)
    pattern = "|".join(re.sub(r"[^A-Za-z0-9_]", ".", name[:NAME_LENGTH]) for name in wanted)
    closer = [tool, *names, "--kernel-name-base", "demangled", "--kernel-id", f"::regex:^({pattern}):{CLOSER_LAUNCHES}",
              *(word for section in SECTIONS for word in ("--section", section)), *bench]
    try:
        text = profiled(check, closer, end - check.clock())
    except Failed as error:
        raise Failed(str(error), found) from None
    with open(os.path.join(check.options.out, "ncu.txt"), "w", encoding="utf-8") as file:
        file.write(text)
    return {**found, "text": f"ncu.txt, {len(text.splitlines())} lines"}


def profiled(check, words, timeout):
    """Runs a program in ncu and returns the output."""
    code, output, _ = run_ours(check, words, timeout)
    if "==ERROR==" in output or code != 0:
        errors = [line for line in output.splitlines() if line.startswith("==ERROR==")]
        raise Failed(f"ncu ended with {code}: {errors[0] if errors else last_words(output)}")
    return output


def slowest(text):
    """Returns [(kernel, milliseconds of all its launches)] of ncu's CSV, the slowest first."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    totals = {}
    for row in csv.DictReader(line for line in lines[start:] if line.startswith('"')):
        totals[row["Kernel Name"]] = totals.get(row["Kernel Name"], 0.0) + float(row["Metric Value"].replace(",", "")) / 1e6
    return sorted(totals.items(), key=lambda kernel: -kernel[1])


def of_norm(kernels):
    """Returns our slowest kernels of batch norm: they have its shape, or what finishes its sums,
    among their arguments."""
    return [k for k in kernels if "stoker::" in k[0] and ("NormShape" in k[0] or "FinishForward" in k[0])][:NORM_KERNELS]


def of_convolutions(kernels):
    """Returns the slowest convolutions. Nearly every kernel that is not ours is one of cuDNN's; the
    one linear layer of ResNet-50 is not among the slowest."""
    return [k for k in kernels if "stoker::" not in k[0]][:CONVOLUTIONS]


def staging(check, timeout):
    """k = 0 to 3 slots: the idle gap between steps, images/s, and what a batch costs the host."""
    end = check.clock() + timeout
    return {name: attempt(program_bench, check, end - check.clock(), "depth", options) for name, options in check.scale["staging"].items()}


def slicing(check, timeout):
    """A batch for N replicas, sliced on the host or on the device: bytes and milliseconds."""
    return program_bench(check, timeout, "slice", check.scale["slicing"])


def normalise(check, timeout):
    """The kernel that turns bytes into the net's input: milliseconds per batch and GB/s, for each type and layout."""
    return program_bench(check, timeout, "layout", check.scale["normalise"])
