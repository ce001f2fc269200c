"""A clock for busy machines: device servers that start from here count their own processor time.

What other processes take is not counted, so that candidates and layouts can be told apart on a
machine that is at work.  What others do to caches and clocks shows all the same.
"""

import os
import subprocess

_SHIM = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  if (id == CLOCK_MONOTONIC) id = CLOCK_PROCESS_CPUTIME_ID;
  return (int)syscall(SYS_clock_gettime, id, now);
}
"""


def use_processor_time(folder):
    """Let the servers that this process starts measure processor time (Linux, one thread)."""
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_SHIM)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    os.environ["LD_PRELOAD"] = str(library)
