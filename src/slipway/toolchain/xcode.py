"""Apple's tools, which `xcrun` finds: libraries for macOS and iOS, and Metal's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import ArgumentValueError, ToolchainError
from slipway.toolchain.tempdir import scratch

# sdk -> (clang's option for the oldest system, the oldest system, Metal's language)
_SDKS = {
    "macosx": ("-mmacosx-version-min", "10.13", "macos-metal2.3"),
    "iphoneos": ("-miphoneos-version-min", "11.0", "ios-metal2.3"),
    "iphonesimulator": ("-mios-simulator-version-min", "11.0", "ios-metal2.3"),
}


def xcrun(cmd: Sequence[str]) -> str:
    """Run ``xcrun <cmd>`` and return what it printed; ToolchainError with its words if it fails."""
    program = shutil.which("xcrun")
    if program is None:
        raise ToolchainError(
            "there is no program `xcrun`: Apple's tools are part of Xcode, and run on macOS. "
            "Slipway links for macOS without them: export_library for a target of macOS."
        )
    done = subprocess.run(
        [program, *cmd], capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise ToolchainError(
            f"xcrun {' '.join(cmd)} failed: {(done.stderr or done.stdout).strip()}"
        )
    return done.stdout.strip()


def _sdk(name: str) -> tuple[str, str, str]:
    if name not in _SDKS:
        raise ArgumentValueError(f"there is no sdk {name!r}; there are {', '.join(_SDKS)}.")
    return _SDKS[name]


def _oldest(sdk: str, version: str | None) -> str:
    option, default, _ = _sdk(sdk)
    return f"{option}={version or default}"


def create_dylib(
    output: str,
    objects: str | Sequence[str],
    arch: str,
    sdk: str = "macosx",
    min_os_version: str | None = None,
) -> None:
    """Link objects into a dynamic library for an architecture ("arm64", "x86_64") of an sdk."""
    oldest = _oldest(sdk, min_os_version)
    files = [objects] if isinstance(objects, str) else list(objects)
    root = xcrun(["-sdk", sdk, "--show-sdk-path"])
    xcrun(
        ["-sdk", sdk, "clang", "-dynamiclib", "-arch", arch, "-isysroot", root, oldest,
         "-o", output, *files]
    )  # fmt: skip


create_dylib.output_format = "dylib"  # type: ignore[attr-defined]


def compile_metal(
    code: str,
    path_target: str | None = None,
    sdk: str = "macosx",
    min_os_version: str | None = None,
) -> bytearray:
    """Compile Metal's language to a library, which also stays at `path_target`."""
    oldest, language = _oldest(sdk, min_os_version), _sdk(sdk)[2]
    with scratch() as folder:
        source, middle = Path(folder, "my_lib.metal"), Path(folder, "my_lib.air")
        target = Path(path_target or Path(folder, "my_lib.metallib"))
        source.write_text(code, encoding="utf-8")
        xcrun(
            ["-sdk", sdk, "metal", f"-std={language}", oldest, "-O3", "-c", str(source),
             "-o", str(middle)]
        )  # fmt: skip
        xcrun(["-sdk", sdk, "metallib", str(middle), "-o", str(target)])
        return bytearray(target.read_bytes())


def codesign(lib: str) -> None:
    """Sign a library for a phone, with the identity of the variable TVM_IOS_CODESIGN.

    Raises ToolchainError without that variable, without `codesign`, and with its words if it fails.
    """
    identity = os.environ.get("TVM_IOS_CODESIGN")
    if not identity:
        raise ToolchainError(
            "the environment variable TVM_IOS_CODESIGN is not set: it names the identity that "
            "signs, one that `security find-identity -v -p codesigning` lists"
        )
    program = shutil.which("codesign")
    if program is None:
        raise ToolchainError("there is no program `codesign`: it is a part of macOS")
    command = [program, "--force", "--sign", identity, lib]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise ToolchainError(f"codesign {lib} failed: {(done.stderr or done.stdout).strip()}")
