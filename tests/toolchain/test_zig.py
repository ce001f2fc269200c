"""The zig program where there is little around it."""

import pytest

from slipway.toolchain import zig


@pytest.mark.parametrize("home", [None, "/proc/no/such/home"])
def test_compiles_without_a_home(home, monkeypatch, tmp_path):
    for name in ("HOME", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    source = tmp_path / "one.c"
    source.write_text("int one(void) { return 1; }\n")
    out = tmp_path / "one.o"
    zig.run_zig(["cc", "-c", str(source), "-o", str(out)], purpose="compiling")
    assert out.stat().st_size > 0
