# %% [markdown]
# # Profile and cure
#
# You measure whether a training loop waits for its pictures, change its loader, and measure again. Then `stoker profile` says what limits a feed
# on its own. The GPU is emulated: each step sleeps as long as a device would compute. It takes about 15 seconds on two cores.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl torch torchvision
# ```
#
# ## A loop that waits
#
# 100 pictures of 320 x 320 pixels, and the usual loader of torchvision and PyTorch, whose crops are made in the loop's own process.

# %%
import json
import pathlib
import subprocess
import sys

import torch
import torchvision
from torchvision import transforms

import stoker
import stoker.torch


def program(line):
    return subprocess.run(
        [sys.executable, "-m", "stoker", *line.split()], check=True, text=True, capture_output=True
    ).stdout


torch.manual_seed(0)
torch.set_num_threads(1)  # the loader's threads have the other core
program("make-shapes --out shapes --count 100 --test-count 10 --size 320")
transform = transforms.Compose(
    [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(stoker.IMAGENET_MEAN, stoker.IMAGENET_STD),
    ]
)
data = torchvision.datasets.ImageFolder("shapes/train", transform)
slow = torch.utils.data.DataLoader(data, batch_size=10, shuffle=True)

# %% [markdown]
# `stoker.watch` goes around any loader, and `measure_loader` runs it without a loop: so many images per second it gives at most.

# %%
alone = stoker.watch(slow, warm_up=1).measure_loader(9)
print(f"the loader alone gives {alone:.0f} images/s")

# %% [markdown]
# `stoker.emulate` runs a loader against a device. This one takes twice as many images per second as the loader gives, so it must wait.

# %%
demand = 2 * alone
before = stoker.emulate(slow, rate=demand, steps=20)
print(before.report())
print(before.watch.report())
assert before.watch.to_dict()["verdict"]["limit"] == "loader" and before.utilisation < 0.9

# %% [markdown]
# The report says that the loop waits, what a faster loader would bring at most, and how sure it is. In a loop of your own it is
# `loader = stoker.watch(loader)` before the loop and `print(loader.report())` behind it.
#
# ## The cure
#
# The same data set and transform in stoker's `DataLoader`: it reads the transform, decodes only what a crop shows, and works ahead in threads.

# %%
fast = stoker.torch.DataLoader(data, batch_size=10, shuffle=True, seed=0)
after = stoker.emulate(fast, rate=demand, steps=20)
print(after.report())
print(f"the device is busy {before.utilisation:.0%} of the time before, {after.utilisation:.0%} after")
assert after.utilisation > before.utilisation

# %% [markdown]
# A page with every step goes to a file; it needs no network.

# %%
after.watch.to_html("after.html")
print(pathlib.Path("after.html").stat().st_size // 1000, "kB")

# %% [markdown]
# ## What limits a feed
#
# `stoker profile` runs a feed on its own data, without Python. It changes the number of workers for a while, and gives the device the same batch again
# and again, by which it knows what would help. This device takes more than any feed gives.

# %%
print(program("profile --data shapes --size 224 --batch 10 --demand 50000 --seconds 2 --no-trace --out profile"))
verdict = json.loads(pathlib.Path("profile/profile.json").read_text())["verdict"]
assert verdict["waiting_share"] > 0.05

# %% [markdown]
# `profile.json` has the same for programs. Recommendations are sorted by what they bring, each with the rate that it was calculated to reach and the
# range around it.

# %%
print(verdict["headline"])
for each in verdict["recommendations"] + verdict["larger_machine"]:
    print(f"  {each['what']}: {each['images_per_second']:.0f} images/s ({each['low']:.0f} to {each['high']:.0f})")

# %% [markdown]
# [Why does my GPU wait](../wait/index.md) shows the page of a profile for eight kinds of starvation.
