# %% [markdown]
# # Captions
#
# You write tar shards of pictures and captions, feed both, make tokens while the loop trains, and teach two small nets which caption belongs to
# which picture, as CLIP does. It takes about 30 seconds on two cores, without a GPU and without a download.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl numpy pillow torch
# ```
#
# ## Shards of pairs
#
# A sample of such a shard is two members with one key: `000017.jpg` and `000017.txt`. The pictures come from `stoker make-shapes`, the captions
# from the names of their classes.

# %%
import io
import pathlib
import random
import subprocess
import sys
import tarfile

import numpy
import torch
from PIL import Image
from torch import nn

import stoker
from stoker import augment

torch.manual_seed(0)
torch.set_num_threads(2)
draw = "make-shapes --out shapes --count 2000 --test-count 400 --size 40"
subprocess.run([sys.executable, "-m", "stoker", *draw.split()], check=True)

WORDS = ["a picture of a {}", "one {} among clutter", "a {}", "there is a {} here", "a drawing with a {} in it"]
picker = random.Random(0)
files = sorted(pathlib.Path("shapes/train").glob("*/*.jpg"))
picker.shuffle(files)
for shard in range(4):
    with tarfile.open(f"pairs-{shard:03d}.tar", "w") as tar:
        for number, path in enumerate(files[shard * 500 : (shard + 1) * 500]):
            caption = picker.choice(WORDS).format(path.parent.name)
            for name, data in ((".jpg", path.read_bytes()), (".txt", caption.encode())):
                member = tarfile.TarInfo(f"{shard * 500 + number:06d}{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
print(len(files), "pairs in 4 shards")

# %% [markdown]
# ## Pictures with their texts
#
# `targets_from=["txt:text"]` says which member is a text. A batch has a caption for each row, in the order of the rows, whatever was shuffled.

# %%
pairs = stoker.open("pairs-{000..003}.tar", label_from="none", targets_from=["txt:text"])
loader = stoker.Loader(pairs, batch_size=8, size=36, augment="random_resized_crop(scale=(0.5, 1)) | flip", seed=0)
batch = next(iter(loader))
loader.close()
print(len(pairs), "samples")
for text in batch.texts:
    print("  ", text)
assert len(pairs) == 2000 and len(batch.texts) == 8
Image.fromarray(numpy.concatenate(list(numpy.asarray(batch.images)), axis=1)).resize((816, 102))

# %% [markdown]
# ## Tokens ahead of the loop
#
# This tokenizer is a list of words; that of Hugging Face's `tokenizers` goes into the same place. `on_batch` runs in a thread of the Loader, one
# batch ahead. `drop_text(0.1)` empties one caption of ten, as trainings with classifier-free guidance want it.

# %%
vocabulary = {"": 0}
for sample in pairs:
    for word in sample.targets["txt"][0].split():
        vocabulary.setdefault(word, len(vocabulary))
print(len(vocabulary), "words:", " ".join(list(vocabulary)[1:]))


def tokens_of(texts, length=8):
    rows = [[vocabulary[word] for word in text.split()][:length] for text in texts]
    return torch.tensor([row + [0] * (length - len(row)) for row in rows])


def with_tokens(batch):
    return torch.from_dlpack(batch.images), tokens_of(batch.texts), batch.texts


stages = augment.random_resized_crop(32, scale=(0.5, 1)) | augment.flip() | augment.drop_text(0.1)
train = stoker.Loader(
    pairs, batch_size=100, augment=stages, dtype="float32", layout="NCHW", mean=0.5, std=0.25, seed=0, on_batch=with_tokens
)
images, tokens, texts = next(iter(train))
empty = sum(text == "" for text in texts)
print(tuple(images.shape), tuple(tokens.shape), f"{empty} of {len(texts)} captions are empty")
assert images.shape == (100, 3, 32, 32) and tokens.shape == (100, 8) and 0 < empty < 30

# %% [markdown]
# ## Two nets and one loss
#
# One net makes a vector of a picture, the other one of a caption. A picture's vector must be nearest to that of a caption that says the same.


# %%
def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


eye = nn.Sequential(
    block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 32)
)
ear = nn.EmbeddingBag(len(vocabulary), 32, mode="sum", padding_idx=0)
optimizer = torch.optim.Adam([*eye.parameters(), *ear.parameters()], lr=3e-3)


def alike(images, tokens):
    seen, heard = nn.functional.normalize(eye(images)), nn.functional.normalize(ear(tokens) + 1e-6)
    return seen @ heard.T * 10


for epoch in range(6):
    eye.train()
    total = 0.0
    for images, tokens, texts in train:
        kept = [row for row, text in enumerate(texts) if text]  # an empty caption says nothing here
        scores = alike(images[kept], tokens[kept])
        pairs_of_batch = torch.arange(len(kept))
        loss = nn.functional.cross_entropy(scores, pairs_of_batch) + nn.functional.cross_entropy(scores.T, pairs_of_batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += float(loss)
    print(f"epoch {epoch}: loss {total / len(train):.3f}")

# %% [markdown]
# ## Asking in words
#
# The nets have seen no label. Asked which of ten captions fits a test picture, they are right in more than half of the cases; guessing has 10 %.

# %%
test = stoker.folder("shapes/test")
eye.eval()
with torch.no_grad():
    questions = tokens_of([f"a picture of a {name}" for name in test.classes])
    right = 0
    for batch in stoker.Loader(test, batch_size=100, size=32, augment="resize", dtype="float32", layout="NCHW", mean=0.5,
                               std=0.25, shuffle=False, epochs=1):
        answers = alike(torch.from_dlpack(batch.images), questions).argmax(1)
        right += int((answers == torch.from_dlpack(batch.labels)).sum())
print(f"{right / len(test):.1%} of {len(test)} pictures get the right caption")
assert right / len(test) > 0.5

# %% [markdown]
# [Captions and tokens](../feed/captions.md) has lists of tokens that are stored, several captions of a picture, and the loaders of open_clip and
# diffusers.
