#!/usr/bin/env python3
"""gpu-check's own logic, without a GPU, a build or PyTorch: limits of time, failures that are recorded while the rest runs, the
table of aims, the data it makes, and what a bundle takes along."""
import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench", "gpu"))

import layout  # noqa: E402
import measure  # noqa: E402
import prepare_data  # noqa: E402
import report  # noqa: E402
import steps_train  # noqa: E402
from runner import Conversation, Failed, Log, NotRun, run, run_json  # noqa: E402


def load_tool(name):
    """tools/NAME as a module: it has no .py at its end."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "tools", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


gpu_check = load_tool("gpu-check")
bundle = load_tool("bundle")

# A program that stands for `stoker`: enough of it for gpu-check to talk to.
FAKE_STOKER = """#!{python}
import json, os, sys
words = sys.argv[1:]
if words[0] == "info":
    print("a fake")
elif words[:2] == ["train", "--help"]:
    print("--devices --data --model --out --size --batch --rows-per-shard --max-steps --log-interval --slots --seed "
          "--eval-every --epochs --limit-eval --views")
elif words[0] == "train":
    out = words[words.index("--out") + 1]
    os.makedirs(out)
    rows = [{{"kind": "step", "step": s, "images_per_second": 100.0 * s, "feed_wait_share": 0.01 * s}} for s in range(1, 5)]
    rows.append({{"kind": "epoch", "step": 4, "seconds": 2.5, "eval_top1": 0.5}})
    open(out + "/metrics.jsonl", "w").write("".join(json.dumps(r) + "\\n" for r in rows))
    print("evaluated    top-1 40.00%, 1 view")
elif words[:2] == ["bench", "depth"]:
    if "--model" in words:
        sys.exit("no such model here")
    print(json.dumps({{"bench": "depth", "results": {{"rows": 16, "size": 32, "step": "a sleep", "depths": []}}}}, indent=1))
elif words[0] == "make-shapes":
    out = words[words.index("--out") + 1]
    for split in ("train", "test"):
        os.makedirs(f"{{out}}/{{split}}/ring")
        open(f"{{out}}/{{split}}/ring/0.jpg", "wb").write(b"JPEG")
