"""The target of a build, from what a user gives."""

import pytest

from slipway.errors import TargetError
from slipway.target import Target
from slipway.target.choose import cpu_target


@pytest.mark.parametrize("given", ["c", Target("c"), {"kind": "c"}, {"cpu": "c"}])
def test_every_classic_form_is_taken(given):
    assert cpu_target(given) == Target("c")


def test_without_a_target_the_scope_decides():
    assert cpu_target(None) == Target("llvm")
    with Target("c"):
        assert cpu_target(None) == Target("c")


def test_a_host_is_kept():
    assert cpu_target("llvm", "c").host == Target("c")


def test_what_cannot_be_compiled_for_is_refused():
    with pytest.raises(TargetError, match="no code generator for kernels on cuda"):
        cpu_target("cuda", None, "kernels")
    with pytest.raises(TargetError, match="targets for 2 devices; models are compiled for one"):
        cpu_target({"cpu": "llvm", "cuda": "cuda"})
