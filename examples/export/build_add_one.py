"""Compile b[i] = a[i] + 1 into add_one.so, which needs neither Slipway nor a C library.

    python examples/export/build_add_one.py add_one.so
    python examples/export/call_from_tvm_ffi.py add_one.so
    cc -I "$(python -c 'import slipway; print(*slipway.libinfo.find_include_path())')" \\
        examples/export/call_from_c.c -o call -ldl && ./call ./add_one.so
"""

import sys

import slipway as tvm
from slipway import te

a = te.placeholder((1024,), name="a")
b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")

schedule = te.create_schedule(b.op)
outer, inner = schedule[b].split(b.op.axis[0], factor=8)
schedule[b].vectorize(inner)

library = tvm.build(schedule, [a, b], target="llvm", name="add_one")
library.export_library(sys.argv[1])
