"""Finds the CUDA libraries that this Python environment carries (nvidia/*/lib in site-packages), without importing them.

    python3 cuda_libraries.py       prints the folders, joined by colons, for LD_LIBRARY_PATH
"""
import glob
import importlib.util
import os
import subprocess
import sys

NEEDED = ("libcudart.so*", "libcublasLt.so*", "libcublas.so*", "libcudnn.so*", "libnccl.so*")


def library_folders(python=sys.executable):
    """Folders that hold a library which the CUDA parts load, in a stable order; [] where there are none."""
    if python != sys.executable:
        try:
            result = subprocess.run([python, os.path.abspath(__file__)], capture_output=True, text=True, check=False)
        except OSError:
            return []  # no such Python: its peers say so
        return [folder for folder in result.stdout.strip().split(":") if folder]
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations) if spec and spec.submodule_search_locations else []
    folders = sorted(folder for root in roots for folder in glob.glob(os.path.join(root, "*", "lib")))
    return [f for f in folders if any(glob.glob(os.path.join(f, pattern)) for pattern in NEEDED)]


if __name__ == "__main__":
    print(":".join(library_folders()))
