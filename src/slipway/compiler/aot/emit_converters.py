"""What a program's header says of quantised inputs and outputs, and of classes that have names.

The functions are inline, call nothing, and compile as C and as C++.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway import dtypes
from slipway.compiler.aot.program import Port
from slipway.compiler.aot.sources import ProgramParts
from slipway.runtime.ndarray import PACKED

_QUANTIZE = """\
/** A real number as an element of {c_name}: the nearest, {ties};
 * what lies beyond is the first or the last one. */
static inline {ty} {prefix}_quantize_{c_name}(float value) {{
  const float scaled = value / {scale};
  int32_t whole;
  float rest;
  if (!(scaled > {low_real})) {{
    return {low};
  }}
  if (scaled > {high_real}) {{
    return {high};
  }}
  whole = (int32_t)scaled;
  rest = scaled - (float)whole;
  if ({up}) {{
    whole += 1;
  }} else if ({down}) {{
    whole -= 1;
  }}
{add_zero}  return ({ty})whole;
}}
"""

_DEQUANTIZE = """\
/** The real number that an element of {c_name} stands for. */
static inline float {prefix}_dequantize_{c_name}({ty} value) {{
  const int32_t centred = (int32_t)value{less_zero};
  return {scale} * (float)centred;
}}
"""

_ALIAS = """\
/** The same, where it is the only quantised input. */
static inline {ty} {prefix}_quantize_input(float value) {{
  return {prefix}_quantize_{c_name}(value);
}}
"""

_LABEL = """\
/** What class number `index` of {c_name} is called; 0 beyond the last one. */
static inline const char *{prefix}_{c_name}_label(uint32_t index) {{
  static const char *const labels[{count}] = {{
{rows}
  }};
  return index < {count}u ? labels[index] : 0;
}}
"""

# Text by text, as no other header is needed for it.
_POSITION = """\
/** The number of a text that {c_name} takes, -1 for one that the model does not know. */
static inline int64_t {prefix}_{c_name}_of_text(const char *text) {{
  static const char *const texts[{count}] = {{
{rows}
  }};
  for (uint32_t i = 0u; i < {count}u; ++i) {{
    uint32_t at = 0u;
    while ((text[at] == texts[i][at]) && (text[at] != '\\0')) {{
      ++at;
    }}
    if (text[at] == texts[i][at]) {{
      return (int64_t)i;
    }}
  }}
  return -1;
}}
"""


def is_quantized(port: Port) -> bool:
    """Whether the elements are integers of at most 16 bits with one scale for all."""
    dtype = port.type.dtype
    small = dtypes.is_integral(dtype) and dtype not in PACKED and 8 <= dtypes.bits_of(dtype) <= 16
    return small and port.meaning.scale > 0


def scale_macros(ports: Sequence[Port], upper: str) -> str:
    """Return the macros of scales and zero points, with their comment."""
    lines = []
    for port in filter(is_quantized, ports):
        name = f"{upper}_{port.c_name.upper()}"
        lines.append(f"#define {name}_SCALE {_real(port.meaning.scale)}")
        lines.append(f"#define {name}_ZERO_POINT {_parenthesised(port.meaning.zero_point)}")
    if not lines:
        return ""
    return "\n".join(["/* real = scale * (element - zero point) */", *lines, "", ""])


def converters(parts: ProgramParts) -> str:
    """Return the inline functions for quantised inputs and outputs, and for labels."""
    program, prefix = parts.program, parts.prefix
    quantized = [port for port in program.inputs if is_quantized(port)]
    texts = [_quantize(port, prefix) for port in quantized]
    if len(quantized) == 1 and quantized[0].c_name != "input":
        port = quantized[0]
        texts.append(_ALIAS.format(ty=_type(port), prefix=prefix, c_name=port.c_name))
    texts += [_table(_POSITION, port, prefix) for port in program.inputs if port.meaning.labels]
    for port in program.outputs:
        if is_quantized(port):
            texts.append(
                _DEQUANTIZE.format(
                    c_name=port.c_name,
                    prefix=prefix,
                    ty=_type(port),
                    less_zero=_unless_none(" - {}", port.meaning.zero_point),
                    scale=_real(port.meaning.scale),
                )
            )
        if port.meaning.labels:
            texts.append(_table(_LABEL, port, prefix))
    return "".join(f"\n{text}" for text in texts)


def _table(form: str, port: Port, prefix: str) -> str:
    """Return a function that looks into the list of a port's texts."""
    rows = [f"      {c_string(label)}," for label in port.meaning.labels]
    return form.format(prefix=prefix, c_name=port.c_name, count=len(rows), rows="\n".join(rows))


def c_string(text: str) -> str:
    """Return `text` as a string of C: bytes of UTF-8, which no compiler reads differently."""
    plain = {ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    cells = (plain.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in text.encode())
    return f'"{"".join(cells)}"'


def _quantize(port: Port, prefix: str) -> str:
    low, high = dtypes.int_range(port.type.dtype)
    zero = port.meaning.zero_point
    if port.meaning.ties_to_even:
        ties = "of two the even one"
        up = "(rest > 0.5f) || ((rest >= 0.5f) && ((whole % 2) != 0))"
        down = "(rest < -0.5f) || ((rest <= -0.5f) && ((whole % 2) != 0))"
    else:
        ties, up, down = "of two the one further from zero", "rest >= 0.5f", "rest <= -0.5f"
    return _QUANTIZE.format(
        c_name=port.c_name,
        prefix=prefix,
        ty=_type(port),
        ties=ties,
        up=up,
        down=down,
        scale=_real(port.meaning.scale),
        low_real=_real(float(low - zero)),
        high_real=_real(float(high - zero)),
        low=low,
        high=high,
        add_zero=_unless_none("  whole += {};\n", zero),
    )


def _type(port: Port) -> str:
    return f"{port.type.dtype}_t"


def _real(value: float) -> str:
    """Return a float32 value as C writes it; nine digits tell it from every other one."""
    text = f"{value:.9g}"
    text = text if set(text) & set(".e") else f"{text}.0"
    return f"({text}f)" if value < 0 else f"{text}f"


def _unless_none(text: str, zero: int) -> str:
    """Return a step by the zero point; "" where it is 0, which would be dead code."""
    return text.format(_parenthesised(zero)) if zero else ""


def _parenthesised(number: int) -> str:
    return f"({number})" if number < 0 else str(number)
