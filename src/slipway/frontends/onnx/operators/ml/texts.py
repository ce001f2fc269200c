"""Classes and inputs that are texts: the graph computes with positions in one list of names.

No tensor holds texts.  A classifier's are a list of its own or a constant that an index chooses
from; what chooses, moves or compares them does the same with numbers, one for each text.  An
input of texts takes the positions of those that the model knows, and -1 for any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_STRING, _INT64 = 8, 7  # of TensorProto.DataType
_INT, _TENSOR, _INTS = 2, 4, 7  # of AttributeProto.AttributeType
_DOMAIN = "ai.onnx.ml"
# Operators whose result has the texts that one of their inputs has, at any place.
_MOVES = {
    "ArrayFeatureExtractor", "Gather", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
    "Transpose", "Concat", "Where", "Slice", "Expand", "Split",
}  # fmt: skip
_COMPARES = {"Equal"}
# Operator -> (its list of texts, what stands for it, whether it is what the operator gives).
_LISTS = {
    "LinearClassifier": (("classlabels_strings", "classlabels_ints", True),),
    "SVMClassifier": (("classlabels_strings", "classlabels_ints", True),),
    "TreeEnsembleClassifier": (("classlabels_strings", "classlabels_int64s", True),),
    "ZipMap": (("classlabels_strings", "classlabels_int64s", False),),
    "LabelEncoder": (
        ("keys_strings", "keys_int64s", False),
        ("values_strings", "values_int64s", True),
    ),
    "OneHotEncoder": (("cats_strings", "cats_int64s", False),),
    "TfIdfVectorizer": (("pool_strings", "pool_int64s", False),),
}
# Those of them whose list is of texts that an input has: they take no numbers for them.
_READS = {"LabelEncoder": "keys_strings", "OneHotEncoder": "cats_strings",
          "TfIdfVectorizer": "pool_strings"}  # fmt: skip
_DOMAINS = {"TfIdfVectorizer": ""}  # of the others it is ai.onnx.ml


def without_texts(proto: Any) -> tuple[Any, Mapping[str, tuple[str, ...]]]:
    """Return the model with numbers for texts, and what they stand for in outputs.

    It is the same model where it has none, or where an operator does more with one than to choose,
    move or compare it.  Dictionaries of the classes' scores (ZipMap) are the scores.
    """
    proto = _without_mappers(proto)
    graph = proto.graph
    zips = {n.output[0]: _lists(n) for n in graph.node if _is(n, "ZipMap") and n.output}
    texts = dict.fromkeys(_texts(graph))
    if not zips and not texts:
        return proto, {}
    lists = [found for node in graph.node for found in _lists(node).values()]
    longest = max([*lists, *(list(t.string_data) for t in _tensors(graph))], key=len, default=[])
    names = longest if len({*longest}) == len(longest) and {*longest} >= {*texts} else sorted(texts)
    numbers = {text: number for number, text in enumerate(names)}
    textual = _textual(graph)
    if textual is None:
        return proto, {}
    made = type(proto)()
    made.CopyFrom(proto)
    for tensor in _tensors(made.graph):
        tensor.int64_data.extend(numbers[text] for text in tensor.string_data)
        tensor.data_type = _INT64
        tensor.ClearField("string_data")
    for node in made.graph.node:
        if _is(node, "ZipMap"):
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
        _renumber(node, numbers)
    for info in (*made.graph.input, *made.graph.output, *made.graph.value_info):
        if info.name in zips:
            info.ClearField("type")
        elif info.name in textual:
            info.type.tensor_type.elem_type = _INT64
    labels = dict.fromkeys(textual, _decoded(names))
    labels |= {name: _decoded(own) for name, found in zips.items() for own in found.values()}
    return made, labels


def _decoded(names: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(text.decode(errors="replace") for text in names)


def _is(node: Any, kind: str) -> bool:
    return bool(node.domain == _DOMAIN and node.op_type == kind)


def _without_mappers(proto: Any) -> Any:
    """Return the model with a LabelEncoder for each CategoryMapper, which goes both ways."""
    if not any(_is(node, "CategoryMapper") for node in proto.graph.node):
        return proto
    made = type(proto)()
    made.CopyFrom(proto)
    textual = _inputs(made.graph)
    for node in made.graph.node:
        if not _is(node, "CategoryMapper"):
            if set(node.input) & textual and node.op_type in _MOVES:
                textual.update(node.output)
            continue
        to_numbers = node.input[0] in textual
        if not to_numbers:
            textual.update(node.output)
        keys, values = ("keys", "values") if to_numbers else ("values", "keys")
        renamed = {"cats_strings": f"{keys}_strings", "cats_int64s": f"{values}_int64s"}
        unused = "default_string" if to_numbers else "default_int64"
        kept = [a for a in node.attribute if a.name != unused]
        if not to_numbers and all(a.name != "default_string" for a in kept):
            kept.append(type(node.attribute[0])(name="default_string", s=b"_Unused", type=3))
        node.op_type = "LabelEncoder"
        for attribute in kept:
            attribute.name = renamed.get(attribute.name, attribute.name)
        _replace(node, kept)
    return made


def _replace(node: Any, attributes: Sequence[Any]) -> None:
    copies = [type(a).FromString(a.SerializeToString()) for a in attributes]
    del node.attribute[:]
    node.attribute.extend(copies)


def _inputs(graph: Any) -> set[str]:
    """Return the names of inputs that are texts."""
    held = {tensor.name for tensor in graph.initializer}
    return {
        info.name
        for info in graph.input
        if info.name not in held and info.type.tensor_type.elem_type == _STRING
    }


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield the constants that hold texts."""
    for tensor in graph.initializer:
        if tensor.data_type == _STRING:
            yield tensor
    for node in graph.node:
        if (node.op_type == "Constant" and not node.domain) or _is(node, "LabelEncoder"):
            for attribute in node.attribute:
                if attribute.type == _TENSOR and attribute.t.data_type == _STRING:
                    yield attribute.t


