#!/usr/bin/env python3
"""gpu-check's calls: steps whose limits fit, calls that continue where an earlier one ended, what
is kept between machines. Without a GPU, a build or PyTorch."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tarfile
import time
import unittest

from gpu_check_support import FAKE_STOKER, InFolder, load_tool, write_program  # isort: skip  (it adds the path of the others)

import aims
import kept
import plan
import progress
import steps_engine
import steps_train
from plan import Step
from runner import NotRun, run

gpu_check = load_tool("gpu-check")


class WholeCall(InFolder):
    def call(self, *words, steps=None, fake=FAKE_STOKER):
        """Runs gpu-check on a build folder with a fake program; returns (exit code, its report,
        what it printed). `steps` replaces the plan by these (name, seconds, function)."""
        write_program(self.path("build", "stoker"), fake.format(python=sys.executable))
        saved, argv = plan.STEPS, sys.argv
        if steps:
            plan.STEPS = {step[0]: Step(*step) for step in steps}
        sys.argv = ["gpu-check", "--build", self.path("build"), "--out", self.path("out"), "--work", self.path("work"), "--device",
                    "cpu:1", "--quick", "--python", self.path("no-python"), *words]
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                code = gpu_check.main()
        finally:
            plan.STEPS, sys.argv = saved, argv
        return code, self.report(), said.getvalue()

    def report(self):
        if not os.path.exists(self.path("out", "gpu-check.json")):
            return None
        with open(self.path("out", "gpu-check.json"), encoding="utf-8") as file:
            return json.load(file)

    def results(self):
        return {name: step["result"] for name, step in self.report()["steps"].items()}

    def test_a_step_that_fails_does_not_end_the_others(self):
        def hangs(check, timeout):
            """Hangs."""
            run(["sleep", "30"], timeout, check.log)

        def breaks(check, timeout):
            """Breaks."""
            raise KeyError("a mistake of ours")

        def works(check, timeout):
            """Works."""
            return {"limit": timeout}

        code, _, _ = self.call("--next", steps=[("hangs", 0.3, hangs), ("breaks", 5, breaks), ("works", 5, works)])
        self.assertEqual(code, 1)
        self.assertIn("longer than", self.results()["hangs"]["failed"])
        self.assertIn("a mistake of ours", self.results()["breaks"]["failed"])
        self.assertEqual(self.results()["works"], {"limit": 5})
        text = pathlib.Path(self.path("out", "gpu-check.md")).read_text(encoding="utf-8")
        self.assertIn("failed: KeyError", text)
        self.assertIn("a rehearsal", text)

    def test_results_are_on_disk_after_every_step(self):
        seen = []

        def first(check, timeout):
            """First."""
            return {"done": True}

        def second(check, timeout):
            """Second."""
            seen.append(self.results())
            return {}

        code, _, _ = self.call("--next", steps=[("first", 5, first), ("second", 5, second)])
        self.assertEqual(code, 0)
        self.assertEqual(seen, [{"first": {"done": True}}])

    def test_a_result_is_on_disk_before_what_is_kept_is_packed(self):
        def one(check, timeout):
            """One."""
            return {"done": True}

        def killed(folder):
            raise KeyboardInterrupt

        saved, kept.Kept.save = kept.Kept.save, killed
        self.addCleanup(setattr, kept.Kept, "save", saved)
        with self.assertRaises(KeyboardInterrupt):
            self.call("--next", steps=[("one", 5, one)])
        self.assertEqual(self.results(), {"one": {"done": True}})

    def test_what_hangs_between_programs_is_ended_too(self):
        class Alarm:  # 5 s of grace are too long for a test
            ITIMER_REAL, SIGALRM = gpu_check.signal.ITIMER_REAL, gpu_check.signal.SIGALRM
            signal = staticmethod(gpu_check.signal.signal)

            @staticmethod
            def setitimer(which, seconds, real=gpu_check.signal.setitimer):
                real(which, max(seconds - 4.8, 0))

        def hangs(check, timeout):
            """Hangs."""
            time.sleep(30)

        saved, gpu_check.signal = gpu_check.signal, Alarm
        self.addCleanup(setattr, gpu_check, "signal", saved)
        self.call("--next", steps=[("hangs", 0.1, hangs)])
        self.assertEqual(self.results()["hangs"], {"failed": "took longer than its limit"})

    def test_a_call_that_was_killed_goes_on_where_it_was(self):
        ran = []

        def first(check, timeout):
            """First."""
            ran.append("first")
            return {}

        def killed(check, timeout):
            """Killed."""
            ran.append("killed")
            raise KeyboardInterrupt

        steps = [("first", 5, first), ("killed", 5, killed), ("last", 5, first)]
        for _ in range(progress.MOST_TRIES):
            with self.assertRaises(KeyboardInterrupt):
                self.call("--next", steps=steps)
        self.assertEqual(ran, ["first", "killed", "killed"])
        code, _, _ = self.call("--next", steps=steps)  # not a third time
        self.assertEqual((code, ran), (1, ["first", "killed", "killed", "first"]))
        self.assertIn("its call ended 2 times while it ran", self.results()["killed"]["failed"])
        code, _, said = self.call("--next", steps=steps)
        self.assertEqual((code, ran[4:]), (gpu_check.ALL_DONE, []))
        self.assertIn("all steps are done", said)

    def test_only_runs_a_step_again_and_its_result_replaces_the_older_one(self):
        values = iter((1, 2))

        def one(check, timeout):
            """One."""
            return {"value": next(values)}

        for words in (["--next"], ["--only", "one"]):
            self.call(*words, steps=[("one", 5, one)])
        self.assertEqual(self.results(), {"one": {"value": 2}})
        self.assertEqual(["--only" in call["command"] for call in self.report()["calls"]], [False, True])
        self.assertEqual(self.report()["steps"]["one"]["call"], 1)
        self.assertIn("commands", self.report()["calls"][1])
        self.assertEqual(self.report()["kept"]["folders"], [])

    def test_a_step_that_no_longer_fits_is_left_for_the_next_call(self):
        def one(check, timeout):
            """One."""
            return {}

        saved, gpu_check.START = gpu_check.START, time.monotonic() - plan.CALL_SECONDS + 20
        self.addCleanup(setattr, gpu_check, "START", saved)
        code, found, said = self.call("--next", steps=[("short", 5, one), ("long", 90, one)])
        self.assertEqual((code, list(found["steps"])), (0, ["short"]))
        self.assertIn("not begun: it takes up to 90 s", said)
        gpu_check.START = time.monotonic()
        self.call("--next", steps=[("short", 5, one), ("long", 90, one)])
        self.assertEqual(list(self.results()), ["short", "long"])

    def test_without_an_option_it_says_the_plan_and_writes_nothing(self):
        code, found, said = self.call()
        self.assertEqual((code, found), (0, None))
        self.assertFalse(os.path.exists(self.path("out")))
        self.assertEqual([line[:16].strip() for line in said.splitlines()], list(plan.STEPS))
        self.assertEqual(said.count("  to do  "), len(plan.STEPS))
        self.call("--only", "slicing")
        self.assertEqual([line[:16].strip() for line in self.call()[2].splitlines() if "  done   " in line], ["slicing"])

    def test_results_of_another_size_or_device_are_refused(self):
        self.call("--only", "slicing")
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
            self.call("--next", "--device", "cuda:0")
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("holds results of --device cpu:1", said.getvalue())

    def test_a_step_that_is_not_there_is_refused(self):
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
            self.call("--only", "nothing")
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("there is no step 'nothing'", said.getvalue())

    def test_a_rehearsal_without_the_peers_python(self):
        code, found, _ = self.call("--only", "jpeg,slots,staging")
        self.assertEqual(code, 1)  # the peers' Python is missing
        self.assertEqual(list(found["steps"]), ["data", "jpeg", "slots", "staging"])
        self.assertIn("cannot be started", self.results()["jpeg"]["PyTorch, DataLoader"]["failed"])
        self.assertEqual(self.results()["jpeg"]["stoker, fed"]["median"], 300)  # of steps 2 to 4: the first does not count
        self.assertEqual(self.results()["staging"]["CIFAR-10"]["step"], "a step")
        self.assertEqual(os.listdir(self.path("work", "runs")), [])
        self.call("--only", "cifar")
        ours = self.results()["cifar"]["stoker"]
        self.assertEqual((ours["seeds"], ours["train_seconds"]["median"], ours["top1_plain"]["median"]), (2, 2.5, 0.4))
        self.assertIn("not given", self.results()["cifar"]["airbench94"]["not_run"])

    def test_airbench_is_run_from_the_folder_that_was_given(self):
        write_program(self.path("clone", "legacy", "airbench94.py"), "")
        _, found, _ = self.call("--only", "cifar", "--airbench", self.path("clone"))
        self.assertIn("no-python cannot be started", self.results()["cifar"]["airbench94"]["failed"])
        self.assertIn(self.path("clone", "legacy", "airbench94.py"), " ".join(found["calls"][0]["commands"]))

    def test_a_folder_without_airbench_is_refused_before_anything_runs(self):
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
            self.call("--next", "--airbench", self.folder)
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("there is no legacy/airbench94.py", said.getvalue())
        self.assertFalse(os.path.exists(self.path("out")))

    def test_costs_are_differences_of_runs_that_ran(self):
        speeds = {"--feed resident": 50, "--feed synthetic": 100, "--bucket-mib 0": 20}  # batch 50: 1000, 500, 2500 ms

        def fake_train(check, name, words, timeout, skip_steps, devices):
            if "all-reduce:host" in words:
                raise NotRun("no host")
            words = " ".join(words)
            return {"images_per_second": next((speed for option, speed in speeds.items() if option in words), 25)}

        saved = steps_train.train
        steps_train.train = fake_train
        self.addCleanup(setattr, steps_train, "train", saved)
        self.call("--only", "feeds")
        result = self.results()["feeds"]
        self.assertEqual(result["real"]["ms_per_step"], 2000)
        self.assertEqual(result["input (real - resident)"], {"ms_per_step": 1000})
        self.assertEqual(result["other samples in every step (resident - synthetic)"], {"ms_per_step": 500})
        self.assertEqual(result["hidden by buckets (at the end - two replicas)"], {"ms_per_step": 500})
        self.assertIn("not_run", result["two replicas, summed on the CPU"])
        self.assertNotIn("hidden by buckets, on the CPU", result)

    def test_without_a_build_nothing_is_begun(self):
        said = io.StringIO()
        sys.argv, saved = ["gpu-check", "--next", "--build", self.path("none"), "--out", self.path("out")], sys.argv
        try:
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
                gpu_check.main()
        finally:
            sys.argv = saved
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("there is no program " + self.path("none", "stoker"), said.getvalue())
        self.assertFalse(os.path.exists(self.path("out")))


class Plan(unittest.TestCase):
    def test_every_step_fits_a_call_after_its_data(self):
        for step in plan.STEPS.values():
            self.assertLessEqual(sum(s.limit for s in plan.with_data([step])), plan.CALL_SECONDS, step.name)
        self.assertLess(plan.CALL_SECONDS, 600)

    def test_correctness_comes_before_speed(self):
        names = list(plan.STEPS)
        self.assertEqual(names[:2], ["machine", "torch"])
        self.assertEqual({*names[2:9]}, {*aims.CORRECTNESS})
        self.assertEqual(list(steps_engine.FIRST_STEPS.values())[0], ["--batch", "64", "--fp32", "--no-graphs", "--no-autotune"])

    def test_data_is_made_before_the_first_step_that_needs_it(self):
        self.assertEqual([s.name for s in plan.with_data([plan.STEPS[n] for n in ("machine", "models", "cifar")])],
                         ["machine", "data", "models", "cifar"])
        self.assertEqual(plan.with_data([plan.STEPS["machine"]]), [plan.STEPS["machine"]])

    def test_every_step_says_what_it_does(self):
        for step in (plan.DATA, *plan.STEPS.values()):
            self.assertTrue(step.what, step.name)


class Kept(InFolder):
    def make(self, where, **files):
        folder = kept.Kept(self.path(where), self.folder)
        for name, size in files.items():
            with open(os.path.join(folder.folder(name), "file"), "wb") as file:
                file.write(os.urandom(size))
        return folder

    def test_what_was_kept_is_there_again_on_a_fresh_machine(self):
        first = self.make("one", stoker=10, inductor=20)
        self.assertEqual(first.save()["left_out"], {})
        second = kept.Kept(self.path("two"), self.folder)
        self.assertIn("inductor", second.restore())
        for name in ("stoker", "inductor"):
            self.assertEqual(pathlib.Path(self.path("one", name, "file")).read_bytes(),
                             pathlib.Path(self.path("two", name, "file")).read_bytes())
        self.assertIn("still here", second.restore())

    def test_what_is_too_large_is_left_out_and_named(self):
        folder = self.make("one", small=1 << 20, large=kept.LIMIT_MIB << 20)
        state = folder.save()
        self.assertEqual((state["folders"], list(state["left_out"])), (["small"], ["large"]))
        self.assertLess(os.path.getsize(self.path(kept.ARCHIVE)), 16 << 20)
        with tarfile.open(self.path(kept.ARCHIVE)) as tar:
            self.assertEqual(tar.getnames(), ["small.tar.gz"])

    def test_what_is_much_too_large_is_not_even_packed(self):
        folder = self.make("one", small=10)
        with open(os.path.join(folder.folder("huge"), "file"), "wb") as file:
            file.truncate(kept.MOST_RAW + 1)  # zeros: they would fit when packed
        self.assertEqual(list(folder.save()["left_out"]), ["huge"])

    def test_what_a_call_did_not_touch_stays_kept(self):
        self.make("one", stoker=10).save()
        second = kept.Kept(self.path("two"), self.folder)
        second.restore()
        with open(os.path.join(second.folder("inductor"), "file"), "wb") as file:
            file.write(b"new")
        self.assertEqual(sorted(second.save()["folders"]), ["inductor", "stoker"])


if __name__ == "__main__":
    unittest.main()
