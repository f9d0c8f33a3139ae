#!/usr/bin/env python3
"""Measures what passes through the fault proxy, beside the same requests without it: nginx on
loopback, 32 requests under way, ranges of three lengths.

  tests/store/proxy_limit.py [ROUNDS]    (default: 3; the machine must have nothing else to do)
"""
import contextlib
import os
import statistics
import sys

from fault_proxy import FaultProxy
from probe import Probe
from servers import Nginx

RANGES = [(16 << 10, 4000), (1 << 20, 600), (8 << 20, 100)]
SIZE = 64 << 20


def measure(endpoint, length, count):
    """Returns ranges a second and MB a second."""
    with Probe(endpoint + "/", requests=32) as probe:
        entry = probe.stat("/data/file")
        answer = probe.ask(do="read", objects=[entry], length=length, count=count)
    return count / answer["seconds"], answer["bytes"] / answer["seconds"] / 1e6


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print("range bytes  through       ranges/s  MB/s   (medians of", rounds, "rounds)")
    with Nginx() as server:
        server.make_bucket("data")
        server.put("data", "file", os.urandom(SIZE))
        for length, count in RANGES:
            found = {"nothing": [], "the proxy": []}
            for _ in range(rounds):
                for name, rates in found.items():
                    with contextlib.ExitStack() as stack:
                        endpoint = server.plain_endpoint
                        if name == "the proxy":
                            endpoint = stack.enter_context(FaultProxy(endpoint)).endpoint
                        rates.append(measure(endpoint, length, count))
            for name, rates in found.items():
                per_second, megabytes = (statistics.median(column) for column in zip(*rates))
                print(f"{length:11} {name:>10} {per_second:13.0f} {megabytes:9.0f}")


if __name__ == "__main__":
    main()
