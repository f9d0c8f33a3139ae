"""Drives store_probe.cc: opens one store, and asks it one thing after another."""
import contextlib
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

PROGRAM = os.environ.get("STOKER_STORE_PROBE",
                         str(pathlib.Path(__file__).parents[2] / "build" / "store_probe"))


def digest(data):
    return hashlib.sha256(data).hexdigest()


def clean_environment(home, **settings):
    """Has only the settings of AWS that it is given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true", **settings}


class ProbeError(Exception):
    """A failure of the store. `kind` is that of the judgement, of a range."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.kind = answer.get("kind")
        self.tried = answer.get("tried")


class Probe(contextlib.AbstractContextManager):
    """Has only the settings of AWS that it is given: `keys` (id, secret) and `env`. All that the
    program wrote is in `written`."""

    def __init__(self, address=None, keys=None, env=None, **options):
        self._home = tempfile.TemporaryDirectory()
        clean = clean_environment(self._home.name)
        if keys:
            clean.update({"AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1]})
        clean.update(env or {})
        if address:
            options["address"] = address
        self.written = ""
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [PROGRAM, json.dumps(options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True, env={k: v for k, v in clean.items() if v is not None})

    def ask(self, **line):
        """Returns the answer. Raises ProbeError."""
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        text = self._process.stdout.readline()
        self.written += text
        if not text:
            self._errors.seek(0)
            raise RuntimeError(f"store_probe has ended: {self._errors.read()}")
        answer = json.loads(text)
        if "error" in answer:
            raise ProbeError(answer)
        return answer

    def list(self, prefix=""):
        return [tuple(entry) for entry in self.ask(do="list", prefix=prefix)["objects"]]

    def folder(self, prefix=""):
        return [entry[0] for entry in self.ask(do="folder", prefix=prefix)["objects"]]

    def stat(self, key):
        found = self.ask(do="stat", key=key)["object"]
        return tuple(found) if found else None

    def range(self, entry, offset, length, **more):
        """Returns the SHA-256 of the bytes."""
        return self.ask(do="range", object=list(entry), offset=offset, length=length,
                        **more)["sha256"]

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.seek(0)
        self.written += self._errors.read()
        self._errors.close()
        self._home.cleanup()
