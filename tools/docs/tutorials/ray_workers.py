# %% [markdown]
# # Ray: cores of other machines
#
# Where the cores beside a GPU are too few, workers of Ray fill rows, too: the same bytes. Here Ray runs on this machine alone, which shows all
# but the network. It takes about 20 seconds on two cores.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl ray numpy pillow
# ```
#
# ## Pictures that all workers see
#
# A worker opens the data at the same path, so in a cluster they lie on a shared disk or in a store. `absolute()` matters: actors run in another folder.

# %%
import pathlib
import subprocess
import sys

import numpy
import ray
from PIL import Image

import stoker
import stoker.ray

draw = "make-shapes --out shapes --count 600 --test-count 10 --size 160"
subprocess.run([sys.executable, "-m", "stoker", *draw.split()], check=True)
source = stoker.folder(pathlib.Path("shapes/train").absolute())


def make_loader(**options):
    augment = stoker.random_resized_crop(96) | stoker.color_jitter(0.4, 0.4, 0.2) | stoker.flip()
    return stoker.Loader(source, batch_size=100, augment=augment, seed=5, **options)


# %% [markdown]
# ## An epoch of this machine's own threads
#
# Its batches are what to compare with.

# %%
with make_loader() as alone:
    expected = [numpy.array(batch.images) for batch in alone]
print(len(expected), "batches of", expected[0].shape)

# %% [markdown]
# ## An epoch of two actors
#
# `ray.init` starts Ray here; in a cluster it is `ray.init(address="auto")`. `remote=` asks for two actors with a core each, and `workers=0` leaves
# all rows to them. `stats()` counts the rows that came.

# %%
ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
with make_loader(remote=stoker.ray.workers(2, cpus=1), workers=0) as far:
    batches = [numpy.array(batch.images) for batch in far]
    counts = far.stats()["remote"]
print(counts)
assert counts["rows"] >= 600
assert all((mine == theirs).all() for mine, theirs in zip(batches, expected)) and len(batches) == 6
print("all rows came from the actors, and are the bytes of the first epoch")

# %% alt="Six large crops of shapes with changed colours, side by side"
Image.fromarray(numpy.concatenate(list(batches[0][:6]), axis=1))

# %% [markdown]
# ## Both kinds of workers
#
# Usually this machine's own threads come first, and actors fill what they cannot fill in time. Who fills a row depends on the moment; its
# bytes do not, also where an actor is killed: its rows are asked of another one.

# %%
with make_loader(remote=stoker.ray.workers(1, cpus=1), workers=1) as both:
    batches = [numpy.array(batch.images) for batch in both]
assert all((mine == theirs).all() for mine, theirs in zip(batches, expected)) and len(batches) == 6
print("the same bytes again, from a thread and an actor")

# %% [markdown]
# Close a Loader before Ray is shut down. `stoker plan --node-cores` calculates how many machines are needed;
# [an example](../../../python/examples/ray_train.py) trains with Ray Train.

# %%
ray.shutdown()
