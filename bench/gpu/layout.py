"""Finds what gpu-check runs, in a bundle made by tools/bundle or in a build folder."""
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile

from cuda_libraries import library_folders, problem
from runner import Failed

BENCHES = ("cuda_step_bench",)
AIRBENCH = "airbench94.py"


class Layout:
    """Paths of the program, the benches, the tests and the data. `env` is for our own programs
    only: PyTorch brings its own libraries and must not load ours."""

    def __init__(self, root, stoker, benches, tests, data, library_dirs, commit, python, cuda_libraries=()):
        self.root, self.stoker, self.benches, self.tests = root, stoker, benches, tests
        self.data, self.commit, self.cuda_libraries = data, commit, cuda_libraries
        folders = [*library_dirs, *library_folders(python), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        # The plugins are beside the program, but the benchmarks of a build folder are not.
        self.env = dict(os.environ, LD_LIBRARY_PATH=":".join(folders), STOKER_PLUGIN_DIR=os.path.dirname(stoker))

    def bench(self, name):
        if name not in self.benches:
            raise Failed(f"{name} is not in {self.root}")
        return self.benches[name]

    def test(self, name):
        path = next((t for t in self.tests if os.path.basename(t) == name), None)
        if path is None:
            raise Failed(f"{name} is not in {self.root}")
        return path

    def cuda_problem(self):
        """Returns a text about the missing CUDA libraries and the folders that were searched, or
        None."""
        return problem(self.cuda_libraries, self.env["LD_LIBRARY_PATH"])


def find_airbench(clone):
    """Returns the path of airbench94.py in a clone of Keller Jordan's cifar10-airbench, which has
    it in legacy/, or in a bundle's folder."""
    for folder in ("legacy", ""):
        path = os.path.join(os.path.abspath(clone), folder, AIRBENCH)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"--airbench {clone}: there is no legacy/{AIRBENCH} and no {AIRBENCH} in it; it takes the folder of a "
                            "clone of cifar10-airbench")


def is_bundle(folder):
    return os.path.exists(os.path.join(folder, "MANIFEST.json"))


def cache_folder():
    """Returns where `./stoker` unpacks a bundle's libraries: the bundle may be read-only."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stoker")


def unpack_libraries(root, folder):
    """Unpacks a bundle's libraries once, into a folder in `folder` that is named by their digest;
    returns its path."""
    archive = os.path.join(root, "lib.tar.xz")
    with open(archive, "rb") as file:
        target = os.path.join(folder, "libraries-" + hashlib.sha256(file.read()).hexdigest()[:16])
    if os.path.isdir(target):
        return target
    part = f"{target}.{os.getpid()}"
    os.makedirs(part)
    with tarfile.open(archive) as tar:
        tar.extractall(part)
    try:
        os.rename(part, target)
    except OSError:  # another process unpacked them first
        shutil.rmtree(part)
    return target


def programs(folder, names):
    paths = {name: os.path.join(folder, name) for name in names}
    return {name: path for name, path in paths.items() if os.access(path, os.X_OK)}


def from_bundle(root, unpack_to, python=sys.executable):
    """Returns the layout of a bundle, whose libraries are unpacked into `unpack_to`. Raises OSError
    if that folder cannot be written."""
    root = os.path.abspath(root)
    with open(os.path.join(root, "MANIFEST.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    libraries = unpack_libraries(root, unpack_to)
    bin_dir = os.path.join(root, "bin")
    return Layout(root, os.path.join(bin_dir, "stoker"), programs(bin_dir, BENCHES),
                  sorted(glob.glob(os.path.join(bin_dir, "*_test"))), os.path.join(root, "data"),
                  [libraries], manifest["commit"], python, manifest["cuda_libraries"])


def from_build(build, source, python=sys.executable):
    build = os.path.abspath(build)
    tests = sorted(glob.glob(os.path.join(build, "tests", "*", "*_test")) + glob.glob(os.path.join(build, "*_test")))
    tests = [t for t in tests if os.access(t, os.X_OK) and "fake" not in os.path.basename(t)]
    commit = subprocess.run(["git", "-C", source, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    return Layout(build, os.path.join(build, "stoker"), programs(os.path.join(build, "bench"), BENCHES), tests, None, [],
                  commit or "unknown", python)
