"""Runs the program `stoker` ($STOKER_PROGRAM, or build/stoker) on data in stores."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("STOKER_PROGRAM", str(ROOT / "build" / "stoker"))
LIMIT_S = 200


def run(*words, codes=(0,), environment=None, **more):
    """Returns what `stoker` printed. `more`: variables besides those of `environment`, or ours."""
    done = subprocess.run([PROGRAM, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
                          env={**(environment or os.environ), **more})
    if done.returncode not in codes:
        raise AssertionError(f"stoker {' '.join(map(str, words))}: {done.returncode}\n"
                             f"{done.stdout[-3000:]}")
    return done.stdout
