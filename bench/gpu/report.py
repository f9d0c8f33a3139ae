"""gpu-check's two files: everything as JSON, and a table that a person reads, with the aims beside what was measured."""
import json
import os
import statistics

from measure import missing

MLPERF_V4_PER_H200 = 7952  # images/s, ResNet-50 training, MLPerf Training v4.0, 8 x H200: 63,615 in all
AIM_OVER_COMPILE, AIM_FED, AIM_FEED_WAIT, AIM_HOST_US, AIM_SEEDS = 1.2, 0.99, 0.005, 20.0, 10


def compiled_name(results):
    """The name of PyTorch's compiled rows, whatever mode was chosen."""
    return next((name for name in results if name.startswith("PyTorch, compile")), "PyTorch, compile")


def part(results, step, name):
    """(figures, None) or (None, why there are none) of one name in one step."""
    whole = results.get(step)
    reason = missing(whole)
    if not reason:
        reason = missing(whole.get(name))
    return (None, reason) if reason else (whole[name], None)


def row(what, aim, measured, met=None):
    return {"what": what, "aim": aim, "measured": measured, "met": met}


def resnet_row(results):
    what, aim = "ResNet-50, 224 px, bf16, synthetic, over torch.compile", f">= {AIM_OVER_COMPILE}"
    ours, reason = part(results, "resnet50", "stoker")
    if reason:
        return row(what, aim, f"stoker {reason}")
    text = f"{ours['median']:.0f} images/s, {ours['median'] / MLPERF_V4_PER_H200:.0%} of MLPerf v4.0's {MLPERF_V4_PER_H200}"
    theirs, reason = part(results, "resnet50", compiled_name(results["resnet50"]))
    if reason:
        return row(what, aim, f"{text}; torch.compile {reason}")
    ratio = ours["median"] / theirs["median"]
    return row(what, aim, f"{ratio:.2f} ({text})", ratio >= AIM_OVER_COMPILE)


def fed_row(results):
    what, aim = "ResNet-50 fed from JPEGs over synthetic", f">= {AIM_FED}"
    fed, reason = part(results, "jpeg", "stoker, fed")
    if reason:
        return row(what, aim, f"stoker {reason}")
    peer, why = part(results, "jpeg", "PyTorch, DataLoader")
    eager, _ = part(results, "resnet50", "PyTorch, eager")
    beside = f"PyTorch {why}" if why else f"PyTorch's DataLoader {peer['median']:.0f} images/s"
    if peer and eager:
        beside += f", {peer['median'] / eager['median']:.2f} of its eager step"
    synthetic, reason = part(results, "jpeg", "stoker, synthetic")
    if reason:
        return row(what, aim, f"{fed['median']:.0f} images/s fed; synthetic {reason}; {beside}")
    ratio = fed["median"] / synthetic["median"]
    return row(what, aim, f"{ratio:.3f} ({fed['median']:.0f} images/s); {beside}", ratio >= AIM_FED)


def accuracy_text(runs):
    """Mean and deviation of the accuracy, in %, of what the run evaluates last."""
    values = runs.get("top1_6_views", runs.get("top1"))
    if not values:
        return None, "no accuracy"
    mean = statistics.fmean(values["runs"])
    deviation = statistics.stdev(values["runs"]) if len(values["runs"]) > 1 else 0.0
    error = deviation / len(values["runs"]) ** 0.5
    return (mean, error), f"{100 * mean:.2f} ± {100 * deviation:.2f} %"


def cifar_row(results):
    what = "CIFAR-10 airnet through the real feed: seconds of training and accuracy"
    aim = f"faster than airbench94, the same accuracy within noise, {AIM_SEEDS} seeds"
    ours, reason = part(results, "cifar", "stoker")
    if reason:
        return row(what, aim, f"stoker {reason}")
    accuracy, text = accuracy_text(ours)
    text = f"{ours['train_seconds']['median']:.2f} s, {text}, {ours['seeds']} seeds"
    theirs, reason = part(results, "cifar", "airbench94")
    if reason:
        return row(what, aim, f"{text}; airbench94 {reason}")
    their_accuracy, their_text = accuracy_text(theirs)
    text += f"; airbench94 {theirs['train_seconds']['median']:.2f} s, {their_text}, {theirs['seeds']} seeds"
    if not accuracy or not their_accuracy or min(ours["seeds"], theirs["seeds"]) < 2:
        return row(what, aim, text)
    noise = 2 * (accuracy[1] ** 2 + their_accuracy[1] ** 2) ** 0.5
    same = accuracy[0] >= their_accuracy[0] - noise
    faster = ours["train_seconds"]["median"] < theirs["train_seconds"]["median"]
    return row(what, aim, text, faster and same and ours["seeds"] >= AIM_SEEDS)


def wait_row(results):
    what, aim = "feed wait in steady state, of the step", f"< {AIM_FEED_WAIT:.1%}"
    shares, texts = [], []
    for name, step, entry in (("CIFAR-10", "cifar", "stoker"), ("ResNet-50", "jpeg", "stoker, fed")):
        runs, reason = part(results, step, entry)
        if reason:
            texts.append(f"{name}: {reason}")
            continue
        share = runs["feed_wait_share"]
        shares.append(share["median"] if isinstance(share, dict) else share)
        texts.append(f"{name} {shares[-1]:.2%}")
    return row(what, aim, ", ".join(texts), max(shares) < AIM_FEED_WAIT if len(shares) == 2 else None)


