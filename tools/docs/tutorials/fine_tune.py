# %% [markdown]
# # Fine-tune a net
#
# You train a net on six classes, keep its body, and teach its head four new classes of which there are few pictures. A frozen body sees the same
# pixels in each epoch, so that each picture is decoded once. It takes about 20 seconds on two cores, without a GPU and without a download; with
# weights of your own the steps are the same.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl torch torchvision
# ```
#
# ## The pictures
#
# Ten classes of shapes, drawn by `stoker make-shapes`. The first six are the large data set, the last four the small one.

# %%
import subprocess
import sys

import torch
import torchvision
from torch import nn

import stoker
from stoker.torch import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)  # the loader's threads have the other core
draw = "make-shapes --out shapes --count 3000 --test-count 1000 --size 40"
subprocess.run([sys.executable, "-m", "stoker", *draw.split()], check=True)

shapes = stoker.folder("shapes/train")
known, new = shapes.classes[:6], shapes.classes[6:]
print("known:", ", ".join(known))
print("new:  ", ", ".join(new))

# %% [markdown]
# `with_labels` takes the samples of some classes, `relabel` numbers the classes anew, and `subset` takes samples by their ids: 24 pictures of
# the new classes are all that there is to learn from. All three are views: no file is copied.


# %%
def of_classes(source, classes):
    chosen = stoker.with_labels(source, classes)
    first = source.classes.index(classes[0])
    return stoker.relabel(chosen, lambda name, label: label - first, classes)


large = of_classes(shapes, known)
all_new = of_classes(shapes, new)
few = [i for label in range(4) for i in [j for j, each in enumerate(all_new.labels()) if each == label][:6]]
small = stoker.subset(all_new, few)
test = of_classes(stoker.folder("shapes/test"), new)
print(len(large), "pictures of known classes,", len(small), "of new ones,", len(test), "to test with")
assert len(small) == 24 and sorted(set(small.labels())) == [0, 1, 2, 3]

# %% [markdown]
# ## The first training
#
# The net learns the six classes from random crops.

# %%
options = {"mean": stoker.IMAGENET_MEAN, "std": stoker.IMAGENET_STD, "size": 32}


def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def make_body():
    pool = [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return nn.Sequential(block(3, 16), block(16, 32), block(32, 64), *pool)


def fit(model, loader, epochs, parameters):
    optimizer = torch.optim.Adam(parameters)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=epochs * len(loader))
    for epoch in range(epochs):
        losses = []
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    return sum(losses) / len(losses)


def accuracy(model):
    model.eval()
    loader = DataLoader(test, 100, augment="resize", **options)
    with torch.no_grad():
        right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in loader)
    return right / len(test)


body = make_body()
crops = stoker.random_resized_crop(scale=(0.7, 1)) | stoker.flip()
loader = DataLoader(large, 32, shuffle=True, augment=crops, seed=0, **options)
first = nn.Sequential(body, nn.Linear(256, len(known)))
print(f"loss of the last epoch: {fit(first, loader, 6, first.parameters()):.3f}")

# %% [markdown]
# ## The new head
#
# The body is frozen: no gradients, and batch norm as it is. Only the new head learns. Nothing about a row is drawn at random, so
# `DecodedCache` keeps what was decoded, and later epochs take it from memory. `stats()` counts: of the 960 rows of 40 epochs
# hardly more than 24 were decoded, one for each picture; the others came from the cache.

# %%
body.eval().requires_grad_(False)
head = nn.Linear(256, len(new))
tuned = nn.Sequential(body, head)
cache = stoker.DecodedCache(10**8)
few_loader = DataLoader(small, 24, shuffle=True, augment="resize", cache=cache, seed=0, **options)
fit(tuned, few_loader, 40, head.parameters())
counts = few_loader.loader.stats()["cache"]
print(counts["misses"], "pictures were decoded,", counts["hits"], "rows came from the cache")
assert 24 <= counts["misses"] < 100 and counts["hits"] > 800

# %% [markdown]
# Beside it the same net from the beginning, on the same 24 pictures, for as many epochs. Guessing has 25 %; what the body knows is worth
# more than five points.

# %%
fresh = nn.Sequential(make_body(), nn.Linear(256, len(new)))
fit(fresh.train(), few_loader, 40, fresh.parameters())
from_scratch, fine_tuned = accuracy(fresh), accuracy(tuned)
print(f"from scratch {from_scratch:.1%}, fine-tuned {fine_tuned:.1%}")
assert fine_tuned > from_scratch + 0.05

# %% [markdown]
# ## What it gets wrong
#
# The test pictures that the tuned net is least sure of, in the order of their losses.

# %% alt="Twelve test pictures, most of them squares and triangles that are hard to see among clutter"
with torch.no_grad():
    batches = list(DataLoader(test, 100, augment="resize", **options))
    images, labels = (torch.cat(parts) for parts in zip(*batches))
    losses = nn.functional.cross_entropy(tuned(images), labels, reduction="none")
worst = losses.argsort(descending=True)[:12]
pixels = images[worst] * torch.tensor(stoker.IMAGENET_STD)[:, None, None]
pixels = (pixels + torch.tensor(stoker.IMAGENET_MEAN)[:, None, None]).clamp(0, 1)
print("they are:", ", ".join(new[int(label)] for label in labels[worst]))
grid = torchvision.utils.make_grid(pixels, nrow=12, padding=2)
torchvision.transforms.functional.to_pil_image(grid).resize((816, 72))

# %% [markdown]
# With torchvision's weights the body is `torchvision.models.resnet18(weights="DEFAULT")` without its `fc`, and its transform is read as it is:
# `ImageFolder(root, weights.transforms())`. The program can do all of this without Python: [train](../train/index.md).
