#!/usr/bin/env python3
"""Prints the resources of the compiled CUDA kernels in the plugins: registers, stack (spilled
registers, and arrays that are indexed at run time), shared memory, and how much of a
multiprocessor's threads they can fill, for each architecture. Needs `cuobjdump` and `c++filt`, but
no GPU.

  kernel_table.py build/libstoker_cuda.so build/libstoker_cuda_train.so --json before.json     # a table, as Markdown and as JSON
  kernel_table.py build/libstoker_cuda*.so --before before.json                                # only what has changed since
  kernel_table.py build/libstoker_cuda_train.so --arch sm_90 --kernels "backward|apply"
"""
import argparse
import json
import re
import shutil
import subprocess
import sys

# Limits of one multiprocessor (CUDA programming guide): blocks, warps, registers, bytes of shared
# memory.
LIMITS = {"sm_80": (32, 64, 65536, 164 << 10), "sm_90": (32, 64, 65536, 228 << 10), "sm_100": (32, 64, 65536, 228 << 10)}
REGISTERS_AT_A_TIME = 256  # a warp gets a multiple of it
SHARED_AT_A_TIME = 128  # bytes; a block gets a multiple of it
SHARED_OF_THE_SYSTEM = 1024  # bytes of each block; from sm_90 on cuobjdump includes them if the block uses any
LARGEST_BLOCK = 1024  # threads, where a kernel has no launch bound

KEY = ("file", "kernel", "arch")
FIGURES = ("registers", "stack", "shared", "threads", "blocks", "occupancy")


class Failed(Exception):
    pass


