"""Memories of a model: what their classes take, by position as classic scripts write it."""

import pytest

from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.ir.memory_pools import ConstantPoolInfo, PoolInfoProperties, WorkspacePoolInfo


def test_a_constant_pool_has_its_constants_before_the_properties():
    pool = ConstantPoolInfo("rom", ["c"], [], PoolInfoProperties(4096))
    assert (pool.pool_name, pool.targets, pool.size_bytes) == ("rom", ["c"], 4096)
    assert ConstantPoolInfo("rom", ["c"]).size_bytes is None
    assert WorkspacePoolInfo("ram", ["c"], None).size_bytes is None
    assert pool == ConstantPoolInfo("rom", ["c"], pool_info_properties=PoolInfoProperties(4096))


def test_what_no_pool_is_made_of():
    with pytest.raises(ArgumentTypeError, match="write pool_info_properties="):
        ConstantPoolInfo("rom", ["c"], PoolInfoProperties(4096))
    with pytest.raises(ArgumentValueError, match="are placed by the compiler"):
        ConstantPoolInfo("rom", ["c"], [object()])
    with pytest.raises(ArgumentTypeError, match="takes a name, targets and PoolInfoProperties"):
        WorkspacePoolInfo("ram", ["c"], 4096)


def test_a_pool_tells_its_properties():
    """As scripts of classic TVM read them: of the pool itself."""
    properties = PoolInfoProperties(1024, 1_000_000, 8, 4, 2, 3, {"c": 32})
    pool = WorkspacePoolInfo("sram", [], properties)
    for name in vars(properties):
        assert getattr(pool, name) == getattr(properties, name)
