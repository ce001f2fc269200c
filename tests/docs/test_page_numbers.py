"""Numbers that pages give of the code: limits and thresholds are those that the code has."""

import re
from pathlib import Path

import pytest

import slipway
from slipway.backends.gpu.schedules import rows, shared
from slipway.backends.micro.kernels import dsp_folded, joining
from slipway.codegen import cache
from slipway.codegen.gpu import llvm_kernels, nvptx
from slipway.codegen.llvm import worker, workers
from slipway.compiler.quantize import histogram
from slipway.compiler.several_devices import placement
from slipway.frontends import budget
from slipway.frontends.onnx import isolated
from slipway.frontends.onnx.operators import control
from slipway.frontends.torch import archive
from slipway.ir.instructions import async_copies
from slipway.ir.instructions.warp_products import WarpProduct
from slipway.llm.model import ROWS
from slipway.micro import baremetal
from slipway.relay.ops.tensor import integer_power
from slipway.rpc import client, protocol, proxy, server, tracker
from slipway.rpc.connections import greeting, pump, reception
from slipway.rpc.web import feed
from slipway.rpc.web import server as web_server
from slipway.target.gpu_costs import ANY_GPU
from slipway.tuning import builders, drift, experience, measure, search, transfer_measured, tune
from slipway.tuning.boards import cable_bench

PACKAGE = Path(slipway.__file__).parent
DRIVERS = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted((PACKAGE / "crt/posix/devices/drivers").glob("*vulkan*.[ch]"))
)
WORDS = {
    "minute": 1,
    "two": 2,
    "three": 3,
    "sixteen": 16,
    "a sixteenth": 16,
    "eight": 8,
    "four": 4,
}


def defined(name, source=DRIVERS):
    """Return a number that C sources define, by default the drivers'."""
    value, _, shift = re.search(
        rf"#define {name} \(*(?:\w+_t\)+)?(\d+)[Uu]?\)?( << (\d+))?", source
    ).groups()
    return int(value) << int(shift or 0)


def source_of(path):
    """Return the text of a file of the C runtime."""
    return (PACKAGE / "crt" / path).read_text(encoding="utf-8")


PROBED = ("idle_s", "interval_s", "count")  # of a connection that is silent
ADMISSION = source_of("posix/rpc/rpc_admission.c")
CALLBACKS = source_of("src/rpc_callback.c")
CHILD = source_of("posix/rpc/rpc_child.c")
FRAMES = source_of("include/slipway/rpc_frame.h")
HOST = source_of("posix/rpc/rpc_host.c")
REGISTRAR = source_of("posix/rpc/rpc_registrar.c")
SESSION = source_of("include/slipway/rpc_session.h")
SUPERVISOR = source_of("posix/rpc/rpc_supervisor.h")
PROBES = [int(re.search(rf"int {name} = (\d+);", ADMISSION)[1]) for name in PROBED]