def _lists(node: Any) -> dict[str, list[bytes]]:
    """Return the node's lists of texts by attribute, without empty ones."""
    domain = _DOMAINS.get(node.op_type, _DOMAIN)
    wanted = {row[0] for row in _LISTS.get(node.op_type, ()) if node.domain == domain}
    found = {a.name: list(a.strings) for a in node.attribute if a.name in wanted}
    return {name: texts for name, texts in found.items() if texts}


def _texts(graph: Any) -> Iterator[bytes]:
    for tensor in _tensors(graph):
        yield from tensor.string_data
    for node in graph.node:
        for found in _lists(node).values():
            yield from found
        if _is(node, "LabelEncoder"):
            yield from (a.s for a in node.attribute if a.name == "default_string")


def _textual(graph: Any) -> set[str] | None:
    """Return the names of tensors that hold texts; None where one is used as a text."""
    found = {tensor.name for tensor in graph.initializer if tensor.data_type == _STRING}
    found |= _inputs(graph)
    for node in graph.node:
        read = [name for name in node.input if name in found]
        held = {
            a.name for a in node.attribute if a.type == _TENSOR and a.t.data_type == _STRING
        } & {"value", "keys_tensor", "values_tensor"}
        encodes = _READS.get(node.op_type, "") in _lists(node) or "keys_tensor" in held
        if encodes and not read:
            return None  # numbers have no such keys
        moves = node.op_type in _MOVES and node.domain in ("", _DOMAIN)
        if read and not (moves or encodes or (node.op_type in _COMPARES and not node.domain)):
            return None
        gives = any(
            name in _lists(node) and is_given for name, _, is_given in _LISTS.get(node.op_type, ())
        )
        if gives or held - {"keys_tensor"}:
            found.update(node.output[:1])
        elif read and moves:
            found.update(node.output)
    return found


def _renumber(node: Any, numbers: Mapping[bytes, int]) -> None:
    """Write positions in place of the node's texts."""
    own = _lists(node)
    for name, other, _ in _LISTS.get(node.op_type, ()):
        for attribute in node.attribute:
            if attribute.name == name and name in own:
                attribute.name, attribute.type = other, _INTS
                attribute.ints.extend(numbers[text] for text in own[name])
                attribute.ClearField("strings")
    if "values_strings" in own:
        for attribute in node.attribute:
            if attribute.name == "default_string":
                attribute.name, attribute.type = "default_int64", _INT
                attribute.i = numbers[attribute.s]
                attribute.ClearField("s")
