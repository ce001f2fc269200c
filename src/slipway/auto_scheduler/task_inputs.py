"""Which inputs of a computation have the values that its task was given, by name.

    {"W_indptr": array}                                       a placeholder of that name
    {"sparse_dense_bsr_512_256_16_1_4916_33_W_indptr": ...}   of topi.nn.sparse_dense, by its sizes

Other names are told by functions that are registered here, as classic ones are.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from slipway.errors import TuningError
from slipway.te.operation import ExternOp, Operation
from slipway.te.tensor import Tensor

NamesOfInputs = Callable[[Sequence[Tensor]], Mapping[Tensor, str]]

_REGISTERED: dict[str, NamesOfInputs] = {}


def register_task_input_check_func(
    func_name: NamesOfInputs | str, f: NamesOfInputs | None = None, override: bool = False
) -> Any:
    """Register a function that names inputs of a computation: ``f(tensors)`` gives {tensor: name}.

    Alone or with ``("name")`` it is a decorator.  Raises TuningError where the name is taken,
    unless `override`.
    """
    if callable(func_name):
        f, func_name = func_name, f"{func_name.__module__}.{func_name.__qualname__}"
    if not isinstance(func_name, str):
        raise TuningError(f"a function is registered under a name, not {func_name!r}")
    name = func_name

    def register(function: NamesOfInputs) -> NamesOfInputs:
        if name in _REGISTERED and not override:
            raise TuningError(
                f"the names of inputs {name!r} are registered already: override=True replaces them"
            )
        _REGISTERED[name] = function
        return function

    return register if f is None else register(f)


def names_of_inputs(tensors: Sequence[Tensor], known: Container[str]) -> dict[Tensor, str]:
    """Return the names by which inputs among `tensors` are `known`."""
    found = {t: t.name for t in tensors if t.name in known}
    for function in (_of_sparse_product, *_REGISTERED.values()):
        found |= {t: name for t, name in function(tensors).items() if name in known}
    return found


def _of_sparse_product(tensors: Sequence[Tensor]) -> dict[Tensor, str]:
    """The matrix in blocks of a topi.nn.sparse_dense."""
    for op in _operations(tensors):
        if not isinstance(op, ExternOp) or op.tag != "sparse_dense":
            continue
        data, indices, indptr, dense = op.input_tensors
        if data.ndim == 3:
            rows = (indptr.shape[0] - 1) * data.shape[1]
            sizes = rows, dense.shape[1], *data.shape[1:], indices.shape[0], indptr.shape[0]
            prefix = "_".join(["sparse_dense_bsr", *map(str, sizes)])
            return {data: f"{prefix}_W_data", indices: f"{prefix}_W_indices",
                    indptr: f"{prefix}_W_indptr"}  # fmt: skip
    return {}


def _operations(tensors: Sequence[Tensor]) -> list[Operation]:
    stack, found = [t.op for t in tensors], dict[Operation, None]()
    while stack:
        op = stack.pop()
        if op not in found:
            found[op] = None
            stack += [t.op for t in op.input_tensors]
    return list(found)