"""


def write_program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


class InFolder(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.folder = temp.name
        self.log = Log(os.path.join(self.folder, "log"))
        self.addCleanup(self.log.close)

    def path(self, *names):
        return os.path.join(self.folder, *names)


class Runner(InFolder):
    def test_a_program_that_hangs_is_killed_with_what_it_started(self):
        mark = self.path("alive")
        start = time.monotonic()
        with self.assertRaisesRegex(Failed, "took longer than 0 s"):
            run(["sh", "-c", f"(sleep 3; touch {mark}) & echo begun; wait"], 0.4, self.log)
        self.assertLess(time.monotonic() - start, 2.9)
        time.sleep(3)
        self.assertFalse(os.path.exists(mark))
        with open(self.path("log"), encoding="utf-8") as file:
            self.assertIn("begun", file.read())

    def test_failures_say_what_happened(self):
        with self.assertRaisesRegex(Failed, "cannot be started"):
            run([self.path("none")], 1, self.log)
        with self.assertRaisesRegex(Failed, "sh ended with 3: out of luck"):
            run_json(["sh", "-c", "echo out of luck; exit 3"], 5, self.log)
        with self.assertRaisesRegex(Failed, "no JSON"):
            run_json(["echo", "hello"], 5, self.log)
        with self.assertRaisesRegex(NotRun, "out of time"):
            run(["true"], 0, self.log)

    def test_json_at_the_end_of_the_output(self):
        for text in ('note {\n{"a": {"b": 1}}', '{\n "a": {\n  "b": 1\n }\n}\n', '{"old": 1}\n{"a": {"b": 1}}\n'):
            self.assertEqual(run_json(["printf", "%s", text], 5, self.log), {"a": {"b": 1}})

    def test_a_conversation_answers_line_by_line(self):
        peer = Conversation(["sh", "-c", "echo '{\"ready\": true}'; while read a b; do echo noise; echo \"{\\\"n\\\": $b}\"; done"],
                            self.log)
        self.addCleanup(peer.close)
        self.assertEqual(peer.answer(5), {"ready": True})
        self.assertEqual(peer.ask("run 7", 5), {"n": 7})

    def test_a_conversation_that_ends_or_hangs_or_declines(self):
        for script, error, message in (("exit 4", Failed, "ended with 4"), ("sleep 9", Failed, "no answer in 0"),
                                       ("echo '{\"not_run\": \"no GPU\"}'", NotRun, "no GPU")):
            peer = Conversation(["sh", "-c", script], self.log)
            with self.subTest(script), self.assertRaisesRegex(error, message):
                peer.answer(0.4 if "sleep" in script else 5)
            peer.close()


class WholeCall(InFolder):
    def call(self, *words, steps=None):
        """gpu-check on a build folder with a fake program: (exit code, report)."""
        write_program(self.path("build", "stoker"), FAKE_STOKER.format(python=sys.executable))
        saved, argv = gpu_check.STEPS, sys.argv
        gpu_check.STEPS = steps or saved
        sys.argv = ["gpu-check", "--build", self.path("build"), "--out", self.path("out"), "--work", self.path("work"), "--device",
                    "cpu:1", "--quick", "--python", self.path("no-python"), *words]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                code = gpu_check.main()
        finally:
            gpu_check.STEPS, sys.argv = saved, argv
        with open(self.path("out", "gpu-check.json"), encoding="utf-8") as file:
            return code, json.load(file)

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

        code, found = self.call(steps=[("hangs", 0.3, hangs), ("breaks", 5, breaks), ("works", 5, works)])
        self.assertEqual(code, 1)
        results = {name: step["result"] for name, step in found["steps"].items()}
        self.assertIn("longer than", results["hangs"]["failed"])
        self.assertIn("a mistake of ours", results["breaks"]["failed"])
        self.assertEqual(results["works"], {"limit": 5})
        with open(self.path("out", "gpu-check.md"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("failed: KeyError", text)
        self.assertIn("a rehearsal", text)

    def test_results_are_on_disk_after_every_step(self):
        seen = []

        def first(check, timeout):
            """First."""
            return {"done": True}

        def second(check, timeout):
            """Second."""
            with open(self.path("out", "gpu-check.json"), encoding="utf-8") as file:
                seen.append(json.load(file)["steps"])
            return {}

        code, _ = self.call(steps=[("first", 5, first), ("second", 5, second)])
        self.assertEqual(code, 0)
        self.assertEqual(seen[0]["first"]["result"], {"done": True})

    def test_what_hangs_between_programs_is_ended_too(self):
        class Alarm:  # 5 s of grace are long for a test
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
        _, found = self.call(steps=[("hangs", 0.1, hangs)])
        self.assertEqual(found["steps"]["hangs"]["result"], {"failed": "took longer than its limit"})

    def test_reports_of_several_calls_become_one(self):
        def one(check, timeout):
            """One."""
            return {"value": 1}

        reports = []
        for name in ("a", "b"):
            _, found = self.call(steps=[(name, 5, one)])
            reports.append(self.path(name + ".json"))
            with open(reports[-1], "w", encoding="utf-8") as file:
                json.dump(found, file)
        code, merged = self.call("--merge", *reports)
        self.assertEqual((code, list(merged["steps"])), (0, ["a", "b"]))
        with open(reports[0], "w", encoding="utf-8") as file:
            json.dump({**found, "commit": "another"}, file)
        with self.assertRaises(SystemExit):
            self.call("--merge", *reports)

    def test_time_that_is_up_is_said(self):
        saved = gpu_check.ALL_SECONDS
        gpu_check.ALL_SECONDS = -1e9
        self.addCleanup(setattr, gpu_check, "ALL_SECONDS", saved)
        _, found = self.call("--only", "info")
        self.assertEqual(found["steps"]["info"]["result"], {"not_run": "out of time"})

    def test_a_rehearsal_with_a_program_that_lacks_options(self):
        code, found = self.call("--only", "info,jpeg,cifar,slots,staging")
        self.assertEqual(code, 1)  # the Python of the peers is not there
        results = {name: step["result"] for name, step in found["steps"].items()}
        self.assertEqual(results["info"], {"text": "a fake"})
        self.assertIn("--feed", results["jpeg"]["stoker, synthetic"]["not_run"])
        self.assertEqual(results["jpeg"]["stoker, fed"]["median"], 300)  # of steps 2 to 4: the first is left out
        self.assertIn("no such model here", results["staging"]["CIFAR-10"]["instead_of_the_model"])
        self.assertEqual(results["staging"]["CIFAR-10"]["step"], "a sleep")
        self.assertEqual(results["cifar"]["stoker"]["seeds"], 2)
        self.assertEqual(results["cifar"]["stoker"]["train_seconds"]["median"], 2.5)
        self.assertEqual(results["cifar"]["stoker"]["top1_plain"]["median"], 0.4)
        self.assertIn("not given", results["cifar"]["airbench94"]["not_run"])
        self.assertEqual(os.listdir(self.path("work", "runs")), [])

    def test_airbench_is_run_from_the_folder_that_was_given(self):
        write_program(self.path("clone", "legacy", "airbench94.py"), "")
        _, found = self.call("--only", "cifar", "--airbench", self.path("clone"))
        self.assertIn("no-python cannot be started", found["steps"]["cifar"]["result"]["airbench94"]["failed"])
        self.assertIn(self.path("clone", "legacy", "airbench94.py"), " ".join(found["commands"]))

    def test_a_folder_without_airbench_is_refused_before_anything_runs(self):
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
            self.call("--airbench", self.folder)
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("there is no legacy/airbench94.py", said.getvalue())
        self.assertFalse(os.path.exists(self.path("out")))

    def test_costs_are_differences_of_runs_that_ran(self):
        speeds = {"--feed resident": 50, "--feed synthetic": 100, "--bucket-mib 0": 20}  # batch 50: 1000, 500, 2500 ms

        def fake_train(check, name, words, timeout, skip_steps, devices):
            if "host" in words:
                raise NotRun("no host")
            words = " ".join(words)
            return {"images_per_second": next((speed for option, speed in speeds.items() if option in words), 25)}

        saved = steps_train.train
        steps_train.train = fake_train
        self.addCleanup(setattr, steps_train, "train", saved)
        _, found = self.call("--only", "feeds")
        result = found["steps"]["feeds"]["result"]
        self.assertEqual(result["real"]["ms_per_step"], 2000)
        self.assertEqual(result["input (real - resident)"], {"ms_per_step": 1000})
        self.assertEqual(result["other rows in every step (resident - synthetic)"], {"ms_per_step": 500})
        self.assertEqual(result["hidden by buckets (at the end - two replicas)"], {"ms_per_step": 500})
        self.assertIn("not_run", result["two replicas, summed on the CPU"])
        self.assertNotIn("hidden by buckets, on the CPU", result)

    def test_limits_leave_room_under_ten_minutes(self):
        self.assertLessEqual(sum(seconds for _, seconds, _ in gpu_check.STEPS), gpu_check.ALL_SECONDS)
        self.assertLess(gpu_check.ALL_SECONDS + 5, 600)


class Report(unittest.TestCase):
    GOOD = {
        "resnet50": {"stoker": measure.summary([3976, 3980, 3970]), "PyTorch, eager": measure.summary([2500]),
                     "PyTorch, compile (default)": measure.summary([3000])},
        "jpeg": {"stoker, fed": {**measure.summary([3960]), "feed_wait_share": 0.001},
                 "stoker, synthetic": measure.summary([3970]), "PyTorch, DataLoader": measure.summary([1500])},
        "cifar": {"stoker": {"seeds": 10, "feed_wait_share": measure.summary([0.002]), "train_seconds": measure.summary([1.5]),
                             "top1": measure.summary([0.9055, 0.9075] * 5)},
                  "airbench94": {"seeds": 10, "train_seconds": measure.summary([2.0]),
                                 "top1_6_views": measure.summary([0.906, 0.908] * 5)}},
        "staging": {"CIFAR-10": {"depths": [{"slots": 0, "host_us_per_batch": 99.0}, {"slots": 2, "host_us_per_batch": 7.0}]}},
    }

    def verdicts(self, **changes):
        return [row["met"] for row in report.aims({**self.GOOD, **changes})]

    def test_aims_that_are_met(self):
        self.assertEqual(self.verdicts(), [True] * 5)
        self.assertEqual({row["met"] for row in report.aims(self.GOOD, rehearsal=True)}, {None})
        rows = report.aims(self.GOOD)
        self.assertIn("1.33 (3976 images/s, 50% of MLPerf v4.0's 7952)", rows[0]["measured"])
        self.assertIn("0.60 of its eager step", rows[1]["measured"])
        self.assertIn("90.65 ± 0.11 %", rows[2]["measured"])

    def test_aims_that_are_missed(self):
        slow = {**self.GOOD["resnet50"], "stoker": measure.summary([3000])}
        self.assertEqual(self.verdicts(resnet50=slow)[0], False)
        worse = {**self.GOOD["cifar"], "stoker": {**self.GOOD["cifar"]["stoker"], "top1": measure.summary([0.90, 0.902] * 5)}}
        self.assertEqual(self.verdicts(cifar=worse)[2], False)
        few = {**self.GOOD["cifar"], "stoker": {**self.GOOD["cifar"]["stoker"], "seeds": 4}}
        self.assertEqual(self.verdicts(cifar=few)[2], False)
        waits = {**self.GOOD["jpeg"], "stoker, fed": {**measure.summary([3000]), "feed_wait_share": 0.2}}
        self.assertEqual(self.verdicts(jpeg=waits), [True, False, True, False, True])

    def test_what_was_not_run_says_why_and_meets_nothing(self):
        self.assertEqual([row["met"] for row in report.aims({})], [None] * 5)
        no_peer = {**self.GOOD["resnet50"], "PyTorch, compile (default)": {"not_run": "torch 1.13 has no torch.compile"}}
        row = report.aims({**self.GOOD, "resnet50": no_peer})[0]
        self.assertEqual(row["met"], None)
        self.assertIn("3976 images/s", row["measured"])
        self.assertIn("not run: torch 1.13 has no torch.compile", row["measured"])
        self.assertIn("failed: broke", report.aims({"staging": {"failed": "broke"}})[4]["measured"])

    def test_a_bad_round_is_named_beside_the_good_ones(self):
        runs = steps_train.Runs()
        runs.add("a", {"images_per_second": 5.0})
        runs.add("a", {"failed": "broke"})
        runs.add("b", {"not_run": "no GPU"})
        table = runs.table(steps_train.rates)
        self.assertEqual((table["a"]["median"], table["a"]["a_round_was"]), (5.0, "failed: broke"))
        self.assertEqual(table["b"], {"not_run": "no GPU"})


class Data(InFolder):
    def test_pictures_are_repeated_by_links(self):
        os.makedirs(self.path("in", "cat"))
        for i in range(3):
            with open(self.path("in", "cat", f"{i}.JPEG"), "w", encoding="utf-8") as file:
                file.write(str(i))
        out = prepare_data.repeat_pictures(self.path("in"), self.path("out"), 10)
        found = prepare_data.pictures_in(out)
        self.assertEqual(len(found), 12)
        self.assertEqual(len({os.stat(path).st_ino for _, path in found}), 3)
        with self.assertRaisesRegex(ValueError, "holds no CLASS"):
            prepare_data.repeat_pictures(self.path("out", "cat"), self.path("other"), 10)

    def test_cifar_from_a_tar(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("no Pillow")
        with tarfile.open(self.path("c.tar.xz"), "w:xz") as tar:
            for split, name, grey in (("train", "cat", 10), ("train", "truck", 200), ("test", "cat", 90)):
                data = io.BytesIO()
                Image.new("RGB", (32, 32), (grey,) * 3).save(data, "JPEG")
                member = tarfile.TarInfo(f"cifar/{split}/{name}/1.jpg")
                member.size = data.tell()
                tar.addfile(member, io.BytesIO(data.getvalue()))
        out = prepare_data.cifar_from_tar(self.path("c.tar.xz"), self.path("bin"))
        rows = b"".join(pathlib.Path(out, f"data_batch_{i}.bin").read_bytes() for i in range(1, 6))
        self.assertEqual(len(rows), 2 * 3073)
        self.assertEqual({(rows[0], rows[1]), (rows[3073], rows[3074])}, {(3, 10), (9, 200)})


class Bundle(InFolder):
    def test_takes_the_libraries_that_a_bare_machine_lacks(self):
        for name in ("libc.so.6", "libstdc++.so.6", "libcudart.so.13", "libnccl.so.2", "libnvrtc.so.13", "libm.so.6"):
            self.assertTrue(bundle.OF_THE_SYSTEM.match(name), name)
        for name in ("libtbb.so.12", "libdnnl.so.2", "libjpeg.so.62", "libgomp.so.1", "libmpi.so.40", "libz.so.1"):
            self.assertFalse(bundle.OF_THE_SYSTEM.match(name), name)

    def test_takes_airbench_along_where_gpu_check_finds_it(self):
        write_program(self.path("clone", "legacy", "airbench94.py"), "# a clone's\n")
        given = argparse.Namespace(airbench=layout.find_airbench(self.path("clone")), out=self.path("out"))
        bundle.copy_airbench(given)
        found = layout.find_airbench(self.path("out", "airbench"))
        self.assertEqual(pathlib.Path(found).read_text(encoding="utf-8"), "# a clone's\n")

    def test_takes_as_many_pictures_as_there_is_room_for(self):
        for name in ("cat", "dog"):
            os.makedirs(self.path("in", name))
            for i in range(4):
                with open(self.path("in", name, f"{name}{i}.jpg"), "wb") as file:
                    file.write(bytes(100))
        self.assertEqual(bundle.copy_images(self.path("in"), self.path("out"), 550), 5)
        self.assertEqual(bundle.size_of(self.path("out")), 500)


if __name__ == "__main__":
    unittest.main()
