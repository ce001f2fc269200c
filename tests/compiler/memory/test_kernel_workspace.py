"""Kernels without checks: where their temporaries lie."""

from slipway.codegen.unpacked import WORKSPACE_ALIGNMENT, Workspace


def test_temporaries_share_memory_unless_one_lives_in_the_other():
    workspace = Workspace()
    with workspace.room(10) as outer:
        with workspace.room(100) as first:
            pass
        with workspace.room(50) as second:
            pass
    with workspace.room(20) as later:
        pass
    assert (outer, first, second, later) == (0, WORKSPACE_ALIGNMENT, WORKSPACE_ALIGNMENT, 0)
    assert workspace.size_bytes == WORKSPACE_ALIGNMENT + 100
