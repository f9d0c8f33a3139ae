"""Runs participants in turn and measures each from outside: the CPU time of its process with all
threads and child processes, and wall time."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from figures import spread
from measured_on import Neighbours

START_SECONDS = 900  # a busy machine may take minutes to import a framework
RUN_SECONDS = 1800


class Missing(Exception):
    """A participant cannot take part; the message says why."""


def _process_cpu_seconds(pid):
    """Reads the CPU clock of another process, which counts threads that ended too
    (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def _children(pid):
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # this thread has just ended
        for child in children.split():
            yield int(child)
            yield from _children(int(child))


class Running:
    """A participant's process; it takes part once await_ready() has returned."""

    def __init__(self, participant, command):
        self.participant = participant
        self.errors = tempfile.TemporaryFile("w+")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )

    def await_ready(self, cores):
        """Waits for the first answer, then pins all its threads to `cores`; new threads inherit
        that."""
        try:
            self.about = json.loads(self._answer(START_SECONDS))
        except BaseException:
            self._kill()
            raise
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # this thread has just ended
                os.sched_setaffinity(int(task.name), cores)
        return self

    def _answer(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not ready:
            raise Missing(f"no answer within {seconds} s")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise Missing(self._last_error() or f"ended with exit code {self.process.returncode}")
        return line

    def _last_error(self):
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors if line.strip()]
        return lines[-1][:300] if lines else ""

    def _ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # _answer says why
        return int(self._answer(RUN_SECONDS).split()[1])

    def cpu_seconds(self):
        pids = [self.process.pid, *_children(self.process.pid)]
        return sum(_process_cpu_seconds(pid) for pid in pids)

    def measure(self, first_round, rounds):
        """Returns (images, CPU seconds, wall seconds) of some rounds of the plan. A round before
        them does not count: on one virtual machine a process was slower at first after it had
        waited for the others' turns."""
        self._ask(f"run {max(0, first_round - 1)} 1")
        cpu, wall = self.cpu_seconds(), time.perf_counter()
        images = self._ask(f"run {first_round} {rounds}")
        wall = time.perf_counter() - wall
        if images == 0:
            raise Missing("a turn without an image: are there fewer than a batch?")
        return images, self.cpu_seconds() - cpu, wall

    def write_rows(self, path):
        return self._ask(f"rows {path}")

    def stop(self):
        try:
            self.process.communicate("quit\n", timeout=60)
            self.errors.close()
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._kill()

    def _kill(self):
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            file.close()


def start_all(participants, command_of, cores, missing):
    """Starts all participants at once; adds those that fail to `missing`, with the reason."""
    started, running = [], []
    for participant in participants:
        try:
            started.append(Running(participant, command_of(participant)))
        except OSError as error:
            missing[participant.name] = str(error)
    for starting in started:
        try:
            running.append(starting.await_ready(cores))
        except Missing as error:
            missing[starting.participant.name] = str(error)
    return running


def take_turns(running, rounds, passes, missing, say, neighbours):
    """Measures `rounds` turns of each participant, after one for warm-up; a turn does `passes`
    rounds of the plan. All do the same rounds of the plan; the order rotates. `neighbours`
    (bench/report/measured_on.py) measures during every turn that counts. Returns {name: [(images,
    CPU seconds, wall seconds)]}."""
    turns = {r.participant.name: [] for r in running}
    running = list(running)
    for turn in range(rounds + 1):
        shift = turn % max(1, len(running))
        for r in running[shift:] + running[:shift]:
            try:
                with neighbours if turn else contextlib.nullcontext():
                    turns[r.participant.name].append(r.measure(turn * passes, passes))
            except Missing as error:
                missing[r.participant.name] = str(error)
                del turns[r.participant.name]
                running.remove(r)
                print(f"  {r.participant.name} failed: {error}", file=sys.stderr)
        say(f"turn {turn} of {rounds}" if turn else "warmed up")
    return {name: measured[1:] for name, measured in turns.items()}


def in_one_table(titles, command_of, rounds, base):
    """Runs the participants of {name: title} in turn on one core. Returns ([{"name", "title", "us", "ratio" of each turn to that of `base`,
    "wall_images_per_second"}], versions, {missing: why}, Neighbours.summary())."""
    missing, neighbours = {}, Neighbours()
    named = [SimpleNamespace(name=name) for name in titles]
    running = start_all(named, lambda each: command_of(each.name), {min(os.sched_getaffinity(0))}, missing)
    turns = take_turns(running, rounds, 1, missing, print, neighbours)
    versions = sorted({r.about["version"] for r in running if r.about.get("version")})
    for each in running:
        each.stop()
    rows = []
    for name in [name for name in titles if name in turns]:
        seconds = [cpu / images for images, cpu, _ in turns[name]]
        ratios = [each / (cpu / images) for each, (images, cpu, _) in zip(seconds, turns[base])]
        rows.append({"name": name, "title": titles[name], "us": spread([1e6 * each for each in seconds]), "ratio": spread(ratios),
                     "wall_images_per_second": spread([images / wall for images, _, wall in turns[name]])})
    return rows, versions, missing, neighbours.summary()