def staging_row(results):
    what, aim = "staging, host side, per batch", f"< {AIM_HOST_US:.0f} µs"
    whole = results.get("staging")
    if missing(whole):
        return row(what, aim, missing(whole))
    costs = {(name, d["slots"]): d["host_us_per_batch"] for name, case in whole.items() if not missing(case)
             for d in case["depths"]}
    if not costs:
        return row(what, aim, "; ".join(f"{name} {missing(case)}" for name, case in whole.items()))
    two = {name: cost for (name, slots), cost in costs.items() if slots == 2}
    text = ", ".join(f"{name} {cost:.1f} µs" for name, cost in two.items())
    return row(what, aim, f"{text} (k = 2, CPU time of all threads)", max(two.values()) < AIM_HOST_US)


def aims(results, rehearsal=False):
    """A row per aim. A rehearsal's numbers mean nothing: they meet no aim and miss none."""
    rows = [make(results) for make in (resnet_row, fed_row, cifar_row, wait_row, staging_row)]
    return [{**r, "met": None} for r in rows] if rehearsal else rows


def aims_table(results, rehearsal=False):
    lines = ["| what | aim | measured | met |", "|---|---|---|---|"]
    word = {True: "yes", False: "no", None: "–"}
    return lines + [f"| {r['what']} | {r['aim']} | {r['measured']} | {word[r['met']]} |" for r in aims(results, rehearsal)]


def number(value):
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def cell(value):
    if isinstance(value, dict) and "median" in value:
        return f"{number(value['median'])} ({number(value['min'])}–{number(value['max'])})"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return number(value)


def flat(result):
    """One line of text of a result: its figures, or why there are none."""
    reason = missing(result)
    if reason:
        return reason
    if "median" in result:
        rest = {k: v for k, v in result.items() if k not in ("median", "min", "max", "runs")}
        return "; ".join([cell(result), *(f"{k} {cell(v)}" for k, v in rest.items())])
    parts = {k: v for k, v in result.items() if not isinstance(v, dict) or "median" in v}
    for name, inner in result.items():  # one level deeper: milliseconds by kind, say
        if isinstance(inner, dict) and "median" not in inner:
            parts.update({f"{name} {k}": v for k, v in inner.items() if isinstance(v, (int, float))})
    return "; ".join(f"{k} {cell(v)}" for k, v in parts.items())


def depth_lines(name, case):
    if missing(case):
        return [f"{name}: {missing(case)}", ""]
    why = f" (the model {case['instead_of_the_model']})" if "instead_of_the_model" in case else ""
    lines = [f"{name}: {case['rows']} rows of {case['size']} px; a step is {case['step']}{why}", "",
             "| slots | idle gap per step, ms | longest | step, ms | images/s | host CPU per batch, µs | next() takes, µs |",
             "|---|---|---|---|---|---|---|"]
    lines += [f"| {d['slots']} | {d['gap_ms_median']:.3f} | {d['gap_ms_max']:.3f} | {d['step_ms']:.2f} | {d['images_per_second']:.0f} | "
              f"{d['host_us_per_batch']:.1f} | {d['next_us_median']:.1f} |" for d in case["depths"]]
    return lines + [""]


def step_lines(name, step):
    result = step["result"]
    lines = [f"## {name}", "", f"{step['what']} {step['seconds']:.0f} s.", ""]
    if missing(result):
        return lines + [missing(result), ""]
    if name == "info":
        return lines + ["```", result["text"], "```", ""]
    if name == "staging":
        return lines + [line for key, case in result.items() for line in depth_lines(key, case)]
    if all(isinstance(v, dict) for v in result.values()):
        return lines + ["| | |", "|---|---|"] + [f"| {k} | {flat(v)} |" for k, v in result.items()] + [""]
    return lines + [f"- {k}: {cell(v)}" for k, v in result.items()] + [""]


def markdown(report):
    machine, results = report["machine"], {name: step["result"] for name, step in report["steps"].items()}
    title = "gpu-check, a rehearsal: none of these numbers means anything" if report["rehearsal"] else "gpu-check"
    lines = [f"# {title}", "", f"stoker {report['commit']} on {report['device']}, {machine['date']}; "
             f"{machine['cpu']}, {machine['cores']} cores; {'; '.join(machine['gpus']) or 'no GPU seen'}; {machine['system']}; "
             f"PyTorch {machine['pytorch']}.", "", f"`{report['command']}`", ""]
    lines += aims_table(results, report["rehearsal"])
    lines += ["", "Figures are medians (smallest–largest). Ours and theirs ran in turn in one call.", ""]
    for name, step in report["steps"].items():
        lines += step_lines(name, step)
    return "\n".join(lines)


def write(report, out):
    """Both files, each replaced in one go, so that a run that is killed leaves whole ones."""
    report["aims"] = aims({name: step["result"] for name, step in report["steps"].items()}, report["rehearsal"])
    for name, text in (("gpu-check.json", json.dumps(report, indent=1)), ("gpu-check.md", markdown(report))):
        path = os.path.join(out, name)
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(path + ".part", path)
