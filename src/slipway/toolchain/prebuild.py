"""Building the C runtime into the package, so that machines without a compiler have it.

``python -m slipway.toolchain.prebuild`` (run before a wheel is packed) compiles the runtime library
for every Linux host against an old glibc, and with ``--servers`` the static device servers.  The
files go to ``slipway/crt/prebuilt/``, where `native` looks first; ``--clean`` removes them.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from slipway.toolchain import native, runtime_library, zig

SERVERS = ("x86_64-linux", "aarch64-linux", "armv7-linux", "riscv64-linux", "hexagon-linux")


def prebuild(*, servers: bool = False) -> list[Path]:
    """Compile everything into the package's ``crt/prebuilt`` folder and return the files."""
    made: list[Path] = []
    clean()
    for host in native.HOSTS:
        out = runtime_library.prebuilt_file(host, runtime_library.LIBRARY_NAME)
        out.parent.mkdir(parents=True, exist_ok=True)
        native.compile_host_runtime_with_zig(host, out)
        made.append(out)
    for triple in SERVERS if servers else ():
        out = runtime_library.prebuilt_file(zig.musl_target(triple), native.SERVER_NAME)
        out.parent.mkdir(parents=True, exist_ok=True)
        native.compile_server(zig.musl_target(triple), out)
        made.append(out)
    return made


def clean() -> None:
    """Remove what was built."""
    shutil.rmtree(runtime_library.CRT / "prebuilt", ignore_errors=True)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, prog="python -m slipway.toolchain.prebuild"
    )
    parser.add_argument("--servers", action="store_true", help="the static device servers too")
    parser.add_argument("--clean", action="store_true", help="remove what was built")
    options = parser.parse_args()
    if options.clean:
        clean()
        return
    for path in prebuild(servers=options.servers):
        print(f"{path.relative_to(runtime_library.CRT)}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
