"""Every operator compiled by LLVM and as C, all its sample cases in one model, against NumPy.

The schedules that `relay.build` picks run here, on shapes that divide no vector.
"""

import numpy as np
import pytest

from slipway import relay
from slipway.relay import op_registry
from slipway.relay.expr import Call, Function, Tuple, TupleGetItem, Var
from slipway.relay.types import TensorType, TupleType
from slipway.runtime import cpu, opencl, vulkan
from slipway.runtime.graph import graph_executor

OPS = op_registry.load_ops()


def arguments(arrays, prefix):
    """Variables for (nested) arrays, and their values by name."""
    variables, values = [], {}
    for number, array in enumerate(arrays):
        name = f"{prefix}_{number}"
        if isinstance(array, (tuple, list)):
            inner, more = arguments(array, name)
            variables.append(Tuple(tuple(inner)))
            values.update(more)
        else:
            variables.append(Var(name, TensorType(array.shape, array.dtype.name)))
            values[name] = array
    return variables, values


def leaves(variables):
    for variable in variables:
        if isinstance(variable, Tuple):
            yield from leaves(variable.fields)
        else:
            yield variable


@pytest.mark.parametrize(
    "target",
    [
        "llvm",
        pytest.param("c", marks=pytest.mark.long),
        pytest.param("opencl", marks=pytest.mark.long),
        pytest.param("vulkan", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("name", sorted(OPS))
def test_compiled_operator_agrees_with_reference(name, target):
    definition = OPS[name]
    where = {"opencl": opencl(0), "vulkan": vulkan(0)}.get(target, cpu(0))
    if target in ("opencl", "vulkan") and "contrib" in name:
        pytest.skip("graphs for a processor hold it, none for a GPU")
    if not where.exist:
        pytest.skip(
            "no device: apt-get install pocl-opencl-icd ocl-icd-libopencl1 mesa-vulkan-drivers"
        )
    params, feeds, results, wanted = [], {}, [], []
    for number, case in enumerate(definition.cases):
        arrays = case.arrays(seed=number)
        variables, values = arguments(arrays, f"c{number}")
        call = Call(definition.op, tuple(variables), case.attrs)
        found = definition.evaluate(case.attrs, *arrays)
        if isinstance(call.type, TupleType):
            results += [TupleGetItem(call, i) for i in range(len(call.type.fields))]
            wanted += list(found)
        else:
            results.append(call)
            wanted.append(np.asarray(found))
        params += leaves(variables)
        feeds.update(values)
    mod = relay.transform.InferType()(Function(tuple(params), Tuple(tuple(results))))
    module = graph_executor.GraphModule(relay.build(mod, target=target)["default"](where))
    for key, value in feeds.items():
        module.set_input(key, value)
    module.run()
    for number, want in enumerate(wanted):
        got = module.get_output(number).numpy()
        tolerance = 2e-3 if name == "power" else 3e-5
        np.testing.assert_allclose(
            got, want, rtol=tolerance, atol=3e-5, err_msg=f"result {number} of {name}"
        )


def test_single_elements_inlined_into_a_tensor_with_axes():
    x = relay.var("x", shape=(), dtype="int8")
    table = np.arange(256).astype("int8")
    out = relay.expand_dims(op_registry.make("qnn.lookup")(x, relay.const(table)), 0, 2)
    function = relay.transform.InferType()(Function([x], out))
    module = graph_executor.GraphModule(relay.build(function, target="llvm")["default"](cpu(0)))
    module.run(x=np.asarray(-5, "int8"))
    np.testing.assert_array_equal(module.get_output(0).numpy(), [[123]])
