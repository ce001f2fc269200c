"""Every file, module, command, option and key that a page names is there."""

import importlib
import re
from functools import lru_cache
from pathlib import Path

import pytest

from slipway.target.kinds import KINDS
from slipway.target.tags import list_tags
from slipway.transform.config import CONFIG
from slipway.transform.names import NAMES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "slipway"
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{p.name}" for p in sorted(ROOT.glob("docs/*.md"))),
)
ENDINGS = ("py", "c", "h", "md", "json", "toml", "ll", "S", "ld", "cc", "html", "js", "pyi")
# Written by a command that the page shows, or a file of the reader's own.
# `gallery/` and `tutorials/` are folders of classic TVM.
MADE = {
    "gallery/",
    "tutorials/",
    "culprit.json", "kernel.c", "kernel.ll", "metadata.json", "repro.py", "ours.toml",
    "tvmgen_<model>.h", "<model>_lib0.c", "graph.json", "f.tvm_meta.json",
    "generate_cc_arrays.py",  # of TensorFlow Lite Micro
    "versions.json", "machine.json", "device.json", "files/0.json",  # in a bundle
}  # fmt: skip


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def spans(page):
    """Yield what stands in backticks within a line; a line of code each of a block."""
    outside = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", outside)
    for block in re.findall(r"```\w*\n(.*?)```", text_of(page), re.DOTALL):
        yield from block.splitlines()


@lru_cache(maxsize=1)
def tracked():
    """Return all files below the folders of sources, relative to the root."""
    tops = ("src", "tests", "tools", "benchmarks", "examples", "docs", ".ci")
    skipped = ("__pycache__", ".pyc")
    return [
        path.relative_to(ROOT).as_posix()
        for top in tops
        for path in (ROOT / top).rglob("*")
        if not any(part in str(path) for part in skipped)
    ] + [path.name for path in ROOT.iterdir()]


def stands_in_tree(name):
    """Return whether `name` ends the path of a file or folder; `*` and `<name>` match anything."""
    pattern = re.escape(name.rstrip("/")).replace(r"\*", "[^/]*")
    pattern = re.sub("<[^>]*>", "[^/]*", pattern)
    found = re.compile(rf"(.*/)?{pattern}(\.py|\.c|\.h)?")
    return any(found.fullmatch(path) for path in tracked())


@pytest.mark.parametrize("page", PAGES)
def test_files(page):
    ending = rf"[\w./<>*-]+\.(?:{'|'.join(ENDINGS)})"
    folder = r"(?:[\w<>*-]+/)+"
    named = {n for span in spans(page) for n in re.findall(rf"^(?:{ending}|{folder})$", span)}
    named -= MADE
    beside = {"make_models.py"}  # in the folder `shared` beside the checkout
    missing = [n for n in named - beside if not n.startswith("../") and not stands_in_tree(n)]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_paths_without_an_ending(page):
    """`backends/cpu/schedules/softmax`: a path whose first part is a folder of the sources."""
    tops = {p.name for p in PACKAGE.iterdir() if p.is_dir()} | {"tests", "tools", "benchmarks"}
    named = {
        n
        for span in spans(page)
        for n in re.findall(r"^([a-z_]+(?:/[\w<>*]+)+)$", span)
        if n.split("/")[0] in tops
    }
    missing = [n for n in named - {*list_tags()} if not stands_in_tree(n)]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_dotted_names(page):
    """`slipway.compiler.memory_plan.plan`, `relay.transform.ToMixedPrecision`, `tvm.build`."""
    named_as_absent = {"slipway.X", "te.hybrid", "relay.quantize"}  # a pattern, and what is refused
    heads = {"slipway": "slipway", "tvm": "slipway", "relay": "slipway.relay", "te": "slipway.te",
             "topi": "slipway.topi", "micro": "slipway.micro"}  # fmt: skip
    missing = []
    for span in spans(page):
        for head, names in re.findall(r"(?<![\w./\"'-])(\w+)((?:\.[A-Za-z_]\w*)+)\b(?!\.\w)", span):
            whole = f"{head}{names}"
            # Functions that a device answers to have dotted names of their own.
            if (
                head not in heads
                or f'"{whole}"' in sources()
                or whole in CONFIG
                or any(k.startswith(whole) for k in CONFIG)
            ):
                continue
            if not stands_in_tree(whole) and not resolves(heads[head], names[1:].split(".")):
                missing.append(whole)
    assert not set(missing) - named_as_absent


def resolves(module, names):
    found = importlib.import_module(module)
    for name in names:
        if not hasattr(found, name):
            try:
                found = importlib.import_module(f"{module}.{name}")
            except ImportError:
                return False
        else:
            found = getattr(found, name)
        module = getattr(found, "__name__", module)
    return True


