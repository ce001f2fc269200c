"""Modules that classic TVM divides otherwise: the names that one lacks are those of its package.

``from tvm.relay.op.tensor import add`` finds what `slipway.relay.op` calls `add`: such a module is
made when it is imported, and looks its names up in the package.  Where classic TVM has a function
of the module's own name (`topi.nn.dense`), the module can be called as that function.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from slipway.lazy import load, offered

# Package -> the modules that it had beside what holds their names here.
FOLDED: dict[str, str] = {
    "auto_scheduler": "measure_record",
    "auto_scheduler.cost_model": "cost_model xgb_model",
    "autotvm.graph_tuner": "dynamic_programming_tuner pbqp_tuner",
    "autotvm.measure": "measure measure_methods",
    "autotvm.task": "relay_integration space task",
    "autotvm.tuner": "callback droplet_turner ga_tuner index_based_tuner tuner xgboost_tuner",
    "contrib.torch": "as_torch module optimize_torch pytorch_tvm",
    "ir": "attrs base op tensor_type type",
    "meta_schedule.builder": "builder local_builder",
    "meta_schedule.cost_model": "cost_model random_model xgb_model",
    "meta_schedule.database": (
        "database json_database memory_database ordered_union_database schedule_fn_database "
        "union_database"
    ),
    "meta_schedule.feature_extractor": (
        "feature_extractor per_store_feature random_feature_extractor"
    ),
    "meta_schedule.measure_callback": (
        "add_to_database measure_callback remove_build_artifact update_cost_model"
    ),
    "meta_schedule.mutator": (
        "mutate_compute_location mutate_parallel mutate_thread_binding mutate_tile_size "
        "mutate_unroll mutator"
    ),
    "meta_schedule.postproc": (
        "disallow_dynamic_loop postproc rewrite_cooperative_fetch rewrite_layout "
        "rewrite_parallel_vectorize_unroll rewrite_reduction_block rewrite_tensorize "
        "rewrite_unbound_block verify_gpu_code"
    ),
    "meta_schedule.runner": "runner",
    "meta_schedule.schedule_rule": (
        "add_rfactor auto_bind auto_inline cross_thread_reduction multi_level_tiling "
        "parallel_vectorize_unroll random_compute_location schedule_rule"
    ),
    "meta_schedule.search_strategy": (
        "evolutionary_search replay_func replay_trace search_strategy"
    ),
    "meta_schedule.space_generator": (
        "post_order_apply schedule_fn space_generator space_generator_union"
    ),
    "meta_schedule.task_scheduler": "gradient_based round_robin task_scheduler",
    "micro": "build",
    "relay": "base loops param_dict",
    "relay.analysis": "analysis count_layers",
    "relay.op": "algorithm op reduce tensor transform",
    "relay.op.annotation": "annotation",
    "relay.op.image": "image",
    "relay.op.nn": "nn",
    "relay.op.vision": "multibox nms rcnn yolo",
    "relay.qnn.op": "qnn",
    "relay.quantize": "quantize",
    "relay.transform": "transform",
    "runtime": "object_generic",
    "script": "parser",
    "script.tir": "intrin prim_func special_stmt ty",
    "target": "generic_func tag",
    "te": "tag",
    "te.hybrid": "module",
    "tir": "generic",
    "tir.schedule": "schedule",
    "tir.transform": "function_pass transform",
    "topi": (
        "argwhere cpp einsum scan scatter scatter_add searchsorted sort sparse_reshape stft "
        "tensor unique"
    ),
    "topi.arm_cpu": "depthwise_conv2d group_conv2d injective pooling",
    "topi.bifrost": "dense depthwise_conv2d",
    "topi.cuda": (
        "batch_matmul conv2d conv2d_hwcn depthwise_conv2d injective pooling reduction softmax "
        "tensor_intrin"
    ),
    "topi.generic": "conv2d injective",
    "topi.gpu": "conv2d",
    "topi.image": "dilation2d grid_sample resize",
    "topi.intel_graphics": "conv2d depthwise_conv2d",
    "topi.mali": "dense depthwise_conv2d",
    "topi.nn": (
        "batch_matmul batch_norm batch_to_space_nd conv1d conv1d_transpose conv2d "
        "conv2d_transpose conv3d conv3d_transpose deformable_conv2d dense depth_to_space "
        "depthwise_conv2d dilate elemwise fifo_buffer flatten local_response_norm loss mapping "
        "pad qnn softmax space_to_batch_nd space_to_depth sparse upsampling"
    ),
    "topi.sparse": "csrmm csrmv dense",
    "topi.testing": (
        "adaptive_pool_python batch_matmul batch_norm batch_to_space_nd common "
        "conv1d_ncw_python conv1d_transpose_ncw_python conv2d_hwcn_python conv2d_nchw_python "
        "conv2d_nhwc_python conv2d_transpose_python conv3d_ncdhw_python conv3d_ndhwc_python "
        "conv3d_transpose_ncdhw_python crop_and_resize_python deformable_conv2d_python dense "
        "depth_to_space depthwise_conv2d_python dilate_python gather_nd_python gather_python "
        "grid_sample_python l2_normalize_python lrn_python matrix_set_diag nll_loss one_hot "
        "pool_grad_python poolnd_python reorg_python resize_python roi_align_python "
        "roi_pool_python searchsorted sequence_mask_python slice_axis_python softmax_python "
        "space_to_batch_nd space_to_depth strided_slice_python"
    ),
    "topi.vision": "nms reorg",
    "topi.vision.rcnn": "roi_align roi_pool",
    "topi.vision.ssd": "multibox",
    "topi.x86": (
        "batch_matmul conv1d conv2d conv3d depthwise_conv2d group_conv2d injective nn pooling "
        "reduction"
    ),
}  # fmt: skip

# Package -> modules that are there and have fewer names than classic TVM's of that name.
COMPLETED: dict[str, str] = {
    "": "exec micro parser script target",
    "arith": "analyzer",
    "auto_scheduler": (
        "compute_dag cost_model measure relay_integration search_policy search_task "
        "task_scheduler workload_registry"
    ),
    "autotvm": "graph_tuner measure record task tuner",
    "contrib": (
        "cc debugger download graph_executor mkl ndk nvcc pickle_memoize pipeline_executor "
        "pipeline_executor_build relay_viz tedd torch utils xcode"
    ),
    "driver": "build_module tvmc",
    "exec": "rpc_proxy",
    "ir": "memory_pools",
    "meta_schedule": (
        "builder cost_model database feature_extractor measure_callback mutator postproc "
        "relay_integration runner schedule_rule search_strategy space_generator task_scheduler "
        "tune utils"
    ),
    "micro": "model_library_format project session testing",
    "relay": (
        "annotation backend data_dep_optimization dataflow_pattern image nn quantize "
        "scope_builder testing transform types vision"
    ),
    "relay.qnn": "op",
    "rpc": "client proxy server tracker",
    "runtime": "container module ndarray packed_func",
    "script": "tir",
    "target": "codegen",
    "te": "operation schedule tensor",
    "testing": "aot plugin",
    "tir": "ir.builder ir.buffer ir.expr ir.function ir.ops ir.stmt blocks.schedule stmt_functor "
    "transform",
    "topi": "arm_cpu cuda elementwise generic image reduction transform utils vision x86",
    "topi.vision": "rcnn ssd",
}


def _further() -> dict[str, str]:
    """Return module -> where its further names are."""
    homes = {
        "slipway.script.hybrid_names": "slipway.te",
        "slipway.relay.text.parser": "slipway.relay",
    }
    for package, modules in COMPLETED.items():
        for module in modules.split():
            path = module if "." in module or not package else f"{package}.{module}"
            homes[f"slipway.{path}"] = f"slipway.{package}".rstrip(".")
    return homes


_FURTHER = _further()


def _missing(module: str, name: str, known: list[str]) -> str:
    """Return why a name is not there; the rules are loaded for that alone."""
    return str(load("slipway.classic.names:missing")(module, name, known))


def _complete(module: ModuleType, home: str) -> None:
    """Let a module have the further names of another one; a name that neither has is explained."""

    def get(name: str) -> Any:
        package = sys.modules.get(home)
        if not name.startswith("_"):
            package = package or importlib.import_module(home)
            if home != "slipway" and hasattr(package, name):
                return getattr(package, name)
        raise AttributeError(_missing(module.__name__, name, list(vars(module))))

    module.__dict__.setdefault("__getattr__", get)
    module.__dict__.setdefault("__path__", [])


class _Completer:
    """Finds the modules of COMPLETED as Python does, and completes them once they have run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to load a module of the table; None for any other."""
        home = _FURTHER.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if home else None
        if spec is None or spec.loader is None or home is None:
            return None
        loader: Any = spec.loader
        run: Callable[[ModuleType], None] = loader.exec_module

        def run_and_complete(module: ModuleType) -> None:
            run(module)
            _complete(module, home)

        loader.exec_module = run_and_complete
        return spec


sys.meta_path.insert(0, _Completer())


class Folded(ModuleType):
    """A module of classic TVM; its names are in its package."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        package, _, last = self.__name__.rpartition(".")
        if name == last and (function := self._function()) is not None:
            return function
        home = importlib.import_module(package)
        try:
            return getattr(home, name)
        except AttributeError:
            raise AttributeError(_missing(self.__name__, name, dir(home))) from None

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self.__name__.rpartition(".")[0]))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function that the package has under this module's name."""
        function = self._function()
        if function is None:
            raise TypeError(f"{self.__name__} is a module: call one of its functions")
        return function(*args, **kwargs)

    def _function(self) -> Any:
        """Return what the package called by this module's name before it was imported, or None."""
        if self.__spec__ is not None and self.__spec__.loader_state is not None:
            return self.__spec__.loader_state
        package, _, last = self.__name__.rpartition(".")
        look_up = vars(importlib.import_module(package)).get("__getattr__")
        try:
            found = look_up(last) if look_up is not None else None
        except AttributeError:
            return None
        return None if isinstance(found, ModuleType) else found


class _Loader:
    """Makes a `Folded` module."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module."""
        return Folded(spec.name, f"Classic TVM's {spec.name.replace('slipway', 'tvm', 1)}.")

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has no code of its own."""


class _Folder:
    """Finds a module of classic TVM that has no file here, or says why it is not there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to load a module that is folded into its package; None for any other name.

        Raises ModuleNotFoundError, with what to use instead, for one that rules speak of.
        """
        if not name.startswith("slipway."):
            return None
        package, _, last = name.rpartition(".")
        if last in FOLDED.get(package.removeprefix("slipway."), "").split():
            loader: Any = _Loader()
            function = offered(package, last)
            return importlib.machinery.ModuleSpec(name, loader, loader_state=function)
        classic = name.replace("slipway", "tvm", 1)
        rule = load("slipway.classic.names:rule_of")(classic)
        if rule == classic or (rule.count(".") >= 2 and classic.startswith(f"{rule}.")):
            raise ModuleNotFoundError(
                f"No module named {name!r}. Of classic TVM's it is not there: "
                f"{load('slipway.classic.names:NOT_THERE')[rule]}.",
                name=name,
            )
        return None


sys.meta_path.append(_Folder())  # last, as those of facades
