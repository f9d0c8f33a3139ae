"""Writes an image folder in the form of one library: make_shards.py mds|litdata|tfrecord|snappy|zstd FOLDER OUT.

Each library's own writer is used, with the bytes of the files as they are.
"""
import os
import sys
from pathlib import Path


def samples(folder):
    """Yields the path and the label of every file, in the order of torchvision's ImageFolder."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    for label, name in enumerate(classes):
        for path in sorted(Path(folder, name).iterdir()):
            yield path, label


def write_mds(folder, out):
    from streaming import MDSWriter

    with MDSWriter(out=out, columns={"image": "bytes", "label": "int"}, size_limit=1 << 24) as writer:
        for path, label in samples(folder):
            writer.write({"image": path.read_bytes(), "label": label})


def read_sample(item):
    path, label = item
    return {"image": Path(path).read_bytes(), "label": label}


def write_litdata(folder, out):
    import litdata

    inputs = [(str(path), label) for path, label in samples(folder)]
    litdata.optimize(fn=read_sample, inputs=inputs, output_dir=out, chunk_bytes="16MB", num_workers=1)


def write_tfrecord(folder, out):
    import tensorflow as tf

    def feature(image, label):
        return {"image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))}

    os.makedirs(out)
    with tf.io.TFRecordWriter(os.path.join(out, "train-00000-of-00001")) as writer:
        for path, label in samples(folder):
            example = tf.train.Example(features=tf.train.Features(feature=feature(path.read_bytes(), label)))
            writer.write(example.SerializeToString())


def write_parquet(folder, out, **options):
    import pyarrow
    from pyarrow import parquet

    labelled = [({"bytes": path.read_bytes(), "path": None}, label) for path, label in samples(folder)]
    images, labels = zip(*labelled)
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    os.makedirs(out)
    table = pyarrow.table({"image": pyarrow.array(images, kind), "label": pyarrow.array(labels, pyarrow.int64())})
    parquet.write_table(table, os.path.join(out, "train-00000-of-00001.parquet"), **options)


def write_zstd(folder, out):
    write_parquet(folder, out, compression="zstd", row_group_size=100)


if __name__ == "__main__":
    {"mds": write_mds, "litdata": write_litdata, "tfrecord": write_tfrecord, "snappy": write_parquet, "zstd": write_zstd}[sys.argv[1]](*sys.argv[2:])
