"""``relay.dataflow_pattern``: find and replace parts of graphs by what they look like."""

from slipway.relay.dataflow_pattern.matching import match
from slipway.relay.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from slipway.relay.dataflow_pattern.rewriting import DFPatternCallback, partition, rewrite

__all__ = [
    "AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern",
    "DFPatternCallback", "DataTypePattern", "DominatorPattern", "ExprPattern", "FunctionPattern",
    "IfPattern", "LetPattern", "ShapePattern", "TupleGetItemPattern", "TuplePattern",
    "TypePattern", "VarPattern", "WildcardPattern", "dominates", "has_attr", "has_dtype",
    "has_shape", "has_type", "is_constant", "is_expr", "is_if", "is_let", "is_op", "is_tuple",
    "is_tuple_get_item", "is_var", "match", "partition", "rewrite", "wildcard",
]  # fmt: skip
