"""What docs/gpu.md lists: strategies with operators and knobs, drivers, properties."""

import re
from pathlib import Path

import slipway
from slipway.backends import strategy
from slipway.relay import op_registry
from slipway.target import Target

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
DRIVERS = Path(slipway.__file__).parent / "crt/posix/devices/drivers"
# What only passes of the compiler make.
NOT_NAMED = {"nn.attention_bias", "nn.contrib_winograd_tiles", "nn.contrib_winograd_image"}
IN_WORDS = {
    "softmax": {"nn.softmax"},
    "log_softmax": {"nn.log_softmax"},
    "layer and instance norm": {"nn.layer_norm", "nn.instance_norm"},
    "sums, means, maxima and minima": {"sum", "mean", "max", "min"},
    "and their positions": {"argmax", "argmin"},
    "global pools": {f"nn.global_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)},
}


def section(title):
    return re.split(r"\n#+ ", PAGE.partition(f"# {title}\n")[2])[0]


def rows(title, begins):
    lines = [line for line in section(title).splitlines() if line.startswith(f"| {begins}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def of_gpus():
    for name in op_registry.load_ops():
        for entry in strategy.strategies(name, Target("opencl")):
            yield name, entry


def test_strategies_have_the_operators_and_knobs_of_the_page():
    operators, knobs = {}, {}
    for name, entry in of_gpus():
        if entry.name != "threads.elements":
            operators.setdefault(entry.name, set()).add(name)
        knobs.setdefault(entry.name, set()).update(entry.knob_names or ())
    said, said_knobs = {}, {}
    for name, what, how in rows("Strategies", "`threads."):
        name = name.strip("`")
        named = set(re.findall(r"`(nn\.\w+)`", what))
        if name == "threads.rows" and not named:
            named = set.union(*(those for words, those in IN_WORDS.items() if words in what))
        if "the same operators" in what:
            named = said["threads.matrix"]
        said.setdefault(name, set()).update(named)
        told = re.findall(r"`(\w+)`", how.partition("knob")[2])
        said_knobs.setdefault(name, set()).update(told)
    assert "the same knobs" in PAGE
    said_knobs["threads.dot"] = said_knobs["threads.shared"]
    assert said_knobs == knobs
    found = {name: its - NOT_NAMED for name, its in operators.items()}
    assert {name: its for name, its in said.items() if its} == {
        name: its for name, its in found.items() if its
    }


def test_drivers_are_opened_by_the_names_of_the_page():
    opened = "".join(path.read_text(encoding="utf-8") for path in DRIVERS.rglob("*_driver.c"))
    table = [
        cells for cells in re.findall(r"^\| `(\w+).*?`(lib\w+\.so[.\d]*)`", PAGE, re.MULTILINE)
    ]
    assert {kind for kind, _ in table} == {"opencl", "cuda", "rocm", "vulkan"}
    assert all(f"{library}\\0" in opened for _, library in table)


def test_properties_of_devices_are_there():
    (listed,) = re.findall(r"`tvm.metal\(0\)` have (.*?)\. Of OpenCL", PAGE, re.DOTALL)
    device = slipway.opencl(0)
    assert all(hasattr(type(device), name) for name in re.findall(r"`\.(\w+)`", listed))
