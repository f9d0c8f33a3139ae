"""Describes the machine of a measurement, and whether it was quiet meanwhile. All benches written
in Python use it.

Quiet has one definition here and in C++ (tools/machine/machine.h): while it measured, everything but the bench took at most 2 % of
the time of the cores that the bench may use. "Everything" is other processes, interrupts, and what the hypervisor took for other machines
("steal"). What neighbours do to shared caches and to the memory's bandwidth cannot be seen from here.
"""

import datetime
import json
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

QUIET_SHARE = 0.02
TICKS = os.sysconf("SC_CLK_TCK")


def _cpu():
    flags, name, kind = "", platform.machine(), []
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    name = value.strip()
                if key.strip() in ("cpu family", "model"):  # many kinds of processors have the same name
                    kind.append(f"{key.strip().removeprefix('cpu ')} {value.strip()}")
                if key.strip() in ("flags", "Features"):
                    flags = value
                    break
    except OSError:
        pass
    vectors = [v for v in ("amx_tile", "avx512_bf16", "avx512bw", "avx2", "asimd") if f" {v}" in flags]
    words = [*kind, *vectors]
    return f"{name} ({', '.join(words)})" if words else name


def _commit(folder):
    if not shutil.which("git"):
        return ""

    def git(*words):
        return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True).stdout.strip()

    commit = git("rev-parse", "--short=12", "HEAD")
    return commit + ("+changes" if commit and git("status", "--porcelain", "--untracked-files=no") else "")


def describe(folder):
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(folder),
    }


def public_arguments(arguments):
    """Returns the command line with only the last name of each folder."""
    return [os.path.basename(a.rstrip("/")) if a.startswith("/") else a for a in arguments]


def _busy_seconds(cores):
    """Returns the time that these cores were busy: user, nice, system, irq, softirq, steal."""
    names = {f"cpu{core}" for core in cores}
    with open("/proc/stat") as file:
        lines = [line.split() for line in file if line.startswith("cpu")]
    return sum(int(words[1 + i]) for words in lines if words[0] in names for i in (0, 1, 2, 5, 6, 7)) / TICKS


def _process_times():
    """Returns {pid: (parent, CPU seconds of it and of its children that were waited for)}."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            found[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICKS)
    return found


def _own_seconds():
    """Returns the CPU time of this process and of all its descendants."""
    times = _process_times()
    children = {}
    for pid, (parent, _) in times.items():
        children.setdefault(parent, []).append(pid)
    total, left = 0.0, [os.getpid()]
    while left:
        pid = left.pop()
        total += times[pid][1] if pid in times else 0.0
        left += children.get(pid, [])
    return total


class Neighbours:
    """Measures how much of the cores' time everything but this process and its descendants takes
    while a `with` block runs. Several blocks add up; the time between them does not count."""

    def __init__(self):
        self.cores = os.sched_getaffinity(0)
        self.wall = self.others = 0.0
        self.worst = 0.0  # share of one block of at least a second

    def __enter__(self):
        self._begin = time.monotonic(), _busy_seconds(self.cores), _own_seconds()
        return self

    def __exit__(self, *_):
        wall = time.monotonic() - self._begin[0]
        others = max(0.0, _busy_seconds(self.cores) - self._begin[1] - (_own_seconds() - self._begin[2]))
        self.wall += wall
        self.others += others
        if wall >= 1:
            self.worst = max(self.worst, others / (wall * len(self.cores)))

    def summary(self):
        """Returns {share of the cores' time, worst_share of one block, quiet, limit}."""
        share = self.others / (self.wall * len(self.cores)) if self.wall else 0.0
        return {"share": share, "worst_share": self.worst, "quiet": bool(self.wall) and share <= QUIET_SHARE, "limit": QUIET_SHARE}


def machine_line(machine):
    """Returns a line about a machine that was described, and its neighbours."""
    return (f"{machine['cpu']}, {machine['cores']} cores; {machine['date']}; commit {machine['commit']}. "
            + neighbours_text(machine["neighbours"]))


def write_report(path, report, text):
    """Prints the text; with a path, writes PATH.json and PATH.md, too."""
    print(text)
    if path:
        Path(path).resolve().parent.mkdir(parents=True, exist_ok=True)
        Path(f"{path}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        Path(f"{path}.md").write_text(text, encoding="utf-8")


def neighbours_text(summary):
    """Returns a sentence for a report."""
    took = f"others took {summary['share']:.1%} of the cores' time ({summary['worst_share']:.1%} in the worst turn)"
    return f"The machine was {'quiet' if summary['quiet'] else 'not quiet'}: {took}."
