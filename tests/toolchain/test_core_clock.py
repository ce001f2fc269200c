"""The clock of a modelled core: loops whose cycles are known, read by the program itself."""

import shutil
import struct
import subprocess

import pytest

from slipway.errors import ToolchainError
from slipway.toolchain import zig
from slipway.toolchain.core_clock import CORES, emulated, modelled

# Each loop runs 1000 times between two readings of the clock; the nanoseconds go to stdout.
PROGRAM = r"""
typedef unsigned long u64;
static long call(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
      x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
static u64 now(void) {
  u64 at[2];
  call(113, 1, (long)at, 0);
  return at[0] * 1000000000u + at[1];
}
static char data[1 << 23] __attribute__((aligned(64)));
static u64 taken[8];
#define LOOP(NUMBER, BODY)                                                                  \
  for (int warm = 0; warm < 2; warm++) {                                                    \
    u64 start = now();                                                                      \
    __asm__ volatile("mov x9, #1000\n mov x10, %0\n 1:\n" BODY                              \
                     "subs x9, x9, #1\n b.ne 1b\n" ::"r"(data)                              \
                     : "x9", "x10", "x11", "cc", "memory", "v0", "v1", "v2", "v3", "v4",    \
                       "v5", "v6", "v7", "v16", "v17");                                     \
    taken[NUMBER] = now() - start;                                                          \
  }
#define FMA(N) "fmla v" #N ".4s, v16.4s, v17.4s\n"
#define LOAD(N) "ldr q" #N ", [x10, #" #N "*16]\n"
void _start(void) {
  LOOP(0, FMA(0) FMA(0) FMA(0) FMA(0) FMA(0) FMA(0) FMA(0) FMA(0))
  LOOP(1, FMA(0) FMA(1) FMA(2) FMA(3) FMA(4) FMA(5) FMA(6) FMA(7))
  LOOP(2, LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7))
  LOOP(3, "add x11, x11, #1\n add x11, x11, #1\n add x11, x11, #1\n add x11, x11, #1\n")
  LOOP(4, "ldr x11, [x10]\n add x10, x10, #1, lsl #12\n") /* a line far away each, 4 MB in all */
  LOOP(5, "ldr x11, [x10], #64\n ldr x11, [x10], #64\n")     /* the next lines, 128 KB */
  LOOP(6, "ldr x11, [x10]\n")
  call(64, 1, (long)taken, sizeof taken);
  call(93, 0, 0, 0);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("qemu-aarch64 (apt install qemu-user) is missing")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "loops.c").write_text(PROGRAM)
    zig.run_zig(
        ["cc", "-target", "aarch64-freestanding", "-O1", "-static", "-nostdlib",
         "-fno-stack-protector", "-o", str(folder / "loops"), str(folder / "loops.c")],
        purpose="compiling a test",
    )  # fmt: skip
    return folder / "loops"


def cycles(core, program):
    """Cycles of an iteration of each loop."""
    done = subprocess.run([*emulated(core), program], capture_output=True, check=True, timeout=60)
    return [t * modelled(core).mhz / 1e6 for t in struct.unpack("8Q", done.stdout)]


@pytest.mark.parametrize(
    ("core", "chain", "apart", "loads"),
    # Eight additions to one sum; to eight sums; eight loads of 16 bytes.
    [("cortex-a53", 32, 8, 16), ("cortex-a72", 24, 8, 8), ("cortex-a76", 16, 4, 4)],
)
def test_loops_take_what_the_guides_say(core, chain, apart, loads, program):
    found = cycles(core, program)
    assert found[0] == pytest.approx(chain, abs=0.3)
    assert found[1] == pytest.approx(apart, abs=1.1)  # and the loop's own two instructions
    assert found[2] == pytest.approx(loads, abs=1.1)
    assert found[3] == pytest.approx(4, abs=1.1)


@pytest.mark.parametrize("core", CORES)
def test_what_the_caches_lack_takes_longer_and_streams_less(core, program):
    far, streamed, cached = cycles(core, program)[4:7]
    assert far > streamed + modelled(core).l2_miss[0]
    assert streamed > cached
    # 4 MB are in no second level.
    assert far == pytest.approx(modelled(core).l2_miss[1], rel=0.1)


def test_the_same_program_takes_the_same_time(program):
    assert cycles("cortex-a72", program) == cycles("cortex-a72", program)


def test_a_core_without_a_model_is_refused_in_words():
    with pytest.raises(ToolchainError, match=r"no model of a core 'cortex-a35'.*cortex-a53"):
        emulated("cortex-a35")


def test_no_emulator_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ToolchainError, match="apt-get install qemu-user"):
        emulated("cortex-a72")
