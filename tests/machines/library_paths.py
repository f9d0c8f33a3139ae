#!/usr/bin/env python3
"""Where programs and libraries look for others: in no folder that somebody else can write to, the current one above all.

    library_paths.py [--built] FOLDER|FILE...    reads RUNPATH, RPATH, what is needed and what is opened at run time of all ELF files in the
                                                 folders and in the wheels, Debian packages and archives there
    library_paths.py --run PROGRAM               runs it, and the Python package beside it, in a folder with a library for each name that any
                                                 of them asks for, and reads what the loader says (ld.so(8), LD_DEBUG): none may be tried

    --built   folders of this machine may be named, if there is something in them; what is installed or packed names none

Needs the standard library. Exit codes: 0 all is well, 1 something is not, each in one line, 2 usage."""
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

NEEDED, STRINGS, SONAME, RPATH, RUNPATH = 1, 5, 14, 15, 29
# Libraries that our code opens by a bare name, which the system's loader looks for: parts of drivers, and NCCL.
BY_NAME = {"libcuda.so.1", "libnvidia-ml.so.1", "libnccl.so.2"}
# Plugins: staging/plugin.cc puts a folder before the name.
PLUGIN = re.compile(r"libstoker_[a-z_]+\.so")
BUNDLED = re.compile(r"-[0-9a-f]{8}\.so")  # libtbb-4d79fbbd.so.12.8
OURS = re.compile(r"stoker|_core\..*\.so|lib(stoker)_.*\.so.*")


