from pathlib import Path

import slipway


def test_a_build_system_finds_headers_and_sources():
    (include,) = map(Path, slipway.libinfo.find_include_path())
    assert (include / "slipway" / "abi.h").is_file()
    (crt,) = map(Path, slipway.libinfo.find_crt_include_path())
    assert any(crt.rglob("*.c"))
