"""Sessions with a modelled core: an emulated server whose clock is the model's."""

from __future__ import annotations

from slipway.rpc.local import PopenSession
from slipway.toolchain.core_clock import emulated
from slipway.toolchain.native import build_device_server


class ModelledSession(PopenSession):
    """A session with an AArch64 core that `toolchain.core_clock` has a model of; one thread.

    Times that the session measures are modelled ones: they have no noise, and are an estimate.
    Raises ToolchainError where there is no such model, or no emulator.
    """

    has_exact_clock = True

    def __init__(self, core: str, session_timeout: float = 0) -> None:
        command = emulated(core)
        server = build_device_server("aarch64-linux")
        super().__init__(
            [*command, "-E", "SLIPWAY_NUM_THREADS=1", str(server), "--stdio"],
            session_timeout,
            is_quiet=True,
        )
