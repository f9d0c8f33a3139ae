#!/usr/bin/env python3
"""Runs every code block of the site's own pages (tools/docs, but for rooms' READMEs), in order, each page in a folder of its own.

    tests/docs/blocks_test.py [PAGE...]     (default: all of tools/docs/**/*.md; needs the package, and `stoker` beside this Python)

Blocks ```python of a page share one namespace and one process; ```bash blocks are run by `bash -euo pipefail`. Both are run in the page's
order. The folder has photos/train/CLASS/IMAGE.jpg and photos/test, 300 pictures. A comment `% not run: WHY` on the line before a block
leaves it out; WHY says that it needs a GPU, a network, several machines or a package that CI does not install. A block in
any other language but text, cpp, toml, json or ini is an error, so that no program is left out by its name.

Exit codes: 0 none failed, 1 one did, 2 usage.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

DOCS = pathlib.Path(__file__).resolve().parents[2] / "tools/docs"
LIMIT_S = 120
NOT_RUN = re.compile(r"^% not run: (.+)$")
REASON = re.compile(r"needs \w")
SILENT = {"text", "cpp", "toml", "json", "ini"}
# Runs in the page's process: reads blocks from the first argument, one JSON list of [language, line, text].
RUNNER = """
import json, subprocess, sys
space = {"__name__": "__main__"}
for language, line, text in json.load(open(sys.argv[1])):
    print(f"@{line}", file=sys.stderr, flush=True)
    if language == "bash":
        if subprocess.run(["bash", "-euo", "pipefail", "-c", text]).returncode:
            sys.exit(f"the block of line {line} failed")
    else:
        exec(compile("\\n" * line + text, sys.argv[2], "exec"), space)
    sys.stdout.flush()
"""


def blocks_of(text):
    """Returns [(language, line, text)] to be run, how many are left out, and what is wrong."""
    blocks, left_out, wrong, lines = [], 0, [], text.splitlines()
    place = 0
    while place < len(lines):
        begin = re.match(r"^(`{3,})(.*)$", lines[place])
        if not begin:
            place += 1
            continue
        end = next((i for i in range(place + 1, len(lines)) if lines[i].strip() == begin[1]), None)
        if end is None:
            wrong.append(f"line {place + 1}: the block has no end")
            break
        language = begin[2].strip()
        reason = NOT_RUN.match(lines[place - 1]) if place else None
        if reason and not REASON.match(reason[1]):
            wrong.append(f"line {place}: '{reason[1]}' is no reason")
        if language in ("python", "bash"):
            if reason:
                left_out += 1
            else:
                blocks.append((language, place + 1, "\n".join(lines[place + 1 : end])))
        elif not language.startswith("{") and language not in SILENT:
            wrong.append(f"line {place + 1}: a block in '{language}', which is not run")
        place = end + 1
    return blocks, left_out, wrong


def program_folder(folder):
    """Makes a folder with `stoker` and `python` as a user of this package has them."""
    programs = pathlib.Path(folder) / "programs"
    programs.mkdir()
    for name, words in (("stoker", f'"{sys.executable}" -m stoker'), ("python", f'"{sys.executable}"'), ("python3", f'"{sys.executable}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / name).chmod(0o755)
    if os.environ.get("STOKER_PROGRAM"):  # a package without the program inside
        (programs / "stoker").write_text(f'#!/bin/sh\nexec "{os.environ["STOKER_PROGRAM"]}" "$@"\n')
    return programs


def run(page, photos, programs):
    """Returns what is wrong with a page, or None; how many blocks ran and were left out; seconds."""
    blocks, left_out, wrong = blocks_of(page.read_text(encoding="utf-8"))
    if wrong or not blocks:
        return "\n".join(wrong) or None, 0, left_out, 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stoker_blocks_") as folder:
        work = pathlib.Path(folder) / "work"
        shutil.copytree(photos, work / "photos")
        (pathlib.Path(folder) / "blocks.json").write_text(json.dumps(blocks))
        (pathlib.Path(folder) / "runner.py").write_text(RUNNER)
        environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(
            [str(page.parent), os.environ.get("PYTHONPATH", "")]), "XDG_CACHE_HOME": f"{folder}/cache", "PYTHONDONTWRITEBYTECODE": "1"}
        words = [sys.executable, f"{folder}/runner.py", f"{folder}/blocks.json", page.name]
        try:
            done = subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
            problem = None if done.returncode == 0 else (done.stdout[-600:] + done.stderr[-2000:])
        except subprocess.TimeoutExpired as late:
            problem = f"it has not ended after {LIMIT_S} s: {(late.stderr or b'')[-500:]}"
    return problem, len(blocks), left_out, time.monotonic() - begun


def broken_blocks_are_found(photos, programs):
    """The test's own test: a page with a wrong block must fail."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.md"
        for text in ("```python\nassert 1 == 2\n```\n", "```bash\nfalse\n```\n", "```console\n$ ls\n```\n", "% not run: too long\n```bash\nls\n```\n"):
            page.write_text(text)
            if run(page, photos, programs)[0] is None:
                return f"this must fail and does not:\n{text}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", type=pathlib.Path)
    options = parser.parse_args()
    pages = [page.resolve() for page in options.pages] or sorted(page for page in DOCS.rglob("*.md") if page.name not in ("README.md", "SKILL.md"))
    failed = ran = left = 0
    with tempfile.TemporaryDirectory(prefix="stoker_photos_") as folder:
        programs = program_folder(folder)
        photos = pathlib.Path(folder) / "photos"
        subprocess.run([programs / "stoker", "make-shapes", "--out", photos, "--count", "240", "--test-count", "60", "--size", "96"],
                       check=True, capture_output=True)
        problem = broken_blocks_are_found(photos, programs)
        if problem:
            print(problem)
            return 1
        with ThreadPoolExecutor(2) as pool:
            for page, (problem, blocks, left_out, seconds) in zip(pages, pool.map(lambda page: run(page, photos, programs), pages)):
                ran, left = ran + blocks, left + left_out
                if problem:
                    failed += 1
                    print(f"FAILED {page}\n{problem}", flush=True)
                elif seconds > 5:
                    print(f"passed {page.name}: {seconds:.0f} s", flush=True)
    print(f"{len(pages)} pages, {ran} blocks ran, {left} are marked as not run, {failed} pages failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
