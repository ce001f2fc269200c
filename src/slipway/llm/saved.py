"""A compiled model as a folder: its library, its description, its tokenizer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.errors import ModelError, reason_of
from slipway.llm.embedding import POOLINGS
from slipway.llm.tokenizer import Tokenizer

if TYPE_CHECKING:
    from slipway.runtime.graph.graph_factory import GraphExecutorFactoryModule

LIBRARY, DESCRIPTION, TOKENIZER = "model.tar", "model.json", "tokenizer.json"


@dataclass(frozen=True)
class Description:
    """What there is to know about a compiled model beside its library."""

    name: str
    family: str
    vocabulary: int
    context: int
    rows: int
    end_tokens: tuple[int, ...] = ()
    begin_token: int | None = None
    chat_template: str = ""
    caches: str = "float32"
    rewinds: bool = True  # whether tokens at the end can be forgotten, not only all
    pooling: str = ""  # of a model that makes vectors of texts
    normalised: bool = True


def save(
    folder: str | Path,
    library: GraphExecutorFactoryModule,
    description: Description,
    tokenizer: Tokenizer | None,
) -> None:
    """Write a compiled model as a folder, which `LanguageModel.open` reads."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    library.export_library(str(folder / LIBRARY))
    (folder / DESCRIPTION).write_text(json.dumps(asdict(description), indent=1), encoding="utf-8")
    if tokenizer is not None:
        (folder / TOKENIZER).write_text(tokenizer.to_json(), encoding="utf-8")


def described(folder: Path) -> tuple[Description, Tokenizer | None]:
    """Return the description and tokenizer of a folder that `save` wrote."""
    try:
        given = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        given["end_tokens"] = tuple(given["end_tokens"])
        description = Description(**given)
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelError(f"{folder / DESCRIPTION} cannot be read: {reason_of(error)}") from None
    begin = () if description.begin_token is None else (description.begin_token,)
    counts = (description.vocabulary, description.context, description.rows)
    numbers = (*counts, *description.end_tokens, *begin)
    texts = (description.name, description.family, description.chat_template, description.caches,
             description.pooling)  # fmt: skip
    if not (all(type(n) is int for n in numbers) and all(isinstance(t, str) for t in texts)):
        raise ModelError(f"{folder / DESCRIPTION} is damaged: numbers or texts are something else")
    if min(counts) < 1:
        raise ModelError(f"{folder / DESCRIPTION} is damaged: a size of it is {min(counts)}")
    if description.pooling not in ("", *POOLINGS):
        raise ModelError(f"{folder / DESCRIPTION} is damaged: pooling is {description.pooling!r}")
    file = folder / TOKENIZER
    return description, Tokenizer.of_file(file) if file.exists() else None
