"""Runs torchvision's JPEG decoder (nvJPEG on a GPU) for gpu-check. Answers each line on stdin with
one line of JSON.

The files are read beforehand. "decode SECONDS" decodes them batch by batch for this long, whole and
to RGB bytes on the device; "resize SECONDS" also resizes each picture to --size (bilinear,
antialiased) and stacks the batch. The answer is {"images_per_second": ...}; the program ends with
stdin.
"""
import argparse
import sys
import time

from prepare_data import pictures_in
from torch_answers import import_torch, say


def batches(encoded, size):
    """Yields lists of `size` encoded pictures endlessly, again and again from the start."""
    at = 0
    while True:
        yield [encoded[(at + i) % len(encoded)] for i in range(size)]
        at = (at + size) % len(encoded)


def decoder(args):
    """Returns a function from a list of encoded pictures to a list of pictures on the device."""
    from torchvision.io import ImageReadMode, decode_jpeg
    if args.device == "cpu":  # older versions take no lists on the CPU
        return lambda encoded: [decode_jpeg(one, ImageReadMode.RGB) for one in encoded]
    return lambda encoded: decode_jpeg(encoded, ImageReadMode.RGB, device=args.device)


def resized(torch, pictures, size):
    return torch.stack([torch.nn.functional.interpolate(p[None].float(), (size, size), mode="bilinear", antialias=True)[0]
                        for p in pictures])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="an image folder CLASS/*.jpg")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    args = parser.parse_args()
    torch, torchvision = import_torch(args.device)
    encoded = []
    for _, path in pictures_in(args.data):
        with open(path, "rb") as file:
            encoded.append(torch.frombuffer(bytearray(file.read()), dtype=torch.uint8))
    decode, feed = decoder(args), batches(encoded, args.batch)
    work = {"decode": decode, "resize": lambda batch: resized(torch, decode(batch), args.size)}
    wait = torch.cuda.synchronize if args.device != "cpu" else (lambda: None)
    try:
        for warm in work.values():
            warm(next(feed))
        wait()
    except (RuntimeError, TypeError) as error:
        return say(not_run=f"torchvision {torchvision.__version__} does not decode on {args.device}: {error}")
    say(ready=True, torchvision=torchvision.__version__, pictures=len(encoded))
    for line in sys.stdin:
        what, seconds = line.split()
        count, start = 0, time.monotonic()
        while time.monotonic() - start < float(seconds):
            work[what](next(feed))
            wait()
            count += args.batch
        say(images_per_second=count / (time.monotonic() - start))


if __name__ == "__main__":
    main()
