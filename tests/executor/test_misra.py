"""Generated C against MISRA C:2012; `make misra` checks more models and the runtime."""

import importlib.util
import shutil
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "misra.py"


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
