#!/usr/bin/python3
"""Decodes every file of some folders in two random orders, each with one decoder for all, and once with a fresh decoder for each
file: status, text, pixels and crops of a file must be the same all three times.

  check_orders.py --decoder build/tests/decode/decode_files [--seed S] DIR...

Takes any folders, for example the files that the fuzz targets have collected (tests/fuzz/corpus_files). Exit codes: 0 all are
the same; 1 some are not, or the decoder died; the paths are printed.
"""
import argparse
import hashlib
import os
import random
import sys

from decoder_process import DecoderProcess


def find_files(folders):
    return sorted(os.path.join(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names)


def answers(program, how, perturb, paths):
    """Returns {path: (line of the result, digest of the pixels)}, up to the file that ended the decoder."""
    decoder, found = DecoderProcess(program, how, perturb), {}
    for path in paths:
        answer = decoder.decode(path)
        if answer is None:
            print(f"{path}: the decoder ended")
            break
        found[path] = answer[0], hashlib.sha256(answer[1]).digest()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--decoder", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    files = find_files(args.folders)
    if not files:
        parser.error(f"no files in {', '.join(args.folders)}")
    rng = random.Random(args.seed)
    alone = answers(args.decoder, "fresh", 0x55, files)
    faults = len(files) - len(alone)
    for perturb in (0xA3, 0x0F):
        rng.shuffle(files)
        used = answers(args.decoder, "used", perturb, files)
        for path in files:
            if used.get(path) != alone.get(path):
                faults += 1
                print(f"{path}: {used.get(path, ['nothing'])[0]!r} after others, {alone.get(path, ['nothing'])[0]!r} alone")
    sound = sum(line.startswith("ok ") for line, _ in alone.values())
    print(f"{len(files)} files, {sound} of them sound, in two orders of seed {args.seed}; faults: {faults or 'none'}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
