#!/usr/bin/env python3
"""Every commit that a page of bench/results names is part of the history, so that its figures can be made again, and every file
of ours that a page links to is there.

In Markdown every hexadecimal word of 7 to 40 digits, letters among them or after "commit", counts as a commit of ours; one of another project is written PROJECT@COMMIT.
In JSON the value of "commit" counts. results_test.py REPOSITORY; exit code 77 where there is no history, or not all of it.
"""
import pathlib
import re
import subprocess
import sys

WORD = re.compile(r"(?:\bcommit |(?<![\w@.-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f]))([0-9a-f]{7,40})(?![\w.-]*\w)")
KEY = re.compile(r'"commit": "([0-9a-f]{7,40})')
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def git(root, *words):
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)


def missing_commits(root):
    named = {}
    for page in sorted((root / "bench/results").rglob("*.*")):
        if page.suffix in (".md", ".json"):
            for commit in (WORD if page.suffix == ".md" else KEY).findall(page.read_text(encoding="utf-8")):
                named.setdefault(commit, page.relative_to(root))
    print(f"{len(named)} commits are named")
    assert named
    return [f"{page} names {commit}, which is not in the history" for commit, page in named.items()
            if git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode != 0]


def missing_files(root):
    pages = [root / name for name in git(root, "ls-files", "*.md").stdout.splitlines() if (root / name).exists()]
    links = [(page, link) for page in pages for link in LINK.findall(page.read_text(encoding="utf-8")) if ":" not in link]
    print(f"{len(links)} links of {len(pages)} pages")
    assert links
    return [f"{page.relative_to(root)} links to {link}, which is not there" for page, link in links
            if not (page.parent / link).exists()]


def main():
    root = pathlib.Path(sys.argv[1])
    if git(root, "rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        print("left out: no git, or a history that is cut off")
        sys.exit(77)
    found = missing_commits(root) + missing_files(root)
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
