"""What is done after each batch (classic): the engine does it, whatever is given."""

from __future__ import annotations


class MeasureCallback:
    """Done after each batch."""

    @staticmethod
    def create(kind: str = "default") -> list[MeasureCallback]:
        """Return those that classic TVM had."""
        if kind != "default":
            raise ValueError(f"measure_callbacks {kind!r}: it is 'default'")
        return [AddToDatabase(), RemoveBuildArtifact(), UpdateCostModel()]


class AddToDatabase(MeasureCallback):
    """Keeps trials in the database."""


class RemoveBuildArtifact(MeasureCallback):
    """Deletes compiled candidates."""


class UpdateCostModel(MeasureCallback):
    """Lets the cost model learn."""
