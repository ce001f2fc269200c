"""Which functions firmware offers to its sessions."""

import slipway
from slipway import te
from slipway.micro.program import packed_functions
from slipway.relay.backend import Runtime


def compiled(target):
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    runtime = Runtime("crt", {"system-lib": True})
    return slipway.build(te.create_schedule(b.op), [a, b], target, runtime=runtime, name="add")


def test_functions_of_c_and_of_objects():
    assert packed_functions({"add.c": compiled("c").get_source("c")}) == ("add",)
    assert packed_functions({}, [compiled("llvm").compiled.object_bytes()]) == ("add",)
    assert packed_functions({}) == ()
