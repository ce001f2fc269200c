"""Objects of the device runtime that projects have in common are compiled once."""

import shutil

import pytest

from slipway import micro
from slipway.micro.toolchain import kept_objects, make_project

MAKEFILE = """\
CC = cc
CFLAGS = -O1 {flags} -Icrt/include
OBJECTS = build/crt/src/one.o build/crt/src/two.o build/board/main.o
build/firmware: $(OBJECTS)
\t$(CC) -o $@ $(OBJECTS)
build/%.o: %.c
\t@mkdir -p $(dir $@)
\t@echo $< >> log
\t$(CC) $(CFLAGS) -MMD -c -o $@ $<
-include build/crt/src/one.d
"""


@pytest.fixture
def project(cache_folder):
    """A function that lays a small project out."""
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("apt-get install gcc make")

    def lay_out(name, flags="", number=1):
        folder = cache_folder / name
        for part in ("crt/src", "crt/include", "board"):
            (folder / part).mkdir(parents=True)
        (folder / "Makefile").write_text(MAKEFILE.format(flags=flags))
        (folder / "crt/include/number.h").write_text(f"#define NUMBER {number}\n")
        text = '#include "number.h"\nint one(void) { return NUMBER; }\n'
        (folder / "crt/src/one.c").write_text(text)
        (folder / "crt/src/two.c").write_text("int two(void) { return 2; }\n")
        (folder / "board/main.c").write_text("int main(void) { return 0; }\n")
        return folder

    return lay_out


def compiled(folder):
    """Return the sources that make has compiled since the last call."""
    log = folder / "log"
    found = sorted(log.read_text().split()) if log.exists() else []
    log.unlink(missing_ok=True)
    return found


ALL = ["board/main.c", "crt/src/one.c", "crt/src/two.c"]


def test_the_second_project_compiles_what_is_its_own(project):
    first, second = project("first"), project("second")
    make_project(first, 1)
    assert compiled(first) == ALL
    make_project(second, 1)
    assert compiled(second) == ["board/main.c"]
    for end in ("o", "d"):
        kept, made = (folder / f"build/crt/src/one.{end}" for folder in (second, first))
        assert kept.read_bytes() == made.read_bytes()
    (second / "crt/include/number.h").write_text("#define NUMBER 3\n")
    make_project(second, 1)
    assert compiled(second) == ["crt/src/one.c"], "make knows what the object was made of"


@pytest.mark.parametrize("other", [{"flags": "-DOTHER"}, {"number": 2}])
def test_other_flags_or_headers_are_other_objects(project, other):
    first, second = project("first"), project("second", **other)
    make_project(first, 1)
    make_project(second, 1)
    assert compiled(second) == ALL


def test_another_text_is_another_object(project):
    first, second = project("first"), project("second")
    make_project(first, 1)
    (second / "crt/src/two.c").write_text("int two(void) { return 3; }\n")
    make_project(second, 1)
    assert compiled(second) == ["board/main.c", "crt/src/two.c"]


def test_without_a_cache_everything_is_compiled(project, monkeypatch):
    monkeypatch.setenv("SLIPWAY_KERNEL_CACHE", "0")
    for folder in (project("first"), project("second")):
        make_project(folder, 1)
        assert compiled(folder) == ALL


def test_a_compiler_that_is_not_there_is_not_asked(project):
    with kept_objects(project("first"), "no-such-cc", "no-such-cc -O1") as missing:
        assert missing == []


def test_a_process_is_made_of_the_runtime_as_it_is_now(cache_folder):
    if shutil.which("cc") is None:
        pytest.skip("apt-get install gcc")
    made = micro.generate_firmware("crt", cache_folder / "p")
    made.build()
    source = cache_folder / "p/crt/src/format.c"
    source.write_text(source.read_text() + "\n#error somebody has changed this\n")
    with pytest.raises(Exception, match="somebody has changed this"):
        made.build()
    made.close()
