#!/usr/bin/env python3
"""Runs the tutorials as notebooks, each in an empty folder and a process of its own.

    tests/docs/tutorials_test.py [--all] [--out DIR] [NAME...]     (default: all of tools/docs/tutorials)

A tutorial is a program in jupytext's percent form. Its first cell has the `pip install` line of what it needs: what it
imports and does not name there is an error, and what is named and not installed leaves it out (with --all: fails it). What
a tutorial claims, it asserts; one that takes more than 120 s of CPU time has failed. --out keeps the notebooks with what they
showed. Needs jupytext, nbclient and ipykernel beside stoker.

Exit codes: 0 none failed, 1 one did, 2 usage.
"""
import argparse
import ast
import importlib.metadata
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

TUTORIALS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "docs" / "tutorials"
LIMIT_CPU_S = 120
LIMIT_S = 600  # it hangs
MODULES = {"PIL": "pillow"}  # whose packages have another name


def packages_of(text):
    """Returns what the tutorial's own line installs, but for the wheel of stoker."""
    lines = re.findall(r"^# pip install dist/stoker-\S+ (.*)$", text, re.MULTILINE)
    if len(lines) != 1:
        raise ValueError(f"{len(lines)} lines begin with `pip install dist/stoker-`, must be one")
    return lines[0].split()


def unnamed_imports(text, packages):
    tree = ast.parse(text)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    found = {MODULES.get(name, name) for name in found - sys.stdlib_module_names - {"stoker"}}
    return sorted(found - set(packages))


def missing(packages):
    def is_missing(name):
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return True
        return False

    return [name for name in packages if is_missing(name)]


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(path, out):
    """In a process of its own: executes the notebook here."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = jupytext.read(path)
    with tempfile.TemporaryDirectory(prefix="stoker_tutorial_") as folder:
        client = NotebookClient(
            notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        try:
            client.execute()
        except CellExecutionError as error:
            sys.exit(re.sub(r"\x1b\[[0-9;]*m", "", str(error)))
        finally:
            if out is not None:
                nbformat.write(notebook, pathlib.Path(out) / f"{path.stem}.ipynb")
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("output_type") == "stream":
                print(output.text, end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="what is not installed fails")
    parser.add_argument("--out", help="folder for the notebooks")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(pathlib.Path(options.run), options.out)
        return 0
    if options.out:
        pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    paths = [TUTORIALS / f"{name}.py" for name in options.names] or sorted(TUTORIALS.glob("*.py"))
    failed = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        packages = packages_of(text)
        unnamed, absent = unnamed_imports(text, packages), missing(packages)
        if unnamed:
            print(f"FAILED {path.stem}: it imports {', '.join(unnamed)}, which its pip line does not name")
            failed.append(path.stem)
            continue
        if absent:
            print(f"{'FAILED' if options.all else 'left out:'} {path.stem} (not installed: {', '.join(absent)})")
            failed += [path.stem] if options.all else []
            continue
        begun, cpu_before = time.monotonic(), cpu_seconds()
        command = [sys.executable, __file__, "--run", str(path)]
        command += ["--out", options.out] if options.out else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
            problem = "" if done.returncode == 0 else (done.stdout + done.stderr)[-4000:]
        except subprocess.TimeoutExpired:
            problem = f"it has not ended after {LIMIT_S} s"
        seconds, cpu = time.monotonic() - begun, cpu_seconds() - cpu_before
        if not problem and cpu > LIMIT_CPU_S:
            problem = f"it took {cpu:.0f} s of CPU time, and may take {LIMIT_CPU_S} s"
        print(f"{'FAILED' if problem else 'passed'} {path.stem}: {seconds:.0f} s, {cpu:.0f} CPU s", flush=True)
        if problem:
            print(problem)
            failed.append(path.stem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
