"""README and quick starts, followed literally where nothing else is: other Pythons, no compiler.

For each Python from 3.11 on that this machine has: a new environment, what the README says to
install, then every command in a new home, with no network and no compiler to be found.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
VERSIONS = (11, 12, 13, 14)
# What a shell needs; cc, gcc, clang, ld and qemu are not among them.
TOOLS = ("sh", "env", "cat", "cp", "mkdir", "rm", "ls", "uname", "dirname", "basename", "sed")
README_EXTRAS = "compile,onnx,cli"


def interpreter(minor):
    """Return a Python 3.`minor` of this machine, or None."""
    found = [shutil.which(f"python3.{minor}")]
    found += sorted((Path.home() / ".pyenv/versions").glob(f"3.{minor}.*/bin/python3"))
    for path in filter(None, found):
        done = subprocess.run(
            [path, "-c", f"import sys, ensurepip; sys.exit(sys.version_info[1] != {minor})"],
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return path
    return None


def test_the_readme_tells_to_install_what_is_tried_here():
    assert f'pip install ".[{README_EXTRAS}]"' in (ROOT / "README.md").read_text()


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("minor", VERSIONS)
def test_every_command_where_nothing_else_is(minor, tmp_path):
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"there is no python3.{minor}")
    unshare, ip = shutil.which("unshare"), shutil.which("ip")
    if unshare is None or ip is None:
        pytest.skip("unshare or ip is not installed: apt-get install util-linux iproute2")
    home = tmp_path / "a home with spaces"
    home.mkdir()
    venv = home / "venv"
    subprocess.run([python, "-m", "venv", venv], check=True)
    copy = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", ROOT, copy], check=True)
    pip = [venv / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{copy}[{README_EXTRAS}]"], check=True, cwd=home)
    shutil.rmtree(copy)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name))
    env = {"PATH": f"{venv / 'bin'}:{tools}", "HOME": str(home), "LANG": "C.UTF-8"}
    # No network but the machine's own address, which every machine has.
    loopback = [tools / "sh", "-c", f'{ip} link set lo up && exec "$@"', "--"]
    alone = [unshare, "--user", "--map-root-user", "--net", *loopback]
    work = home / "work"
    work.mkdir()

    def follow(program, text):
        done = subprocess.run(
            [*alone, *program], input=text, cwd=work, env=env,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    shell, interpret = [tools / "sh", "-e"], [venv / "bin/python", "-W", "error", "-"]
    assert "none" in follow(shell, "command -v cc gcc clang ld || echo none")
    for kind, text in BLOCK.findall((ROOT / "docs/quick_starts.md").read_text()):
        follow(shell if kind == "sh" else interpret, text)
    follow(shell, "slipway demo --device x86_64\nslipway doctor || true\nslipway targets")
    # The command line of the README, with this model in the place of the one it names.
    readme = (ROOT / "README.md").read_text().partition("From the command line")[2]
    (commands,) = re.findall(r"^```\n(.*?)^```", readme.partition("\n## ")[0], re.M | re.S)
    for line in commands.splitlines():
        if "--rpc-host" in line:
            line = "slipway compile mobilenet_v2.onnx -o model.tar && slipway run model.tar"
        follow(shell, line.replace("mobilenet_v2.onnx", "digits.onnx"))
    assert (work / "digits.tar").is_file()
