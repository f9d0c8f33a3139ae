#!/usr/bin/env python3
"""gpu-check's table of aims and its report: what is met, what is missed, and why a figure is
missing."""
import unittest

from gpu_check_support import InFolder  # isort: skip  (it adds the path of the others)

import aims
import progress
import report
import steps_train
from runner import failures, summary
from steps_train import DECODE, RESIZE, STOKER

TESTED = {"tests": 3, "passed": 3, "failed_tests": [], "skipped_tests": []}
CORRECT, COMPILE, AUTOTUNE, FED, CIFAR, WAIT, START, STAGING, DECODING = range(9)


class Aims(unittest.TestCase):
    GOOD = {
        "device tests": TESTED, "engine tests": TESTED, "collective tests": TESTED, "sanitizer": TESTED,
        "models": {"resnet18": {"largest_difference": 1e-5}}, "exchanges": {"int8": {"largest_difference": 1e-5}},
        "first steps": {"bf16": {"start_seconds": 21.0}, "bf16, plans cached": {"start_seconds": 3.5}},
        "resnet50": {"stoker": summary([3976, 3980, 3970]), "PyTorch, eager": summary([2500]),
                     "PyTorch, compile (default)": summary([3000])},
        "autotune": {"stoker": summary([3900]), "PyTorch, compile (max-autotune)": summary([3100])},
        "jpeg": {"stoker, fed": {**summary([3960]), "feed_wait_share": 0.001},
                 "stoker, synthetic": summary([3970]), "PyTorch, DataLoader": summary([1500])},
        "cifar": {"stoker": {"seeds": 10, "feed_wait_share": summary([0.002]), "train_seconds": summary([1.5]),
                             "top1": summary([0.9055, 0.9075] * 5)},
                  "airbench94": {"seeds": 10, "train_seconds": summary([2.0]),
                                 "top1_6_views": summary([0.906, 0.908] * 5)}},
        "staging": {"CIFAR-10": {"depths": [{"slots": 0, "host_us_per_batch": 99.0}, {"slots": 2, "host_us_per_batch": 7.0}]}},
        "decode": {STOKER: summary([9000]), DECODE: summary([6000]), RESIZE: summary([4500])},
    }

    def verdicts(self, **changes):
        return [row["met"] for row in aims.aims({**self.GOOD, **{name.replace("_", " "): step for name, step in changes.items()}})]

    def test_aims_that_are_met(self):
        self.assertEqual(self.verdicts(), [True] * 8 + [None])
        self.assertEqual({row["met"] for row in aims.aims(self.GOOD, rehearsal=True)}, {None})
        measured = [row["measured"] for row in aims.aims(self.GOOD)]
        self.assertIn("12 tests passed", measured[CORRECT])
        self.assertIn("1.33 (3976 images/s, 50% of MLPerf v4.0's 7952)", measured[COMPILE])
        self.assertIn("1.26", measured[AUTOTUNE])
        self.assertIn("2.64 of PyTorch with its DataLoader", measured[FED])
        self.assertIn("90.65 ± 0.11 %", measured[CIFAR])
        self.assertIn("0.75 x the best published 1.99 s", measured[CIFAR])
        self.assertEqual(measured[START], "3.5 s; the first time 21.0 s")
        self.assertIn(f"1.50 x {DECODE}; 2.00 x {RESIZE} (stoker 9000 images/s", measured[DECODING])

    def test_aims_that_are_missed(self):
        def missed(step, **changes):
            return self.verdicts(**{step: {**self.GOOD[step.replace("_", " ")], **changes}})

        self.assertEqual(missed("resnet50", stoker=summary([3000]))[COMPILE], False)
        self.assertEqual(missed("autotune", stoker=summary([3500]))[AUTOTUNE], False)
        ours = self.GOOD["cifar"]["stoker"]
        self.assertEqual(missed("cifar", stoker={**ours, "top1": summary([0.90, 0.902] * 5)})[CIFAR], False)
        self.assertEqual(missed("cifar", stoker={**ours, "seeds": 4})[CIFAR], False)
        waits = {**summary([3000]), "feed_wait_share": 0.2}
        verdicts = missed("jpeg", **{"stoker, fed": waits})
        self.assertEqual((verdicts[FED], verdicts[WAIT]), (False, False))
        self.assertEqual(missed("first_steps", **{"bf16, plans cached": {"start_seconds": 6.0}})[START], False)

    def test_what_fails_in_the_correctness_steps_stands_in_the_first_row(self):
        bad = {**TESTED, "passed": 2, "failed_tests": ["Cuda.Adds"]}
        row = aims.aims({**self.GOOD, "engine tests": bad})[CORRECT]
        self.assertEqual((row["met"], row["measured"]), (False, "11 tests passed; engine tests: Cuda.Adds failed"))
        eager = {"bf16": {"failed": "the step ran without CUDA graphs: x"}}
        row = aims.aims({**self.GOOD, "first steps": eager})[CORRECT]
        self.assertEqual((row["met"], row["measured"]), (False, "12 tests passed; first steps: the step ran without CUDA graphs: x"))
        row = aims.aims({**self.GOOD, "sanitizer": {"not_run": "compute-sanitizer is not installed"}})[CORRECT]
        self.assertEqual(row["met"], None)
        self.assertIn("sanitizer not run: compute-sanitizer is not installed", row["measured"])

    def test_what_was_not_run_says_why_and_meets_nothing(self):
        self.assertEqual([row["met"] for row in aims.aims({})], [None] * 9)
        no_peer = {**self.GOOD["resnet50"], "PyTorch, compile (default)": {"not_run": "torch 1.13 has no torch.compile"}}
        row = aims.aims({**self.GOOD, "resnet50": no_peer})[COMPILE]
        self.assertEqual(row["met"], None)
        self.assertIn("3976 images/s", row["measured"])
        self.assertIn("not run: torch 1.13 has no torch.compile", row["measured"])
        self.assertIn("failed: broke", aims.aims({"staging": {"failed": "broke"}})[STAGING]["measured"])

    def test_a_bad_round_is_named_beside_the_good_ones(self):
        runs = steps_train.Runs()
        runs.add("a", {"images_per_second": 5.0})
        runs.add("a", {"failed": "broke"})
        runs.add("b", {"not_run": "no GPU"})
        table = runs.table(steps_train.rates)
        self.assertEqual((table["a"]["median"], table["a"]["a_round"]), (5.0, {"failed": "broke"}))
        self.assertEqual(table["b"], {"not_run": "no GPU"})
        self.assertEqual(failures(table), ["broke"])  # the call has failed
        self.assertIn("a_round failed: broke", report.flat(table["a"]))


