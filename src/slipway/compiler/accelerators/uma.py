"""UMA, classic TVM's way to bring an accelerator: patterns, passes over loops, and C to call.

::

    class MyBackend(UMABackend):
        target_name = "my_ai_hw"

        def __init__(self):
            super().__init__()
            self._register_pattern("conv2d", conv2d_pattern())
            self._register_tir_pass(PassPhase.TIR_PHASE_0, ReplacesLoopsByCalls())
            self._register_codegen(fmt="c", includes=lambda: '#include "driver.c"')

    backend = MyBackend()
    backend.register()
    mod = backend.partition(mod)
    lib = relay.build(mod, target=Target("my_ai_hw", host="c"))

A part becomes the loops that its operators compute, in blocks named as topi's; the passes replace
them, and the C that they call is compiled beside, for whatever processor is the host.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Any

from slipway import te
from slipway.blocks.from_te import create_prim_func
from slipway.blocks.schedule import Schedule
from slipway.compiler.driver import lower
from slipway.errors import ArgumentValueError, LoweringError, TargetError, reason_of
from slipway.ir.function import IRModule, PrimFunc
from slipway.relay.build_module import bind_params_by_name
from slipway.relay.expr import Function
from slipway.relay.op.contrib.register import register_pattern_table
from slipway.relay.over_tensors import evaluate
from slipway.relay.types import TensorType, flatten
from slipway.runtime.packed_func import register_func
from slipway.target.kinds import register_accelerator
from slipway.te.tensor import Tensor
from slipway.toolchain.clang import create_llvm
from slipway.toolchain.tempdir import scratch
from slipway.topi.nn.convolution import conv
from slipway.transform.context import PassContext
from slipway.transform.graph import classic as graph_passes
from slipway.transform.manager import Sequential


class PassPhase(Enum):
    """When a pass runs: over the graph before and after it is divided, or over loops."""

    PRE_PARTITIONING = auto()
    POST_PARTITIONING_0 = auto()
    POST_PARTITIONING_1 = auto()
    TIR_PHASE_0 = auto()
    TIR_PHASE_1 = auto()
    TIR_PHASE_2 = auto()
    TIR_PHASE_3 = auto()


_LATER = {PassPhase.TIR_PHASE_1: 1, PassPhase.TIR_PHASE_2: 2, PassPhase.TIR_PHASE_3: 3}


def uma_available() -> bool:
    """Return True: UMA is a part of the compiler here."""
    return True


def add_llvm_to_block(sch: Schedule, block_name: str, c_code_str: str = "") -> Schedule:
    """Let a block bring C along, compiled to LLVM IR by a Clang of this machine."""
    with scratch() as folder:
        text = create_llvm([c_code_str], output=str(Path(folder) / "source.ll"))
    sch.annotate(sch.get_loops(block_name)[0], "pragma_import_llvm", text)
    return sch


class UMAPartitioner:
    """Patterns of an accelerator, and the passes around the division of a graph by them."""

    def __init__(self, target_name: str, merge_compiler_regions: bool = True) -> None:
        self.target_name, self.merge_compiler_regions = target_name, merge_compiler_regions
        self._relay_passes: list[tuple[PassPhase, Any]] = []
        self._patterns: list[tuple[Any, ...]] = []

    def add_pattern(
        self, name: str, pattern: object, predicate: Callable[..., bool] | None = None
    ) -> None:
        """Let the accelerator take what matches a pattern; those added first go first."""
        checks = () if predicate is None else (predicate,)
        self._patterns.append((f"{self.target_name}.{name}", pattern, *checks))

    def register(self) -> None:
        """Enter the patterns as the accelerator's table."""
        register_pattern_table(self.target_name, lambda: self._patterns)

    def partition(self, mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
        """Return the module with a function for each part that the accelerator takes."""
        if params:
            main = mod["main"]
            assert isinstance(main, Function)
            mod["main"] = bind_params_by_name(main, params)
        passes = [
            *self._of(PassPhase.PRE_PARTITIONING),
            graph_passes.InferType(),
            graph_passes.MergeComposite(self._patterns),
            graph_passes.AnnotateTarget(self.target_name),
        ]
        if self.merge_compiler_regions:
            passes.append(graph_passes.MergeCompilerRegions())
        passes.append(graph_passes.PartitionGraph(bind_constants=False))
        passes += self._of(PassPhase.POST_PARTITIONING_0, PassPhase.POST_PARTITIONING_1)
        divided: IRModule = Sequential(passes)(mod)
        return divided

    def _of(self, *phases: PassPhase) -> list[Any]:
        return [one for phase in phases for at, one in self._relay_passes if at is phase]


class UMALower:
    """How a part of a graph becomes loops: what its operators compute, and passes over that."""

    def __init__(self, target_name: str) -> None:
        self.target_name = target_name
        self.codegen: UMACodegen | None = None
        self._operator_strategies: list[tuple[str, Any, int | None]] = []
        self._tir_passes: list[tuple[PassPhase, Any]] = []

    def _lower_relay_to_tir(self, relay_prim_func: Function) -> PrimFunc:
        values: dict[int, list[Tensor]] = {}
        inputs: list[Tensor] = []
        for param in relay_prim_func.params:
            fields = [
                te.placeholder(t.shape, dtype=t.dtype, name=f"p{len(inputs) + n}")
                for n, t in enumerate(flatten(param.checked_type)) if isinstance(t, TensorType)
            ]  # fmt: skip
            values[id(param)] = fields
            inputs += fields
        outputs = evaluate(relay_prim_func.body, values, {"nn.conv2d": _convolution})
        func = create_prim_func([*inputs, *outputs])
        symbol = relay_prim_func.attr("global_symbol", "main")
        named = {"global_symbol": symbol, "relay_attrs": relay_prim_func.attrs}
        return func.with_attr(named)  # type: ignore[no-any-return]

    def _lower_stir_to_nstir(self, prim_func: PrimFunc) -> PrimFunc:
        func = self.without_blocks_of_its_own(prim_func)
        later = [(_LATER[at], one) for at, one in self._tir_passes if at in _LATER]
        context = PassContext.current()
        with PassContext(
            context.opt_level, context.required_pass, context.disabled_pass,
            config={**context.config, "tir.add_lower_pass": later},
        ):  # fmt: skip
            mod = lower(IRModule.from_functions({"main": func}))
        found = mod["main"]
        assert isinstance(found, PrimFunc)
        return found

    def without_blocks_of_its_own(self, func: PrimFunc) -> PrimFunc:
        """Return a function of blocks after the passes of the first phase."""
        name = str(func.attr("global_symbol", "main"))
        mod = IRModule.from_functions({name: func})
        for at, one in self._tir_passes:
            if at is PassPhase.TIR_PHASE_0:
                mod = one(mod)
        found = mod[name]
        assert isinstance(found, PrimFunc)
        return found

    def relay_to_tir(self, mod: IRModule) -> IRModule:
        """Return a module with the functions for this accelerator as loops."""
        made = dict(mod.items())
        for name, function in mod.items():
            if isinstance(function, Function) and function.attr("Compiler") == self.target_name:
                loops = self._lower_relay_to_tir(function)
                has_later = any(at in _LATER for at, _ in self._tir_passes)
                loops = (
                    self._lower_stir_to_nstir(loops) if has_later
                    else self.without_blocks_of_its_own(loops)
                )  # fmt: skip
                made[name] = loops if self.codegen is None else self.codegen.with_source(loops)
        return IRModule.from_functions(made)

    def register(self) -> None:
        """Enter the lowering under the name that the compiler looks for."""
        register_func(f"relay.ext.uma.{self.target_name}.relay_to_tir", self.relay_to_tir, True)
        if self._operator_strategies:
            names = ", ".join(op for op, _, _ in self._operator_strategies)
            raise LoweringError(
                f"{self.target_name} registers strategies for {names}: operators of a part are "
                "computed as topi does; schedule the blocks in a pass of TIR_PHASE_0"
            )


def _convolution(attrs: Any, tensors: list[Tensor], out_types: object) -> list[Tensor]:
    """Return a convolution in a block called as topi's is, after one that pads."""
    del out_types
    data, weight = tensors
    made = conv(
        data, weight, attrs.strides, attrs.padding, attrs.dilation, attrs.groups,
        attrs.data_layout, attrs.kernel_layout, attrs.out_dtype or None,
    )  # fmt: skip
    return [made]


# A file of this machine: what is exported has its text, since no other machine has the path.
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(/[^"\n]+)"[ \t]*$', re.MULTILINE)


def _contents(include: re.Match[str]) -> str:
    try:
        return Path(include.group(1)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoweringError(
            f"the C of an accelerator includes {include.group(1)}: {reason_of(error)}"
        ) from None


class UMACodegen:
    """The C that comes with an accelerator's parts."""

    def __init__(self, target_name: str) -> None:
        self.target_name = target_name
        self._includes: Callable[[], str] | None = None

    def _register_codegen(
        self, fmt: str = "c", includes: Callable[[], str] | None = None, **others: object
    ) -> None:
        if fmt != "c" or others:
            raise LoweringError(
                f"the code of {self.target_name} is C, and `includes` gives what goes before it; "
                f"got fmt={fmt!r}{''.join(f', {name}=' for name in others)}"
            )
        self._includes = includes

    def with_source(self, func: PrimFunc) -> PrimFunc:
        """Return a function that brings the C along which it calls."""
        if self._includes is None:
            return func
        text = _INCLUDE.sub(_contents, self._includes() + "\n")
        known = tuple(func.attr("import_source", ()))
        given = (*known, ("import_c", text))
        return func.with_attr("import_source", given)  # type: ignore[no-any-return]

    def register(self) -> None:
        """Do nothing: the C goes with each function."""


class UMABackend(ABC):
    """Base of accelerators: subclasses name their target and register what they bring."""

    def __init__(self, merge_compiler_regions: bool = True) -> None:
        self._target_attrs: dict[str, str | int | bool] = {}
        self._relay_to_relay = UMAPartitioner(self.target_name, merge_compiler_regions)
        self._relay_to_tir = UMALower(self.target_name)
        self._tir_to_runtime = UMACodegen(self.target_name)

    @property
    @abstractmethod
    def target_name(self) -> str:
        """Name of the accelerator, and of its kind of target."""

    def _register_target_attr(self, name: str, default: str | int | bool = "") -> None:
        self._target_attrs[name] = default

    def _register_relay_pass(self, phase: PassPhase, relay_pass: object) -> None:
        self._relay_to_relay._relay_passes.append((phase, relay_pass))

    def _register_pattern(
        self, name: str, pattern: object, predicate: Callable[..., bool] | None = None
    ) -> None:
        self._relay_to_relay.add_pattern(name, pattern, predicate)

    def _register_operator_strategy(
        self, op: str, strategy: Callable[..., object], plevel: int | None = 11
    ) -> None:
        self._relay_to_tir._operator_strategies.append((op, strategy, plevel))

    def _register_tir_pass(self, phase: PassPhase, tir_pass: object) -> None:
        self._relay_to_tir._tir_passes.append((phase, tir_pass))

    def _register_codegen(self, fmt: str = "c", **kwargs: Any) -> None:
        self._tir_to_runtime._register_codegen(fmt, **kwargs)

    def register(self) -> None:
        """Enter the target, the patterns, the passes and the C."""
        if any(value is None for value in self._target_attrs.values()):
            raise ArgumentValueError("Target attribute None is not supported.")
        register_target(self.target_name, self._target_attrs)
        self._relay_to_tir.codegen = self._tir_to_runtime
        for part in (self._relay_to_relay, self._relay_to_tir, self._tir_to_runtime):
            part.register()

    def partition(self, mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
        """Return the module with a function for each part that the accelerator takes."""
        return self._relay_to_relay.partition(mod, params)


def register_target(name: str, attrs: Mapping[str, str | int | bool]) -> bool:
    """Add a kind of target for parts of models, with its options and their defaults."""
    for option, value in attrs.items():
        if not isinstance(value, str | int | bool):
            raise TargetError(
                f"Only String, Integer, or Bool are supported. The option {option!r} of {name} "
                f"has the default {value!r}"
            )
    register_accelerator(name, dict(attrs))
    return True


register_func("relay.backend.contrib.uma.RegisterTarget", register_target, True)
