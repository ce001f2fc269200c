"""Kernels in hand-written C: what all families of them share.

A family is one C file for one kind of core, with the arrangement of constants that it wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.backends.in_place import Overlap, window_lead_bytes
from slipway.backends.micro.kernels.constants import LayerConstants, settle_constants
from slipway.backends.micro.kernels.layer import Layer, geometry, scale_step, type_of
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]
_MOST = 32767  # numbers are 16 bits in struct slw_layer, signed but for channels
_MOST_CHANNELS = 65535
POINTER_BYTES = 8  # of the largest target


@dataclass(frozen=True)
class LibraryKernel:
    """A kernel in C: its definition, its workspace, and what it asks of its operands.

    `arrange` returns the constants of `layer` as the kernel wants them, by operand, or None when it
    cannot compute a layer with these values.  Both are None where there are no constants.  `also`
    names other families whose functions it calls.  `settle` reads the constants from the operands,
    and returns None for those that the kernel's arithmetic is not exact for.
    """

    family: str
    text: str
    workspace_bytes: int
    overlaps: tuple[Overlap, ...]
    layer: Layer | None
    arrange: Callable[[LayerConstants], dict[int, Array] | None] | None
    also: tuple[str, ...] = ()
    settle: Callable[[Layer, Sequence[Array | None]], LayerConstants | None] = settle_constants

    def prepare(self, operands: Sequence[Array | None]) -> dict[int, Array] | None:
        """Return the constants as the kernel wants them; None when it cannot take them."""
        if self.layer is None or self.arrange is None:
            return {}
        constants = self.settle(self.layer, operands)
        return None if constants is None else self.arrange(constants)


@lru_cache(maxsize=8)
def helper_text(families: tuple[str, ...]) -> str:
    """Return the C functions that the kernels of these families call."""
    folder = resources.files("slipway.backends.micro.kernels") / "source"
    shared = ["layer", "gather"] if set(families) - {"addition", "product"} else ["layer"]
    files = dict.fromkeys([*shared, *(file for family in families for file in _FILES[family])])
    parts = [folder.joinpath(f"{name}.c").read_text() for name in files]
    return "\n".join([_SHARED, *parts])


_FILES = {
    "addition": ("addition",),
    "dsp": ("dsp_words", "dsp"),
    "dsp_folded": ("dsp_words", "dsp_stream", "dsp_folded", "dsp_folded_layers"),
    "dsp_pairs": ("dsp_words", "dsp_stream", "dsp_pairs"),
    "dsp_wide": ("dsp_words", "dsp", "dsp_wide"),
    "grouped": ("grouped",),
    "halfwords_dsp": ("halfwords_dsp", "halfwords"),
    "halfwords_mve": ("halfwords_mve", "halfwords"),
    "halfwords_scalar": ("halfwords_scalar", "halfwords"),
    "joining": ("joining",),
    "mve": ("mve", "mve_depthwise"),
    "product": ("addition",),  # and what both have in common
    "scalar": ("scalar_sums", "scalar"),
}
_SHARED = """\
/* Functions that several layers call stay functions of their own. */
#if defined(__GNUC__)
#define SLW_SHARED __attribute__((noinline, unused))
#else
#define SLW_SHARED
#endif
#if defined(__clang__) /* not every layer calls all of them */
#pragma clang diagnostic ignored "-Wunused-function"
#endif
"""


def definition(
    name: str,
    function: Function,
    layer: Layer,
    helper: str,
    *,
    weight_type: str = "int8_t",
    weight_view: str = "",
    has_workspace: bool,
    scale_copies: int = 1,
    streamed: bool = False,
    inputs: tuple[int, ...] | None = None,
) -> str | None:
    """Return the kernel: a constant description of the layer, and the call of `helper`.

    `weight_view` is the C type that the helper reads the weights as, where that is another one;
    `scale_copies`: how often one multiplier and shift for all channels are written down.
    `streamed`: biases and scales are in what stands for the weights, words of 32 bits.
    None: some size is too large for struct slw_layer.
    """
    described = description(function, layer, inputs)
    if described is None or layer.low < -128 or layer.high > 127:
        return None
    outputs = geometry(layer)[1]
    arguments = []
    for index, param in enumerate(function.params):
        ty = type_of(param).dtype
        arguments.append(f"const {weight_type if index == layer.weight else ty + '_t'} *p{index}")
    scratch = ", uint8_t *workspace" if has_workspace else ""
    parameters = f"{', '.join(arguments)}, int8_t *out{scratch}"
    if layer.in_bands:
        described[0] = f"static const struct slw_layer {name}_layer = {{"
        lines = [
            *described,
            f"static int32_t {name}(const struct slw_layer *layer, {parameters}) {{",
        ]
    else:
        lines = [f"SLW_KERNEL int32_t {name}({parameters}) {{", *(f"  {d}" for d in described)]
    scales = []
    if isinstance(layer.bias, tuple) and not streamed:
        biases = ", ".join([str(layer.bias[1])] * (-(-outputs[2] // 16) * 16))
        lines.append(f"  static const int32_t bias[] = {{{biases}}};")
    for word, value in (
        ("bias", layer.bias),
        ("multiplier", layer.multiplier),
        ("shift", layer.shift),
    ):
        if streamed and isinstance(value, tuple):
            scales.append("NULL")
        elif isinstance(value, tuple) and word == "bias":
            scales.append(word)
        elif isinstance(value, tuple):
            copies = ", ".join([str(value[1])] * scale_copies)
            lines.append(f"  static const int32_t {word}[{scale_copies}] = {{{copies}}};")
            scales.append(word)
        else:
            scales.append(f"p{value}")
    weight = f"p{layer.weight}"
    if weight_view:
        weight = f"(const {weight_view} *)(const void *){weight}"
    lines += [
        f"  struct slw_scales scales = {{{', '.join(scales)}}};",
        f"  {helper}({'layer' if layer.in_bands else '&layer'}, p{layer.data}, {weight}, "
        "&scales, out, "
        f"{'workspace' if has_workspace else 'NULL'});",
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


def description(
    function: Function, layer: Layer, inputs: tuple[int, ...] | None = None, element_bytes: int = 1
) -> list[str] | None:
    """Return the constant struct slw_layer in C; None where some size is too large for it.

    An element of several bytes is as many channels of one.
    """
    shape, outputs, kernel, rest = geometry(layer)
    inputs = inputs or shape
    pad_value = getattr(layer.sums.attrs, "pad_value", 0)
    numbers = (*inputs[:2], *outputs[:2], *kernel, *rest, pad_value)
    numbers += (layer.zero, layer.low, layer.high)
    channels = (inputs[2] * element_bytes, outputs[2])
    if max(numbers) > _MOST or min(numbers) < -_MOST - 1 or max(channels) > _MOST_CHANNELS:
        return None
    low, high = dtypes.int_range(type_of(function.body).dtype)
    clips = int(layer.low > low or layer.high < high)
    values = f"{', '.join(map(str, (*numbers, *channels)))},"
    flags = f"{scale_step(function, layer)}, {clips}, {int(is_direct(layer))}"
    return ["static const struct slw_layer layer = {", f"  {values}", f"  {flags}}};"]


def is_direct(layer: Layer) -> bool:
    """Return whether every window is one pixel of the data."""
    inputs, outputs, kernel, rest = geometry(layer)
    inside = all((o - 1) * s < i for i, o, s in zip(inputs, outputs[:2], rest, strict=False))
    return kernel == (1, 1) and rest[4:6] == (0, 0) and inside


def is_row(layer: Layer) -> bool:
    """Return whether the layer multiplies one row, which is the whole input, with a matrix."""
    inputs, outputs, _, rest = geometry(layer)
    whole = layer.depth == int(np.prod(inputs)) and outputs[0] == outputs[1] == 1
    return whole and rest[4:6] == (0, 0) and not layer.in_bands


def overlaps_of(
    layer: Layer, pixels_at_once: int, *, interleaved: bool = False
) -> tuple[Overlap, ...]:
    """Return how far the output may reach into the input; see `window_lead_bytes`."""
    inputs, outputs, _, rest = geometry(layer)
    lead = window_lead_bytes(
        inputs,
        outputs,
        (rest[0], rest[1]),
        (rest[4], rest[5]),
        pixels_at_once=pixels_at_once,
        interleaved=interleaved,
    )
    return (Overlap(layer.data, 0, lead, False),)
