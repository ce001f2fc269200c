/* SPDX-License-Identifier: Apache-2.0
 * What a device says of itself to who looks for a fault (`slipway doctor`): lines of a name, a
 * blank and a value.  Nothing of it is needed to run models.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "slipway/cpu.h"
#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/packed.h"

#define ABOUT_BYTES 4096
#define LINE_BYTES 256
#define PATH_BYTES 128
#define ZONE "/sys/class/thermal/thermal_zone"
#define MAX_ZONES 32
#define CORE "/sys/devices/system/cpu/cpu"

typedef struct {
  char bytes[ABOUT_BYTES];
  size_t used;
} text;

/* What does not fit any more is left out. */
__attribute__((format(__printf__, 2, 3))) static void add(text *to, const char *format, ...) {
  size_t room = sizeof to->bytes - to->used;
  va_list arguments;
  int size;
  va_start(arguments, format);
  size = vsnprintf(to->bytes + to->used, room, format, arguments);
  va_end(arguments);
  if (size > 0 && (size_t)size < room) {
    to->used += (size_t)size;
  }
  to->bytes[to->used] = '\0';
}

static void add_system(text *to) {
  struct utsname system;
  if (uname(&system) == 0) {
    add(to, "system %s %s\nmachine %s\nhost %s\n", system.sysname, system.release, system.machine,
        system.nodename);
  }
}

static void add_clock(text *to) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) == 0) {
    add(to, "clock %lld.%09ld\n", (long long)now.tv_sec, (long)now.tv_nsec);
  }
}

/* The first line of a file, without what ends it; boards have their name in the device tree. */
static void add_first_line(text *to, const char *name, const char *path) {
  char line[LINE_BYTES];
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return;
  }
  if (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    add(to, "%s %s\n", name, line);
  }
  (void)fclose(file);
}

/* Memory in bytes; the system counts kilobytes. */
static void add_memory(text *to) {
  char line[LINE_BYTES];
  unsigned long long kilobytes = 0;
  FILE *file = fopen("/proc/meminfo", "re");
  if (file == NULL) {
    return;
  }
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "MemTotal: %llu kB", &kilobytes) == 1) {
      add(to, "memory_bytes %llu\n", kilobytes * 1024U);
    } else if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) {
      add(to, "memory_free_bytes %llu\n", kilobytes * 1024U);
    }
  }
  (void)fclose(file);
}

/* The folder that uploads go to is the current one. */
static void add_disk(text *to) {
  struct statvfs disk;
  if (statvfs(".", &disk) == 0) {
    unsigned long long block = disk.f_frsize;
    add(to, "disk_bytes %llu\ndisk_free_bytes %llu\n", block * (unsigned long long)disk.f_blocks,
        block * (unsigned long long)disk.f_bavail);
  }
}

/* The largest of the numbers in the files `head`0`tail`, `head`1`tail`, ...; -1 without one. */
static long long largest(const char *head, const char *tail, long count) {
  char path[PATH_BYTES];
  long long found = -1;
  for (long i = 0; i < count; ++i) {
    long long value = -1;
    FILE *file;
    (void)snprintf(path, sizeof path, "%s%ld%s", head, i, tail);
    file = fopen(path, "re");
    if (file == NULL) {
      continue;
    }
    if (fscanf(file, "%lld", &value) == 1 && value > found) {
      found = value;
    }
    (void)fclose(file);
  }
  return found;
}

/* How warm the machine is, and how fast it runs just now: a hot one slows itself down. */
static void add_heat(text *to) {
  long cores = sysconf(_SC_NPROCESSORS_CONF);
  long long temperature = largest(ZONE, "/temp", MAX_ZONES);
  long long clock_khz = largest(CORE, "/cpufreq/scaling_cur_freq", cores);
  long long limit_khz = largest(CORE, "/cpufreq/cpuinfo_max_freq", cores);
  if (temperature >= 0) {
    add(to, "temperature_c %lld.%lld\n", temperature / 1000, temperature % 1000 / 100);
  }
  if (clock_khz >= 0) {
    add(to, "clock_mhz %lld\n", clock_khz / 1000);
  }
  if (limit_khz >= 0) {
    add(to, "clock_limit_mhz %lld\n", limit_khz / 1000);
  }
}

/* The kind of this program: a 64-bit system may run a server of 32 bits. */
static const char *architecture(void) {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__arm__)
  return "armv7";
#elif defined(__riscv) && (__riscv_xlen == 64)
  return "riscv64";
#elif defined(__hexagon__)
  return "hexagon";
#else
  return "other";
#endif
}

static void add_processor(text *to) {
  const char *name = NULL;
  add(to, "architecture %s\ncores %ld\nfeatures ", architecture(),
      sysconf(_SC_NPROCESSORS_ONLN));
  for (size_t i = 0; (name = slw_cpu_feature(i)) != NULL; ++i) {
    if (name[0] != '\0' && slw_cpu_has(name, strlen(name)) == SLW_CPU_HAS) {
      add(to, "+%s,", name);
    }
  }
  add(to, "\n");
}

int slw_packed_about(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  text about = {.used = 0};
  (void)handle;
  (void)args;
  if (num_args != 0) {
    return slw_error_setf("TypeError", "slipway.about takes no arguments");
  }
  add_clock(&about);
  add_system(&about);
  add_first_line(&about, "board", "/proc/device-tree/model");
  add_memory(&about);
  add_disk(&about);
  add_processor(&about);
  add_heat(&about);
  if (slw_any_set_string(result, about.bytes, about.used) != SLW_OK) {
    return slw_error_setf("MemoryError", "there is no memory for a text of %zu bytes", about.used);
  }
  return 0;
}
