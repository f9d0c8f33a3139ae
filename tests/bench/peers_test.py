#!/usr/bin/env python3
"""Tests bench/peers/run with what a build and Debian's Pillow provide: peers_test.py STOKER
BUILD_FOLDER."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench" / "peers"), str(ROOT / "bench" / "report")]

import aims  # noqa: E402
import measure  # noqa: E402
import measured_on  # noqa: E402
from participants import Participant  # noqa: E402

STOKER, BUILD = sys.argv[1:3]
OURS = ["stoker-fast", "stoker-row-index", "stoker-index-8", "stoker-exact", "stoker-exact-row-index", "stoker-exact-index-8"]

# A participant whose child process works, not itself.
FAKE = """
import json, subprocess, sys
print(json.dumps({"ready": True, "version": "", "given": "boxes"}), flush=True)
burn = "import time\\nwhile time.process_time() < 0.3: pass\\nprint('burnt', flush=True)\\ninput()"
for line in sys.stdin:
    if line == "quit\\n":
        break
    child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    print("done 7", flush=True)
"""


def python_with_pillow():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import PIL"], capture_output=True).returncode == 0:
            return python
    return None


def run(*arguments, python=sys.executable):
    command = [python, ROOT / "bench" / "peers" / "run", "--build", BUILD, *map(str, arguments)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        for name, size in (("pictures", "300"), ("tiny", "32")):
            subprocess.run([STOKER, "make-shapes", "--out", cls.path / name, "--count", "20", "--test-count", "10", "--size", size],
                           check=True, capture_output=True)
        cls.python = python_with_pillow()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def measured(self, *arguments):
        output = self.path / "out" / "result"
        done = run("--environments", self.path / "none", "--rounds", 2, "--passes", 1, "--output", output, *arguments,
                   python=self.python or sys.executable)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(output.with_suffix(".md").stat().st_size, 200)
        return json.loads(output.with_suffix(".json").read_text()), done.stdout

    def test_everybody_does_the_same_work_and_is_measured(self):
        names = [*OURS, "stock-turbo", "loader-fast", "pillow", "dali"]
        result, text = self.measured("--data", self.path / "pictures", "--cifar", self.path / "tiny", "--images", 8,
                                     "--sections", "train,eval,cifar,cores", "--only", ",".join(names))
        present = set(names) - {"dali"} - (set() if self.python else {"pillow"})
        sections = result["sections"]
        self.assertEqual(set(sections["train"]), present)
        self.assertEqual(set(sections["eval"]), present - {"loader-fast"})
        for section, kept in sections.items():
            for name, participant in kept.items():
                with self.subTest(section=section, name=name):
                    images = 30 if section == "cifar" else 8
                    self.assertEqual([turn[0] for turn in participant["turns"]], [images, images])
                    self.assertTrue(all(cpu > 0 and wall > 0 for _, cpu, wall in participant["turns"]))
        self.assertLessEqual({"stoker-fast, 1 thread", "loader-fast, 1 thread"}, set(sections["cores"]))
        self.assertIn("dali", result["missing"])
        self.assertIn("missing: dali: ", text)
        neighbours = result["machine"]["neighbours"]
        self.assertEqual(neighbours["quiet"], neighbours["share"] <= neighbours["limit"])
        self.assertIn("The machine was quiet" if neighbours["quiet"] else "The machine was not quiet", text)
        if self.python:
            self.check_pixels(sections)

    def check_pixels(self, sections):
        for section in ("train", "eval", "cifar"):
            fast = sections[section]["stoker-fast"]["quality"]
            self.assertLess(fast["mean"], 1)
            exact = sections[section]["stoker-exact"]["quality"]
            # An older Pillow resizes some crops in the other order, and rounds differently between
            # the passes.
            is_todays = int(sections[section]["pillow"]["version"].split()[1].split(".")[0]) >= 13
            self.assertLessEqual(exact["mean"], 0 if is_todays else 0.2)
            for same, quality in (("stoker-row-index", fast), ("stoker-index-8", fast), ("loader-fast", fast),
                                  ("stoker-exact-row-index", exact), ("stoker-exact-index-8", exact)):
                if same in sections[section]:
                    self.assertEqual(sections[section][same]["quality"], quality)

    def test_says_what_it_cannot_use(self):
        done = run("--data", self.path / "pictures", "--only", "stoker-fastest")
        self.assertEqual((done.returncode, "stoker-fastest" in done.stderr), (2, True))
        (self.path / "empty").mkdir()
        done = run("--data", self.path / "empty", "--only", "stoker-fast")
        self.assertEqual((done.returncode, "empty: no JPEGs" in done.stderr), (1, True))

    def test_lists_everybody(self):
        listed = run("--list").stdout.split("\n")
        for name in (*OURS, "stock-turbo", "tf-data", "mlx-data", "ffcv", "spdl", "dali", "opencv", "torchcodec", "kornia-rs"):
            self.assertTrue(any(line.startswith(name + " ") for line in listed), name)


class Measure(unittest.TestCase):
    def start(self, program):
        participant = Participant("fake", "Fake", "", "native")
        return measure.Running(participant, [sys.executable, "-c", program]).await_ready(os.sched_getaffinity(0))

    def test_work_of_child_processes_counts(self):
        running = self.start(FAKE)
        images, cpu, _ = running.measure(0, 1)
        self.assertEqual(images, 7)
        self.assertGreater(cpu, 0.3)
        running.stop()

    def test_a_thread_may_end_while_it_is_looked_at(self):
        for gone in (FileNotFoundError, ProcessLookupError):
            with unittest.mock.patch.object(pathlib.Path, "read_text", side_effect=gone):
                self.assertEqual(list(measure._children(os.getpid())), [])

    def test_a_participant_that_ends_is_missing_with_its_last_words(self):
        with self.assertRaisesRegex(measure.Missing, "no such library"):
            self.start("raise SystemExit('no such library')")

    def test_aims_are_met_or_missed_by_the_paired_ratio(self):
        def kept(seconds):
            return {"title": "x", "turns": [[100, s, s] for s in seconds], "quality": None, "version": "", "given": "boxes"}

        train = {"stoker-fast": kept([1, 2, 3]), "stock-turbo": kept([2.7, 6, 9]), "mlx-data": kept([2, 4, 6])}
        _, rows = aims.table({"sections": {"train": train}, "machine": {"cores": 2}})
        self.assertEqual([row[2:] for row in rows], [[">= 2.8", "2.00", "missed"], [">= 2.7", "3.00", "met"]])
        cores = {"loader-fast": kept([2, 4]), "stoker-fast, 1 thread": kept([3, 6]), "loader-fast, 1 thread": kept([4, 8])}
        _, rows = aims.table({"sections": {"cores": cores}, "machine": {"cores": 2}})
        self.assertEqual([row[1:] for row in rows], [
            ["images/s, of cores x one thread's", ">= 0.97", "0.75", "missed"],
            ["CPU time, of one thread's", "", "0.667", ""],
            ["images/s, of cores x one worker's", "", "1.00", ""],
        ])


BURN = "import time\nwhile time.process_time() < 0.5: pass"


class Neighbours(unittest.TestCase):
    def test_own_time_is_that_of_what_was_started_and_of_nobody_else(self):
        before = measured_on._own_seconds()
        subprocess.run([sys.executable, "-c", BURN], check=True)
        ours = measured_on._own_seconds()
        self.assertGreater(ours - before, 0.4)
        # The shell ends at once, so that what it left behind is no longer our descendant.
        with tempfile.TemporaryDirectory() as folder:
            done = os.path.join(folder, "done")
            os.mkfifo(done)
            subprocess.run(["sh", "-c", '"$0" -c "$1" && echo done >"$2" &', sys.executable, BURN, done], check=True)
            with open(done) as file:
                file.read()
        self.assertLess(measured_on._own_seconds() - ours, 0.4)

    def test_a_machine_is_quiet_while_others_take_little(self):
        for others, quiet in ((0.01, True), (0.019, True), (0.021, False), (0.5, False)):
            clock = {"wall": 0.0, "busy": 0.0, "own": 0.0}
            with unittest.mock.patch.multiple(measured_on, _busy_seconds=lambda _: clock["busy"], _own_seconds=lambda: clock["own"]), \
                    unittest.mock.patch.object(measured_on.time, "monotonic", lambda: clock["wall"]):
                neighbours = measured_on.Neighbours()
                for share in (others, others):
                    with neighbours:
                        clock["wall"] += 10
                        clock["own"] += 7
                        clock["busy"] += 7 + share * 10 * len(os.sched_getaffinity(0))
                    clock["busy"] += 1000  # between two turns: not counted
            summary = neighbours.summary()
            self.assertAlmostEqual(summary["share"], others)
            self.assertEqual(summary["quiet"], quiet)
            self.assertIn("was quiet" if quiet else "was not quiet", measured_on.neighbours_text(summary))
        self.assertFalse(measured_on.Neighbours().summary()["quiet"])  # nothing was measured


class Chart(unittest.TestCase):
    def test_needs_nothing_but_matplotlib(self):
        with tempfile.TemporaryDirectory() as folder:  # it runs in the environment of a peer
            stand_in = pathlib.Path(folder) / "matplotlib"
            stand_in.mkdir()
            (stand_in / "__init__.py").write_text("def use(backend): pass\n")
            (stand_in / "pyplot.py").write_text("")
            result = pathlib.Path(folder) / "result.json"
            result.write_text('{"sections": {}}')
            done = subprocess.run([sys.executable, ROOT / "bench" / "peers" / "chart.py", result, result], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual((done.returncode, done.stderr), (1, "no train section in the result\n"))


class Record(unittest.TestCase):
    def record(self, folder, *commands):
        page = pathlib.Path(folder) / "page.md"
        done = subprocess.run([ROOT / "bench" / "report" / "record", "--out", page, "--title", "What was printed", *commands],
                              capture_output=True, text=True)
        return done.returncode, page

    def test_keeps_what_was_printed_under_a_head(self):
        with tempfile.TemporaryDirectory() as folder:
            code, page = self.record(folder, "--", "echo", "one", "/some/folder", "--", "echo", "two")
            self.assertEqual(code, 0)
            text = page.read_text()
            self.assertIn("`echo one folder`\n\n```\none /some/folder\n```", text)
            self.assertIn("`echo two`", text)
            self.assertRegex(text, r"cores; \d{4}-.* UTC; commit \S+\. The machine was (not )?quiet")

    def test_writes_nothing_of_a_program_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            code, page = self.record(folder, "--", "echo", "one", "--", "sh", "-c", "exit 4")
            self.assertEqual((code, page.exists()), (4, False))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
