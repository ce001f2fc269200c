"""The target of a build, from what a user gives."""

import pytest

from slipway.errors import TargetError
from slipway.target import Target
from slipway.target.choose import one_target


@pytest.mark.parametrize("given", ["c", Target("c"), {"kind": "c"}, {"cpu": "c"}])
def test_every_classic_form_is_taken(given):
    assert one_target(given) == Target("c")


def test_without_a_target_the_scope_decides():
    assert one_target(None) == Target("llvm")
    with Target("c"):
        assert one_target(None) == Target("c")


def test_a_host_is_kept():
    assert one_target("llvm", "c").host == Target("c")


def test_several_targets_are_refused():
    with pytest.raises(TargetError, match="targets for 2 devices; models are compiled for one"):
        one_target({"cpu": "llvm", "cuda": "cuda"})
