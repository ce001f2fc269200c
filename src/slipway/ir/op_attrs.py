"""What is said of operators by name ("target.<compiler>" and the like), and of functions."""

from __future__ import annotations

from typing import Any

from slipway.errors import LoweringError, NotAvailableError

STRATEGY = "FTVMStrategy"
OWN = ".registered"  # ends the name of the operator that stands for one with a strategy
_TABLE: dict[tuple[str, str], tuple[Any, int]] = {}


def set_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Give an operator the attribute `attr_key`; usable as a decorator of a function.

    Of two values that of the higher level counts.  Raises LoweringError for two of one level.
    """

    def register(given: Any) -> Any:
        known = _TABLE.get((op_name, attr_key))
        if known is not None and known[1] == level and known[0] is not given:
            raise LoweringError(
                f"the attribute {attr_key!r} of {op_name} is registered at level {level} already: "
                "give a higher level to replace it"
            )
        if known is None or known[1] <= level:
            _TABLE[op_name, attr_key] = given, level
        return given

    return register if value is None else register(value)


def op_attr(op_name: str, attr_key: str) -> Any:
    """Return the attribute of an operator, or None."""
    known = _TABLE.get((op_name, attr_key))
    return None if known is None else known[0]


def strategy_of(op_name: str) -> Any:
    """Return the strategy that is registered for an operator, by its name or its own, or None."""
    return op_attr(op_name.removesuffix(OWN), STRATEGY)


def op_attrs() -> list[tuple[str, str, Any]]:
    """Return (operator, attribute, value) of all that were given."""
    return [(name, key, value) for (name, key), (value, _) in _TABLE.items()]


def reset_op_attr(op_name: str, attr_key: str) -> None:
    """Take an attribute away."""
    _TABLE.pop((op_name, attr_key), None)


class DictAttrs(dict[str, Any]):
    """Attributes by name, which are also read as fields."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no attribute {name!r}") from None


def make_node(type_key: str, **kwargs: Any) -> DictAttrs:
    """Return attributes for ``relay.Function(..., attrs=)``: the type key is "DictAttrs".

    Raises NotAvailableError for another one: nodes are made by calling their class.
    """
    if type_key != "DictAttrs":
        raise NotAvailableError(
            f'tvm.ir.make_node({type_key!r}) is not there: "DictAttrs" can be made; of other nodes '
            "call the class"
        )
    return DictAttrs(kwargs)
