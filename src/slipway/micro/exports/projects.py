"""Templates that carry a model into the build systems of vendors: PlatformIO, ESP-IDF, CMSIS-Pack.

They take a model compiled ahead of time to C: their builds compile sources for cores of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentValueError, ToolchainError
from slipway.micro.library_projects import LibraryHandler
from slipway.micro.model_config import model_config
from slipway.micro.program import is_ahead_of_time
from slipway.micro.project_api import server
from slipway.micro.toolchain import find_tool, run_tool

_GENERATE = ["generate_project"]
_EXAMPLE: dict[str, Any] = {
    "choices": ["example_project"],
    "required": None,
    "optional": _GENERATE,
    "default": "example_project",
}


class SourceHandler(LibraryHandler):
    """What these templates share: the model's sources move to where the build looks for them."""

    def place(self, project: Path, model: dict[str, Any], sources: Path, headers: Path) -> None:
        """Move the generated files of an unpacked model; raise for what is no C program."""
        host = project / "model" / "codegen" / "host"
        if not is_ahead_of_time(model) or not any(host.glob("src/*.c")):
            raise ArgumentValueError(
                f"a {self.platform} project takes the C source of a model compiled ahead of time: "
                "build it for a target of kind c with executor=Executor('aot')"
            )
        for kind, target in (("src/*.c", sources), ("include/*.h", headers)):
            target.mkdir(parents=True, exist_ok=True)
            for path in sorted(host.glob(kind)):
                shutil.move(path, target / path.name)
        shutil.rmtree(project / "model" / "codegen")


class PlatformIOHandler(SourceHandler):
    """A PlatformIO project: the model as a library, and a sketch that runs it."""

    platform = "platformio"

    def options(self) -> list[server.ProjectOption]:
        """Return the options: the board and its platform by PlatformIO's names."""
        option = server.ProjectOption
        return [
            *server.default_project_options(
                project_type=_EXAMPLE,
                board={"help": "The board by PlatformIO's name, nucleo_l432kc for example."},
            ),
            option(
                "platform",
                optional=_GENERATE,
                type="str",
                help="PlatformIO's platform, ststm32 for example; known for common boards.",
            ),
            option("port", optional=["generate_project", "flash"], type="str", help="Serial port."),
        ]

    def values(self, options: dict[str, Any]) -> dict[str, str]:
        """Return the board, and the platform that builds for it."""
        board = str(options["board"])
        platform = options.get("platform") or _platform_of(board)
        return {"@BOARD@": board, "@PLATFORM@": str(platform)}

    def finish(self, project_dir: Path, model: dict[str, Any], options: dict[str, Any]) -> None:
        """Put the model into its library."""
        source = project_dir / "lib" / str(model["model_name"]) / "src"
        self.place(project_dir, model, source, source)
        (project_dir / "src" / "model_config.h").write_text(model_config(model, options))

    def build(self, options: dict[str, Any]) -> None:
        """Run pio run."""
        command = [find_tool("pio"), "run", "--project-dir", str(self.folder)]
        run_tool(command, "pio run", timeout_s=1800)

    def flash(self, options: dict[str, Any]) -> None:
        """Run pio's target upload."""
        command = [find_tool("pio"), "run", "--project-dir", str(self.folder), "--target", "upload"]
        port = self.chosen(options).get("port")
        command += ["--upload-port", port] if port else []
        run_tool(command, "pio run --target upload", timeout_s=600)


# The first letters of PlatformIO's names of boards, and the platform that has them.
_PLATFORMS = (
    ("nucleo_|disco_|bluepill|blackpill|genericSTM32", "ststm32"),
    ("esp32|esp-wrover|lolin|m5stack|seeed_xiao_esp32", "espressif32"),
    ("pico|rpipico|nanorp2040", "raspberrypi"),
    ("nano33ble|nrf5|adafruit_feather_nrf52|bbcmicrobit", "nordicnrf52"),
    ("teensy", "teensy"),
    ("uno_r4|portenta_c33", "renesas-ra"),
    ("due", "atmelsam"),
    ("mkr|zero|adafruit_metro_m4|seeed_wio", "atmelsam"),
)


def _platform_of(board: str) -> str:
    for names, platform in _PLATFORMS:
        if re.match(names, board, re.IGNORECASE):
            return platform
    raise ArgumentValueError(
        f"which of PlatformIO's platforms the board {board!r} belongs to is not known here; give "
        "the option platform, as `pio boards` lists it"
    )


