import pytest

from slipway.errors import ToolchainError
from slipway.toolchain import zig
from slipway.toolchain.data_object import data_object
from slipway.toolchain.elf import ElfFile
from slipway.toolchain.link import link_shared

TRIPLES = [
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "armv7l-linux-gnueabihf",
    "riscv64-linux-gnu",
]
DATA = {"first": b"hello", "second": bytes(range(256)) * 40, "empty": b""}


@pytest.mark.parametrize("triple", TRIPLES)
def test_symbols_arrive_in_the_library_beside_code(tmp_path, triple):
    (tmp_path / "c.c").write_text("int f(int x) { return x + 1; }")
    flags = ["-c", "-fPIC", "-O1", "-g0", "-fno-unwind-tables", "-o", str(tmp_path / "c.o")]
    command = ["cc", "-target", zig.musl_target(triple), *flags, str(tmp_path / "c.c")]
    zig.run_zig(command, purpose="compiling")
    objects = [tmp_path / "c.o", data_object(DATA, triple)]
    elf = ElfFile(link_shared(objects, triple, tmp_path / "l.so").read_bytes())
    assert {"f", *DATA} <= set(elf.exported)
    for name, content in DATA.items():
        assert bytes(elf.symbol_bytes(name)) == content
        assert elf.symbol(name).value % 64 == 0


def test_equal_input_gives_equal_bytes():
    assert data_object(DATA, TRIPLES[0]) == data_object(dict(DATA), TRIPLES[0])


def test_other_formats_are_refused():
    with pytest.raises(ToolchainError, match=r"Export a \.tar"):
        data_object(DATA, "arm64-apple-macos")
