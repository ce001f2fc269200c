"""README.md of a generated project: what it holds, how it is built, how to call the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.micro.model_library import ports_of

_BUILD = {
    "baremetal": (
        "`make` (or `slipway micro build .`) leaves `build/firmware.elf` and its map; "
        "`slipway size .` says which layer each byte belongs to.",
        "`slipway micro flash .` programs the board and `slipway micro run .` prints what it "
        "sends; an emulated board needs no flashing.",
    ),
    "host": ("`slipway micro build .` compiles it for this machine.", "`slipway micro run .`"),
    "cmake": (
        "`add_subdirectory()` this folder, and link `slipway_{name}`; or `cmake -S . -B build` "
        "with `CMAKE_TOOLCHAIN_FILE` of your compiler.",
        "",
    ),
    "zephyr": (
        "`west build -b {board} .`, with `ZEPHYR_BASE` set; `module/` is a Zephyr module by "
        "itself.",
        "`west flash`",
    ),
    "arduino": (
        "Open the sketch in the Arduino IDE, or `arduino-cli compile --fqbn {board} .`",
        "`arduino-cli upload --fqbn {board} --port PORT .`",
    ),
    "platformio": (
        "`pio run`; the model alone is the library `lib/{name}`.",
        "`pio run --target upload`, then `pio device monitor`",
    ),
    "espidf": (
        "`idf.py set-target {board} build`; the model alone is the component `components/{name}`.",
        "`idf.py -p PORT flash monitor`",
    ),
    "cmsis": (
        "`slipway micro build .` writes `build/Slipway.{name}.1.0.0.pack`, which Keil, "
        "STM32CubeIDE and `cpackget add` install.",
        "",
    ),
}


def project_readme(
    platform: str, model: Mapping[str, Any], options: Mapping[str, Any], notes: str = ""
) -> str:
    """Return the text for a project of a template; `model` is the archive's description."""
    name = str(model["model_name"])
    board = options.get("board")
    values = {"name": name, "board": options.get("board_name") or board}
    build, run = (text.format(**values) for text in _BUILD.get(platform, ("", "")))
    lines = [f"# {name}", "", f"A model compiled by {model.get('compiler', 'Slipway')}"]
    lines[-1] += f" for `{' '.join(map(str, model.get('target', ())))}`"
    article = "an" if platform[0] in "aeiou" else "a"
    lines[-1] += f", as {article} {platform} project" + (f" for {board}." if board else ".")
    if notes:
        lines += ["", notes]
    if build:
        lines += ["", "## Build and run", "", build]
    if run:
        lines += ["", run]
    main = _main(model)
    if main is not None:
        lines += ["", *_memory(main)]
        lines += ["", *_calling(name, model)]
    return "\n".join([*lines, ""])


def _main(model: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what the archive says of the run function, where it has one that C calls."""
    memory = model.get("memory") or {}
    found = (memory.get("functions", {}).get("main") or [None])[0] if memory else None
    return found if found and "outputs" in found and "interface" in model else None


def _memory(main: Mapping[str, Any]) -> list[str]:
    return [
        "## Memory",
        "",
        "| | bytes |",
        "| --- | --- |",
        f"| constants (flash) | {main['constants_size_bytes']} |",
        f"| workspace (RAM) | {main['workspace_size_bytes']} |",
        f"| inputs and outputs (RAM) | {main['io_size_bytes']} |",
    ]


def _calling(name: str, model: Mapping[str, Any]) -> list[str]:
    prefix = f"tvmgen_{name}"
    inputs, outputs = ports_of(model, "inputs"), ports_of(model, "outputs")
    rows = [
        f"| {side} | `{field}` | {info.get('name', field)} | {info['dtype']}{info.get('shape', '')}"
        f" | {_scale(info)} |"
        for side, ports in (("input", inputs), ("output", outputs))
        for field, info in ports.items()
    ]
    lines = [
        "## Call the model",
        "",
        f"`{prefix}.h` is the interface: it says sizes and scales, and C and C++ take it.",
        "",
        "| | member | the model's name | type | real = |",
        "| --- | --- | --- | --- | --- |",
        *rows,
    ]
    interface = model["interface"]
    if interface.get("workspace_io") or interface.get("caller_pools"):
        return lines
    given = ", ".join(f"memory_of_{field}" for field in inputs)
    taken = ", ".join(f"memory_of_{field}" for field in outputs)
    return [
        *lines,
        "",
        "```c",
        f'#include "{prefix}.h"',
        "",
        *(
            f"static {_c_type(info['dtype'])} memory_of_{field}[{_count(info)}];"
            for field, info in (*inputs.items(), *outputs.items())
        ),
        "",
        "int32_t run_the_model(void) {",
        f"  const struct {prefix}_inputs inputs = {{{given}}};" if inputs else "",
        f"  const struct {prefix}_outputs outputs = {{{taken}}};",
        f"  return {prefix}_run({'&inputs' if inputs else '0'}, &outputs);",
        "}",
        "```",
    ]


def _scale(info: Mapping[str, Any]) -> str:
    if "scale" not in info:
        return ""
    zero = info["zero_point"]
    shift = f"(x {'-' if zero >= 0 else '+'} {abs(zero)})" if zero else "x"
    return f"{info['scale']:.9g} * {shift}"


_C_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}


def _c_type(dtype: str) -> str:
    if dtype in _C_TYPES:
        return _C_TYPES[dtype]
    known = dtype.lstrip("u") in ("int8", "int16", "int32", "int64")
    return f"{dtype}_t" if known else "uint8_t"


def _count(info: Mapping[str, Any]) -> int:
    widths = {"float": 4, "double": 8, "uint8_t": 1}
    ty = _c_type(info["dtype"])
    bits = ty.removesuffix("_t").lstrip("uint")
    width = widths.get(ty) or int(bits) // 8
    return max(1, int(info["size"]) // width)
