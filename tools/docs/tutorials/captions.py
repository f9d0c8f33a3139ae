# %% [markdown]
# # Captions
#
# You write tar shards of pictures and captions, feed both, make tokens while the loop trains, and teach two small nets which caption belongs to
# which picture, as CLIP does. It takes about 15 seconds on two cores, without a GPU and without a download.
#
# ```bash
# pip install dist/stoker-*-cp312-abi3-*.whl numpy pillow torch
# ```
#
# ## Shards of pairs
#
# A sample of such a shard is two members with one key: `000017.jpg` and `000017.txt`. The pictures are drawn here: a square, a disc or a
# triangle in one of six colours, on a noisy ground.

# %%
import io
import random
import tarfile

import numpy
import torch
from PIL import Image, ImageDraw
from torch import nn

import stoker
from stoker import augment

torch.manual_seed(0)
torch.set_num_threads(1)  # the loader's threads have the other core
picker = random.Random(0)
noise = numpy.random.default_rng(0)
COLOURS = {"red": (200, 40, 40), "green": (40, 160, 60), "blue": (50, 70, 210), "yellow": (220, 200, 40), "white": (240, 240, 240),
           "black": (15, 15, 15)}
SHAPES = ["square", "disc", "triangle"]
SENTENCES = ["a {} {}", "a picture of a {} {}", "there is a {} {} here", "one {} {} on a noisy ground"]


def drawn(colour, shape):
    picture = Image.fromarray(noise.integers(90, 170, (40, 40, 3)).astype("uint8"))
    pen, side = ImageDraw.Draw(picture), picker.randint(14, 26)
    x, y = picker.randint(2, 37 - side), picker.randint(2, 37 - side)
    if shape == "triangle":
        pen.polygon([(x, y + side), (x + side, y + side), (x + side // 2, y)], fill=COLOURS[colour])
    else:
        draw = pen.rectangle if shape == "square" else pen.ellipse
        draw((x, y, x + side, y + side), fill=COLOURS[colour])
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=92)
    return data.getvalue()


def write_shard(name, numbers):
    with tarfile.open(name, "w") as tar:
        for number in numbers:
            colour, shape = picker.choice(list(COLOURS)), picker.choice(SHAPES)
            caption = picker.choice(SENTENCES).format(colour, shape)
            for end, data in ((".jpg", drawn(colour, shape)), (".txt", caption.encode())):
                member = tarfile.TarInfo(f"{number:06d}{end}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


for shard in range(4):
    write_shard(f"pairs-{shard:03d}.tar", range(500 * shard, 500 * shard + 500))
write_shard("test.tar", range(400))

# %% [markdown]
# ## Pictures with their texts
#
# `targets_from=["txt:text"]` says which member is a text. A batch has a caption for each row, in the order of the rows, whatever was shuffled.

# %% alt="Eight noisy pictures with a coloured square, disc or triangle, in the order of the captions above"
pairs = stoker.open("pairs-{000..003}.tar", label_from="none", targets_from=["txt:text"])
loader = stoker.Loader(pairs, batch_size=8, size=36, augment="random_resized_crop(scale=(0.7, 1)) | flip", seed=0)
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


stages = augment.random_resized_crop(32, scale=(0.7, 1)) | augment.flip() | augment.drop_text(0.1)
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
    block(3, 16), block(16, 32), block(32, 64), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 32)
)
ear = nn.EmbeddingBag(len(vocabulary), 32, mode="sum", padding_idx=0)
optimizer = torch.optim.Adam([*eye.parameters(), *ear.parameters()], lr=3e-3)


def alike(images, tokens):
    seen, heard = nn.functional.normalize(eye(images)), nn.functional.normalize(ear(tokens) + 1e-6)
    return seen @ heard.T * 10


for epoch in range(8):
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
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train):.3f}")

# %% [markdown]
# ## Asking in words
#
# The nets have seen no label. Asked which of 18 captions fits a test picture, in words that are put as none of the sentences above, they are
# right in more than 60 % of the cases; guessing has 6 %.

# %%
test = stoker.open("test.tar", label_from="none", targets_from=["txt:text"])
answers = [(colour, shape) for colour in COLOURS for shape in SHAPES]
eye.eval()
right = 0
with torch.no_grad():
    questions = tokens_of([f"{colour} {shape}" for colour, shape in answers])
    for batch in stoker.Loader(test, batch_size=100, size=32, augment="resize", dtype="float32", layout="NCHW", mean=0.5,
                               std=0.25, shuffle=False, epochs=1):
        chosen = alike(torch.from_dlpack(batch.images), questions).argmax(1)
        for choice, text in zip(chosen.tolist(), batch.texts):
            right += all(word in text.split() for word in answers[choice])
print(f"{right / len(test):.1%} of {len(test)} pictures get the right caption")
assert right / len(test) > 0.6

# %% [markdown]
# [Captions and tokens](../feed/captions.md) has lists of tokens that are stored, several captions of a picture, and the loaders of open_clip and
# diffusers.
