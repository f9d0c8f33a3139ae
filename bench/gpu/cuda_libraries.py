"""Finds the CUDA libraries that stoker's CUDA plugins load, without loading them: first those of
this Python environment's wheels (nvidia/*/lib in its site-packages, nvidia/cu13/lib among them),
then those of an activated virtual environment, then those of a CUDA installation.

    python3 cuda_libraries.py       prints the folders, joined by colons, for LD_LIBRARY_PATH
"""
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys

# cuDNN loads NVRTC for the kernels that it compiles at run time.
LOADED = ("libcublasLt", "libcudnn", "libnccl", "libnvrtc")
INSTALLED = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib", "/usr/local/cuda-*/lib64")
OF_THE_LOADER = ("/usr/lib/*-linux-gnu", "/usr/lib64")  # the loader always looks there
DEVICE = re.compile(r"(^|[=,])cuda\b")


def all_of(patterns):
    return [folder for pattern in patterns for folder in sorted(glob.glob(pattern))]


def own_wheels():
    """Returns the folders of NVIDIA's wheels in this Python; [] if it has none."""
    spec = importlib.util.find_spec("nvidia")
    return list(spec.submodule_search_locations) if spec and spec.submodule_search_locations else []


def candidates():
    """Returns all folders that are searched for CUDA libraries, in order."""
    active = os.environ.get("VIRTUAL_ENV")
    activated = glob.glob(os.path.join(active, "lib", "python3*", "site-packages", "nvidia")) if active else []
    folders = all_of([os.path.join(root, "*", "lib") for root in (*own_wheels(), *activated)] + list(INSTALLED))
    return list(dict.fromkeys(map(os.path.realpath, folders)))


def library_folders(python=sys.executable):
    """Returns the folders that have a library which the CUDA plugins load, in a stable order."""
    if python != sys.executable:
        try:
            result = subprocess.run([python, os.path.abspath(__file__)], capture_output=True, text=True, check=False)
        except OSError:
            return []  # there is no such Python; the steps that need it report that
        return [folder for folder in result.stdout.strip().split(":") if folder]
    return [f for f in candidates() if any(glob.glob(os.path.join(f, name + ".so*")) for name in LOADED)]


def known_to_the_loader():
    """Returns the names of the libraries in the loader's cache."""
    tool = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if not tool:
        return set()
    listed = subprocess.run([tool, "-p"], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"^\s*(\S+) \(", listed, re.MULTILINE))


def problem(names, library_path):
    """Returns a text that names the missing libraries and the folders that were searched, or None
    if none is missing. `library_path` is the LD_LIBRARY_PATH that the program will have."""
    folders = [*filter(None, library_path.split(":")), *all_of(OF_THE_LOADER)]
    absent = [n for n in names if not any(os.path.exists(os.path.join(f, n)) for f in folders)]
    absent = sorted(set(absent) - known_to_the_loader()) if absent else []
    if not absent:
        return None
    folders = list(dict.fromkeys([*folders, *candidates()]))
    others = sorted({os.path.basename(path) for n in absent for f in folders
                     for path in glob.glob(os.path.join(f, n.split(".so")[0] + ".so*"))})
    return (f"these CUDA libraries were not found: {', '.join(absent)}"
            + (f" (there are {', '.join(others)}, which are other versions)" if others else "")
            + f"; looked in {', '.join(folders) or 'no folder'} and in the loader's cache. They come with PyTorch's wheels: run this "
            f"with the Python that has PyTorch (this one is {sys.executable}{'' if own_wheels() else ', which has no such wheels'}), or "
            "name their folder in LD_LIBRARY_PATH")


def names_a_cuda_device(words):
    """Returns whether a command line names a CUDA device (--devices cuda:0, --device=cuda:1)."""
    return any(DEVICE.search(word) for word in words)


if __name__ == "__main__":
    print(":".join(library_folders()))
