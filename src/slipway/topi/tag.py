"""The tags of ready-made expressions, under classic names.

No decision of the compiler is taken from a tag; scripts ask for them.
"""

ELEMWISE, BROADCAST, INJECTIVE = "elemwise", "broadcast", "injective"
COMM_REDUCE, COMM_REDUCE_IDX = "comm_reduce", "comm_reduce_idx"


def is_elemwise(tag: str) -> bool:
    """Return whether each element comes from the one at its place."""
    return tag == ELEMWISE or tag.startswith("elemwise,")


def is_broadcast(tag: str) -> bool:
    """Return whether each element comes from those at its place, repeated or not."""
    return is_elemwise(tag) or tag == BROADCAST or tag.startswith("broadcast,")


def is_injective(tag: str) -> bool:
    """Return whether each element comes from some one place."""
    return is_broadcast(tag) or tag == INJECTIVE or tag.startswith("injective,")
