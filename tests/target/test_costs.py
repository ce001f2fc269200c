"""The numbers of cost models: named, documented, and none hidden in the code that chooses."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest

from slipway.backends.cpu.schedules.attention.blocks import l1_score_bytes, score_bytes
from slipway.target import Target
from slipway.target.cores import Core
from slipway.target.costs import ANY_CORE, Costs
from slipway.target.gpu_costs import GpuCosts

ROOT = Path(__file__).parents[2]
CPU = ROOT / "src" / "slipway" / "backends" / "cpu"
GPU = CPU.parent / "gpu"
# What chooses algorithms and tiles by predicted cycles and by sizes of caches.
CHOOSERS = (
    "tile.py", "parts.py", "lowering/winograd_choice.py", "schedules/attention/blocks.py",
    "schedules/conv/rows.py", "schedules/conv/k_blocked.py", "schedules/conv/direct.py",
    "schedules/conv/winograd.py",
    "schedules/matmul/dense.py", "schedules/matmul/gemm.py",
)  # fmt: skip


def rows():
    lines = (ROOT / "docs" / "targets.md").read_text().splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:3] == "| `"]
    return {row[0].strip("`"): row[1:] for row in cells}


@pytest.mark.parametrize("kind", [Core, Costs, GpuCosts])
def test_every_field_has_its_row(kind):
    found = rows()
    for field in dataclasses.fields(kind):
        if field.name == "costs":
            continue
        unit, value = found[field.name][:2]
        assert unit
        if field.default is not dataclasses.MISSING:
            assert float(value) == float(field.default), field.name


def test_every_row_is_a_field_and_every_option_an_option():
    names = {f.name for kind in (Core, Costs, GpuCosts) for f in dataclasses.fields(kind)} - {
        "costs"
    }
    found = rows()
    assert set(found) == names
    for name, cells in found.items():
        for option in re.findall(r"`(-[a-z0-9-]+)`", " ".join(cells)):
            changed = Target(f"llvm -mcpu=x86-64-v4 {option}=7").core
            assert getattr(changed, name) != getattr(Target("llvm -mcpu=x86-64-v4").core, name)


@pytest.mark.parametrize("file", CHOOSERS)
def test_choosers_hold_no_fitted_number(file):
    """No fraction, and no number of cycles or bytes under a name of its own."""
    tree = ast.parse((CPU / file).read_text())
    allowed = (0.0, 1.0)
    fractions = [
        (n.lineno, n.value)
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, float) and n.value not in allowed
    ]
    assert not fractions
    fitted = re.compile(r"CYCLES|BYTES|_FAR|_BEGIN|AGAIN|WORTH|POSITIONS|LARGE|VALUE|PRODUCT")
    named = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Attribute)
        for target in node.targets
        if isinstance(target, ast.Name) and fitted.search(target.id)
    ]
    assert not named


# Numbers with a name of their own in a backend that are no fits to a machine, and what they are.
NO_FITS = {
    "best_together.py": {
        "MOST": "code", "GAIN": "code", "UNIT": "of integers", "FEW_ROWS": "code",
    },
    "schedules/matmul/gemm.py": {"MOST_COPIES": "code"},
    "lowering/alter_layout.py": {"MANY_FILTERS": "multiply-adds, of copies"},
    "lowering/join_groups.py": {"CUTTING": "multiply-adds, of copies"},
    "lowering/integer_products.py": {
        "EXACT_IN_FLOAT32": "integers of a float32", "MOST_PARTS": "compile time",
    },
    "lowering/pack_blocks.py": {"MOST_VECTORS": "layouts of packed weights"},
    "lowering/move_activations.py": {"OFFSET": "between signed and unsigned bytes"},
    "lowering/winograd_choice.py": {"UNIT": "of integers", "FEWEST": "lanes of a vector"},
    "lowering/pack_quantized.py": {"OFFSET": "between signed and unsigned bytes"},
    "lowering/even_shifts.py": {"SIGN": "bits", "MOST": "bits", "UNKNOWN": "a range"},
    "lowering/narrow_rescale.py": {
        "MAX_SHIFT": "a range", "MIN_SHIFT": "a range", "BYTE_BITS": "bits", "HALF": "of 2^31",
    },
    "lowering/byte_sums.py": {
        "FEWEST": "instructions", "REACH": "how far is tried", "BITS": "of int32",
    },
    "lowering/deep_pools.py": {"MOVED": "reads and writes of an element"},
    "lowering/moved_bytes.py": {"OFFSET": "between signed and unsigned bytes"},
    "lowering/short_rounding.py": {
        "DIGITS": "bits", "AWAY": "bits", "SUM_BITS": "bits", "MOST": "a range",
    },
    "schedules/conv/interleave.py": {"_MOST_UNROLLED": "compile time"},
    "schedules/conv/winograd_sizes.py": {"MOST": "kernels of one", "UNIT": "of integers"},
    "schedules/conv/positions.py": {
        "FEWEST": "lanes of a vector", "MOST_FILTERS": "general registers, of addresses",
        "MOST_LINES": "compile time",
    },
    "schedules/conv/plain_depthwise.py": {
        "FEWEST": "lanes of a vector", "MOST_TAPS": "compile time, and registers",
        "MOST_ROWS": "compile time",
    },
    "schedules/attention/cached.py": {"_OTHERS": "registers beside those of sums"},
    "schedules/generic.py": {
        "_OPEN_TASKS": "steps to share", "_SLOW": "streams", "_FEWEST_OWN": "lanes of a vector",
    },
    "schedules/matmul/lane_fma_rows.py": {"_PAIR": "of an ldp"},
    "schedules/matmul/partial_sums.py": {
        "PART": "rounding errors", "TILE_PART": "rounding errors",
    },
    "schedules/matmul/mmla.py": {
        "LANES": "of the instruction's results",
    },
    "schedules/matmul/tiles_pairs.py": {"BYTES": "of a bfloat16"},
    "schedules/resize/plain.py": {"READS": "of an element", "_FEWEST": "lanes of a vector"},
    "schedules/resize/nearest.py": {
        "_COPIES": "compile time", "_COPIED": "elements", "_WORTH_ROWS": "rows, of one look-up",
    },
    "schedules/resize/sampled.py": {"_MOST_TAPS": "compile time"},
    "schedules/joined_parts.py": {
        "TOGETHER": "compile time", "UNROLLED": "compile time", "SHORTEST": "elements",
    },
    "schedules/scatter.py": {"STEPS": "instructions", "_COPIED": "elements"},
    "schedules/short_rows.py": {
        "_MOST_NODES": "compile time", "(_ALONE, _STEP)": "instructions",
        "_PER_CONSTANT": "instructions", "(_MOST_SPREAD, _FEWEST_SPREAD)": "elements, and lanes",
    },
    "lowering/pad_quantized.py": {"SHORTER": "steps of vectors"},
    "schedules/resize/repeated.py": {"_ROW": "vectors", "_MOST": "compile time"},
    "schedules/sort_ways.py": {
        "(_POSITION, _ELEMENT)": "instructions", "(_COMPARED, _PLACED)": "instructions",
        "(_REFUSED, _TAKEN, _LEVEL)": "instructions", "(_MOVED, _COUNTS)": "instructions",
        "(_COUNTED, _SUMMED, _TOLD, _LOOKED)": "instructions",
        "(_KEYS, _MORE)": "instructions", "_GROUP": "instructions", "_APART": "instructions",
        "MOST_BYTES": "workspace", "LONGEST_RANKED": "workspace",
    },
    "schedules/top_k_limit.py": {"SUMS": "registers, of counts"},
    "schedules/short_columns.py": {
        "_MOST": "registers", "(_VECTOR, _SHORT, _WAITING)": "instructions",
        "_LONG": "instructions", "_APART": "instructions", "_BEGUN": "instructions",
    },
    "schedules/norm/columns.py": {
        "(_VECTORS, _FEWEST)": "registers; lanes", "(_MOST, _FILLED)": "registers; lanes",
    },
    "schedules/top_k_bytes.py": {"_VALUES": "of a byte"},
    "schedules/norm/exponential.py": {
        "EXPONENTIAL": "instructions", "_SMALLEST": "a float32", "(_BIAS, _MANTISSA)": "a float32",
        "(_HIGH, _LOW)": "the halves of ln 2",
    },
    "schedules/reduction.py": {
        "LANES_IN_THE_END": "of the last addition of parts", "_CARRIED": "elements",
    },
    "schedules/register_tile.py": {"COPY_LANES": "bytes of a line"},
    "tile.py": {
        "LANE_BLOCKS": "layouts of packed weights",
        "GROUP": "float32 of a register that an instruction indexes",
        "SIDE": "of an instruction's MMLA tiles", "PAIR": "of an ldp",
    },
    "schedules/transpose.py": {
        "ITEM_BITS": "of the exchange", "NEON_LANES": "of the exchange", "SIZES": "of the exchange",
        "_MOST_INLINED": "compile time",
    },
}  # fmt: skip


NO_FITS_OF_GPUS = {
    "lowering/one_writer.py": {
        "_POINTS": "a budget of compile time", "_SIZES": "tried for unknown ones",
    },
    "backend.py": {"DEEPEST": "brackets that compilers take"},
    "limits.py": {"_PARAMETERS": "of a kernel, in every language"},
    "schedules/attention.py": {
        "_LANES": "a space", "_ROWS": "a space", "_MOST_HEADS": "blocks along y",
    },
    "schedules/generic.py": {"_THREADS": "a space"},
    "schedules/matrix.py": {
        "_BLOCKS": "a space", "_TILES": "a space", "(_WARP_ROWS, _WARP_COLUMNS)": "instructions",
        "_PANEL_BYTES": "of an instruction's operands", "_FETCHED_BYTES": "of an instruction",
    },
    "schedules/rows.py": {"_LANES": "a space", "_ROWS": "a space"},
    "schedules/shared.py": {
        "_BLOCKS": "a space", "_TILES": "a space", "_DEPTHS": "a space", "STAGES": "a space",
        "PAIR": "of an instruction",
    },
    "joins.py": {"_MOST_TENSORS": "of WebGPU"}, "row_joins.py": {"_MOST_TENSORS": "of WebGPU"},
    "schedules/joined.py": {"_SUM_BYTES": "of the widest type"},
    "schedules/texels.py": {"_SIDE": "a space"},
    "schedules/warp_product.py": {"_SIDE": "of an instruction's matrices"},
    "schedules/tile.py": {"_SIDE": "a space", "_LONG_SIDE": "a space"},
    "warps.py": {
        "SUBGROUP_SHUFFLE": "Vulkan's bit", "_CUDA_WARP": "of the maker",
        "_METAL_MOST": "of the maker",
    },
    "winograd.py": {"_TILES": "a space"},
}  # fmt: skip


@pytest.mark.parametrize(("folder", "listed"), [(CPU, NO_FITS), (GPU, NO_FITS_OF_GPUS)])
def test_no_number_of_a_backend_is_fitted_beside_the_description(folder, listed):
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            numbers = [n for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            plain = isinstance(node.value, ast.Constant | ast.UnaryOp | ast.Tuple | ast.BinOp)
            if plain and numbers and all(type(n.value) in (int, float) for n in numbers):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                name = ast.unparse(target)
                found.setdefault(path.relative_to(folder).as_posix(), set()).add(name)
    assert found == {file: set(names) for file, names in listed.items()}


@pytest.mark.parametrize("kind", [Costs, GpuCosts])
def test_every_number_is_read(kind):
    sources = "".join(p.read_text() for p in (ROOT / "src/slipway").rglob("*.py"))
    unread = [f.name for f in dataclasses.fields(kind) if f".{f.name}" not in sources]
    assert not unread


def test_sizes_follow_from_the_caches():
    small, large = (Target(f"llvm -l2-cache-bytes={n << 10}") for n in (256, 2048))
    assert score_bytes(small) == 128 << 10
    assert score_bytes(large) == 1 << 20
    assert score_bytes(Target("llvm -mcpu=x86-64")) == 256 << 10
    assert l1_score_bytes(Target("llvm -mcpu=x86-64")) == 36 << 10
    assert Target("llvm").core.costs == ANY_CORE
