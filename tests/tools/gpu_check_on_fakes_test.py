#!/usr/bin/env python3
"""All calls of gpu-check as on a GPU, with programs that stand in for everything that needs one:
the part that a rehearsal on the host device leaves out. Each call is a new machine that has only
the results of the one before."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import sys
import unittest

from gpu_check_support import FAKE_STOKER, InFolder, load_tool, write_program  # isort: skip  (it adds the path of the others)

import kept
import plan
import sizes

gpu_check = load_tool("gpu-check")

STOKER = FAKE_STOKER.format(python=sys.executable).replace(
    '"loss": 2.0 / s, "images_per_second": 100.0 * s, "feed_wait_share": 0.01 * s} for s in range(1, 5)',
    '"loss": 2.0 / s, "images_per_second": 4000.0, "feed_wait_share": 0.001} for s in range(10, 170, 10)').replace(
    'elif words[:2] == ["bench", "depth"]:', """elif words[:2] == ["bench", "feed"]:
    print(json.dumps({"results": {"images_per_second": 9000.0}}))
elif words[:2] in (["bench", "slice"], ["bench", "layout"]):
    print(json.dumps({"results": {"ms": 1.0}}))
elif words[:2] == ["bench", "depth"]:
    depth = {"slots": 2, "host_us_per_batch": 5.0, "gap_ms_median": 0, "gap_ms_max": 0, "step_ms": 1, "images_per_second": 2,
             "next_us_median": 3}
    print(json.dumps({"results": {"batch": 16, "size": 32, "step": "a step", "depths": [depth]}}))
    sys.exit(0)
elif words[:2] == ["bench", "none"]:""")
# The second process finds what the first one kept in its cache folder.
STEP_BENCH = """#!/bin/sh
plans=$XDG_CACHE_HOME/stoker/plans
if [ -e "$plans" ]; then seconds=2; else seconds=20; fi
case "$*" in
*--no-autotune*) ;;
*) mkdir -p "$XDG_CACHE_HOME/stoker"; echo plans >"$plans" ;;
esac
echo "  1.0 ms a convolution"
case "$*" in
*--fusions*)
  echo '{"fusions": [{"input": "56x56x64", "output": "56x56x256", "kernel": "1x1", "fusion": "sums of y", "apart_ms": 0.5, "fused_ms": 0.4, '
  echo '"plan": "eng3"}, {"input": "56x56x64", "output": "56x56x256", "kernel": "1x1", "fusion": "normalised y", "plan": null}]}'
  exit ;;
esac
echo "{\\"finite\\": true, \\"start_seconds\\": $seconds, \\"ms_by_kind\\": {\\"conv\\": 3.0}, \\"words\\": \\"$*\\"}"
"""
TEST = """#!/bin/sh
for i in 1 2; do echo "[ RUN      ] Cuda.Test$i"; echo "[       OK ] Cuda.Test$i (1 ms)"; done
"""
NCU = """#!/bin/sh
case "$*" in
*--csv*) cat <<'END'
==PROF== Connected to process 7
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","void stoker::cuda::<unnamed>::backward_sums<float>(stoker::NormShape, stoker::NormBackward)","gpu__time_duration.sum","ns","2,000"
"1","sm90_xmma_dgrad(Params)","gpu__time_duration.sum","ns","3,000"
END
;;
*) echo "closely: $*" ;;
esac
"""
SANITIZER = """#!/bin/sh
while [ "${1#/}" = "$1" ]; do shift; done
exec "$@"
"""
SMI = """#!/bin/sh
case "$*" in *memory.used*) echo 1234 ;; *) echo "NVIDIA H100" ;; esac
"""
PYTHON = """#!{python} -IS
import json, os, sys
words = sys.argv[1:]
if words[0] == "-c":
    if "find_spec" not in words[1]:
        print(json.dumps({{"torch": "2.11", "sees_a_gpu": True}}))
    sys.exit(0)
if words[:3] == ["-m", "pip", "install"]:
    os.makedirs(words[words.index("--target") + 1], exist_ok=True)
    sys.exit(not words[-1].endswith(".whl"))
