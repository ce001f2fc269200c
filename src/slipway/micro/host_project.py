"""The template "crt": the model and the device runtime as a process of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from slipway.errors import ToolchainError
from slipway.micro.baremetal import (
    IMAGE,
    MODEL_ARCHIVE,
    SESSION_SOURCES,
    BaremetalHandler,
    copy_runtime,
)
from slipway.micro.emulator import SerialProcess
from slipway.micro.exports.readme import project_readme
from slipway.micro.model_config import model_config
from slipway.micro.model_library import unpack_into_project
from slipway.micro.program import write_program
from slipway.micro.project_api import server
from slipway.micro.toolchain import kept_objects, run_tool


class CrtHandler(BaremetalHandler):
    """A project whose device is a process; what a board runs, with this machine's compiler."""

    platform = "host"

    def options(self) -> list[server.ProjectOption]:
        """Return what the template lets its user choose; nothing is required."""
        generate = ["generate_project"]
        defaults = server.default_project_options(
            project_type={"required": None, "optional": generate, "default": "host_driven"},
            board={"required": None, "optional": generate, "default": "host"},
        )
        heap = server.ProjectOption(
            "heap_bytes", optional=generate, type="int", default=1 << 20, help="Bytes for tensors."
        )
        return [*defaults, heap]

    def generate_project(
        self,
        model_library_format_path: Path,
        standalone_crt_dir: Path,
        project_dir: Path,
        options: dict[str, Any],
    ) -> None:
        """Lay the project out."""
        project_dir.mkdir(parents=True, exist_ok=True)
        model = unpack_into_project(model_library_format_path, project_dir)
        shutil.copyfile(model_library_format_path, project_dir / MODEL_ARCHIVE)
        shutil.copyfile(
            self.folder / "microtvm_api_server.py", project_dir / "microtvm_api_server.py"
        )
        shutil.copytree(self.folder / "src", project_dir / "board")
        shared = self.folder.parent / "baremetal" / "src"
        for name in ("board.h", "heap.c", "main_rpc.c", "model_aot.c", "program.h"):
            shutil.copyfile(shared / name, project_dir / "board" / name)
        copy_runtime(Path(standalone_crt_dir), project_dir / "crt")
        (project_dir / "board" / "board_config.h").write_text('#define BOARD_NAME "host"\n')
        heap = {"heap_bytes": options.get("heap_bytes") or 1 << 20}
        (project_dir / "board" / "model_config.h").write_text(model_config(model, heap))
        write_program(project_dir, model)
        (project_dir / "README.md").write_text(project_readme(self.platform, model, {}))

    def build(self, options: dict[str, Any]) -> None:
        """Compile the process with cc."""
        compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
        if compiler is None:
            raise ToolchainError("there is no C compiler; on Debian: sudo apt-get install gcc")
        folder = self.folder
        (folder / "build").mkdir(exist_ok=True)
        sources = [*sorted((folder / "board").glob("*.c"))]
        sources += sorted((folder / "model" / "codegen" / "host" / "src").glob("*.c"))
        sources += sorted((folder / "model" / "codegen" / "host" / "lib").glob("*.o"))
        objects = folder / "build" / "crt" / "src"
        sources += [objects / f"{name}.o" for name in SESSION_SOURCES]
        flags = ["-std=c11", "-O2", "-D_GNU_SOURCE", "-DSLW_STATIC", "-DSLW_NO_THREADS"]
        includes = ("board", "crt/include", "crt/src", "model/codegen/host/include")
        command = [compiler, *flags, *(f"-I{folder / include}" for include in includes)]
        shutil.rmtree(objects, ignore_errors=True)  # somebody may have changed a file since
        with kept_objects(folder, compiler, " ".join(flags)) as missing:
            for source in missing:
                made = objects / f"{source.stem}.o"
                run_tool([*command, "-c", "-o", str(made), str(source)], "building the runtime")
        run_tool([*command, "-o", str(folder / IMAGE), *map(str, sources)], "building the process")

    def flash(self, options: dict[str, Any]) -> None:
        """Nothing to program."""
        if not (self.folder / IMAGE).is_file():
            raise FileNotFoundError(f"{self.folder / IMAGE} is missing; build the project first")

    def open_transport(self, options: dict[str, Any]) -> server.TransportTimeouts:
        """Start the process."""
        self.flash(options)
        self.line = SerialProcess([str(self.folder / IMAGE)])
        return server.TransportTimeouts(0.0, 10.0, 60.0)
