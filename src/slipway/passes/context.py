"""PassContext: which passes run, with which options, and who watches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slipway.errors import LoweringError, did_you_mean

# Every configuration key a pass reads, with what it means.
CONFIG_KEYS: dict[str, str] = {
    "tir.disable_vectorize": "bool: run vectorized loops as serial ones",
    "tir.UnrollLoop": "dict: auto_max_step (statements), auto_max_depth, explicit_unroll",
    "tir.LoopPartition": "dict: partition_const_loop, no_unroll_loop_with_extent_one",
    "tir.InjectDoubleBuffer": "dict: split_loop (copies of the loop body)",
    "tir.noalias": "bool: buffers of one function never overlap (default True)",
    "tir.instrument_bound_checkers": "bool: check every index at run time",
    "tir.disable_assert": "bool: leave out assertions",
    "tir.disable_cse_tir": "bool: accepted for classic scripts; no such pass",
    "tir.disable_storage_rewrite": "bool: do not share dead buffers",
    "tir.enable_buffer_level_predication": "bool: accepted; no such pass",
    "tir.add_lower_pass": "list of (phase, pass): more passes behind flatten 0, loops 1, all 2",
    "tir.detect_global_barrier": "bool: accepted; no such pass",
    "tir.debug_keep_trivial_loop": "bool: keep loops of one step",
    "tir.usmp.enable": "bool: unified static memory planning",
    "tir.usmp.algorithm": "str: greedy_by_size, greedy_by_conflicts, hill_climb, ...",
    "tir.usmp.use_workspace_io": "bool: inputs and outputs live in the workspace",
    "tir.usmp.custom_algorithm": "str: name of a registered planner",
    "relay.FuseOps.max_depth": "int: operators fused into one function at most",
    "relay.FuseOps.link_params": "bool: put constants into the fused functions",
    "relay.backend.use_auto_scheduler": "bool: accepted",
    "relay.backend.use_meta_schedule": "bool: use tuned records",
    "relay.backend.use_multitargets": "bool: accepted",
    "relay.backend.tir_converter": "str: accepted",
    "relay.ext.cmsisnn.options": "dict: accepted",
    "relay.ext.ethos-u.options": "dict: accepted",
    "te.keep_schedule_record": "bool: accepted; the steps are always kept",
}


class PassContext:
    """Options for all passes run inside ``with PassContext(...):``.

    `opt_level` 0 to 4 turns groups of graph passes on; `required_pass` and `disabled_pass` name
    passes to force or leave out; `config` maps keys of CONFIG_KEYS to values; `instruments` are
    called around every pass.  Raises LoweringError for an unknown key.
    """

    _stack: list[PassContext] = []  # noqa: RUF012  (one stack for the process, innermost last)

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        for key in config or {}:
            if key not in CONFIG_KEYS:
                raise LoweringError(
                    f"PassContext has no config key {key!r}.{did_you_mean(key, CONFIG_KEYS)} "
                    "PassContext.list_configs() names all of them"
                )
        self.opt_level = opt_level
        self.required_pass = frozenset(required_pass or ())
        self.disabled_pass = frozenset(disabled_pass or ())
        self.instruments = tuple(instruments or ())
        self.config = dict(config or {})

    def __enter__(self) -> PassContext:
        for instrument in self.instruments:
            _call(instrument, "enter_pass_ctx")
        PassContext._stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        PassContext._stack.remove(self)
        for instrument in self.instruments:
            _call(instrument, "exit_pass_ctx")

    @staticmethod
    def current() -> PassContext:
        """Return the innermost context, or the default one."""
        return PassContext._stack[-1] if PassContext._stack else _DEFAULT

    @staticmethod
    def list_configs() -> dict[str, str]:
        """Return every config key with its meaning."""
        return dict(CONFIG_KEYS)

    def is_enabled(self, name: str) -> bool:
        """Tell whether the pass `name` was not disabled."""
        return name not in self.disabled_pass

    def option(self, key: str, default: Any = None) -> Any:
        """Return the config value of `key`."""
        return self.config.get(key, default)


def _call(instrument: Any, method: str, *arguments: Any) -> Any:
    function = getattr(instrument, method, None)
    return function(*arguments) if function is not None else None


_DEFAULT = PassContext()
