"""What the walk of `codegen.ssa` writes kernels to: values that are set once, structured control.

A sink decides nothing: it spells what it is told.  A dtype here is one lane in a register: "bool",
"int8" to "uint64", "float32", "float64"; float16 and bfloat16 are their 16 bits, "uint16".  Only
between an operand and a result is a value a "float16", where the device computes with them: such a
value is made, and ends, by `bitcast`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slipway import dtypes
from slipway.errors import CodegenError
from slipway.ir.instructions.cooperative_products import CooperativeProduct


@dataclass(frozen=True, slots=True)
class Value:
    """A value of one lane: its dtype in a register, and what the sink calls it."""

    dtype: str
    ref: Any


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that a kernel reads or writes, in elements of `dtype`, as `memory_dtype` gives it.

    Of scope "matrix" it is matrices, which `Sink.matrix` reads and writes.  With `apart` a thread's
    elements are named by constants alone, so that each may be a variable by itself.

    `scope` is "global" (parameter number `number` of those that are pointers), "shared" by the
    threads of a block, or "local" to a thread; the last two have `count` elements.
    """

    scope: str
    number: int
    name: str
    dtype: str
    count: int = 0
    apart: bool = False


Place = tuple[Memory, Value]  # an element of memory


@dataclass(frozen=True)
class Parameters:
    """What a kernel is launched with.

    `pointers` are memories by number; a pointer is None where the kernel does not use it.
    `scalars` have a name and a dtype each.  `written` are the numbers of memories that are stored
    to, `coherent` of those through which the threads of a block hand each other values.  `warp`
    threads hand each other values without memory; 1: none do.
    """

    pointers: tuple[Memory | None, ...]
    scalars: tuple[tuple[str, str], ...]
    written: frozenset[int]
    coherent: frozenset[int]
    noalias: bool
    warp: int = 1


class Sink(ABC):
    """Writes one kernel after the other; every method but `begin` adds to the current one.

    `keeps_sums` is whether each sum of floats is rounded: compilers of a language that allows
    reassociation make ``(a + b) - b`` an a.
    """

    keeps_sums = True

    @abstractmethod
    def begin(self, name: str, parameters: Parameters, threads: tuple[int, ...]) -> None:
        """Begin a kernel with so many threads along x, y and z."""

    @abstractmethod
    def end(self) -> None:
        """End the kernel."""

    @abstractmethod
    def scalar(self, number: int) -> Value:
        """Return a scalar parameter."""

    @abstractmethod
    def axis(self, tag: str) -> Value:
        """Return the number of the thread or block along an axis ("threadIdx.x"), an int32."""

    @abstractmethod
    def constant(self, dtype: str, value: float) -> Value:
        """Return a constant."""

    @abstractmethod
    def binary(self, op: str, a: Value, b: Value) -> Value:
        """Return a value of two of one dtype.

        `op` is "add", "sub", "mul", "div" (toward zero; no zero divides), "and", "or", "xor",
        "shl" or "shr" (as the sign of the dtype says); of bool, "and", "or" and "xor".
        """

    @abstractmethod
    def compare(self, op: str, a: Value, b: Value) -> Value:
        """Return whether "==", "!=", "<", "<=", ">" or ">=" holds; with a NaN only "!=" does."""

    @abstractmethod
    def negate(self, value: Value) -> Value:
        """Return the opposite of a bool, or minus a float."""

    @abstractmethod
    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """Return one of two values."""

    @abstractmethod
    def convert(self, value: Value, dtype: str) -> Value:
        """Return a number as another dtype; neither of them is bool."""

    @abstractmethod
    def bitcast(self, value: Value, dtype: str) -> Value:
        """Return the bits as another dtype of the same size."""

    @abstractmethod
    def math(self, op: str, *args: Value) -> Value:
        """Return a function of floats: "sqrt", "fabs", "floor", "ceil", "trunc", "rint", "fma".

        And of uint32: "popcount", "clz"; and whether a float "isnan", a bool.
        """

    @abstractmethod
    def declare(self, memory: Memory) -> None:
        """Make memory of a block or a thread."""

    @abstractmethod
    def load(self, memory: Memory, index: Value) -> Value:
        """Return an element."""

    @abstractmethod
    def store(self, memory: Memory, index: Value, value: Value) -> None:
        """Set an element."""

    @abstractmethod
    def branch(
        self, condition: Value, then: Callable[[], None], otherwise: Callable[[], None] | None
    ) -> None:
        """Do one of two things."""

    @abstractmethod
    def choose(
        self, condition: Value, then: Callable[[], Value], otherwise: Callable[[], Value]
    ) -> Value:
        """Return one of two values, of which only that one is computed."""

    @abstractmethod
    def loop(self, start: Value, end: Value, body: Callable[[Value], None]) -> None:
        """Do something for each number from start to end, which it does not reach."""

    @abstractmethod
    def repeat(self, condition: Callable[[], Value], body: Callable[[], None]) -> None:
        """Do something while a condition holds."""

    @abstractmethod
    def barrier(self) -> None:
        """Let the threads of a block wait for each other, and see what they have written."""

    def warp_barrier(self) -> None:
        """Let the threads of a warp do so; all of them do, where there is nothing less."""
        self.barrier()

    @abstractmethod
    def shuffle(self, op: str, value: Value, position: Value, width: int) -> Value:
        """Return another thread's value, as ir/instructions/warp_shuffles.py says."""

    def matrix(self, op: str, entry: CooperativeProduct, *operands: Place | Value) -> None:
        """Do what ir/instructions/cooperative_products.py says of ``warp_`` and `op`."""
        raise CodegenError(
            f"kernels in this language have no product of a warp ({entry.name}). Compile for "
            "Vulkan, or without that intrinsic"
        )


def register_dtype(dtype: str) -> str:
    """Return the dtype of one lane of `dtype` in a register."""
    scalar = dtypes.scalar_of(dtype)
    return "uint16" if scalar in ("float16", "bfloat16") else scalar


def memory_dtype(dtype: str) -> str:
    """Return the dtype of one lane of `dtype` in memory."""
    kept = register_dtype(dtype)
    return "uint8" if kept == "bool" else kept
