"""The base class of participants written in Python, and the protocol that they serve
(native/participant.h describes it).

A participant is a class of a file MODULE.py, `Participant(Peer)` unless it is named. It runs as
`python peer.py MODULE[:CLASS] PLAN.json THREADS` in the environment that has its requirements.
"""

import importlib
import json
import os
import sys

BATCH = 50
PAD = 4  # cifar: zeros around the image


class Draw:
    """Which pixels of an image become its sample: crop, resize, window, shift, flip (native/plan.h)."""

    __slots__ = ("x", "y", "width", "height", "resized", "window", "flip", "shift")

    def __init__(self, numbers):
        self.x, self.y, self.width, self.height = numbers[:4]
        self.resized = tuple(numbers[4:6])  # width, height
        self.window = tuple(numbers[6:8])  # x, y in the resized image
        self.flip = bool(numbers[8])
        self.shift = tuple(numbers[9:11])  # x, y


class Plan:
    def __init__(self, path):
        with open(path) as file:
            plan = json.load(file)
        self.mode = plan["mode"]
        self.width, self.height = plan["output"]
        self.files = plan["files"]
        self.draws = [[Draw(numbers) for numbers in draws] for draws in plan["rounds"]]

    def read_files(self):
        contents = []
        for path in self.files:
            with open(path, "rb") as file:
                contents.append(file.read())
        return contents

    def items(self, first, count):
        """Yields image and draw of every sample of the rounds [first, first + count), in order."""
        for draws in self.draws[first : first + count]:
            yield from enumerate(draws)


class Peer:
    given = "boxes"  # or "distribution": it draws its own crops, and the quality column stays empty

    def __init__(self, plan, threads):
        self.plan = plan
        self.threads = threads

    def version(self):
        raise NotImplementedError

    def batches(self, first, count):
        """Yields the rounds as batches of BATCH samples; a batch is any object with a length."""
        raise NotImplementedError

    def plan_batches(self):
        """Yields round 0 with the plan's crops, for the quality column."""
        return self.batches(0, 1)

    def rows(self, batch):
        """Returns a batch as bytes, (N, H, W, 3) u8; None if it cannot be compared (floats, its own
        crops)."""
        return None


def versions(*packages):
    from importlib.metadata import version

    return ", ".join(f"{package} {version(package)}" for package in packages)


def _write_rows(peer, path):
    images = 0
    with open(path, "wb") as file:
        for batch in peer.plan_batches():
            data = peer.rows(batch)
            if data is None:
                return 0
            images += len(batch)
            file.write(data)
    return images


def _serve(peer, answers):
    print(json.dumps({"ready": True, "version": peer.version(), "given": peer.given}), file=answers, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        if words[0] == "run":
            images = sum(len(batch) for batch in peer.batches(int(words[1]), int(words[2])))
        elif words[0] == "rows":
            images = _write_rows(peer, words[1])
        else:
            raise ValueError(f"not a request: {line!r}")
        print("done", images, file=answers, flush=True)


def main():
    name, plan, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not be taken for an answer
    module, _, kind = name.partition(":")
    participant = getattr(importlib.import_module(module), kind or "Participant")
    _serve(participant(Plan(plan), int(threads)), answers)
    answers.close()
    os._exit(0)  # some libraries' threads do not end by themselves


if __name__ == "__main__":
    main()
