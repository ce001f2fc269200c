"""Kernels to SPIR-V for Vulkan: buffers of a descriptor set, scalars as push constants.

A pointer parameter is binding `number` of set 0.  Scalars lie one after the other in the push
constants, each in four bytes or eight, aligned to that.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from slipway import dtypes
from slipway.codegen.spirv.assembler import Instruction, Operand, SpirvModule
from slipway.codegen.spirv.matrices import matrix_statement
from slipway.codegen.spirv.subgroups import shuffled, thread_of_subgroups
from slipway.codegen.spirv.words import (
    BARRIER_SEMANTICS,
    BUILTINS,
    DECORATIONS,
    GL_COMPUTE,
    GLSL,
    HANDED_OVER,
    HANDS_OVER,
    LOCAL_SIZE,
    NONE,
    PURE,
    STORAGE,
    SUBGROUP_SCOPE,
    WORKGROUP_SCOPE,
    Id,
)
from slipway.codegen.ssa.sink import Memory, Parameters, Place, Sink, Value
from slipway.ir.instructions.cooperative_products import MATRIX, CooperativeProduct

_FLOAT = {"add": "FAdd", "sub": "FSub", "mul": "FMul", "div": "FDiv"}
_WHOLE = {"add": "IAdd", "sub": "ISub", "mul": "IMul", "and": "BitwiseAnd", "or": "BitwiseOr",
          "xor": "BitwiseXor", "shl": "ShiftLeftLogical"}  # fmt: skip
_BOOL = {"and": "LogicalAnd", "or": "LogicalOr", "xor": "LogicalNotEqual"}
_ORDER = {"<": "LessThan", "<=": "LessThanEqual", ">": "GreaterThan", ">=": "GreaterThanEqual"}
_GLSL = {"sqrt": "Sqrt", "fabs": "FAbs", "floor": "Floor", "ceil": "Ceil", "trunc": "Trunc",
         "rint": "RoundEven", "fma": "Fma"}  # fmt: skip
_AXES = "xyz"


class SpirvSink(Sink):
    """Adds kernels to a module."""

    def __init__(self, has_matrices: bool = False) -> None:
        self.module = SpirvModule()
        self.handed_over: tuple[Operand, ...] = (HANDED_OVER,) if has_matrices else ()
        if has_matrices:
            self.module.use_vulkan_model()
        self.body: list[Instruction] = []
        self.variables: list[Instruction] = []
        self.interface: list[Id] = []
        self.arrays: dict[int, Id] = {}  # of blocks and threads, by number
        self.elements: dict[tuple[int, Operand], Id] = {}  # of arrays that are variables apart
        # What instructions found whose results depend on operands alone, in blocks around this one.
        self.known: list[dict[tuple[Operand, ...], Id]] = []
        self.buffers: dict[tuple[int, str], Id] = {}
        self.builtins: dict[str, Id] = {}
        self.label = Id(0)

    # -- instructions ------------------------------------------------------------------------------

    def put(self, name: str, kind: Id, *operands: Operand, is_pure: bool = False) -> Id:
        """Add an instruction with a result; one whose operands say it all, where it is not known.

        Not every driver looks for what is computed twice: SwiftShader does not.
        """
        key = (name, kind, *operands)
        is_pure = is_pure or name in PURE
        if is_pure:
            for scope in reversed(self.known):
                if key in scope:
                    return scope[key]
        result = self.module.fresh()
        self.body.append(Instruction(name, operands, result, kind))
        if is_pure:
            self.known[-1][key] = result
        return result

    def _inside(self, side: Callable[[], None]) -> None:
        """Write what does not come before all that follows: its results are not known behind it."""
        self.known.append({})
        side()
        self.known.pop()

    def do(self, name: str, *operands: Operand) -> None:
        """Add an instruction without a result."""
        self.body.append(Instruction(name, operands))

    def value(self, dtype: str, name: str, *operands: Operand, is_pure: bool = False) -> Value:
        """Add an instruction whose result is of a dtype."""
        return Value(dtype, self.put(name, self.module.type_of(dtype), *operands, is_pure=is_pure))

    def _open(self, label: Id) -> None:
        self.body.append(Instruction("Label", (), label))
        self.label = label

    # -- a kernel ----------------------------------------------------------------------------------

    def begin(self, name: str, parameters: Parameters, threads: tuple[int, ...]) -> None:
        """Begin a kernel."""
        self.name, self.parameters, self.threads = name, parameters, threads
        self.body, self.variables, self.interface = [], [], []
        self.arrays, self.elements, self.buffers, self.builtins = {}, {}, {}, {}
        self.known = [{}]
        self.pushed = self._push_constants()
        self._open(self.module.fresh())
        if parameters.warp > 1:
            self.module.exchanges(name, parameters.warp)

    def _push_constants(self) -> Id | None:
        scalars = self.parameters.scalars
        if not scalars:
            return None
        module = self.module
        kinds = [module.type_of(_pushed(dtype)) for _, dtype in scalars]
        block = module.fresh()
        module.globals.append(Instruction("TypeStruct", tuple(kinds), block))
        module.decorate(block, DECORATIONS["Block"])
        offset = 0
        for number, (_, dtype) in enumerate(scalars):
            size = dtypes.bytes_of(_pushed(dtype))
            offset += -offset % size
            module.member(block, number, offset)
            offset += size
        return self.variable("PushConstant", block)

    def variable(self, storage: str, kind: Id) -> Id:
        """Declare a variable of the kernel, or of the module."""
        pointer = self.module.pointer(storage, kind)
        result = self.module.fresh()
        made = Instruction("Variable", (STORAGE[storage],), result, pointer)
        (self.variables if storage == "Function" else self.module.globals).append(made)
        return result

    def end(self) -> None:
        """End the kernel: its entry point, and its function."""
        module = self.module
        self.do("Return")
        nothing = module.once("TypeVoid")
        kind = module.once("TypeFunction", nothing)
        function = module.fresh()
        module.entry_points.append(
            Instruction("EntryPoint", (GL_COMPUTE, function, self.name, *self.interface))
        )
        sizes = self.threads if self.parameters.warp == 1 else (prod(self.threads), 1, 1)
        module.modes.append(Instruction("ExecutionMode", (function, LOCAL_SIZE, *sizes)))
        head = Instruction("Function", (NONE, kind), function, nothing)
        module.functions += [head, self.body[0], *self.variables, *self.body[1:]]
        module.functions.append(Instruction("FunctionEnd", ()))

    def scalar(self, number: int) -> Value:
        """Return a push constant."""
        dtype = self.parameters.scalars[number][1]
        held = _pushed(dtype)
        kind = self.module.type_of(held)
        at = self.put(
            "AccessChain",
            self.module.pointer("PushConstant", kind),
            self.pushed or Id(0),
            self.module.constant("uint32", number),
        )
        value = Value(held, self.put("Load", kind, at))
        if dtype == "bool":
            return self.compare("!=", value, self.constant(held, 0))
        return value if held == dtype else self.convert(value, dtype)

    def axis(self, tag: str) -> Value:
        """Return one of three numbers that the device gives."""
        kind, axis = tag.split(".")
        position = _AXES.index(axis)
        if kind == "threadIdx" and self.parameters.warp > 1:
            return thread_of_subgroups(self, position)
        name = "WorkgroupId" if kind == "blockIdx" else "LocalInvocationId"
        number = self.builtin(name, self.module.vector3())
        return self.value("int32", "CompositeExtract", number, position)

    def builtin(self, name: str, kind: Id) -> Id:
        """Return what the device gives by a name."""
        if name not in self.builtins:
            variable = self.variable("Input", kind)
            self.module.decorate(variable, DECORATIONS["BuiltIn"], BUILTINS[name])
            self.interface.append(variable)
            self.builtins[name] = self.put("Load", kind, variable)
        return self.builtins[name]

    def shuffle(self, op: str, value: Value, position: Value, width: int) -> Value:
        """Return the value of another thread of the subgroup."""
        return shuffled(self, op, value, position, width)

    # -- values ------------------------------------------------------------------------------------

    def constant(self, dtype: str, value: float) -> Value:
        """Return a constant."""
        return Value(dtype, self.module.constant(dtype, value))

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """Return a value of two."""
        dtype = a.dtype
        if dtype == "bool":
            return self.value(dtype, _BOOL[op], a.ref, b.ref)
        if dtypes.is_float(dtype):
            made = self.value(dtype, _FLOAT[op], a.ref, b.ref)
            if self.body[-1].result == made.ref:  # else it was known
                self.module.decorate(made.ref, DECORATIONS["NoContraction"])
            return made
        signed = dtypes.is_int(dtype)
        if op == "div":
            return self.value(dtype, "SDiv" if signed else "UDiv", a.ref, b.ref)
        if op == "shr":
            name = "ShiftRightArithmetic" if signed else "ShiftRightLogical"
            return self.value(dtype, name, a.ref, b.ref)
        return self.value(dtype, _WHOLE[op], a.ref, b.ref)

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """Return a bool."""
        if dtypes.is_float(a.dtype):
            predicate = {"==": "FOrdEqual", "!=": "FUnordNotEqual"}.get(op) or f"FOrd{_ORDER[op]}"
        else:
            sign = "S" if dtypes.is_int(a.dtype) else "U"
            predicate = {"==": "IEqual", "!=": "INotEqual"}.get(op) or sign + _ORDER[op]
        return self.value("bool", predicate, a.ref, b.ref)

    def negate(self, value: Value) -> Value:
        """Return the opposite."""
        opcode = "LogicalNot" if value.dtype == "bool" else "FNegate"
        return self.value(value.dtype, opcode, value.ref)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """Return one of two."""
        return self.value(yes.dtype, "Select", condition.ref, yes.ref, no.ref)

    def convert(self, value: Value, dtype: str) -> Value:
        """Return a number as another dtype."""
        source = value.dtype
        if dtypes.is_float(source):
            if dtypes.is_float(dtype):
                return self.value(dtype, "FConvert", value.ref)
            opcode = "ConvertFToS" if dtypes.is_int(dtype) else "ConvertFToU"
            return self.value(dtype, opcode, value.ref)
        signed = dtypes.is_int(source)
        if dtypes.is_float(dtype):
            return self.value(dtype, "ConvertSToF" if signed else "ConvertUToF", value.ref)
        if dtypes.bits_of(source) == dtypes.bits_of(dtype):
            return Value(dtype, value.ref)  # integers have no sign in a register
        return self.value(dtype, "SConvert" if signed else "UConvert", value.ref)

    def bitcast(self, value: Value, dtype: str) -> Value:
        """Return the same bits."""
        if dtypes.is_float(value.dtype) == dtypes.is_float(dtype):
            return Value(dtype, value.ref)
        return self.value(dtype, "Bitcast", value.ref)

    def math(self, op: str, *args: Value) -> Value:
        """Return a function of floats or bits."""
        refs = [arg.ref for arg in args]
        if op == "isnan":
            return self.value("bool", "IsNan", *refs)
        if op == "popcount":
            return self.value("uint32", "BitCount", *refs)
        if op == "clz":  # the highest bit is numbered 31, and that of 0 is -1
            highest = self.value("uint32", "ExtInst", self.module.glsl, GLSL["FindUMsb"], *refs)
            return self.binary("sub", self.constant("uint32", 31), highest)
        return self.value(args[0].dtype, "ExtInst", self.module.glsl, GLSL[_GLSL[op]], *refs)

    # -- memory ------------------------------------------------------------------------------------

    def declare(self, memory: Memory) -> None:
        """Make memory of a block or a thread."""
        if memory.scope == MATRIX:  # of which kind, those say that use it
            return
        if memory.apart:
            return
        storage = "Workgroup" if memory.scope == "shared" else "Function"
        kind = self.module.array(memory.dtype, memory.count)
        self.arrays[memory.number] = self.variable(storage, kind)

    def _buffer(self, memory: Memory) -> Id:
        key = (memory.number, memory.dtype)
        if key not in self.buffers:
            module, given = self.module, self.parameters
            made = self.variable("StorageBuffer", module.storage_block(memory.dtype))
            module.decorate(made, DECORATIONS["DescriptorSet"], 0)
            module.decorate(made, DECORATIONS["Binding"], memory.number)
            module.decorate(made, DECORATIONS["Restrict" if given.noalias else "Aliased"])
            if memory.number not in given.written:
                module.decorate(made, DECORATIONS["NonWritable"])
            if memory.number in given.coherent and not self.handed_over:
                module.decorate(made, DECORATIONS["Coherent"])
            self.buffers[key] = made
        return self.buffers[key]

    def at(self, memory: Memory, index: Value) -> Id:
        """Return a pointer to an element."""
        kind = self.module.type_of(memory.dtype)
        if memory.scope == "global":
            pointer = self.module.pointer("StorageBuffer", kind)
            zero = self.module.constant("uint32", 0)
            return self.put("AccessChain", pointer, self._buffer(memory), zero, index.ref)
        if memory.apart:
            element = memory.number, index.ref
            if element not in self.elements:
                self.elements[element] = self.variable("Function", kind)
            return self.elements[element]
        storage = "Workgroup" if memory.scope == "shared" else "Function"
        pointer = self.module.pointer(storage, kind)
        return self.put("AccessChain", pointer, self.arrays[memory.number], index.ref)

    def load(self, memory: Memory, index: Value) -> Value:
        """Return an element."""
        given, at = self.parameters, self.at(memory, index)
        is_constant = memory.scope == "global" and memory.number not in given.written
        access = self._access(memory)
        return self.value(memory.dtype, "Load", at, *access, is_pure=is_constant and given.noalias)

    def store(self, memory: Memory, index: Value, value: Value) -> None:
        """Set an element."""
        self.do("Store", self.at(memory, index), value.ref, *self._access(memory))

    def _access(self, memory: Memory) -> tuple[Operand, ...]:
        """Return what an access says of memory that threads have in common."""
        between = memory.scope == "shared" or (
            memory.scope == "global" and memory.number in self.parameters.coherent
        )
        return self.handed_over if between else ()

    def matrix(self, op: str, entry: CooperativeProduct, *operands: Place | Value) -> None:
        """Do something with whole matrices of a subgroup."""
        matrix_statement(self, op, entry, operands)

    # -- control -----------------------------------------------------------------------------------

    def branch(
        self, condition: Value, then: Callable[[], None], otherwise: Callable[[], None] | None
    ) -> None:
        """Do one of two things."""
        yes, merge = self.module.fresh(), self.module.fresh()
        no = self.module.fresh() if otherwise is not None else merge
        self.do("SelectionMerge", merge, NONE)
        self.do("BranchConditional", condition.ref, yes, no)
        for label, side in ((yes, then), (no, otherwise)):
            if side is not None:
                self._open(label)
                self._inside(side)
                self.do("Branch", merge)
        self._open(merge)

    def choose(
        self, condition: Value, then: Callable[[], Value], otherwise: Callable[[], Value]
    ) -> Value:
        """Return one of two values, of which only that one is computed."""
        found: list[Operand] = []
        dtype = ""

        def side(compute: Callable[[], Value]) -> Callable[[], None]:
            def run() -> None:
                nonlocal dtype
                value = compute()
                dtype = value.dtype
                found.extend((value.ref, self.label))

            return run

        self.branch(condition, side(then), side(otherwise))
        return self.value(dtype, "Phi", *found)

    def loop(self, start: Value, end: Value, body: Callable[[Value], None]) -> None:
        """Count from start to end."""
        before = self.label
        head, inside, step, merge = (self.module.fresh() for _ in range(4))
        number, following = self.module.fresh(), self.module.fresh()
        dtype = start.dtype
        kind = self.module.type_of(dtype)
        self.do("Branch", head)
        self._open(head)
        phi = (start.ref, before, following, step)
        self.body.append(Instruction("Phi", phi, number, kind))
        now = Value(dtype, number)
        goes_on = self.compare("<", now, end)
        self.do("LoopMerge", merge, step, NONE)
        self.do("BranchConditional", goes_on.ref, inside, merge)
        self._open(inside)
        self._inside(lambda: body(now))
        self.do("Branch", step)
        self._open(step)
        one = self.module.constant(dtype, 1)
        self.body.append(Instruction("IAdd", (number, one), following, kind))
        self.do("Branch", head)
        self._open(merge)

    def repeat(self, condition: Callable[[], Value], body: Callable[[], None]) -> None:
        """Do something while a condition holds."""
        head, test, inside, step, merge = (self.module.fresh() for _ in range(5))
        self.do("Branch", head)
        self._open(head)
        self.do("LoopMerge", merge, step, NONE)
        self.do("Branch", test)
        self._open(test)
        self.do("BranchConditional", condition().ref, inside, merge)
        self._open(inside)
        self._inside(body)
        self.do("Branch", step)
        self._open(step)
        self.do("Branch", head)
        self._open(merge)

    def barrier(self) -> None:
        """Wait for the threads of the block."""
        self._wait(WORKGROUP_SCOPE)

    def warp_barrier(self) -> None:
        """Wait for the threads of the subgroup."""
        self._wait(SUBGROUP_SCOPE)

    def _wait(self, of: int) -> None:
        scope = self.module.constant("uint32", of)
        hands_over = HANDS_OVER if self.handed_over else 0
        semantics = self.module.constant("uint32", BARRIER_SEMANTICS | hands_over)
        self.do("ControlBarrier", scope, scope, semantics)


def _pushed(dtype: str) -> str:
    """Return the dtype that a scalar has in the push constants."""
    if dtypes.is_float(dtype) or dtypes.bits_of(dtype) >= 32:
        return dtype
    return "int32" if dtypes.is_int(dtype) else "uint32"
