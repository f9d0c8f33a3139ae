#!/usr/bin/env python3
"""Reads a safetensors file by its format alone, with nothing but Python's standard library.

Prints one line per tensor, in the file's order: name, dtype, shape, and the sum of (i + 1) * word i
over its 32-bit words, modulo 2**64; then the metadata's keys. Exit code 1 if the file is not sound.
"""
import json
import struct
import sys


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    at = 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = tensor["data_offsets"]
        count = 1
        for extent in tensor["shape"]:
            count *= extent
        if tensor["dtype"] != "F32" or begin != at or end - begin != 4 * count:
            sys.exit(f"{path}: {name}: {tensor}, expected from byte {at} on")
        words = struct.unpack_from(f"<{count}I", data, 8 + length + begin)
        checksum = sum((i + 1) * word for i, word in enumerate(words)) % 2**64
        print(name, tensor["dtype"], ",".join(map(str, tensor["shape"])), checksum)
        at = end
    if 8 + length + at != len(data):
        sys.exit(f"{path}: {len(data)} bytes, its header accounts for {8 + length + at}")
    print("metadata", ",".join(sorted(metadata)))


main(sys.argv[1])
