#!/usr/bin/env python3
"""kernel_table.py's own logic, with a program in place of cuobjdump: what it reads, computes,
compares and refuses."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join(ROOT, "bench", "gpu", "kernel_table.py")

APPLY = "_ZN6stoker4cuda53_GLOBAL__N__7db87289_20_cuda_kernels_norm_cu_f7587c1312apply_kernelINS_6device4Bf16ELi8EEEvPKT_"
PLAIN = "_Z5plainPf"

# Output of cuobjdump: two kernels on two architectures, one of them without a launch bound.
USAGE = """
Fatbin elf code:
================
arch = {arch}
code version = [1,8]

Resource usage:
 Common:
  GLOBAL:0
 Function {apply}:
  REG:{registers} STACK:{stack} SHARED:{shared} LOCAL:0 CONSTANT[0]:384 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function {plain}:
  REG:32 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:384 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
ELF = """
arch = {arch}

.nv.info.{plain}
\t<0x1>
\tAttribute:\tEIATTR_MAXREG_COUNT
\tFormat:\tEIFMT_HVAL
\tValue:\t0xff

.nv.info.{apply}
\t<0x1>
\tAttribute:\tEIATTR_MAX_THREADS
\tFormat:\tEIFMT_SVAL
\tValue:\t{threads} 
"""


def texts(of_80, of_90, threads="0x80 0x2 0x1"):
    usage, elf = "", ""
    for arch, figures in (("sm_80", of_80), ("sm_90", of_90)):
        if figures:
            names = {"arch": arch, "apply": APPLY, "plain": PLAIN, "threads": threads}
            usage += USAGE.format(**names, **dict(zip(("registers", "stack", "shared"), figures)))
            elf += ELF.format(**names)
    return usage, elf


class KernelTable(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.folder = temp.name

    def at(self, name):
        return os.path.join(self.folder, name)

    def cuobjdump(self, name, *figures):
        usage, elf = texts(*figures)
        with open(self.at(name), "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\nimport sys\nprint({usage!r} if '--dump-resource-usage' in sys.argv else {elf!r})\n")
        os.chmod(self.at(name), 0o755)
        return self.at(name)

    def run_table(self, *words):
        return subprocess.run([sys.executable, TABLE, *words], capture_output=True, text=True, check=False)

    def rows(self, *figures):
        done = self.run_table("a.so", "--cuobjdump", self.cuobjdump("cuobjdump", *figures), "--json", self.at("rows.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.at("rows.json"), encoding="utf-8") as file:
            rows = {(row["kernel"], row["arch"]): row for row in json.load(file)}
        self.assertEqual(len(done.stdout.splitlines()), 2 + len(rows))
        return rows

    def test_figures(self):
        rows = self.rows((64, 8, 16384), (64, 16, 17408))
        self.assertEqual(rows["apply_kernel<Bf16, 8>", "sm_80"],
                         {"file": "cuda_kernels_norm.cu", "kernel": "apply_kernel<Bf16, 8>", "arch": "sm_80", "registers": 64, "stack": 8,
                          "shared": 16384, "threads": 256, "blocks": 4, "occupancy": 0.5})
        self.assertEqual(rows["apply_kernel<Bf16, 8>", "sm_90"]["shared"], 16384, "without what the system takes")
        plain = rows["plain", "sm_90"]
        self.assertEqual((plain["file"], plain["threads"], plain["blocks"], plain["occupancy"]), ("", 1024, 2, 1.0))

    def test_what_limits_the_blocks(self):
        def blocks(registers, shared, threads="0x100 0x1 0x1"):
            return self.rows((registers, 0, shared), None, threads)["apply_kernel<Bf16, 8>", "sm_80"]["blocks"]
        self.assertEqual(blocks(16, 0), 8)  # warps: 64, of 8 each
        self.assertEqual(blocks(16, 0, "0x20 0x1 0x1"), 32)  # blocks
        self.assertEqual(blocks(40, 0), 6)  # registers: 51 warps
        self.assertEqual(blocks(41, 0), 5)  # in steps of 8 a thread
        self.assertEqual(blocks(40, 0, "0x60 0x1 0x1"), 16)  # a quarter of the multiprocessor holds 12 whole warps
        self.assertEqual(blocks(16, 40 << 10), 4)  # shared memory: 164 KiB, 41 of a block

    def test_only_changes_are_compared(self):
        before, after = self.cuobjdump("before", (64, 8, 0), (64, 16, 0)), self.cuobjdump("after", (64, 8, 0), (40, 0, 0))
        self.assertEqual(self.run_table("a.so", "--cuobjdump", before, "--json", self.at("before.json")).returncode, 0)
        done = self.run_table("a.so", "--cuobjdump", after, "--before", self.at("before.json"))
        self.assertEqual(done.stdout.splitlines()[2:],
                         ["| cuda_kernels_norm.cu | `apply_kernel<Bf16, 8>` | sm_90 | 64 -> 40 | 16 -> 0 | 0 | 256 | 4 -> 6 | 50% -> 75% |"])
        done = self.run_table("a.so", "--cuobjdump", before, "--before", self.at("before.json"))
        self.assertEqual(done.stdout, "no kernel has changed\n")

    def test_only_what_is_asked_for_is_shown(self):
        both = self.cuobjdump("both", (64, 0, 0), (40, 0, 0))
        done = self.run_table("a.so", "--cuobjdump", both, "--arch", "sm_90", "--kernels", "apply")
        self.assertEqual([line.split(" | ")[2:4] for line in done.stdout.splitlines()[2:]], [["sm_90", "40"]])
        self.assertIn("no kernel is compiled for sm_70", self.refused("a.so", "--cuobjdump", both, "--arch", "sm_70"))
        self.assertIn("begins with pool", self.refused("a.so", "--cuobjdump", both, "--kernels", "pool"))
        self.assertIn("kernel_table.py: ", self.refused("a.so", "--cuobjdump", both, "--kernels", "("))

    def refused(self, *words):
        done = self.run_table(*words)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_refusals(self):
        both = self.cuobjdump("both", (64, 0, 0), (64, 0, 0))
        self.assertIn("/no/cuobjdump cannot be run", self.refused("a.so", "--cuobjdump", "/no/cuobjdump"))
        self.assertIn("a.so: no kernel in it", self.refused("a.so", "--cuobjdump", self.cuobjdump("none", None, None)))
        self.assertIn("no.json", self.refused("a.so", "--cuobjdump", both, "--before", self.at("no.json")))
        with open(self.at("bad.json"), "w", encoding="utf-8") as file:
            file.write("[{")
        self.assertIn("bad.json", self.refused(self.at("bad.json")))
        with open(self.at("other.json"), "w", encoding="utf-8") as file:
            file.write("[{\"kernel\": \"k\"}]")
        self.assertIn("other.json: not a table of kernels", self.refused(self.at("other.json")))


if __name__ == "__main__":
    unittest.main()
