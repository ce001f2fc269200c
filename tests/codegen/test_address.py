"""Linear forms of indices in generated LLVM IR."""

import pytest

from slipway.codegen.llvm.address import Addresses
from slipway.codegen.llvm.function import FunctionEmitter, ModuleState
from slipway.ir import expr as E
from slipway.target import Target
from slipway.target.capability import capability_of


@pytest.mark.parametrize("ascending", [True, False])
def test_terms_stand_in_the_order_of_first_use_wherever_the_variables_lie_in_memory(ascending):
    variables = [E.Var(name, "int32") for name in "abcd"]
    variables.sort(key=id, reverse=not ascending)
    emitter = FunctionEmitter(ModuleState(capability_of(Target("llvm"))), "f")
    addresses = Addresses(emitter)
    for variable in variables:
        addresses.depth[id(variable)] = 1
    a, b, c, d = variables
    form = addresses.linear(a * 2 + b + (d + c) * 8 + 5)
    assert form == (5, ((id(a), 2), (id(b), 1), (id(d), 8), (id(c), 8)))
    assert addresses.linear(c + d + b)[1] == ((id(b), 1), (id(d), 1), (id(c), 1))


def test_outer_loops_come_first():
    inner, outer = E.Var("inner", "int32"), E.Var("outer", "int32")
    addresses = Addresses(FunctionEmitter(ModuleState(capability_of(Target("llvm"))), "f"))
    addresses.depth.update({id(outer): 1, id(inner): 2})
    assert addresses.linear(inner + outer * 3) == (0, ((id(outer), 3), (id(inner), 1)))
