"""Use the modules of cpp_module_node.cc, a library that load_module has loaded."""

import gc
import sys
import threading

import slipway as tvm


def raised(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


library = tvm.runtime.load_module(sys.argv[1])
alive = tvm.get_global_func("counter.alive")
counter = library["make_counter"](10)
assert alive() == 1
assert counter.type_key == "counter"
add = counter["add"]
assert [add(1), counter["add"](5), add(0)] == [11, 16, 16]
assert counter["asked"]() == 2  # once for each name
assert "no function 'none'" in raised(lambda: counter["none"])
assert raised(lambda: counter["broken"]) == "ValueError: the counter is broken"
assert raised(lambda: add("x")) == "TypeError: argument 0: expected int, got str"
threads = [threading.Thread(target=lambda: counter["add"](1)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert add(0) == 24
counter = threads = thread = None
gc.collect()
assert add(1) == 25, "a function keeps its module"
assert alive() == 1
add = None
gc.collect()
assert alive() == 0, "and nothing else does"
assert tvm.get_global_func("counter.imported")(library, 1)(21) == 42
assert "derived from ModuleNode" in raised(lambda: tvm.get_global_func("counter.refused")(library))
circle = tvm.get_global_func("counter.circle")
for error in (raised(lambda: circle(1)), raised(lambda: circle(2)), raised(lambda: circle(5))):
    assert "cannot import itself" in error
gc.collect()
assert alive() == 0
print("done")
