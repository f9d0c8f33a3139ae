"""Steps that measure training: stoker and the peers in turn, on the same machine and files."""
import os

from measure import attempt, missing, summary
from peers import Airbench, TorchResnet
from runner import NotRun
from stoker_train import train

WARM_UP_SHARE = 0.75  # the share of the remaining time that each peer gets
# The most seconds of a short run of airnet, so that one that hangs leaves time for the others.
SHORT_RUN = 20


def folder_of(check, kind):
    result = check.results.get("data", {}).get(kind)
    if missing(result):
        raise NotRun(f"no {kind}: {missing(result)}")
    return result["folder"]


class Runs:
    """The results of several rounds by name, and the last reason why a round had none."""

    def __init__(self):
        self.good, self.bad = {}, {}

    def add(self, name, result):
        reason = missing(result)
        if reason:
            self.bad[name] = result
        else:
            self.good.setdefault(name, []).append(result)

    def table(self, of_runs):
        """Returns {name: of_runs(its results)}. A name without results has the reason instead; one
        with some failed rounds has a reason beside its figures."""
        table = {name: of_runs(results) for name, results in self.good.items()}
        for name, reason in self.bad.items():
            if name in table:
                table[name]["a_round"] = reason
            else:
                table[name] = reason
        return table


def rates(results):
    """Summarises images/s over the rounds; for stoker also the share of the step that waited for
    data, in the worst round."""
    table = summary(r["images_per_second"] for r in results)
    if "feed_wait_share" in results[0]:
        table["feed_wait_share"] = max(r["feed_wait_share"] for r in results)
    return {**table, **{key: results[0][key] for key in TorchResnet.SHOWN if key in results[0]}}


def over_seeds(results):
    """Summarises each figure over the seeds; a figure that some runs lack is left out."""
    names = [n for n in results[0] if n != "seed" and all(isinstance(r.get(n), (int, float)) for r in results)]
    return {"seeds": len(results), **{n: summary(r[n] for r in results) for n in names}}


def resnet_words(check, case, extra):
    return ["--data", folder_of(check, "pictures"), "--model", case["model"], "--size", str(case["size"]), "--batch",
            str(case["batch"]), "--micro-batch", str(case["batch"]), "--max-steps", str(case["steps"]), "--log-interval",
            str(case["log_interval"]), *extra]


def stoker_resnet(check, case, timeout, name, extra):
    return train(check, name, resnet_words(check, case, extra), timeout, case["skip_steps"])


def in_turn(check, case, peers, end):
    """Returns {name: images/s over the rounds} of stoker on synthetic data and of warm peers, one
    after the other in every round."""
    runs, round_seconds = Runs(), 0
    for number in range(case["rounds"]):
        start = check.clock()
        if number and end - start < 1.2 * round_seconds:
            break
        runs.add("stoker", attempt(stoker_resnet, check, case, end - check.clock(), f"synthetic{number}", ["--feed", "synthetic"]))
        for name, peer in peers.items():
            runs.add(name, attempt(peer.run, end - check.clock()))
        round_seconds = check.clock() - start
    return runs.table(rates)


def beside(check, timeout, peers):
    """Warms the peers up one after the other, each within its share of the remaining time, and
    measures all in turn."""
    case, end = check.scale["resnet50"], check.clock() + timeout
    try:
        for peer in peers.values():
            peer.warm_up(WARM_UP_SHARE * (end - check.clock()))
        return in_turn(check, case, peers, end)
    finally:
        for peer in peers.values():
            peer.close()


def resnet50(check, timeout):
    """ResNet-50 on synthetic data: stoker, PyTorch eager and PyTorch compiled, in turn. All peers
    stay in memory and idle."""
    folder_of(check, "pictures")
    case = check.scale["resnet50"]
    return beside(check, timeout, {"PyTorch, eager": TorchResnet(check, case),
                                   "PyTorch, compile (default)": TorchResnet(check, case, "default")})


def autotune(check, timeout):
    """ResNet-50 on synthetic data: stoker and PyTorch compiled with max-autotune, in turn."""
    folder_of(check, "pictures")
    return beside(check, timeout, {"PyTorch, compile (max-autotune)": TorchResnet(check, check.scale["resnet50"], "max-autotune")})


