"""The layers of docs/architecture.md: imports go down only, and never in a circle.

Every import statement counts, those inside functions too: an import that hides in a function is
still a package that needs the other one, and so is a name in a facade's table of lazy names.  Where
two modules of a package need each other, the lower one calls `Late` functions, and the package's
facade says where they are (`slipway.lazy`); nothing but a facade may.  What is left of imports in
functions is listed, with what it saves.
"""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
PACKAGE = SOURCE / "slipway"
MAX_LINES = 600
MAX_BODY = 70  # lines of a function without its parameters and its docstring
MAX_ENTRIES = (
    30  # of a folder: a listing that fits half a screen, and is read before it is searched
)
# Folders with more: how many they may have, and why they are not divided.
WIDE_FOLDERS = {
    ".": (55, "most are classic names (tvm.te, tvm.nd, tvm.error), which are modules here"),
    "relay": (39, "half are classic names (tvm.relay.analysis, tvm.relay.vision), modules here"),
    "crt/src": (46, "copied as one folder into projects of boards, whose builds name its files"),
    "crt/include/slipway": (36, "public headers: programs include them by these names"),
}

LAYERS = {
    1: ("errors", "dtypes", "version", "lazy", "entered", "target", "toolchain", "runtime",
        "libinfo", "arguments", "classic", "support"),
    2: ("ir", "arith"),
    3: (
        "te", "topi", "transform.config", "transform.context", "transform.instruments",
        "transform.manager", "transform.names", "transform.verify", "transform.loop", "codegen",
        "blocks", "script",
    ),
    4: ("relay",),
    5: ("transform.graph", "relay.testing", "topi.testing"),
    6: ("backends",),
    7: ("compiler", "frontends"),
    8: ("inspect", "topi.testing.schedules"),
    9: ("rpc", "micro", "tuning", "llm"),
    10: (
        "_ffi", "cli", "exec", "contrib", "driver", "nd", "tir", "transform", "__init__",
        "__main__", "testing", "error", "instrument", "parser", "autotvm", "auto_scheduler",
        "meta_schedule", "deploy", "doctor", "report", "farm", "micro.testing",
    ),
}  # fmt: skip
LAYER_OF = {package: layer for layer, packages in LAYERS.items() for package in packages}

