#!/usr/bin/env python3
"""Draws the live pages of wait/: profiles of feeds in which one thing is wrong. starvation.py --out DIR, or --record PROFILE_SCORE

DIR/profiles.md begins as wait/profiles.md. The build draws tools/profile/profile_page.html from what lies in wait/profiles: real runs, recorded once, because a measurement needs a quiet machine.
--record PROFILE_SCORE (the program build/profile_score) measures them again, in about a minute.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tools/docs/wait/profiles"
PAGE = ROOT / "tools/profile/profile_page.html"


class Kind(NamedTuple):
    name: str  # of the page
    scenario: str | None  # of profile_score; None: a loop in Python, measured by stoker.watch
    limit: str  # the verdict
    title: str
    done: str  # what was done to the feed
    seen: str


KINDS = [
    Kind("fed", "nothing", "device", "A device that is fed",
         "Nothing is wrong: two workers, of which one would be enough.",
         "The verdict names the device itself. The ring is full of ready batches, and the device waits for almost nothing: only a faster device would make it faster."),
    Kind("decoding", "too few workers", "decode", "Decoding limits",
         "One worker decodes for a device that takes 1.5 times what a core can decode.",
         "The worker is busy all the time, no batch is ever ready, and one worker more is predicted to end the waiting. *As it is* and *another number of workers* are both measured."),
    Kind("pixels", "slow augmentation", "pixels", "Pixel work limits",
         "Small pictures with a whole `color_jitter`, on one worker: they are decoded quickly, and the colours take long.",
         "The worker is as busy as above, but the gain *if pixel work were free* is the large one: cheaper stages, or fewer of them, help as a worker does."),
    Kind("storage", "slow storage, a limited rate", "storage", "Storage limits",
         "The files come from a storage that gives 60 % of what the device asks for, no matter how many threads ask.",
         "The workers are idle. The source alone gives no more with twice the threads, so more of them are not recommended."),
    Kind("io_threads", "slow storage, any number may ask", "io_threads", "Too few threads wait for storage",
         "Each read takes long, as from a far server, but any number may be under way. Two I/O threads ask.",
         "Both I/O threads are busy all the time, the workers are idle, and the source alone is faster with twice the threads: more of them are the cure."),
    Kind("store", "a store that tells to slow down", "storage", "A store tells to slow down",
         "The samples are in an object store, which answers one request of four with 503.",
         "The verdict is storage, with the cause: throttled. More requests would make it worse; a local cache or a higher quota helps."),
    Kind("copy", "slow copy", "copy", "The copy to the device limits",
         "A copy to the device takes 1.5 times as long as its step.",
         "Batches are ready in the ring, and the device waits for their copies (purple). Neither workers nor storage would help."),
    Kind("stolen", "four noisy neighbours", "stolen_cpu", "Other processes take the cores",
         "Four processes that compute without end run on the same two cores.",
         "The workers have work and no core: they get a part of the CPU time that they could use. The evidence counts the cores that others used."),
    Kind("ring", "a ring of one batch", "ring_depth", "A short ring",
         "The ring holds one batch only, so that a worker that is faster on average still comes too late for some batches.",
         "The feed alone would be fast enough. A longer ring lets it work ahead, which costs memory and no core."),
    Kind("python", None, "loader", "Python limits",
         "A function for `on_batch=` computes in Python for 15 ms on each batch. The loop is measured by `stoker.watch`, as any loader's.",
         "The step's time is mostly waiting, and the bound says what the loop would reach with batches that are there already."),
]


def rounded(value):
    """Figures with four digits, so that what is committed stays small."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def python_loop():
    """Measures a loop whose on_batch computes."""
    sys.path.insert(0, str(ROOT / "tests/tools/profile/score"))
    import stoker
    from watch_score import BATCH, Pictures, loader_of, slow_batch, take_steps

    loader = loader_of(Pictures(), slow_batch(15e-3, 0))
    watched = stoker.watch(loader, warm_up=10, replay=60, batch_size=BATCH)
    take_steps(watched, 5e-3, 5e-3, 230)
    profile = watched.to_dict()
    loader.close()
    profile["command"] = "a loop in Python whose on_batch computes"
    return profile


def record(profile_score):
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for _ in range(5):
                if kind.scenario is None:
                    profile = python_loop()
                else:
                    subprocess.run([profile_score, "--profiles", folder, "--repeats", "1", "--only", kind.scenario, "--seconds", "4",
                                    "--set", "conditions" if kind.name == "store" else "faults"], stdout=subprocess.DEVNULL)
                    profile = json.loads((pathlib.Path(folder) / f"{kind.scenario}.json").read_text())
                    profile["version"] = re.search(r"stoker VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
                print(f"{kind.name}: {profile['verdict']['headline']}", flush=True)
                if profile["verdict"]["limit"] == kind.limit:
                    break
                time.sleep(1)
            else:
                sys.exit(f"{kind.name}: five runs named another stage; is the machine quiet?")
            (RECORDED / f"{kind.name}.json").write_text(json.dumps(rounded(profile), separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")


def page_of(profile):
    """profile.html, as the program and the package fill it."""
    return PAGE.read_text(encoding="utf-8").replace("__STOKER_PROFILE_JSON__", json.dumps(profile).replace("<", "\\u003c"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--record", metavar="PROFILE_SCORE")
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.record)
    if not arguments.out:
        return
    (arguments.out / "live").mkdir(parents=True, exist_ok=True)
    lines = [(ROOT / "tools/docs/wait/profiles.md").read_text(encoding="utf-8")]
    for kind in KINDS:
        profile = json.loads((RECORDED / f"{kind.name}.json").read_text(encoding="utf-8"))
        (arguments.out / "live" / f"{kind.name}.html").write_text(page_of(profile), encoding="utf-8")
        lines += [f"## {kind.title}", "", kind.done, "", f"> {profile['verdict']['headline']}", "", kind.seen, "",
                  f"[Open the live page: {kind.title.lower()}](live/{kind.name}.html)", ""]
    (arguments.out / "profiles.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