if words[0].endswith("torch_loader.py"):
    print(json.dumps({{"package": os.environ["PYTHONPATH"], "rates": {{"stoker": 9.0}}}}))
    sys.exit(0)
rate = {{"none": 2000.0, "default": 3000.0, "max-autotune": 3100.0}}[words[words.index("--compile") + 1]] if "--compile" in words else 1000.0
if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
    open(os.environ["TORCHINDUCTOR_CACHE_DIR"] + "/kernel", "w").write("compiled")
print(json.dumps({{"ready": True, "torch": "2.11", "warmup_seconds": 1.0, "script_sha256": "abc"}}), flush=True)
for line in sys.stdin:
    print(json.dumps({{"images_per_second": rate, "train_seconds": 3.0, "top1_6_views": 0.4}}), flush=True)
"""


class OnFakes(InFolder):
    def setUp(self):
        super().setUp()
        for name, text in (("build/stoker", STOKER), ("build/bench/cuda_step_bench", STEP_BENCH), ("bin/ncu", NCU),
                           ("bin/compute-sanitizer", SANITIZER), ("bin/nvidia-smi", SMI), ("bin/python", PYTHON.format(python=sys.executable)),
                           ("clone/airbench94.py", ""), ("wheels/stoker-1.whl", ""),
                           *((f"build/cuda_{part}_test", TEST) for part in ("device", "engine", "collective"))):
            write_program(self.path(*name.split("/")), text)
        self.change(os.environ, "PATH", f"{self.path('bin')}:{os.environ['PATH']}")
        full = {**sizes.FULL, "pictures": 4, "cifar_stand_in": True}
        self.addCleanup(setattr, sizes, "FULL", sizes.FULL)
        sizes.FULL = full

    def change(self, table, key, value):
        self.addCleanup(table.__setitem__, key, table[key])
        table[key] = value

    def call(self, *words):
        """Runs gpu-check, on a machine that has only OUT; returns (exit code, what it printed)."""
        shutil.rmtree(self.path("work"), ignore_errors=True)
        self.addCleanup(setattr, sys, "argv", sys.argv)
        sys.argv = ["gpu-check", *(words or ["--next"]), "--build", self.path("build"), "--out", self.path("out"), "--work", self.path("work"), "--python",
                    self.path("bin", "python"), "--airbench", self.path("clone"), "--wheels", self.path("wheels")]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            return gpu_check.main(), said.getvalue()

    def results(self):
        with open(self.path("out", "gpu-check.json"), encoding="utf-8") as file:
            return {name: step["result"] for name, step in json.load(file)["steps"].items()}

    def test_all_calls_end_with_every_aim_met(self):
        code, said = self.call()
        self.assertEqual(code, 0, said)
        code, said = self.call()
        self.assertEqual(code, gpu_check.ALL_DONE)
        rows = [line.split(" | ") for line in said.splitlines() if line.startswith("| ")][1:]
        self.assertEqual([row[-1] for row in rows], ["yes |"] * 8 + ["– |"], said)
        text = "\n".join(row[2] for row in rows)
        for part in ("8 tests passed", "1.33 (4000", "1.29 (4000", "1.000 (4000 images/s); 2.00 of PyTorch", "2.50 s, 50.00", "airbench94 3.00 s",
                     "2.0 s; the first time 20.0 s", "9.00 x torchvision, nvJPEG, decode;"):
            self.assertIn(part, text)
        self.assertEqual(set(self.results()), {"data", *plan.STEPS})
        peers = self.results()["resnet50"]["PyTorch, compile (default)"]
        self.assertEqual((peers["gpu_mib_before"], peers["gpu_mib_after"]), (1234, 1234))

    def test_what_cudnn_fuses_is_beside_the_same_work_apart(self):
        self.call("--only", "fusions")
        found = self.results()["fusions"]
        self.assertAlmostEqual(found["sums of y, 56x56x64 -> 56x56x256, kernel 1x1"]["saved"], 0.2)
        self.assertIn("no such plan", found["normalised y, 56x56x64 -> 56x56x256, kernel 1x1"]["not_run"])

    def test_kernels_that_ncu_is_asked_about_are_the_slowest_of_the_first_look(self):
        self.call("--only", "ncu")
        found = self.results()["ncu"]
        self.assertEqual(list(found["convolutions"]), ["sm90_xmma_dgrad(Params)"])
        text = pathlib.Path(self.path("out", "ncu.txt")).read_text(encoding="utf-8")
        self.assertIn("::regex:^(void.stoker..cuda...unnamed...backward_sums.float..stoker..NormShape..stoker..NormBackward."
                      "|sm90_xmma_dgrad.Params.):2|60|75|95", text)

    def test_plan_choices_and_compiled_kernels_go_from_machine_to_machine(self):
        for names in ("first steps", "table", "resnet50"):
            self.call("--only", names)
        self.assertEqual(self.results()["table"]["resnet50"]["start_seconds"], 2)
        fresh = kept.Kept(self.path("fresh"), self.path("out"))
        fresh.restore()
        self.assertTrue(os.path.exists(self.path("fresh", "stoker", "plans")))
        self.assertTrue(os.path.exists(self.path("fresh", "inductor-default", "kernel")))

    def test_losses_that_are_not_the_cpus_are_failures_with_both(self):
        # The program's losses are larger on a device from the second step on, and much larger with 1bit gradients.
        differing = STOKER.replace('"loss": 2.0 / s', '"loss": 2.0 / s + (("cuda:0*2" in words) and s > 10) * (1 if "1bit" in words else 0.0001)')
        self.assertNotEqual(differing, STOKER)
        write_program(self.path("build", "stoker"), differing)
        code, _ = self.call("--only", "models,exchanges")
        self.assertEqual(code, 1)
        found = self.results()
        self.assertLess(found["models"]["mlp41m"]["largest_difference"], 1e-9)
        self.assertNotIn("failed", found["exchanges"]["int8"])
        self.assertGreater(found["exchanges"]["int8"]["largest_difference"], 1e-4)
        self.assertIn("the losses differ from the CPU's by", found["exchanges"]["1bit"]["failed"])

    def test_two_gpus_are_compared_with_the_cpu_too(self):
        write_program(self.path("bin", "nvidia-smi"), SMI.replace("echo \"NVIDIA H100\"", "printf 'NVIDIA H100\\nNVIDIA H100\\n'"))
        differing = STOKER.replace('"loss": 2.0 / s', '"loss": 2.0 / s + ("cuda:0,1" in words and "--sync-batch-norm" in words)')
        self.assertNotEqual(differing, STOKER)
        write_program(self.path("build", "stoker"), differing)
        self.call("--only", "exchanges")
        found = self.results()["exchanges"]
        self.assertIn("the losses differ from the CPU's by", found["sync batch norm between two GPUs"]["failed"])
        self.assertLess(found["all-reduce:nccl between two GPUs"]["largest_difference"], 1e-9)
        self.assertLess(found["sync batch norm"]["largest_difference"], 1e-9)

    def test_the_python_package_is_that_of_the_wheels(self):
        self.call("--only", "python")
        self.assertEqual(self.results()["python"]["package"], self.path("work", "site"))

    def test_a_library_of_cuda_that_is_missing_is_a_failure_of_the_first_step(self):
        real = gpu_check.layout.from_build

        def from_build(*words):
            found = real(*words)
            found.cuda_libraries = ["libnotthere.so.9"]
            return found

        self.addCleanup(setattr, gpu_check.layout, "from_build", real)
        gpu_check.layout.from_build = from_build
        code, _ = self.call("--only", "machine")
        self.assertEqual(code, 1)
        self.assertIn("not found: libnotthere.so.9", self.results()["machine"]["failed"])
        self.assertIn("NVIDIA H100", self.results()["machine"]["nvidia-smi"]["text"])


if __name__ == "__main__":
    unittest.main()
