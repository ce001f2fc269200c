"""A language model that runs: tokens in, logits and new tokens out.

`compile_model` makes the library of a model, `LanguageModel` runs one, here or on a device.  The
caches are inputs of its graph whose memory stays from run to run: nothing is copied between steps.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from slipway import dtypes, relay
from slipway.errors import ArgumentValueError, ExecutionError, ModelError, did_you_mean, reason_of
from slipway.llm.config import ModelConfig
from slipway.llm.embedding import POOLINGS, Pooling, pooling_of_folder, pooling_of_gguf
from slipway.llm.forms import Form, FormMaker
from slipway.llm.gguf_file import GGUFFile
from slipway.llm.gguf_model import model_of
from slipway.llm.network import cache_slots, network
from slipway.llm.safetensors_file import weights_of_folder
from slipway.llm.sampling import Sampler, Sampling
from slipway.llm.saved import LIBRARY, Description, described
from slipway.llm.tokenizer import Tokenizer, tokenizer_of_folder, tokenizer_of_gguf
from slipway.llm.transformers_config import from_transformers
from slipway.llm.weights import Weights
from slipway.relay.ops.nn.cached_attention import CACHES
from slipway.relay.ops.packed.block_formats import FORMATS
from slipway.runtime.devices import Device, cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.load import load_module
from slipway.target import Target
from slipway.target.capability import capability_of

CONTEXT = 2048  # positions of the caches, where nobody asks for others
ROWS = 128  # tokens of a prompt that are computed together


@dataclass
class Source:
    """A model as its files describe it: not compiled yet."""

    name: str
    config: ModelConfig
    weights: Weights
    tokenizer: Tokenizer | None
    pooling: Pooling = field(default_factory=Pooling)

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Return the model of a GGUF file or a transformers folder."""
        path = Path(path)
        if path.is_dir():
            config_file = path / "config.json"
            if not config_file.exists():
                raise ModelError(
                    f"{path} is no model of transformers, whose folders have a config.json, and "
                    "none of `slipway chat --save`; name such a folder, or a .gguf file"
                )
            try:
                given = json.loads(config_file.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as error:
                raise ModelError(f"{config_file} cannot be read: {reason_of(error)}") from None
            if not isinstance(given, dict):
                raise ModelError(f"{config_file} holds no configuration")
            config = from_transformers(given, str(config_file))
            return cls(path.name, config, weights_of_folder(path), tokenizer_of_folder(path),
                       pooling_of_folder(path))  # fmt: skip
        if not path.exists():
            raise ModelError(f"there is no file or folder {path}")
        file = GGUFFile(path)
        config, weights, metadata = model_of(file)
        pooling = pooling_of_gguf(file.metadata)
        return cls(path.stem, config, weights, tokenizer_of_gguf(metadata), pooling)


def memory_needed(
    config: ModelConfig, context: int, quantise: str = "", caches: str = "float32"
) -> int:
    """Return about how many bytes a compiled model takes: weights (at most) and caches."""
    each = 4.0
    if quantise:
        each = FORMATS[quantise].bytes / FORMATS[quantise].size
    head = config.heads * config.head_size
    shared = config.kv_heads * config.head_size
    weights = config.vocabulary * config.hidden
    for layer in config.layers:
        inside = config.feed_forward
        if layer.is_sparse and config.experts is not None:
            inside = config.experts.count * config.experts.feed_forward + config.experts.shared
        weights += config.hidden * (2 * head + 2 * shared + 3 * inside)
    return int(weights * each) + cache_bytes(config, context, caches)


def cache_bytes(config: ModelConfig, context: int, caches: str = "float32") -> int:
    """Return the bytes of all caches for `context` positions."""
    shared = config.kv_heads * config.head_size
    each = dtypes.bits_of(caches) // 8
    convolutions = sum(layer.is_conv for layer in config.layers)
    of_attention = len(config.layers) - convolutions
    states = 4 * convolutions * max(0, config.taps - 1) * config.hidden
    return 2 * each * of_attention * shared * cache_slots(context) + states


def usual_caches(source: Source, target: Target, quantise: str = "") -> str:
    """Return the type that caches have where nobody asks for one.

    float16 where the error of weights in blocks is far above its own, and the target converts it
    by an instruction.
    """
    rough = bool(quantise) or source.weights.in_blocks()
    return "float16" if rough and capability_of(target).half != "soft" else "float32"


def compile_model(
    source: Source,
    target: Target | str = "llvm -mcpu=native",
    context: int | None = None,
    rows: int = ROWS,
    quantise: str = "",
    all_logits: bool = False,
    caches: str = "",
    pooling: str | None = None,
) -> tuple[Any, Description]:
    """Return the library of a model and its description.

    `context` positions are held (the model's own number, at most 2048, where None), at most `rows`
    tokens are computed at once; floats are quantised to the block format `quantise`.
    The caches hold `caches`: float32, float16 or bfloat16 (`usual_caches` where "").  With
    `pooling` ("mean", "last" or "cls"; what the files say where None) it makes a vector of a text,
    with "" it writes.  Raises ModelError for more positions than the model knows, or than memory
    holds.
    """
    pooled = source.pooling if pooling is None else replace(source.pooling, how=pooling)
    config = source.config
    context = min(config.context, CONTEXT) if context is None else context
    if not 1 <= context <= config.context:
        raise ModelError(
            f"a context of {context} positions: {source.name} knows 1 to {config.context}"
        )
    if rows < 1:
        raise ArgumentValueError(f"rows is {rows}: at least one token is computed at once")
    blocks = [name for name, kind in FORMATS.items() if kind.encode]
    if quantise not in ("", *blocks):
        raise ArgumentValueError(
            f"quantise is {quantise!r}: weights of floats can be put into blocks of "
            f"{', '.join(blocks)}.{did_you_mean(quantise, blocks)}"
        )
    if caches not in ("", *CACHES):
        raise ArgumentValueError(f"caches is {caches!r}: they hold {', '.join(CACHES)}")
    target = Target(target)
    caches = caches or usual_caches(source, target, quantise)
    needed, free = cache_bytes(config, context, caches), _memory()
    if needed > free:
        raise ModelError(
            f"the caches of {context} positions take {needed / 2**30:.1f} GiB, more than the "
            f"{free / 2**30:.1f} GiB of this machine: ask for a smaller context"
        )
    rows = min(rows, context)
    module = network(
        config, source.weights, context, rows, quantise, all_logits, caches, bool(pooled.how)
    )
    library = relay.build(module, target=target)
    tokenizer = source.tokenizer
    description = Description(
        source.name, config.family, config.vocabulary, context, rows, config.end_tokens,
        config.begin_token, tokenizer.chat_template if tokenizer is not None else "", caches,
        not any(layer.is_conv for layer in config.layers), pooled.how, pooled.normalised,
    )  # fmt: skip
    return library, description


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # a system that does not say
        return 2**62


def _give_memory_back() -> None:
    """Return what compiling took to the system: about as much as the weights, twice."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc, which keeps it else
        if trim is not None:
            trim(0)


class LanguageModel:
    """A compiled model with its caches: what it was fed, it remembers.

    `module` is the GraphModule of the library, here or on a device.
    """

    def __init__(
        self, module: GraphModule, description: Description, tokenizer: Tokenizer | None = None
    ) -> None:
        self.module, self.description, self.tokenizer = module, description, tokenizer
        self.tokens: list[int] = []  # those that the caches hold
        self._logits: Any = None  # after the last of them

    @classmethod
    def from_file(
        cls, path: str | Path, device: Device | None = None, **options: Any
    ) -> LanguageModel:
        """Compile a GGUF file or a transformers folder and load it; see `compile_model`."""
        source = Source.read(path)
        tokenizer = source.tokenizer
        library, description = compile_model(source, **options)
        module = GraphModule(library["default"](cpu() if device is None else device))
        del source, library  # which hold the weights as the file has them
        _give_memory_back()
        return cls(module, description, tokenizer)

    @property
    def room(self) -> int:
        """How many more tokens the caches can hold."""
        return self.description.context - len(self.tokens)

    def reset(self) -> None:
        """Forget all tokens."""
        self.tokens, self._logits = [], None

    def feed(self, tokens: Sequence[int]) -> Any:
        """Compute tokens that follow the ones before; return the logits after the last.

        Raises ExecutionError, before anything is computed, for more than the caches hold and for
        tokens that the vocabulary has not.
        """
        given = [int(t) for t in tokens]
        if not given:
            raise ExecutionError("feed() needs at least one token")
        if len(given) > self.room:
            raise ExecutionError(
                f"{len(given)} tokens after {len(self.tokens)} are more than the "
                f"{self.description.context} positions of the caches: reset() the model, or "
                "compile it with a larger context"
            )
        wrong = [t for t in given if not 0 <= t < self.description.vocabulary]
        if wrong:
            raise ExecutionError(
                f"the token {wrong[0]} is not in the vocabulary of {self.description.vocabulary}"
            )
        self._logits = None  # those of before are not after these tokens, should a run fail
        for first in range(0, len(given), self.description.rows):
            part = given[first : first + self.description.rows]
            self.module.set_input("tokens", np.array(part, np.int32))
            self.module.set_input("position", np.array([len(self.tokens)], np.int32))
            self.module.run()
            self.tokens += part
        self._logits = self.module.get_output(0).numpy()
        return self._logits[-1]

    def prompt(self, tokens: Sequence[int]) -> Any:
        """Make the model hold exactly `tokens`; those at the front that it holds are kept."""
        given = [int(t) for t in tokens]
        same = 0
        while same < min(len(given), len(self.tokens)) and given[same] == self.tokens[same]:
            same += 1
        if same == len(given) == len(self.tokens) and self._logits is not None:
            return self._logits[-1]
        if len(given) > self.description.context:
            raise ExecutionError(
                f"a prompt of {len(given)} tokens is longer than the {self.description.context} "
                "positions of the caches: shorten it, or compile with a larger context"
            )
        kept = min(same, len(given) - 1)
        if kept < len(self.tokens) and not self.description.rewinds:
            kept = 0  # the states are those after the last token that they hold
        if kept < len(self.tokens):
            self.tokens, self._logits = self.tokens[:kept], None
        return self.feed(given[len(self.tokens) :])

    def generate(
        self,
        tokens: Sequence[int],
        most: int | None = None,
        sampling: Sampling | None = None,
        stop: Sequence[int] | None = None,
        seen: Callable[[int, Any], None] | None = None,
        form: Form | None = None,
    ) -> Iterator[int]:
        """Yield new tokens after `tokens`, until one of `stop`, or `most`, or the caches are full.

        `stop` None is the model's own end of text; the token that stops is not yielded.  `seen` is
        called with each token before it is yielded, and the logits that it was drawn from.  A
        `form`, of `forms`, is kept to, and ends the text where it is complete.
        """
        if self.description.pooling:
            raise ExecutionError(
                f"{self.description.name} is compiled to make vectors of texts: ask embed(), or "
                'compile it with pooling=""'
            )
        sampler = Sampler(sampling or Sampling(), form)
        ends = frozenset(self.description.end_tokens if stop is None else stop)
        logits = self.prompt(tokens)
        made = 0
        while most is None or made < most:
            token = sampler.pick(logits)
            if token in ends:
                return
            if seen is not None:
                seen(token, logits)
            yield token
            made += 1
            if self.room < 1 or made == most or (form is not None and form.is_complete):
                return
            logits = self.feed([token])

    @cached_property
    def forms(self) -> FormMaker:
        """What makes the forms that answers may be kept to."""
        known = self.description
        return FormMaker(self.need_tokenizer(), known.vocabulary, known.end_tokens)

    def embed(self, text: str) -> Any:
        """Return the vector (hidden,) of a text, by a model that was compiled with pooling."""
        return self.embed_tokens(self.need_tokenizer().encode_whole(text))

    def embed_tokens(self, tokens: Sequence[int]) -> Any:
        """Return the vector of a text's tokens.

        Raises ExecutionError for a model that was compiled to write, and for more than it holds.
        """
        known = self.description
        if not known.pooling:
            raise ExecutionError(
                f"{known.name} is compiled to write text: compile it with pooling, one of "
                f"{', '.join(POOLINGS)}"
            )
        if len(tokens) > known.context:
            raise ExecutionError(
                f"a text of {len(tokens)} tokens is longer than the {known.context} positions of "
                "the caches: shorten it, or compile with a larger context"
            )
        self.reset()
        rows = []
        for first in range(0, len(tokens), known.rows):
            self.feed(tokens[first : first + known.rows])
            rows.append(self.module.get_output(0).numpy())
        pooling = Pooling(known.pooling, known.normalised)
        return pooling.of(np.concatenate(rows).astype(np.float64))

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Return the tokens of a text."""
        return self.need_tokenizer().encode(text, special)

    def stream(self, text: str, **options: Any) -> Iterator[str]:
        """Yield the text that follows `text`, piece by piece; options are those of `generate`."""
        yield from self.need_tokenizer().pieces(self.generate(self.encode(text), **options))

    def chat(self, messages: Sequence[dict[str, str]], **options: Any) -> Iterator[str]:
        """Yield the answer to messages of ``{"role": ..., "content": ...}``, piece by piece."""
        yield from self.need_tokenizer().pieces(
            self.generate(self.chat_tokens(messages), **options)
        )

    def chat_tokens(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None = None
    ) -> list[int]:
        """Return the tokens of messages in the form that the model knows.

        `tools` are functions that it may call, in OpenAI's form.
        """
        tokenizer = self.need_tokenizer()
        return tokenizer.encode_chat(messages, self.description.chat_template, tools)

    def need_tokenizer(self) -> Tokenizer:
        """Return the tokenizer.  Raises ModelError for a model that came without."""
        if self.tokenizer is None:
            raise ModelError(
                f"{self.description.name} came without a tokenizer: give tokens to generate(), or "
                "put tokenizer.json beside its config.json"
            )
        return self.tokenizer

    @classmethod
    def open(cls, folder: str | Path, device: Device | None = None) -> LanguageModel:
        """Load a folder that `save` wrote."""
        folder = Path(folder)
        library = load_module(str(folder / LIBRARY))
        module = GraphModule(library["default"](cpu() if device is None else device))
        return cls(module, *described(folder))
