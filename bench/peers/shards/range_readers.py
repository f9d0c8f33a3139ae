"""Clients of stores, as participants: range_readers.py NAME ENDPOINT BYTES COUNT REQUESTS. The protocol is that of ../peer.py; a round reads COUNT ranges of
BYTES, REQUESTS at a time, from the object s3://data/object; `s3dlio_into` the objects s3://data/object-BYTES.
"""
import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

BUCKET, KEY = "data", "object"
URI = f"s3://{BUCKET}/{KEY}"
OBJECT = 1 << 28
TOGETHER = 64  # ranges of one call of obstore's get_ranges, which reads the same one once only


def places_of(size):
    """Far enough from each other that obstore joins none of them."""
    return range(0, OBJECT - size + 1, size + (2 << 20))


def offsets(size, count):
    places = places_of(size)
    return [places[number % len(places)] for number in range(count)]


def open_obstore(endpoint):
    from obstore.store import S3Store

    # The certificate is made for the measurement; obstore trusts the system's alone.
    client = {"allow_http": True, "allow_invalid_certificates": True}
    return S3Store(BUCKET, endpoint=endpoint, virtual_hosted_style_request=False, client_options=client)


def in_threads(read, requests):
    pool = ThreadPoolExecutor(requests)
    return lambda size, count: sum(pool.map(lambda offset: len(read(offset, size)), offsets(size, count)))


def by_asyncio(make_reader, requests):
    """make_reader(size) returns a coroutine function of an offset, which returns a length; each task has its own."""
    async def task(read, places):
        return sum([await read(offset) for offset in places])

    async def every(size, count):
        places = iter(offsets(size, count))
        return sum(await asyncio.gather(*(task(make_reader(size), places) for _ in range(requests))))

    return lambda size, count: asyncio.run(every(size, count))


def obstore_threads(endpoint, requests):
    import obstore

    store = open_obstore(endpoint)
    return in_threads(lambda offset, size: obstore.get_range(store, KEY, start=offset, length=size), requests)


def obstore_ranges(endpoint, requests):
    """Many ranges by one call, 10 of them at a time."""
    import obstore

    store = open_obstore(endpoint)

    def read(size, count):
        places = offsets(size, count)
        together = min(TOGETHER, len(places_of(size)))
        groups = [places[first:first + together] for first in range(0, count, together)]
        return sum(len(each) for group in groups for each in obstore.get_ranges(store, KEY, starts=group, lengths=[size] * len(group)))

    return read


def s3dlio_async(endpoint, requests):
    import s3dlio

    def make_reader(size):
        async def read(offset):
            return len((await s3dlio.get_range_async(URI, offset, size)).memoryview())

        return read

    return by_asyncio(make_reader, requests)


def s3dlio_into(endpoint, requests):
    """Whole objects, into memory that was used before."""
    import s3dlio

    def make_reader(size):
        memory = bytearray(size)

        async def read(offset):
            return await s3dlio.get_into_async(f"{URI}-{size}", memory, expected_len=size)

        return read

    return by_asyncio(make_reader, requests)


def main(name, endpoint, size, count, requests):
    package = name.split("_")[0]
    read = globals()[name](endpoint, int(requests))
    print(json.dumps({"ready": True, "version": f"{package} {version(package)}", "given": "boxes"}), flush=True)
    for line in sys.stdin:
        if line.split()[0] != "run":
            return
        ranges = int(count) * int(line.split()[2])
        if read(int(size), ranges) != int(size) * ranges:
            raise RuntimeError("an answer is too short")
        print(f"done {ranges}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
