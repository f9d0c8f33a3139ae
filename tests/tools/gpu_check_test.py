#!/usr/bin/env python3
"""gpu-check's own logic, without a GPU, a build or PyTorch: limits of time, failures that are recorded while the rest runs, calls that
go on where an earlier one ended, what is kept between machines, programs that say that they ran without CUDA graphs."""
import argparse
import contextlib
import io
import json
import os
import pathlib
import sys
import tarfile
import threading
import time
import unittest

from gpu_check_support import FAKE_STOKER, InFolder, load_tool, write_program  # isort: skip  (it says where the others are)

import gtest_output
import kept
import machine
import measure
import plan
import prepare_data
import progress
import steps_engine
import steps_machine
import steps_train
import stoker_train
import torch_resnet
from peers import Peer
from plan import Call, Step
from runner import Conversation, Failed, NotRun, TimedOut, json_of, run
from stoker_program import need_graphs

gpu_check = load_tool("gpu-check")


def run_json(words, log):
    return json_of(words[0], *run(words, 5, log)[:2])


class Runner(InFolder):
    def test_a_program_that_hangs_is_killed_with_what_it_started_and_its_output_is_kept(self):
        mark = self.path("alive")
        with self.assertRaisesRegex(TimedOut, "took longer than 0 s") as error:
            run(["sh", "-c", f"(sleep 3; touch {mark}) & echo begun; wait"], 0.4, self.log)
        self.assertEqual(error.exception.output, "begun\n")
        time.sleep(3)
        self.assertFalse(os.path.exists(mark))
        self.assertIn("begun", self.logged())

    def test_output_is_in_the_log_while_the_program_runs(self):
        gate = self.path("gate")
        os.mkfifo(gate)
        thread = threading.Thread(target=run, args=(["sh", "-c", f"echo early; cat {gate}; echo late"], 30, self.log))
        thread.start()
        self.addCleanup(thread.join)
        while "early\n" not in self.logged():  # ctest's limit ends this where it never comes
            time.sleep(0.01)
        self.assertNotIn("late\n", self.logged())
        pathlib.Path(gate).write_text("", encoding="utf-8")
        thread.join()
        self.assertIn("late\n", self.logged())

    def test_what_a_program_left_running_is_ended_with_it(self):
        code, output, _ = run(["sh", "-c", "sleep 600 & echo $!"], 50, self.log)
        self.assertEqual(code, 0)
        while self.is_alive(output.strip()):  # ctest's limit ends this where it never ends
            time.sleep(0.01)

    def is_alive(self, process):
        try:
            state = pathlib.Path("/proc", process, "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    def test_failures_say_what_happened(self):
        with self.assertRaisesRegex(Failed, "cannot be started"):
            run([self.path("none")], 1, self.log)
        with self.assertRaisesRegex(Failed, "sh ended with 3: out of luck"):
            run_json(["sh", "-c", "echo out of luck; exit 3"], self.log)
        with self.assertRaisesRegex(Failed, "no JSON"):
            run_json(["echo", "hello"], self.log)
        with self.assertRaisesRegex(NotRun, "out of time"):
            run(["true"], 0, self.log)

    def test_json_at_the_end_of_the_output(self):
        for text in ('note {\n{"a": {"b": 1}}', '{\n "a": {\n  "b": 1\n }\n}\n', '{"old": 1}\n{"a": {"b": 1}}\n'):
            self.assertEqual(run_json(["printf", "%s", text], self.log), {"a": {"b": 1}})

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


class WithCheck(InFolder):
    """A Check of a host device or a GPU that is only said to be one, around a build folder with programs of a test."""

    def check_of(self, device="cuda:0", quick=True):
        options = argparse.Namespace(device=device, quick=quick, bundle=None, build=self.path("build"), out=self.path("out"),
                                     work=self.path("work"), keep=None, python=sys.executable, airbench=None)
        os.makedirs(options.out, exist_ok=True)
        check = gpu_check.Check(options, progress.Progress(options.out, device, "quick" if quick else "full"))
        self.addCleanup(check.log.close)
        return check

    def program(self, name, script):
        write_program(self.path("build", *name.split("/")), "#!/bin/sh\n" + script)


GTEST = """[==========] Running 4 tests from 2 test suites.
[ RUN      ] A.Passes
noise[       OK ] A.Passes (1 ms)
[ RUN      ] Cuda/B.Fails/0
file.cc:3: Failure
[  FAILED  ] Cuda/B.Fails/0, where GetParam() = 4 (3 ms)
[ RUN      ] A.Skips
[  SKIPPED ] A.Skips (0 ms)
"""
GTEST_END = """[==========] 3 tests from 2 test suites ran. (5 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.Skips
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Cuda/B.Fails/0, where GetParam() = 4
"""


class Tests(WithCheck):
    def print_and(self, text, then):
        self.program("cuda_engine_test", f"cat <<'END'\n{text}END\n{then}\n")
        return measure.attempt(steps_machine.engine_tests, self.check_of(), 2)

    def test_every_test_of_the_output_counts_once(self):
        found = gtest_output.summary(GTEST + GTEST_END)
        self.assertEqual(found, {"tests": 3, "passed": 1, "failed_tests": ["Cuda/B.Fails/0"], "skipped_tests": ["A.Skips"]})
        self.assertIsNone(gtest_output.summary("[==========] Running 0 tests from 0 test suites.\n"))

    def test_a_program_that_times_out_keeps_its_results_and_names_the_test_that_ran(self):
        found = self.print_and(GTEST + "[ RUN      ] A.Hangs\n", "sleep 60")
        self.assertEqual((found["passed"], found["failed_tests"], found["running"]), (1, ["Cuda/B.Fails/0"], "A.Hangs"))
        self.assertEqual(found["failed"], "cuda_engine_test took longer than 2 s in A.Hangs")

    def test_a_program_that_falls_over_names_the_test_that_ran(self):
        found = self.print_and("[ RUN      ] A.Falls\n", "kill -SEGV $$")
        self.assertEqual(found["failed"], "cuda_engine_test ended with -11 in A.Falls")

    def test_failed_tests_are_failures(self):
        found = self.print_and(GTEST + GTEST_END, "exit 1")
        self.assertEqual(measure.failures(found), ["Cuda/B.Fails/0 failed"])

    def test_on_a_gpu_a_program_that_skips_most_has_failed(self):
        skipped = "".join(f"[ RUN      ] A.Skips{i}\n[  SKIPPED ] A.Skips{i} (0 ms)\n" for i in range(2))
        passed = "".join(f"[ RUN      ] A.Runs{i}\n[       OK ] A.Runs{i} (0 ms)\n" for i in range(2))
        found = self.print_and(skipped + passed[:len(passed) // 2], "exit 0")
        self.assertIn("2 of 3 tests of cuda_engine_test were skipped", found["failed"])
        self.assertNotIn("failed", self.print_and(skipped + passed, "exit 0"))

    def test_a_program_that_ran_nothing_has_failed(self):
        self.assertIn("ran no test: cannot open libcudnn", self.print_and("cannot open libcudnn\n", "exit 127")["failed"])


class Graphs(WithCheck):
    def bench(self, text, then="exit 0"):
        self.program("bench/cuda_step_bench", f"cat <<'END'\n{text}\nEND\n{then}\n")
        return steps_engine.first_steps(self.check_of(), 20)

    def test_a_step_bench_without_graphs_is_a_failure_that_says_why(self):
        reason = {"failed": "the step ran without CUDA graphs: cudaErrorStreamCaptureUnsupported"}
        ran = '{\n "finite": true,\n "implementations": [\n  "cuda",\n  "no graphs: cudaErrorStreamCaptureUnsupported"\n ]\n}'
        self.assertEqual(self.bench(ran)["bf16"], reason)
        self.assertEqual(self.bench("cuda_step_bench: no graphs: cudaErrorStreamCaptureUnsupported", "exit 1")["bf16"], reason)
        good = '{"finite": true, "start_seconds": 3, "implementations": ["cuda"]}'
        self.assertEqual(self.bench(good)["bf16"], {"finite": True, "start_seconds": 3})

    def test_a_loss_that_is_not_finite_is_a_failure(self):
        self.assertEqual(self.bench('{"finite": false, "loss": null}')["bf16"],
                         {"finite": False, "loss": None, "failed": "the loss is not finite"})

    def test_a_program_that_hangs_leaves_the_others_their_time(self):
        for module, name in ((steps_engine, "FIRST_STEP_SECONDS"), (stoker_train, "LONGEST_RUN")):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, 3)
        self.program("bench/cuda_step_bench", 'case "$*" in *fp32*) sleep 600 ;; esac\necho \'{"finite": true}\'\n')
        found = steps_engine.first_steps(self.check_of(), 500)
        self.assertEqual([r.get("failed") for r in found.values()], ["cuda_step_bench took longer than 3 s", None, None, None, None])
        fake = FAKE_STOKER.format(python=sys.executable).replace('elif words[0] == "train":', 'elif words[0] == "train":\n    import time; '
                                                                 'time.sleep(600)')
        write_program(self.path("build", "stoker"), fake)
        with self.assertRaisesRegex(Failed, "stoker took longer than 3 s"):
            steps_train.train(self.check_of("cpu:1"), "run", ["--data", "x"], 500)

    def test_a_training_run_without_graphs_is_a_failure(self):
        with self.assertRaisesRegex(Failed, "without CUDA graphs: cudaErrorX"):
            need_graphs("step 3\nwarning: cuda:0: no graphs: cudaErrorX\n")
        # metrics.jsonl says it too, where the screen does not.
        fake = FAKE_STOKER.format(python=sys.executable).replace(
            'rows.append(', 'rows.append({"kind": "warning", "step": 2, "warning": "cuda:0: no graphs: cudaErrorY"}); rows.append(')
        write_program(self.path("build", "stoker"), fake)
        with self.assertRaisesRegex(Failed, "without CUDA graphs: cudaErrorY"):
            steps_train.train(self.check_of("cpu:1"), "run", ["--data", "x"], 20)

    def test_the_kernels_of_two_steps_are_sorted_by_time(self):
        norm = "void stoker::cuda::<unnamed>::apply_kernel<float>(stoker::NormShape, stoker::NormForward)"
        rows = [(norm, "1,000,000"), ("sm90_xmma_fprop", "500"), (norm, "2000000"), ("sm90_xmma_wgrad", "9000"),
                ("void stoker::cuda::sgd_kernel(stoker::UpdateShape)", "7")]
        text = "==PROF== Connected\n" + '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n' + "".join(
            f'"{i}","{name}","gpu__time_duration.sum","ns","{value}"\n' for i, (name, value) in enumerate(rows))
        kernels = steps_engine.slowest(text)
        self.assertEqual(kernels[0], (norm, 3.0))
        self.assertEqual([name for name, _ in steps_engine.of_norm(kernels)], [norm])
        sums = ("void stoker::cuda::<unnamed>::sum_kernel<float, 4, stoker::cuda::<unnamed>::FinishForward<float>>(long, int)", 9.0)
        self.assertEqual(steps_engine.of_norm([sums, ("sum_kernel<FinishSums>", 1.0)]), [sums])
        self.assertEqual([name for name, _ in steps_engine.of_convolutions(kernels)], ["sm90_xmma_wgrad", "sm90_xmma_fprop"])
        self.assertEqual(steps_engine.slowest("==ERROR== nothing"), [])

    def test_torch_that_fell_back_to_eager_says_so(self):
        def dynamo(graph_break=None, ok=1, graphs=1, suppress=False):
            counters = {"graph_break": graph_break or {}, "frames": {"total": 1, "ok": ok}, "stats": {"unique_graphs": graphs}}
            return argparse.Namespace(utils=argparse.Namespace(counters=counters), config=argparse.Namespace(suppress_errors=suppress))

        self.assertIsNone(torch_resnet.compile_problem(dynamo()))
        self.assertEqual(torch_resnet.compile_problem(dynamo({"call to print": 2})), "2 graph breaks: call to print")
        self.assertEqual(torch_resnet.compile_problem(dynamo(ok=0)), "0 of 1 frames were compiled, 1 graphs")
        self.assertIn("0 graphs", torch_resnet.compile_problem(dynamo(graphs=0)))
        self.assertIn("suppress_errors", torch_resnet.compile_problem(dynamo(suppress=True)))


class Peers(WithCheck):
    def test_each_is_ready_before_the_next_is_started(self):
        check = self.check_of("cpu:1")
        peers = []
        for name in ("a", "b"):
            peers.append(Peer(check, "torch_resnet.py", []))
            peers[-1].words = ["sh", "-c", f"echo began {name} >>{self.path('order')}; sleep 0.5; echo ready {name} >>{self.path('order')}; "
                               "echo '{\"ready\": true}'; cat"]
            self.addCleanup(peers[-1].close)
        for peer in peers:
            peer.warm_up(20)
        self.assertEqual(pathlib.Path(self.path("order")).read_text(encoding="utf-8").split("\n")[:4],
                         ["began a", "ready a", "began b", "ready b"])

    def test_gpu_memory_is_noted_before_and_after(self):
        check, used = self.check_of("cuda:0"), iter((300, 9000))
        saved, machine.gpu_mib_used = machine.gpu_mib_used, lambda: next(used)
        self.addCleanup(setattr, machine, "gpu_mib_used", saved)
        peer = Peer(check, "torch_resnet.py", [])
        peer.words = ["sh", "-c", "echo '{\"ready\": true}'; cat"]
        self.addCleanup(peer.close)
        ready = peer.warm_up(20)
        self.assertEqual((ready["gpu_mib_before"], ready["gpu_mib_after"]), (300, 9000))

    def test_one_that_is_not_ready_in_time_is_ended_and_says_so(self):
        peer = Peer(self.check_of("cpu:1"), "torch_resnet.py", [])
        peer.words = ["sh", "-c", f"sleep 3; touch {self.path('alive')}"]
        self.assertIn("no answer", peer.warm_up(0.3)["failed"])
        with self.assertRaisesRegex(Failed, "no answer"):
            peer.ask("run 1", 5)
        time.sleep(3)
        self.assertFalse(os.path.exists(self.path("alive")))


class WholeCall(InFolder):
    def call(self, *words, steps=None, fake=FAKE_STOKER):
        """gpu-check on a build folder with a fake program: (exit code, its report, what it printed). `steps` replaces the plan: one
        call of (name, seconds, function)."""
        write_program(self.path("build", "stoker"), fake.format(python=sys.executable))
        saved, argv = (plan.CALLS, plan.STEPS), sys.argv
        if steps:
            plan.CALLS = (Call("one", "of a test", tuple(Step(name, 1, seconds, function) for name, seconds, function in steps)),)
            plan.STEPS = {step.name: step for step in plan.CALLS[0].steps}
        sys.argv = ["gpu-check", "--build", self.path("build"), "--out", self.path("out"), "--work", self.path("work"), "--device",
                    "cpu:1", "--quick", "--python", self.path("no-python"), *words]
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                code = gpu_check.main()
        finally:
            (plan.CALLS, plan.STEPS), sys.argv = saved, argv
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
        self.assertIn("all calls are done", said)

    def test_only_runs_a_step_again_and_its_result_replaces_the_older_one(self):
        values = iter((1, 2))

        def one(check, timeout):
            """One."""
            return {"value": next(values)}

        for words in (["--next"], ["--only", "one"]):
            self.call(*words, steps=[("one", 5, one)])
        self.assertEqual(self.results(), {"one": {"value": 2}})
        self.assertEqual([call["name"] for call in self.report()["calls"]], ["one", "--only"])
        self.assertEqual(self.report()["steps"]["one"]["call"], 1)
        self.assertIn("commands", self.report()["calls"][1])
        self.assertEqual(self.report()["kept"]["folders"], [])

    def test_a_step_that_no_longer_fits_is_left_for_the_next_call(self):
        def one(check, timeout):
            """One."""
            return {}

        saved, gpu_check.START = gpu_check.START, time.monotonic() - plan.CALL_SECONDS
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
        self.assertIn(f"1. {plan.CALLS[0].name}", said)
        self.assertEqual(said.count("to do"), len(plan.CALLS))
        self.call("--only", "slicing")
        self.assertIn("to do: jpeg, staging, slots, feeds, normalise, decode", self.call()[2])

    def test_results_of_another_size_or_device_are_refused(self):
        self.call("--only", "slicing")
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
            self.call("--next", "--device", "cuda:0")
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("holds results of --device cpu:1", said.getvalue())

    def test_steps_that_do_not_fit_one_call_or_are_not_there_are_refused(self):
        for names, message in (("resnet50,autotune", "a call has 560 s"), ("nothing", "there is no step 'nothing'")):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
                self.call("--only", names)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(message, said.getvalue())

    def test_a_rehearsal_with_a_program_that_lacks_options(self):
        code, found, _ = self.call("--only", "jpeg,slots,staging")
        self.assertEqual(code, 1)  # the Python of the peers is not there
        self.assertEqual(list(found["steps"]), ["data", "jpeg", "slots", "staging"])
        self.assertIn("--feed", self.results()["jpeg"]["stoker, synthetic"]["not_run"])
        self.assertEqual(self.results()["jpeg"]["stoker, fed"]["median"], 300)  # of steps 2 to 4: the first is left out
        self.assertIn("no such model here", self.results()["staging"]["CIFAR-10"]["instead_of_the_model"])
        self.assertEqual(self.results()["staging"]["CIFAR-10"]["step"], "a sleep")
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
            if "host" in words:
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
        self.assertEqual(result["other rows in every step (resident - synthetic)"], {"ms_per_step": 500})
        self.assertEqual(result["hidden by buckets (at the end - two replicas)"], {"ms_per_step": 500})
        self.assertIn("not_run", result["two replicas, summed on the CPU"])
        self.assertNotIn("hidden by buckets, on the CPU", result)


class Plan(unittest.TestCase):
    def test_the_limits_of_every_call_leave_room_under_ten_minutes(self):
        for call in plan.CALLS:
            self.assertLessEqual(plan.limit_of(call.steps), plan.CALL_SECONDS, call.name)
        self.assertLess(plan.CALL_SECONDS + plan.SPARE_SECONDS, 600)

    def test_all_calls_are_expected_to_fit_the_hour_with_the_starts_of_their_machines(self):
        expected = sum(plan.expected_of(call.steps) for call in plan.CALLS)
        self.assertLessEqual(expected, plan.HOUR - len(plan.CALLS) * plan.MACHINE_START)
        for step in (plan.DATA, *plan.STEPS.values()):
            self.assertLess(step.expected, step.limit, step.name)

    def test_it_is_the_first_hour_in_its_order(self):
        self.assertEqual([[step.name for step in call.steps] for call in plan.CALLS], [
            ["machine", "torch", "device tests", "engine tests", "collective tests", "first steps", "sanitizer"],
            ["table", "fusions", "ncu"], ["resnet50"], ["jpeg", "staging", "slots", "feeds", "slicing", "normalise", "decode"], ["cifar"],
            ["autotune"]])
        self.assertEqual({step.name for step in plan.STEPS.values() if step.data},
                         {"resnet50", "jpeg", "slots", "feeds", "decode", "cifar", "autotune"})
        self.assertEqual(list(steps_engine.FIRST_STEPS.values())[0], ["--rows", "64", "--fp32", "--no-graphs", "--no-autotune"])
        self.assertEqual(len(plan.STEPS), sum(len(call.steps) for call in plan.CALLS))  # no name stands twice

    def test_every_step_says_what_it_does(self):
        for step in (plan.DATA, *plan.STEPS.values()):
            self.assertTrue(step.run.__doc__, step.name)

    def test_the_readme_has_every_step_with_its_seconds(self):
        with open(os.path.join(os.path.dirname(plan.__file__), "README.md"), encoding="utf-8") as file:
            text = file.read()
        for step in (plan.DATA, *plan.STEPS.values()):
            self.assertIn(f"| `{step.name}` | {step.expected} | {step.limit} |", text)


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
            file.truncate(kept.MOST_RAW + 1)  # zeros: packed it would fit
        self.assertEqual(list(folder.save()["left_out"]), ["huge"])

    def test_what_a_call_did_not_touch_stays_kept(self):
        self.make("one", stoker=10).save()
        second = kept.Kept(self.path("two"), self.folder)
        second.restore()
        with open(os.path.join(second.folder("inductor"), "file"), "wb") as file:
            file.write(b"new")
        self.assertEqual(sorted(second.save()["folders"]), ["inductor", "stoker"])


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


if __name__ == "__main__":
    unittest.main()
