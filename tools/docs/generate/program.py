#!/usr/bin/env python3
"""Writes a page for each subcommand of `stoker`, of its own --help, and one of the stages, of `stoker augment`. program.py --out DIR"""
import argparse
import pathlib
import re
import subprocess
import sys


def said(*words):
    result = subprocess.run([sys.executable, "-m", "stoker", *words], text=True, capture_output=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        sys.exit(f"stoker {' '.join(words)} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout.rstrip()


def subcommands_of(text):
    """Returns {name: its line} of a help text's list of subcommands."""
    found = re.search(r"^Subcommands:\n((?:  .*\n?)+)", text, re.MULTILINE)
    return dict(re.findall(r"^  ([a-z][\w-]*) {2,}(.+)$", found[1], re.MULTILINE)) if found else {}


def escaped(text):
    return re.sub(r"([*_<\[\]$#])", r"\\\1", text)


def help_of(words, level=1):
    """Returns the lines of a subcommand, and of those below it."""
    text = said(*words, "--help")
    before, usage, rest = text.partition("\nUsage:")
    lines = [f"{'#' * level} stoker {' '.join(words)}", ""]
    for paragraph in before.strip().split("\n\n"):
        lines += [escaped(" ".join(paragraph.split())), ""]
    lines += ["```text", f"{usage.strip()}{rest}", "```", ""]
    for name in subcommands_of(text):
        lines += help_of((*words, name), level + 1)
    return lines


def stages():
    """Returns the page of the stages: each has a heading, which links and the search find."""
    before, *blocks = re.split(r"^  (?=\w)", said("augment"), flags=re.MULTILINE)
    example, blocks = blocks[0], blocks[1:]
    lines = ["# Stages of augmentations", "", "What `stoker augment` lists. The [gallery](../../augment/gallery.md) shows each as a picture; `stoker.augment` has them as functions.", "",
             escaped(" ".join(before.split())), "", "```text", example.split("\n")[0], "```", ""]
    for paragraph in example.split("\n\n")[1:]:
        lines += [escaped(" ".join(paragraph.split())), ""]
    for block in blocks:
        text = block.rstrip().splitlines()
        end = next(i for i in range(1, len(text) + 1) if "".join(text[:i]).count("(") == "".join(text[:i]).count(")"))
        signature, head, rest = text[:end], text[end], text[end + 1:]
        lines += [f"## {re.match(r'[a-z_0-9]+', signature[0])[0]}", "", "```text", *(line.removeprefix("  ") for line in signature), "```", ""]
        lines += [escaped(head.strip().rstrip(".")) + ".", "", escaped(" ".join(" ".join(rest).split())), ""]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    found = subcommands_of(said("--help"))
    if len(found) < 10:
        sys.exit(f"stoker --help lists only {len(found)} subcommands; has its layout changed?")
    for name in found:
        (out / f"stoker_{name}.md").write_text("\n".join(help_of((name,))), encoding="utf-8")
    (out / "stages.md").write_text("\n".join(stages()), encoding="utf-8")
    lines = ["# The program", "", "What `stoker SUBCOMMAND --help` says of this version.", "", "| subcommand | what it does |", "|---|---|"]
    lines += [f"| [stoker {name}](stoker_{name}.md) | {escaped(what)} |" for name, what in found.items()]
    lines += ["", "```{toctree}", ":hidden:", "", *(f"stoker_{name}" for name in found), "stages", "```", ""]
    (out / "index.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
