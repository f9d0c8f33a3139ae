"""Libraries that read a store, as participants: store_readers.py NAME ADDRESS. The protocol is that of ../peer.py; a round is one shuffled epoch.

ADDRESS is s3://BUCKET/PREFIX; endpoint and keys are in the environment, as AWS's tools find them. Each makes (50, 3, 224, 224) uint8 batches of
random-resized crops with random flips, without worker processes. Nothing is kept between rounds: those that copy shards to a disk get a new folder.
"""
import os
import shutil
import tempfile

import readers

ENDPOINT = os.environ["AWS_ENDPOINT_URL"]


def names(address):
    """Returns the keys that begin with the address's prefix, in order, and its bucket."""
    import boto3

    bucket, prefix = address.removeprefix("s3://").split("/", 1)
    pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix + "/")
    return bucket, sorted(entry["Key"] for page in pages for entry in page["Contents"])


def boto(address):
    """An object for each image, read when it is wanted."""
    import boto3
    from torch.utils.data import Dataset

    bucket, keys = names(address)
    classes = sorted({key.split("/")[-2] for key in keys})
    labels = {name: number for number, name in enumerate(classes)}
    make = readers.from_bytes(readers.torchvision_pillow())

    class Objects(Dataset):
        def __init__(self):
            self.client = boto3.client("s3")

        def __len__(self):
            return len(keys)

        def __getitem__(self, index):
            data = self.client.get_object(Bucket=bucket, Key=keys[index])["Body"].read()
            return make(data), labels[keys[index].split("/")[-2]]

    return readers.torch_loader(Objects(), shuffle=True), ("torch", "torchvision", "boto3", "pillow")


def s3fs_of(address, make):
    """Tar shards one after the other, through s3fs's files and WebDataset's buffer of 1,000 samples."""
    import s3fs
    import torch
    import webdataset as wds

    torch.set_num_threads(1)
    files = s3fs.S3FileSystem(endpoint_url=ENDPOINT, default_cache_type="readahead")
    wds.gopen_schemes["s3"] = lambda url, mode="rb", bufsize=8192, **_: files.open(url, mode)
    bucket, keys = names(address)
    shards = [f"s3://{bucket}/{key}" for key in keys if key.endswith(".tar")]
    dataset = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000).to_tuple("jpg", "cls")
    return readers.torch_loader(dataset.map_tuple(make, int)), ("torch", "torchvision", "webdataset", "s3fs", "pillow")


def webdataset(address):
    return s3fs_of(address, readers.from_bytes(readers.torchvision_pillow()))


def webdataset_v2(address):
    return s3fs_of(address, readers.decode_v2())


class NewFolders:
    """Batches of a data set that copies shards to a disk: each round begins with an empty folder."""

    def __init__(self, open_batches):
        self.open_batches = open_batches

    def __iter__(self):
        folder = tempfile.mkdtemp()
        try:
            yield from self.open_batches(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def streaming(address):
    import torch
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    torch.set_num_threads(1)
    os.environ["S3_ENDPOINT_URL"] = ENDPOINT
    pictures = readers.pictures_of(StreamingDataset)

    def open_batches(folder):
        clean_stale_shared_memory()
        return readers.torch_loader(pictures(remote=address, local=folder, shuffle=True, batch_size=readers.BATCH))

    return NewFolders(open_batches), ("torch", "torchvision", "mosaicml-streaming", "pillow")


def litdata(address):
    import torch
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming import downloader
    from litdata.streaming.resolver import Dir

    torch.set_num_threads(1)
    # LitData has no option for a server without TLS.
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    pictures = readers.pictures_of(StreamingDataset)

    def open_batches(folder):
        data = pictures(Dir(path=folder, url=address), shuffle=True, storage_options={"endpoint_url": ENDPOINT})
        return StreamingDataLoader(data, batch_size=readers.BATCH)

    return NewFolders(open_batches), ("torch", "torchvision", "litdata", "boto3", "pillow")


if __name__ == "__main__":
    readers.main(globals())
