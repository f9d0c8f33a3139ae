"""Runs other programs for gpu-check, each with a time limit; writes their output to one log as it
comes.

A program that hangs is killed with everything it started; what it had printed is kept.
`Conversation` keeps a program running that answers each line with one line of JSON, so that peers
with a long warm-up can be measured in turn with others.
"""
import json
import os
import queue
import shlex
import signal
import statistics
import subprocess
import threading
import time


class NotRun(Exception):
    """Something could not be measured here; the message says why. This is not a failure."""


class Failed(Exception):
    """Something was tried and failed. `found` holds the figures from before the failure."""

    def __init__(self, message, found=None):
        super().__init__(message)
        self.found = found or {}


class TimedOut(Failed):
    """A program was killed at its limit. `output` is what it had printed."""

    def __init__(self, message, output):
        super().__init__(message)
        self.output = output


def summary(values):
    values = [float(v) for v in values]
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


def attempt(function, *args):
    """Returns a function's result, or the reason why there is none, so that the rest of a step
    still runs. The figures found before a failure are beside its reason."""
    try:
        return function(*args)
    except NotRun as reason:
        return {"not_run": str(reason)}
    except Failed as reason:
        return {**reason.found, "failed": str(reason)}


def missing(result):
    """Returns why a result holds no figures, or None."""
    if result is None:
        return "not run"
    if "not_run" in result:
        return f"not run: {result['not_run']}"
    return f"failed: {result['failed']}" if "failed" in result else None


def failures(result):
    """Returns what failed in a result and its parts."""
    if not isinstance(result, dict):
        return []
    own = [result["failed"]] if "failed" in result else [f"{name} failed" for name in result.get("failed_tests", [])]
    return own + [text for value in result.values() for text in failures(value)]


class Log:
    """The log of all commands. Every write is flushed, so that nothing is missing if gpu-check is
    killed. Any thread may write."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8", errors="replace")
        self.commands = []

    def command(self, words):
        line = shlex.join(words)
        self.commands.append(line)
        self.write(f"\n$ {line}\n")

    def write(self, text):
        self.file.write(text)
        self.file.flush()

    def close(self):
        self.file.close()


def kill_group(process):
    """Kills a program, which leads its own process group, and everything that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Output:
    """Reads what a program prints, in a thread, line by line into the log."""

    def __init__(self, stream, log):
        self.lines, self.stream, self.log = [], stream, log
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.stream:
            self.lines.append(line)
            self.log.write(line)
        self.stream.close()

    def text(self, process):
        """Returns the whole output, once the program has ended. Kills processes that it left
        running and that still hold the stream."""
        self.thread.join(2)
        if self.thread.is_alive():
            kill_group(process)
            self.thread.join(2)
        return "".join(self.lines)


def run(words, timeout, log, env=None):
    """Runs a program; returns (exit code, output, seconds). Raises TimedOut if it takes longer than
    `timeout` seconds, Failed if it cannot be started."""
    log.command(words)
    if timeout <= 0:
        raise NotRun("out of time")
    start = time.monotonic()
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
                                   start_new_session=True, text=True, errors="replace")
    except OSError as error:
        raise Failed(f"{words[0]} cannot be started: {error.strerror}") from None
    output = Output(process.stdout, log)
    try:
        process.wait(timeout)
        seconds = time.monotonic() - start
        text = output.text(process)
    except subprocess.TimeoutExpired:
        kill_group(process)
        raise TimedOut(f"{os.path.basename(words[0])} took longer than {timeout:.0f} s", output.text(process)) from None
    except BaseException:  # the step's alarm, Ctrl-C
        kill_group(process)
        raise
    log.write(f"[exit {process.returncode}, {seconds:.1f} s]\n")
    return process.returncode, text, seconds


def last_words(output, lines=3):
    """Returns the end of a program's output, for a reason."""
    return " / ".join(line.strip() for line in output.strip().splitlines()[-lines:])[-400:]


def json_of(program, code, output):
    """Returns the JSON object at the end of a program's output, on one line or several."""
    if code != 0:
        raise Failed(f"{os.path.basename(program)} ended with {code}: {last_words(output)}")
    start = ("\n" + output).rfind("\n{")
    if start < 0:
        raise Failed(f"{os.path.basename(program)} printed no JSON: {last_words(output)}")
    return json.JSONDecoder().raw_decode(output, start)[0]


class Conversation:
    """A program that prints {"ready": true, ...} and then one JSON object per line that it
    reads."""

    def __init__(self, words, log, env=None):
        log.command(words)
        self.name = next((os.path.basename(w) for w in words if w.endswith(".py")), os.path.basename(words[0]))
        self.log = log
        self.lines = queue.Queue()
        self.process = None
        try:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.file, env=env,
                                            start_new_session=True, text=True, errors="replace")
        except OSError as error:  # the first answer() raises it, like other failures
            self.lines.put(json.dumps({"failed": f"{words[0]} cannot be started: {error.strerror}"}))
            return
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def answer(self, timeout):
        """Returns the next JSON object that the program prints. Raises a "not_run" or "failed" in
        it."""
        end = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Failed(f"{self.name} gave no answer in {timeout:.0f} s") from None
            if line is None:
                self.lines.put(None)  # every later answer() finds the end too
                raise Failed(f"{self.name} ended with {self.process.wait()}; see the log")
            self.log.write(line)
            if line.startswith("{"):
                break
        answer = json.loads(line)
        if "not_run" in answer:
            raise NotRun(answer["not_run"])
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def ask(self, line, timeout):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has ended; answer() reports how
        return self.answer(timeout)

    def close(self):
        if self.process is None:
            return
        kill_group(self.process)
        self.reader.join(timeout=5)
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # the program never read the question
