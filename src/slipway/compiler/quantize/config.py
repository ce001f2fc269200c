"""How `quantize` chooses scales, and what it leaves real: ``with relay.quantize.qconfig(...):``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from slipway.entered import Entered
from slipway.errors import ArgumentTypeError, ArgumentValueError, NotAvailableError, did_you_mean

MODES = ("global_scale", "kl_divergence", "percentile")
WEIGHT_SCALES = ("power2", "max")
_ENTERED: Entered[QConfig] = Entered("settings of quantisation")


@dataclass(frozen=True)
class QConfig:
    """The settings, under their classic names; `qconfig` makes one, and a ``with`` applies it.

    `calibrate_mode` says how the scales of activations are chosen: "global_scale" takes
    `global_scale` for the largest magnitude of all of them, "kl_divergence" and "percentile" look
    at data.  `weight_scale` "max" takes a weight's largest magnitude, "power2" the power of two
    above it.  `skip_conv_layers` lists convolutions (nn.conv2d, counted from 0) that stay real,
    and with `skip_dense_layer` so do nn.dense; `debug_enabled_ops` names the only operators that
    do not.  `do_simulation` rounds real numbers in place of computing with integers.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Sequence[int] | None = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: Sequence[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"

    def __post_init__(self) -> None:
        _one_of("calibrate_mode", self.calibrate_mode, MODES)
        _one_of("weight_scale", self.weight_scale, WEIGHT_SCALES)
        _one_of("rounding", self.rounding, ("UPWARD", "TONEAREST"))
        for name in ("nbit_input", "nbit_weight"):
            if not 2 <= int(getattr(self, name)) <= 8:
                raise ArgumentValueError(
                    f"qconfig: {name} is {getattr(self, name)}; integers of 2 to 8 bits are there"
                )
        for name in ("dtype_input", "dtype_weight"):
            _one_of(name, getattr(self, name), ("int8",))
        if not float(self.global_scale) > 0:
            raise ArgumentValueError(
                f"qconfig: global_scale is {self.global_scale}; it is a magnitude, above 0"
            )
        if self.partition_conversions != "disabled":
            raise NotAvailableError(
                "qconfig: partition_conversions is not there: the inputs and outputs of a "
                "quantised function stay real; write qnn.quantize and qnn.dequantize around it"
            )

    def __enter__(self) -> QConfig:
        _ENTERED.enter(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _ENTERED.leave(self)


def qconfig(**settings: Any) -> QConfig:
    """Return settings; the others are as they are by default.

    Raises ArgumentTypeError for a name that is none, ArgumentValueError for what it cannot be.
    """
    known = [f.name for f in fields(QConfig)]
    for name in settings:
        if name not in known:
            raise ArgumentTypeError(
                f"qconfig has no setting {name!r}.{did_you_mean(name, known)} "
                f"It has: {', '.join(known)}"
            )
    return QConfig(**settings)


def current_qconfig() -> QConfig:
    """Return the settings of the innermost ``with qconfig(...)`` of this thread or task."""
    return _ENTERED.innermost() or QConfig()


def _one_of(name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ArgumentValueError(
            f"qconfig: {name} is {given!r}, not one of {', '.join(known)}."
            f"{did_you_mean(str(given), known)}"
        )
