"""Where candidates are compiled: in this process, in several here, or on a cluster.

A pool here, Dask and Ray are executors of `concurrent.futures`, and what they run is the same
(`build_processes.answer`).  A batch is cut into as many libraries as there are places; where one
gives no answer, each of its candidates is tried by itself, so that the one at fault is known.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from slipway.codegen.llvm.workers import limited
from slipway.errors import TuningError
from slipway.tuning.build import BuildJob, Built
from slipway.tuning.build_processes import BuildProcesses, answer, built_of, message_of
from slipway.tuning.space import Candidate
from slipway.version import VERSION

BUILD_S = 60.0  # for a candidate
PATIENCE_S = 300.0  # more for executors, whose places may be taken or have to start
MOST = 8  # processes, where nobody says how many
_log = logging.getLogger("slipway.tuning")


@dataclass(frozen=True)
class InLibrary:
    """The function of a candidate, and the library that has it."""

    path: Path
    name: str


@dataclass
class BuiltBatch:
    """What became of the candidates of a batch."""

    functions: dict[Candidate, InLibrary] = field(default_factory=dict)
    errors: dict[Candidate, str] = field(default_factory=dict)

    def add(self, built: Built) -> None:
        """Take what is in a library, and what is not."""
        self.errors.update(built.errors)
        for candidate, name in built.functions.items():
            assert built.path is not None
            self.functions[candidate] = InLibrary(built.path, name)


class Buildable(Protocol):
    """What candidates are of."""

    @property
    def is_portable(self) -> bool:
        """Whether another process can compile candidates: nothing of the user's is needed."""

    def job(self, candidates: Sequence[Candidate]) -> BuildJob:
        """Return what compiles candidates into one library."""


