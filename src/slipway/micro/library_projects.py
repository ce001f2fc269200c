"""Templates that wrap the two generated files for somebody else's build: cmake, Zephyr, Arduino."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentValueError, ToolchainError
from slipway.micro.baremetal import MODEL_ARCHIVE, TEMPLATE_SOURCES, copy_runtime
from slipway.micro.exports.readme import project_readme
from slipway.micro.model_config import model_config
from slipway.micro.model_library import unpack_into_project
from slipway.micro.program import is_ahead_of_time, write_program
from slipway.micro.project_api import server
from slipway.micro.toolchain import find_tool, run_tool

_GENERATE = ["generate_project"]


def _is_driven(options: dict[str, Any]) -> bool:
    return options.get("project_type") == "host_driven"


def _heap_option() -> server.ProjectOption:
    return server.ProjectOption(
        "heap_bytes",
        optional=_GENERATE,
        type="int",
        default=16384,
        help="Bytes for tensors and messages of a host_driven project.",
    )


def add_session(
    project_dir: Path, source: Path, model: dict[str, Any], options: dict[str, Any]
) -> None:
    """Add the program that serves RPC sessions, for a board with the functions of board.h."""
    for name in ("board.h", "heap.c", "main_rpc.c", "model_aot.c", "program.h"):
        shutil.copyfile(TEMPLATE_SOURCES / name, source / name)
    write_program(project_dir, model, source)
    name = str(options.get("board") or "board")
    # Cores of Arduino pass a BOARD_NAME of their own to the compiler.
    (source / "board_config.h").write_text(f'#undef BOARD_NAME\n#define BOARD_NAME "{name}"\n')


class LibraryHandler(server.ProjectAPIHandler):
    """What these templates share: files with @NAME@ filled in, and no transport of their own."""

    platform = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def is_template(self) -> bool:
        """Whether this is the template itself."""
        return not (self.folder / MODEL_ARCHIVE).exists()

    def options(self) -> list[server.ProjectOption]:
        """Return what the template lets its user choose."""
        return server.default_project_options()

    def server_info_query(self, tvm_version: str) -> server.ServerInfo:
        """Describe the template or project."""
        archive = None if self.is_template else self.folder / MODEL_ARCHIVE
        return server.ServerInfo(self.platform, self.is_template, archive, self.options())

    def generate_project(
        self,
        model_library_format_path: Path,
        standalone_crt_dir: Path,
        project_dir: Path,
        options: dict[str, Any],
    ) -> None:
        """Unpack the model and lay the template's files around it."""
        self.runtime = Path(standalone_crt_dir)
        named = self.named(options)
        project_dir.mkdir(parents=True, exist_ok=True)
        model = unpack_into_project(model_library_format_path, project_dir)
        shutil.copyfile(model_library_format_path, project_dir / MODEL_ARCHIVE)
        shutil.copyfile(
            self.folder / "microtvm_api_server.py", project_dir / "microtvm_api_server.py"
        )
        name = str(model["model_name"])
        values = {"@NAME@": name, "@HEADER@": f"tvmgen_{name}.h", **self.values(options)}
        for path in sorted((self.folder / "files").rglob("*")):
            if path.is_file():
                text = path.read_text(encoding="utf-8")
                for word, value in values.items():
                    text = text.replace(word, value)
                relative = str(path.relative_to(self.folder / "files")).replace("@NAME@", name)
                target = project_dir / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        (project_dir / "project_options.txt").write_text(
            "".join(f"{key}={value}\n" for key, value in sorted(options.items()))
        )
        readme = project_readme(self.platform, model, {**options, **named})
        (project_dir / "README.md").write_text(readme, encoding="utf-8")
        self.finish(project_dir, model, options)

    def values(self, options: dict[str, Any]) -> dict[str, str]:
        """Return further names in the template's files, and what stands for them."""
        return {}

    def named(self, options: dict[str, Any]) -> dict[str, str]:
        """Return `board_name` where the tool of the README knows the board by another name."""
        return {}

    def finish(self, project_dir: Path, model: dict[str, Any], options: dict[str, Any]) -> None:
        """Add what only this template needs."""

    def chosen(self, options: dict[str, Any]) -> dict[str, str]:
        """Return the options of generation, overridden by those of this call."""
        stored: dict[str, str] = {}
        path = self.folder / "project_options.txt"
        if path.is_file():
            for line in path.read_text().splitlines():
                key, _, value = line.partition("=")
                stored[key] = value
        return {**stored, **{k: str(v) for k, v in options.items() if v is not None}}

    def flash(self, options: dict[str, Any]) -> None:
        """A library is not programmed onto anything."""
        raise ToolchainError(f"a {self.platform} project is a library; there is nothing to flash")

    def open_transport(self, options: dict[str, Any]) -> server.TransportTimeouts:
        """These templates run no session."""
        raise ToolchainError(
            f"a {self.platform} project has no transport; a host_driven session needs the template "
            "baremetal or crt"
        )

    def close_transport(self) -> None:
        """Nothing is open."""

    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        """Nothing is open."""
        raise server.TransportClosedError()

    def write_transport(self, data: bytes, timeout_sec: float | None) -> None:
        """Nothing is open."""
        raise server.TransportClosedError()


