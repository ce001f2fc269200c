"""Answers in a form: of the next token's logits, those remain that keep the text in it.

A form is a JSON schema or a grammar, and the library llguidance says which tokens it allows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import ArgumentValueError, MissingPackageError, ModelError
from slipway.llm.weights import Array
from slipway.version import install_line

if TYPE_CHECKING:
    from slipway.llm.tokenizer import Tokenizer

# Between the parts of JSON: else a model may write spaces until its answer is long enough.
SPACES = {"whitespace_pattern": r" |\n[ \t]{0,20}"}


class FormMaker:
    """Makes the forms of answers for one model's tokens."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int, ends: Sequence[int]) -> None:
        self._library = _library()
        self.vocabulary = vocabulary
        try:
            inner = self._library.LLTokenizer(
                tokenizer.inner.to_str(), n_vocab=vocabulary, eos_token=list(ends) or None
            )
        except Exception as error:  # the library's own class: Exception
            raise ModelError(
                f"answers in a form are not served: llguidance cannot take the model's tokens "
                f"({error})"
            ) from None
        self._inner, self._tokens = tokenizer.inner, inner

    def marker(self, text: str) -> str:
        """Return how Lark's notation writes a text that may be a token of its own."""
        token = self._inner.token_to_id(text)
        if token is not None and self._tokens.is_special_token(token):
            return text  # <such_a_token>, which no text in quotes stands for
        return json.dumps(text)

    def of_schema(self, schema: dict[str, Any], name: str) -> str:
        """Return the grammar of a JSON schema, which `name` says in an error.

        Raises ArgumentValueError for what is no schema, or asks what the library cannot do.
        """
        matcher = self._library.LLMatcher
        try:
            grammar = matcher.grammar_from_json_schema(json.dumps(schema), defaults=SPACES)
        except ValueError as error:
            raise ArgumentValueError(f"{name} is no JSON schema: {error}") from None
        return self._checked(grammar, name)

    def of_lark(self, grammar: str, name: str) -> str:
        """Return the grammar that a text in Lark's notation describes."""
        return self._checked(self._library.LLMatcher.grammar_from_lark(grammar), name)

    def _checked(self, grammar: str, name: str) -> str:
        problem = self._library.LLMatcher.validate_grammar(grammar, self._tokens)
        if problem and not problem.startswith("WARNING"):
            raise ArgumentValueError(f"{name} cannot be kept to: {' '.join(problem.split())}")
        return str(grammar)

    def form(self, grammar: str) -> Form:
        """Return the form of one answer."""
        return Form(self._library.LLMatcher(self._tokens, grammar, log_level=0), self.vocabulary)


class Form:
    """How far one answer has come in its form."""

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher, self._count = matcher, vocabulary

    def allowed(self, logits: Array) -> Array:
        """Return the logits (vocabulary,) with those of tokens that do not fit at -infinity."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        fits = np.unpackbits(bits, bitorder="little", count=self._count).astype(bool)
        self._raise_problem()
        return np.where(fits, logits, -np.inf)

    def take(self, token: int) -> None:
        """Note the token that was drawn."""
        self._matcher.consume_token(token)
        self._raise_problem()

    @property
    def is_complete(self) -> bool:
        """Whether nothing but the end can follow."""
        return bool(self._matcher.is_stopped())

    def _raise_problem(self) -> None:
        if self._matcher.is_error():
            problem = self._matcher.get_error().partition("<state>")[0].strip()
            raise ModelError(f"the answer's form fails: {problem}")


def _library() -> Any:
    try:
        import llguidance
    except ImportError:
        raise MissingPackageError(
            f"answers in a form (JSON, a call that is required) need the library llguidance: "
            f"{install_line('llm')}"
        ) from None
    return llguidance
