#!/usr/bin/env python3
"""Measures how much of a training step is input and how much is communication, by leaving out each.

  bench/research/feed_reduce_table.py --data DIR [--devices cpu:2] [--model airnet-narrow] [--steps 60] [--rounds 3]
                             [--resident-mib N] [--stoker build/stoker] [-- MORE OPTIONS OF stoker train]

Runs `stoker train` with --feed real, resident and synthetic and with --reduce auto and none, in
turn, several rounds; prints milliseconds per step (median over steps, best round) and the
differences, as a table. Replicas on GPUs also run with --bucket-mib 0, which sums all gradients
after the backward pass. If the data set does not fit on the device for --feed resident, give
--resident-mib N.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

EVERYTHING = "everything"
RESIDENT = "samples on the device"
VARIANTS = {
    EVERYTHING: [],
    RESIDENT: ["--feed", "resident"],
    "the same samples again": ["--feed", "synthetic"],
    "without communication": ["--reduce", "none"],
    "without input and communication": ["--feed", "synthetic", "--reduce", "none"],
}
AT_THE_END = "communication after the backward pass"
DIFFERENCES = [  # what, with, without
    ("input (real - resident)", EVERYTHING, RESIDENT),
    ("the rest of the feed (resident - synthetic)", RESIDENT, "the same samples again"),
    ("communication", EVERYTHING, "without communication"),
    ("communication hidden by buckets", AT_THE_END, EVERYTHING),
]


def milliseconds_per_step(arguments, options):
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.stoker, "train", "--data", arguments.data, "--devices", arguments.devices,
                   "--model", arguments.model, "--max-steps", str(arguments.steps), "--epochs", "1000",
                   "--eval-every", "0", "--limit-eval", "1", "--log-interval", "1", "--no-receipt",
                   "--out", folder + "/run", *arguments.more, *options]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{result.stderr}")
        rows = [json.loads(line) for line in pathlib.Path(folder, "run/metrics.jsonl").read_text().splitlines()]
        batch = json.loads(pathlib.Path(folder, "run/config.json").read_text())["recipe"]["batch"]
    # The last row's rate is the median over the steps before it.
    rates = [row["images_per_second"] for row in rows if row["kind"] == "step"]
    return 1e3 * batch / rates[-1], batch


def main():
    own, more = sys.argv[1:], []
    if "--" in own:
        own, more = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--model", default="airnet-narrow")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--resident-mib")
    parser.add_argument("--stoker", default="build/stoker")
    arguments = parser.parse_args(own)
    arguments.more = more

    variants = dict(VARIANTS)
    if arguments.resident_mib:
        variants[RESIDENT] = [*variants[RESIDENT], "--resident-mib", arguments.resident_mib]
    if arguments.devices.startswith("cuda"):
        variants[AT_THE_END] = ["--bucket-mib", "0"]
    best, batch = {}, 0
    for _ in range(arguments.rounds):
        for name, options in variants.items():
            took, batch = milliseconds_per_step(arguments, options)
            best[name] = min(took, best.get(name, took))
    whole = best[EVERYTHING]
    print(f"{arguments.model}, {arguments.devices}, batch {batch}, {arguments.steps} steps, "
          f"best of {arguments.rounds} rounds in turn\n")
    print("| run | ms per step | images/s | less than everything |\n|---|---|---|---|")
    for name, took in best.items():
        print(f"| {name} | {took:.2f} | {1e3 * batch / took:.0f} | {whole - took:+.2f} ms "
              f"({100 * (whole - took) / whole:+.1f}%) |")
    print("\n| what it costs | ms per step | of everything |\n|---|---|---|")
    for what, more, less in DIFFERENCES:
        if more in best:
            cost = best[more] - best[less]
            print(f"| {what} | {cost:+.2f} | {100 * cost / whole:+.1f}% |")


if __name__ == "__main__":
    main()
