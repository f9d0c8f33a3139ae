#!/usr/bin/env python3
"""gpu-check's steps, without a GPU, a build or PyTorch: programs that hang, fail or print nothing,
programs that report that they ran without CUDA graphs, peers that warm up alone, the data that is
made. gpu_calls_test.py tests its calls."""
import argparse
import io
import os
import pathlib
import sys
import tarfile
import threading
import time
import unittest

from gpu_check_support import FAKE_STOKER, InFolder, load_tool, write_program  # isort: skip  (it adds the path of the others)

import machine
import prepare_data
import programs
import progress
import steps_engine
import steps_correct
import steps_train
import torch_resnet
from peers import Peer
from programs import need_graphs
from runner import Conversation, Failed, NotRun, TimedOut, attempt, failures, json_of, run

gpu_check = load_tool("gpu-check")


# Time limits in seconds for a program that hangs: on a busy machine it may be ended before it has
# printed; then it gets more.
LIMITS = (1, 5, 30)


def run_json(words, log):
    return json_of(words[0], *run(words, 60, log)[:2])


def is_alive(process):
    try:
        state = pathlib.Path("/proc", process, "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


class Runner(InFolder):
    def test_a_program_that_hangs_is_killed_with_what_it_started_and_its_output_is_kept(self):
        for limit in LIMITS:
            with self.assertRaisesRegex(TimedOut, f"took longer than {limit} s") as error:
                run(["sh", "-c", "sleep 600 & echo begun $!; wait"], limit, self.log)
            if error.exception.output:
                break
        self.assertRegex(error.exception.output, r"^begun \d+\n$")
        while is_alive(error.exception.output.split()[1]):  # ctest's limit ends this if it never ends
            time.sleep(0.01)
        self.assertIn("begun", self.logged())

    def test_output_is_in_the_log_while_the_program_runs(self):
        gate = self.path("gate")
        os.mkfifo(gate)
        thread = threading.Thread(target=run, args=(["sh", "-c", f"echo early; cat {gate}; echo late"], 30, self.log))
        thread.start()
        self.addCleanup(thread.join)
        while "early\n" not in self.logged():  # ctest's limit ends this if it never comes
            time.sleep(0.01)
        self.assertNotIn("late\n", self.logged())
        pathlib.Path(gate).write_text("", encoding="utf-8")
        thread.join()
        self.assertIn("late\n", self.logged())

    def test_what_a_program_left_running_is_ended_with_it(self):
        code, output, _ = run(["sh", "-c", "sleep 600 & echo $!"], 50, self.log)
        self.assertEqual(code, 0)
        while is_alive(output.strip()):  # ctest's limit ends this if it never ends
            time.sleep(0.01)

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
        self.assertEqual(peer.ask("run 7", 60), {"n": 7})

    def test_a_conversation_that_ends_or_hangs_or_declines(self):
        for script, error, message in (("exit 4", Failed, "ended with 4"), ("sleep 9", Failed, "no answer in 0"),
                                       ("echo '{\"not_run\": \"no GPU\"}'", NotRun, "no GPU")):
            peer = Conversation(["sh", "-c", script], self.log)
            with self.subTest(script), self.assertRaisesRegex(error, message):
                peer.answer(0.4 if "sleep" in script else 60)
            peer.close()


class WithCheck(InFolder):
    """A Check of a host device, or of a GPU that does not exist, with a build folder of the test's
    programs."""

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
    def print_and(self, text, then, limit=60):
        self.program("cuda_engine_test", f"cat <<'END'\n{text}END\n{then}\n")
        return attempt(steps_correct.engine_tests, self.check_of(), limit)

    def test_every_test_of_the_output_counts_once(self):
        found = programs.test_summary(GTEST + GTEST_END)
        self.assertEqual(found, {"tests": 3, "passed": 1, "failed_tests": ["Cuda/B.Fails/0"], "skipped_tests": ["A.Skips"]})
        self.assertIsNone(programs.test_summary("[==========] Running 0 tests from 0 test suites.\n"))

    def test_a_program_that_times_out_keeps_its_results_and_names_the_test_that_ran(self):
        for limit in LIMITS:
            found = self.print_and(GTEST + "[ RUN      ] A.Hangs\n", "sleep 600", limit)
            if "running" in found:
                break
        self.assertEqual((found["passed"], found["failed_tests"], found["running"]), (1, ["Cuda/B.Fails/0"], "A.Hangs"))
        self.assertEqual(found["failed"], f"cuda_engine_test took longer than {limit} s in A.Hangs")

    def test_a_program_that_falls_over_names_the_test_that_ran(self):
        found = self.print_and("[ RUN      ] A.Falls\n", "kill -SEGV $$")
        self.assertEqual(found["failed"], "cuda_engine_test ended with -11 in A.Falls")

    def test_failed_tests_are_failures(self):
        found = self.print_and(GTEST + GTEST_END, "exit 1")
        self.assertEqual(failures(found), ["Cuda/B.Fails/0 failed"])

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
        for module, name in ((steps_engine, "FIRST_STEP_SECONDS"), (programs, "LONGEST_RUN")):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, 5)
        self.program("bench/cuda_step_bench", 'case "$*" in *fp32*) sleep 600 ;; esac\necho \'{"finite": true}\'\n')
        found = steps_engine.first_steps(self.check_of(), 500)
        self.assertEqual([r.get("failed") for r in found.values()], ["cuda_step_bench took longer than 5 s", None, None, None, None])
        fake = FAKE_STOKER.format(python=sys.executable).replace('elif words[0] == "train":', 'elif words[0] == "train":\n    import time; '
                                                                 'time.sleep(600)')
        write_program(self.path("build", "stoker"), fake)
        with self.assertRaisesRegex(Failed, "stoker took longer than 5 s"):
            steps_train.train(self.check_of("cpu:1"), "run", ["--data", "x"], 500)

    def test_a_training_run_without_graphs_is_a_failure(self):
        with self.assertRaisesRegex(Failed, "without CUDA graphs: cudaErrorX"):
            need_graphs("step 3\nwarning: cuda:0: no graphs: cudaErrorX\n")
        # metrics.jsonl has the warning, too, if the screen does not.
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
        for limit in (0.3, *LIMITS):
            peer = Peer(self.check_of("cpu:1"), "torch_resnet.py", [])
            peer.words = ["sh", "-c", f"echo $$ >{self.path('process')}; sleep 600"]
            self.assertIn("no answer", peer.warm_up(limit)["failed"])
            if os.path.exists(self.path("process")):
                break
        with self.assertRaisesRegex(Failed, "no answer"):
            peer.ask("run 1", 5)
        process = pathlib.Path(self.path("process")).read_text(encoding="utf-8").strip()
        while is_alive(process):  # ctest's limit ends this if it never ends
            time.sleep(0.01)


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
