"""Text to tokens and back, through the library `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.errors import MissingPackageError, ModelError, NotAvailableError, reason_of
from slipway.llm.chat_template import rendered
from slipway.version import install_line

_NEEDS = install_line("llm")
# How texts are cut before byte-pair encoding, by GGUF's name for it; others are cut as GPT-2's.
_NUMBERS = r"\p{N}{1,3}"
_CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|NUMBERS| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {
    "llama-bpe": _CUT.replace("NUMBERS", _NUMBERS),
    "llama3": _CUT.replace("NUMBERS", _NUMBERS),
    "smaug-bpe": _CUT.replace("NUMBERS", _NUMBERS),
    "qwen2": _CUT.replace("NUMBERS", r"\p{N}"),
}
_CONTROL, _USER_DEFINED, _BYTE = 3, 4, 6
_SPACE = "\u2581"


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingPackageError(f"text needs the library tokenizers: {_NEEDS}") from None
    return tokenizers


class Tokenizer:
    """A `tokenizers.Tokenizer`, with the model's chat template.

    `begin` is the token that a text begins with where the library does not put it, `end` the one
    that a whole text ends with.
    """

    def __init__(
        self, inner: Any, chat_template: str = "", begin: int | None = None,
        names: Mapping[str, str] | None = None, end: int | None = None,
    ) -> None:  # fmt: skip
        self.inner, self.chat_template, self.begin, self.end = inner, chat_template, begin, end
        self.names = dict(names or {})  # of special tokens, as templates ask for them

    @classmethod
    def of_file(cls, path: Path, chat_template: str = "") -> Tokenizer:
        """Return the tokenizer of a ``tokenizer.json``, or of what `to_json` wrote."""
        try:
            text = path.read_text(encoding="utf-8")
            given = json.loads(text)
            if isinstance(given, dict) and "slipway" in given:
                own = given["slipway"]
                inner = _library().Tokenizer.from_str(json.dumps(given["tokenizer"]))
                return cls(inner, own["chat_template"], own["begin"], own["names"],
                           own.get("end"))  # fmt: skip
            return cls(_library().Tokenizer.from_str(text), chat_template)
        except NotAvailableError:
            raise
        except Exception as error:  # the library raises bare Exceptions
            raise ModelError(f"{path} is no tokenizer: {error}") from None

    def to_json(self) -> str:
        """Return everything as text."""
        own = {"chat_template": self.chat_template, "begin": self.begin, "names": self.names,
               "end": self.end}  # fmt: skip
        return json.dumps({"slipway": own, "tokenizer": json.loads(self.inner.to_str())})

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Return the tokens of a text, with those that begin it if `special`."""
        try:
            found = list(self.inner.encode(text, add_special_tokens=special).ids)
        except Exception as error:  # the library's own class: Exception
            raise ModelError(f"the model's tokenizer cannot take {text[:60]!r}: {error}") from None
        if special and self.begin is not None and found[:1] != [self.begin]:
            found.insert(0, self.begin)
        return found

    def encode_whole(self, text: str) -> list[int]:
        """Return the tokens of a text that nothing follows."""
        found = self.encode(text)
        if self.end is not None and found[-1:] != [self.end]:
            found.append(self.end)
        return found

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, special ones left out."""
        try:
            return str(self.inner.decode(list(tokens), skip_special_tokens=True))
        except (TypeError, OverflowError) as error:  # what is no number of a token
            raise ModelError(f"there are no such tokens ({error}): {list(tokens)[:8]}") from None

    def pieces(self, tokens: Iterable[int]) -> Iterator[str]:
        """Yield the text of tokens as they come; characters of several tokens when complete."""
        held: list[int] = []
        shown = ""
        for token in tokens:
            held.append(token)
            text = self.decode(held)
            if text.endswith("\ufffd"):
                continue
            if len(text) > len(shown):
                yield text[len(shown) :]
            # A space before a word depends on the token before it, which is therefore kept.
            held = held[-1:]
            shown = self.decode(held)
        rest = self.decode(held)
        if len(rest) > len(shown):
            yield rest[len(shown) :]

    def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], template: str = "",
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[int]:  # fmt: skip
        """Return the tokens of messages by the template, or by plain names of roles."""
        return self.encode(self.chat_text(messages, template, tools), special=not template)

    def chat_text(
        self, messages: Sequence[Mapping[str, Any]], template: str = "",
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:  # fmt: skip
        """Return messages as one text that ends where the answer begins.

        Without a template nothing is told of `tools`.
        """
        for message in messages:
            if not {"role", "content"} <= set(message):
                raise ModelError(f"a message needs a role and a content, got {dict(message)}")
        if template:
            return rendered(template, messages, self.names, tools)
        lines = [f"{m['role'].capitalize()}: {m['content']}\n" for m in messages]
        return "".join(lines) + "Assistant:"


def tokenizer_of_folder(folder: Path) -> Tokenizer | None:
    """Return the tokenizer of a transformers folder, None where it has none."""
    file = folder / "tokenizer.json"
    if not file.exists():
        return None
    more: dict[str, Any] = {}
    settings = folder / "tokenizer_config.json"
    if settings.exists():
        try:
            more = json.loads(settings.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ModelError(f"{settings} cannot be read: {reason_of(error)}") from None
        if not isinstance(more, dict):
            raise ModelError(f"{settings} holds no settings of a tokenizer")
    template = more.get("chat_template") or ""
    if isinstance(template, list):  # several, by name
        named = [t for t in template if isinstance(t, dict) and t.get("name") == "default"]
        template = named[-1].get("template") or "" if named else ""
    apart = folder / "chat_template.jinja"
    if apart.exists():
        template = apart.read_text(encoding="utf-8")
    made = Tokenizer.of_file(file, str(template))
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = more.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            made.names[name] = value
    return made


def tokenizer_of_gguf(metadata: Mapping[str, Any]) -> Tokenizer | None:
    """Return the tokenizer in a GGUF file's metadata, None where it has none."""
    tokens = metadata.get("tokenizer.ggml.tokens")
    kind = metadata.get("tokenizer.ggml.model")
    if not isinstance(tokens, list) or kind not in ("llama", "gpt2"):
        return None
    lib = _library()
    types = metadata.get("tokenizer.ggml.token_type")
    types = types if isinstance(types, list) and len(types) == len(tokens) else [1] * len(tokens)
    vocabulary = {token: i for i, token in enumerate(tokens)}
    inner = _of_bytes(lib, metadata, vocabulary) if kind == "gpt2" else _of_pieces(
        lib, metadata, tokens, vocabulary
    )  # fmt: skip
    special = [
        lib.AddedToken(t, special=k == _CONTROL, normalized=False)
        for t, k in zip(tokens, types, strict=True)
        if k in (_CONTROL, _USER_DEFINED)
    ]
    inner.add_special_tokens([t for t in special if t.special])
    inner.add_tokens([t for t in special if not t.special])
    begin = metadata.get("tokenizer.ggml.bos_token_id")
    begins = metadata.get("tokenizer.ggml.add_bos_token", kind == "llama")
    ends = metadata.get("tokenizer.ggml.add_eos_token", False)
    end = metadata.get("tokenizer.ggml.eos_token_id")
    template = metadata.get("tokenizer.chat_template")
    made = Tokenizer(
        inner, template if isinstance(template, str) else "",
        begin if begins and isinstance(begin, int) else None,
        end=end if ends and isinstance(end, int) else None,
    )  # fmt: skip
    for name in ("bos", "eos"):
        at = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if isinstance(at, int) and 0 <= at < len(tokens):
            made.names[f"{name}_token"] = tokens[at]
    return made


