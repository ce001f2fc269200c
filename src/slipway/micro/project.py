"""Projects: a template turned into a directory that builds, flashes and talks to firmware."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentTypeError, ArgumentValueError, SlipwayError, did_you_mean
from slipway.libinfo import find_crt_include_path
from slipway.micro.exports.port_templates import CRT_CONFIG, CRT_CONFIG_TEXT
from slipway.micro.model_library import ModelLibrary
from slipway.micro.model_library_format import export_model_library_format
from slipway.micro.project_api import client
from slipway.micro.transport import Transport, TransportTimeouts
from slipway.toolchain.tempdir import scratch

TEMPLATES = ("crt", "baremetal", "cmake", "zephyr", "arduino", "platformio", "espidf", "cmsis")


class TemplateProjectError(SlipwayError):
    """A generated project was expected, and the directory is a template."""


class NotATemplateProjectError(SlipwayError):
    """A template was expected, and the directory is a generated project."""


def get_microtvm_template_projects(platform: str) -> str:
    """Return the directory of a template that comes with Slipway.

    `platform` is one of `TEMPLATES`; "crt" is a process of this machine.
    """
    folder = Path(__file__).parent.parent / "boards" / platform
    if platform not in TEMPLATES or not (folder / client.SERVER_PYTHON_FILENAME).is_file():
        known = [t for t in TEMPLATES if (folder.parent / t).is_dir()]
        raise ArgumentValueError(
            f"there is no project template {platform!r}; there are {', '.join(known)}."
            + did_you_mean(platform, known)
        )
    return str(folder)


def copy_crt_config_header(platform: str, output_path: str | Path) -> None:
    """Write crt_config.h for a platform, a project template's name, to a file or into a folder."""
    get_microtvm_template_projects(platform)
    path = Path(output_path)
    target = path / CRT_CONFIG if path.is_dir() else path
    try:
        target.write_text(CRT_CONFIG_TEXT, encoding="utf-8")
    except OSError as error:
        raise ArgumentValueError(
            f"copy_crt_config_header cannot write {target}: {error.strerror or error}"
        ) from None


class ProjectTransport(Transport):
    """The byte stream to a project's running firmware; a context manager.

    `board_file` is the project's description of its board, where it has one.
    """

    def __init__(
        self,
        api_client: client.ProjectAPIClient,
        options: Mapping[str, Any] | None,
        board_file: Path | None = None,
    ) -> None:
        self.board_file = board_file
        self._client = api_client
        self._options = options
        self._timeouts: TransportTimeouts | None = None

    @property
    def is_open(self) -> bool:
        """Whether the firmware can be talked to."""
        return self._timeouts is not None

    def timeouts(self) -> TransportTimeouts:
        """Return the waiting times, in seconds, that the project asks for."""
        if self._timeouts is None:
            raise SlipwayError("the transport is not open; open it first, or use `with`")
        return self._timeouts

    def open(self) -> None:
        """Start or connect to the firmware."""
        reply = self._client.open_transport(self._options)
        self._timeouts = TransportTimeouts(**reply["timeouts"])

    def close(self) -> None:
        """Close the stream; nothing happens when it is closed."""
        if self._timeouts is not None and not self._client.is_shutdown:
            self._timeouts = None
            self._client.close_transport()

    def read(self, n: int, timeout_sec: float | None) -> bytes:
        """Read 1 to `n` bytes; raises IoTimeoutError when none came in time."""
        return self._client.read_transport(n, timeout_sec)

    def write(self, data: bytes, timeout_sec: float | None) -> None:
        """Write all of `data`."""
        self._client.write_transport(data, timeout_sec)


