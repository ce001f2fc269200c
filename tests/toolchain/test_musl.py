"""Static programs: they take of musl what they need, and run as with all of it."""

import subprocess

import pytest

from slipway.errors import ToolchainError
from slipway.toolchain import emulators, musl, zig

PROGRAM = r"""
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static __thread int own = 7;
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void at_end(void) { puts("at the end"); }
static void *add(void *of) {
  own += 1;
  *(int *)of = own;
  return of;
}
__attribute__((constructor)) static void first(void) { setenv("FIRST", "yes", 1); }

int main(int count, char **words) {
  int values[4] = {3, -1, 2, 0}, seen = 0;
  pthread_t thread;
  char text[128], *moved;
  struct addrinfo *found = NULL, hints = {.ai_flags = AI_NUMERICHOST, .ai_family = AF_INET};
  struct timespec pause = {0, 1000};
  atexit(at_end);
  while (nanosleep(&pause, &pause) != 0 && errno == EINTR) {
  }
  qsort(values, 4, sizeof *values, order);
  pthread_create(&thread, NULL, add, &seen);
  pthread_join(thread, NULL);
  moved = realloc(calloc(3, 5), 1 << 20);
  memset(moved, 1, 1 << 20);
  free(moved);
  snprintf(text, sizeof text, "%.17g %a %Lf %s", sin(1e22), 0.1, 1.25L, strerror(ENOENT));
  printf("%d %d %d %s\n%s\n", values[0], seen, own, getenv("FIRST"), text);
  printf("%d %ld %.3f\n", getaddrinfo("127.0.0.1", "80", &hints, &found), strtol("-0x1f", NULL, 16),
         strtod("1e-3", NULL));
  return count - 1;
}
"""
PRINTED = """-1 8 7 yes
-0.85220084976718879 0x1.999999999999ap-4 1.250000 No such file or directory
0 -31 0.001
at the end
"""


@pytest.fixture
def commands(monkeypatch):
    """What zig is told, while it does it."""
    told = []

    def run(words, **more):
        told.append(list(words))
        return zig.run_zig(words, **more)

    monkeypatch.setattr(musl, "run_zig", run)
    return told


def compiled(architecture, folder):
    source, out = folder / "program.c", folder / "program.o"
    source.write_text(PROGRAM)
    target = zig.musl_target(architecture)
    cpu = ["-mcpu=cortex_a7"] if architecture == "armv7" else []
    flags = ["-Os", "-ffunction-sections", "-w", *cpu, "-r", "-o", str(out), str(source)]
    zig.run_zig(["cc", "-target", target, *flags], purpose="compiling")
    return target, cpu, out


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64", "armv7", "riscv64"])
def test_a_program_runs_on_its_part_of_the_library(architecture, tmp_path, commands):
    emulator = emulators.find(architecture)
    if emulator is None:
        pytest.skip(emulators.install_hint(architecture))
    target, cpu, program = compiled(architecture, tmp_path)
    musl.link_static(target, tmp_path / "program", [program], cpu)
    done = subprocess.run([*emulator, tmp_path / "program"], capture_output=True, text=True,
                          check=True, timeout=60)  # fmt: skip
    assert done.stdout == PRINTED
    ends = [words for words in commands if words[0] == "cc" and "-r" not in words]
    assert len(ends) == 1
    assert "-nostdlib" in ends[0]  # nothing else makes zig leave its whole library alone
    files = {word for words in commands for word in words if word.endswith((".c", ".s", ".S"))}
    assert len(files) < 250  # of more than a thousand


def test_what_cannot_be_found_is_left_to_zig(tmp_path, monkeypatch):
    told = []

    def run(words, **_):
        told.append(list(words))
        if words[0] == "ld.lld":
            raise ToolchainError("ld.lld: error: undefined hidden symbol: __nobody_has_this")
        if "-nostdlib" in words:
            raise ToolchainError("ld.lld: error: undefined symbol: __nobody_has_this")
        return f'.lib_dir = "{musl._library()}",'

    musl._library()
    monkeypatch.setattr(musl, "run_zig", run)
    musl.link_static("x86_64-linux-musl", tmp_path / "out", [tmp_path / "a.o"])
    assert told[-1] == [
        *("cc", "-target", "x86_64-linux-musl", "-static", "-s", "-Wl,--gc-sections"),
        *("-o", str(tmp_path / "out"), str(tmp_path / "a.o")),
    ]


@pytest.mark.parametrize("said", ['{"lib_dir": "FOLDER"}', '.{\n .lib_dir = "FOLDER",\n}'])
def test_both_spellings_of_what_zig_says_of_itself(said, tmp_path, monkeypatch):
    (tmp_path / "libc" / "musl" / "crt").mkdir(parents=True)
    (tmp_path / "libc" / "musl" / "crt" / "crt1.c").write_text("")
    monkeypatch.setattr(musl, "run_zig", lambda *_, **__: said.replace("FOLDER", str(tmp_path)))
    musl._library.cache_clear()
    try:
        assert musl._library() == tmp_path
        (tmp_path / "libc" / "musl" / "crt" / "crt1.c").unlink()
        musl._library.cache_clear()
        with pytest.raises(ToolchainError, match="no sources of musl"):
            musl._library()
    finally:
        musl._library.cache_clear()