# Modules that offer names of any layer, and define nothing: the only ones that may look up.
# A trailing `.*` names every module of a package.
RE_EXPORTS = (
    "slipway",
    "slipway._ffi",
    "slipway.contrib.*",
    "slipway.driver",
    "slipway.error",
    "slipway.instrument",
    "slipway.ir",
    "slipway.ir.instrument",
    "slipway.ir.module",
    "slipway.ir.transform",
    "slipway.nd",
    "slipway.parser",
    "slipway.relay",
    "slipway.relay.analysis",
    "slipway.relay.backend.contrib.*",
    "slipway.relay.build_module",
    "slipway.relay.op.contrib.arm_compute_lib",
    "slipway.relay.op.contrib.bnns",
    "slipway.relay.op.contrib.cmsisnn",
    "slipway.relay.op.contrib.dnnl",
    "slipway.relay.frontend",
    "slipway.relay.qnn",
    "slipway.relay.qnn.transform",
    "slipway.relay.quantize",
    "slipway.relay.testing.darknet",
    "slipway.relay.transform",
    "slipway.relay.vm",
    "slipway.testing",
    "slipway.testing.utils",
    "slipway.tir.*",
    "slipway.topi",
    "slipway.topi.image",
    "slipway.topi.nn",
    "slipway.topi.random",
    "slipway.topi.sparse",
    "slipway.topi.sparse.utils",
    "slipway.topi.testing",
    "slipway.topi.vision.*",
    "slipway.transform",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# What lies in boards/ are templates: programs of their own, not modules of the package.
PATHS = [p for p in sorted(PACKAGE.rglob("*.py")) if p.relative_to(PACKAGE).parts[0] != "boards"]
MODULES = {module_name(path): path for path in PATHS}
# A facade -> the modules that have the functions which lower modules of its package call.
LATE_OF = {
    "slipway.ir": ("slipway.ir.ops", "slipway.ir.stmt", "slipway.ir.text.printer",
                   "slipway.ir.text.script_text", "slipway.ir.text.serialize",
                   "slipway.relay.text.printer"),
    "slipway.relay": ("slipway.relay.construct", "slipway.relay.op_registry",
                      "slipway.relay.text.printer", "slipway.relay.visit"),
    "slipway.runtime": ("slipway.compiler.vm", "slipway.runtime.libraries.native_module"),
    "slipway.te": ("slipway.topi.elementwise",),
}  # fmt: skip


def only_re_exports(module: str) -> bool:
    return any(
        module == name or (name.endswith(".*") and f"{module}.".startswith(name[:-1]))
        for name in RE_EXPORTS
    )


def layer_of(module: str) -> int:
    """Return the layer of the longest listed name that `module` lies under."""
    package = module.partition(".")[2] or "__init__"
    while package not in LAYER_OF:
        outer = package.rpartition(".")[0]
        assert outer, f"{module} has no layer; give its package one in LAYERS"
        package = outer
    return LAYER_OF[package]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file once: a walk over the whole package takes seconds."""
    return tuple(ast.walk(tree_of(path)))


def statements(node: ast.AST, for_types: bool, inside: bool = False) -> Iterator[tuple]:
    """Yield (statement, whether it is inside a function) for all under `node`.

    Without `for_types`, those that only a type checker reads are left out.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # holds no statement
        if (
            not for_types
            and isinstance(child, ast.If)
            and "TYPE_CHECKING" in ast.unparse(child.test)
        ):
            continue
        yield child, inside
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from statements(child, for_types, inside or function)


@cache
def imports_of(module: str, for_types: bool = True) -> tuple[tuple[str, int, bool], ...]:
    """Return (name, line, whether inside a function) of what `module` imports, ours and others'."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[tuple[str, int, bool]] = []
    for node, inside in statements(tree_of(path), for_types):
        if isinstance(node, ast.Import):
            pairs = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*anchor, *([node.module] if node.module else [])])
            pairs = [(f"{base}.{alias.name}", base) for alias in node.names]
        else:
            continue
        # `from a import b` means the module a.b where there is one, else the name b of a.
        found += [
            (n if n in MODULES or not base else base, node.lineno, inside) for n, base in pairs
        ]
    return tuple(found)


def assigns(module: str, name: str) -> bool:
    """Return whether `module` assigns `name` on top."""
    return any(
        isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        for node in tree_of(MODULES[module]).body
    )


@cache
def lazy_names(module: str) -> tuple[str, ...]:
    """Return the modules that a facade looks up on first use, by its table of names."""
    if not assigns(module, "_HOMES"):
        return ()
    homes = importlib.import_module(module)._HOMES
    return tuple(sorted({home.partition(":")[0] for home in homes.values()}))


def imported(module: str, for_types: bool = True) -> Iterator[tuple[str, int]]:
    """Yield (module, line) for each of our own modules that `module` imports or looks up."""
    for target, line, _ in imports_of(module, for_types):
        if target in MODULES and target != module:
            yield target, line
    for target in lazy_names(module):
        yield target, 0


def named(module: str) -> Iterator[tuple[str, int]]:
    """Yield (module, line) for each entry "slipway.te:compute" of a lazy table in `module`."""
    for node in nodes_of(MODULES[module]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name, colon, _ = node.value.partition(":")
            if colon and name in MODULES:
                yield name, node.lineno


# What imports modules by a name that it makes: each loads all files of one folder.
LOADERS = {
    "slipway.backends.backend": "the backends of its folder",
    "slipway.backends.strategy": "the strategies of a backend",
    "slipway.frontends.converter_table": "the converters of a model format",
    "slipway.classic.modules": "the package of a module that classic TVM divides otherwise",
    "slipway.lazy": "what a facade offers",
    "slipway.driver.tvmc.extensions": "a package of the user's, which brings accelerators",
    "slipway.driver.tvmc.frontends": "the package that reads a format",
    "slipway.driver.tvmc.pass_config": "the module of a pass that the command line names",
    "slipway.micro.project_api.launch": "slipway under the name tvm, for scripts of a board",
    "slipway.relay.op_registry": "the families of operators",
}


def loads_by_name(node: ast.AST) -> bool:
    """Return whether a node imports a module, or takes a loaded one, by a string."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))  # unparse is slow
        return name.endswith("import_module") or name == "__import__"
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "modules"
        and ast.unparse(node.value) == "sys"
    )