class GeneratedProject:
    """A project directory: `build`, `flash`, `transport`."""

    @classmethod
    def from_directory(
        cls, project_dir: str | Path, options: Mapping[str, Any] | None = None
    ) -> GeneratedProject:
        """Open a directory that a template generated."""
        return cls(client.instantiate_from_dir(project_dir), options, Path(project_dir))

    def __init__(
        self,
        api_client: client.ProjectAPIClient,
        options: Mapping[str, Any] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._client = api_client
        self._options = options
        self._folder = folder
        self._info = api_client.server_info_query()
        if self._info["is_template"]:
            api_client.shutdown()
            raise TemplateProjectError(
                "the directory is a template, not a project; micro.generate_project makes one of it"
            )

    def info(self) -> dict[str, Any]:
        """Return what the project says about itself."""
        return self._info

    def build(self) -> None:
        """Compile the firmware."""
        self._client.build(self._options)

    def flash(self) -> None:
        """Program the device."""
        self._client.flash(self._options)

    def transport(self) -> ProjectTransport:
        """Return the byte stream to the firmware, not yet open."""
        boards = [] if self._folder is None else sorted(self._folder.glob("*.toml"))
        return ProjectTransport(self._client, self._options, boards[0] if boards else None)

    def close(self) -> None:
        """End the project's server."""
        self._client.shutdown()


class TemplateProject:
    """A template directory: `generate_project`."""

    @classmethod
    def from_directory(cls, template_project_dir: str | Path) -> TemplateProject:
        """Open a template directory, or the template of that name."""
        return cls(client.instantiate_from_dir(_template_folder(template_project_dir)))

    def __init__(self, api_client: client.ProjectAPIClient) -> None:
        self._client = api_client
        self._info = api_client.server_info_query()
        if not self._info["is_template"]:
            api_client.shutdown()
            raise NotATemplateProjectError(
                "the directory is a generated project, not a template; "
                "GeneratedProject.from_directory opens it"
            )

    def info(self) -> dict[str, Any]:
        """Return what the template says about itself."""
        return self._info

    def close(self) -> None:
        """End the template's server."""
        self._client.shutdown()

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ArgumentValueError for options that the template lacks, or cannot do without."""
        known = {option["name"]: option for option in self._info["project_options"]}
        for name, value in options.items():
            if name not in known:
                raise ArgumentValueError(
                    f"the template {self._info['platform_name']!r} has no option {name!r}; there "
                    f"are {', '.join(known)}." + did_you_mean(name, known)
                )
            choices = known[name].get("choices")
            if choices and not any(_is_choice(str(value), choice) for choice in choices):
                raise ArgumentValueError(
                    f"option {name!r} cannot be {value!r}; the choices are {', '.join(choices)}."
                    + did_you_mean(str(value), choices)
                )
        for name, option in known.items():
            if "generate_project" in (option.get("required") or ()) and name not in options:
                own = name in ("board", "project_type")  # which the command line has, too
                given = f"--{name.replace('_', '-')} VALUE" if own else f"--option {name}=VALUE"
                raise ArgumentValueError(
                    f"the template {self._info['platform_name']!r} needs the option {name!r}, "
                    f"on the command line {given}: {option.get('help')}"
                )

    def generate_project(
        self, module: Any, project_dir: str | Path, options: Mapping[str, Any] | None = None
    ) -> GeneratedProject:
        """Make a project of a built module, in a directory that does not exist yet."""
        with scratch() as folder:
            archive = export_model_library_format(module, Path(folder) / "model.tar")
            return self.generate_project_from_mlf(archive, project_dir, options)

    def generate_project_from_mlf(
        self,
        model_library_format_path: str | Path,
        project_dir: str | Path,
        options: Mapping[str, Any] | None = None,
    ) -> GeneratedProject:
        """Make a project of a Model Library Format archive."""
        target = Path(project_dir).resolve()
        options = dict(options or {})
        if str(options.get("board", "")).endswith(".toml"):  # the server's folder is another
            options["board"] = str(Path(options["board"]).resolve())
        try:
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise FileExistsError(f"{target} exists and is not empty; give a new directory")
            self.check_options(options)
            archive = Path(model_library_format_path).resolve()
            self._client.generate_project(archive, get_standalone_crt_dir(), target, options)
        finally:
            self._client.shutdown()
        return GeneratedProject.from_directory(target, options)


def _is_choice(value: str, choice: str) -> bool:
    """Return whether a value is a choice; one in capitals stands for all with so many colons."""
    form = choice.count(":")
    return value == choice or (form > 0 and choice.isupper() and value.count(":") >= form)


def get_standalone_crt_dir() -> str:
    """Return the folder that holds the device runtime: include/ and src/."""
    return find_crt_include_path()[0]


def _template_folder(template_dir: str | Path) -> Path:
    folder = Path(template_dir)
    is_name = isinstance(template_dir, str) and template_dir == folder.name
    if is_name and (template_dir in TEMPLATES or not folder.exists()):
        return Path(get_microtvm_template_projects(str(template_dir)))
    if folder == Path(get_standalone_crt_dir()) / "template" / "host":  # where 0.8 to 0.10 had it
        return Path(get_microtvm_template_projects("crt"))
    return folder


def generate_project(
    template_dir: str | Path | None = None,
    module: Any = None,
    generated_project_dir: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    template_project_dir: str | Path | None = None,
    project_dir: str | Path | None = None,
) -> GeneratedProject:
    """Make a project of a built module.

    `template_dir` is the name of a template that comes with Slipway or a directory with a
    `microtvm_api_server.py`; `options` are the template's.  `template_project_dir` and
    `project_dir` are classic names of the first and third argument.
    """
    template = template_dir if template_dir is not None else template_project_dir
    folder = generated_project_dir if generated_project_dir is not None else project_dir
    if template is None or module is None or folder is None:
        raise ArgumentTypeError(
            "generate_project needs template_dir, module and generated_project_dir"
        )
    opened = TemplateProject.from_directory(template)
    return opened.generate_project(module, folder, options)


def generate_firmware(
    template_dir: str | Path,
    project_dir: str | Path,
    options: Mapping[str, Any] | None = None,
) -> GeneratedProject:
    """Make a project without a model: firmware that takes code from the host while it runs.

    `micro.Session.load` links what was built for the board into its RAM.  The project's type is
    "host_driven"; the other options are the template's.
    """
    with scratch() as folder:
        empty = ModelLibrary("resident", {"executors": [], "memory": {}, "style": "operator"})
        archive = export_model_library_format(empty, Path(folder) / "model.tar")
        chosen = {**dict(options or {}), "project_type": "host_driven"}
        return generate_project_from_mlf(template_dir, project_dir, archive, chosen)


def generate_project_from_mlf(
    template_dir: str | Path,
    project_dir: str | Path,
    mlf_path: str | Path,
    options: Mapping[str, Any] | None = None,
) -> GeneratedProject:
    """Make a project of a Model Library Format archive on disk."""
    template = TemplateProject.from_directory(template_dir)
    return template.generate_project_from_mlf(mlf_path, project_dir, options)