class Elf:
    """The dynamic section of a file of 64 bits; `dynamic` is False for other files."""

    def __init__(self, data):
        self.dynamic, self.paths, self.needed, self.opened = False, [], [], set()
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 16)[0] not in (2, 3):
            return
        at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        segments = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
        tags = [entry for kind, _, offset, _, _, length in segments if kind == 2
                for entry in struct.iter_unpack("<qQ", data[offset:offset + length // 16 * 16])]
        if not tags:
            return
        self.dynamic = True
        address = dict(tags)[STRINGS]
        strings = next(offset + address - start for kind, _, offset, start, _, length in segments
                       if kind == 1 and start <= address < start + length)

        def text(place):
            return data[strings + place:data.index(b"\0", strings + place)].decode()

        self.needed = [text(value) for tag, value in tags if tag == NEEDED]
        self.paths = [text(value) for tag, value in tags if tag in (RPATH, RUNPATH)]
        interpreter = {data[offset:offset + length - 1].decode() for kind, _, offset, _, _, length in segments if kind == 3}
        # Whole texts that are a library's name; those with "@" are symbols.
        names = re.findall(rb"(?<=\0)([\x21-\x3f\x41-\x7e]*[\w+-]\.so(?:\.[0-9]+)*)(?=\0)", data)
        own = {text(value) for tag, value in tags if tag == SONAME}
        self.opened = {name.decode() for name in names} - set(self.needed) - own - interpreter


def elf_of(path):
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
        file.seek(0)
        elf = Elf(file.read())
    return elf if elf.dynamic else None


def problems(name, elf, built):
    """Returns what is wrong with a file, in lines."""
    found = []
    wanted = elf.needed + sorted(elf.opened)
    for path in elf.paths:
        for element in path.split(":"):
            if element == "$ORIGIN" or element.startswith("$ORIGIN/"):
                continue
            if not element.startswith("/"):
                found.append(f"RUNPATH '{path}' has '{element}', which is relative to the current directory")
            elif not built:
                found.append(f"RUNPATH '{path}' has '{element}', a folder of the machine where it was built")
            elif not any(os.path.exists(os.path.join(element, each)) for each in wanted):
                found.append(f"RUNPATH '{path}' has '{element}', where nothing is that it needs")
    found += [f"it needs '{each}', which has a folder" for each in elf.needed if "/" in each]
    if OURS.fullmatch(os.path.basename(name)):
        # auditwheel gives a library in a wheel a name of its own, and leaves the old one among the texts.
        bundled = {each.partition(".so")[0][:-9] for each in elf.needed if BUNDLED.search(each)}
        found += [f"it opens '{each}', which is neither a plugin nor a library that the system's loader finds"
                  for each in sorted(elf.opened)
                  if each not in BY_NAME and not PLUGIN.fullmatch(each) and each.partition(".so")[0] not in bundled]
    return [f"{name}: {each}" for each in found]


def unpacked(path, folder):
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    elif path.endswith(".deb"):
        subprocess.run(["dpkg-deb", "-x", path, folder], check=True)
    else:
        with tarfile.open(path) as archive:
            archive.extractall(folder)


def files_in(path):
    """Yields (name, path) of the files at a path; those of a package as PACKAGE/FILE."""
    if os.path.isdir(path):
        for folder, folders, names in os.walk(path):
            folders[:] = [each for each in folders if each not in ("CMakeFiles", ".git")]
            for name in sorted(names):
                if not os.path.islink(os.path.join(folder, name)):
                    yield from files_in(os.path.join(folder, name))
    elif path.endswith((".whl", ".deb", ".tar.gz")):
        with tempfile.TemporaryDirectory() as folder:
            unpacked(path, folder)
            for name, file in files_in(folder):
                yield os.path.join(path, os.path.relpath(name, folder)), file
    elif os.path.isfile(path):
        yield path, path


def read(paths, built):
    """Returns the lines about everything at the paths, and how many files there are."""
    lines, count = [], 0
    for path in paths:
        for name, file in files_in(path):
            elf = elf_of(file)
            if elf is not None:
                count += 1
                lines += problems(name, elf, built)
    return lines, count


# ---- Beside planted libraries

IN_PYTHON = r"""
import importlib.machinery, importlib.util, os, sys
core, elsewhere = sys.argv[1:]
os.chdir(os.path.dirname(core))
# By a relative path, as a program may do it that changes the current directory then.
loader = importlib.machinery.ExtensionFileLoader("_core", os.path.basename(core))
module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("_core", loader=loader))
os.chdir(elsewhere)
sys.path.insert(0, os.path.dirname(os.path.dirname(core)))
import stoker
for call in (stoker.why_no_cuda, lambda: stoker.tar("http://127.0.0.1:9/x.tar", store=stoker.Store(tries=1)),
             lambda: module.find_blobs("http://127.0.0.1:9/x.tar", module.Split.all,
                                       module.StoreOptions("", "", "", "auto", True, "", 1, 1 << 20, 1, "", 0))):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)
"""


def names_wanted(paths):
    """Returns the names of all libraries that these files ask for, in turn, but those of the C library."""
    names = set(BY_NAME)
    for path in paths:
        elf = elf_of(path)
        names |= {os.path.basename(path), *elf.needed, *(each for each in elf.opened if "/" not in each)}
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        names |= set(re.findall(r"^\s*(\S+) =>", listed, re.MULTILINE))
    names |= {f"libstoker_{each}.so" for each in ("mpi", "cuda", "cuda_train", "curl", "avif", "openjpeg")}
    return sorted(each for each in names if ".so" in each and not re.match(r"(ld-linux.*|libc)\.so", each))


def commands(program, pictures):
    """Commands that open every library that the program may open."""
    train = ["train", "--data", "shapes", "--model", "airnet-narrow", "--batch", "8", "--micro-batch", "8", "--max-steps", "1"]
    yield [program, "info"]
    yield [program, "make-shapes", "--out", "shapes", "--count", "16", "--test-count", "8"]
    yield [program, "check", "--data", pictures]
    yield [program, "check", "--data", "http://127.0.0.1:9/x.tar", "--store-tries", "1"]
    yield [program, *train, "--devices", "cuda:0", "--out", "gpu"]
    yield [program, *train, "--out", "one"]
    mpirun = shutil.which("mpirun")
    if mpirun:
        yield [mpirun, "--oversubscribe", "-np", "2", program, *train, "--devices", "cpu:2", "--out", "two"]


def draw_pictures(folder):
    """A JPEG 2000 and an AVIF file that end early: they open their plugins all the same."""
    os.makedirs(os.path.join(folder, "class"))
    for name, begin in (("a.jp2", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 "), ("b.avif", b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf")):
        with open(os.path.join(folder, "class", name), "wb") as file:
            file.write(begin + bytes(2000))


def tried(log, program, there):
    """Returns the files of the folder `there`, and those with relative paths, that a process has tried to load, from the loader's log of it; of
    processes that are of another program (mpirun), nothing."""
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    mine = re.search(r"initialize program: (.*)", text)
    if mine and os.path.realpath(mine[1]) != os.path.realpath(program):
        return set()
    names = re.findall(r"(?:trying file=|calling init: )(.*)", text) + re.findall(r" file=(\S*/\S*) \[", text)
    # The package's own file is named so by IN_PYTHON.
    return {name for name in names if not name.startswith(("/", "./_core.")) or name.startswith(there + "/")}


def run(program):
    """Returns the lines about planted libraries that were tried."""
    program = os.path.realpath(program)
    beside = os.path.dirname(program)
    cores = [os.path.realpath(path) for path in glob.glob(os.path.join(beside, "python", "stoker", "_core*.so"))]
    ours = [program, *cores]
    for pattern in (os.path.join(beside, "libstoker_*.so"), os.path.join(beside, "..", "lib*", "**", "libstoker_*.so")):
        ours += glob.glob(pattern, recursive=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        there = os.path.join(folder, "there")
        os.makedirs(os.path.join(there, "stoker"))
        names = names_wanted([path for path in ours if elf_of(path)])
        # Any library will do: what is tried is known before its content matters.
        planted = re.search(r"=> (/\S*libstdc\S*)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout)[1]
        for name in names:
            shutil.copy(planted, os.path.join(there, name))
            os.link(os.path.join(there, name), os.path.join(there, "stoker", name))
        draw_pictures(os.path.join(there, "pictures"))
        environment = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "STOKER_PLUGIN_DIR")}
        environment |= {"LD_DEBUG": "libs,files", "XDG_CACHE_HOME": folder, "PYTHONDONTWRITEBYTECODE": "1",
                        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

        def lines_of(words, **more):
            log = os.path.join(folder, "log")
            done = subprocess.run(words, cwd=there, env={**environment, "LD_DEBUG_OUTPUT": log, **more}, capture_output=True, timeout=200,
                                  check=False, stdin=subprocess.DEVNULL)
            shown = " ".join("..." if "\n" in word else word for word in words)
            print(f"{shown}: {done.returncode}", flush=True)
            found = set()
            for path in glob.glob(log + ".*"):
                found |= tried(path, python if words[0] == sys.executable else program, there)
                os.remove(path)
            return [f"{shown}: it looked for {each}" for each in sorted(found)]

        python = subprocess.run([sys.executable, "-c", "import os; print(os.path.realpath('/proc/self/exe'))"], capture_output=True, text=True,
                                check=True).stdout.strip()
        # The test of the test.
        if not lines_of([program, "info"], LD_LIBRARY_PATH="stoker"):
            return ["a library that is looked for in the current directory is not seen"]
        runs = [*commands(program, "pictures"), *([sys.executable, "-c", IN_PYTHON, core, there] for core in cores)]
        print(f"{len(runs)} programs beside {len(names)} planted libraries")
        return [line for words in runs for line in lines_of(words)]


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "--run":
        lines = run(words[1])
    elif words and words != ["--built"] and "--run" not in words:
        built = words[0] == "--built"
        lines, count = read(words[built:], built)
        print(f"{count} programs and libraries")
        if count == 0:
            lines = [f"there is no program and no library in {' '.join(words[built:])}"]
    else:
        print(__doc__, file=sys.stderr)
        return 2
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