@lru_cache(maxsize=1)
def sources():
    """Return the text of everything that takes options of a command line or an environment."""
    folders = ("src/slipway", "benchmarks", "tools", "examples")
    endings = {".py", ".c", ".h", ".js", ".html", ".rs"}
    paths = (p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in endings)
    return "\n".join(p.read_text(encoding="utf-8", errors="replace") for p in paths)


# Of tools that are not ours.
THEIRS = {"--no-liftoff"}  # of V8


# Commands that are not ours.
OTHERS = re.compile(
    r" *(pip|podman|docker|apt|git|qemu|west|cmake|gcc|clang|cargo|openssl|node|deno|bun)\b"
)


@pytest.mark.parametrize("page", PAGES)
def test_long_options(page):
    shown = "\n".join(spans(page)).replace("\\\n", " ").splitlines()
    used = {
        option
        for span in shown
        if not OTHERS.match(span)
        for option in re.findall(r"(?<![\w-])(--[a-z][\w-]*)", span)
    }
    missing = [option for option in used - THEIRS if not takes(option)]
    assert not missing


def takes(option):
    """Return whether a program of ours takes `option`."""
    return option in sources() or option in of_commands()


@lru_cache(maxsize=1)
def of_commands():
    typer = pytest.importorskip("typer")
    from slipway.cli.app import app

    commands, found = [typer.main.get_command(app)], set()
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        found |= {s for o in command.params for s in (*o.opts, *o.secondary_opts)}
    return found


@pytest.mark.parametrize("page", PAGES)
def test_options_of_targets(page):
    """`-l2-cache-bytes`, `-mcpu=znver4`: options that some kind of target has."""
    known = {name for kind in KINDS.values() for name in kind.options}
    # Flags of compilers of C and OpenCL C, and of linkers, that pages speak of.
    flags = {
        "-cl-fp32-correctly-rounded-divide-sqrt",
        "-name",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-std",
        "-ffast-math",
        "-fsanitize",
    }
    used = {
        (name, span)
        for span in spans(page)
        for name in re.findall(r"^-([a-z][a-z0-9-]*[a-z0-9])(?:=\S*)?$", span)
        if f"-{name}" not in flags
    }
    used |= {
        (name, span)
        for span in spans(page)
        for words in re.findall(r"[\"'](?:llvm|c|hexagon) (-[^\"']*)[\"']", span)
        for name in re.findall(r"(?:^| )-([a-z][\w-]*)", words)
    }
    assert not [span for name, span in used if name not in known]


@pytest.mark.parametrize("page", PAGES)
def test_variables_of_the_environment(page):
    used = set(re.findall(r"\b(?:SLIPWAY|TVM)_[A-Z_0-9]+\b", text_of(page)))
    assert not {name for name in used if name not in sources() and not name.endswith("_")}


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_python_and_make(page):
    text = text_of(page)
    for module, following in re.findall(r"python3? -m (\w+(?:\.\w+)*)(?: ([a-z][\w.]*))?", text):
        if module.split(".")[0] in ("benchmarks", "slipway"):
            name = module.replace(".", "/")
            assert stands_in_tree(f"{name}.py") or stands_in_tree(f"{name}/__init__.py"), module
        if module == "benchmarks" and following:
            assert stands_in_tree(f"benchmarks/{following}.py") or stands_in_tree(
                f"benchmarks/{following}/command.py"
            ), following
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for goal in re.findall(r"`make ([\w-]+)", text):
        assert re.search(rf"^{goal}:", makefile, re.MULTILINE), goal


@pytest.mark.parametrize("page", PAGES)
def test_keys_of_a_configuration(page):
    """The keys in `config={...}`, and names that begin as keys do."""
    text = text_of(page)
    used = {
        key for part in re.findall(r"config=\{(.*?)\}", text, re.DOTALL)
        for key in re.findall(r"[\"']([a-z]+\.[\w.]+)[\"']:", part)
    }  # fmt: skip
    used |= {s for s in spans(page) if re.fullmatch(r"(tir\.usmp|schedules)\.\w+(\.\w+)*", s)}
    used |= {s.strip('"') for s in spans(page) if re.fullmatch(r'"[a-z]+\.[\w.]+"', s)}
    unknown = used - CONFIG.keys()
    assert not {key for key in unknown if key.split(".")[0] in {k.split(".")[0] for k in CONFIG}
                and not key.startswith("tir.my")}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_passes(page):
    """A "pass SomeName" is one of the table of passes."""
    used = set(re.findall(r"\bpass(?:es)? `?([A-Z][a-z]+[A-Z]\w+)", text_of(page)))
    used |= set(re.findall(r"disabled_pass=\[\"(\w+)\"", text_of(page)))
    assert not used - NAMES
