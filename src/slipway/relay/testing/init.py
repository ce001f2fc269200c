"""Values for the parameters of a network: `create_workload`, and the rules by which it draws."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from slipway.errors import TypeInferenceError
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr, Function
from slipway.relay.types import TensorType
from slipway.runtime import ndarray
from slipway.transform.graph.infer_type import infer_type

Array = np.ndarray[Any, Any]


class Initializer:
    """Fills an array in place by the end of a parameter's name; subclasses say how weights are."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def __call__(self, desc: str, arr: Array) -> None:
        """Fill `arr`, the parameter called `desc`."""
        for ends, method in (
            (("weight",), self._init_weight),
            (("bias",), self._init_bias),
            (("gamma",), self._init_gamma),
            (("beta",), self._init_beta),
            (("mean",), self._init_mean),
            (("var",), self._init_var),
        ):
            if desc.endswith(ends):
                method(desc, arr)
                return
        self._init_default(desc, arr)

    def _init_bias(self, _: str, arr: Array) -> None:
        arr[...] = 0.0

    def _init_gamma(self, _: str, arr: Array) -> None:
        arr[...] = 1.0

    def _init_beta(self, _: str, arr: Array) -> None:
        arr[...] = 0.0

    def _init_mean(self, _: str, arr: Array) -> None:
        arr[...] = 0.0

    def _init_var(self, _: str, arr: Array) -> None:
        arr[...] = 1.0

    def _init_weight(self, name: str, arr: Array) -> None:
        raise NotImplementedError("a subclass says how weights are filled")

    def _init_default(self, name: str, _: Array) -> None:
        raise TypeInferenceError(
            f"there is no rule for the parameter {name!r}: a name ends in weight, bias, gamma, "
            "beta, mean or var, or the initializer overrides _init_default"
        )


class Xavier(Initializer):
    """Weights of a variance that keeps the sizes of values from layer to layer.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks".
    `factor_type` "avg", "in" or "out" says which side's count of connections divides `magnitude`.
    """

    def __init__(
        self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3
    ) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian"):
            raise TypeInferenceError(f"rnd_type is {rnd_type!r}; use 'uniform' or 'gaussian'")
        if factor_type not in ("avg", "in", "out"):
            raise TypeInferenceError(f"factor_type is {factor_type!r}; use 'avg', 'in' or 'out'")
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name: str, arr: Array) -> None:
        if arr.ndim < 2:
            raise TypeInferenceError(
                f"the weight {name!r} has {arr.ndim} axes; Xavier needs at least two"
            )
        taps = float(np.prod(arr.shape[2:]))
        fan_in, fan_out = arr.shape[1] * taps, arr.shape[0] * taps
        factor = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        if re.search("depthwise|conv2d_1x1", name):
            factor = taps  # one filter a channel: its own window is all that it sums
        scale = np.sqrt(self.magnitude / factor)
        if self.rnd_type == "uniform":
            arr[...] = np.random.uniform(-scale, scale, size=arr.shape)
        else:
            arr[...] = np.random.normal(0, scale, size=arr.shape)


class Constant(Initializer):
    """Every weight is `value`."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name: str, arr: Array) -> None:
        arr[...] = self.value


def create_workload(
    net: Function | Expr, initializer: Initializer | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, Any]]:
    """Return the module of `net` and values for every parameter but "data".

    Weights are drawn by `Xavier` unless `initializer` is given, after ``np.random.seed(seed)``.
    """
    main = infer_type(net if isinstance(net, Function) else net.as_function())
    fill = initializer or Xavier()
    np.random.seed(seed)
    params = {}
    for param in main.params:
        type_ = param.checked_type
        if param.name == "data" or not isinstance(type_, TensorType):
            continue
        values = np.zeros(type_.concrete_shape, type_.dtype)
        fill(param.name, values)
        params[param.name] = ndarray.array(values)
    return IRModule.from_expr(main), params
