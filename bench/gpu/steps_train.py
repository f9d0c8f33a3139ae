"""Steps that measure training and decoding: stoker and its peers in turn, on the same machine and files."""
import glob
import os
from contextlib import ExitStack, closing

from peers import HERE, Airbench, Peer, TorchResnet
from programs import run_ours_json, train
from runner import Failed, NotRun, attempt, json_of, last_words, missing, run, summary
from steps_correct import folder_of, need_gpu

WARM_UP_SHARE = 0.75  # the share of the remaining time that each peer gets
# The most seconds of a short run of airnet, so that one that hangs leaves time for the others.
SHORT_RUN = 20
STOKER = "stoker's feed, CPU"
DECODE, RESIZE = "torchvision, nvJPEG, decode", "torchvision, nvJPEG, decode and resize"
WHAT = {
    STOKER: "a random crop decoded at the scale that it needs, resized, flipped, as bytes in host memory; all cores",
    DECODE: "whole pictures to RGB bytes in GPU memory; no crop, no resizing",
    RESIZE: "whole pictures, resized to the same size and stacked, in GPU memory",
}


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


def beside(check, timeout, modes):
    """Warms up a peer for each mode of torch.compile, one after the other, each within its share of the remaining time, and
    measures all in turn."""
    folder_of(check, "pictures")
    case, end = check.scale["resnet50"], check.clock() + timeout
    with ExitStack() as opened:
        peers = {name: opened.enter_context(closing(TorchResnet(check, case, mode))) for name, mode in modes.items()}
        for peer in peers.values():
            peer.warm_up(WARM_UP_SHARE * (end - check.clock()))
        return in_turn(check, case, peers, end)


def resnet50(check, timeout):
    """ResNet-50 on synthetic data: stoker, PyTorch eager and PyTorch compiled, in turn. All peers
    stay in memory and idle."""
    return beside(check, timeout, {"PyTorch, eager": "none", "PyTorch, compile (default)": "default"})


def autotune(check, timeout):
    """ResNet-50 on synthetic data: stoker and PyTorch compiled with max-autotune, in turn."""
    return beside(check, timeout, {"PyTorch, compile (max-autotune)": "max-autotune"})


def jpeg(check, timeout):
    """ResNet-50 fed from JPEG files: stoker with the real feed and with the synthetic one in turn, then PyTorch's loader."""
    case, end, runs = check.scale["jpeg"], check.clock() + timeout, Runs()
    pictures = folder_of(check, "pictures")
    for number in range(case["rounds"]):
        for name, feed in (("synthetic", ["--feed", "synthetic"]), ("fed", [])):
            runs.add(f"stoker, {name}", attempt(stoker_resnet, check, case, end - check.clock(), f"{name}{number}", feed))
    with closing(TorchResnet(check, case, extra=["--data", pictures, "--workers", str(min(16, os.cpu_count()))])) as peer:
        peer.warm_up(end - check.clock())
        for _ in range(case["rounds"]):
            runs.add("PyTorch, DataLoader", attempt(peer.run, end - check.clock()))
    return runs.table(rates)


def cifar(check, timeout):
    """airnet through the real feed and airbench94, seed by seed in turn: seconds and accuracy, of
    as many seeds as there is time for."""
    case, end, runs = check.scale["cifar"], check.clock() + timeout, Runs()
    data = folder_of(check, "cifar")
    with closing(Airbench(check, data)) as peer:
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


