"""Libraries that read shards, as participants: readers.py NAME PATH. The protocol is that of ../peer.py; a round is one shuffled epoch.

Each makes (50, 3, 224, 224) uint8 batches (tf.data: channels last) of random-resized crops with random flips, without worker processes.
"""
import glob
import io
import json
import os
import sys
from importlib.metadata import version

BATCH = 50


def torchvision_pillow():
    from torchvision import transforms

    return transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()])


def from_bytes(transform):
    from PIL import Image

    return lambda data: transform(Image.open(io.BytesIO(data)).convert("RGB"))


def torch_loader(dataset, shuffle=False):
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    return DataLoader(dataset, batch_size=BATCH, shuffle=shuffle)


def folder(path):
    from torchvision.datasets import ImageFolder

    return torch_loader(ImageFolder(path, torchvision_pillow()), shuffle=True), ("torch", "torchvision", "pillow")


def webdataset_of(path, make):
    import torch
    import webdataset as wds

    torch.set_num_threads(1)
    shards = sorted(glob.glob(os.path.join(path, "*.tar")))
    dataset = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000).to_tuple("jpg", "cls")
    return torch_loader(dataset.map_tuple(make, int)), ("torch", "torchvision", "webdataset", "pillow")


def webdataset(path):
    return webdataset_of(path, from_bytes(torchvision_pillow()))


def decode_v2():
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    transform = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])
    return lambda data: transform(decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB))


def webdataset_v2(path):
    return webdataset_of(path, decode_v2())


def datasets(path):
    from datasets import load_dataset

    transform = torchvision_pillow()

    def apply(rows):
        return {"image": [transform(image.convert("RGB")) for image in rows["image"]], "label": rows["label"]}

    files = sorted(glob.glob(os.path.join(path, "*.parquet")))
    data = load_dataset("parquet", data_files=files, split="train", cache_dir=os.path.join(path, "cache"))
    return torch_loader(data.with_transform(apply), shuffle=True), ("torch", "torchvision", "datasets", "pillow")


def pictures_of(dataset):
    """Returns a data set like `dataset`, of Streaming or LitData, that makes tensors of its samples."""
    make = from_bytes(torchvision_pillow())

    class Pictures(dataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return make(sample["image"]), sample["label"]

    return Pictures


def streaming(path):
    from streaming import StreamingDataset

    return torch_loader(pictures_of(StreamingDataset)(local=path, shuffle=True, batch_size=BATCH)), ("torch", "torchvision", "mosaicml-streaming", "pillow")


def litdata(path):
    import torch
    from litdata import StreamingDataLoader, StreamingDataset

    torch.set_num_threads(1)
    return StreamingDataLoader(pictures_of(StreamingDataset)(path, shuffle=True), batch_size=BATCH), ("torch", "torchvision", "litdata", "pillow")


def tfdata(path, antialias=False):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)

    def draw_crop(data):
        """torchvision's distribution: a uniform share of the area, a log-uniform ratio; what is too large is cut (torchvision draws again).
        sample_distorted_bounding_box() draws smaller crops."""
        shape = tf.cast(tf.io.extract_jpeg_shape(data), tf.float32)
        area = tf.random.uniform([], 0.08, 1.0) * shape[0] * shape[1]
        ratio = tf.exp(tf.random.uniform([], tf.math.log(3 / 4), tf.math.log(4 / 3)))
        size = tf.minimum(tf.round(tf.stack([tf.sqrt(area / ratio), tf.sqrt(area * ratio)])), shape[:2])
        begin = tf.floor(tf.random.uniform([2]) * (shape[:2] - size + 1))
        return tf.cast(tf.concat([begin, size], 0), tf.int32)

    def make(record):
        fields = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string),
                                                     "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
        data = fields["image/encoded"]
        image = tf.image.decode_and_crop_jpeg(data, draw_crop(data), channels=3)
        image = tf.image.random_flip_left_right(tf.image.resize(image, [224, 224], antialias=antialias))
        return tf.cast(image, tf.uint8), fields["image/class/label"]

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    options.autotune.enabled = False
    data = tf.data.TFRecordDataset(glob.glob(os.path.join(path, "train-*"))).shuffle(1000).map(make).batch(BATCH)
    return data.with_options(options), ("tensorflow-cpu",)


def tfdata_aa(path):
    return tfdata(path, antialias=True)


def main(participants):
    """Serves the participant of `participants` (by name) that the command names."""
    name, path = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not be taken for an answer
    batches, packages = participants[name](path)
    about = {"ready": True, "version": ", ".join(f"{package} {version(package)}" for package in packages), "given": "distribution"}
    print(json.dumps(about), file=answers, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        images = 0
        for _ in range(int(words[2])):
            for batch in batches:
                images += len(batch["image"] if isinstance(batch, dict) else batch[0])
        print("done", images, file=answers, flush=True)
    answers.close()
    os._exit(0)  # some libraries' threads do not end by themselves


if __name__ == "__main__":
    main(globals())
