"""``slipway serve``: a language model behind OpenAI's HTTP interface."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from slipway.cli import console
from slipway.cli.connection import Connection
from slipway.cli.language.options import Caches, Context, Embeddings, Model, Quantise, Target, load
from slipway.cli.options import RpcHost, RpcKey, RpcPort, Threads, Timeout, Tracker
from slipway.errors import MissingPackageError, RPCConnectionError, reason_of
from slipway.version import install_line


def serve(
    model: Model,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8000,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Pages of this origin may ask from a browser; * stands for all."),
    ] = None,
    context: Context = None,
    quantise: Quantise = "",
    caches: Caches = "",
    embeddings: Embeddings = "",
    target: Target = None,
    threads: Threads = None,
    rpc_host: RpcHost = None,
    rpc_port: RpcPort = 9090,
    rpc_key: RpcKey = "",
    tracker: Tracker = None,
    timeout: Timeout = None,
) -> None:
    """Serve MODEL to programs that know OpenAI's interface, at http://HOST:PORT/v1.

    For example:

        slipway serve model.gguf --port 8000

        curl http://127.0.0.1:8000/v1/completions -d '{"prompt": "Once", "max_tokens": 20}'
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingPackageError(
            f"serving needs starlette and uvicorn: {install_line('web')}"
        ) from None
    from slipway.llm.serving.server import application

    with _bound(host, port) as listening:  # before minutes of compilation
        connection = Connection(rpc_host, rpc_port, rpc_key, tracker, timeout)
        if threads is not None:
            connection.use_threads(threads)
        loaded = load(model, context, quantise, target, connection, None, caches, embeddings)
        served = application(loaded, allow_origin or ())
        listening.listen()  # who comes earlier is refused, and need not wait
        console.err.print(
            f"Serving {console.plain(model.name)} at http://{host}:{listening.getsockname()[1]}/v1"
        )
        uvicorn.Server(uvicorn.Config(served, log_level="warning")).run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that has an address, and does not listen yet.

    Raises RPCConnectionError where the address is taken, or is not this machine's.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError:
            made.close()
            raise
    except (OSError, OverflowError) as error:
        raise RPCConnectionError(
            f"{host}:{port} cannot be listened on: {reason_of(error)}. Choose another --port, or "
            "0 for any."
        ) from None
    return made
