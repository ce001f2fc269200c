"""A traced PyTorch model compiled into a folder of files, and that folder as a module (classic)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway import autotvm
from slipway.compiler.relay_build import build
from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.frontends.torch.importer import from_pytorch
from slipway.runtime.devices import AnyDevice, cpu
from slipway.runtime.graph import debug_executor
from slipway.runtime.graph.graph_executor import create
from slipway.runtime.load import load_module
from slipway.runtime.ndarray import array_of_tensor, tensor_of_array
from slipway.runtime.params import load_param_dict, save_param_dict
from slipway.transform.context import PassContext

if TYPE_CHECKING:
    from slipway.target import Target


# What a folder of a compiled model holds: the kernels, the graph, the parameters.
TVM_ASSETS = ["mod.so", "graph.json", "params"]


class PyTorchTVMModule:
    """Compiles a scripted model step by step: import, tune, build, and a module of the result."""

    def __init__(self, target: Target | str = "llvm", device: AnyDevice | None = None) -> None:
        self.target = target
        self.dev = cpu(0) if device is None else device
        self.mod: Any = None
        self.params: dict[str, Any] = {}
        self.input_infos: Sequence[Any] = ()
        self.log_file: str | None = None
        self.export_dir: Path | None = None

    def from_pytorch(
        self, script_module: Any, input_infos: Sequence[Any], default_dtype: str = "float32"
    ) -> None:
        """Import a model; `input_infos` as `relay.frontend.from_pytorch` takes them."""
        self.input_infos = input_infos
        self.mod, self.params = from_pytorch(
            script_module, input_infos, default_dtype=default_dtype
        )

    def tune_tvm(self, log_file: str = "tuning.log", n_trial: int = 200) -> None:
        """Search schedules of the model's kernels; `build_tvm` uses the best of the log."""
        tasks = autotvm.task.extract_from_program(
            self._imported()["main"], target=self.target, params=self.params
        )
        for task in tasks:
            autotvm.tuner.RandomTuner(task).tune(
                n_trial=min(n_trial, len(task.config_space)),
                measure_option=autotvm.measure_option(
                    builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner()
                ),
                callbacks=[autotvm.callback.log_to_file(log_file)],
            )
        self.log_file = log_file

    def build_tvm(self, export_dir: str | Path, debug_runtime: bool = False) -> Any:
        """Compile, write the files into `export_dir`, and return the executor of the result."""
        history = (
            autotvm.apply_history_best(self.log_file) if self.log_file else contextlib.nullcontext()
        )
        with history, PassContext(opt_level=3):
            factory = build(self._imported(), self.target, params=self.params)
        folder = Path(export_dir)
        folder.mkdir(parents=True, exist_ok=True)
        library, graph, params = (folder / name for name in TVM_ASSETS)
        factory.get_lib().export_library(library)
        graph.write_text(factory.get_graph_json(), encoding="utf-8")
        params.write_bytes(save_param_dict(factory.get_params()))
        return self.load_tvm(folder, debug_runtime)

    def load_tvm(self, export_dir: str | Path, debug_runtime: bool = False) -> Any:
        """Return the executor of what `build_tvm` wrote into a folder."""
        self.export_dir = Path(export_dir)
        library, graph, params = (self.export_dir / name for name in TVM_ASSETS)
        return _executor(library, graph, params, self.dev, debug_runtime)

    def build_pytorch_module(
        self, num_inputs: int, num_outputs: int, input_infos: Sequence[Any] | None = None
    ) -> Any:
        """Return a ``torch.nn.Module`` of the files that `build_tvm` or `load_tvm` named."""
        if self.export_dir is None:
            raise ArgumentValueError("build_tvm or load_tvm comes before build_pytorch_module")
        infos = input_infos or self.input_infos
        if len(infos) != num_inputs:
            raise ArgumentValueError(f"{num_inputs} inputs, and shapes of {len(infos)} are known")
        module = GraphModule(num_inputs, num_outputs)
        module.init([info[1] for info in infos], *(self.export_dir / n for n in TVM_ASSETS))
        return module

    def _imported(self) -> Any:
        if self.mod is None:
            raise ArgumentValueError("from_pytorch comes first: there is no model to compile")
        return self.mod


