"""The peers that are measured beside stoker. Each is a process that stays warm and idle while
others are timed."""
import os

import machine
from runner import Conversation, Failed, NotRun, attempt, missing

HERE = os.path.dirname(os.path.abspath(__file__))


class Peer:
    """A process that reports when it is ready. warm_up() starts it and waits until it is, so that
    peers which are started one after the other warm up alone; ask() measures once. On failure
    warm_up() returns the reason and ask() raises it."""

    def __init__(self, check, script, words, environment=None):
        self.check = check
        self.environment = {**os.environ, **(environment or {}), "PYTHONDONTWRITEBYTECODE": "1"}  # a bundle is never written to
        self.words = [check.options.python, os.path.join(HERE, script), *words]
        self.conversation = None
        self.ready = {"not_run": "it was not started"}

    def warm_up(self, timeout):
        """Returns the first answer, with the GPU memory in use before and after."""
        before = machine.gpu_mib_used() if self.check.on_gpu else None
        if timeout <= 0:
            self.ready = {"not_run": "out of time"}
            return self.ready
        self.conversation = Conversation(self.words, self.check.log, self.environment)
        self.ready = attempt(self.conversation.answer, timeout)
        if missing(self.ready):
            self.close()  # it must not keep running beside the others
        elif before is not None:
            self.ready = {**self.ready, "gpu_mib_before": before, "gpu_mib_after": machine.gpu_mib_used()}
            self.check.log.write(f"[GPU memory in use: {before} MiB before {self.conversation.name}, "
                                 f"{self.ready['gpu_mib_after']} MiB once it was ready]\n")
        return self.ready

    def ask(self, line, timeout):
        if "not_run" in self.ready:
            raise NotRun(self.ready["not_run"])
        if "failed" in self.ready:
            raise Failed(self.ready["failed"])
        return self.conversation.ask(line, timeout)

    def close(self):
        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None


class TorchResnet(Peer):
    """PyTorch's ResNet. Inductor's kernels are in one folder per mode, which is kept for the next
    call."""

    SHOWN = ("warmup_seconds", "torch", "gpu_mib_before", "gpu_mib_after", "note")

    def __init__(self, check, case, mode="none", extra=()):
        words = ["--device", "cuda" if check.on_gpu else "cpu", "--model", case["model"], "--batch", str(case["batch"]), "--size",
                 str(case["size"]), "--warmup", str(case["torch_warmup"]), "--compile", mode, "--classes",
                 str(check.results["data"]["pictures"].get("classes", 1000)), *extra]
        cache = {} if mode == "none" else {"TORCHINDUCTOR_CACHE_DIR": check.kept.folder(f"inductor-{mode}")}
        super().__init__(check, "torch_resnet.py", words, cache)
        self.steps = case["torch_steps"]

    def run(self, timeout):
        return {**self.ask(f"run {self.steps}", timeout), **{key: self.ready[key] for key in self.SHOWN if key in self.ready}}


class Airbench(Peer):
    """airbench94 from the user's clone; run() trains one seed."""

    def __init__(self, check, data):
        super().__init__(check, "airbench.py", ["--script", check.airbench or "", "--data", data, "--work",
                                                os.path.join(check.work, "airbench")])

    def warm_up(self, timeout):
        if self.check.airbench:
            return super().warm_up(timeout)
        self.ready = {"not_run": "not given: --airbench DIR takes the folder of a clone of cifar10-airbench"}
        return self.ready

    def run(self, seed, timeout):
        return self.ask(f"run {seed}", timeout)
