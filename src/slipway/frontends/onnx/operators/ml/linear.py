"""Scalers, encoders and linear models, as scikit-learn's models use them.

Classes are numbers; see `texts` for those that are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    pass


def rows_of(node: NodeView) -> Any:
    """Return the input as float32 with a row for each sample."""
    if node.rank() not in (1, 2):
        raise node.unsupported(f"its input is {node.type()}: a row for each sample is served")
    x = relay.cast(node.input(0), "float32")
    return relay.expand_dims(x, 0) if node.rank() == 1 else x


def numbers_of(node: NodeView, name: str) -> np.ndarray[Any, Any]:
    """Return a list of floats of the node as float32; empty where it is left out."""
    return np.array(node.attr(name, ()), np.float32)


@converter("ai.onnx.ml.Scaler")
def scaler(node: NodeView) -> Any:
    """Each column less its offset, times its factor."""
    x = relay.cast(node.input(0), "float32")
    width = node.type().shape[-1]
    for name in ("offset", "scale"):
        given = numbers_of(node, name)
        if given.size not in (0, 1, width):
            raise node.unsupported(f"{given.size} numbers in {name!r} for {width} columns")
        if given.size:
            x = (relay.subtract if name == "offset" else relay.multiply)(x, const(given))
    return x


@converter("ai.onnx.ml.Normalizer")
def normalizer(node: NodeView) -> Any:
    """Rows over their largest element, their sum of magnitudes, or their length; zeros stay."""
    x = relay.cast(node.input(0), "float32")
    norm = node.choice("norm", "MAX", {"MAX": 0, "L1": 1, "L2": 2})
    last = node.rank() - 1
    if norm == 0:
        size = relay.max(x, last, True)
    elif norm == 1:
        size = relay.sum(relay.abs(x), last, True)
    else:
        size = relay.sqrt(relay.sum(relay.multiply(x, x), last, True))
    return relay.divide(x, relay.where(relay.equal(size, const(0.0)), const(1.0), size))


@converter("ai.onnx.ml.Imputer")
def imputer(node: NodeView) -> Any:
    """A number of the node's own in place of those that stand for nothing."""
    x, dtype = node.input(0), node.type().dtype
    kind = "floats" if dtype.startswith("float") else "int64s"
    given = node.attr(f"imputed_value_{kind}", ())
    if len(given) not in (1, node.type().shape[-1]):
        raise node.unsupported(f"{len(given)} numbers for {node.type().shape[-1]} columns")
    mark = node.attr(f"replaced_value_{kind[:-1]}", 0)
    missing = relay.isnan(x) if np.isnan(mark) else relay.equal(x, node.like(mark))
    return relay.where(missing, const(np.array(given, dtype)), x)


@converter("ai.onnx.ml.FeatureVectorizer")
def feature_vectorizer(node: NodeView) -> Any:
    """The columns of all inputs, one after another."""
    inputs = [relay.cast(node.input(i), "float32") for i in range(len(node.inputs))]
    columns = [relay.expand_dims(x, 1) if x.tensor_type.rank == 1 else x for x in inputs]
    return relay.concatenate(columns, 1)


@converter("ai.onnx.ml.LabelEncoder")
def label_encoder(node: NodeView) -> Any:
    """What a table of numbers has for each element."""
    tables = {}
    for side in ("keys", "values"):
        kinds = [k for k in ("int64s", "floats", "tensor") if node.attr(f"{side}_{k}") is not None]
        if not kinds:
            raise node.unsupported(f"its {side} are texts, which no tensor holds")
        found = np.asarray(node.attr(f"{side}_{kinds[0]}"))
        if kinds[0] != "tensor":
            found = found.astype(np.float32 if found.dtype.kind == "f" else np.int64)
        tables[side] = found
    keys, values = tables["keys"], tables["values"]
    if keys.size != values.size or not keys.size:
        raise node.unsupported(f"it has {keys.size} keys and {values.size} values")
    x = relay.expand_dims(relay.cast(node.input(0), str(keys.dtype)), node.rank())
    hits = relay.equal(x, const(keys))
    if keys.dtype.kind == "f":
        nan = relay.logical_and(relay.isnan(x), const(np.isnan(keys)))
        hits = relay.logical_or(hits, nan)
    default = node.attr("default_tensor")
    if default is None:
        name, usual = ("default_float", 0.0) if values.dtype.kind == "f" else ("default_int64", -1)
        default = node.attr(name, usual)
    found_at = relay.take(const(values.reshape(-1)), relay.argmax(relay.cast(hits, "int8"), -1))
    none = const(np.asarray(default).reshape(()).astype(values.dtype))
    return relay.where(relay.any(hits, -1), found_at, none)


