"""A module of SPIR-V: its types and constants, each once, its parts in order; as words and text."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from slipway import dtypes
from slipway.codegen.spirv.words import (
    CAPABILITIES,
    DECORATIONS,
    GENERATOR,
    GLSL450,
    LOGICAL,
    MAGIC,
    OPCODES,
    STORAGE,
    VERSION,
    VULKAN_MODEL,
    Id,
    Word,
)
from slipway.errors import CodegenError

Operand = Id | int | str


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name without Op, its result and the result's type, where it has them."""

    name: str
    operands: tuple[Operand, ...]
    result: Id | None = None
    kind: Id | None = None

    def words(self) -> list[int]:
        """Return the instruction as it is stored."""
        words: list[int] = [word for word in (self.kind, self.result) if word is not None]
        for operand in self.operands:
            words += _string(operand) if isinstance(operand, str) else [operand]
        return [(len(words) + 1) << 16 | OPCODES[self.name], *words]

    def text(self) -> str:
        """Return the instruction in the assembly language of Khronos' tools."""
        words = [self.kind, *self.operands] if self.kind is not None else self.operands
        shown = " ".join(_shown(word) for word in words if word is not None)
        head = f"%{self.result} = " if self.result is not None else ""
        return f"{head}Op{self.name} {shown}".rstrip()


def _string(text: str) -> list[int]:
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def _shown(word: Operand) -> str:
    if isinstance(word, Id):
        return f"%{int(word)}"
    if isinstance(word, Word):
        return word.name
    return f'"{word}"' if isinstance(word, str) else str(word)