class EspIdfHandler(SourceHandler):
    """An ESP-IDF application: the model as a component, and a program that runs it."""

    platform = "espidf"

    def options(self) -> list[server.ProjectOption]:
        """Return the options: the chip by ESP-IDF's name."""
        option = server.ProjectOption
        return [
            *server.default_project_options(
                project_type=_EXAMPLE,
                board={"help": "The chip by ESP-IDF's name, esp32c3 for example."},
            ),
            option("port", optional=["generate_project", "flash"], type="str", help="Serial port."),
        ]

    def finish(self, project_dir: Path, model: dict[str, Any], options: dict[str, Any]) -> None:
        """Put the model into its component."""
        component = project_dir / "components" / str(model["model_name"])
        self.place(project_dir, model, component, component / "include")
        listed = " ".join(sorted(path.name for path in component.glob("*.c")))
        path = component / "CMakeLists.txt"
        path.write_text(path.read_text().replace("@SOURCES@", listed))
        (project_dir / "main" / "model_config.h").write_text(model_config(model, options))

    def _idf(self, purpose: str, *arguments: str, timeout_s: float) -> None:
        if not os.environ.get("IDF_PATH"):
            raise ToolchainError(
                f"{purpose} needs ESP-IDF: install it and run its export.sh, which sets IDF_PATH "
                "(https://docs.espressif.com, Get Started)"
            )
        command = [find_tool("idf.py"), "-C", str(self.folder), *arguments]
        run_tool(command, purpose, timeout_s=timeout_s)

    def build(self, options: dict[str, Any]) -> None:
        """Choose the chip and build."""
        chip = self.chosen(options)["board"]
        self._idf("idf.py build", "set-target", chip, "build", timeout_s=1800)

    def flash(self, options: dict[str, Any]) -> None:
        """Run idf.py flash."""
        port = self.chosen(options).get("port")
        self._idf("idf.py flash", *(["-p", port] if port else []), "flash", timeout_s=600)


class CmsisPackHandler(SourceHandler):
    """A CMSIS-Pack, which Keil, CSolution, STM32CubeIDE and others install."""

    platform = "cmsis"

    def options(self) -> list[server.ProjectOption]:
        """Return the options; a pack needs neither board nor type."""
        return server.default_project_options(
            project_type={"required": None, "optional": _GENERATE, "default": "library"},
            board={"required": None, "optional": _GENERATE},
        )

    def finish(self, project_dir: Path, model: dict[str, Any], options: dict[str, Any]) -> None:
        """Lay the pack out, and write its description."""
        self.place(project_dir, model, project_dir / "source", project_dir / "include")
        target = " ".join(map(str, model.get("target", ())))
        core = re.search(r"-mcpu=cortex-m(\w+)", target)
        rows = [(f"include/{p.name}", "header") for p in (project_dir / "include").glob("*.h")]
        rows += [(f"source/{p.name}", "source") for p in (project_dir / "source").glob("*.c")]
        files = "\n".join(
            f'        <file category="{category}" name="{name}"/>' for name, category in rows
        )
        path = project_dir / f"Slipway.{model['model_name']}.pdsc"
        text = path.read_text(encoding="utf-8").replace("@FILES@", files)
        text = text.replace("@DATE@", str(model["export_datetime"])[:10])
        text = text.replace("@CORE@", _pack_core(core.group(1) if core else ""))
        path.write_text(text, encoding="utf-8")
        (project_dir / "LICENSE.txt").write_text(
            "The code was generated from your model. What comes from Slipway in it is under the "
            "Apache License 2.0, https://www.apache.org/licenses/LICENSE-2.0\n"
        )

    def build(self, options: dict[str, Any]) -> None:
        """Write the pack: an archive of what its description lists."""
        description = next(self.folder.glob("*.pdsc"))
        text = description.read_text(encoding="utf-8")
        version = re.search(r'<release version="([^"]+)"', text)
        assert version is not None
        names = [description.name, "LICENSE.txt", *re.findall(r'<file [^>]*name="([^"]+)"', text)]
        out = self.folder / "build"
        out.mkdir(exist_ok=True)
        pack = out / f"{description.stem}.{version.group(1)}.pack"
        with zipfile.ZipFile(pack, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                info = zipfile.ZipInfo(
                    name, (1980, 1, 1, 0, 0, 0)
                )  # the same files, the same bytes
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, (self.folder / name).read_bytes())


def _pack_core(suffix: str) -> str:
    """Return a core as CMSIS writes it; any where the target names none."""
    found = {"0plus": "Cortex-M0+", "35p": "Cortex-M35P"}.get(suffix)
    return found or (f"Cortex-M{suffix}" if suffix.isdigit() else "*")
