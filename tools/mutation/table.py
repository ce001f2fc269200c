"""The modules whose mistakes corrupt memory or numbers, and the tests that judge each of them."""

from __future__ import annotations

_LOOPS = "tests/transform/loop"
_NESTS = f"{_LOOPS}/test_random_nests.py"
_PROGRAMS = f"{_LOOPS}/test_random_programs.py"
_VECTORS = (
    f"{_LOOPS}/test_lanes.py",
    f"{_LOOPS}/test_open_vectors.py",
    f"{_LOOPS}/test_lane_values.py",
    f"{_LOOPS}/test_vectorize_loop.py",
    _PROGRAMS,
)
_ARITH = ("tests/arith",)
_PLANS = (
    "tests/compiler/memory/test_memory_plan_climb.py",
    "tests/compiler/memory/test_memory_plan_laws.py",
    "tests/compiler/memory/test_memory_plan_search.py",
    "tests/compiler/memory/test_memory_plan.py",
    "tests/compiler/memory/test_memory_plan_quality.py",
)

JUDGES: dict[str, tuple[str, ...]] = {
    "slipway.transform.loop.in_place": (
        f"{_LOOPS}/test_in_place_steps.py",
        f"{_LOOPS}/test_in_place.py",
    ),
    "slipway.transform.loop.storage_rewrite": (
        f"{_LOOPS}/test_storage_rewrite.py",
        f"{_LOOPS}/test_storage_passes.py",
        f"{_LOOPS}/test_in_place.py",
    ),
    "slipway.transform.loop.hoist_choice": (f"{_LOOPS}/test_hoist_choice.py", _NESTS, _PROGRAMS),
    "slipway.transform.loop.decide": (
        f"{_LOOPS}/test_decide.py",
        f"{_LOOPS}/test_hoist_choice.py",
        f"{_LOOPS}/test_vectorize_loop.py",
        _PROGRAMS,
    ),
    "slipway.transform.loop.loop_partition": (
        f"{_LOOPS}/test_loop_partition.py",
        f"{_LOOPS}/test_cut_loops.py",
        _NESTS,
        _PROGRAMS,
    ),
    "slipway.transform.loop.cut_loops": (
        f"{_LOOPS}/test_cut_pieces.py",
        f"{_LOOPS}/test_cut_loops.py",
        _NESTS,
        _PROGRAMS,
    ),
    "slipway.transform.loop.ends": (
        f"{_LOOPS}/test_open_vectors.py",
        f"{_LOOPS}/test_cut_loops.py",
        _NESTS,
    ),
    "slipway.transform.loop.lanes": _VECTORS,
    "slipway.transform.loop.vectorize_loop": _VECTORS,
    "slipway.arith.linear": _ARITH,
    "slipway.arith.analyzer": _ARITH,
    "slipway.arith.dividends": _ARITH,
    "slipway.arith.interval": _ARITH,
    "slipway.arith.opaque": _ARITH,
    "slipway.arith.rules": _ARITH,
    "slipway.arith.slope": _ARITH,
    "slipway.arith.verdicts": _ARITH,
    "slipway.backends.in_place": ("tests/compiler/memory/test_in_place.py",),
    "slipway.compiler.aot.overlap": ("tests/compiler/memory/test_overlap.py",),
    "slipway.compiler.memory_plan.block": _PLANS,
    "slipway.compiler.memory_plan.check": _PLANS,
    "slipway.compiler.memory_plan.place": _PLANS,
    "slipway.compiler.memory_plan.heuristics": _PLANS,
    "slipway.compiler.memory_plan.optimal": _PLANS,
    "slipway.compiler.memory_plan.planner": _PLANS,
    "slipway.compiler.memory_plan.constants": _PLANS,
    "slipway.compiler.states": (
        "tests/compiler/test_state_binding.py",
        "tests/compiler/test_states.py",
    ),
    "slipway.compiler.open_sizes": ("tests/compiler/test_open_sizes.py",),
    "slipway.compiler.aot.sizes": (
        "tests/compiler/aot/test_aot_sizes.py",
        "tests/compiler/aot/test_aot_open_sizes.py",
    ),
    "slipway.compiler.several_devices.placement": (
        "tests/compiler/devices/test_placement.py",
        "tests/compiler/devices/test_several_devices.py",
    ),
    "slipway.compiler.several_devices.graphs": ("tests/compiler/devices/test_several_devices.py",),
    "slipway.backends.size_versions": ("tests/backends/test_size_versions.py",),
}
