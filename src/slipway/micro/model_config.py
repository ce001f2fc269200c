"""model_config.h: what the programs of the templates know of the model they run, as macros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slipway import dtypes
from slipway.micro.board import Board
from slipway.micro.model_library import ports_of


def model_config(
    metadata: Mapping[str, Any], options: Mapping[str, Any], board: Board | None = None
) -> str:
    """Return model_config.h: names, memory and sizes of a model's inputs and outputs, its call.

    ``MODEL_MEMORY(attribute)`` defines the memory of inputs and outputs, and the pools that the
    model wants of its caller, each in the board's memory of that name if there is one.  A model of
    open sizes has them in the variable ``model_sizes``, the largest at first.
    """
    name = metadata["model_name"]
    prefix = f"tvmgen_{name}"
    inputs, outputs = ports_of(metadata, "inputs"), ports_of(metadata, "outputs")
    states = metadata.get("interface", {}).get("states", ())
    lines = [
        "/* Generated: which model this firmware holds. */",
        "#ifndef MODEL_CONFIG_H_",
        "#define MODEL_CONFIG_H_",
        f'#define MODEL_NAME "{name}"',
        f"#define MODEL_HEADER <{prefix}.h>",
        f"#define MODEL_INPUTS struct {prefix}_inputs",
        f"#define MODEL_OUTPUTS struct {prefix}_outputs",
        *_memory(metadata, prefix, inputs, outputs, board),
        _table("MODEL_FOR_EACH_INPUT", inputs),
        _table("MODEL_FOR_EACH_OUTPUT", outputs),
        *_sizes(metadata),
        "#define MODEL_SHAPES " + " ".join(_shapes(inputs, outputs)),
        _descriptors("MODEL_INPUT_TENSORS", "in", inputs, states),
        _descriptors("MODEL_OUTPUT_TENSORS", "out", outputs),
        *([f"#define MODEL_RESET(in) {prefix}_reset(in)"] if states else []),
        f"#define MODEL_HEAP_BYTES {int(options.get('heap_bytes') or 65536)}u",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def pool_attributes(metadata: Mapping[str, Any], board: Board) -> list[str]:
    """Return the compiler definitions that place a model's constants in a board's memories."""
    prefix = f"TVMGEN_{metadata['model_name']}".upper()
    found = []
    for pool in metadata.get("interface", {}).get("constant_pools", ()):
        memory = _memory_of(board, pool)
        if memory not in ("", "FLASH"):
            section = f'__attribute__((section(".slipway.constant.{memory}")))'
            found.append(f"'{prefix}_{pool.upper()}_CONSTANT_ATTRIBUTE={section}'")
    return found


def _memory(
    metadata: Mapping[str, Any],
    prefix: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    board: Board | None,
) -> list[str]:
    interface = metadata.get("interface", {})
    placed = interface.get("workspace_io", {})
    memory, macros = [], []
    for where, tensors in (("in", inputs), ("out", outputs)):
        for tensor, info in tensors.items():
            own = f"memory_{where}_{c_name(tensor)}"
            if tensor in placed:
                pool, offset = placed[tensor]["pool"], placed[tensor]["offset"]
                base = f"{prefix}_workspace_{pool}"
                if interface["caller_pools"]:
                    base = f"model_pool_{pool}"
                macros.append(f"#define {own} ({base} + {offset})")
            else:
                memory.append(f"static uint8_t {own}[{info['size']}] attribute;")
    arguments = [] if placed else ["in", "out"]
    sizes = interface.get("sizes", ())
    if sizes:
        largest = ", ".join(str(size["high"]) for size in sizes)
        memory.append(f"static struct {prefix}_sizes model_sizes = {{{largest}}};")
        arguments.append("&model_sizes")
    if interface.get("caller_pools"):
        pools = metadata["memory_plan"]["pools"]
        for pool in pools:
            part = _memory_of(board, pool["name"])
            section = f', section(".slipway.pool.{part}")' if part else ""
            memory.append(
                f"static uint8_t model_pool_{pool['name']}[{max(1, pool['size_bytes'])}] "
                f"__attribute__((aligned(16){section}));"
            )
        members = ", ".join(f"model_pool_{pool['name']}" for pool in pools)
        memory.append(f"static struct {prefix}_workspace_pools model_pools = {{{members}}};")
        arguments.append("&model_pools")
    unused = "(void)(in), (void)(out), " if placed else ""
    return [
        f"#define MODEL_MEMORY(attribute) {' '.join(memory)}",
        *macros,
        f"#define MODEL_CALL(in, out) ({unused}{prefix}_run({', '.join(arguments)}))",
    ]


def _memory_of(board: Board | None, pool: str) -> str:
    """Return the board's memory that a pool is named after, or ""."""
    names = [] if board is None else [m.name for m in board.memories]
    return next((name for name in names if name.lower() == pool.lower()), "")


def _table(macro: str, tensors: Mapping[str, Any]) -> str:
    names = [c_name(tensor) for tensor in tensors]
    each = "X"
    while each in names:  # it would stand for the macro: exporters of scikit-learn name inputs so
        each += "_"
    rows = " ".join(
        f'{each}({name}, {info["size"]}, "{info["dtype"]}")'
        for name, info in zip(names, tensors.values(), strict=True)
    )
    return f"#define {macro}({each}) {rows}"


def _sizes(metadata: Mapping[str, Any]) -> list[str]:
    """Return the table of the open sizes: names and ranges."""
    sizes = metadata.get("interface", {}).get("sizes", ())
    rows = " ".join(f"_x_({size['name']}, {size['low']}, {size['high']})" for size in sizes)
    return [f"#define MODEL_FOR_EACH_SIZE(_x_) {rows}"] if sizes else []


def _shapes(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> list[str]:
    # C has no arrays without elements: that of a scalar holds a number nobody reads.
    return [
        f"static int64_t shape_{where}_{c_name(t)}[] = "
        f"{{{', '.join(map(str, _shape(info) or [1]))}}};"
        for where, tensors in (("in", inputs), ("out", outputs))
        for t, info in tensors.items()
    ]


def _descriptors(
    macro: str, where: str, tensors: Mapping[str, Any], states: Sequence[str] = ()
) -> str:
    rows = []
    for tensor, info in tensors.items():
        cid, code = c_name(tensor), _dlpack_type(info["dtype"])
        rows.append(
            f'{{"{tensor}", {{memory_{where}_{cid}, {{1, 0}}, {len(_shape(info))}, {code}, '
            f"shape_{where}_{cid}, 0, 0}}, {int(tensor in states)}}}"
        )
    return f"#define {macro} " + ", ".join(rows)


def _shape(info: Mapping[str, Any]) -> list[int]:
    """Return a tensor's shape; archives of other writers have only the size."""
    if info.get("shape") is not None:
        return list(info["shape"])
    return [int(info["size"]) * 8 // dtypes.parse(info["dtype"]).bits]


def _dlpack_type(dtype: str) -> str:
    parsed = dtypes.parse(dtype)
    return f"{{{dtypes.DLPACK_CODE[parsed.code]}, {parsed.bits}, 1}}"


def c_name(name: str) -> str:
    """Return a tensor's name as a C identifier."""
    cleaned = "".join(ch if ch.isalnum() and ch.isascii() else "_" for ch in name)
    return cleaned if not cleaned[:1].isdigit() else f"_{cleaned}"
