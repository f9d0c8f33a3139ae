#!/usr/bin/env python3
"""Measures the same pictures in a folder, in shards of each format, and in a list, side by side.

    bench/research/source_formats.py --data DIR [--work DIR] [--rounds 7] [--limit 2000] [--out bench/results/source_formats]

DIR is an image folder. Its pictures are written to --work as tar and as Parquet (by `stoker pack`), as Parquet by pyarrow with
its own defaults (SNAPPY with dictionaries, pages of 1 MB that a thousand pictures may share), with ZSTD, as TFRecord, and as a CSV
list; then build/bench/source_formats_bench measures them in turn. Needs pyarrow and crc32c from PyPI.
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(key, number, content):
    return field(1, field(1, key.encode()) + field(2, field(number, content)))


def checksum(data):
    crc = crc32c.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_tfrecord(path, samples):
    with open(path, "wb") as file:
        for image, label in samples:
            example = field(1, feature("image/encoded", 1, field(1, image)) + feature("image/class/label", 3, field(1, varint(label))))
            length = struct.pack("<Q", len(example))
            file.write(length + checksum(length) + example + checksum(example))


def write_parquet(path, samples, **options):
    images = pa.array([{"bytes": image, "path": None} for image, _ in samples], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    table = pa.table({"image": images, "label": pa.array([label for _, label in samples], pa.int64())})
    pq.write_table(table, path, **options)


def make_all(data, work):
    """Returns NAME=PATH of each form."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    stoker = os.path.join(ROOT, "build", "stoker")
    for form in ("tar", "parquet"):
        subprocess.run([stoker, "pack", "--data", data, "--format", form, "--out", work / form], check=True)
        # Seek indexes are not what is compared.
        (work / form / "seek-index.bin").unlink(missing_ok=True)
    folders = sorted(entry.name for entry in os.scandir(data) if entry.is_dir())
    names = [(os.path.join(folder, name), label) for label, folder in enumerate(folders)
             for name in sorted(os.listdir(os.path.join(data, folder)))]
    samples = [(pathlib.Path(data, name).read_bytes(), label) for name, label in names]
    write_tfrecord(work / "train-00000-of-00001", samples)
    write_parquet(work / "snappy.parquet", samples)
    write_parquet(work / "zstd.parquet", samples, compression="zstd", row_group_size=100)
    with open(work / "list.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("path", "label"), *((os.path.abspath(os.path.join(data, name)), label) for name, label in names)])
    forms = {"folder": data, "tar": work / "tar", "parquet": work / "parquet", "tfrecord": work / "train-00000-of-00001",
             "list": work / "list.csv", "snappy": work / "snappy.parquet", "zstd": work / "zstd.parquet"}
    return [f"{name}={path}" for name, path in forms.items()], len(samples), sum(len(image) for image, _ in samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/source_formats"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--out")
    args = parser.parse_args()
    sources, count, size = make_all(args.data, args.work)
    neighbours = measured_on.Neighbours()
    with neighbours:
        command = [os.path.join(ROOT, "build", "bench", "source_formats_bench"), "--rounds", str(args.rounds), "--limit", str(args.limit)]
        result = subprocess.run([*command, *sources], check=True, capture_output=True, text=True)
    machine = {**measured_on.describe(HERE), "neighbours": neighbours.summary()}
    report = {"command": "bench/research/source_formats.py " + " ".join(measured_on.public_arguments(sys.argv[1:])),
              "machine": machine, "pyarrow": pa.__version__, **json.loads(result.stdout.strip().splitlines()[-1])}
    lines = ["# The same pictures in a folder, in shards and in a list", "",
             f"{count} pictures, {size / count / 1000:.0f} kB each on average; {report['sources'][0]['samples']} of them in shuffled order,",
             f"{args.rounds} rounds in which the sources take turns, one thread, CPU time, page cache warm. `row`: reading and a random-resized",
             "crop to 224 with a flip, pixel policy fast, without seek indexes.", "",
             *measured_on.provenance(report["command"], machine), "",
             "| source | read, us | row, us | rate of rows beside the folder (lowest–highest) |", "|---|---|---|---|"]
    for source in report["sources"]:
        row = source["row"]
        lines.append(f"| {source['name']} | {source['read']['us']:.1f} | {row['us']:.1f} | {row['rate']:.3f} ({row['low']:.3f}–{row['high']:.3f}) |")
    text = "\n".join(lines) + "\n"
    measured_on.write_report(args.out, report, text)


if __name__ == "__main__":
    main()