def short_run(check, case, timeout, words, devices=None):
    """Trains a few steps on CIFAR-10."""
    base = ["--data", folder_of(check, "cifar"), "--model", case["model"], "--batch", str(case["batch"]), "--max-steps",
            str(case["steps"]), "--log-interval", str(case["log_interval"]), "--limit-eval", str(case["batch"] // 2)]
    return train(check, "short", [*base, *words], min(SHORT_RUN, timeout), case["skip_steps"], devices)


def feeds(check, timeout):
    """The cost of the input and of the reduction: the same training without one of them, or with
    the reduction during the backward pass or after it. Two replicas share one device, which shows
    what their reduction costs, but no speed-up."""
    end, table, case = check.clock() + timeout, {}, check.scale["feeds"]
    two = f"{check.device}*2" if check.on_gpu else "cpu:2"
    for name, (replicas, extra) in FEEDS.items():
        words = ["--micro-batch", str(case["batch"] // replicas), *extra]
        table[name] = attempt(short_run, check, case, end - check.clock(), words, two if replicas == 2 else None)
        if not missing(table[name]):
            table[name]["ms_per_step"] = 1e3 * case["batch"] / table[name]["images_per_second"]
    for what, whole, rest in COSTS:
        if not missing(table[whole]) and not missing(table[rest]):
            table[what] = {"ms_per_step": table[whole]["ms_per_step"] - table[rest]["ms_per_step"]}
    return table


def slots(check, timeout):
    """Training with k = 0 to 3 slots."""
    end, case = check.clock() + timeout, check.scale["feeds"]
    words = ["--micro-batch", str(case["batch"]), "--slots"]
    return {str(count): attempt(short_run, check, case, end - check.clock(), [*words, str(count)]) for count in range(4)}


def decode(check, timeout):
    """Decodes JPEG pictures from memory to pixels, in turn for the same time; what each side does
    is listed beside it."""
    end, case, runs = check.clock() + timeout, check.scale["decode"], Runs()
    pictures = check.results.get("data", {}).get("pictures")
    if missing(pictures):
        raise Failed(f"no pictures: {missing(pictures)}")
    cores = len(os.sched_getaffinity(0))
    seconds = case["cpu_ms"] / 1000 / cores  # what stoker's feed takes for a measurement on all cores
    words = ["--data", pictures["source"], "--device", "cuda" if check.on_gpu else "cpu", "--batch", str(case["batch"]), "--size", str(case["size"])]
    with closing(Peer(check, "torch_decode.py", words)) as peer:
        peer.warm_up(end - check.clock())
        for _ in range(case["rounds"]):
            runs.add(STOKER, attempt(feed, check, end - check.clock(), case, pictures["source"], cores))
            for name, word in ((DECODE, "decode"), (RESIZE, "resize")):
                runs.add(name, attempt(peer.ask, f"{word} {seconds}", end - check.clock()))
    return {name: {**result, "does": WHAT[name]} for name, result in runs.table(rates).items()}


def feed(check, timeout, case, folder, cores):
    """Runs `stoker bench feed` on all cores: a Loader whose batches are dropped."""
    words = [check.layout.stoker, "bench", "feed", "--data", folder, "--in-memory", "--size", str(case["size"]), "--workers", str(cores),
             "--batch", str(case["batch"]), "--ring-depth", "4", "--repeats", "1", "--cpu-ms", str(case["cpu_ms"]), "--json"]
    return {"images_per_second": run_ours_json(check, words, timeout)["results"]["images_per_second"]}


def python(check, timeout):
    """The Python package on the GPU: its tensors are the host's, and images/s of a PyTorch training that it feeds, beside
    torchvision's DataLoader."""
    need_gpu(check)
    end, pictures = check.clock() + timeout, folder_of(check, "pictures")
    environment = {**os.environ, "PYTHONPATH": package_folder(check, timeout / 2), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [check.options.python, os.path.join(HERE, "torch_loader.py"), "--data", pictures]
    code, output, _ = run(words, end - check.clock(), check.log, environment)
    # If a part failed, the program ends with 1 after it has printed all figures, which name the part.
    found = json_of("torch_loader.py", 0 if "\n{" in "\n" + output else code, output)
    if "not_run" in found:
        raise NotRun(found["not_run"])
    return found


def package_folder(check, timeout):
    """Returns the folder to import stoker from: that of wheels, installed, or of a build."""
    wheels = sorted(glob.glob(os.path.join(check.options.wheels or "", "*.whl"))) if check.options.wheels else []
    if not wheels:
        built = os.path.join(check.layout.root, "python")
        if glob.glob(os.path.join(built, "stoker", "_core*")):
            return built
        raise NotRun("no Python package: --wheels DIR takes the wheels that tools/wheel --cuda makes")
    folder = os.path.join(check.work, "site")
    words = [check.options.python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--upgrade", "--target", folder]
    code, output, _ = run([*words, *wheels], timeout, check.log)
    if code != 0:
        raise Failed(f"pip ended with {code}: {last_words(output)}")
    return folder
