"""Target strings, dicts and tags."""

import pytest

import slipway as tvm
from slipway import te
from slipway.errors import TargetError
from slipway.target import Target, arm_cpu, hexagon, micro

SPELLINGS = [
    "llvm",
    "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon,+fp-armv8,+crc",
    "llvm -target=armv7l-none-linux-gnueabihf",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon",
    "c -keys=arm_cpu -mcpu=cortex-m4 -march=armv7e-m -mfloat-abi=hard -mfpu=fpv4-sp-d16 "
    "-runtime=c -system-lib",
    "hexagon -mcpu=v68",
    "cuda -arch=sm_53",
    "vulkan -max_threads_per_block=256",
    "llvm -mtriple=wasm32",
    "llvm -mtriple=arm64-apple-macos",
    "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic-rv64 -mattr=+v",
    "llvm --system-lib --runtime=c -mcpu skylake-avx512",
    "opencl --host='llvm -mtriple=aarch64-linux-gnu'",
    *Target.list_tags(),
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_text_and_dict_round_trip(text):
    target = Target(text)
    assert Target(str(target)) == target
    assert Target(target.export()) == target
    assert Target(target) == target
    assert hash(Target(text)) == hash(target)


def test_attributes_of_a_cross_target():
    target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+dotprod,-crc")
    assert target.kind.name == "llvm"
    assert (target.mcpu, target.mtriple) == ("cortex-a72", "aarch64-linux-gnu")
    assert target.mattr == ("+dotprod", "-crc")
    assert target.keys == ("arm_cpu", "cpu")
    assert target.arch == "aarch64"
    assert target.vector_bits == 128
    assert target.has_feature("neon", "dotprod", "fp-armv8")
    assert not target.has_feature("crc")


def test_legacy_microcontroller_flags():
    target = Target(SPELLINGS[4])
    assert target.attrs["system-lib"] is True
    assert target.attrs["runtime"] == "c"
    assert target.triple == "thumbv7em-none-eabihf"
    assert target.has_feature("dsp", "vfp4d16sp")
    assert target.vector_bits == 0


def test_old_armv7_triple_has_neon():
    target = Target("llvm -target=armv7l-none-linux-gnueabihf")
    assert target.mtriple == "armv7l-none-linux-gnueabihf"
    assert target.pointer_bits == 32
    assert target.vector_bits == 128


def test_gpu_options_and_host():
    target = Target("nvidia/jetson-nano")
    assert target.arch == "sm_53"
    assert target.host.mcpu == "cortex-a57"
    assert Target("cuda", host="llvm").host == Target("llvm")
    assert Target({"kind": "cuda", "arch": "sm_80", "max_num_threads": "512"}).attrs == {
        "arch": "sm_80", "max_num_threads": 512, "thread_warp_size": 32}  # fmt: skip


def test_json_text():
    assert Target('{"kind": "llvm", "mcpu": "skylake-avx512"}').vector_bits == 512


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rpi4", "vendor and name: raspberry-pi/4b-aarch64, raspberry-pi/4b-armv7l."),
        ("Raspberry_Pi_5", "name: raspberry-pi/5-aarch64"),
        ("orin", "nvidia/jetson-agx-orin, nvidia/jetson-orin-nano"),
        ("cortex-a53", "a processor: write 'llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53'"),
        ("cortex-a7", "write 'llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7'"),
        ("cortex-m35p", "unknown target kind"),  # it runs no Linux
        ("sifive-e31", "unknown target kind"),
        ("x86-64", "write 'llvm -mtriple=x86_64-linux-gnu'"),
        ("esp32", "a board: `slipway micro create MODEL DIR --board esp32c3`"),
        ("mps2", "Boards go by name: mps2-an385, mps2-an386"),
        ("llmv", "unknown target kind 'llmv'. Did you mean 'llvm'"),
        ("llvm -mtripel=x", "no option '-mtripel'. Did you mean 'mtriple'"),
        ("c -keys=arm_cpu -mcpu=cortex-m44", "Did you mean 'cortex-m4'"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a77x", "Did you mean 'cortex-a77"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-m4", "It is a CPU of arm"),
        ("llvm -mtriple=aarch64-linux-gnu -mattr=+neom", "Did you mean 'neon'"),
        ("llvm -mattr=avx2", "needs a sign"),
        ("llvm -mtriple=aarch65-linux", "unknown architecture 'aarch65'"),
        ("raspberry-pi/4b-arch64", "Did you mean 'raspberry-pi/4b-aarch64'"),
        ("raspberry-pi", "vendor and name: raspberry-pi/2b, raspberry-pi/3b-aarch64"),
        ("jetson-nano", "vendor and name: nvidia/jetson-nano."),
        ("nucleo_f446re -v", "micro create MODEL DIR --board nucleo_f446re"),
        ("nucleo-f446re", "as a target is 'c -keys=arm_cpu -mcpu=cortex-m4'"),
        ("llvm -num-cores=many", "must be of type int"),
        ("llvm mcpu=x", "options start with '-'"),
        ("", "empty target"),
    ],
)
def test_unknown_words_are_errors(text, words):
    with pytest.raises(TargetError) as caught:
        Target(text)
    assert words in str(caught.value)