def test_modules_are_loaded_by_name_where_it_is_listed():
    """The tests here see statements and tables of names, no string that is put together."""
    found = {
        module: node.lineno
        for module in MODULES
        if not only_re_exports(module)
        for node in nodes_of(MODULES[module])
        if loads_by_name(node)
    }
    asks_only = {
        "slipway.rpc.native",
        "slipway.runtime.libraries.native_library",
    }  # whether a library is in
    assert set(found) - asks_only == set(LOADERS)


def test_facades_alone_look_names_up():
    """`slipway.lazy` serves them; what they look up is in their table, or that of other facades."""
    users = {
        module
        for module in MODULES
        for target, _, _ in imports_of(module)
        if target == "slipway.lazy"
    }
    tabled = {module for module in users if only_re_exports(module) or lazy_names(module)}
    late = {
        "slipway.ir.node", "slipway.ir.operators", "slipway.relay.expr",
        "slipway.runtime.packed_func", "slipway.runtime.vm", "slipway.target.target",
        "slipway.te.tensor",
    }  # fmt: skip
    assert users - tabled - late == {
        "slipway.classic.modules", "slipway.relay.backend", "slipway.relay.nn", "slipway.relay.op",
        "slipway.rpc", "slipway.topi.by_processor",
    }  # fmt: skip  # their own modules only


def test_imports_go_down():
    upward = [
        f"{MODULES[module].relative_to(SOURCE)}:{line}: layer {layer_of(module)} imports "
        f"{target} of layer {layer_of(target)}"
        for module in MODULES
        if not only_re_exports(module)
        for target, line in (*imported(module), *named(module))
        if layer_of(target) > layer_of(module)
    ]
    assert not upward, "imports that climb:\n" + "\n".join(upward)


def test_packages_do_not_import_re_exports():
    """Re-exports are for higher layers; a lower package would depend on every layer at once."""
    through = [
        f"{MODULES[module].relative_to(SOURCE)}:{line}: imports {target}, which re-exports"
        for module in MODULES
        if not only_re_exports(module) and layer_of(module) < 7
        for target, line in imported(module)
        if only_re_exports(target) and layer_of(module) <= layer_of(target)
    ]
    assert not through, "imports of re-exports:\n" + "\n".join(through)


def test_late_functions_are_those_listed():
    """Only a facade fills them, from its own package, or from one that writes in terms of it."""
    tables = {
        module: tuple(sorted(m for ms in importlib.import_module(module).LATE.values() for m in ms))
        for module in MODULES
        if assigns(module, "LATE")
    }
    assert tables == LATE_OF


def test_lazy_names_are_no_submodules():
    """Importing `te.lower` would set `te.lower`, and hide a function that is looked up late."""
    hidden = [
        f"{module}.{name}"
        for module in MODULES
        if lazy_names(module)
        for name, home in importlib.import_module(module)._HOMES.items()
        if f"{module}.{name}" in MODULES and home != f"{module}.{name}"
    ]
    assert not hidden


def test_no_import_cycles():
    graph = {
        module: sorted(
            {
                target
                for target, _ in imported(module, for_types=False)
                if not only_re_exports(target)
            }
        )
        for module in MODULES
        if not only_re_exports(module)
    }
    finished: set[str] = set()
    for start in graph:
        trail: list[str] = []
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            module, leaving = stack.pop()
            if leaving:
                finished.add(trail.pop())
                continue
            if module in trail:
                circle = [*trail[trail.index(module) :], module]
                pytest.fail("import cycle: " + " -> ".join(circle))
            if module in finished:
                continue
            trail.append(module)
            stack.append((module, True))
            stack.extend((target, False) for target in graph[module])


