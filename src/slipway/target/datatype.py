"""Numbers of the user's own, and what computes with them: ``tvm.target.datatype``.

::

    register("posites2", 131)
    register_op(create_lower_func({16: "Posit16es2Add"}), "Add", "llvm", "posites2")

Loops compute with "custom[posites2]16" as with floats.  Before code is made, each operation
becomes what was registered for it: mostly a call of a C function on unsigned integers of as many
bits, which hold the numbers.  Moving them (loads, stores, choices) needs no function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from slipway import dtypes
from slipway.errors import ArgumentValueError, LoweringError

Node = TypeVar("Node")  # an expression


@dataclass(frozen=True)
class CFunctions:
    """C functions by the number of bits; of a Cast, by those of its operand and its result."""

    by_bits: Mapping[Any, str]

    def name_for(self, key: object, what: str) -> str:
        """Return the function for a number of bits; LoweringError where there is none."""
        if key not in self.by_bits:
            known = ", ".join(str(k) for k in self.by_bits) or "none"
            raise LoweringError(
                f"no C function was given for {what} of {key} bits (there is one for {known}): add "
                "it to the map"
            )
        return self.by_bits[key]


@dataclass(frozen=True)
class MinimumValue:
    """The C functions that give a type's least finite value."""

    functions: CFunctions
    type_name: str


Lowering = Callable[..., Any] | CFunctions
Minimum = Callable[[int], Any] | MinimumValue
# (target kind, operation, intrinsic or "", type of the result, of a Cast's operand or "")
LoweringKey = tuple[str, str, str, str, str]
LOWERINGS: dict[LoweringKey, Lowering] = {}
MINIMA: dict[str, Minimum] = {}


def register(type_name: str, type_code: int) -> None:
    """Make "custom[type_name]bits" a dtype; `type_code` is its DLPack code, from 129 to 255."""
    dtypes.register_custom(type_name, type_code)


def get_type_code(type_name: str) -> int:
    """Return the code that a name was registered with."""
    found = dtypes.custom_code(type_name)
    if found is None:
        raise ArgumentValueError(f"there is no datatype {type_name!r}: register it first")
    return found


def get_type_name(type_code: int) -> str:
    """Return the name that was registered with a code."""
    found = dtypes.custom_type_name(type_code)
    if found is None:
        raise ArgumentValueError(f"no datatype has the code {type_code}: register it first")
    return found


def get_type_registered(type_code: int) -> bool:
    """Return whether a datatype was registered with a code."""
    return dtypes.custom_type_name(type_code) is not None


def register_op(
    lower_func: Lowering, op_name: str, target: str, src_type_name: str,
    dest_type_name: str | None = None, intrinsic_name: str | None = None,
) -> None:  # fmt: skip
    """Say what an operation on numbers of the user's own becomes on targets of a kind.

    `lower_func` takes the expression and returns one of the integers that hold its value.
    `op_name` is the class of the expression ("Add", "LE", "Cast", "FloatImm", "Call"); a Cast says
    both types, one of which may be "float", "int" or "uint"; a Call its intrinsic ("tir.exp").
    """
    if op_name == "Cast" and dest_type_name is None:
        raise ArgumentValueError(
            f"register_op of a Cast from {src_type_name!r} needs dest_type_name: what it makes"
        )
    intrinsic = (intrinsic_name or "").removeprefix("tir.") if op_name == "Call" else ""
    key = (target, op_name, intrinsic, src_type_name, "")
    if op_name == "Cast":
        key = (target, op_name, "", str(dest_type_name), src_type_name)
    LOWERINGS[key] = lower_func


def register_min_func(func: Minimum, type_name: str) -> None:
    """Say what the least finite value is: ``func(bits)`` gives an expression of the type."""
    MINIMA[type_name] = func


def create_lower_func(extern_func_map: Mapping[Any, str]) -> CFunctions:
    """Return what `register_op` takes to call a C function by the number of bits.

    The map's keys are numbers of bits; for a Cast, pairs of those of its operand and its result.
    """
    return CFunctions(dict(extern_func_map))


def create_min_lower_func(extern_func_map: Mapping[int, str], type_name: str) -> MinimumValue:
    """Return what `register_min_func` takes to call a C function without arguments."""
    return MinimumValue(CFunctions(dict(extern_func_map)), type_name)


def lower_ite(ite_op: Node) -> Node:
    """Return a choice between numbers of the user's own as one between integers."""
    made: Node = _on_integers(ite_op)
    return made


def lower_call_pure_extern(op: Node) -> Node:
    """Return a call of a C function that gives a number of the user's own as one of integers."""
    made: Node = _on_integers(op)
    return made


def _on_integers(call: Any) -> Any:
    return call.replace(dtype=stored_dtype(call.dtype))


def stored_dtype(dtype: str) -> str:
    """Return the integers that numbers of the user's own lie in; other types are themselves."""
    return dtypes.custom_carrier(dtype) if dtypes.is_custom(dtype) else dtype


def type_name_of(dtype: str) -> str:
    """Return the name of a type as `register_op` takes it: "posites2", "float", "int", "uint"."""
    code = dtypes.code_of(dtype)
    return dtypes.custom_name(code) if code.startswith("custom") else code
