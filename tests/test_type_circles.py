"""Modules that know each other's types: no circle but where several files are one thing."""

from tests.test_layering import MODULES, imported

# A class, and the files that hold parts of what it does: they take it by its type.  A circle that
# is none of these says that a type wants a room of its own, below both.
PARTS_OF = {
    "slipway.arith.analyzer": (
        "slipway.arith.dividends",
        "slipway.arith.opaque",
        "slipway.arith.rules",
        "slipway.arith.verdicts",
    ),
    "slipway.auto_scheduler.compute_dag": ("slipway.auto_scheduler.loop_state",),
    "slipway.autotvm.tuner": ("slipway.autotvm.callback",),
    "slipway.codegen.c.function": ("slipway.codegen.c.hardware", "slipway.codegen.c.packed_call"),
    "slipway.codegen.llvm.expressions": ("slipway.codegen.llvm.address",),
    "slipway.codegen.llvm.function": (
        "slipway.codegen.llvm.parallel",
        "slipway.codegen.llvm.tiles",
    ),
    "slipway.codegen.spirv.sink": (
        "slipway.codegen.spirv.matrices",
        "slipway.codegen.spirv.subgroups",
    ),
    "slipway.ir.buffer": ("slipway.ir.expr",),
    "slipway.ir.expr": ("slipway.ir.intrin", "slipway.ir.operators"),
    "slipway.ir.interpreter.interpret": (
        "slipway.ir.interpreter.calls",
        "slipway.ir.interpreter.expressions",
        "slipway.ir.interpreter.tiles",
    ),
    # Rules and strategies of a script are told of the whole search, by classic TVM's methods.
    "slipway.meta_schedule.tune_context": (
        "slipway.meta_schedule.mutator",
        "slipway.meta_schedule.postproc",
        "slipway.meta_schedule.rule",
        "slipway.meta_schedule.schedule_rule",
        "slipway.meta_schedule.search_strategy",
        "slipway.meta_schedule.space_generator",
        "slipway.meta_schedule.thread_rules",
    ),
    "slipway.rpc.array": ("slipway.rpc.batch",),
    "slipway.rpc.client": (
        "slipway.rpc.array",
        "slipway.rpc.batch",
        "slipway.rpc.callbacks",
        "slipway.rpc.device",
        "slipway.rpc.module",
        "slipway.rpc.values",
    ),
    "slipway.rpc.device": ("slipway.rpc.array",),
    "slipway.target.target": ("slipway.target.forms",),
    "slipway.te.group": ("slipway.te.primitives.state",),
    "slipway.te.infer_bound": ("slipway.te.scan_loop",),
    "slipway.te.lowering": (
        "slipway.te.buffer_reads",
        "slipway.te.compute_nest",
        "slipway.te.scan_loop",
        "slipway.te.tensorize",
    ),
    "slipway.te.schedule": (
        "slipway.te.dataflow",
        "slipway.te.group",
        "slipway.te.primitives.state",
        "slipway.te.scan_loop",
    ),
    "slipway.te.stage": (
        "slipway.te.group",
        "slipway.te.primitives.place",
        "slipway.te.primitives.state",
    ),
}


def types_known() -> dict[str, set[str]]:
    """Return the modules that each imports, for types too; packages hand on what others define."""
    rooms = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    return {module: {target for target, _ in imported(module)} & rooms for module in rooms}


def without_what_ends(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return what is left when modules that lead to no circle are taken away again and again."""
    while ends := {module for module, targets in graph.items() if not targets & graph.keys()}:
        graph = {m: targets - ends for m, targets in graph.items() if m not in ends}
    return graph


def test_types_run_in_no_other_circle():
    graph = types_known()
    for whole, parts in PARTS_OF.items():
        for part in parts:
            assert whole in graph[part], f"{part} no longer takes {whole}: remove the pair"
            graph[part] = graph[part] - {whole}
    assert without_what_ends(graph) == {}
