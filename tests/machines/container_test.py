#!/usr/bin/env python3
"""Carries out tools/container/Containerfile where no container engine runs: each stage in a bare root, line by line.

    container_test.py ROOTS [IMAGE]        builds all of stoker: 15 CPU minutes

IMAGE, such as ubuntu:24.04, is what the recipe builds and runs on in place of its own. The images of Debian and Ubuntu are stood
for by roots of the same release (bare_root.py), which have Python, as the images have not.
At the end the program and the Python package must work in the last stage's root, and tools/quickstart in that of the build,
which has the sources. The CUDA images cannot be stood for.
Exit codes: 0 passed, 1 failed, 2 usage, 77 no root can be had, with the reason.
"""
import glob
import json
import os
import re
import shutil
import sys

from bare_root import BareRoot, conclude

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPE = os.path.join(CHECKOUT, "tools", "container", "Containerfile")
UBUNTU = {"ubuntu:24.04": "noble"}
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "ENTRYPOINT"}


def instructions(path):
    """Yields (instruction, rest of its line), with continued lines joined."""
    with open(path, encoding="utf-8") as file:
        text = "".join(line for line in file if not line.startswith("#"))
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            word, rest = line.split(maxsplit=1)
            assert word in KNOWN, f"{word} is not carried out here"
            yield word, rest.strip()


class Stage:
    """One stage of the recipe, in its root."""

    def __init__(self, image, name, folder):
        debian = re.fullmatch(r"debian:(\w+)(-slim)?", image)
        suite = debian[1] if debian else UBUNTU.get(image)
        assert suite, f"{image} cannot be stood for by a root"
        self.root = BareRoot(suite, folder, name)
        self.folder, self.variables, self.entry = "/", {}, []

    def copy(self, words, stages):
        origin = CHECKOUT
        if words[0].startswith("--from="):
            origin = stages[words.pop(0)[len("--from="):]].root.folder
        *sources, target = words
        target = os.path.join(self.folder, target)
        for source in sources:
            for path in glob.glob(os.path.join(origin, source.lstrip("/"))) or [source]:
                # A folder's contents go to the target; a file goes into it if it ends with a slash.
                name = target if os.path.isdir(path) or not target.endswith("/") else os.path.join(target, os.path.basename(path))
                if os.path.isdir(path):
                    shutil.copytree(path, self.root.path(name), dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    self.root.add(path, name)

    def run(self, command):
        return self.root.run_well("sh", "-c", f"mkdir -p {self.folder} && cd {self.folder} && {command}", **self.variables)

    def carry_out(self, word, rest, stages):
        if word == "WORKDIR":
            self.folder = os.path.join(self.folder, rest)
        elif word == "COPY":
            self.copy(rest.split(), stages)
        elif word == "RUN":
            self.run(rest)
        elif word == "ENV":
            self.variables.update([rest.split("=", 1)])
        elif word == "ENTRYPOINT":
            self.entry = json.loads(rest)


def carry_out(path, folder, given, stages):
    """Fills {name: Stage}, in the order of the recipe. `given` are arguments from outside, which replace its own."""
    arguments, stage = {}, None
    for word, rest in instructions(path):
        print(word, rest, flush=True)
        if word == "ARG":
            arguments = {**arguments, **dict([rest.split("=", 1)]), **given}
        elif word == "FROM":
            image, _, name = re.sub(r"\$\{(\w+)\}", lambda m: arguments[m[1]], rest).partition(" AS ")
            name = name or "last"
            stage = stages[name] = Stage(image, name, folder)
        else:
            stage.carry_out(word, rest, stages)


def use_build(stage):
    """The steps of a user with the sources, where all that they need is installed and built."""
    stage.run("build/stoker make-shapes --out /tmp/shapes --count 600 --test-count 100 --size 64")
    said = stage.run("tools/quickstart --no-install --data /tmp/shapes")
    assert "evaluated" in said and "results are in runs/quickstart-" in said, said


def use(stage):
    """The steps of a user with the image."""
    entry = " ".join(stage.entry)
    info = stage.run(f"{entry} info")
    assert "oneDNN" in info and "GPU" in info, info
    stage.run(f"{entry} make-shapes --out /tmp/shapes --count 60 --test-count 20")
    stage.run(f"{entry} train --data /tmp/shapes --model airnet-narrow --batch 16 --micro-batch 16 --max-steps 2 --out /tmp/run")
    code = "import stoker; print(sum(b.valid for b in stoker.Loader(stoker.folder('/tmp/shapes/train'), batch_size=16, size=32)))"
    assert stage.run(f'python3 -c "{code}"').strip() == "60"


def check(folder, images):
    stages = {}
    try:
        carry_out(RECIPE, folder, {name: image for image in images for name in ("BUILD_ON", "RUN_ON")}, stages)
        use_build(stages["build"])
        use(list(stages.values())[-1])
    finally:
        for stage in stages.values():
            stage.root.remove()


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    return conclude(check, os.path.abspath(sys.argv[1]), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
