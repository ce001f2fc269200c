"""The runner of classic scripts: `tvm` is Slipway, the network is shut, the end is reported."""

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "classic_scripts.py"

SCRIPTS = {
    "good.py": "import tvm\nimport tvm.contrib.utils\nfrom tvm import te\nimport slipway\n"
    "assert tvm is slipway and tvm.contrib.utils is slipway.contrib.utils\n"
    "assert slipway.contrib.utils.__spec__.name == 'slipway.contrib.utils'\n",
    "bad.py": "import tvm\n\ndef f():\n    raise ValueError('so')\n\nf()\n",
    "net.py": "import socket\nimport tvm\nsocket.create_connection(('192.0.2.1', 80), timeout=1)\n",
    "page.py": "import tvm\nimport urllib.request\nurllib.request.urlopen('http://h/m.bin')\n",
    "package.py": "import tvm\nimport no_such_package_here\n",
    "dies.py": "import os\nimport tvm\nos._exit(3)\n",
    "hangs.py": "import tvm\nwhile True: pass\n",
}


def test_runner_says_how_far_each_script_gets(tmp_path):
    folder = tmp_path / "tvm-v1" / "gallery"
    folder.mkdir(parents=True)
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    report = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, TOOL, folder.parent, "--limit", "4", "--jobs", "4", "--json", report],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    found = {Path(o["script"]).name: o for o in json.loads(report.read_text())}
    states = {name: outcome["state"] for name, outcome in found.items()}
    assert states == {
        "good.py": "ran",
        "bad.py": "failed",
        "net.py": "needs a download",
        "page.py": "needs a download",
        "package.py": "needs no_such_package_here",
        "dies.py": "failed",
        "hangs.py": "too long",
    }
    assert found["bad.py"]["line"] == 4
    assert found["bad.py"]["error"] == "ValueError: so"
