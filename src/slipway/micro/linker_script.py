"""The linker script of a board: where code, data, arenas and stack go."""

from __future__ import annotations

from slipway.micro.board import Board

_TEMPLATE = """\
/* Generated from the description of {name}. */
MEMORY {{
{memories}
}}
ENTRY(Reset_Handler)
PROVIDE(__stack_bytes = {stack}); /* the Makefile's STACK_BYTES goes before */
SECTIONS {{
{boot}  .vectors : {{ KEEP(*(.vectors)) KEEP(*(.vectors.block)) }} > FLASH
  .text : {{ *(.text .text.*){text_end} }} > FLASH
  .rodata {rodata_at}: {rodata_lma}{{
    . = ALIGN(8); *(.rodata .rodata.* .srodata .srodata.*) . = ALIGN(4);
  }} > {rodata}
{hole}  .ARM.extab : {{ *(.ARM.extab*) }} > FLASH
  .ARM.exidx : {{ *(.ARM.exidx*) }} > FLASH
  .eh_frame : {{ KEEP(*(.eh_frame)) }} > FLASH
  .data : {{
    . = ALIGN(8); __data_start = .;
    *(.data .data.*)
    . = ALIGN(16); *(.slipway.constant.RAM)
    __global_pointer$ = . + 0x800; *(.sdata .sdata.*)
    . = ALIGN(4); __data_end = .;
  }} > RAM AT > FLASH
  __data_load = LOADADDR(.data){shift};
  .bss (NOLOAD) : {{
    . = ALIGN(8); __bss_start = .;
    *(.sbss .sbss.* .bss .bss.*) *(COMMON)
    . = ALIGN(4); __bss_end = .;
  }} > RAM
  .arena (NOLOAD) : {{ . = ALIGN(16); *(.slipway.arena .slipway.arena.*) . = ALIGN(4); }} > RAM
{pools}{constants}  end = .; __end__ = .;
  .stack (NOLOAD) : {{
    . = ALIGN(16); __stack_base = .; . += __stack_bytes; . = ALIGN(16); __stack_top = .;
  }} > RAM
  __code_start = .; __code_end = ORIGIN(RAM) + LENGTH(RAM);
  /DISCARD/ : {{ *(.comment) *(.note*) *(.riscv.attributes) }}
}}
"""


def linker_script(board: Board, stack_bytes: int) -> str:
    """Return the script: FLASH holds code, RAM data, arena and stack.

    The rest of RAM is free for code that a host uploads.  Memory in section
    ``.slipway.pool.<NAME>`` goes to the memory of that name, constants in section
    ``.slipway.constant.<NAME>`` are copied there when the board starts.
    """
    memories = "\n".join(
        f"  {m.name} ({'rx' if m.name in ('FLASH', 'BOOT') else 'rwx'}) : "
        f"ORIGIN = {m.origin:#x}, LENGTH = {m.size:#x}"
        for m in board.memories
    )
    pools = "".join(
        f"  .pool.{m.name} (NOLOAD) : {{ . = ALIGN(16); *(.slipway.pool.{m.name}) }} > {m.name}\n"
        for m in board.memories
        if m.name not in ("FLASH", "BOOT")
    )
    boots = any(m.name == "BOOT" for m in board.memories) and not board.boot
    boot = "  .boot2 : { KEEP(*(.boot2)) } > BOOT\n" if boots else ""
    for i, part in enumerate(board.boot):
        boot += f"  .boot.{i} {part.at:#x} : {{ KEEP(*(.boot.{i})) }} > BOOT\n"
    shift = f" + {board.read_shift}" if board.read_shift else ""
    if board.read_shift:
        flash = board.memory("FLASH")
        origin = flash.origin + board.read_shift
        memories += f"\n  FLASH_DATA (r) : ORIGIN = {origin:#x}, LENGTH = {flash.size:#x}"
    constants = "".join(
        f"  .constants.{m} : {{ . = ALIGN(16); __{m}_start = .; *(.slipway.constant.{m}) "
        f". = ALIGN(4); __{m}_end = .; }} > {m} AT > FLASH\n"
        f"  __{m}_load = LOADADDR(.constants.{m}){shift};\n"
        for m in copied_memories(board)
    )
    return _TEMPLATE.format(
        name=board.name,
        memories=memories,
        pools=pools,
        constants=constants,
        stack=stack_bytes,
        boot=boot,
        shift=shift,
        **_constants_in(board),
    )


def _constants_in(board: Board) -> dict[str, str]:
    """Where constants lie: in FLASH, or at the same bytes of it as the data bus sees them.

    Then the section has another address than its place in the image, which a hole keeps free.
    """
    if not board.read_shift:
        return {"text_end": "", "rodata_at": "", "rodata_lma": "", "rodata": "FLASH", "hole": ""}
    return {
        "text_end": " . = ALIGN(16); __text_end = .;",
        "rodata_at": f"(__text_end + {board.read_shift}) ",
        "rodata_lma": "AT(__text_end) ",
        "rodata": "FLASH_DATA",
        "hole": "  .hole (NOLOAD) : { . = . + SIZEOF(.rodata); } > FLASH\n",
    }


def copied_memories(board: Board) -> list[str]:
    """Return the memories whose constants the start-up code copies out of FLASH, beside RAM's."""
    return [m.name for m in board.memories if m.name not in ("FLASH", "RAM", "BOOT")]
