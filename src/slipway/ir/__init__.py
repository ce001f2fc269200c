"""The loop language: expressions, statements, functions, and generic tools over them."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.ir.op_attrs": "DictAttrs make_node reset_op_attr",
        "slipway.ir.buffer": "Buffer decl_buffer",
        "slipway.ir.custom": "register_intrin_lowering register_op_attr",
        "slipway.ir.expr": "IterVar PrimExpr Var",
        "slipway.ir.function": "BaseFunc GlobalVar IRModule PrimFunc",
        "slipway.ir.node": "Node",
        "slipway.ir.text.serialize": "load_json save_json",
        "slipway.ir.structural": "assert_structural_equal structural_equal structural_hash",
    }
)
# What nodes and expressions call of the modules that are written in terms of them.
LATE = {
    "Builders": ("slipway.ir.ops", "slipway.ir.stmt"),
    "Writers": (
        "slipway.ir.text.printer",
        "slipway.ir.text.serialize",
        "slipway.ir.text.script_text",
        "slipway.relay.text.printer",
    ),
}
# Graphs under the names that classic scripts ask `tvm.ir` for.
_HOMES["Range"] = "slipway.arith.script_range:ScriptRange"
_HOMES.update(by_module({
    "slipway.relay.expr": "Op",
    "slipway.relay.types": "FuncType IncompleteType TensorType TupleType Type",
}))  # fmt: skip
_HOMES["RelayExpr"] = "slipway.relay.expr:Expr"
_HOMES["container"] = "slipway.runtime.container"  # classic TVM's arrays and maps
__getattr__, __dir__ = offer(__name__, _HOMES, submodules=True)