def test_scope():
    assert Target.current() is None
    with Target("llvm") as outer:
        with Target("c"):
            assert Target.current().kind.name == "c"
        assert Target.current() is outer
    with pytest.raises(TargetError):
        Target.current(allow_none=False)


def test_helpers():
    assert arm_cpu("rasp4b64").mcpu == "cortex-a72"
    assert hexagon("v68").vector_bits == 1024
    assert hexagon("v66", hvx=0).vector_bits == 0
    assert micro("nrf52840").mcpu == "cortex-m4"
    with pytest.raises(TargetError):
        arm_cpu("rasp9")


def test_kinds_and_tags_are_listed():
    assert {"llvm", "c", "cuda", "opencl", "metal", "vulkan", "hexagon", "webgpu"} <= set(
        Target.list_kinds()
    )
    assert "raspberry-pi/4b-aarch64" in Target.list_tags()


@pytest.mark.parametrize(
    ("words", "bits", "sve"),
    [
        ("-mcpu=cortex-a72", 128, 0),
        ("-mcpu=a64fx", 512, 512),
        ("-mcpu=neoverse-v1", 256, 256),
        ("-mcpu=neoverse-v2", 128, 0),
        ("-mattr=+sve", 128, 0),
        ("-mattr=+sve -vector-width=1024", 1024, 1024),
    ],
)
def test_how_long_sve_registers_are(words, bits, sve):
    target = Target(f"llvm -mtriple=aarch64-linux-gnu {words}")
    assert (target.vector_bits, target.sve_bits) == (bits, sve)
    assert [f for f in target.needed if f.startswith("sve-bits")] == [f"sve-bits-{sve}"] * (sve > 0)


@pytest.mark.parametrize(
    ("triple", "small"),
    [("thumbv7em-none-eabi", True), ("arm-none-eabi", True), ("armv7e-m-none-eabi", True),
     ("riscv32-unknown-none-elf", True), ("thumbv7-linux-gnueabihf", False), ("wasm32", False),
     ("aarch64-none-elf", False), ("riscv32-unknown-linux-gnu", False)],
)  # fmt: skip
def test_which_processors_have_kilobytes(triple, small):
    """Thumb is how code is written, not where it runs."""
    assert Target(f"llvm -mtriple={triple}").parsed_triple.is_small is small


@pytest.mark.parametrize(
    ("words", "bare"),
    [("aarch64", False), ("arm64", False), ("aarch64-unknown-unknown", False), ("armv7a", False),
     ("riscv64", False), ("x86_64", False), ("arm", False), ("thumb -mcpu=cortex-a7", False),
     ("aarch64-elf", True), ("aarch64-none-elf", True), ("x86_64-unknown-none", True),
     ("riscv64-unknown-elf", True), ("arm-unknown-eabi", True), ("riscv32", True),
     ("thumbv7em", True), ("armv8.1-m.main", True), ("arm -mcpu=cortex-m4", True),
     ("arm -march=armv7e-m", True), ("armv7-linux-gnueabihf", False)],
)  # fmt: skip
def test_a_processor_of_programs_is_bare_metal_only_where_a_word_says_so(words, bare):
    """As for clang: "aarch64" names no system, and "aarch64-elf" that there is none."""
    target = Target(f"llvm -mtriple={words}")
    triple = target.parsed_triple
    assert (triple.is_bare, triple.loads_libraries) == (bare, not bare)
    assert target.core_counts == ((1,) if bare else Target("llvm").core_counts)
    assert (triple.system == "unknown") is (not bare and "linux" not in words)


