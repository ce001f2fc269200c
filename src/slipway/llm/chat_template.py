"""Messages of a chat as one text, by the template that came with a model.

Templates are written for transformers: they are given what it gives them, in its form of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from slipway.errors import MissingPackageError, ModelError
from slipway.version import install_line


def rendered(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> str:
    """Return the text of messages, which ends where the answer begins.

    `names` are those of the special tokens, `tools` the functions that the model may call.
    Raises ModelError where the template refuses the messages, or fails.
    """
    try:
        from jinja2.exceptions import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingPackageError(
            f"this model's chat template needs jinja2: {install_line('llm')}"
        ) from None

    world = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    world.filters["tojson"] = _as_json
    world.globals |= {"raise_exception": _refuse, "strftime_now": _now}
    try:
        made = world.from_string(template).render(
            messages=[dict(m) for m in messages], tools=list(tools) if tools else None,
            add_generation_prompt=True, **names,
        )  # fmt: skip
    except (TemplateError, TypeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the model's chat template failed: {error}") from None
    return str(made)


def _refuse(problem: str) -> None:
    raise ModelError(f"the model's chat template refuses the messages: {problem}")


def _as_json(value: Any, indent: int | None = None, **options: Any) -> str:
    """Return JSON as it is: jinja2's own filter writes < and ' for pages of the web."""
    return json.dumps(value, ensure_ascii=options.pop("ensure_ascii", False), indent=indent,
                      **options)  # fmt: skip


def _now(form: str) -> str:
    return datetime.now().strftime(form)
