"""Every operator on random legal cases, compiled by LLVM and as C, against its NumPy reference.

The registry is what is tested: an operator without a strategy fails here.
"""

import numpy as np
import pytest
from drawing import OPS, compare
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from strategies import STRATEGIES, cases

from slipway import relay
from slipway.relay.expr import Call, Function, Tuple, TupleGetItem, Var
from slipway.relay.types import TensorType, TupleType
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "report_multiple_bugs": False,
}
LONG = settings(max_examples=25, **COMMON)
# Many operators make one program, so that a compiler is started once for all of them.
GROUPS = [sorted(OPS)[i::6] for i in range(6)]
EXAMPLES = {"llvm": 2, "c": 1}
LONG_EXAMPLES = 12


def run(named_cases, target):
    """Compile (name, case) pairs into one model and return the results of each."""
    params, feeds, results, counts = [], {}, [], []
    for number, (name, case) in enumerate(named_cases):
        arguments = []
        for position, array in enumerate(case.arrays):
            fields = array if isinstance(array, tuple) else (array,)
            variables = []
            for index, field in enumerate(fields):
                label = f"c{number}_{position}_{index}"
                variables.append(Var(label, TensorType(field.shape, field.dtype.name)))
                feeds[label] = field
            params += variables
            arguments.append(Tuple(tuple(variables)) if isinstance(array, tuple) else variables[0])
        call = Call(OPS[name].op, tuple(arguments), case.attrs)
        if isinstance(call.type, TupleType):
            found = [TupleGetItem(call, i) for i in range(len(call.type.fields))]
        else:
            found = [call]
        results += found
        counts.append(len(found))
    function = Function(tuple(params), Tuple(tuple(results)))
    library = relay.build(relay.transform.InferType()(function), target=target)
    module = graph_executor.GraphModule(library["default"](cpu(0)))
    for label, value in feeds.items():
        module.set_input(label, value)
    module.run()
    outputs = iter(range(len(results)))
    return [[module.get_output(next(outputs)).numpy() for _ in range(c)] for c in counts]


def test_every_operator_has_a_strategy():
    missing = sorted(set(OPS) - set(STRATEGIES))
    assert not missing, f"write a strategy for {missing} in tests/relay/operators"
    assert not sorted(set(STRATEGIES) - set(OPS))


def all_at_once(group, target, examples, **more):
    @settings(max_examples=examples, phases=[Phase.generate], **COMMON, **more)
    @given(st.data())
    def together(data):
        drawn = [(n, data.draw(cases(n), label=n)) for n in group if n in STRATEGIES]
        for (name, case), got in zip(drawn, run(drawn, target), strict=True):
            compare(name, case, got)

    together()


@pytest.mark.parametrize("target", sorted(EXAMPLES))
@pytest.mark.parametrize("group", GROUPS, ids=range(len(GROUPS)))
def test_together(group, target):
    all_at_once(group, target, EXAMPLES[target], derandomize=True)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_many_cases(name):
    @LONG
    @given(cases(name))
    def many(case):
        compare(name, case, run([(name, case)], "llvm")[0])

    many()


@pytest.mark.long
@pytest.mark.parametrize("group", GROUPS, ids=range(len(GROUPS)))
def test_many_cases_as_c(group):
    all_at_once(group, "c", LONG_EXAMPLES)


def test_a_wrong_result_is_noticed():
    @settings(max_examples=1, derandomize=True, phases=[Phase.generate], **COMMON)
    @given(cases("nn.dense"))
    def wrong(case):
        got = np.asarray(OPS["nn.dense"].evaluate(case.attrs, *case.arrays))
        compare("nn.dense", case, [got])
        with pytest.raises(AssertionError):
            compare("nn.dense", case, [got + np.array(1, got.dtype)])

    wrong()