class CMakeHandler(LibraryHandler):
    """A static library to drop into any project."""

    platform = "cmake"

    def options(self) -> list[server.ProjectOption]:
        """Return the options; a library needs neither board nor type."""
        return server.default_project_options(
            project_type={"required": None, "optional": _GENERATE, "default": "library"},
            board={"required": None, "optional": _GENERATE},
        )

    def build(self, options: dict[str, Any]) -> None:
        """Build the library for this machine, or with CMAKE_TOOLCHAIN_FILE for another."""
        cmake = find_tool("cmake")
        out = self.folder / "build"
        configure = [cmake, "-S", str(self.folder), "-B", str(out), "-DCMAKE_BUILD_TYPE=Release"]
        run_tool(configure, "configuring the library")
        run_tool([cmake, "--build", str(out)], "building the library")


class ZephyrHandler(LibraryHandler):
    """A Zephyr application; built where a Zephyr tree and west are."""

    platform = "zephyr"

    def options(self) -> list[server.ProjectOption]:
        """Return the options: the board by Zephyr's name, and where Zephyr is."""
        west = server.ProjectOption(
            "west_cmd", optional=["build", "flash"], type="str", default="west", help="The west."
        )
        base = server.ProjectOption(
            "zephyr_base",
            optional=["generate_project", "build"],
            type="str",
            default=os.environ.get("ZEPHYR_BASE"),
            help="Zephyr's tree.",
        )
        defaults = server.default_project_options(
            project_type={"choices": ["example_project", "host_driven"]}
        )
        return [*defaults, west, base, _heap_option()]

    def values(self, options: dict[str, Any]) -> dict[str, str]:
        """Return the application's sources: a program of its own, or sessions with a host."""
        driven = "src/main_rpc.c src/heap.c src/program.c src/board_zephyr.c"
        return {"@MAIN@": driven if _is_driven(options) else "src/main.c"}

    def finish(self, project_dir: Path, model: dict[str, Any], options: dict[str, Any]) -> None:
        """Add the model's description, and the runtime where a host drives it."""
        source = project_dir / "src"
        (source / "model_config.h").write_text(model_config(model, options))
        if _is_driven(options):
            add_session(project_dir, source, model, options)
            copy_runtime(self.runtime, project_dir / "crt")
            if (source / "model_aot.c").exists():
                path = project_dir / "CMakeLists.txt"
                text = path.read_text().replace("src/program.c", "src/program.c src/model_aot.c")
                path.write_text(text)

    def _west(self, options: dict[str, Any], *arguments: str) -> None:
        chosen = self.chosen(options)
        base = chosen.get("zephyr_base") or os.environ.get("ZEPHYR_BASE")
        if not base or not Path(base).is_dir():
            raise ToolchainError(
                "building needs a Zephyr tree: set ZEPHYR_BASE, or the option zephyr_base "
                "(https://docs.zephyrproject.org, Getting Started)"
            )
        os.environ["ZEPHYR_BASE"] = base
        west = find_tool(chosen.get("west_cmd") or "west")
        build = str(self.folder / "build")
        run_tool([west, *arguments, "-d", build], f"west {arguments[0]}", timeout_s=1800)

    def build(self, options: dict[str, Any]) -> None:
        """Run west build."""
        board = self.chosen(options).get("board", "")
        self._west(options, "build", "-b", board, str(self.folder))

    def flash(self, options: dict[str, Any]) -> None:
        """Run west flash."""
        self._west(options, "flash")


# Names of boards in classic scripts, and arduino-cli's.
ARDUINO_BOARDS = {
    "nano33ble": "arduino:mbed_nano:nano33ble",
    "nanorp2040connect": "arduino:mbed_nano:nanorp2040connect",
    "nicla_sense_me": "arduino:mbed_nicla:nicla_sense",
    "portenta_h7": "arduino:mbed_portenta:envie_m7",
    "due": "arduino:sam:arduino_due_x_dbg",
    "feathers2": "esp32:esp32:feathers2",
    "metrom4": "adafruit:samd:adafruit_metro_m4",
    "pico": "arduino:mbed_rp2040:pico",
    "spresense": "SPRESENSE:spresense:spresense",
    "wio_terminal": "Seeeduino:samd:seeed_wio_terminal",
}


