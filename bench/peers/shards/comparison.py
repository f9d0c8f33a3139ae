"""What run and run_store share: the storage of each library, turns on one core, and the page."""
import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "report")]

import measured_on

LOADER = ROOT / "build" / "bench" / "peers" / "peers_loader"


def parser_of(text, work, rounds):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--torch", required=True, help="a Python with torch, torchvision and the libraries that are compared")
    parser.add_argument("--work", type=Path, default=Path(work))
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", type=Path)
    return parser


def write_storage(options, folder, packed, shard_mib, written):
    """Makes an empty folder `folder` with the forms that stoker packs, and those {form: Python} that each library writes itself."""
    shutil.rmtree(options.work, ignore_errors=True)
    folder.mkdir(parents=True)
    for form in packed:
        subprocess.run([ROOT / "build" / "stoker", "pack", "--data", options.data, "--format", form, "--out", folder / form, "--shard-mib",
                        str(shard_mib)], check=True, capture_output=True)
        (folder / form / "seek-index.bin").unlink(missing_ok=True)  # what is compared is decoding without them
    for form, python in written.items():
        if python:
            subprocess.run([python, HERE / "make_shards.py", form, options.data, folder / form], check=False)


def cells(row):
    """Returns the columns that both tables have: title, CPU time, images per second and core; and how stoker compares."""
    us, ratio = row["us"], row["ratio"]
    return (f"{row['title']} | {us['median']:.0f} ({us['low']:.0f}–{us['high']:.0f}) | {1e6 / us['median']:.0f}",
            f"{ratio['median']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})")


def fastest(rows, names):
    return min((row for row in rows if row["name"] in names), key=lambda row: row["us"]["median"])


def write_page(options, program, title, about, table, measured):
    """Writes what measure.in_one_table() returned, as JSON and as a page with the lines `about` and `table`."""
    rows, versions, missing, neighbours = measured
    machine = {**measured_on.describe(HERE), "neighbours": neighbours}
    command = f"bench/peers/shards/{program} " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    report = {"command": command, "machine": machine, "rounds": options.rounds, "rows": rows, "versions": versions, "missing": missing}
    measured_on.write_report(options.out, report, "\n".join([
        f"# {title}", "", *about, "", f"`{command}`, {machine['cpu']}, {machine['date']}, commit {machine['commit']}.",
        measured_on.neighbours_text(neighbours), "", *table, "",
        "Versions: " + ", ".join(dict.fromkeys(", ".join(versions).split(", "))) + ".",
        *(f"Missing: {name}: {reason}" for name, reason in missing.items())]) + "\n")
