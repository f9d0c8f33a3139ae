"""The cores of other machines, through Ray:

    import stoker, stoker.ray
    train = stoker.Loader(stoker.folder("/shared/train"), batch_size=256, size=224, seed=0,
                          augment=..., device="cuda:0", remote=stoker.ray.workers(4, cpus=16))

The rows of such a Loader are filled by its own threads first; what these cannot do in time is asked
of the workers, which are Ray's actors, and comes through Ray's object store. Every row is the same
bytes wherever it is filled. Ray schedules the workers, restarts and places them; they keep nothing
that a lost one could lose. The program calls ray.init() as it likes, or leaves it to Ray.
"""

from __future__ import annotations

import atexit
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

try:
    import ray
    import ray.exceptions
except ImportError as error:
    raise ImportError(
        "stoker.ray needs Ray, which is not installed: pip install 'stoker[ray]'"
    ) from error

import numpy as np

import stoker
from stoker import _core
from stoker._loader import close_all
from stoker._remote import Filler, Job, Range, RunningWorkers, Workers

# Ray ends itself at the interpreter's end, and a process in which a thread uses it after that. What
# is registered last is called first.
atexit.register(close_all)

__all__ = ["RayWorkers", "workers"]

# For each worker: it fills the rows of one while those of the other are on their way.
_CLAIMS = 2
_WAIT_S = 0.2
# After so many failures in a row a worker counts as dead for good.
_DEATHS = 10
# How long the end of a Loader waits for a thread that is in a call of Ray's.
_JOIN_S = 10
_OURS = ("max_restarts", "max_task_retries", "max_concurrency", "num_cpus")


def workers(count: int, *, cpus: int = 1, threads: int | None = None, **options: Any) -> RayWorkers:
    """For Loader(remote=): `count` workers, each with `cpus` cores of one machine.

    threads: of each worker, that read and decode; default: cpus. More of them where reading waits
        for storage.
    options: of Ray's actors, as Actor.options() takes them: resources={"cpu_node": 1} keeps workers
        on machines with that resource. scheduling_strategy is "SPREAD" unless it is given.

    Each Loader has workers of its own, and ends them when it is closed or dropped. Close it before
    ray.shutdown(): Ray ends a process that uses it after that. The workers open the source
    themselves, at the same path: the data must be the same there, and so must the version of
    stoker. next() raises stoker.FeedError, with both values, if they are not.

    TypeError, ValueError: an argument, with its value.
    """
    for name, value in (("count", count), ("cpus", cpus), ("threads", threads)):
        if name == "threads" and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, must be a whole number")
        if value < 1:
            raise ValueError(f"{name} is {value}, must be at least 1")
    for name in _OURS:
        if name in options:
            raise ValueError(f"{name} is {options[name]!r}, but stoker sets it: leave it out")
    return RayWorkers(count, cpus, cpus if threads is None else threads, options)


def _pickled(source: _core.Source) -> bytes:
    """As Ray pickles functions: also a stoker.dataset() of a class of the program's own script."""
    dumps: Callable[[Any], bytes] = ray.cloudpickle.dumps
    return dumps(source)


class RayWorkers(Workers):
    """Made by workers()."""

    def __init__(self, count: int, cpus: int, threads: int, options: dict[str, Any]):
        self.count = count
        self.cpus = cpus
        self.threads = threads
        self._options = {"scheduling_strategy": "SPREAD", **options}

    def begin(self, source: _core.Source) -> RunningWorkers:
        actor = ray.remote(StokerRows).options(
            num_cpus=self.cpus,
            # A worker that is lost begins again; what it had to do is asked of another meanwhile.
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=_CLAIMS + 1,
            **self._options,
        )
        pickled = ray.put(np.frombuffer(_pickled(source), np.uint8))
        return _RunningActors([actor.remote(self.threads) for _ in range(self.count)], [pickled])

    def __repr__(self) -> str:
        return f"stoker.ray.workers({self.count}, cpus={self.cpus}, threads={self.threads})"