@converter("ai.onnx.ml.OneHotEncoder")
def one_hot_encoder(node: NodeView) -> Any:
    """One where the element is a class, and zero elsewhere.

    What is no class gives zeros, or where the node refuses it NaN: a kernel refuses nothing.
    """
    classes = node.attr("cats_int64s")
    if classes is None:
        raise node.unsupported("its classes are texts, which no tensor holds")
    x = relay.expand_dims(relay.cast(node.input(0), "int64"), node.rank())
    hits = relay.equal(x, const(np.array(classes, np.int64)))
    made = relay.cast(hits, "float32")
    if node.attr("zeros", 1):
        return made
    return relay.where(relay.any(hits, -1, True), made, const(np.float32(np.nan)))


def labels_of(node: NodeView, names: tuple[str, str]) -> np.ndarray[Any, Any]:
    """Return the classes' numbers."""
    numbers, texts = names
    if node.attr(texts):
        raise node.unsupported(
            "its labels are texts, and the graph does more with them than to choose, move and "
            "compare them: train it with numbers for classes"
        )
    found = np.array(node.attr(numbers, ()), np.int64)
    if not found.size:
        raise node.unsupported(f"its attribute {numbers!r} names no class")
    return found


def transformed(node: NodeView, scores: Any) -> Any:
    """Return scores as `post_transform` wants them."""
    return post_transformed(node, scores, node.attr("post_transform", "NONE"))


def post_transformed(node: NodeView, scores: Any, kind: str) -> Any:
    """Return scores as a transform of that name wants them."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return relay.sigmoid(scores)
    if kind == "SOFTMAX":
        return relay.nn.softmax(scores, -1)
    if kind == "SOFTMAX_ZERO":  # zeros stay zeros
        zero = relay.equal(scores, const(0.0))
        made = relay.exp(relay.subtract(scores, relay.max(scores, -1, True)))
        made = relay.where(zero, const(0.0), made)
        return relay.divide(made, relay.sum(made, -1, True))
    raise node.unsupported(f"post_transform {kind!r}")


def chosen(scores: Any, labels: np.ndarray[Any, Any]) -> Any:
    """Return the label of the largest score of each row."""
    return relay.take(const(labels), relay.argmax(scores, -1), mode="fast")


def of_two(score: Any, labels: np.ndarray[Any, Any], middle: float, is_share: bool) -> list[Any]:
    """Return label and scores of two classes where one score decides.

    It is the second class's; of a share the first has the rest, else the first has its negative.
    """
    is_second = relay.greater(relay.reshape(score, (-1,)), const(np.float32(middle)))
    label = relay.take(const(labels), relay.cast(is_second, "int64"), mode="fast")
    first = relay.subtract(const(1.0), score) if is_share else relay.negative(score)
    return [label, relay.concatenate([first, score], 1)]


def logistic_pair(score: Any) -> Any:
    """Return the probabilities of two classes of which a score speaks for the second."""
    return relay.concatenate([relay.sigmoid(relay.negative(score)), relay.sigmoid(score)], 1)


@converter("ai.onnx.ml.LinearClassifier")
def linear_classifier(node: NodeView) -> Any:
    """The class with the largest weighted sum of columns, and all sums."""
    labels = labels_of(node, ("classlabels_ints", "classlabels_strings"))
    factors, offsets = numbers_of(node, "coefficients"), numbers_of(node, "intercepts")
    x = rows_of(node)
    width = x.tensor_type.shape[-1]
    count = offsets.size or (factors.size // width if isinstance(width, int) else 0)
    if not count or factors.size != count * width or count not in (1, labels.size):
        raise node.unsupported(
            f"{factors.size} coefficients and {offsets.size} intercepts for {labels.size} classes "
            f"and {node.type()}"
        )
    scores = relay.nn.dense(x, const(factors.reshape(count, width)))
    if offsets.size:
        scores = relay.add(scores, const(offsets))
    if count == 1:
        if labels.size != 2:
            raise node.unsupported("one weighted sum decides between two classes only")
        label, both = of_two(scores, labels, 0.0, True)
        if node.attr("post_transform", "NONE") == "LOGISTIC":
            both = logistic_pair(scores)
        return [label, both]
    return [chosen(scores, labels), transformed(node, scores)]