def _of_bytes(lib: Any, metadata: Mapping[str, Any], vocabulary: dict[str, int]) -> Any:
    """Byte-pair encoding with the merges of the file."""
    merges = metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list):
        raise ModelError("the GGUF file's tokenizer has no merges")
    pairs = [tuple(m.split(" ", 1)) for m in merges if isinstance(m, str) and " " in m]
    try:
        inner = lib.Tokenizer(lib.models.BPE(vocabulary, pairs, ignore_merges=True))
    except Exception as error:  # a bare one: a merge of what is no token
        raise ModelError(f"the GGUF file's tokenizer does not fit together: {error}") from None
    pattern = _PATTERNS.get(str(metadata.get("tokenizer.ggml.pre")))
    steps = lib.pre_tokenizers
    if pattern is None:
        inner.pre_tokenizer = steps.ByteLevel(add_prefix_space=False)
    else:
        inner.pre_tokenizer = steps.Sequence([
            steps.Split(lib.Regex(pattern), "isolated"),
            steps.ByteLevel(add_prefix_space=False, use_regex=False),
        ])  # fmt: skip
    inner.decoder = lib.decoders.ByteLevel()
    return inner


def _of_pieces(
    lib: Any, metadata: Mapping[str, Any], tokens: list[str], vocabulary: dict[str, int]
) -> Any:
    """SentencePiece's pairs: of those that make a token, the one of the highest score first."""
    scores = metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise ModelError("the GGUF file's tokenizer has no score for each token")
    found = [
        (-scores[i], vocabulary[token[:k]], token[:k], token[k:])
        for i, token in enumerate(tokens)
        for k in range(1, len(token))
        if token[:k] in vocabulary and token[k:] in vocabulary
    ]
    found.sort(key=lambda one: one[:2])
    pairs = [(left, right) for _, _, left, right in found]
    unknown = metadata.get("tokenizer.ggml.unknown_token_id", 0)
    name = tokens[unknown] if isinstance(unknown, int) and unknown < len(tokens) else None
    inner = lib.Tokenizer(
        lib.models.BPE(vocabulary, pairs, unk_token=name, fuse_unk=True, byte_fallback=True)
    )
    steps = [lib.normalizers.Replace(" ", _SPACE)]
    spaced = metadata.get("tokenizer.ggml.add_space_prefix", True)
    if spaced:
        steps.insert(0, lib.normalizers.Prepend(_SPACE))
    inner.normalizer = lib.normalizers.Sequence(steps)
    decoders = lib.decoders
    after = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if spaced:
        after.append(decoders.Strip(" ", 1, 0))
    inner.decoder = decoders.Sequence(after)
    return inner