def test_arm_without_a_system_calls_what_libraries_have():
    """LLVM names divisions otherwise where it knows no ABI of ARM: __udivsi3."""
    n = te.var("n")
    a, b = te.placeholder((n,), "int64", "a"), te.placeholder((n,), "int64", "b")
    c = te.compute((n,), lambda i: te.floordiv(a[i], b[i]), "c")
    made = tvm.build(te.create_schedule(c.op), [a, b, c], "llvm -mtriple=armv7a")
    code = b"".join(made.compiled.objects)
    assert b"__aeabi_ldivmod" in code
    assert b"__divdi3" not in code


@pytest.mark.parametrize(
    ("words", "abi"),
    [("-mattr=+m,+a,+f,+d,+c", "lp64d"), ("-mattr=-d", "lp64"), ("-mabi=lp64f", "lp64f")],
)
def test_the_calling_convention_of_riscv_is_that_of_its_registers(words, abi):
    assert Target(f"llvm -mtriple=riscv64-linux-gnu {words}").abi == abi


def test_a_page_is_no_microcontroller():
    """Its system is none, too; it has memory, and cores where workers share that."""
    page, threads, board = (
        Target(f"llvm -mtriple={words}")
        for words in ("wasm32", "wasm32 -mattr=+atomics", "armv7m-none-eabi")
    )
    assert [t.parsed_triple.is_bare for t in (page, threads, board)] == [False, False, True]
    assert [t.parsed_triple.is_page for t in (page, threads, board)] == [True, True, False]
    assert [t.shares_memory for t in (page, threads, board)] == [False, True, False]
    assert page.core_counts == board.core_counts == (1,)
    assert threads.core_counts == Target("llvm -mtriple=aarch64-linux-gnu").core_counts


@pytest.mark.parametrize(("text", "bits"), [
    ("hexagon", 1024), ("hexagon -mcpu=v73", 1024), ("qualcomm/hexagon-v66", 1024),
    ("hexagon -mcpu=hexagonv67t", 0), ("hexagon -mcpu=hexagonv55", 0), ("hexagon -mattr=-hvx", 0),
    ("hexagon -mattr=+hvxv68,+hvx-length64b", 512),
])  # fmt: skip
def test_a_hexagon_has_its_vectors_unless_it_is_told_otherwise(text, bits):
    target = Target(text)
    assert target.vector_bits == bits
    assert Target(str(target)) == target


def test_an_older_name_of_an_option_finds_it():
    target = Target("nvidia/tesla-p40")
    assert target.attrs["shared_memory_per_block"] == target.attrs["max_shared_memory_per_block"]
    assert "shared_memory_per_block" not in str(target).replace("max_shared_memory_per_block", "")
    given = Target("cuda -arch=sm_70 -shared_memory_per_block=1234")
    assert given.attrs["max_shared_memory_per_block"] == 1234
    with pytest.raises(KeyError, match="no_such_option"):
        given.attrs["no_such_option"]
    assert given.attrs.get("shared_memory_per_thread") is None


@pytest.mark.parametrize(
    ("size", "cpu", "cores"),
    [
        ("large", "skylake-avx512", 1),
        ("9xlarge", "skylake-avx512", 18),
        ("24xlarge", "cascadelake", 48),
    ],
)
def test_instances_of_a_cloud_by_classic_tags(size, cpu, cores):
    target = Target(f"aws/cpu/c5.{size}")
    assert (target.attrs["mcpu"], target.num_cores) == (cpu, cores)
    assert target.vector_bits == 512


@pytest.mark.parametrize("word", ["native", "host", "Local"])
def test_words_for_this_machine_are_told_its_kind(word):
    with pytest.raises(TargetError, match="This machine is 'llvm'"):
        Target(word)
