"""The classic helper functions that make a target of a device's model name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import TargetError, did_you_mean
from slipway.target.target import MODELS, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

_ARM_MODELS = {
    "pixel": "-mtriple=arm64-linux-android -mattr=+neon",
    "pixel2": "-mtriple=arm64-linux-android -mattr=+neon",
    "mate10": "-mtriple=arm64-linux-android -mattr=+neon",
    "p20": "-mtriple=arm64-linux-android -mattr=+neon",
    "rasp3b": "-mtriple=armv7l-linux-gnueabihf -mattr=+neon",
    "rasp3b64": "-mtriple=aarch64-linux-gnu -mcpu=cortex-a53",
    "rasp4b": "-mtriple=armv8l-linux-gnueabihf -mcpu=cortex-a72 -mattr=+neon",
    "rasp4b64": "-mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
    "rk3399": "-mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
    "rk3588": "-mtriple=aarch64-linux-gnu -mcpu=cortex-a76",
    "jetson": "-mtriple=aarch64-linux-gnu -mcpu=cortex-a57",
    "pynq": "-mtriple=armv7a-linux-eabi -mattr=+neon",
    "ultra96": "-mtriple=aarch64-linux-gnu -mcpu=cortex-a53",
    "beagleai": "-mtriple=armv7a-linux-gnueabihf -mattr=+neon,+vfp4,+thumb2",
}
_MICRO_MODELS = {
    "host": "c", "atsamd51": "arm/cortex-m4", "imxrt10xx": "arm/cortex-m7",
    "mps2_an521": "arm/cortex-m33", "mps3_an547": "arm/cortex-m55",
    "nrf52840": "nordic/nrf52840", "nrf5340dk": "nordic/nrf5340",
    "stm32f746xx": "st/stm32f746-discovery", "stm32l4r5zi": "st/nucleo-l4r5zi",
    "zynq_mp_r5": "c -mcpu=cortex-r5",
}  # fmt: skip


def _extra(options: Any) -> str:
    if not options:
        return ""
    return " " + (options if isinstance(options, str) else " ".join(options))


def arm_cpu(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Return the target of an ARM device ("rasp4b64", "rk3399", ...); raises TargetError."""
    if model != "unknown" and model not in _ARM_MODELS:
        raise TargetError(f"unknown ARM model {model!r}.{did_you_mean(model, _ARM_MODELS)}")
    processor = _ARM_MODELS.get(model, "-mtriple=aarch64-linux-gnu")
    return Target(
        f"llvm -keys=arm_cpu,cpu -device=arm_cpu -model={model} {processor}{_extra(options)}"
    )


def riscv_cpu(model: str = "sifive-u54", options: str | Sequence[str] | None = None) -> Target:
    """Return the target of a RISC-V CPU, by LLVM's name of it."""
    bits = 32 if model.startswith(("sifive-e2", "sifive-e3")) else 64
    return Target(
        f"llvm -keys=arm_cpu,cpu -mtriple=riscv{bits}-unknown-linux-gnu -mcpu={model}"
        f"{_extra(options)}"
    )


def micro(model: str = "host", options: str | Sequence[str] | None = None) -> Target:
    """Return the C target of a microcontroller ("host", "nrf52840", "stm32f746xx", ...)."""
    if model not in _MICRO_MODELS:
        raise TargetError(f"unknown microcontroller {model!r}.{did_you_mean(model, _MICRO_MODELS)}")
    return Target(f"{_MICRO_MODELS[model]} -model={model}{_extra(options)}")


def cuda(
    model: str = "unknown", arch: str = "sm_50", options: str | Sequence[str] | None = None
) -> Target:
    """Return the target of an NVIDIA GPU."""
    return Target(f"cuda -model={model} -arch={arch}{_extra(options)}")


def mali(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Return the OpenCL target of an ARM Mali GPU."""
    return Target(f"opencl -device=mali -model={model}{_extra(options)}")


def intel_graphics(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Return the OpenCL target of an Intel GPU."""
    return Target(
        f"opencl -device=intel_graphics -model={model} -thread_warp_size=16{_extra(options)}"
    )


def rocm(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Return the target of an AMD GPU."""
    return Target(f"rocm -model={model}{_extra(options)}")


def bifrost(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Return the OpenCL target of an ARM Mali GPU of the Bifrost family."""
    return Target(f"opencl -device=bifrost -model={model}{_extra(options)}")


def vta(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Return the target of the accelerator VTA, for which no code is made."""
    return Target(f"ext_dev -keys=vta,cpu -device=vta -model={model}{_extra(options)}")


def hexagon(cpu_ver: str = "v68", hvx: int | None = None, **options: Any) -> Target:
    """Return the Hexagon target of DSP version `cpu_ver`; `hvx`: bytes of a vector (0, 64, 128)."""
    bytes_ = 128 if hvx is None else hvx
    vectors = f" -mattr=+hvx{cpu_ver},+hvx-length{bytes_}b" if bytes_ else " -mattr=-hvx"
    extra = "".join(f" -{name.replace('_', '-')}={value}" for name, value in options.items())
    return Target(f"hexagon -mcpu=hexagon{cpu_ver}{vectors}{extra}")


MODELS.update(
    {n: f for n, f in globals().items() if n[0] != "_" and getattr(f, "__module__", "") == __name__}
)
