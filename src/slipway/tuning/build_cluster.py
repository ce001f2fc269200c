"""Builders as a command line names them: here, or on Dask or Ray, which are optional packages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from slipway.errors import TuningError
from slipway.tuning.builders import BUILD_S, Builder, ExecutorBuilder, local_builder
from slipway.version import install_line

CONNECT_S = 30.0


def dask_builder(address: str, limit_s: float = BUILD_S) -> ExecutorBuilder:
    """Return what compiles on the workers of the Dask scheduler at `address`, HOST:PORT."""
    name = f"dask://{address}"
    try:
        from distributed import Client
    except ImportError as error:
        raise TuningError(f"{name} needs Dask: {install_line('dask')}") from error
    try:
        client = Client(f"tcp://{address}", timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise TuningError(f"{name}: no scheduler of Dask answers there: {error}") from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError as error:
        client.close()
        raise TuningError(f"{name}: the scheduler has no worker; start `dask worker`") from error
    executor = client.get_executor(pure=False)
    return ExecutorBuilder(
        executor, lambda: sum(client.nthreads().values()), name, limit_s, client.close
    )


def ray_builder(address: str, limit_s: float = BUILD_S) -> ExecutorBuilder:
    """Return what compiles on the Ray cluster whose client server is at `address`, HOST:PORT."""
    name = f"ray://{address}"
    try:
        import ray
    except ImportError as error:
        raise TuningError(f"{name} needs Ray: {install_line('ray')}") from error
    try:
        ray.init(name, log_to_driver=False)
    except Exception as error:  # of Ray's, which are many
        raise TuningError(f"{name}: no cluster of Ray answers there: {error}") from error
    count = int(ray.cluster_resources().get("CPU", 1))
    return ExecutorBuilder(RayExecutor(ray), lambda: count, name, limit_s, ray.shutdown)


class RayExecutor(Executor):
    """Tasks of Ray as futures."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a worker call a function."""
        task = self._ray.remote(max_retries=1)(fn)
        found: Future[Any] = task.remote(*args, **kwargs).future()
        return found


def builder_of(text: str | None, limit_s: float = BUILD_S) -> Builder:
    """Return the builder that `text` names: a number of processes here, dask:// or ray://.

    Raises TuningError for what is none of these, a package that is missing, and a cluster that
    does not answer.
    """
    if text is None or text.isdecimal():
        return local_builder(None if text is None else int(text), limit_s)
    scheme, _, address = text.partition("://")
    if scheme == "dask" and address:
        return dask_builder(address, limit_s)
    if scheme == "ray" and address:
        return ray_builder(address, limit_s)
    raise TuningError(
        f"builders {text!r}: write a number of processes here, dask://HOST:8786 (a scheduler of "
        "Dask) or ray://HOST:10001 (a Ray cluster)"
    )