DEVICE_PAGE = (PACKAGE / "web/device/session.mjs").read_text(encoding="utf-8")
SCRIPT = (PACKAGE / "web" / "slipway.mjs").read_text(encoding="utf-8")
FOUND = {
    ("codegen.md", r"takes more than (\d+) s\b"): workers.LIMIT_S,
    ("codegen.md", r"after a (minute) without work"): worker.IDLE_S / 60,
    ("codegen.md", r"keeps to about (\d+) MB"): cache.LIMIT_BYTES >> 20,
    ("codegen.md", r"in n of (\d+) MB cases"): cache.SWEEP_BYTES >> 20,
    ("quantization.md", r"at least ([\d,]+) elements"): (
        histogram.MIN_PER_BIN * histogram.MIN_BINS
    ),
    ("security.md", r"\| frame \| (\d+) MiB;"): protocol.FRAME_BYTES >> 20,
    ("security.md", r"\| frame \| .* trackers ([\d,]+) bytes"): protocol.HELLO_MAX_BYTES,
    ("security.md", r"items of a list \| ([\d,]+) of one call"): (
        int(re.search(r"max_args = (\d+);", CHILD)[1])
    ),
    ("security.md", r"dimensions of a tensor \| (\d+) \|"): defined("SLW_RPC_MAX_NDIM", FRAMES),
    ("security.md", r"functions in one call \| (\d+) \|"): (
        defined("SLW_RPC_MAX_TEMPORARIES", SESSION)
    ),
    ("security.md", r"a file or function \| (\d+) bytes"): protocol.NAME_MAX_BYTES,
    ("security.md", r"a kind of device \| (\d+) bytes"): protocol.KEY_MAX_BYTES,
    ("security.md", r"message of an error \| ([\d,]+) bytes"): (
        defined("SLW_RPC_MESSAGE_BYTES", SESSION)
    ),
    ("security.md", r"live handles of a session \| ([\d,]+) \|"): server.ServerOptions.max_handles,
    ("security.md", r"within each other \| (\d+) \|"): defined("MAX_DEPTH", CALLBACKS),
    ("security.md", r"sessions at a time \| (\d+),"): server.ServerOptions.max_sessions,
    ("security.md", r"sessions at a time \| .* at most (\d+);"): defined(
        "MAX_SESSIONS", SUPERVISOR
    ),
    ("security.md", r"request to the page \| (\d+) s"): server.ServerOptions.greeting_timeout_s,
    ("security.md", r"a server: (\d+), of one address"): defined("MAX_GREETINGS", SUPERVISOR),
    ("security.md", r"of one address (\d+), and the oldest one goes;"): (
        defined("MAX_GREETINGS_OF_ONE", SUPERVISOR)
    ),
    ("security.md", r"TLS and page: (\d+) and"): reception.MAX_GUESTS,
    ("security.md", r"TLS and page: \d+ and (\d+),"): reception.MAX_GUESTS_OF_ONE,
    ("security.md", r"those older than (\d+) s go"): reception.PATIENCE_S,
    ("security.md", r"no more than ([\d,]+) \|"): reception.MOST_GUESTS,
    ("security.md", r"the TLS front take (\d+) at a time"): reception.TAKEN_AT_ONCE,
    ("security.md", r"to the page \| (\d+) of one"): web_server.MAX_CONNECTIONS_OF_ONE,
    ("security.md", r"of one address; (\d+) readers of events"): feed.MAX_READERS,
    ("security.md", r"fills its connection \| (\d+) s"): web_server.STALL_TIMEOUT_S,
    ("security.md", r"wrong token \| (\d+) s before"): greeting._WRONG_TOKEN_DELAY_S,
    ("security.md", r"none; the client waits (\d+) s"): client.CALL_TIMEOUT_S,
    ("security.md", r"without a byte moving \| (\d+) s"): client.STEP_TIMEOUT_S,
    ("security.md", r"whole greeting, in the client \| (\d+) s"): client.CONNECT_TIMEOUT_S,
    ("security.md", r"tensors from (\d+) MiB are compared"): (
        defined("LARGE_TENSOR_BYTES", HOST) >> 20
    ),
    ("security.md", r"client that left \| ended within (0\.5) s"): (
        defined("GRACE_NS", source_of("posix/rpc/rpc_server.c")) / 1e9
    ),
    ("numerics.md", r"in bfloat16 \(from (\S+) on\)"): pytest.approx((2 - 2**-8) * 2.0**127, 1e-4),
    ("security.md", r"found within (\d+) s \(sessions\)"): PROBES[0] + PROBES[1] * PROBES[2],
    ("security.md", r"(\d+) s \(to trackers\)"): defined("LOST_MS", REGISTRAR) / 1000,
    ("security.md", r"lease that nobody uses \| (\d+) s"): (defined("UNUSED_LEASE_NS", REGISTRAR)),
    ("security.md", r"silent to its tracker \| (\d+) s"): tracker.SILENCE_TIMEOUT_S,
    ("security.md", r"proxy holds for a session \| (\d+) MiB"): pump.READ_AHEAD_BYTES >> 20,
    ("security.md", r"proxy without tracker \| (\d+) s"): proxy.FREE_TIMEOUT_S,
    ("security.md", r"a session holds at most (\d+) MiB"): (
        1 << int(re.search(r"MAX_WAITING_BYTES = 1 << (\d+);", DEVICE_PAGE)[1]) >> 20
    ),
    ("security.md", r"or unpacks to (\d+) times its size"): archive._SWELLS,
    ("numerics.md", r"exactly for exponents up to (\d+)"): (1 << integer_power.STEPS) - 1,
    ("numerics.md", r"Workers spin for (\d+) ms before"): (
        defined("WORKER_SPINS_NS", source_of("posix/threadpool.c")) / 1e6
    ),
    ("tuning.md", r"From (\d+) trials on"): experience.ENOUGH,
    ("onnx.md", r"of each step are known, up to ([\d,]+) steps"): control.MAX_STEPS,
    ("onnx.md", r"`Scan` of up to (\d+) steps is unrolled"): control.FEW_STEPS,
    ("onnx.md", r"budget, for every format: ([\d,]+) nodes"): budget.MAX_NODES,
    ("onnx.md", r"constants of\n(\d+) MiB and"): budget.BYTES >> 20,
    ("onnx.md", r"MiB and (eight) times the weights"): budget.WEIGHTS_FACTOR,
    ("onnx.md", r"with (\d+) s of processor time"): isolated.LIMIT_S,
    ("tuning.md", r"half of the cores, (\d+) at most"): builders.MOST,
    ("tuning.md", r"one that (three) batches\n  in a row brought nothing"): tune.FRUITLESS,
    ("tuning.md", r"(Sixteen) failures on the device"): search.SAME_ERRORS,
    ("gpu.md", r"go to the device (\d+) at a\ntime"): defined("SETS_OF_A_BATCH"),
    ("gpu.md", r"at most (\d+) allocations and a"): defined("SLW_VULKAN_SPARE"),
    ("gpu.md", r"(a\nsixteenth) of the device's memory"): defined("SPARE_SHARE"),
    ("gpu.md", r"through a buffer of (\d+) MB"): defined("STAGING_BYTES") >> 20,
    ("gpu.md", r"`nn.conv3d` of at least (\d+) rows, columns and depth"): ANY_GPU.tile_length,
    ("gpu.md", r"`nn.conv3d` with at least (\d+) channels in a group"): ANY_GPU.tile_length,
    ("gpu.md", r"rows of at least (\d+) elements where"): ANY_GPU.row_length,
    ("gpu.md", r"softmax and norms of at least (\d+) rows"): ANY_GPU.row_count,
    ("gpu.md", r"two more kernels start \((\d+) elements"): max(
        filter(rows._is_short, range(1000))
    ),
    ("gpu.md", r"From (\d+) elements on it is two kernels"): ANY_GPU.part_length,
    ("gpu.md", r"a launch\), from ([\d,]+) on always"): ANY_GPU.longest_sum,
    ("gpu.md", r"a thread reduces has at most ([\d,]+), and a product"): ANY_GPU.thread_steps,
    ("gpu.md", r"suppression of more than ([\d,]+) elements"): placement.SERIAL["topk"],
    ("gpu.md", r"cumulative sum along more than ([\d,]+)\)"): placement.SERIAL["cumsum"],
    ("gpu.md", r"of at most (\d+) rows and a depth"): ANY_GPU.vector_rows,
    ("gpu.md", r"and a depth of at least (\d+), where"): ANY_GPU.vector_depth,
    ("gpu.md", r"in step, of at least (\d+) rows and sums"): ANY_GPU.transposed_rows,
    ("gpu.md", r"rows and sums of at least (\d+): neighbouring"): ANY_GPU.transposed_depth,
    ("gpu.md", r"depth on CUDA devices from `sm_(\d+)` on"): WarpProduct.lowest_version,
    ("gpu.md", r"CUDA from `sm_(\d+)` on, AMD's GPUs that"): nvptx.DOTS_FROM,
    ("gpu.md", r"From `sm_(\d+)` on a device copies"): async_copies.MIN_VERSION,
    ("gpu.md", r"on CUDA from `sm_(\d+)` on, by integer"): nvptx._HALVES,
    ("gpu.md", r"whose threads hold (\d+) to \d+ words"): llvm_kernels._TILES[0],
    ("gpu.md", r"whose threads hold \d+ to (\d+) words"): llvm_kernels._TILES[-1],
    ("gpu.md", r"words \((\d+) where matrix units compute\)"): llvm_kernels._MATRIX_TILES[-1],
    ("gpu.md", r"tune` tries up to (four)"): shared.STAGES[-1],
    ("gpu.md", r"each counted as (eight) of them"): ANY_GPU.global_cost,
    ("gpu.md", r"launches of (four) million each"): ANY_GPU.launch_cost // 1_000_000,
    ("tuning.md", r"\((1e-4) of the largest value"): measure.TOLERANCE,
    ("tuning.md", r"(\d+e-\d+) for float16"): measure.TOLERANCES["float16"],
    ("tuning.md", r"(\d+e-\d+) for bfloat16"): measure.TOLERANCES["bfloat16"],
    ("tuning.md", r"in (two) batches of both, each from"): search.DUELS,
    ("tuning.md", r"From (\d\.\d+) times its fastest time on"): drift.NOTABLE,
    ("tuning.md", r"its clock is below (\S+) of its limit"): drift.THROTTLED,
    ("tuning.md", r"or it is (\d+) C\n? *cooler"): drift.ENOUGH_C,
    ("tuning.md", r"C\n? *cooler, (\d+) s at most"): drift.RESTS * drift.REST_S,
    ("tuning.md", r"elsewhere by writing (\d+) MiB of other"): (
        defined("SWEEP_BYTES", source_of("posix/packed_cache.c")) >> 20
    ),
    ("tuning.md", r"the (three) best of each layout and"): transfer_measured.MOST,
    ("tuning.md", r"What saves less than (\S+) of the"): cable_bench.CLOCK_NOISE,
    ("web.md", r"// at most (\d+) at once"): ROWS,
    ("micro.md", r"the first build proves .*? and (\d+) bytes for an"): baremetal._STACK_BESIDE,
    ("micro.md", r"as sessions make them\) it is (\d+) KiB"): baremetal._STACK_BYTES >> 10,
    ("micro.md", r"sums of 2\^(\d+) or more"): dsp_folded._LARGEST_SUM.bit_length() - 1,
    ("micro.md", r"whose blocks have (four) bytes or more"): joining._MIN_BYTES,
    ("web.md", r"\((\d+) at most\), where"): int(re.search(r"MOST_THREADS = (\d+)", SCRIPT)[1]),
}


@pytest.mark.parametrize(("page", "words"), FOUND, ids=lambda value: value)
def test_a_number_on_a_page_is_that_of_the_code(repository, page, words):
    text = (repository / "docs" / page).read_text(encoding="utf-8")
    (said,) = re.findall(words, text, re.DOTALL)
    said = " ".join(said.lower().split())
    number = float(WORDS.get(said, said.replace(",", "")))
    assert number == FOUND[page, words]


def test_errors_of_whole_networks_are_those_of_the_tables(repository):
    docs = repository / "docs"
    text = (docs / "numerics.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"Whole networks stay within (\S+) of onnxruntime's", text)
    page = (docs / "performance.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| model .*\| error \|\n((?:\|.*\n)+)", page, re.MULTILINE)
    found = [float(error) for table in tables for error in re.findall(r"\| (\S+e-\d+) \|\n", table)]
    assert len(found) > 10
    assert max(found) <= float(said)
