"""Generated C against MISRA C:2012; `make misra` checks more models and the runtime."""

import importlib.util
import shutil
from collections import Counter
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "misra.py"


@pytest.fixture(scope="module")
def misra():
    if shutil.which("cppcheck") is None:
        pytest.skip("cppcheck is not installed")
    spec = importlib.util.spec_from_file_location("misra", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_quantised_model_has_no_unjustified_deviation(misra, tmp_path):
    found = misra.run([misra.kernel_model(tmp_path, "dsp")], [tmp_path])
    assert found, "the addon found nothing at all, so it cannot have run"
    assert misra.unjustified(found) == []


def test_a_required_rule_without_a_reason_is_reported(misra, tmp_path):
    source = tmp_path / "null.c"
    source.write_text("int test(const int *p);\nint test(const int *p) { return p == 0; }\n")
    assert ("null.c", 2, "11.9") in misra.unjustified(misra.run([source], [tmp_path]))


def test_code_for_the_cores_of_a_family_is_read_too(misra, tmp_path):
    source = tmp_path / "core.c"
    source.write_text(
        "int test(const int *p);\nint test(const int *p) {\n#if defined(__riscv_mul)\n"
        "  return p == 0;\n#else\n  return *p;\n#endif\n}\n"
    )
    assert misra.run([source], [tmp_path]) == set()
    assert ("core.c", 4, "11.9") in misra.run([source], [tmp_path], misra.CORES["scalar"])


@pytest.mark.long
def test_runtime_and_every_model_have_no_unjustified_deviation(misra, shared, tmp_path):
    runtime = misra.check_runtime()
    models = misra.check_models(tmp_path, shared / "models" / "tflite")
    assert misra.unjustified(runtime | models) == []
    counts = (Counter(rule for _, _, rule in found) for found in (runtime, models))
    table = "\n".join(misra.counted(*counts))
    assert table in (misra.CRT / "README.md").read_text(), "run tools/misra.py --write"
