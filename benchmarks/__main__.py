"""``python -m benchmarks NAME [options]``: run one of the benchmarks of this folder.

Names: bfloat16, compile_chains, compile_memory, compile_time, conformance, cpu, fuzz_graphs,
fuzz_importers, fuzz_rpc, fuzz_rpc_client, gemm, gpu, gpu_models, gpu_nvidia, gpu_schedules,
gpu_static, import_time, instructions, int8, llm, llm_error, memory, micro, micro_cycles,
open_sizes, operators, quantization, quantized_forms, rpc, rpc_load, rpc_tvm, sweep,
tflite_files, tuning, unseen, vectors, web, winograd_error.
Each takes ``--help``.
"""

import importlib
import sys
from pathlib import Path


def main() -> int:
    here = Path(__file__).parent
    files = [*here.glob("*.py"), *(p.parent for p in here.glob("*/__init__.py"))]
    names = sorted(
        p.stem for p in files if not p.stem.startswith("_") and not p.stem.endswith("_worker")
    )
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(__doc__.strip().splitlines()[0])
        print("benchmarks:", ", ".join(names))
        return 2
    name = sys.argv.pop(1)
    sys.argv[0] = f"python -m benchmarks {name}"
    return importlib.import_module(f"benchmarks.{name}").main() or 0


if __name__ == "__main__":
    sys.exit(main())
