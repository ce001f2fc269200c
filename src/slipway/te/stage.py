"""Stage: the schedule of one operation.

A stage starts with one loop per axis of its operation.  Its primitives append relations and
marks; nothing is rewritten until lowering reads them.  Every primitive also adds one plain step
to the schedule's `steps`, from which the schedule can be replayed.
"""

from slipway.te.primitives.loops import LoopPrimitives
from slipway.te.primitives.marks import MarkPrimitives
from slipway.te.primitives.place import PlacePrimitives
from slipway.te.primitives.storage import StoragePrimitives


class Stage(LoopPrimitives, MarkPrimitives, PlacePrimitives, StoragePrimitives):
    """The schedule of operation `op`: what its state is, and the primitives that change it."""
