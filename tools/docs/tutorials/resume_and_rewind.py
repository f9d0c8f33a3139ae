# %% [markdown]
# # Resume and rewind
#
# You stop a training within an epoch and go on exactly there, find the step at which the loss jumped, have its batch again, and find the
# wrong labels that did it. It takes about 15 seconds on two cores, without a GPU.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl numpy pillow torch
# ```
#
# ## Data with a fault
#
# `stoker.synthetic` makes pictures without a disk: a pattern for each class, and noise. Then 60 of 1200 get a wrong label, as it happens in data
# of other people.

# %%
import random

import numpy
import torch
from PIL import Image
from torch import nn

import stoker
import stoker.losses

torch.manual_seed(0)
torch.set_num_threads(1)  # the loader's threads have the other core
patterns = stoker.synthetic(1200, size=36)
wrong = set(random.Random(1).sample(range(len(patterns)), 60))
labels = [(label + 3) % 10 if i in wrong else label for i, label in enumerate(patterns.labels())]
faulty = stoker.relabel(patterns, labels)


def make_loader():
    return stoker.Loader(
        faulty,
        batch_size=50,
        augment="random_crop(32) | flip",
        dtype="float32",
        layout="NCHW",
        mean=0.5,
        std=0.25,
        seed=3,
    )


# %% [markdown]
# ## Stop and go on
#
# `state_dict()` is a few numbers: the position after the batches that the loop has had. A loader that is made in the same way and given the
# state goes on with the next batch, byte for byte.

# %%
loader = make_loader()
batches = iter(loader)
for _ in range(5):
    next(batches)
state = loader.state_dict()
print(state)
expected = [(batch.step, numpy.array(batch.images)) for batch in batches]
loader.close()

resumed = make_loader()
resumed.load_state_dict(state)
rest = [(batch.step, numpy.array(batch.images)) for batch in resumed]
resumed.close()
print("steps", rest[0][0], "to", rest[-1][0], "of the epoch came after the state")
assert [step for step, _ in rest] == list(range(5, 24))
assert all((mine == theirs).all() for (_, mine), (_, theirs) in zip(rest, expected))

# %% [markdown]
# ## A run that is watched
#
# `record()` keeps the loss of each step and, with `rows=`, of each row. In step 100 something happens to the run: the
# labels of one batch come in another order than its pictures.


# %%
def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


net = nn.Sequential(
    block(3, 16), block(16, 32), block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
loader = make_loader()
watched = stoker.watch(loader, folder="watch")
for epoch in range(8):
    for batch in watched:
        scores = net(torch.from_dlpack(batch.images))
        labels = torch.from_dlpack(batch.labels).long()
        labels = labels.roll(1) if batch.step == 100 else labels
        each = nn.functional.cross_entropy(scores, labels, reduction="none")
        optimizer.zero_grad()
        each.mean().backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        watched.record(each.mean(), norm, rows=each)
    print(f"epoch {epoch}: loss {watched.kept_losses().steps()['loss'][-24:].mean():.3f}")

# %% [markdown]
# ## The step that did it
#
# `spikes()` lists the steps that stand out from those before them, by loss or by gradient norm. Step 100 is the first by its score.

# %%
spikes = watched.spikes()
for spike in spikes[:4]:
    print(f"step {spike.step}: loss {spike.loss:.2f}, gradient norm {spike.grad_norm:.1f}, score {spike.score:.0f}")
assert spikes[0].step == 100

# %% [markdown]
# `rewind` draws that step again, in the time of one batch, wherever it lies. The rows come with the losses that they had, the highest first.

# %%
step = stoker.rewind(watched, spikes[0].step)
for row in step.ranked()[:4]:
    print(f"loss {row.loss:.2f}  {row.name}  label {row.label}  {row.draws}")
again = make_loader()
again.set_epoch(100 // len(again))
expected = next(batch for batch in again if batch.step == 100)
assert (numpy.asarray(step.batch.images) == numpy.asarray(expected.images)).all()
again.close()

# %% [markdown]
# ## The samples that did it
#
# Over the whole run, the samples with the highest mean loss: most of them are those whose label is wrong. `hardest` names 60 here, as many as
# are wrong; a guess would hit 3.

# %% alt="Twelve coloured patterns: the samples with the highest losses"
hardest = stoker.losses.Losses("watch").hardest(60)
hits = sum(each.id in wrong for each in hardest)
print(f"{hits} of the 60 hardest samples have a wrong label")
assert hits > 30

sheet = Image.new("RGB", (12 * 68, 68), "white")
for place, each in enumerate(hardest[:12]):
    tile = Image.fromarray(numpy.asarray(patterns[each.id].image()))
    sheet.paste(tile.resize((64, 64)), (place * 68, 2))
    print(f"loss {each.loss:.2f}: {patterns[each.id].name} has the label {faulty.classes[faulty.label(each.id)]}")
sheet

# %% [markdown]
# The run goes on without them: `stoker.subset(source, rest)`. `loader.close()` ends the threads; the folder outlives the run, and
# `stoker.rewind("watch", 100, loader=make_loader())` works in another process.

# %%
loader.close()
kept = stoker.subset(faulty, sorted(set(range(len(faulty))) - {each.id for each in hardest}))
step = stoker.rewind("watch", 100, loader=make_loader())
print(len(kept), "samples are left; step", step.step, "again, from the folder alone:", len(step.rows), "rows")
assert len(kept) == 1140 and (numpy.asarray(step.batch.images) == numpy.asarray(expected.images)).all()
