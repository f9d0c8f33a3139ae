#!/usr/bin/env python3
"""A whole bundle on a machine that has Python and nothing of ours: runs it in a separate root,
where it is read-only.

    bundle_root_test.py BUNDLE

The root contains this Python with its standard library, and only the C and C++ libraries of the
system. It is entered in a user namespace; if those are refused, as root. In it, `./stoker` reads,
trains and evaluates on the CPU and names the missing CUDA library, and gpu-check rehearses all
calls of its plan, each with only the results of the one before. Exit codes: 0 passed, 1 failed, 2
usage, 77 skipped, with the reason.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "bench", "gpu"), os.path.join(HERE, "..", "..", "bench", "report"), os.path.join(HERE, "..", "machines")]

import library_paths  # noqa: E402
import plan  # noqa: E402

LEFT_OUT = 77
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so")
NOT_NEEDED = ("test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "__pycache__", "site-packages", "dist-packages",
              "config-*")
MOUNTED = """set -e
mount --rbind /dev "$0/dev"
mount --rbind /proc "$0/proc"
mount --bind "$BUNDLE" "$0/bundle"
mount -o remount,bind,ro "$0/bundle"
exec chroot "$0" "$@"
"""
COPIED = """set -e
[ -e "$0/dev/null" ] || { mknod -m 666 "$0/dev/null" c 1 3; cp -r "$BUNDLE/." "$0/bundle"; chmod -R a-w "$0/bundle"; }
exec chroot --userspec=65534:65534 "$0" "$@"
"""
WAYS = (  # ways to enter the root, in order of preference; with a copy of the bundle if nothing can be mounted
    ("a user namespace", ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNTED]),
    ("root's own mounts", ["unshare", "--mount", "sh", "-c", MOUNTED]),
    ("chroot as nobody", ["sh", "-c", COPIED]),
)


def linked(program):
    """Returns {name: path} of the shared libraries of a program, and its loader."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    found = {name: path for name, path in re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE)}
    loader = re.search(r"^\s*(/\S+/ld-linux\S+)", text, re.MULTILINE)
    return {**found, **({os.path.basename(loader[1]): loader[1]} if loader else {})}


class Root:
    """A folder that is a root: the minimum that Python and a C++ program need."""

    def __init__(self, folder, bundle):
        self.folder, self.bundle, self.way = folder, bundle, None
        os.chmod(folder, 0o755)
        for name in ("usr/bin", "usr/lib", "usr/lib64", "dev", "proc", "bundle", "tmp", "home"):
            os.makedirs(os.path.join(folder, name))
        for name in ("tmp", "home"):
            os.chmod(os.path.join(folder, name), 0o777)
        for name in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(folder, name))
        self.add_python()
        for name in sorted(os.listdir(os.path.join(bundle, "bin"))):
            system = {n: p for n, p in linked(os.path.join(bundle, "bin", name)).items() if SYSTEM.match(n) or n.startswith("ld-")}
            self.add_libraries(system)

    def path(self, name):
        return os.path.join(self.folder, name.lstrip("/"))

    def add(self, path):
        if not os.path.exists(self.path(path)):
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            shutil.copy2(os.path.realpath(path), self.path(path))

    def add_libraries(self, libraries):
        for path in libraries.values():
            self.add(path)

    def add_python(self):
        interpreter, modules = os.path.realpath(sys.executable), sysconfig.get_path("stdlib")
        for program in (interpreter, shutil.which("env")):
            self.add(os.path.realpath(program))
            self.add_libraries(linked(program))
        for name, path in (("env", os.path.realpath(shutil.which("env"))), ("python3", interpreter)):
            if not os.path.exists(self.path("/usr/bin/" + name)):
                os.symlink(path, self.path("/usr/bin/" + name))
        shutil.copytree(modules, self.path(modules), ignore=shutil.ignore_patterns(*NOT_NEEDED), dirs_exist_ok=True)
        for name in os.listdir(os.path.join(modules, "lib-dynload")):
            self.add_libraries(linked(os.path.join(modules, "lib-dynload", name)))

    def run(self, *words):
        """Runs a program in the root with only its own environment; returns the finished
        process."""
        command = [*self.way, self.folder, "/usr/bin/env", "-i", "PATH=/usr/bin", "HOME=/home", "LANG=C.UTF-8", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "BUNDLE": self.bundle})

    def enter(self):
        """Finds a way into the root; returns None and the reason if there is none."""
        reasons = []
        for name, way in WAYS:
            self.way = way
            result = self.run("python3", "-c", "print('inside')")
            if result.returncode == 0 and result.stdout == "inside\n":
                return name, None
            reasons.append(f"{name}: {(result.stderr.strip().splitlines() or ['nothing was said'])[-1]}")
        return None, "; ".join(reasons)


class Wrong(Exception):
    pass


def expect(truth, what, result):
    if not truth:
        raise Wrong(f"{what}; exit code {result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")


def run_well(root, *words):
    result = root.run(*words)
    print(f"{' '.join(words)}: {result.returncode}", flush=True)
    expect(result.returncode == 0, f"{' '.join(words)} failed", result)
    return result


