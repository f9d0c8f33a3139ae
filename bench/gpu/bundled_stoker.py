#!/usr/bin/env python3
"""The `stoker` command of a bundle: unpacks its libraries on first use, finds those of CUDA, and
executes the program.

The libraries go to ${XDG_CACHE_HOME:-~/.cache}/stoker; the bundle is never written to. CUDA's come
from the wheels of the Python that runs this script (or of an activated virtual environment), else
from a CUDA installation. If the command line names a CUDA device and a library is missing, the
script prints its name and the folders that were searched, and exits.
"""
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench", "gpu"))

import cuda_libraries  # noqa: E402
import layout  # noqa: E402

try:
    bundle = layout.from_bundle(ROOT, layout.cache_folder())
except OSError as error:
    sys.exit(f"stoker: the bundle's libraries cannot be unpacked: {error} (XDG_CACHE_HOME names another folder for them)")
if cuda_libraries.names_a_cuda_device(sys.argv[1:]) and bundle.cuda_problem():
    sys.exit(f"stoker: {bundle.cuda_problem()}")
os.execve(bundle.stoker, [bundle.stoker, *sys.argv[1:]], bundle.env)
