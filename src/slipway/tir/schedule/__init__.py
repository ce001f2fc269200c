"""``tir.schedule``: schedules of blocks under their classic name; see `slipway.blocks.schedule`."""

from slipway.lazy import offer

_HOMES = {
    "BlockRV": "slipway.blocks.schedule:BlockRV",
    "Instruction": "slipway.blocks.schedule:Instruction",
    "InstructionKind": "slipway.blocks.schedule:InstructionKind",
    "LoopRV": "slipway.blocks.schedule:LoopRV",
    "Schedule": "slipway.blocks.schedule:Schedule",
    "ScheduleError": "slipway.errors:ScheduleError",
    "StmtSRef": "slipway.blocks.tree:StmtSRef",
    "Trace": "slipway.blocks.schedule:Trace",
    # Modules of those names, which classic scripts import from.
    "schedule": "slipway.blocks.schedule",
    "testing": "slipway.testing.traces",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
