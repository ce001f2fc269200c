"""The Project API as a third-party template sees it: classic names, JSON lines through pipes."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from slipway import libinfo, micro
from slipway.errors import ArgumentValueError
from slipway.micro.exports import port_templates
from slipway.micro.model_library import ModelLibrary
from slipway.micro.project_api import client, server

TEMPLATE = """
import pathlib, shutil, sys
from tvm.micro.project_api import server

HERE = pathlib.Path(__file__).parent.resolve()


class Handler(server.ProjectAPIHandler):
    def server_info_query(self, tvm_version):
        return server.ServerInfo(
            platform_name="echo",
            is_template=not (HERE / "model.tar").exists(),
            model_library_format_path=None,
            project_options=[
                *server.default_project_options(board={"choices": ["one", "two"]}),
                server.ProjectOption("port", optional=["flash"], type="int", default=1, help="-"),
            ],
        )

    def generate_project(self, model_library_format_path, standalone_crt_dir, project_dir, options):
        assert (standalone_crt_dir / "include").is_dir()
        project_dir.mkdir()
        shutil.copy(model_library_format_path, project_dir / "model.tar")
        shutil.copy(HERE / "microtvm_api_server.py", project_dir)
        (project_dir / "board.txt").write_text(options["board"])

    def build(self, options):
        (HERE / "built").write_text(str(options.get("port")))

    def flash(self, options):
        raise RuntimeError("no probe found")

    def open_transport(self, options):
        self.data = b""
        return server.TransportTimeouts(0.5, 1.0, 2.0)

    def close_transport(self):
        self.data = None

    def read_transport(self, n, timeout_sec):
        if self.data is None:
            raise server.TransportClosedError()
        if not self.data:
            raise server.IoTimeoutError()
        result, self.data = self.data[:n], self.data[n:]
        return result

    def write_transport(self, data, timeout_sec):
        self.data += data


if __name__ == "__main__":
    server.main(Handler())
