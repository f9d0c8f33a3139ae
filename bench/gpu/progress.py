"""Records in OUT/gpu-check.json what is done of the plan. A later call continues from it, on any
machine.

A step has a result once it has ended, even if it failed. A step that was begun and has no result
was cut off with its call; it is tried once more.
"""
import json
import os

MOST_TRIES = 2


class Mismatch(Exception):
    """The folder's results are of another device or size than this call's."""


class Progress:
    """The results in the folder `out`, of one device and one size. save() replaces the file
    atomically, so that a killed call leaves a complete file."""

    def __init__(self, out, device, size):
        self.path = os.path.join(out, "gpu-check.json")
        self.found = {"device": device, "sizes": size, "calls": [], "begun": {}, "steps": {}}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.found = json.load(file)
        if (self.found["device"], self.found["sizes"]) != (device, size):
            raise Mismatch(f"{self.path} holds results of --device {self.found['device']} ({self.found['sizes']} sizes), this call is "
                           f"--device {device} ({size} sizes): name another --out")

    @property
    def rehearsal(self):
        return self.found["sizes"] != "full" or not self.found["device"].startswith("cuda")

    @property
    def done(self):
        return set(self.found["steps"])

    def results(self):
        return {name: step["result"] for name, step in self.found["steps"].items()}

    def add_call(self, **about):
        """Adds a call; results from now on belong to it."""
        self.found["calls"].append(about)

    def begin(self, name):
        """Records that a step begins. Returns False if it was cut off too often to be tried again,
        which is then its result."""
        tries = self.found["begun"].get(name, 0)
        if tries >= MOST_TRIES:
            self.end(name, "", 0, 0, {"failed": f"its call ended {tries} times while it ran; see the log"})
            return False
        self.found["begun"][name] = tries + 1
        self.save()
        return True

    def end(self, name, what, seconds, limit, result):
        self.found["begun"].pop(name, None)
        self.found["steps"][name] = {"what": what, "seconds": seconds, "limit_seconds": limit, "call": len(self.found["calls"]) - 1,
                                     "result": result}
        self.save()

    def save(self):
        with open(self.path + ".part", "w", encoding="utf-8") as file:
            json.dump(self.found, file, indent=1)
        os.replace(self.path + ".part", self.path)