class StokerRows:
    """A worker: an actor of Ray. It knows what carriers told it since it was begun, and no more."""

    def __init__(self, threads: int):
        self._threads = threads
        self._lock = threading.Lock()
        self._filler: Filler | None = None

    def problem(self, version: str, pickled: list[Any], job: Job) -> str | None:
        """Takes the job. Returns why this worker cannot fill its rows; None: it can. `pickled`: a
        list of the reference to the pickled source.
        """
        if version != stoker.__version__:
            return f"it has version {stoker.__version__} of stoker, and the Loader has {version}"
        try:
            with self._lock:
                if self._filler is None:
                    self._filler = Filler(pickle.loads(ray.get(pickled[0])), self._threads)
            self._filler.begin(job)
        except Exception as error:
            return str(error) or repr(error)
        return None

    def fill(self, fingerprint: int, rows: Range) -> tuple[np.ndarray, bytes] | None:
        """Returns rows, and what was found out about bad samples among them; None if it has not
        been told of the job.
        """
        core = None if self._filler is None else self._filler.of(fingerprint)
        if core is None:
            return None
        message = np.empty(core.message_bytes(rows[3]), np.uint8)
        return message, core.fill(rows, message)


class _RunningActors(RunningWorkers):
    def __init__(self, actors: list[Any], pickled: list[Any]):
        self._actors = actors
        self._pickled = pickled
        self._threads: list[threading.Thread] = []

    def serve(self, feed: _core.Feed, job: Job) -> None:
        rows = feed.remote_rows()
        shared = ray.put(job)
        claimers = _CLAIMS * len(self._actors)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for number, actor in enumerate(self._actors):
            for _ in range(_CLAIMS):
                carrier = _Carrier(rows, actor, number, (self._pickled, shared), claimers)
                thread = threading.Thread(target=carrier.run, name="stoker.ray", daemon=True)
                thread.start()
                self._threads.append(thread)

    def close(self) -> None:
        actors, self._actors = self._actors, []
        for actor in actors:
            if ray.is_initialized():  # else it has ended them
                ray.kill(actor)
        for thread in self._threads:
            thread.join(_JOIN_S)
        self._threads = []


class _Carrier:
    """One thread, which has at most one claim outside, with one worker."""

    def __init__(
        self, rows: _core.RemoteRows, actor: Any, number: int, job: tuple[Any, Any], claimers: int
    ):
        self._rows = rows
        self._fingerprint = rows.fingerprint
        self._actor = actor
        self._number = number
        self._job = job
        self._claimers = claimers

    def run(self) -> None:
        try:
            self._check()
            while not self._rows.ended:
                claim = self._rows.claim(self._claimers, int(1000 * _WAIT_S))
                if claim is None:
                    continue
                try:
                    self._carry(claim)
                except _Lost:
                    self._check()
        except _Ended:
            pass
        except Exception as error:
            self._rows.fail(f"Ray's worker {self._number}: {error}")

    def _check(self) -> None:
        """Waits until the worker is there. ValueError: it cannot fill these rows."""
        deaths = 0
        while True:
            try:
                problem = self._result(self._ask("problem", stoker.__version__, *self._job))
            except _Lost as lost:
                # One that is begun again refuses calls now and then; one that is dead, all of them.
                deaths = deaths + 1 if isinstance(lost.error, ray.exceptions.ActorDiedError) else 0
                if deaths == _DEATHS:
                    # The last line of what Ray says is the error itself.
                    why = str(lost.error).strip().splitlines()[-1]
                    raise ValueError(f"it cannot be started: {why}") from None
                time.sleep(_WAIT_S)
                continue
            if problem is not None:
                raise ValueError(problem)
            return

    def _carry(self, claim: tuple[int, Range]) -> None:
        try:
            made = self._result(self._ask("fill", self._fingerprint, claim[1]), claim)
            if made is None:
                raise _Lost(None)  # it was begun again
        except BaseException:
            self._rows.give_up(claim)
            raise
        self._rows.deliver(claim, *made)

    def _ask(self, method: str, *arguments: Any) -> ray.ObjectRef[Any]:
        if not ray.is_initialized():  # else Ray would begin anew, without these workers
            raise ValueError("Ray was shut down: close the Loader before that")
        ref: ray.ObjectRef[Any] = getattr(self._actor, method).remote(*arguments)
        return ref

    def _result(self, ref: ray.ObjectRef[Any], claim: tuple[int, Range] | None = None) -> Any:
        """Waits also for what is late and was asked of another: a worker that hangs gets no other
        rows. _Lost: there will be no result. _Ended: nobody wants it.
        """
        while not self._rows.ended:
            try:
                return ray.get(ref, timeout=_WAIT_S)
            except ray.exceptions.GetTimeoutError:
                if claim is not None:
                    self._rows.give_up_if_late(claim)
            except ray.exceptions.RayTaskError as error:
                raise ValueError(str(error.cause or error)) from None
            except ray.exceptions.RayError as error:
                raise _Lost(error) from None
        raise _Ended


class _Lost(Exception):
    def __init__(self, error: ray.exceptions.RayError | None):
        self.error = error


class _Ended(Exception):
    pass