FULL_NAME = "VENDOR:CORE:BOARD"  # as `arduino-cli board listall` has it


def arduino_name(board: str) -> str:
    """Return arduino-cli's name of a board, which may be that already."""
    return ARDUINO_BOARDS.get(board, board)


class ArduinoHandler(LibraryHandler):
    """A sketch with the model in its src folder; built where arduino-cli is."""

    platform = "arduino"

    def named(self, options: dict[str, Any]) -> dict[str, str]:
        """Return arduino-cli's name of the board."""
        return {"board_name": arduino_name(str(options["board"]))}

    def options(self) -> list[server.ProjectOption]:
        """Return the options: a board (`arduino_name`), arduino-cli, and the port to flash."""
        command = server.ProjectOption(
            "arduino_cli_cmd",
            optional=["generate_project", "build", "flash"],
            type="str",
            default="arduino-cli",
            help="The arduino-cli.",
        )
        port = server.ProjectOption(
            "port", optional=["generate_project", "flash"], type="str", help="Serial port."
        )
        defaults = server.default_project_options(
            board={"choices": [*sorted(ARDUINO_BOARDS), FULL_NAME]},
            project_type={"choices": ["example_project", "host_driven"]},
        )
        return [*defaults, command, port, _heap_option()]

    def finish(self, project_dir: Path, model: dict[str, Any], options: dict[str, Any]) -> None:
        """Arrange the files as Arduino wants them: a sketch named after its folder, and src."""
        sketch = project_dir / f"{project_dir.name}.ino"
        (project_dir / "sketch.ino").rename(sketch)
        source = project_dir / "src"
        source.mkdir(exist_ok=True)
        generated = project_dir / "model" / "codegen" / "host"
        for path in sorted([*generated.glob("src/*.c"), *generated.glob("include/*.h")]):
            shutil.copyfile(path, source / path.name)
        text = model_config(model, options).replace(
            f"<tvmgen_{model['model_name']}.h>", f'"tvmgen_{model["model_name"]}.h"'
        )
        (source / "model_config.h").write_text(text)
        if _is_driven(options):
            text = (self.folder / "host_driven.ino").read_text()
            sketch.write_text(text.replace("@NAME@", str(model["model_name"])))
            self._add_session(project_dir, source, model, options)

    def _add_session(
        self, project_dir: Path, source: Path, model: dict[str, Any], options: dict[str, Any]
    ) -> None:
        """Add the runtime: Arduino compiles what lies in src, and knows no include paths."""
        if not is_ahead_of_time(model):
            raise ArgumentValueError(
                "an Arduino sketch takes models compiled ahead of time: build it with "
                "executor=Executor('aot')"
            )
        add_session(project_dir, source, model, options)
        crt = project_dir / "crt"
        copy_runtime(self.runtime, crt)
        headers = source / "slipway"
        (crt / "include" / "slipway").rename(headers)
        for path in sorted((crt / "src").iterdir()):
            path.rename(source / path.name)
        shutil.rmtree(crt)  # the headers of C++, which the sketch does not use
        for path in headers.glob("*.h"):
            path.write_text(path.read_text().replace('#include "slipway/', '#include "'))
        abi = headers / "abi.h"
        flags = ("SLW_STATIC 1", "SLW_NO_THREADS 1", "SLW_RPC_MESSAGE_BYTES 512")
        abi.write_text("".join(f"#define {flag}\n" for flag in flags) + abi.read_text())
        main = source / "main_rpc.c"
        main.write_text(
            main.read_text().replace(
                "int main(void)", "int slipway_main(void);\nint slipway_main(void)"
            )
        )

    def _fqbn(self, options: dict[str, Any]) -> tuple[str, str]:
        chosen = self.chosen(options)
        cli = find_tool(chosen.get("arduino_cli_cmd") or "arduino-cli")
        return cli, arduino_name(chosen["board"])

    def build(self, options: dict[str, Any]) -> None:
        """Run arduino-cli compile."""
        cli, board = self._fqbn(options)
        command = [cli, "compile", "--fqbn", board, "--build-path", str(self.folder / "build")]
        run_tool([*command, str(self.folder)], "arduino-cli compile", timeout_s=1800)

    def flash(self, options: dict[str, Any]) -> None:
        """Run arduino-cli upload."""
        cli, board = self._fqbn(options)
        port = self.chosen(options).get("port")
        command = [cli, "upload", "--fqbn", board, "--input-dir", str(self.folder / "build")]
        command += ["--port", port] if port else []
        run_tool([*command, str(self.folder)], "arduino-cli upload", timeout_s=600)
