"""Type rules meet attributes that nobody checked: text, JSON and passes make them too.

Every operator's sample cases, with one attribute at a time made shorter, longer, zero, negative or
huge: the rule takes it, or says in words what is wrong.
"""

from contextlib import suppress

import numpy as np
import pytest

from slipway.errors import SlipwayError
from slipway.relay import op_registry
from slipway.relay.types import TensorType, TupleType

NUMBERS = (0, -1, 2**40, -(2**31))
OPERATORS = op_registry.load_ops()


def type_of(value):
    if isinstance(value, tuple | list):
        return TupleType(tuple(type_of(v) for v in value))
    array = np.asarray(value)
    return TensorType(array.shape, array.dtype.name)


def others(value):
    """Return what may stand in place of an attribute, none of it of another kind."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [*NUMBERS, value + 1]
    if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
        return []
    if not value:
        return [(1,), (0, 0)]
    changed = [(n, *value[1:]) for n in NUMBERS] + [(*value[:-1], n) for n in NUMBERS]
    return [(), value[:-1], (*value, 1), *changed]


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_wrong_attributes_are_refused_in_words(name):
    definition = OPERATORS[name]
    for case in definition.cases[:4]:
        if case.attrs is None:
            continue
        types = [type_of(value) for value in case.arrays()]
        for field in case.attrs.FIELDS:
            for value in others(getattr(case.attrs, field)):
                with suppress(SlipwayError):
                    definition.infer(case.attrs.replace(**{field: value}), types)
