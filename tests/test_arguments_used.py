"""An argument that is taken is read: none of a public function is ignored without a word.

What a caller passes has an effect, or is refused with an error; an argument that may be ignored is
listed here with the reason.  An entry that is no longer needed is a failure, too.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "slipway"

# (path, function, arguments): reason.  Patterns of fnmatch; several arguments with a space between.
ALLOWED = {
    # Classic's signatures, which a program's strategies call: each reads what it needs.
    ("relay/op/strategy/generic.py", "*", "attrs target"): "of implementations",
    # What libraries that take no part were told.
    ("compiler/accelerators/libraries.py", "partition_for_*",
     "mod_name opts disabled_ops alter_layout prune_subgraphs"): "classic's options",
    # One signature for many functions, of which each reads what it needs.
    ("backends/*/backend.py", "*Backend.*", "target aot later name function"): "hooks of a backend",
    ("backends/backend.py", "Backend.*",
     "target aot later name function call products"): "as theirs",
    ("backends/*/schedules/*", "*", "conv dense product norm softmax pool resize anchor scan "
     "problem attention target knobs tile"): "called with (problem, anchor, knobs)",
    ("backends/cpu/tile.py", "tile_space", "width"): "called as the other spaces are",
    ("relay/ops/*", "*", "attrs"): "called with (attrs, ...), as every part of an operator is",
    ("codegen/math/exponential.py", "scale_*by_power", "n"): "one signature for ways to scale",
    ("frontends/tflite/fixed_point/tables.py", "*_table", "target"): "one signature of every table",
    ("frontends/torch/shape.py", "bounds_of", "axis"): "converters take what the call passes",
    ("transform/graph/integers/affine_rules.py", "dense", "call"): "one signature for every rule",
    ("transform/manager.py", "always", "setting"): "a condition of a pass takes the setting",
    ("transform/instruments.py", "*.should_run", "mod info"): "methods of an instrument",
    ("transform/instruments.py", "*.run_*_pass", "mod info"): "methods of an instrument",
    ("te/operation.py", "*.output_*", "index"): "operations of one result are asked by number, too",
    ("ir/node.py", "Node.__deepcopy__", "memo"): "Python's protocol",
    ("*", "*.__exit__", "kind trace what exception exc"): "Python's protocol",
    ("micro/project_api/launch.py", "TvmNames.find_spec", "path target"): "Python's protocol",
    ("cli/app.py", "options", "version"): "an option that ends the program by itself",
    ("micro/*", "*Handler.*", "options tvm_version"): "the protocol of project servers",
    ("runtime/module.py", "Module.get_source", "fmt"): "overridden where there is a source",
    # Classic arguments that change nothing that could be seen: every value gets what it asks for.
    ("*", "*", "span"): "a place in the user's program, which errors find in another way",
    ("transform/manager.py", "print_ir", "show_meta_data"): "as str(node); relay.astext has them",
    ("transform/graph/classic.py", "FoldConstant", "fold_qnn"): "qnn is made of plain operators",
    ("transform/graph/classic_rewrites.py", "FakeQuantizationToInteger", "use_qat"): "read alike",
    ("transform/graph/classic_rewrites.py", "CombineParallelDense", "to_batch"): "one product",
    ("transform/graph/classic.py", "AnnotateTarget", "include_non_call_ops"): "so are tuples",
    ("transform/loop/classic.py", "StorageFlatten", "cache_line_size"): "lines play no part",
    ("transform/loop/classic.py", "prim_func_pass", "traceable"): "every pass is traced",
    ("frontends/darknet/network.py", "load_network", "clear"): "a count of training",
    ("frontends/tensorflow/importer.py", "from_tensorflow", "convert_config"): "layouts of dense",
    ("ir/buffer.py", "Buffer.access_ptr", "content_lanes extent"): "what is called knows both",
    ("script/tir.py", "tvm_access_ptr", "ptype extent"): "what is called knows both",
    ("testing/compare.py", "check_numerical_grads", "function_value"): "steps go to both sides",
    ("transform/loop/analysis.py", "calculate_constant_bytes", "func constant_byte_alignment"):
        "constants are arguments here",
    ("autotvm/space.py", "ConfigEntity.__init__", "constraints"): "no version of classic has any",
    ("runtime/vm.py", "VirtualMachine.benchmark", "device end_to_end"): "those of its runs",
    ("transform/loop/older.py", "MakeAPI", "num_unpacked_args"): "all arguments are packed",
    ("autotvm/task/template.py", "create", "template_key"): "of TVM 0.6: a name has one template",
    ("topi/testing/windows.py", "pool_grad_nchw", "ceil_mode"): "it shows in the gradient's shape",
    ("transform/loop/older.py", "For", "device_api"): "of TVM 0.6, without an effect there, too",
    ("blocks/schedule.py", "Schedule.*", "preserve_unit_iters preserve_unit_loops"): "loops of one "
    "step are simplified later",
    ("tuning/builders.py", "Builder.build", "together"): "one process makes one library anyway",
    ("te/library.py", "batch_matmul", "iterative"): "of one BLAS, how it computes the same",
    ("relay/qnn/op.py", "*", "input_scale kernel_scale x_scale y_scale"): "sums have no scale yet",
    ("relay/ops/packed/conv_by_size.py", "conv_reference", "direct"): "the kernel once more",
    ("relay/ops/nn/spread.py", "bitpack", "name"): "a label",
    ("relay/dataflow_pattern/rewriting.py", "rewrite", "mod"): "types are known without the module",
    ("compiler/vm.py", "compile", "target_host"): "the target is a processor, its own host",
    ("ir/structural.py", "structural_hash", "map_free_vars"): "equal either way hashes the same",
    ("runtime/vm.py", "VirtualMachine.__init__", "memory_cfg"): "memory is planned for each size",
    ("topi/generic/nn.py", "schedule_pool", "layout"): "the schedule is the same for all",
    ("topi/cuda.py", "schedule_pool", "layout"): "the schedule is the same for all",
    ("testing/memoize.py", "memoize", "save_at_exit"): "no file is written",
    ("relay/as_topi/indexing.py", "*",
     "new_sparse_indices_shape new_shape_shape output_shape"): "they follow from the others",
    ("topi/nn/layers.py", "batch_matmul", "oshape"): "the shape follows from the operands",
    ("relay/as_topi/nn.py", "upsampling*", "output_shape"): "the factors say the size",
    ("relay/as_topi/convolution.py", "conv2d_NCHWc_int8", "n_elems"): "the target says it",
    ("relay/as_topi/random.py", "threefry_test_wrapping", "target device"): "sums always wrap",
    ("relay/as_topi/convolution.py", "deformable_conv2d_nchw", "out_dtype"): "that of the data",
    ("tuning/space.py", "Choices.predicted", "candidate"): "overridden where there is a model",
    ("autotvm/tophub.py", "load_reference_log", "backend model workload_name"): "none is fetched",
    ("tuning/space.py", "Choices.allows", "candidate"): "overridden where knobs depend on others",
    ("transform/graph/change_datatype.py", "ChangeDatatype.transform_function", "module context"):
        "called as other passes over functions are",
    ("autotvm/tuner.py", "Tuner.tune", "si_prefix"): "the unit of a log that progress_bar writes",
    ("transform/manager.py", "never_missed", "node"): "called as other conditions are",
    ("relay/testing/inception_v3.py", "Pooling", "name"): "a label",
    ("relay/testing/mobilenet.py", "separable_conv_block", "dtype"): "the type is that of the data",
    ("relay/testing/tools.py", "run_opt_pass", "import_prelude"): "there is no prelude",
    ("runtime/graph/debug_executor.py", "GraphModuleDebug.run_individual_node",
     "limit_zero_time_iterations"): "every kernel takes some time",
    ("runtime/extension.py", "register_extension", "fcreate"): "functions return arrays",
    ("micro/session.py", "create_local_graph_executor", "graph_json device"): "in the firmware",
    ("micro/testing/evaluation.py", "create_aot_session", "use_cmsis_nn"): "the kernels "
    "for the board's core are Slipway's own",
    ("micro/testing/utils.py", "get_supported_boards", "platform"): "each template serves all",
    ("relay/testing/tf.py", "get_workload_official", "retries"): "the fetching decides on its own",
    ("testing/aot.py", "compile_models", "use_runtime_executor schedule_name"): "how a program is "
    "asked for, and its schedules, change no result",
    ("testing/aot.py", "run_and_check", "debug_calculated_workspaces print_output_on_mismatch"):
    "the error names the output and the place",
    ("meta_schedule/relay_integration.py", "extracted_tasks_to_tune_contexts", "seed"):
        "a search begins alike each time",
    ("auto_scheduler/_ffi_api.py", "SearchPolicyUtils*", "search_task"): "the state knows",
    ("auto_scheduler/search_task.py", "KernelSearchTask.follow", "policy"): "called as a task's is",
    ("meta_schedule/database.py", "Database.query_tuning_record", "workload_name"): "a label",
    ("meta_schedule/cost_model.py", "RandomModel.predict", "context"): "at random",
    ("meta_schedule/feature_extractor.py", "RandomFeatureExtractor.extract_from", "context"):
        "at random",
    ("meta_schedule/database.py", "ScheduleFnDatabase.query_tuning_record",
     "target workload_name"): "its function is asked for any target",
    ("meta_schedule/database.py", "JSONDatabase.__init__", "module_equality"): "texts are compared",
    ("meta_schedule/database.py", "ScheduleFnDatabase.__init__", "module_equality"): "it compares "
        "nothing",
    ("meta_schedule/postproc.py", "Postproc.apply", "sch"): "called as others are",
    ("meta_schedule/schedule_rule.py", "InlineConstantScalars.apply", "block"): "as others are",
    ("meta_schedule/schedule_rule.py", "AutoInline.__init__",
     "into_producer inline_const_tensor require_injective require_ordered"): "what can be, is",
    ("meta_schedule/schedule_rule.py", "AddRFactor.__init__", "max_jobs_per_core"): "few results",
    ("meta_schedule/schedule_rule.py", "ParallelizeVectorizeUnroll.__init__", "unroll_explicit"):
    "loops are unrolled in the loop language either way",
    ("meta_schedule/search_strategy.py", "SearchStrategy.pre_tuning", "database cost_model"):
    "the engine has both; a script's own loop tells what it measured",
    ("meta_schedule/space_generator.py", "PySpaceGenerator.designs", "seed"): "as others are",
    ("meta_schedule/arg_info.py", "ArgInfo.from_entry_func", "remove_preproc"): "nothing is there",
    ("meta_schedule/runner/rpc_runner.py", "default_*", "session"): "called as a script's own are",
    ("meta_schedule/runner/own_bench.py", "TimedBench.measure", "rounds together"): "it decides",
    ("autotvm/own_parts.py", "OwnBench.measure", "rounds together"): "a runner decides",
    ("auto_scheduler/cost_model.py", "RandomModel.predict", "search_task"): "at random",
    ("auto_scheduler/cost_model.py", "ModelRanking.learn", "scores"): "the model's update is told",
    ("auto_scheduler/measure.py", "LocalBuilder.build", "verbose"): "what failed is in the results",
    ("meta_schedule/runner/own_bench.py", "OwnBuilder.build", "together"): "each has its own",
    ("auto_scheduler/compute_dag.py", "ComputeDAG.apply_steps_from_state", "layout_rewrite"):
    "tensors keep their layouts",
    ("auto_scheduler/cost_model.py", "XGBModel.__init__",
     "verbose_eval num_warmup_sample seed adaptive_training"): "the model is the engine's",
    ("auto_scheduler/measure.py", "LocalRPCMeasureContext.__init__", "priority n_parallel"):
    "one process of this machine",
    ("auto_scheduler/records.py", "RecordToFile.callback", "policy"): "called as others are",
    ("auto_scheduler/relay_integration.py", "extract_tasks", "include_simple_tasks"):
    "a kernel without a choice is no task",
    ("auto_scheduler/relay_integration.py", "ApplyHistoryBest.query", "has_complex_op func_name"):
    "what classic TVM's compiler passes on",
    ("auto_scheduler/search_policy.py", "SketchPolicy.__init__", "params seed"):
    "the search is the engine's",
    ("auto_scheduler/search_task.py", "*SearchTask.tune", "adaptive_training"):
    "the model learns after every batch",
    ("auto_scheduler/search_task.py", "SearchTask.apply_best", "layout_rewrite_option"):
    "tensors keep their layouts",
    ("auto_scheduler/task_scheduler.py", "TaskScheduler.__init__",
     "alpha beta gamma backward_window_size"): "of classic TVM's estimate of gains",
    ("auto_scheduler/task_scheduler.py", "TaskScheduler.tune",
     "search_policy_params adaptive_training"): "the search is the engine's",
    ("auto_scheduler/task_scheduler.py", "LogEstimatedLatency.post_tune", "task_id"):
    "the line is of the whole",
    ("driver/tvmc/autotuner.py", "tune_model", "enable_autoscheduler"): "there is one search",
    ("driver/tvmc/autotuner.py", "schedule_tasks", "log_estimated_latency"): "it is always written",
    ("driver/tvmc/compiler.py", "compile_model", "use_vm"): "there is one way to compile",
    ("deploy/torch_module.py", "optimize_torch", "work_dir"): "of classic TVM's search",
    ("deploy/torch_backend.py", "compile_graph", "mode"): "of torch's own backend",
    ("deploy/torch_backend.py", "compile_graph", "example_inputs"): "the first call has them, too",
    ("relay/data_dep_optimization/bsr_conv2d.py", "convert", "layout kernel_size"):
    "weights stay dense, with a warning",
    ("relay/data_dep_optimization/bsr_dense.py", "convert", "blocksize sparsity_threshold"):
    "weights stay dense, with a warning",
    ("runtime/pipeline.py", "PipelineModule.get_output", "sleep_interval"): "it is waited for",
    ("tuning/runner.py", "*Runner.open_more", "most held"): "there is one device",
    ("rpc/array.py", "RemoteNDArray.copyto", "mem_copy"): "copies are never of handles",
    ("rpc/client.py", "connect", "enable_logging"): "documented there",
    ("rpc/module.py", "RemoteModule.time_evaluator", "dev ctx"): "the module's own device",
    ("rpc/server.py", "Server.__init__", "no_fork"): "what use_popen=True does",
    ("rpc/tracker_process.py", "Tracker.__init__", "reuse_addr timeout"): "of its sockets",
}  # fmt: skip


def public_functions(node: ast.AST, outer: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield functions and methods whose names, and whose classes' names, are public."""
    for child in ast.iter_child_nodes(node):
        name = getattr(child, "name", None) or ""
        if name.startswith("_") and not name.startswith("__"):
            continue
        if isinstance(child, ast.ClassDef):
            yield from public_functions(child, f"{outer}{name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield outer + name, child
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from public_functions(child, outer)


def ignored(function: ast.FunctionDef) -> list[str]:
    """Return the parameters that nothing in the body reads; none where there is no body."""
    body = [
        s for s in function.body if not isinstance(s, ast.Expr | ast.Pass)
        or (isinstance(s, ast.Expr) and not isinstance(s.value, ast.Constant))
    ]  # fmt: skip
    if all(isinstance(s, ast.Raise) for s in body):
        return []
    names = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name)]
    read = {n.id for n in names if isinstance(n.ctx, ast.Load)} | {"self", "cls"}
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    taken = [a.arg for a in arguments if a is not None and not a.arg.startswith("_")]
    return [] if "locals" in read else [name for name in taken if name not in read]


