"""How models are put one after the other: classic ``contrib.pipeline_executor_build``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from slipway.compiler.relay_build import build as relay_build
from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.ir.function import IRModule
from slipway.runtime.devices import Device, cpu
from slipway.runtime.pipeline import PipelineExecutorFactoryModule, Wiring

_OPEN, _CLOSED = ("output",), ("input", "param")


@dataclass(frozen=True, eq=False)
class PipelineEnd:
    """An input, output or group of parameters, of a model or (`owner` None) of the pipeline."""

    config: PipelineConfig
    owner: ModuleConfig | None
    kind: str
    name: Any

    def connect(self, other: PipelineEnd) -> None:
        """Let the value go from here to `other`."""
        self.config.link(self, other)

    def __str__(self) -> str:
        where = f"mod{self.config.number(self.owner)}." if self.owner is not None else ""
        return (
            f"{where}{self.kind}({self.name})" if self.kind == "output" else f"{where}{self.name}"
        )


@dataclass(frozen=True, eq=False)
class _Ports:
    config: PipelineConfig
    owner: ModuleConfig | None
    kind: str

    def __getitem__(self, name: Any) -> PipelineEnd:
        key = int(name) if self.kind == "output" else str(name)
        return PipelineEnd(self.config, self.owner, self.kind, key)


@dataclass(eq=False)
class ModuleConfig:
    """How one model is built, and its ports: ``config[mod]["input"]["data"]``."""

    config: PipelineConfig
    mod: IRModule
    target: Any = "llvm"
    target_host: Any = None
    dev: Device | None = None
    params: dict[str, Any] | None = None
    name: str | None = None
    fcompile: Any = None
    build_func: Callable[..., Any] | None = None
    export_cc: Any = None
    cpu_affinity: str = ""

    def __getitem__(self, kind: str) -> Any:
        if kind not in ("input", "output", "param"):
            raise ArgumentValueError(f"a model has 'input', 'output' and 'param', not {kind!r}.")
        # A model has one group of parameters, which has no name of its own.
        return (
            PipelineEnd(self.config, self, kind, "param")
            if kind == "param"
            else _Ports(self.config, self, kind)
        )


@dataclass(eq=False)
class PipelineConfig:
    """Models and connections: ``config["input"]["data"].connect(config[mod]["input"]["x"])``."""

    modules: list[ModuleConfig] = field(default_factory=list)
    links: list[tuple[PipelineEnd, PipelineEnd]] = field(default_factory=list)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, IRModule):
            for known in self.modules:
                if known.mod is key:
                    return known
            self.modules.append(ModuleConfig(self, key))
            return self.modules[-1]
        if key in ("input", "output", "param_group"):
            return _Ports(self, None, key)
        raise ArgumentTypeError(
            f"a pipeline has models (IRModule), 'input', 'output' and 'param_group', not {key!r}."
        )

    def number(self, module: ModuleConfig | None) -> int:
        """Return the place of a model in the order of execution."""
        return next(i for i, m in enumerate(self.order()) if m is module)

    def link(self, source: PipelineEnd, target: PipelineEnd) -> None:
        """Connect two ports, or say why they do not fit."""
        inside = (source.owner is not None, target.owner is not None)
        fits = {
            (False, True): (source.kind, target.kind)
            in (("input", "input"), ("param_group", "param")),
            (True, True): (source.kind, target.kind) == ("output", "input"),
            (True, False): (source.kind, target.kind) == ("output", "output"),
        }.get(inside, False)
        if not fits or source.config is not target.config:
            raise ArgumentValueError(
                f"{source.kind} of {_of(source)} does not go to {target.kind} of {_of(target)}: "
                "values go from an input of the pipeline to inputs of models, from outputs of "
                "models to inputs of others and to outputs of the pipeline, and from a group of "
                "parameters to ['param'] of a model."
            )
        if any(t.owner is target.owner and (t.kind, t.name) == (target.kind, target.name)
               for _, t in self.links):  # fmt: skip
            raise ArgumentValueError(f"{target.kind} {target.name!r} is connected already.")
        self.links.append((source, target))
        try:
            self.order()
        except ArgumentValueError:
            self.links.pop()
            raise

    def order(self) -> list[ModuleConfig]:
        """Return the models so that each stands behind those it reads."""
        left, done = list(self.modules), []
        while left:
            ready = [
                m for m in left
                if not any(t.owner is m and s.owner in left for s, t in self.links)
            ]  # fmt: skip
            if not ready:
                raise ArgumentValueError("the models read each other in a circle.")
            done.append(ready[0])
            left.remove(ready[0])
        return done

    def __str__(self) -> str:
        parts = []
        for title, keep in (
            ("Params", lambda s, t: t.kind == "param"),
            ("Inputs", lambda s, t: s.owner is None and t.kind == "input"),
            ("output", lambda s, t: t.owner is None),
            ("connections", lambda s, t: s.owner is not None and t.owner is not None),
        ):
            rows = [f"  |{s}: {t}" if s.owner is None else f"  |{s} -> {t}"
                    for s, t in self.links if keep(s, t)]  # fmt: skip
            if rows:
                parts.append("\n".join([title, *rows]))
        return "\n\n".join(parts)

    def wiring(self) -> Wiring:
        """Return the connections by number."""
        number = {id(m): i for i, m in enumerate(self.order())}
        inputs, groups, links, outputs = {}, {}, [], {}
        for source, target in self.links:
            if target.kind == "param":
                groups[source.name] = number[id(target.owner)]
            elif source.owner is None:
                if source.name in inputs:
                    raise ArgumentValueError(
                        f"the input {source.name!r} goes to two models; give them one each."
                    )
                inputs[source.name] = (number[id(target.owner)], target.name)
            elif target.owner is None:
                outputs[target.name] = (number[id(source.owner)], source.name)
            else:
                links.append(
                    (number[id(source.owner)], source.name, number[id(target.owner)], target.name)
                )
        if sorted(outputs) != list(range(len(outputs))) or not outputs:
            raise ArgumentValueError(
                f"the outputs of the pipeline are {sorted(outputs)}; they count from 0."
            )
        return Wiring(inputs, tuple(links), tuple(outputs[i] for i in sorted(outputs)), groups)


def _of(port: PipelineEnd) -> str:
    return "the pipeline" if port.owner is None else "a model"


def build(pipe_configs: PipelineConfig) -> PipelineExecutorFactoryModule:
    """Build every model for its target, and return them with their connections."""
    wiring = pipe_configs.wiring()
    libs, devices = [], []
    for number, module in enumerate(pipe_configs.order()):
        make = module.build_func or relay_build
        libs.append(
            make(
                module.mod, module.target, params=module.params, target_host=module.target_host,
                mod_name=module.name or f"mod{number}",
            )
        )  # fmt: skip
        devices.append(module.dev or cpu(0))
    return PipelineExecutorFactoryModule(libs, devices, wiring)