# Optional, or slow to load, and needed by a part of the callers only.
LATE_LIBRARIES = (
    "ai_edge_litert", "distributed", "gguf", "jinja2", "lightgbm", "llguidance",
    "llvmlite", "ml_dtypes", "mxnet", "onnx", "onnxruntime", "PIL", "psycopg", "pytest", "ray",
    "rich", "safetensors", "serial", "starlette", "tensorflow", "tf2onnx", "tokenizers", "torch",
    "tvm_ffi", "typer", "uvicorn", "ziglang",
)  # fmt: skip
# Modules of ours that are loaded when they are used: who does it, what, and for whom.  They form no
# circle either.  A command (cli, exec) loads what it needs when it runs.
LATE_MODULES = {
    ("slipway.backends.backend", "slipway.transform.graph"): "a kernel has no graph",
    ("slipway.backends.cpu.backend", "slipway.backends.c_code"): "most targets are no C",
    ("slipway.backends.cpu.backend", "slipway.backends.cpu.graph"): "a kernel has no graph",
    ("slipway.backends.cpu.backend", "slipway.codegen.llvm"): "a target of C needs no LLVM",
    ("slipway.backends.gpu.backend", "slipway.backends.gpu.graph"): "a kernel has no graph",
    ("slipway.backends.micro.backend", "slipway.backends.micro"): "a kernel has no graph",
    ("slipway.codegen.snippet_objects", "slipway.codegen.c"): "few kernels bring C along",
    ("slipway.codegen.compiled", "slipway.codegen.llvm"): "what is only read is not linked",
    (
        "slipway.codegen.llvm.machine",
        "slipway.codegen.llvm.pointer_steps",
    ): "few kernels are for pages",
    ("slipway.codegen.cache", "importlib"): "versions are asked when something is compiled",
    ("slipway.compiler.artifact.export", "slipway.codegen"): "what only runs here is not linked",
    (
        "slipway.compiler.artifact.export",
        "slipway.runtime.libraries.library",
    ): "what only runs here is not linked",
    (
        "slipway.compiler.artifact.export",
        "slipway.compiler.artifact.web",
    ): "most targets are no WebAssembly",
    ("slipway.runtime.artifact", "slipway.runtime.arrays"): "a new kernel is read from no file",
    ("slipway.compiler.imported", "slipway.compiler.artifact.export"): "most import nothing",
    ("slipway.compiler.operator_module", "slipway.compiler.artifact.export"): "most only run here",
    ("slipway.compiler.relay_build", "slipway.compiler.aot"): "most models are no program",
    (
        "slipway.compiler.artifact.web",
        "slipway.toolchain.web_runtime",
    ): "most targets are no WebAssembly",
    ("slipway.transform.loop.pipeline", "slipway.blocks.thread_reduction"): "of blocks are few",
    ("slipway.deploy.model", "html"): "only a notebook shows a model",
    ("slipway.deploy.model", "slipway.compiler"): "most models only run",
    ("slipway.deploy.model", "slipway.deploy.agreement"): "the same",
    ("slipway.deploy.model", "slipway.deploy.device"): "the same",
    ("slipway.deploy.model", "slipway.deploy.local"): "the same, and need no tvm-ffi",
    ("slipway.deploy.model", "slipway.inspect"): "the same",
    ("slipway.deploy.model", "slipway.report"): "the same",
    ("slipway.deploy.model", "slipway.toolchain.native"): "the same",
    ("slipway.deploy.model_file", "slipway.relay"): "what is loaded needs no importer",
    ("slipway.deploy.progress", "slipway.cli.console"): "needs the extra cli, at a terminal only",
    ("slipway.deploy.reference", "slipway.frontends.onnx"): "for checks of ONNX models only",
    ("slipway.errors", "difflib"): "only a misspelt name asks",
    ("slipway.errors", "sysconfig"): "only an error asks",
    ("slipway.lazy", "slipway.classic.names"): "only a misspelt name asks",
    ("slipway.micro.device_rpc", "slipway.micro.image_parts"): "a board needs no compiler",
    ("slipway.micro.model_library_format", "slipway.compiler"): "unpacking needs no compiler",
    ("slipway.micro.model_library_format", "slipway.micro.model_contents"): "the same",
    ("slipway.relay.expr", "slipway.runtime.ndarray"): "a graph needs no runtime",
    ("slipway.relay.ops.packed.qnn_packed", "slipway.te"): "a graph is built without loops",
    ("slipway.relay.ops.nn.pool_grad", "slipway.topi"): "a graph is built without loops",
    ("slipway.relay.ops.tensor.tensors", "slipway.te"): "a graph is built without loops",
    ("slipway.relay.op", "slipway.relay.op"): "its name op is the module itself",
    ("slipway.rpc.client", "slipway.runtime.load"): "a session may upload nothing",
    ("slipway.rpc.tracker_client", "slipway.micro.device_rpc"): "few devices are firmware",
    (
        "slipway.runtime.libraries.native_library",
        "slipway.toolchain.native",
    ): "it is compiled once, and loaded ever after",
    ("slipway.runtime.load", "slipway.toolchain"): "a device links nothing",
    ("slipway.runtime.module", "slipway.toolchain"): "a device links nothing",
    (
        "slipway.runtime.packed_func",
        "slipway.runtime.libraries.library_functions",
    ): "few ask for them",
    ("slipway.toolchain.runtime_library", "slipway.toolchain.tempdir"): "most have a home",
    (
        "slipway.transform.loop.lower_blocks",
        "slipway.transform.loop.compact_buffers",
    ): "kernels of models have no blocks",
}