def holds_nothing_of_ours(root, manifest):
    """The bundle's libraries must come from the bundle, except those that this Python needs
    itself."""
    there = {f for _, _, files in os.walk(root.path("/usr")) for f in files}
    pythons = {name for path in [os.path.realpath(sys.executable)] for name in linked(path)}
    ours = sorted(name for name in manifest["libraries"] if name in there and name not in pythons)
    if ours:
        raise Wrong(f"the root holds libraries that the bundle should bring: {', '.join(ours)}")


def check_program(root, manifest):
    """Runs `./stoker` in the bundle: the feed, the CPU engine, and its message about CUDA."""
    stoker = "/bundle/stoker"
    text = run_well(root, stoker, "info").stdout
    if "oneDNN" not in text:
        raise Wrong(f"stoker info says nothing of oneDNN:\n{text}")
    run_well(root, stoker, "make-shapes", "--out", "/tmp/shapes", "--count", "60", "--test-count", "20")
    run_well(root, stoker, "check", "--data", "/tmp/shapes")
    run_well(root, stoker, "dump", "--data", "/tmp/shapes", "--batch", "16", "--size", "32", "--steps", "2", "--out", "/tmp/dump")
    run_well(root, stoker, "train", "--devices", "cpu:1", "--data", "/tmp/shapes", "--model", "airnet-narrow", "--batch", "16",
             "--micro-batch", "16", "--max-steps", "2", "--out", "/tmp/run")
    run_well(root, stoker, "eval", "--checkpoint", "/tmp/run", "--data", "/tmp/shapes")
    run_well(root, stoker, "bench", "links", "--mib", "4", "--repeats", "2")
    if not manifest["cuda_libraries"]:
        return
    result = root.run(stoker, "train", "--devices", "cuda:0", "--data", "/tmp/shapes", "--model", "resnet50", "--out", "/tmp/gpu")
    for part in (*manifest["cuda_libraries"], "looked in", "/usr/bin/python3"):
        expect(result.returncode == 1 and part in result.stderr, f"training on a GPU does not say '{part}'", result)
    print(result.stderr.strip())
    wheel = os.path.join([p for p in sys.path if p.endswith("-packages")][-1], "nvidia", "cu13", "lib")
    os.makedirs(root.path(wheel))
    for name in manifest["cuda_libraries"]:
        with open(os.path.join(root.path(wheel), name), "w", encoding="utf-8"):
            pass
    result = run_well(root, "python3", "-c", "import sys; sys.path.insert(0, '/bundle/bench/gpu'); import layout; "
                      "print(layout.from_bundle('/bundle', '/tmp').env['LD_LIBRARY_PATH'])")
    expect(wheel in result.stdout.strip().split(":"), f"the program would not look in {wheel}", result)
    result = root.run(stoker, "train", "--devices", "cuda:0", "--data", "/tmp/shapes", "--model", "resnet50", "--out", "/tmp/gpu")
    expect(result.returncode != 0 and "NVIDIA driver" in result.stderr, "training on a GPU does not say that there is no driver", result)


def check_plan(root):
    """Runs gpu-check until no step is left, each call as on a new machine: with its own work folder."""
    for number in range(1, len(plan.STEPS) + 2):
        result = root.run("/bundle/tools/gpu-check", "--next", "--device", "cpu:1", "--quick", "--out", "/tmp/results", "--work",
                          f"/tmp/work{number}")
        print(f"call {number}: {result.returncode}", flush=True)
        if result.returncode != 0:
            break
    expect(result.returncode == 3, f"call {number} of gpu-check", result)
    with open(root.path("/tmp/results/gpu-check.json"), encoding="utf-8") as file:
        steps = {name: step["result"] for name, step in json.load(file)["steps"].items()}
    expect(set(steps) == {"data", *plan.STEPS}, f"the plan has ended with the steps {', '.join(steps)}", result)
    for name, value in (("device tests", "passed"), ("jpeg", "stoker, fed"), ("cifar", "stoker"), ("decode", "stoker's feed, CPU")):
        expect(name in steps and steps[name].get(value), f"step {name} has no '{value}'", result)


def digests(folder):
    found = {}
    for where, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(where, name), "rb") as file:
                found[os.path.relpath(os.path.join(where, name), folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def main():
    if len(sys.argv) != 2 or not os.path.exists(os.path.join(sys.argv[1], "MANIFEST.json")):
        print(__doc__, file=sys.stderr)
        return 2
    bundle = os.path.abspath(sys.argv[1])
    with open(os.path.join(bundle, "MANIFEST.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    lines, _ = library_paths.read([bundle], built=False)
    if lines:
        print("FAILED:", *lines, sep="\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        root = Root(folder, bundle)
        way, reason = root.enter()
        if not way:
            print(f"left out: no root of its own can be entered here ({reason})")
            return LEFT_OUT
        print(f"in a root of its own, by {way}")
        before = digests(bundle)
        try:
            holds_nothing_of_ours(root, manifest)
            check_program(root, manifest)
            check_plan(root)
            if digests(bundle) != before:
                raise Wrong("the bundle was changed")
        except Wrong as error:
            print(f"FAILED: {error}")
            return 1
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
