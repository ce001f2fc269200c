"""Small TFLite models of one operator, written with the flatbuffer schema."""

from dataclasses import dataclass, field

import numpy as np
import pytest

schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
flatbuffers = pytest.importorskip("flatbuffers")

TYPES = {
    "float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7,
    "int8": 9,
}  # fmt: skip


@dataclass
class T:
    """A tensor: shape (-1 is open), dtype, quantisation, and its value when it is constant."""

    shape: tuple
    dtype: str = "float32"
    scale: object = None
    zero: object = 0
    data: object = None
    axis: int = 0
    variable: bool = False
    name: str = field(default="", compare=False)


def const(values, dtype="int32", scale=None, zero=0, axis=0):
    """A constant tensor."""
    array = np.asarray(values, dtype)
    return T(array.shape, dtype, scale, zero, array, axis)


def _tensor(description, index, buffers):
    tensor = schema.TensorT()
    tensor.shape = [1 if d == -1 else int(d) for d in description.shape]
    if -1 in description.shape:
        tensor.shapeSignature = [int(d) for d in description.shape]
    tensor.type = TYPES[description.dtype]
    tensor.name = description.name or f"t{index}"
    tensor.isVariable = description.variable
    tensor.hasRank = True
    if description.data is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(description.data).tobytes(), np.uint8)
        tensor.buffer = len(buffers)
        buffers.append(buffer)
    else:
        tensor.buffer = 0
    if description.scale is not None:
        made = schema.QuantizationParametersT()
        made.scale = np.atleast_1d(np.asarray(description.scale, np.float32))
        made.zeroPoint = np.broadcast_to(np.asarray(description.zero, np.int64), made.scale.shape)
        made.quantizedDimension = description.axis
        tensor.quantization = made
    return tensor


def model(operator, inputs, outputs, options=None, intermediates=(), version=1, **fields):
    """Return the bytes of a model of one operator.

    `inputs` holds tensors (None: left out); those without data are the model's inputs.  `options`
    is the name of the option table, `fields` its entries.
    """
    buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    listed = [t for t in (*inputs, *outputs, *intermediates) if t is not None]
    distinct = []
    for t in listed:
        if not any(t is d for d in distinct):
            distinct.append(t)
    graph.tensors = [_tensor(t, i, buffers) for i, t in enumerate(distinct)]

    def index(t):
        return -1 if t is None else next(i for i, d in enumerate(distinct) if d is t)

    code = schema.OperatorCodeT()
    custom = fields.pop("custom_options", None)
    number = schema.BuiltinOperator.CUSTOM if custom else getattr(schema.BuiltinOperator, operator)
    if custom:
        code.customCode = operator
    code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
    code.version = version
    node = schema.OperatorT()
    node.opcodeIndex = 0
    node.inputs, node.outputs = [index(t) for t in inputs], [index(t) for t in outputs]
    node.intermediates = [index(t) for t in intermediates]
    if custom:
        node.customOptions = np.frombuffer(custom, np.uint8)
    if options:
        table = getattr(schema, f"{options}T")()
        for name, value in fields.items():
            assert hasattr(table, name), name
            setattr(table, name, value)
        node.builtinOptions = table
        node.builtinOptionsType = getattr(schema.BuiltinOptions, options)
    graph.operators = [node]
    free = [t for t in inputs if t is not None and t.data is None and not t.variable]
    graph.inputs = [index(t) for t in distinct if any(t is f for f in free)]
    graph.outputs = [index(t) for t in outputs]
    whole = schema.ModelT()
    whole.version, whole.operatorCodes, whole.subgraphs = 3, [code], [graph]
    whole.buffers, whole.description = buffers, "test"
    packer = flatbuffers.Builder(1024)
    packer.Finish(whole.Pack(packer), b"TFL3")
    return bytes(packer.Output())


TYPES["resource"] = 13


@dataclass
class Node:
    """An operator of a program: its inputs and outputs are tensors of its graph."""

    kind: str
    inputs: list
    outputs: list
    options: str = ""
    fields: dict = field(default_factory=dict)
    custom_options: bytes = b""


def program(*graphs):
    """Return the bytes of a model of several subgraphs: (nodes, inputs, outputs) of each."""
    buffers, codes, made = [schema.BufferT()], [], []
    for nodes, inputs, outputs in graphs:
        graph = schema.SubGraphT()
        tensors = []
        for t in (*inputs, *(t for n in nodes for t in (*n.inputs, *n.outputs)), *outputs):
            if not any(t is d for d in tensors):
                tensors.append(t)

        def place(t, among=tensors):
            return next(i for i, d in enumerate(among) if d is t)

        graph.tensors = [_tensor(t, i, buffers) for i, t in enumerate(tensors)]
        graph.inputs, graph.outputs = [place(t) for t in inputs], [place(t) for t in outputs]
        graph.operators = []
        for n in nodes:
            code = schema.OperatorCodeT()
            custom = bool(n.custom_options)
            number = getattr(schema.BuiltinOperator, "CUSTOM" if custom else n.kind)
            code.customCode = n.kind if custom else None
            code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
            code.version = 1
            operator = schema.OperatorT()
            operator.opcodeIndex = len(codes)
            codes.append(code)
            operator.inputs = [place(t) for t in n.inputs]
            operator.outputs = [place(t) for t in n.outputs]
            if custom:
                operator.customOptions = np.frombuffer(n.custom_options, np.uint8)
            if n.options:
                table = getattr(schema, f"{n.options}T")()
                for name, value in n.fields.items():
                    assert hasattr(table, name), name
                    setattr(table, name, value)
                operator.builtinOptions = table
                operator.builtinOptionsType = getattr(schema.BuiltinOptions, n.options)
            graph.operators.append(operator)
        made.append(graph)
    whole = schema.ModelT()
    whole.version, whole.operatorCodes, whole.subgraphs = 3, codes, made
    whole.buffers, whole.description = buffers, "test"
    packer = flatbuffers.Builder(1024)
    packer.Finish(whole.Pack(packer), b"TFL3")
    return bytes(packer.Output())