def is_late(module: str, target: str) -> bool:
    if target.split(".")[0] in LATE_LIBRARIES or only_re_exports(module):
        return True
    if module.split(".")[1:2] in (["cli"], ["exec"]):
        return target in MODULES or target in sys.stdlib_module_names
    return any(module == who and f"{target}.".startswith(f"{what}.") for who, what in LATE_MODULES)


def test_imports_inside_functions_are_listed():
    hidden = [
        f"{MODULES[module].relative_to(SOURCE)}:{line}: imports {target} inside a function"
        for module in MODULES
        for target, line, inside in imports_of(module)
        if inside and not is_late(module, target)
    ]
    assert not hidden, "import at the top of the file:\n" + "\n".join(hidden)


def test_listed_late_imports_exist():
    made = {
        (module, target) for module in MODULES for target, _, inside in imports_of(module) if inside
    }
    unused = [
        (who, what)
        for who, what in LATE_MODULES
        if not any(m == who and f"{t}.".startswith(f"{what}.") for m, t in made)
    ]
    assert not unused, f"take these out of LATE_MODULES: {unused}"


@pytest.mark.parametrize("module", [m for m in MODULES if only_re_exports(m)])
def test_re_exports_define_nothing(module):
    """They hold names, strings and a lazy ``__getattr__``; code lives in its layer."""
    tree = tree_of(MODULES[module])
    defined = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        or (isinstance(node, ast.FunctionDef) and node.name not in ("__getattr__", "__dir__"))
    ]
    assert not defined, f"{module} only re-exports and defines {defined}"


def test_listed_re_exports_exist():
    missing = [name for name in RE_EXPORTS if name.removesuffix(".*") not in MODULES]
    assert not missing, f"take these out of RE_EXPORTS: {missing}"


def test_packages_are_those_of_the_layers():
    """Nothing is listed that is not there; `tests/docs/test_docs.py` compares with the page."""
    missing = [
        package
        for package in LAYER_OF
        if package != "__init__" and f"slipway.{package}" not in MODULES
    ]
    assert not missing, f"take these out of LAYERS: {missing}"
    assert all(layer_of(module) for module in MODULES)


def test_arrays_keep_their_rank():
    """np.ascontiguousarray makes a vector of a scalar; np.asarray(x, order="C") does not."""
    found = [str(p) for p in PATHS if "np.ascontiguousarray" in p.read_text()]
    assert not found


def test_files_stay_short():
    """One idea per file; see CONTRIBUTING.md."""
    tracked = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.[ch]")]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in tracked}
    long = [f"{p.relative_to(SOURCE)}: {n} lines" for p, n in lengths.items() if n > MAX_LINES]
    assert not long, f"split what is above {MAX_LINES} lines:\n" + "\n".join(long)


def test_functions_are_short_enough_to_read():
    long = []
    for module, path in MODULES.items():
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and node.body[1:] else node.body
                lines = node.end_lineno - body[0].lineno + 1
                long += [f"{module}.{node.name}: {lines} lines"] if lines > MAX_BODY else []
    assert not long, f"divide by meaning what has more than {MAX_BODY}:\n" + "\n".join(long)