class Report(InFolder):
    def test_it_names_each_call_and_shows_what_a_failed_step_had_found(self):
        state = progress.Progress(self.folder, "cuda:0", "full")
        for commit, cores in (("abc", 16), ("def", 8)):
            state.add_call(command="gpu-check --next",
                           machine={"commit": commit, "date": "today", "cpu": "a CPU", "cores": cores, "gpus": ["an H100"], "system": "Linux"})
        state.begin("engine tests")
        state.end("engine tests", "Tests.", 90, 90, {**TESTED, "running": "A.Hangs", "failed": "took longer than 90 s in A.Hangs"})
        state.begin("machine")
        state.end("machine", "What it is.", 1, 9, {"nvidia-smi": {"text": "| H100 |"}, "stoker info": {"failed": "broke"}})
        report.write(state, self.folder)
        with open(self.path("gpu-check.md"), encoding="utf-8") as file:
            text = file.read()
        for line in ("1. stoker abc, today; a CPU, 16 cores; an H100; Linux", "2. stoker def", "Tests. 90 s, call 2.",
                     "failed: took longer than 90 s in A.Hangs", "- passed: 3", "- running: A.Hangs", "| H100 |",
                     "- stoker info: failed: broke"):
            self.assertIn(line, text)


if __name__ == "__main__":
    unittest.main()
