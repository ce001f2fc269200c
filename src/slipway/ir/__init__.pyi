"""What type checkers see of slipway.ir; written by tools/stubs.py."""

from slipway.arith.script_range import ScriptRange as Range
from slipway.ir.buffer import Buffer as Buffer
from slipway.ir.buffer import decl_buffer as decl_buffer
from slipway.ir.custom import register_intrin_lowering as register_intrin_lowering
from slipway.ir.custom import register_op_attr as register_op_attr
from slipway.ir.expr import IterVar as IterVar
from slipway.ir.expr import PrimExpr as PrimExpr
from slipway.ir.expr import Var as Var
from slipway.ir.function import BaseFunc as BaseFunc
from slipway.ir.function import GlobalVar as GlobalVar
from slipway.ir.function import IRModule as IRModule
from slipway.ir.function import PrimFunc as PrimFunc
from slipway.ir.node import Node as Node
from slipway.ir.op_attrs import DictAttrs as DictAttrs
from slipway.ir.op_attrs import make_node as make_node
from slipway.ir.op_attrs import reset_op_attr as reset_op_attr
from slipway.ir.structural import assert_structural_equal as assert_structural_equal
from slipway.ir.structural import structural_equal as structural_equal
from slipway.ir.structural import structural_hash as structural_hash
from slipway.ir.text.serialize import load_json as load_json
from slipway.ir.text.serialize import save_json as save_json
from slipway.relay.expr import Expr as RelayExpr
from slipway.relay.expr import Op as Op
from slipway.relay.types import FuncType as FuncType
from slipway.relay.types import IncompleteType as IncompleteType
from slipway.relay.types import TensorType as TensorType
from slipway.relay.types import TupleType as TupleType
from slipway.relay.types import Type as Type
from slipway.runtime import container as container

__all__ = [
    "BaseFunc",
    "Buffer",
    "DictAttrs",
    "FuncType",
    "GlobalVar",
    "IRModule",
    "IncompleteType",
    "IterVar",
    "Node",
    "Op",
    "PrimExpr",
    "PrimFunc",
    "Range",
    "RelayExpr",
    "TensorType",
    "TupleType",
    "Type",
    "Var",
    "assert_structural_equal",
    "container",
    "decl_buffer",
    "load_json",
    "make_node",
    "register_intrin_lowering",
    "register_op_attr",
    "reset_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
]
