"""The step that measures JPEG decoding alone: stoker's CPU feed beside torchvision's decoder on the
GPU, on the same pictures."""
import os

from measure import attempt, missing
from peers import Peer
from runner import Failed
from steps_train import Runs, rates
from stoker_program import run_ours_json

STOKER = "stoker's feed, CPU"
DECODE, RESIZE = "torchvision, nvJPEG, decode", "torchvision, nvJPEG, decode and resize"
WHAT = {
    STOKER: "a random crop decoded at the scale that it needs, resized, flipped, as bytes in host memory; all cores",
    DECODE: "whole pictures to RGB bytes in GPU memory; no crop, no resizing",
    RESIZE: "whole pictures, resized to the same size and stacked, in GPU memory",
}


def decode(check, timeout):
    """Decodes JPEG pictures from memory to pixels, in turn for the same time; what each side does
    is listed beside it."""
    end, case, runs = check.clock() + timeout, check.scale["decode"], Runs()
    pictures = check.results.get("data", {}).get("pictures")
    if missing(pictures):
        raise Failed(f"no pictures: {missing(pictures)}")
    cores = len(os.sched_getaffinity(0))
    seconds = case["cpu_ms"] / 1000 / cores  # what stoker's feed takes for a measurement on all cores
    peer = Peer(check, "torch_decode.py", ["--data", pictures["source"], "--device", "cuda" if check.on_gpu else "cpu", "--batch",
                                           str(case["batch"]), "--size", str(case["size"])])
    try:
        peer.warm_up(end - check.clock())
        for _ in range(case["rounds"]):
            runs.add(STOKER, attempt(feed, check, end - check.clock(), case, pictures["source"], cores))
            for name, word in ((DECODE, "decode"), (RESIZE, "resize")):
                runs.add(name, attempt(peer.ask, f"{word} {seconds}", end - check.clock()))
    finally:
        peer.close()
    return {name: {**result, "does": WHAT[name]} for name, result in runs.table(rates).items()}


def feed(check, timeout, case, folder, cores):
    """Runs `stoker bench feed` on all cores: a Loader whose batches are dropped."""
    words = [check.layout.stoker, "bench", "feed", "--data", folder, "--in-memory", "--size", str(case["size"]), "--workers", str(cores),
             "--batch", str(case["batch"]), "--ring-depth", "4", "--repeats", "1", "--cpu-ms", str(case["cpu_ms"]), "--json"]
    return {"images_per_second": run_ours_json(check, words, timeout)["results"]["images_per_second"]}