def output_of(command, given=None):
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise Failed(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout


def usage(text):
    """Returns {(arch, mangled name): {"REG": ..}} of `cuobjdump --dump-resource-usage`."""
    found, arch, name = {}, None, None
    for line in text.splitlines():
        if match := re.match(r"arch = (\w+)", line):
            arch = match[1]
        elif match := re.match(r"\s*Function (\S+):$", line):
            name = match[1]
        elif name and "REG:" in line:
            found[arch, name] = {key: int(value) for key, value in re.findall(r"([A-Z]+):(\d+)", line)}
            name = None
    return found


def launch_bounds(text):
    """Returns {(arch, mangled name): threads} of `cuobjdump --dump-elf`: the kernels'
    __launch_bounds__."""
    found, arch, name, here = {}, None, None, False
    for line in text.splitlines():
        if match := re.match(r"arch = (\w+)", line):
            arch = match[1]
        elif line.startswith("."):
            name = line[len(".nv.info."):].strip() if line.startswith(".nv.info.") else None
        elif "Attribute:" in line:
            here = "EIATTR_MAX_THREADS" in line
        elif here and name and "Value:" in line:
            x, y, z = (int(word, 16) for word in line.split("Value:")[1].split()[:3])
            found[arch, name], here = x * y * z, False
    return found


def blocks_at_once(arch, registers, shared, threads):
    """Returns how many blocks of one kernel a multiprocessor holds."""
    most_blocks, most_warps, all_registers, all_shared = LIMITS[arch]
    warps = -(-threads // 32)
    of_warp = -(-max(registers, 1) * 32 // REGISTERS_AT_A_TIME) * REGISTERS_AT_A_TIME
    of_block = -(-(shared + SHARED_OF_THE_SYSTEM) // SHARED_AT_A_TIME) * SHARED_AT_A_TIME
    by_registers = all_registers // of_warp // 4 * 4 // warps  # each quarter of the multiprocessor has its own
    return min(most_blocks, most_warps // warps, by_registers, all_shared // of_block)


def file_of(mangled):
    """Returns the source file of a kernel in an unnamed namespace, because two files may have
    kernels of the same name."""
    match = re.search(r"_GLOBAL__N__[0-9a-f]+_\d+_(\w+?)_cu_[0-9a-f]+", mangled)
    return match[1] + ".cu" if match else ""


def short_name(demangled):
    """Shortens the whole signature to `apply_kernel<Bf16, 8, 1>`."""
    name = re.sub(r"\(anonymous namespace\)::|\bstoker::|\bcuda::|\bdevice::", "", demangled)
    name = re.sub(r"\(\w+\)(-?\d)", r"\1", name)  # drops the type of an enumerator
    return re.sub(r"^void ", "", name).split("(")[0]


def rows_of(library, cuobjdump):
    used = usage(output_of([cuobjdump, "--dump-resource-usage", library]))
    bounds = launch_bounds(output_of([cuobjdump, "--dump-elf", library]))
    if not used:
        raise Failed(f"{library}: no kernel in it")
    filters = [name for name in ("cu++filt", "c++filt") if shutil.which(name)]
    if not filters:
        raise Failed("neither cu++filt nor c++filt is installed")
    names = sorted({name for _, name in used})
    readable = dict(zip(names, output_of([filters[0]], "\n".join(names) + "\n").splitlines()))
    rows = []
    for (arch, name), figures in used.items():
        if arch not in LIMITS:
            raise Failed(f"{library}: kernel_table.py does not know the limits of {arch}")
        threads = bounds.get((arch, name), LARGEST_BLOCK)
        shared = figures["SHARED"]
        if arch != "sm_80" and shared:
            shared -= SHARED_OF_THE_SYSTEM
        blocks = blocks_at_once(arch, figures["REG"], shared, threads)
        rows.append({"file": file_of(name), "kernel": short_name(readable[name]), "arch": arch, "registers": figures["REG"],
                     "stack": figures["STACK"] + figures["LOCAL"], "shared": shared, "threads": threads, "blocks": blocks,
                     "occupancy": round(blocks * -(-threads // 32) / LIMITS[arch][1], 4)})
    return rows


def read_table(path):
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    if not isinstance(rows, list) or any(not isinstance(row, dict) or row.keys() != {*KEY, *FIGURES} for row in rows):
        raise Failed(f"{path}: not a table of kernels")
    return rows


def load(paths, cuobjdump):
    """Returns the rows of libraries, and of tables that --json wrote."""
    rows = []
    for path in paths:
        try:
            if path.endswith(".json"):
                rows += read_table(path)
            else:
                rows += rows_of(path, cuobjdump)
        except (OSError, ValueError) as error:
            raise Failed(f"{path}: {error}") from error
    return sorted(rows, key=lambda row: (row["file"], row["kernel"], int(row["arch"][3:])))


def cell(name, value):
    return f"{value:.0%}" if name == "occupancy" else str(value)


def table(lines):
    heads = ("file", "kernel", "arch", "registers", "stack, B", "shared, B", "threads", "blocks per SM", "occupancy")
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, ("---",) * 3 + ("---:",) * 6, *lines]) + "\n"


def whole_table(rows):
    return table([row["file"], f"`{row['kernel']}`", row["arch"], *(cell(name, row[name]) for name in FIGURES)] for row in rows)


def changes(before, after):
    """Returns a table of the changes: `64 -> 40`, with `-` on one side for a kernel that is new or
    gone."""
    old = {tuple(row[name] for name in KEY): row for row in before}
    new = {tuple(row[name] for name in KEY): row for row in after}
    lines = []
    for key in sorted(old.keys() | new.keys()):
        sides = [old.get(key), new.get(key)]
        if sides[0] == sides[1]:
            continue
        cells = []
        for name in FIGURES:
            was, now = (cell(name, side[name]) if side else "-" for side in sides)
            cells.append(was if was == now else f"{was} -> {now}")
        lines.append([key[0], f"`{key[1]}`", key[2], *cells])
    return table(lines) if lines else "no kernel has changed\n"


class Wanted:
    """Selects the requested rows. Raises Failed for an architecture or a name that no row has."""

    def __init__(self, arches, names):
        self.arches, self.names = arches, re.compile(names)

    def of(self, rows):
        missing = set(self.arches or ()) - {row["arch"] for row in rows}
        if missing:
            raise Failed(f"--arch: no kernel is compiled for {', '.join(sorted(missing))}")
        kept = [row for row in rows if (not self.arches or row["arch"] in self.arches) and self.names.match(row["kernel"])]
        if not kept:
            raise Failed(f"--kernels: no kernel's name begins with {self.names.pattern}")
        return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="plugins (.so), or tables that --json wrote")
    parser.add_argument("--before", nargs="+", default=[], help="the same of an earlier build: print only what has changed")
    parser.add_argument("--json", metavar="FILE", help="write the table there, too")
    parser.add_argument("--arch", nargs="+", metavar="ARCH", help="only these architectures")
    parser.add_argument("--kernels", default="", metavar="REGEX", help="only kernels whose name begins so")
    parser.add_argument("--cuobjdump", default="cuobjdump", help="where it is, if not on the path")
    arguments = parser.parse_args()
    try:
        wanted = Wanted(arguments.arch, arguments.kernels)
        rows = wanted.of(load(arguments.inputs, arguments.cuobjdump))
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
        text = changes(wanted.of(load(arguments.before, arguments.cuobjdump)), rows) if arguments.before else whole_table(rows)
        sys.stdout.write(text)
    except (Failed, OSError, re.error) as error:
        sys.exit(f"kernel_table.py: {error}")


if __name__ == "__main__":
    main()
