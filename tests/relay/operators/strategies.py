"""A strategy for every operator of the registry: random legal shapes, attributes and dtypes."""

from drawing import Draw
from hypothesis import strategies as st

STRATEGIES = {}


def strategy(*names):
    """Decorator: the function draws a `Case` for the named operators."""

    def enter(function):
        for name in names:
            assert name not in STRATEGIES, name
            STRATEGIES[name] = function
        return function

    return enter


def cases(name):
    """The hypothesis strategy of an operator's cases."""

    @st.composite
    def build(draw):
        return STRATEGIES[name](Draw(draw, name))

    return build()


import strategies_elementwise  # noqa: E402, F401
import strategies_language  # noqa: E402, F401
import strategies_products  # noqa: E402, F401
import strategies_quantized  # noqa: E402, F401
import strategies_regions  # noqa: E402, F401
import strategies_tensors  # noqa: E402, F401