def entries_of(folder: Path) -> int:
    """Count what a folder lists; a module and its stub are one, what tools leave is none."""
    names = {
        path.name.removesuffix("i") if path.suffix == ".pyi" else path.name
        for path in folder.iterdir()
    }
    return len(names - {"__pycache__", "prebuilt"})


def test_folders_can_be_taken_in_at_a_glance():
    """A folder with more is divided by meaning, or named with the reason why it is not."""
    counts = {
        path.relative_to(PACKAGE).as_posix(): entries_of(path)
        for path in (PACKAGE, *PACKAGE.rglob("*"))
        if path.is_dir() and path.name != "__pycache__"
    }
    too_wide = {
        folder: count
        for folder, count in counts.items()
        if count > WIDE_FOLDERS.get(folder, (MAX_ENTRIES, ""))[0]
    }
    assert not too_wide, f"divide by meaning what has more than {MAX_ENTRIES} entries: {too_wide}"
    needless = [folder for folder in WIDE_FOLDERS if counts[folder] <= MAX_ENTRIES]
    assert not needless, f"take these out of WIDE_FOLDERS: {needless}"


# What depends on the kind of a target is asked of its backend, of its description or capability.
KNOWS_TARGETS = ("target", "backends", "toolchain")


# The parts of a target's description: who compares one with a word decides for a processor.
PARTS = re.compile(
    r"\.(triple|parsed_triple\.\w+|mcpu|mtriple|mattr|features|llvm_features)\b"
    r"|\b(?:target|chosen|triple)\.(?:cpu|arch|system|environment|table)\b"
    r"|\b(?!spec\b|s\b)\w+\.kind\.name\b"  # torch's parts of a program have kinds too
    r"|\bbackend(?:_of\(.*\))?\.name\b"
)
# Emitters of objects say what a format wants; declared instructions say which features they need.
ASKED_OF_DECLARATIONS = ("slipway.ir.hardware", "slipway.ir.instructions.tiles")
FORMATS = ("parsed_triple.object_format == 'elf'",)


def asks_for_the_kind(node: ast.AST) -> bool:
    """Return whether a node compares a part of a target with words, or asks for a feature."""
    if isinstance(node, ast.Attribute):
        return node.attr == "has_lane_fma"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "has_feature":
            return True
        looks = node.func.attr in ("startswith", "endswith", "find", "partition")
        return looks and PARTS.search(ast.unparse(node.func.value)) is not None
    if isinstance(node, ast.Compare):
        words = [
            part
            for operand in (node.left, *node.comparators)
            for part in ast.walk(operand)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        whole = ast.unparse(node)
        if any(word.value == "thumb" for word in words):
            return True
        return bool(words) and PARTS.search(whole) is not None and not whole.endswith(FORMATS)
    return False


def test_kinds_of_target_are_asked_in_backends_only():
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"
        for module, path in MODULES.items()
        if module.partition(".")[2].split(".")[0] not in KNOWS_TARGETS
        and module not in ASKED_OF_DECLARATIONS
        for node in nodes_of(path)
        if asks_for_the_kind(node)
    ]
    assert not found, "ask the backend (backends/backend.py) instead:\n" + "\n".join(found)


def test_no_tag_is_parsed_for_data():
    """A stage's tag names what it is; decisions travel as knobs (backends/strategy.py)."""
    parsed = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"
        for module, path in MODULES.items()
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("int", "map")
        and ".tag" in ast.unparse(node)
    ]
    assert not parsed, "\n".join(parsed)


# Words of processors; a program that registers for an operator what it likes uses none.
PROCESSORS = re.compile(
    r"\b(x86|arm|neon|avx\w*|sse\d?|vnni|amx|aarch64|riscv|thumb|triples?|mcpu|isa|instructions?"
    r"|registers(?! for))\b",
    re.IGNORECASE,
)


def test_the_graph_language_names_no_processor():
    """What an operator's packed form is packed for, a backend knows."""
    named = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for module, path in MODULES.items()
        if f"{module}.".startswith("slipway.relay.")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PROCESSORS.search(line)
    ]
    assert not named, "\n".join(named)