def compile(script_module: Any, option: Mapping[str, Any]) -> Any:
    """Return a compiled ``torch.nn.Module`` of a scripted or traced model.

    `option` has input_infos, [("x", (1, 3, 224, 224))], and may have default_dtype, export_dir
    ("pytorch_compiled"), num_outputs (1), tuning_n_trials (0: no search), tuning_log_file, target
    and device.
    """
    known = (
        "input_infos", "default_dtype", "export_dir", "num_outputs", "tuning_n_trials",
        "tuning_log_file", "target", "device",
    )  # fmt: skip
    if "input_infos" not in option:
        raise ArgumentValueError('option lacks "input_infos": [("x", (1, 3, 224, 224))]')
    if unknown := sorted(set(option) - set(known)):
        raise ArgumentValueError(f"option has {unknown[0]!r}; it may have {', '.join(known)}")
    made = PyTorchTVMModule(option.get("target", "llvm"), option.get("device"))
    made.from_pytorch(script_module, option["input_infos"], option.get("default_dtype", "float32"))
    if option.get("tuning_n_trials", 0) > 0:
        made.tune_tvm(option.get("tuning_log_file", "tuning.log"), option["tuning_n_trials"])
    made.build_tvm(option.get("export_dir", "pytorch_compiled"))
    return made.build_pytorch_module(len(option["input_infos"]), option.get("num_outputs", 1))


def GraphModule(num_inputs: int, num_outputs: int) -> Any:
    """Return a ``torch.nn.Module`` that runs a folder's files, named by its ``init``."""
    import torch

    class Files(torch.nn.Module):  # type: ignore[misc]
        """Takes tensors of the shapes that `init` was given, and gives new ones."""

        def __init__(self) -> None:
            super().__init__()
            self.num_inputs, self.num_outputs = num_inputs, num_outputs
            self.executor: Any = None
            self.shapes: list[tuple[int, ...]] = []

        def init(self, input_shapes: Sequence[Any], lib_path: Any, graph_path: Any,
                 params_path: Any) -> None:  # fmt: skip
            """Load a model; `input_shapes` are in the order of the tensors of a call."""
            self.shapes = [tuple(int(d) for d in shape) for shape in input_shapes]
            self.executor = _executor(lib_path, graph_path, params_path, cpu(0), False)
            if self.executor.get_num_outputs() != self.num_outputs:
                raise ArgumentValueError(
                    f"the model has {self.executor.get_num_outputs()} outputs, not "
                    f"{self.num_outputs}"
                )

        def forward(self, *tensors: Any) -> Any:
            """Run the model on tensors, or on a list of them; return a list, as classic does."""
            listed = bool(tensors) and isinstance(tensors[0], list | tuple)
            given = list(tensors[0]) if listed else list(tensors)
            shapes = [tuple(t.shape) for t in given]
            if self.executor is None:
                raise ArgumentValueError("init comes first: the module has no model")
            if shapes != self.shapes:
                raise ArgumentTypeError(f"the module takes {self.shapes}, not {shapes}")
            for number, tensor in enumerate(given):
                self.executor.set_input(number, array_of_tensor(tensor))
            self.executor.run()
            return [
                tensor_of_array(self.executor.get_output(i).numpy())
                for i in range(self.num_outputs)
            ]

    return Files()


def _executor(library: Any, graph: Any, params: Any, device: Any, debug: bool) -> Any:
    make = debug_executor.create if debug else create
    made: Any = make(Path(graph).read_text(encoding="utf-8"), load_module(str(library)), device)
    made.set_input(**load_param_dict(Path(params).read_bytes()))
    return made
