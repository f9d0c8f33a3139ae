# %% [markdown]
# # Feed a PyTorch loop
#
# You write a training loop in PyTorch that stoker feeds, check that its pixels are torchvision's, and train a small net. It takes about
# 20 seconds on two cores, without a GPU and without a download.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl torch torchvision
# ```
#
# ## The pictures
#
# `stoker make-shapes` draws a data set of ten classes of shapes: 2000 pictures to learn from, 400 to test with, a folder for each class.

# %%
import subprocess
import sys

import torch
import torchvision
from torch import nn
from torchvision import transforms

import stoker
from stoker.torch import DataLoader, ImageFolder

torch.manual_seed(0)
torch.set_num_threads(1)  # the loader's threads have the other core
draw = "make-shapes --out shapes --count 2000 --test-count 400 --size 40"
subprocess.run([sys.executable, "-m", "stoker", *draw.split()], check=True)

# %% [markdown]
# ## The loader
#
# `ImageFolder` and `DataLoader` of `stoker.torch` stand in place of those of torchvision and PyTorch. The transform is torchvision's; stoker
# reads it, and its threads do what it says.

# %%
mean, std = stoker.IMAGENET_MEAN, stoker.IMAGENET_STD
train_transform = transforms.Compose(
    [
        transforms.RandomResizedCrop(32, scale=(0.7, 1)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(mean, std),
    ]
)
test_transform = transforms.Compose(
    [transforms.Resize((32, 32)), transforms.ToTensor(), transforms.Normalize(mean, std)]
)
train = DataLoader(ImageFolder("shapes/train", train_transform), batch_size=32, shuffle=True)
test = DataLoader(ImageFolder("shapes/test", test_transform), batch_size=64)
classes = train.dataset.classes
print(len(train), "steps of an epoch; classes:", ", ".join(classes))
assert len(train) == 63 and len(classes) == 10

# %% [markdown]
# A batch is two tensors, images and labels. Here are its first 24 rows, as the net gets them (with mean and std undone).

# %% alt="24 small pictures of shapes among clutter, cropped and partly mirrored"
images, labels = next(iter(train))
assert images.shape == (32, 3, 32, 32) and labels.shape == (32,)


def shown(rows):
    pixels = rows * torch.tensor(std)[:, None, None] + torch.tensor(mean)[:, None, None]
    grid = torchvision.utils.make_grid(pixels, nrow=12, padding=2).clamp(0, 1)
    return transforms.functional.to_pil_image(grid).resize((816, 138))


shown(images[:24])

# %% [markdown]
# ## The same pixels
#
# A test transform draws nothing at random, so both libraries must give the same numbers. They do, to the last bit.

# %%
theirs = torch.utils.data.DataLoader(
    torchvision.datasets.ImageFolder("shapes/test", test_transform), batch_size=64
)
for (ours, our_labels), (expected, expected_labels) in zip(test, theirs):
    assert torch.equal(ours, expected) and torch.equal(our_labels, expected_labels)
print("400 pictures are equal, bit for bit")

# %% [markdown]
# ## The loop
#
# Nothing in the loop knows stoker. Each `for` over the loader is one epoch, with another order and other crops.


# %%
def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


model = nn.Sequential(
    block(3, 16), block(16, 32), block(32, 64), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10)
)
optimizer = torch.optim.Adam(model.parameters())
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=9 * len(train))


def accuracy():
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for images, labels in test:
            right += int((model(images).argmax(1) == labels).sum())
            seen += len(labels)
    assert seen == 400  # each picture once
    return right / seen


scores = [accuracy()]
for epoch in range(9):
    model.train()
    total = 0.0
    for images, labels in train:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    scores.append(accuracy())
    print(f"epoch {epoch}: loss {total / len(train):.3f}, test accuracy {scores[-1]:.1%}")

# %% [markdown]
# Guessing has 10 %. Nine epochs of 2000 small pictures bring this net above 30 %.

# %%
assert scores[-1] > 0.3 > scores[0]

# %% [markdown]
# ## Without the adapter
#
# `stoker.Loader` is what the adapter is made of. It gives batches of one shape; a row that fills up the last batch, or that stands for a
# damaged file, has weight 0.

# %%
loader = stoker.Loader(
    stoker.folder("shapes/test"),
    batch_size=64,
    size=32,
    augment="resize",
    shuffle=False,
    dtype="float32",
    layout="NCHW",
    mean=mean,
    std=std,
)
weights = [torch.from_dlpack(batch.weights) for batch in loader]
print([int(each.sum()) for each in weights], "rows count in the batches of", len(weights[0]))
assert sum(float(each.sum()) for each in weights) == 400 and len(weights) == 7

# %% [markdown]
# On a GPU give `device="cuda"` to either loader: batches then arrive there. [Feed my trainer](../feed/index.md) has epochs, states and
# several processes; [profile and cure](profile_and_cure.py) asks whether a loop waits for its pictures.
