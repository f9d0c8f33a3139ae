#!/usr/bin/env python3
"""`stoker` of a bundle: unpacks its libraries the first time, finds those of CUDA, and becomes the program."""
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(ROOT, "bench", "gpu"))

import layout  # noqa: E402

bundle = layout.from_bundle(ROOT)
os.execve(bundle.stoker, [bundle.stoker, *sys.argv[1:]], bundle.env)
