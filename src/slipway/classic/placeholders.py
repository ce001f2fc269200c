"""What stands for a part of classic TVM that scripts import and Slipway does not have.

It can be imported, passed on and looked into; calling it, or a class made of it, raises
NotAvailableError, which says what to do instead.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from slipway.errors import NotAvailableError


class Placeholder:
    """A name that is not there: every use of it but looking up names in it raises."""

    def __init__(self, name: str, advice: str) -> None:
        self.__dict__.update(_name=name, _advice=advice, __name__=name)

    def _refuse(self) -> NotAvailableError:
        return NotAvailableError(f"{self._name} is not there: {self._advice}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(f"{self._name}.{name}", self._advice)

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Refuse to be called; asked whether its library exists, it says no."""
        if self._name.endswith(".exists"):
            return False
        raise self._refuse()

    def __enter__(self) -> Any:
        raise self._refuse()

    def __exit__(self, *exception: object) -> None:
        """Never reached: it cannot be entered."""

    def __iter__(self) -> Any:
        raise self._refuse()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """Refuse to be a base class."""
        raise self._refuse()

    def __setattr__(self, name: str, value: Any) -> None:
        raise self._refuse()

    def __repr__(self) -> str:
        return f"<{self._name}: not there>"


def placeholder_of(module: ModuleType | str, name: str, advice: str) -> Placeholder:
    """Return what stands for `name` of a module of classic TVM; AttributeError for ``__path__``."""
    where = module if isinstance(module, str) else module.__name__
    if name.startswith("__"):
        raise AttributeError(f"module {where!r} has no attribute {name!r}")
    return Placeholder(f"{where.replace('slipway', 'tvm', 1)}.{name}", advice)


TUNING = (
    "this tuner is not there; slipway.meta_schedule.tune_tvm and `slipway tune` search the ways to "
    "compute each kernel.  Without them schedules are chosen from the target's description, and "
    'PassContext(config={"schedules.force": ...}) and "schedules.records" take choices of your own '
    "(slipway check --explain shows them)"
)

# What the parts of classic meta_schedule are about here.
SCHEDULES = (
    "the searches here are tune_tvm, tune_relay and relay_integration.extract_tasks of models, "
    "over the strategies of their kernels, and tune_tir of functions, over schedules of blocks"
)