@cache
def all_public_functions() -> tuple[tuple[str, str, ast.FunctionDef], ...]:
    """Return (path, name, function) of the whole package, which takes seconds to read."""
    return tuple(
        (path.relative_to(PACKAGE).as_posix(), name, function)
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "boards"  # templates of the user's own programs
        for name, function in public_functions(ast.parse(path.read_text()))
    )


def all_ignored() -> Iterator[tuple[str, str, str]]:
    for location, name, function in all_public_functions():
        yield from ((location, name, argument) for argument in ignored(function))


def is_allowed(entry: tuple[str, str, str], found: tuple[str, str, str]) -> bool:
    return (
        fnmatch(found[0], entry[0]) and fnmatch(found[1], entry[1]) and found[2] in entry[2].split()
    )


def test_no_argument_is_ignored_without_a_reason():
    found = list(all_ignored())
    assert len(found) > 50  # the finder finds
    assert [f for f in found if not any(is_allowed(entry, f) for entry in ALLOWED)] == []
    assert [e for e in ALLOWED if not any(is_allowed(e, f) for f in found)] == []


# Of parameters that may be anything: values that nothing is known about, as models' files and other
# frameworks have them.  A type that is known is written down, and lowers this.
MOST_UNKNOWN = 0.05


def test_types_of_parameters_are_written_down_where_they_are_known():
    given = [
        (location, name, argument)
        for location, name, function in all_public_functions()
        for argument in (
            *function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs
        )
        if argument.arg not in ("self", "cls")
    ]  # fmt: skip
    bare = [
        f"{location}: {name}" for location, name, argument in given if argument.annotation is None
    ]
    assert bare == []
    unknown = [
        argument
        for _, _, argument in given
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id == "Any"
    ]
    assert len(unknown) > 100  # the finder finds
    assert len(unknown) / len(given) < MOST_UNKNOWN


def test_what_the_finder_finds():
    source = """
def plain(a, b, *rest, c=1, **more): return a
def inner(a, b): return [b for a in ()]
def late(a):
    def use(): return a
    return use
def empty(a): ...
def refuses(a): raise NotImplementedError
def _private(a): return 1
class Public:
    def method(self, a, _b): return 1
"""
    found = {name: ignored(f) for name, f in public_functions(ast.parse(source))}
    assert found == {
        "plain": ["b", "c", "rest", "more"], "inner": ["a"], "late": [], "empty": [],
        "refuses": [], "Public.method": ["a"],
    }  # fmt: skip
