"""The options of PassContext: every key with its type, its meaning and what it accepts.

A key either has its effect or is refused: values that ask for something Slipway does not do raise
an error, and keys of classic TVM whose only meaning here is what always happens accept just that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.arguments import table_of
from slipway.errors import LoweringError, did_you_mean


@dataclass(frozen=True)
class ConfigKey:
    """One option: the type of its value ("dict" has `options` of its own), and its meaning.

    `only` lists the values that are accepted where not all are; `why` says so to who gives
    another.
    """

    kind: str
    meaning: str
    only: tuple[Any, ...] = ()
    why: str = ""
    options: Mapping[str, ConfigKey] | None = None


_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool, int), "int": (int,), "str": (str,), "dict": (dict,), "list": (list, tuple),
}  # fmt: skip


def _fixed(kind: str, value: Any, meaning: str, why: str) -> ConfigKey:
    return ConfigKey(kind, meaning, (value,), why)


_UNROLL = {
    "auto_max_step": ConfigKey("int", "serial loops of at most so many statements are unrolled"),
    "auto_max_depth": ConfigKey("int", "loops nested deeper than this are not (8)"),
    "auto_max_extent": ConfigKey("int", "nor loops of more steps than this (0: any)"),
    "explicit_unroll": _fixed("bool", True, "unrolled loops are expanded",
                              "loops are always expanded"),
    "unroll_local_access": _fixed("bool", False, "unroll what indexes local memory",
                                  "mark the loops in the schedule: s[T].unroll(axis)"),
}  # fmt: skip
_PARTITION = {
    "partition_const_loop": ConfigKey("bool", "partition loops for conditions of the user's too"),
    "no_unroll_loop_with_extent_one": _fixed("bool", False, "keep loops of one step",
                                             "the pipeline drops loops of one step"),
}  # fmt: skip
_DOUBLE = {"split_loop": ConfigKey("int", "steps of a double-buffered loop to unroll (1)")}
_NO_CODE = "there is no code generator of this name; partition the graph for your own"
_NO_SUCH = "there is no such pass"

CONFIG: dict[str, ConfigKey] = {
    "tir.disable_vectorize": ConfigKey("bool", "run vectorized loops as serial ones"),
    "tir.UnrollLoop": ConfigKey("dict", "which loops are unrolled", options=_UNROLL),
    "tir.LoopPartition": ConfigKey("dict", "which loops are partitioned", options=_PARTITION),
    "tir.InjectDoubleBuffer": ConfigKey("dict", "how double buffers run", options=_DOUBLE),
    "relay.fallback_device_type": ConfigKey(
        "int", "where operators run that no mark places, in a model for several kinds of device"
    ),
    "tir.noalias": ConfigKey("bool", "buffers of one function never overlap (True)"),
    "tir.instrument_bound_checkers": ConfigKey(
        "bool", "check every index at run time; loops run serially"
    ),
    "tir.disable_assert": ConfigKey("bool", "leave out the assertions of a program"),
    "tir.disable_cse_tir": ConfigKey("bool", "either value: LLVM shares common expressions"),
    "tir.disable_storage_rewrite": ConfigKey("bool", "do not share the memory of dead buffers"),
    "tir.add_lower_pass": ConfigKey(
        "list", "(phase, pass): on te's loops 0, flat storage 1, vectorized loops 2, at the end 3"
    ),
    "tir.enable_buffer_level_predication": _fixed("bool", False, "mask vector accesses", _NO_SUCH),
    "tir.detect_global_barrier": _fixed("bool", False, "barriers between GPU blocks", _NO_SUCH),
    "tir.debug_keep_trivial_loop": _fixed("bool", False, "keep loops of one step",
                                          "lowering drops loops of one step"),
    "tir.verify": ConfigKey("bool", "verify loops between all passes (False)"),
    "tir.usmp.enable": ConfigKey("bool", "plan the memory of a whole AOT program"),
    "tir.usmp.algorithm": ConfigKey("str", "greedy_by_size, greedy_by_conflicts, hill_climb, ..."),
    "tir.usmp.use_workspace_io": ConfigKey("bool", "inputs and outputs live in the workspace"),
    "tir.usmp.custom_algorithm": ConfigKey("str", "a planner registered as tir.usmp.algo.<name>"),
    "relay.frontend.budget": ConfigKey(
        "int", "how many times the usual nodes and computed constants an import may make (1)"
    ),
    "relay.frontend.fill_span": ConfigKey(
        "bool", "either value: every operator knows the node that it comes from"
    ),
    "relay.ToMixedPrecision.keep_orig_output_dtype": ConfigKey(
        "bool", "outputs of a model in mixed precision are of the type they were"
    ),
    "relay.verify": ConfigKey("bool", "verify graphs between all passes (False)"),
    "relay.FuseOps.max_depth": ConfigKey("int", "operators fused into one function at most"),
    "relay.FuseOps.link_params": _fixed("bool", False, "constants inside fused functions",
                                        "parameters travel beside the code"),
    "relay.backend.use_auto_scheduler": ConfigKey(
        "bool", "either value: the best of a log apply inside auto_scheduler.ApplyHistoryBest"
    ),
    "relay.backend.use_meta_schedule": ConfigKey(
        "bool", "False: without the best choices of a database that is in use"
    ),
    "relay.backend.use_multitargets": _fixed("bool", False, "several targets for one model",
                                             "give relay.build several targets"),
    "relay.backend.tir_converter": _fixed("str", "default", "how operators become loops",
                                          "there is one way"),
    "relay.ext.cmsisnn.options": ConfigKey("dict", "either value: no part is for CMSIS-NN"),
    "relay.ext.ethos-u.options": _fixed("dict", {}, "options of the Ethos-U", _NO_CODE),
    "schedules.force": ConfigKey(
        "dict", "operator: strategy, or operator: {strategy, knobs}; see slipway check --explain"
    ),
    "schedules.records": ConfigKey("str", "a file of strategies for single problems, JSON lines"),
    "te.keep_schedule_record": ConfigKey("bool", "either value: the steps are always kept"),
}  # fmt: skip


def check_config(config: Mapping[str, Any]) -> None:
    """Raise LoweringError for a key or value that has no effect here, and say what has."""
    for name, value in table_of(config, "config", "{'tir.disable_vectorize': True}").items():
        _check(name, value, CONFIG, "config key", "PassContext.list_configs() names all of them")


def _check(name: str, value: Any, known: Mapping[str, ConfigKey], what: str, hint: str) -> None:
    key = known.get(name)
    if key is None:
        raise LoweringError(
            f"PassContext has no {what} {name!r}.{did_you_mean(name, known)} {hint}"
        )
    if not isinstance(value, _TYPES[key.kind]):
        raise LoweringError(
            f"the config key {name!r} takes a {key.kind} ({key.meaning}), got {value!r}"
        )
    if key.only and value not in key.only:
        raise LoweringError(
            f"the config key {name!r} accepts only {key.only[0]!r}: {key.why} (it means: "
            f"{key.meaning})"
        )
    if key.options is not None:
        options: Any = value
        for inner, given in options.items():
            hint = f"it has: {', '.join(key.options)}"
            _check(inner, given, key.options, f"option of {name!r} called", hint)
