"""A few nodes of an ONNX model as a model of their own, with the values that they read and make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.onnx.reader import load_model, onnx_package
from slipway.frontends.onnx.reference import tensors_of

Values = Mapping[str, np.ndarray[Any, Any]]


def extract(model: Any, names: Iterable[str], inputs: Values) -> tuple[Any, Values, Values]:
    """Return (model, inputs, outputs) of the nodes called `names`, run on the whole's `inputs`.

    A node without a name has that of its first output.  What the nodes read of others' results
    become inputs, what others read of theirs, outputs; both are as ONNX Runtime, or without it the
    onnx package's own evaluator, computes them.  Constants come along.  Raises ModelError when no
    node has such a name.
    """
    onnx = onnx_package()
    proto = load_model(model)
    wanted = set(names)
    chosen = [n for n in proto.graph.node if (n.name or (*n.output, "")[0]) in wanted]
    if not chosen:
        raise ModelError(f"no node of the model is called {' or '.join(sorted(wanted))}")
    weights = {t.name: t for t in proto.graph.initializer}
    constants = {n.output[0]: n for n in proto.graph.node if n.op_type == "Constant"}
    made = {name for node in chosen for name in node.output if name}
    read = list(dict.fromkeys(name for node in chosen for name in _reads(node)))
    outer = [name for name in read if name not in made]
    held = [constants[name] for name in outer if name in constants]
    free = [name for name in outer if name not in weights and name not in constants]
    ids = {id(node) for node in chosen}
    others = {n for node in proto.graph.node if id(node) not in ids for n in _reads(node)}
    others |= {o.name for o in proto.graph.output}
    ends = [name for node in chosen for name in node.output if name in others]
    ends = ends or [name for name in chosen[-1].output if name]

    found = tensors_of(proto, inputs, [*free, *ends])
    graph = onnx.helper.make_graph(
        [*held, *chosen],
        "culprit",
        [_info(onnx, name, found[name]) for name in free],
        [_info(onnx, name, found[name]) for name in ends],
        [weights[name] for name in outer if name in weights],
    )
    small = onnx.helper.make_model(
        graph, opset_imports=proto.opset_import, functions=proto.functions
    )
    small.ir_version = proto.ir_version
    return small, {n: found[n] for n in free}, {n: found[n] for n in ends}


def save_case(folder: Path, model: Any, inputs: Values, outputs: Values) -> list[str]:
    """Write a model with one set of data, laid out as onnx's own test cases; return the names."""
    onnx = onnx_package()
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    written = ["model.onnx"]
    for kind, values in (("input", inputs), ("output", outputs)):
        for number, (name, value) in enumerate(values.items()):
            tensor = onnx.numpy_helper.from_array(np.asarray(value), name)
            (data / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString())
            written.append(f"test_data_set_0/{kind}_{number}.pb")
    return written


def _info(onnx: Any, name: str, value: Any) -> Any:
    kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, value.shape)


def _reads(node: Any) -> Iterator[str]:
    """Yield the names that a node reads, those that its subgraphs take from outside included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.type != 5:  # AttributeProto.GRAPH
            continue
        inner = attribute.g
        own = {i.name for i in inner.input} | {t.name for t in inner.initializer}
        for each in inner.node:
            yield from (name for name in _reads(each) if name not in own)
            own.update(each.output)
        yield from (o.name for o in inner.output if o.name not in own)
