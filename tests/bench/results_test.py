#!/usr/bin/env python3
"""Every commit that a page of bench/results names is part of the history, so that its figures can be made again.

results_test.py REPOSITORY; exit code 77 where there is no history, or not all of it.
"""
import pathlib
import re
import subprocess
import sys

COMMIT = re.compile(r'\bcommit"?:? "?([0-9a-f]{7,40})\b')


def git(root, *words):
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)


def main():
    root = pathlib.Path(sys.argv[1])
    if git(root, "rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        print("left out: no git, or a history that is cut off")
        sys.exit(77)
    named = {}
    for page in sorted((root / "bench/results").rglob("*.*")):
        if page.suffix in (".md", ".json"):
            for commit in COMMIT.findall(page.read_text()):
                named.setdefault(commit, page.relative_to(root))
    missing = [f"{page} names {commit}" for commit, page in named.items()
               if git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode != 0]
    print("\n".join(missing) or f"{len(named)} commits are in the history")
    sys.exit(1 if missing or not named else 0)


if __name__ == "__main__":
    main()