@dataclass
class SpirvModule:
    """Kernels of a library, each an entry point; `functions` has their code."""

    entry_points: list[Instruction] = field(default_factory=list)
    modes: list[Instruction] = field(default_factory=list)
    notes: list[Instruction] = field(default_factory=list)
    decorations: list[Instruction] = field(default_factory=list)
    globals: list[Instruction] = field(default_factory=list)
    functions: list[Instruction] = field(default_factory=list)
    capabilities: set[Word] = field(default_factory=lambda: {CAPABILITIES["Shader"]})
    extensions: set[str] = field(default_factory=set)
    model: Word = GLSL450  # of memory
    glsl: Id = field(default_factory=lambda: Id(1))
    bound: int = 2
    _once: dict[tuple[object, ...], Id] = field(default_factory=dict)
    _numbers: dict[int, str] = field(default_factory=dict)  # constants as text, by result

    def fresh(self) -> Id:
        """Return a number for another result."""
        self.bound += 1
        return Id(self.bound - 1)

    def once(self, name: str, *operands: Operand, kind: Id | None = None) -> Id:
        """Return the result of a type or constant, which a module has once."""
        key = (name, kind, operands)
        if key not in self._once:
            self._once[key] = self.fresh()
            self.globals.append(Instruction(name, operands, self._once[key], kind))
        return self._once[key]

    def decorate(self, target: Id, *what: Operand) -> None:
        """Say something of a result."""
        self.decorations.append(Instruction("Decorate", (target, *what)))

    # -- types and constants -----------------------------------------------------------------------

    def type_of(self, dtype: str) -> Id:
        """Return the type of a value in a register; integers have no sign here."""
        if dtype == "bool":
            return self.once("TypeBool")
        bits = dtypes.bits_of(dtype)
        if dtypes.is_float(dtype):
            self._need("" if bits == 32 else f"Float{bits}")
            return self.once("TypeFloat", bits)
        if bits < 8:
            raise CodegenError(
                f"kernels for Vulkan have no {dtype}: values of four bits are computed in bytes, "
                "others are not. Keep such tensors on the processor, or make bytes of them before"
            )
        self._need("" if bits == 32 else f"Int{bits}")
        return self.once("TypeInt", bits, 0)

    def _need(self, capability: str) -> None:
        if capability:
            self.capabilities.add(CAPABILITIES[capability])

    def exchanges(self, kernel: str, warp: int) -> None:
        """Say that the threads of a kernel hand each other values, in subgroups of `warp`.

        The runtime reads the note: that is the size of subgroups the kernel is compiled for.
        """
        self._need("GroupNonUniform")
        self._need("GroupNonUniformShuffle")
        self.notes.append(Instruction("ModuleProcessed", (f"{kernel}: subgroups of {warp}",)))

    def multiplies(self, kernel: str, size: str) -> None:
        """Say that a kernel multiplies matrices of a size, once: the runtime asks the device."""
        note = Instruction("ModuleProcessed", (f"{kernel}: matrices of {size}",))
        if note not in self.notes:
            self.notes.append(note)

    def use_vulkan_model(self) -> None:
        """Let memory be ordered as Vulkan's model says, which matrices need."""
        self.model = VULKAN_MODEL
        self._need("VulkanMemoryModel")
        self.extensions.add("SPV_KHR_vulkan_memory_model")

    def pointer(self, storage: str, to: Id) -> Id:
        """Return the type of a pointer."""
        return self.once("TypePointer", STORAGE[storage], to)

    def constant(self, dtype: str, value: float) -> Id:
        """Return a constant: of a float its nearest, of an integer its low bits."""
        if dtype == "bool":
            return self.once("ConstantTrue" if value else "ConstantFalse", kind=self.type_of(dtype))
        bits = dtypes.bits_of(dtype)
        if dtypes.is_float(dtype):
            word = _float_bits(float(value), bits)
        else:
            word = int(value) & ((1 << bits) - 1)
        words = (word & 0xFFFFFFFF, word >> 32) if bits == 64 else (word,)
        made = self.once("Constant", *words, kind=self.type_of(dtype))
        if made not in self._numbers:
            exact = _float_of(word, bits) if dtypes.is_float(dtype) else value
            self._numbers[made] = _number_text(exact, dtype, word)
        return made

    def vector3(self) -> Id:
        """Return the type of three uint32."""
        return self.once("TypeVector", self.type_of("uint32"), 3)

    def storage_block(self, dtype: str) -> Id:
        """Return the type of a buffer: as many elements as there are."""
        size = dtypes.bytes_of(dtype)
        if size == 1:
            self._need("StorageBuffer8BitAccess")
            self.extensions.add("SPV_KHR_8bit_storage")
        elif size == 2:
            self._need("StorageBuffer16BitAccess")
        elements = ("TypeRuntimeArray", self.type_of(dtype))
        is_new = (elements[0], None, (elements[1],)) not in self._once
        array = self.once(*elements)
        if is_new:
            self.decorate(array, DECORATIONS["ArrayStride"], size)
        block = self.once("TypeStruct", array)
        if is_new:
            self.decorate(block, DECORATIONS["Block"])
            self.member(block, 0, 0)
        return block

    def member(self, block: Id, number: int, offset: int) -> None:
        """Say where a member of a block lies."""
        self.decorations.append(
            Instruction("MemberDecorate", (block, number, DECORATIONS["Offset"], offset))
        )

    def array(self, dtype: str, count: int) -> Id:
        """Return the type of so many elements."""
        return self.once("TypeArray", self.type_of(dtype), self.constant("uint32", count))

    # -- the whole ---------------------------------------------------------------------------------

    def instructions(self) -> Iterator[Instruction]:
        """Yield everything in the order of the specification."""
        for capability in sorted(self.capabilities):
            yield Instruction("Capability", (capability,))
        for extension in sorted(self.extensions):
            yield Instruction("Extension", (extension,))
        yield Instruction("ExtInstImport", ("GLSL.std.450",), self.glsl)
        yield Instruction("MemoryModel", (LOGICAL, self.model))
        yield from self.entry_points
        yield from self.modes
        yield from self.notes
        yield from self.decorations
        yield from self.globals
        yield from self.functions

    def code(self) -> bytes:
        """Return the module as a driver takes it."""
        words = [MAGIC, VERSION, GENERATOR, self.bound, 0]
        for instruction in self.instructions():
            words += instruction.words()
        return struct.pack(f"<{len(words)}I", *words)

    def text(self, first_line: str) -> str:
        """Return the module as text, as `spirv-as --preserve-numeric-ids` takes it."""
        lines = [self._line(i) for i in self.instructions()]
        return f"; {first_line}\n; Version: 1.3\n" + "\n".join(lines) + "\n"

    def _line(self, instruction: Instruction) -> str:
        number = self._numbers.get(instruction.result or 0)
        if number is None:
            return instruction.text()
        return f"%{instruction.result} = Op{instruction.name} %{instruction.kind} {number}"


def _number_text(value: float, dtype: str, word: int) -> str:
    """Return a constant as the assembler reads it, with all its bits."""
    if not dtypes.is_float(dtype):
        return str(word)
    exponent = 128 if dtype == "float32" else 1024
    if value != value:
        return f"0x1.8p+{exponent}"
    if value in (float("inf"), float("-inf")):
        return f"{'-' if value < 0 else ''}0x1p+{exponent}"
    return value.hex()


def _float_bits(value: float, bits: int) -> int:
    if bits == 64:
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return int(struct.unpack("<I", packed)[0])


def _float_of(word: int, bits: int) -> float:
    if bits == 64:
        return float(struct.unpack("<d", struct.pack("<Q", word))[0])
    return float(struct.unpack("<f", struct.pack("<I", word))[0])
