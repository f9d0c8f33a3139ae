"""Runs the sections: chooses the images, makes the plans, starts the participants and keeps the
results."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import measure
from measured_on import Neighbours

HERE = Path(__file__).resolve().parent
REFERENCE = "pillow"
RECORD_BYTES = 3073  # of CIFAR's binary files: a label and 3 x 32 x 32
RECORD_FILES, RECORDS_IN_FILE = 5, 10_000
RECORD_EPOCHS = 4  # in a turn
ENDINGS = (".jpg", ".jpeg")


class Unusable(Exception):
    """An input cannot be used; the message says why."""


def python_of(environments, name):
    """Returns the environment's interpreter, or the running one (which may have the package) if
    there is none."""
    python = environments / name / "bin" / "python"
    return str(python) if python.exists() else sys.executable


class Workload:
    def __init__(self, options, folder, participants, result):
        self.options = options
        self.folder = folder
        self.participants = participants
        self.result = result
        self.programs = options.build / "bench" / "peers"
        self.all_cores = os.sched_getaffinity(0)
        self.neighbours = Neighbours()  # active while participants are measured, not while they start
        if not (self.programs / "peers_native").exists():
            raise Unusable(f"{self.programs}: no peers_native there; build it: cmake --build {options.build}")

    def run(self, section):
        if section == "records":
            self._records()
        elif section == "cores":
            if self.options.data:
                self._cores()
        elif self.options.cifar if section == "cifar" else self.options.data:
            self._one_core(section)

    # Each section keeps the turns of every participant as [(images, CPU seconds, wall seconds)].
    def _one_core(self, mode):
        print(f"{mode}, one core", file=sys.stderr)
        images = self._images(mode)
        plan = self._plan(mode, images, self.options.rounds + 1)
        running = self._start(mode, images, plan, 1)
        turns = self._take_turns(running, self.options.rounds, 1)
        quality = self._quality([r for r in running if r.participant.name in turns], plan)
        self._keep(mode, running, turns, quality)

    def _cores(self):
        """Measures wall time on all cores; for the Loader's scaling also the decoder and the Loader
        on one thread."""
        print("train, all cores", file=sys.stderr)
        images = self._images("train")
        plan = self._plan("train", images, (self.options.rounds + 1) * self.options.passes)
        threads = len(self.all_cores)
        running = self._start("train", images, plan, threads)
        singles = [
            replace(p, name=f"{p.name}, 1 thread", title=f"{p.title}, 1 thread")
            for p in self.participants
            if p.name in ("stoker-fast", "stoker-exact", "loader-fast", "loader-exact")
        ]
        running += measure.start_all(
            singles, lambda p: self._command(p, "train", images, plan, 1), self.all_cores, self.result["missing"])
        turns = self._take_turns(running, self.options.rounds, self.options.passes)
        self._keep("cores", running, turns, {})

    def _records(self):
        """Measures samples per second of one core: CIFAR's binary records, with random bytes,
        through the Loader without workers."""
        if not any(p.environment == "loader" for p in self.participants):
            return
        print("records, one core", file=sys.stderr)
        records = self.folder / "records"
        records.mkdir()
        for part in range(RECORD_FILES):
            content = bytearray(os.urandom(RECORD_BYTES * RECORDS_IN_FILE))
            content[::RECORD_BYTES] = bytes(number % 10 for number in range(RECORDS_IN_FILE))
            (records / f"data_batch_{part + 1}.bin").write_bytes(content)
        loader = next(p for p in self.participants if p.environment == "loader")
        command = [str(self.programs / "peers_loader"), str(records), "cifar", "0", "fast"]
        running = measure.start_all([loader], lambda _: command, self._one(), self.result["missing"])
        turns = self._take_turns(running, self.options.rounds, RECORD_EPOCHS)
        self._keep("records", running, turns, {})

    def _take_turns(self, running, rounds, passes):
        return measure.take_turns(running, rounds, passes, self.result["missing"], self._say, self.neighbours)

    def _say(self, text):
        print(f"  {text}", file=sys.stderr, flush=True)

    def _one(self):
        return {max(self.all_cores)}

    def _images(self, mode):
        """Copies some of the pictures, evenly chosen, to DIR/class/file; returns DIR."""
        source = self.options.cifar if mode == "cifar" else self.options.data
        target = self.folder / ("cifar" if mode == "cifar" else "images")
        if target.exists():
            return target
        files = sorted(p for p in source.rglob("*") if p.suffix.lower() in ENDINGS)
        if not files:
            raise Unusable(f"{source}: no JPEGs below it")
        count = self.options.images * (10 if mode == "cifar" else 1)  # the images are small
        for number, path in enumerate(files[:: max(1, len(files) // count)][:count]):
            folder = target / path.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / f"{number:05}-{path.name}")
        return target

    def _plan(self, mode, images, rounds):
        plan = self.folder / f"{mode}-{rounds}.json"
        done = subprocess.run(
            [self.programs / "peers_plan", images, mode, str(rounds), plan], capture_output=True, text=True)
        if done.returncode:
            raise Unusable(done.stderr.strip())
        return plan

    def _command(self, participant, mode, images, plan, threads):
        if participant.environment == "native":
            return [str(self.programs / "peers_native"), participant.program, str(plan), str(threads)]
        if participant.environment == "loader":
            return [str(self.programs / "peers_loader"), str(images), mode, str(threads), participant.program]
        python = python_of(self.options.environments, participant.environment)
        return [python, str(HERE / "peer.py"), participant.program, str(plan), str(threads)]

    def _start(self, mode, images, plan, threads):
        missing = {}
        running = measure.start_all(
            [p for p in self.participants if mode in p.modes],
            lambda p: self._command(p, mode, images, plan, threads),
            self._one() if threads == 1 else self.all_cores,
            missing)
        for name, reason in missing.items():
            self.result["missing"][name] = self._why(name) or reason
            self._say(f"{name} is missing: {self.result['missing'][name]}")
        return running

    def _why(self, name):
        """Returns why setup could not install the participant's environment, or None."""
        environment = next(p.environment for p in self.participants if p.name == name)
        reason = self.options.environments / f"{environment}.reason"
        return reason.read_text().strip() if reason.exists() else None

    def _quality(self, running, plan):
        """Returns the differences from Pillow's samples of the same crops, for participants that
        can write theirs."""
        with open(plan) as file:
            width, height = json.load(file)["output"]
        paths = {}
        for r in running:
            path = self.folder / f"rows-{r.participant.name}"
            if r.write_rows(path):
                paths[r.participant.name] = path
        quality = {}
        for name, path in paths.items():
            if name != REFERENCE and REFERENCE in paths:
                row = str(3 * width * height)
                command = [self.programs / "peers_quality", path, paths[REFERENCE], row]
                quality[name] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for path in paths.values():
            path.unlink()
        return quality

    def _keep(self, section, running, turns, quality):
        kept = {}
        for r in running:
            name = r.participant.name
            if name in turns:
                kept[name] = {"title": r.participant.title, "turns": turns[name], "quality": quality.get(name)}
                kept[name].update({key: r.about[key] for key in ("version", "given")})
            r.stop()
        self.result["sections"][section] = kept
