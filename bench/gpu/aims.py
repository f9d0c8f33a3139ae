"""Compares the aims for GPUs with what was measured. Each ratio is from one step, so from one
machine and one run."""
import statistics

from runner import failures, missing
from steps_engine import PLAIN, PLANS_CACHED
from steps_train import DECODE, RESIZE, STOKER

MLPERF_V4_PER_H200 = 7952  # images/s, ResNet-50 training, MLPerf Training v4.0, 8 x H200: 63,615 in all
BEST_PUBLISHED_S = 1.99  # seconds to 94 % on CIFAR-10, on an A100
AIM_OVER_COMPILE, AIM_FED, AIM_FEED_WAIT, AIM_START_S, AIM_HOST_US, AIM_SEEDS = 1.2, 0.99, 0.005, 5.0, 20.0, 10
CORRECTNESS = ("device tests", "engine tests", "collective tests", "first steps", "sanitizer", "models", "exchanges")


def part(results, step, name):
    """Returns (figures, None), or (None, why there are none), of one name in one step."""
    whole = results.get(step)
    reason = missing(whole)
    if not reason:
        reason = missing(whole.get(name))
    return (None, reason) if reason else (whole[name], None)


def row(what, aim, measured, met=None):
    return {"what": what, "aim": aim, "measured": measured, "met": met}


def correctness_row(results):
    what, aim = "tests, first training steps, the CPU's losses, sanitizer", "nothing fails"
    bad = [f"{name}: {'; '.join(failures(results[name]))}" for name in CORRECTNESS if failures(results.get(name))]
    absent = [f"{name} {missing(results.get(name))}" for name in CORRECTNESS if missing(results.get(name)) and name not in
              [text.split(":")[0] for text in bad]]
    passed = sum(results[name].get("passed", 0) for name in CORRECTNESS if name in results)
    text = "; ".join([f"{passed} tests passed", *bad, *absent])
    return row(what, aim, text, False if bad else None if absent else True)


def resnet_row(results, step, mode):
    what, aim = f"ResNet-50, 224 px, bf16, synthetic, over torch.compile ({mode})", f">= {AIM_OVER_COMPILE}"
    ours, reason = part(results, step, "stoker")
    if reason:
        return row(what, aim, f"stoker {reason}")
    text = f"{ours['median']:.0f} images/s, {ours['median'] / MLPERF_V4_PER_H200:.0%} of MLPerf v4.0's {MLPERF_V4_PER_H200}"
    theirs, reason = part(results, step, f"PyTorch, compile ({mode})")
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
    beside = f"PyTorch {why}" if why else f"{fed['median'] / peer['median']:.2f} of PyTorch with its DataLoader"
    synthetic, reason = part(results, "jpeg", "stoker, synthetic")
    if reason:
        return row(what, aim, f"{fed['median']:.0f} images/s fed; synthetic {reason}; {beside}")
    ratio = fed["median"] / synthetic["median"]
    return row(what, aim, f"{ratio:.3f} ({fed['median']:.0f} images/s); {beside}", ratio >= AIM_FED)


def accuracy_text(runs):
    """Returns ((mean, its error), text) of the accuracy that the runs evaluate last, or (None,
    text)."""
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
    seconds = ours["train_seconds"]["median"]
    text = f"{seconds:.2f} s, {text}, {ours['seeds']} seeds; {seconds / BEST_PUBLISHED_S:.2f} x the best published {BEST_PUBLISHED_S} s (A100)"
    theirs, reason = part(results, "cifar", "airbench94")
    if reason:
        return row(what, aim, f"{text}; airbench94 {reason}")
    their_accuracy, their_text = accuracy_text(theirs)
    text += f"; airbench94 {theirs['train_seconds']['median']:.2f} s, {their_text}, {theirs['seeds']} seeds"
    if not accuracy or not their_accuracy or min(ours["seeds"], theirs["seeds"]) < 2:
        return row(what, aim, text)
    noise = 2 * (accuracy[1] ** 2 + their_accuracy[1] ** 2) ** 0.5
    same = accuracy[0] >= their_accuracy[0] - noise
    faster = seconds < theirs["train_seconds"]["median"]
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


def start_row(results):
    what, aim = "start to first step, ResNet-50, plans cached", f"< {AIM_START_S:.0f} s"
    cached, reason = part(results, "first steps", PLANS_CACHED)
    if reason:
        return row(what, aim, reason)
    cold, why = part(results, "first steps", PLAIN)
    beside = f"; the first time {why or '%.1f s' % cold['start_seconds']}"
    return row(what, aim, f"{cached['start_seconds']:.1f} s{beside}", cached["start_seconds"] < AIM_START_S)


def decode_row(results):
    what, aim = "JPEG decoding on the CPU over torchvision's nvJPEG, same pictures, files in memory", "a comparison"
    ours, reason = part(results, "decode", STOKER)
    if reason:
        return row(what, aim, f"stoker {reason}")
    texts = []
    for name in (DECODE, RESIZE):
        theirs, reason = part(results, "decode", name)
        texts.append(f"{name}: {reason}" if reason else f"{ours['median'] / theirs['median']:.2f} x {name}")
    return row(what, aim, f"{'; '.join(texts)} (stoker {ours['median']:.0f} images/s, crops and resizes too)")


def aims(results, rehearsal=False):
    """Returns a row per aim. A rehearsal's numbers mean nothing, so they neither meet nor miss an
    aim."""
    rows = [correctness_row(results), resnet_row(results, "resnet50", "default"), resnet_row(results, "autotune", "max-autotune"),
            fed_row(results), cifar_row(results), wait_row(results), start_row(results), staging_row(results), decode_row(results)]
    return [{**r, "met": None} for r in rows] if rehearsal else rows


def aims_table(results, rehearsal=False):
    lines = ["| what | aim | measured | met |", "|---|---|---|---|"]
    word = {True: "yes", False: "no", None: "–"}
    return lines + [f"| {r['what']} | {r['aim']} | {r['measured']} | {word[r['met']]} |" for r in aims(results, rehearsal)]