class Builder:
    """Compiles in this process, LLVM having `limit_s` seconds for each candidate.

    A context that ends what it has started.
    """

    def __init__(self, limit_s: float = BUILD_S) -> None:
        self.limit_s = limit_s

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End what was started for it."""

    def build(
        self, subject: Buildable, candidates: Sequence[Candidate], path: Path, together: bool
    ) -> BuiltBatch:
        """Compile candidates into the library `path`, or, unless `together`, several beside it."""
        batch = BuiltBatch()
        with limited(self.limit_s):
            batch.add(subject.job(candidates).run(path))
        return batch


class ExecutorBuilder(Builder):
    """Compiles in the places of an executor, `count()` at once; `name` is what errors call it.

    ``end()`` ends what the executor stands on.
    """

    def __init__(
        self,
        executor: Executor,
        count: Callable[[], int],
        name: str,
        limit_s: float = BUILD_S,
        end: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(limit_s)
        self._executor, self._count, self._end = executor, count, end
        self._answer: Callable[[str, bytes, float], dict[str, Any]] = answer
        self.name = name
        self._is_told = False

    def close(self) -> None:
        """End the executor, and the processes here."""
        with contextlib.suppress(Exception):  # a cluster that is gone has nothing left to end
            self._executor.shutdown(wait=False)
            self._end()

    def build(
        self, subject: Buildable, candidates: Sequence[Candidate], path: Path, together: bool
    ) -> BuiltBatch:
        """Compile candidates; raises TuningError where no place can compile for this process."""
        if not subject.is_portable:
            return super().build(subject, candidates, path, together)
        count = 1 if together or len(candidates) < 2 else self._slots(len(candidates))
        batch, lost = BuiltBatch(), []
        shares = [list(candidates[i::count]) for i in range(count)]
        for share, found in zip(shares, self._built(subject, shares, path), strict=True):
            if isinstance(found, Built):
                batch.add(found)
            elif len(share) == 1:
                batch.errors[share[0]] = found
            else:
                lost += [[candidate] for candidate in share]
        aside = path.with_name(f"alone_{path.name}")
        for one, found in zip(lost, self._built(subject, lost, aside), strict=True):
            if isinstance(found, Built):
                batch.add(found)
            else:
                batch.errors[one[0]] = found
        return batch

    def _built(
        self, subject: Buildable, shares: Sequence[Sequence[Candidate]], path: Path
    ) -> list[Built | str]:
        """Return for each share its library, or why there was no answer."""
        jobs = [subject.job(share) for share in shares]
        paths = [path.with_name(f"{i}_{path.name}" if i else path.name) for i in range(len(jobs))]
        try:
            messages = [message_of(job, path.suffix) for job in jobs]
        except Exception as error:  # a part that cannot travel may raise anything
            return self._here(jobs, paths, error)
        limits = [self.limit_s * len(share) for share in shares]
        futures: list[Future[dict[str, Any]]] = []
        try:
            futures += map(self._submitted, messages, limits)
            wait(futures, sum(limits) + PATIENCE_S)
            answers = [self._answer_of(future) for future in futures]
        except BaseException:  # Ctrl-C, too
            for future in futures:
                future.cancel()
            self._give_up()
            raise
        for given in answers:
            if "unreadable" in given:
                return self._here(jobs, paths, given["unreadable"])
        return [
            built_of(a["built"], p) if "built" in a else str(a["lost"])
            for a, p in zip(answers, paths, strict=True)
        ]

    def _slots(self, most: int) -> int:
        try:
            return max(1, min(most, self._count()))
        except Exception as error:
            raise self._gone(error) from error

    def _submitted(self, message: bytes, limit_s: float) -> Future[dict[str, Any]]:
        try:
            return self._executor.submit(self._answer, VERSION, message, limit_s)
        except Exception as error:
            raise self._gone(error) from error

    def _gone(self, error: Exception) -> TuningError:
        return TuningError(f"{self.name} compiles no more: {type(error).__name__}: {error}")

    def _give_up(self) -> None:
        """End what is at work, where it is ours."""

    def _answer_of(self, future: Future[dict[str, Any]]) -> dict[str, Any]:
        """Return an answer.  Raises TuningError for one that no candidate is at fault for."""
        if not future.done():
            future.cancel()
            return {"lost": f"{self.name} gave no answer"}
        try:
            given = future.result()
        except (ImportError, AttributeError) as error:
            raise TuningError(
                f"the workers of {self.name} cannot compile for this process ({error}): install "
                f"slipway {VERSION}, as here, in their Python"
            ) from error
        except (Exception, CancelledError) as error:
            return {"lost": f"{self.name}: {type(error).__name__}: {error}"}
        if "other" in given:
            raise TuningError(
                f"a worker of {self.name} is of another version: {given['other']}, and this is "
                f"slipway {VERSION}. Install the same there"
            )
        return given

    def _here(
        self, jobs: Sequence[BuildJob], paths: Sequence[Path], why: object
    ) -> list[Built | str]:
        """Compile in this process what knows things that other processes do not."""
        if not self._is_told:
            self._is_told = True
            _log.warning("candidates are compiled in this process, not by %s: %s", self.name, why)
        with limited(self.limit_s):
            return [job.run(path) for job, path in zip(jobs, paths, strict=True)]


class PoolBuilder(ExecutorBuilder):
    """Compiles in `count` processes here."""

    def __init__(self, count: int, limit_s: float = BUILD_S) -> None:
        threads = ThreadPoolExecutor(count, "slipway-build")
        super().__init__(threads, lambda: count, "the processes here", limit_s)
        self.processes = BuildProcesses()
        self._answer, self._end = self.processes.answer, self.processes.close

    def _give_up(self) -> None:
        self.processes.kill_busy()


def usual_count() -> int:
    """Return how many processes compile where nobody says: half of the cores, the rest measure."""
    return max(1, min(MOST, len(os.sched_getaffinity(0)) // 2))


def local_builder(count: int | None = None, limit_s: float = BUILD_S) -> Builder:
    """Return what compiles in `count` processes here; 1: in this one, without a limit."""
    count = usual_count() if count is None else count
    if count < 1:
        raise TuningError(f"{count} builders: at least one process has to compile candidates")
    return Builder(limit_s) if count == 1 else PoolBuilder(count, limit_s)
