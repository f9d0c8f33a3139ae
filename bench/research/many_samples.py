#!/usr/bin/env python3
"""Measures data sets of very many samples: making their index, opening them, the first batch.

    bench/research/many_samples.py --data DIR [--work DIR] [--samples 100000000] [--tar-samples 1281167] [--rounds 7] [--out bench/results/many_samples]

DIR is an image folder; 16 of its pictures are used. Two data sets are made in --work: Parquet files of a million rows each, whose images
are values of a dictionary (so that 100 million samples need no disk of 10 TB; reading a sample is what it always is), and tar shards of 1,000
samples, each a JPEG with holes behind its first bytes and a .cls (so that 150 GB take 10 GB; what is measured is reading the headers). Then
build/bench/many_samples_bench opens them with a cache directory of their own. Needs pyarrow from PyPI.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
YESTERDAY = time.time() - 86400  # an index of files that changed a moment ago is not kept
IMAGE_BYTES = 110_000


def make_parquet(folder, images, samples):
    folder.mkdir(parents=True)
    rows, rng = 1_000_000, np.random.default_rng(0)
    files = samples // rows
    for i in range(files):
        column = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, len(images), rows), pa.int32()), pa.array(images, pa.binary()))
        table = pa.table({"image": column, "label": pa.array(rng.integers(0, 1000, rows), pa.int64())})
        path = folder / f"train-{i:05}-of-{files:05}.parquet"
        pq.write_table(table, path, compression="none", row_group_size=rows)
        os.utime(path, (YESTERDAY, YESTERDAY))


def add_member(file, name, content, size):
    info = tarfile.TarInfo(name)
    info.size = size
    file.write(info.tobuf(tarfile.USTAR_FORMAT))
    file.write(content)
    file.seek(-size % 512 + size - len(content), os.SEEK_CUR)  # a hole


def make_tars(folder, image, samples):
    folder.mkdir(parents=True)
    for shard in range(0, samples, 1000):
        path = folder / f"train-{shard // 1000:06}.tar"
        with open(path, "wb") as file:
            for i in range(shard, min(shard + 1000, samples)):
                add_member(file, f"n{i % 1000:08}/{i:010}.jpg", image[:64], IMAGE_BYTES)
                label = str(i % 1000).encode()
                add_member(file, f"n{i % 1000:08}/{i:010}.cls", label, len(label))
            file.truncate(file.tell() + 1024)
        os.utime(path, (YESTERDAY, YESTERDAY))


def measure(data, work, rounds, batch, neighbours):
    cache = work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = [os.path.join(ROOT, "build", "bench", "many_samples_bench"), "--rounds", str(rounds), "--batch", str(batch), str(data)]
    with neighbours:
        result = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    index_bytes = sum(file.stat().st_size for file in cache.glob("stoker/*.bin"))
    return {"data": data.name, "index_bytes": index_bytes, **json.loads(result.stdout)}


def table(rows):
    lines = ["| data | samples | index made in | index on the disk | opened in | first batch | first batch in the middle of an epoch | memory |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        times = [f"{row[name]['median']:.1f} ms ({row[name]['low']:.1f}–{row[name]['high']:.1f})"
                 for name in ("open_ms", "first_batch_ms", "resumed_batch_ms")]
        lines.append(f"| {row['data']} | {row['samples']:,} | {row['first_open_s']:.1f} s | {row['index_bytes'] / row['samples']:.1f} bytes a sample | "
                     f"{times[0]} | {times[1]} | {times[2]} | {row['anonymous_kib'] / 1024:.0f} MiB |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/many_samples"))
    parser.add_argument("--samples", type=int, default=100_000_000)
    parser.add_argument("--tar-samples", type=int, default=1_281_167)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--out")
    args = parser.parse_args()
    images = [path.read_bytes() for path in sorted(pathlib.Path(args.data).rglob("*")) if path.is_file()][:16]
    shutil.rmtree(args.work, ignore_errors=True)
    make_parquet(args.work / "parquet", images, args.samples)
    make_tars(args.work / "tar", images[0], args.tar_samples)
    neighbours = measured_on.Neighbours()
    rows = [measure(args.work / "parquet", args.work, args.rounds, args.batch, neighbours)]
    # Its pictures cannot be decoded, and 16 of a bad batch would end the feed: only the index counts.
    rows.append(measure(args.work / "tar", args.work, 1, 1, neighbours))
    machine = {**measured_on.describe(HERE), "neighbours": neighbours.summary()}
    report = {"command": "bench/research/many_samples.py " + " ".join(measured_on.public_arguments(sys.argv[1:])), "machine": machine, "rows": rows}
    text = "\n".join([
        "# Very many samples", "",
        f"Wall time in one process without worker threads, page cache warm; batches of {args.batch}; the median of {args.rounds} rounds (lowest–highest).",
        "\"First batch\" is from the constructor of the Loader to a decoded batch of 32 x 32 crops. Memory is what the process has of its own;",
        "pages of the index are the system's to drop. `parquet` has dictionaries of 16 pictures; `tar` has headers and holes, so only the",
        "time to make its index and to open it means something.", "",
        *measured_on.provenance(report["command"], machine), "", *table(rows)]) + "\n"
    measured_on.write_report(args.out, report, text)


if __name__ == "__main__":
    main()
