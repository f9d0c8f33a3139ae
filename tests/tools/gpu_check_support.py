"""Shared by the tests of gpu-check and bundle: the tools as modules, a temporary folder, a program
that stands in for stoker."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "bench", "gpu"), os.path.join(ROOT, "bench", "report")]

from runner import Log  # noqa: E402


def load_tool(name):
    """Loads tools/NAME as a module, although it has no .py extension."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "tools", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


# A program that stands in for `stoker`: as much of it as gpu-check uses.
FAKE_STOKER = """#!{python} -IS
import json, os, sys
words = sys.argv[1:]
if words[0] == "info":
    print("a fake")
elif words[0] == "train":
    out = words[words.index("--out") + 1]
    os.makedirs(out)
    rows = [{{"kind": "step", "step": s, "loss": 2.0 / s, "images_per_second": 100.0 * s, "feed_wait_share": 0.01 * s}} for s in range(1, 5)]
    rows.append({{"kind": "epoch", "step": 4, "seconds": 2.5, "eval_top1": 0.5}})
    open(out + "/metrics.jsonl", "w").write("".join(json.dumps(r) + "\\n" for r in rows))
    print("evaluated    top-1 40.00%, 1 view")
elif words[:2] == ["bench", "depth"]:
    print(json.dumps({{"bench": "depth", "results": {{"batch": 16, "size": 32, "step": "a step", "depths": []}}}}, indent=1))
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

    def logged(self):
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read()
