"""Static memory planning: where each tensor lies, decided before the program runs."""

from slipway.compiler.memory_plan.block import Block, Plan, Pool, Share, lower_bound
from slipway.compiler.memory_plan.check import check_plan
from slipway.compiler.memory_plan.constants import place_constants
from slipway.compiler.memory_plan.picture import plan_svg, plan_table
from slipway.compiler.memory_plan.planner import ALGORITHMS, plan

__all__ = [
    "ALGORITHMS",
    "Block",
    "Plan",
    "Pool",
    "Share",
    "check_plan",
    "lower_bound",
    "place_constants",
    "plan",
    "plan_svg",
    "plan_table",
]