def jpeg(check, timeout):
    """ResNet-50 fed from JPEG files: stoker with the real feed and with the synthetic one in turn, then PyTorch's loader."""
    case, end, runs = check.scale["jpeg"], check.clock() + timeout, Runs()
    pictures = folder_of(check, "pictures")
    for number in range(case["rounds"]):
        for name, feed in (("synthetic", ["--feed", "synthetic"]), ("fed", [])):
            runs.add(f"stoker, {name}", attempt(stoker_resnet, check, case, end - check.clock(), f"{name}{number}", feed))
    peer = TorchResnet(check, case, extra=["--data", pictures, "--workers", str(min(16, os.cpu_count()))])
    try:
        peer.warm_up(end - check.clock())
        for _ in range(case["rounds"]):
            runs.add("PyTorch, DataLoader", attempt(peer.run, end - check.clock()))
    finally:
        peer.close()
    return runs.table(rates)


def cifar(check, timeout):
    """airnet through the real feed and airbench94, seed by seed in turn: seconds and accuracy, of
    as many seeds as there is time for."""
    case, end, runs = check.scale["cifar"], check.clock() + timeout, Runs()
    data = folder_of(check, "cifar")
    peer = Airbench(check, data)
    try:
        first = peer.warm_up(timeout / 2)  # its first run is not timed
        seconds = 0
        for seed in range(check.options.seeds or case["seeds"]):
            start = check.clock()
            if seed and end - start < 1.2 * seconds:
                break
            words = ["--data", data, "--model", "airnet", "--epochs", "9.9", "--seed", str(seed), "--eval-every", "0",
                     *case["words"]]  # airbench's epochs: the recipe's own default is longer
            runs.add("stoker", attempt(train, check, f"airnet{seed}", words, end - check.clock(), case["skip_steps"]))
            runs.add("airbench94", attempt(peer.run, seed, end - check.clock()))
            seconds = check.clock() - start
    finally:
        peer.close()
    table = runs.table(over_seeds)
    if not missing(first):
        table["airbench94"]["script_sha256"] = first["script_sha256"]
    return table


FEEDS = {  # replicas, options
    "real": (1, []),
    "resident": (1, ["--feed", "resident"]),
    "synthetic": (1, ["--feed", "synthetic"]),
    "two replicas": (2, []),
    "two replicas, all summed at the end": (2, ["--bucket-mib", "0"]),
    "two replicas, summed on the CPU": (2, ["--reduce", "all-reduce:host"]),
    "two replicas, all summed on the CPU at the end": (2, ["--reduce", "all-reduce:host", "--bucket-mib", "0"]),
    "two replicas, no reduction": (2, ["--reduce", "none"]),
}
COSTS = [  # what, with, without
    ("input (real - resident)", "real", "resident"),
    ("other samples in every step (resident - synthetic)", "resident", "synthetic"),
    ("communication that is left (two replicas - no reduction)", "two replicas", "two replicas, no reduction"),
    ("hidden by buckets (at the end - two replicas)", "two replicas, all summed at the end", "two replicas"),
    ("hidden by buckets, on the CPU", "two replicas, all summed on the CPU at the end", "two replicas, summed on the CPU"),
]


def feeds(check, timeout):
    """The cost of the input and of the reduction: the same training without one of them, or with
    the reduction during the backward pass or after it. Two replicas share one device, which shows
    what their reduction costs, but no speed-up."""
    end, table, case = check.clock() + timeout, {}, check.scale["feeds"]
    two = f"{check.device}*2" if check.on_gpu else "cpu:2"
    base = ["--data", folder_of(check, "cifar"), "--model", case["model"], "--batch", str(case["batch"]), "--max-steps",
            str(case["steps"]), "--log-interval", str(case["log_interval"]), *case["words"]]
    for name, (replicas, extra) in FEEDS.items():
        words = [*base, "--micro-batch", str(case["batch"] // replicas), *extra]
        table[name] = attempt(train, check, "feeds", words, min(SHORT_RUN, end - check.clock()), case["skip_steps"],
                              two if replicas == 2 else None)
        if not missing(table[name]):
            table[name]["ms_per_step"] = 1e3 * case["batch"] / table[name]["images_per_second"]
    for what, whole, rest in COSTS:
        if not missing(table[whole]) and not missing(table[rest]):
            table[what] = {"ms_per_step": table[whole]["ms_per_step"] - table[rest]["ms_per_step"]}
    return table


def slots(check, timeout):
    """Training with k = 0 to 3 slots."""
    end, table = check.clock() + timeout, {}
    case = check.scale["slots"]
    for count in range(4):
        words = ["--data", folder_of(check, "cifar"), "--model", case["model"], "--batch", str(case["batch"]),
                 "--micro-batch", str(case["batch"]), "--max-steps", str(case["steps"]), "--log-interval",
                 str(case["log_interval"]), "--slots", str(count), *case["words"]]
        table[str(count)] = attempt(train, check, "slots", words, min(SHORT_RUN, end - check.clock()), case["skip_steps"])
    return table
