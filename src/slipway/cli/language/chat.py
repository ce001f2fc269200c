"""``slipway chat``: talk to a language model in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import console
from slipway.cli.connection import Connection
from slipway.cli.exit_codes import FAILED
from slipway.cli.language.options import Caches, Context, Model, Quantise, Target, load
from slipway.cli.options import RpcHost, RpcKey, RpcPort, Threads, Timeout, Tracker

if TYPE_CHECKING:
    from slipway.llm import LanguageModel


def chat(
    model: Model,
    prompt: Annotated[
        str | None, typer.Option("--prompt", "-p", help="Answer this, and end.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Continue the prompt as it is, without roles.")
    ] = False,
    system: Annotated[str | None, typer.Option(help="What the model is told first.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer at most.")] = 512,
    temperature: Annotated[
        float, typer.Option(min=0, help="How freely to draw; 0 takes the likeliest token.")
    ] = 0.8,
    top_k: Annotated[int, typer.Option(min=0, help="Draw from so many tokens; 0: all.")] = 40,
    top_p: Annotated[float, typer.Option(help="Draw from the likeliest of this sum.")] = 0.95,
    seed: Annotated[int | None, typer.Option(min=0, help="Make the draws repeatable.")] = None,
    context: Context = None,
    quantise: Quantise = "",
    caches: Caches = "",
    target: Target = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep the compiled model in this folder.")
    ] = None,
    threads: Threads = None,
    rpc_host: RpcHost = None,
    rpc_port: RpcPort = 9090,
    rpc_key: RpcKey = "",
    tracker: Tracker = None,
    timeout: Timeout = None,
) -> None:
    """Talk to MODEL, which is compiled first; what it says comes as it is made.

    Questions are lines of the terminal or of a pipe. With a pipe, the exit code is 1 where one was
    too long to be answered.

    For example:

        slipway chat model.gguf

        slipway chat model.gguf --raw --prompt "Once upon a time" --temperature 0

        slipway chat folder --quantise q4_0 --target raspberry-pi/4b-aarch64 --rpc-host pi.local
    """
    from slipway.llm import Sampling

    sampling = Sampling(temperature, top_k, top_p, seed)
    connection = Connection(rpc_host, rpc_port, rpc_key, tracker, timeout)
    if threads is not None:
        connection.use_threads(threads)
    talker = load(model, context, quantise, target, connection, save, caches)
    messages = [{"role": "system", "content": system}] if system else []
    unanswered = 0
    for text in _questions(prompt):
        question = {"role": "user", "content": text}
        alone = [*messages[: bool(system)], question]
        tokens = talker.encode(text) if raw else talker.chat_tokens(alone)
        if prompt is None and len(tokens) > talker.description.context:
            console.err.print(
                f"That is {len(tokens)} tokens, and the caches hold {talker.description.context}: "
                "ask something shorter, or compile with a larger --context."
            )
            unanswered += 1
            continue
        if not raw:
            messages.append(question)
            _forget_the_first(talker, messages, bool(system), max_tokens)
        if raw:
            pieces = talker.stream(text, most=max_tokens, sampling=sampling)
        else:
            pieces = talker.chat(messages, most=max_tokens, sampling=sampling)
        messages.append({"role": "assistant", "content": _printed(talker, pieces)})
    if unanswered and not _is_typed():  # who types has seen it; a script looks at the code
        raise typer.Exit(FAILED)


def _printed(talker: LanguageModel, pieces: Iterator[str]) -> str:
    """Print an answer as it comes, and return it."""
    start = time.perf_counter()
    answer = []
    for piece in pieces:
        answer.append(piece)
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    seconds = time.perf_counter() - start
    console.err.print(
        f"{len(talker.tokens)} tokens are held after {seconds:.1f} s, prompt included"
    )
    return "".join(answer)


def _forget_the_first(
    talker: LanguageModel, messages: list[dict[str, str]], has_system: bool, most: int
) -> None:
    """Leave out the first questions and answers of a conversation that the caches do not hold.

    They keep room for an answer of `most` tokens, or a quarter of all.
    """
    context, first, gone = talker.description.context, int(has_system), 0
    room = context - min(most, context // 4)
    while len(messages) > first + 2 and len(talker.chat_tokens(messages)) > room:
        del messages[first : first + 2]
        gone += 1
    if gone:
        console.err.print(
            f"The conversation is longer than the {context} positions of the caches: the first "
            f"{gone} of its questions and their answers are left out from now on."
        )


def _questions(prompt: str | None) -> Iterator[str]:
    """Yield what is asked: the prompt, or lines of the terminal until it ends.

    What is no UTF-8 in them is the replacement character, as terminals show it.
    """
    if prompt is not None:
        yield _as_utf8(prompt)
        return
    while True:
        try:
            text = input("> " if _is_typed() else "")
        except EOFError:
            return
        if text.strip():
            yield _as_utf8(text)


def _is_typed() -> bool:
    return sys.stdin.isatty()


def _as_utf8(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
