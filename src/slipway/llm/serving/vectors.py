"""What a client asks /v1/embeddings for, and the vectors of its texts."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from slipway.errors import ArgumentValueError
from slipway.llm.embedding import unit
from slipway.llm.model import LanguageModel
from slipway.llm.serving.requests import named_model, texts_of, whole

MOST_TEXTS = 2048  # of one request, as OpenAI's


@dataclass
class VectorRequest:
    """What one body asks for.  Raises ArgumentValueError for what is wrong or not served."""

    model: LanguageModel
    body: dict[str, Any]
    texts: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        model, body, known = self.model, self.body, self.model.description
        named_model(model, body)
        if not known.pooling:
            raise ArgumentValueError(
                f"{known.name!r} writes text: a server of vectors is started with a model whose "
                "files say how its tokens are pooled, or with --embeddings"
            )
        self.texts = texts_of(
            model, "input", body.get("input"), MOST_TEXTS, model.need_tokenizer().encode_whole
        )
        for tokens in self.texts:
            if not 1 <= len(tokens) <= known.context:
                raise ArgumentValueError(
                    f"a text has {len(tokens)} tokens; the model takes 1 to {known.context}"
                )
        self.form = body.get("encoding_format") or "float"
        if self.form not in ("float", "base64"):
            raise ArgumentValueError(
                f"'encoding_format' is {self.form!r}: it must be 'float' or 'base64'"
            )
        wanted = body.get("dimensions")
        self.dimensions = None if wanted is None else whole("dimensions", wanted, 1)

    def vector(self, number: int) -> dict[str, Any]:
        """Return the vector of a text, in OpenAI's form."""
        made = self.model.embed_tokens(self.texts[number])
        if self.dimensions is not None and self.dimensions < len(made):
            made = made[: self.dimensions]
            made = unit(made) if self.model.description.normalised else made
        made = made.astype("<f4")
        given: Any = made.tolist()
        if self.form == "base64":
            given = base64.b64encode(made.tobytes()).decode()
        return {"object": "embedding", "index": number, "embedding": given}

    def whole(self, data: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the answer."""
        count = sum(map(len, self.texts))
        return {
            "object": "list", "data": data, "model": self.model.description.name,
            "usage": {"prompt_tokens": count, "total_tokens": count},
        }  # fmt: skip
