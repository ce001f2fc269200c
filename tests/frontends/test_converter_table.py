"""The table of converters that the importers of all formats share."""

import pytest

from slipway.errors import SlipwayError
from slipway.frontends.converter_table import ConverterTable, UnsupportedNode


def test_families_enter_their_functions_when_the_table_is_loaded(tmp_path, monkeypatch):
    package = tmp_path / "made_up_format"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from slipway.frontends.converter_table import ConverterTable\n"
        "TABLE = ConverterTable(__name__, ('first', 'second'))\n"
    )
    for family, names in (("first", "'Add', 'Sum'"), ("second", "'Mul'")):
        (package / f"{family}.py").write_text(
            "from made_up_format import TABLE\n"
            f"@TABLE.converter({names})\n"
            f"def {family}(node):\n"
            "    return node\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    import made_up_format

    assert made_up_format.TABLE.entries == {}
    loaded = made_up_format.TABLE.load()
    assert sorted(loaded) == ["Add", "Mul", "Sum"]
    assert loaded["Add"] is loaded["Sum"]
    assert loaded["Mul"]("node") == "node"
    assert made_up_format.TABLE.load() is loaded


def test_the_decorator_returns_the_function():
    table: ConverterTable[str] = ConverterTable("nowhere", ())

    @table.converter("A")
    def convert(node):
        return node + "!"

    assert convert("a") == "a!"
    assert table.load() == {"A": convert}


def test_a_family_without_a_file_is_an_import_error():
    with pytest.raises(ModuleNotFoundError, match="no_such_family"):
        ConverterTable("slipway.frontends", ("no_such_family",)).load()


def test_what_is_unsupported_is_an_error_of_slipway():
    assert issubclass(UnsupportedNode, SlipwayError)
