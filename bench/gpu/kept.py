"""Keeps files for the next call, which may run on a fresh machine: packs the folder --keep into
OUT/kept.tar.

Each folder in it (stoker's plan choices, Inductor's kernels by mode) is packed separately. The
smallest go into kept.tar first; those that do not fit LIMIT_MIB any more are left out and listed.
"""
import io
import os
import tarfile

LIMIT_MIB = 12
MOST_RAW = 10 * LIMIT_MIB << 20  # bytes; a larger folder would take long to pack, and would not fit
ARCHIVE = "kept.tar"


def packed(folder):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=4) as tar:
        tar.add(folder, os.path.basename(folder))
    return data.getvalue()


def bytes_of(folder):
    return sum(os.lstat(os.path.join(where, f)).st_size for where, _, files in os.walk(folder) for f in files)


class Kept:
    """The folder `root` and its archive in `out`. restore() before the first step, save() after each."""

    def __init__(self, root, out):
        self.root, self.archive = os.path.abspath(root), os.path.join(out, ARCHIVE)
        os.makedirs(self.root, exist_ok=True)

    def folder(self, name):
        """Returns the path of a kept folder, which is made if it is missing."""
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        return path

    def restore(self):
        """Unpacks what an earlier call kept and this machine lacks; returns a text about it."""
        if not os.path.exists(self.archive):
            return f"nothing was kept in {self.archive}"
        found = []
        with tarfile.open(self.archive) as outer:
            for member in outer:
                name = member.name.removesuffix(".tar.gz")
                if os.path.isdir(os.path.join(self.root, name)):
                    continue
                with tarfile.open(fileobj=io.BytesIO(outer.extractfile(member).read())) as inner:
                    inner.extractall(self.root)
                found.append(name)
        return f"kept from an earlier call: {', '.join(found) or 'all of it is still here'}"

    def save(self):
        """Replaces the archive atomically; returns {"mib", "folders", "left_out": {name: MiB}}."""
        left_out, total, taken = {}, 0, []
        sizes = {name: bytes_of(os.path.join(self.root, name)) for name in os.listdir(self.root)}
        with tarfile.open(self.archive + ".part", "w") as tar:
            for name, size in sorted(sizes.items(), key=lambda pair: pair[1]):
                data = packed(os.path.join(self.root, name)) if 0 < size <= MOST_RAW else b""
                if size > MOST_RAW or total + len(data) > LIMIT_MIB << 20:
                    left_out[name] = size / (1 << 20)
                elif data:
                    member = tarfile.TarInfo(name + ".tar.gz")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
                    taken.append(name)
                    total += len(data)
        os.replace(self.archive + ".part", self.archive)
        return {"mib": total / (1 << 20), "folders": taken, "left_out": left_out}