"""


@pytest.fixture
def template(tmp_path):
    folder = tmp_path / "template"
    folder.mkdir()
    (folder / "microtvm_api_server.py").write_text(TEMPLATE)
    return folder


def test_third_party_template_from_generation_to_transport(template, tmp_path):
    library = ModelLibrary("m")
    options = {"board": "one", "project_type": "x", "port": 7}
    project = micro.generate_project(template, library, tmp_path / "p", options)
    assert (tmp_path / "p/board.txt").read_text() == "one"
    project.build()
    assert (tmp_path / "p/built").read_text() == "7"
    with pytest.raises(server.ServerError, match="no probe found"):
        project.flash()
    data = bytes(range(256))
    with project.transport() as transport:
        assert transport.timeouts().session_start_timeout_sec == 1.0
        transport.write(data, 1.0)
        assert transport.read(100, 1.0) + transport.read(500, 1.0) == data
        with pytest.raises(server.IoTimeoutError):
            transport.read(1, 0.1)
    with pytest.raises(server.TransportClosedError):
        transport.read(1, 0.1)
    project.close()


def test_generate_project_takes_its_arguments_by_any_of_their_names(template, tmp_path):
    options = {"board": "two", "project_type": "x"}
    micro.generate_project(
        template_dir=str(template),
        module=ModelLibrary("m"),
        generated_project_dir=tmp_path / "a",
        options=options,
    ).close()
    micro.generate_project(
        template_project_dir=template,
        module=ModelLibrary("m"),
        project_dir=tmp_path / "b",
        options=options,
    ).close()
    assert (tmp_path / "b/model.tar").read_bytes() == (tmp_path / "a/model.tar").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"board": "three", "project_type": "x"}, "cannot be 'three'.*one, two"),
        (
            {"board": "one"},
            "needs the option 'project_type', on the command line --project-type VALUE",
        ),
        ({"board": "one", "project_type": "x", "prot": 1}, "no option 'prot'.*Did you mean 'port'"),
    ],
)
def test_wrong_options_are_refused_before_generating(template, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        micro.generate_project(template, ModelLibrary("m"), tmp_path / "p", options)
    assert not (tmp_path / "p").exists()


def test_template_is_not_a_project_and_an_empty_folder_is_neither(template, tmp_path):
    with pytest.raises(micro.TemplateProjectError, match="template"):
        micro.GeneratedProject.from_directory(template)
    (tmp_path / "empty").mkdir()
    with pytest.raises(client.ProjectAPIServerNotFoundError, match="microtvm_api_server"):
        micro.GeneratedProject.from_directory(tmp_path / "empty")


def test_server_that_dies_is_an_error_not_a_hang(template, tmp_path):
    (template / "microtvm_api_server.py").write_text("raise SystemExit(3)")
    with pytest.raises(client.ConnectionShutdownError, match="ended during server_info_query"):
        micro.GeneratedProject.from_directory(template)


def test_unknown_template_lists_those_there_are():
    with pytest.raises(ValueError, match="baremetal"):
        micro.get_microtvm_template_projects("bare-metal")


class _Silent(server.ProjectAPIHandler):
    server_info_query = generate_project = build = flash = None
    open_transport = close_transport = read_transport = write_transport = None

    def build(self, options):  # noqa: F811
        return None


def ask(line):
    out = io.BytesIO()
    going_on = server.ProjectAPIServer(io.BytesIO(line), out, _Silent()).serve_one_request()
    return going_on, json.loads(out.getvalue()) if out.getvalue() else None


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"jsonrpc": "1.0", "method": "build", "params": {}, "id": 1}, -32600),
        ({"jsonrpc": "2.0", "method": 3, "params": {}, "id": 1}, -32600),
        ({"jsonrpc": "2.0", "method": "build", "params": [], "id": 1}, -32600),
        ([1], -32600),
        ({"jsonrpc": "2.0", "method": "bild", "params": {}, "id": 1}, -32601),
        ({"jsonrpc": "2.0", "method": "__init__", "params": {}, "id": 1}, -32601),
        ({"jsonrpc": "2.0", "method": "build", "params": {}, "id": 1}, -32602),
        ({"jsonrpc": "2.0", "method": "build", "params": {"options": {}, "x": 1}, "id": 1}, -32602),
    ],
)
def test_wrong_requests_get_json_rpc_errors(request_, code):
    _, reply = ask(json.dumps(request_).encode() + b"\n")
    assert reply["error"]["code"] == code


def test_right_request_and_the_end_of_the_stream():
    request = {"jsonrpc": "2.0", "method": "build", "params": {"options": {}}, "id": "a"}
    going_on, reply = ask(json.dumps(request).encode() + b"\n")
    assert going_on
    assert reply == {"jsonrpc": "2.0", "id": "a", "result": None}
    assert ask(b"") == (False, None)
    assert ask(b"{not json\n") == (False, None)


def test_the_header_of_limits_compiles(tmp_path: Path) -> None:
    micro.copy_crt_config_header("crt", tmp_path)
    program = tmp_path / "limits.c"
    program.write_text(
        '#include "crt_config.h"\n'
        '_Static_assert(TVM_CRT_MAX_NDIM == SLW_TENSOR_MAX_NDIM, "");\n'
        "char name[TVM_CRT_MAX_STRLEN_FUNCTION_NAME + TVM_CRT_MAX_STRLEN_PARAM_NAME];\n"
    )
    folders = [f"-I{path}" for path in libinfo.find_include_path()]
    command = [sys.executable, "-m", "ziglang", "cc", "-std=c11", "-Wall", "-Werror", *folders]
    port = tmp_path / "platform.c"  # and what a port starts from, as archives carry it
    port.write_text(port_templates.PLATFORM_TEXT)
    subprocess.run([*command, "-c", str(program), str(port)], check=True, cwd=tmp_path)


def test_a_header_of_limits_that_cannot_be_written(tmp_path: Path) -> None:
    micro.copy_crt_config_header("crt", tmp_path / "limits.h")
    assert (tmp_path / "limits.h").is_file()
    with pytest.raises(ArgumentValueError, match="no project template 'crtt'"):
        micro.copy_crt_config_header("crtt", tmp_path)
    with pytest.raises(ArgumentValueError, match="cannot write"):
        micro.copy_crt_config_header("crt", tmp_path / "none" / "limits.h")
