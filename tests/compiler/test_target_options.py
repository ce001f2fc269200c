"""Every option of a CPU target changes something, or is listed as one that does not."""

import re

import pytest
from aot_models import keyword_net

import slipway as tvm
from slipway import relay, te
from slipway.compiler.artifact.system_library import linkable_object
from slipway.errors import TargetError
from slipway.target import Target
from slipway.target.kinds import WITHOUT_EFFECT, cpu_options
from slipway.transform.context import PassContext

X86 = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"


def compiled(target):
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: te.exp(a[i]) * 3 + 1, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target)


def code(target):
    text = compiled(target).get_source("asm")
    return [
        line for line in text.splitlines() if "format_version" not in line and ".size" not in line
    ]


def flags(target):
    """Return the flags of 64-bit ELF headers, which name the calling convention."""
    return [data[48:52] for data in compiled(target).compiled.objects]


def model(target):
    x = relay.var("x", shape=(1, 16, 64, 64), dtype="float32")
    w = relay.var("w", shape=(32, 16, 3, 3), dtype="float32")
    body = relay.sum(relay.nn.conv2d(x, w, padding=(1, 1), channels=32, kernel_size=(3, 3)))
    with PassContext(opt_level=3):
        return relay.build(tvm.IRModule.from_expr(body), target=target).lib.get_source("ll")


def ahead_of_time(target):
    mod, params = keyword_net()
    source = relay.build(mod, target=target, params=params).sources.source
    return source.partition("\n")[2]  # the first line names the target


# option: a target without it, the option, and what differs.
EFFECTS = {
    "mtriple": ("llvm", "-mtriple=aarch64-linux-gnu", code),
    "mcpu": ("llvm -mtriple=x86_64-linux-gnu", "-mcpu=skylake-avx512", code),
    "mattr": ("llvm -mtriple=x86_64-linux-gnu", "-mattr=+avx2,+fma", code),
    "march": ("llvm -mtriple=arm-none-eabi", "-march=armv7e-m", code),
    "mabi": ("llvm -mtriple=riscv64-linux-gnu", "-mabi=lp64", flags),
    "mfpu": ("llvm -mtriple=thumbv7em-none-eabi", "-mfpu=fpv4-sp-d16", code),
    "mfloat-abi": ("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4", "-mfloat-abi=hard",
                   lambda target: target.triple),
    "mtune": (X86, "-mtune=znver3", model),
    "num-cores": (X86, "-num-cores=1", model),
    "opt-level": (X86, "-opt-level=0", code),
    "vector-width": (X86, "-vector-width=128", model),
    "strict": (X86, "-strict=1", code),
    "fma-units": (X86, "-fma-units=1", lambda target: target.core),
    "fma-latency": (X86, "-fma-latency=9", lambda target: target.core),
    "l1-cache-bytes": (X86, "-l1-cache-bytes=8192", lambda target: target.core),
    "l1-cache-ways": (X86, "-l1-cache-ways=2", lambda target: target.core),
    "l2-cache-bytes": (X86, "-l2-cache-bytes=65536", model),
    "cache-line-bytes": (X86, "-cache-line-bytes=128", lambda target: target.core),
    "keys": (X86, "-keys=mine,cpu", lambda target: target.keys),
    "device": (X86, "-device=mine", lambda target: target.keys),
    "model": (X86, "-model=board", lambda target: target.model),
    "tag": ("raspberry-pi/4b-aarch64", "", lambda target: target.tag),
    "host": (X86, "", lambda target: Target(target, host="llvm").host),
    "target_device_type": (X86, "-target_device_type=12", Target.get_target_device_type),
    "system-lib": (X86, "-system-lib=1",
                   lambda target: linkable_object(compiled(target).compiled)),
    "executor": ("c", "-executor=aot", lambda target: type(relay.build(
        tvm.IRModule.from_expr(relay.abs(relay.var("x", shape=(2,)))), target=target))),
    "interface-api": ("c -executor=aot", "-interface-api=c", ahead_of_time),
    "workspace-byte-alignment": ("c -executor=aot -interface-api=c",
                                 "-workspace-byte-alignment=64", ahead_of_time),
    "constants-byte-alignment": ("c -executor=aot -interface-api=c",
                                 "-constants-byte-alignment=64", ahead_of_time),
}  # fmt: skip


def test_every_option_is_here_or_has_a_reason():
    listed = EFFECTS.keys() | WITHOUT_EFFECT.keys()
    assert cpu_options().keys() <= listed
    assert not EFFECTS.keys() & WITHOUT_EFFECT.keys()


def test_the_page_lists_every_option(repository):
    page = (repository / "docs" / "codegen.md").read_text(encoding="utf-8")
    section = page.partition("## Options of a CPU target")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|$", section, re.MULTILINE)
    named = {name: meaning for names, meaning in rows for name in re.findall(r"`([^`]+)`", names)}
    assert named.keys() == cpu_options().keys()
    assert {o: named[o] for o in WITHOUT_EFFECT if o in named} == {
        o: why for o, why in WITHOUT_EFFECT.items() if o in cpu_options()
    }


@pytest.mark.parametrize("option", [o for o in EFFECTS if o not in ("tag", "host")])
def test_an_option_has_an_effect(option):
    base, words, seen = EFFECTS[option]
    assert seen(Target(base)) != seen(Target(f"{base} {words}"))


@pytest.mark.parametrize("words", ["-fast-math=1", "-jit=orcjit", "-libs=mkl,cblas", "-runtime=c",
                                   "-link-params=1", "-from_device=0",
                                   "-unpacked-api=1"])  # fmt: skip
def test_what_is_without_effect_changes_nothing(words):
    assert words[1:].partition("=")[0] in WITHOUT_EFFECT
    assert code(Target(f"{X86} {words}")) == code(Target(X86))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-cl-opt=-enable-misched", "no option '-cl-opt'"),
        ("-mtune=znver33", "znver3"),
        ("-jit=luajit", "orcjit"),
        ("-march=haswell", "armv7e-m"),
        ("-march=armv7-a", "option of 32-bit ARM.*-mcpu"),
        ("-mfpu=none", "option of 32-bit ARM"),
        ("-mfloat-abi=hard", "option of 32-bit ARM"),
    ],
)
def test_what_cannot_be_done_is_refused(words, message):
    with pytest.raises(TargetError, match=message):
        Target(f"{X86} {words}")


def test_options_of_the_executor_without_it_are_refused():
    mod, params = keyword_net()
    with pytest.raises(TargetError, match=r'executor=Executor\("aot"'):
        relay.build(mod, target=Target("c -interface-api=c"), params=params)


def test_a_target_that_asks_for_an_executor_is_as_the_argument():
    mod, params = keyword_net()
    chosen = relay.backend.Executor("aot", {"interface-api": "c", "unpacked-api": True})
    text = "c -keys=arm_cpu -mcpu=cortex-m4"
    old = relay.build(mod, target=f"{text} -executor=aot -interface-api=c", params=params)
    new = relay.build(mod, text, executor=chosen, params=params)
    assert old.sources.source.partition("\n")[2] == new.sources.source.partition("\n")[2]
