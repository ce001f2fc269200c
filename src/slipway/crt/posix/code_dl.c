/* SPDX-License-Identifier: Apache-2.0 */
/* The system's loader, given a private copy of the library: dlopen takes two files with one name
 * or one inode for the same library, and a library that is uploaded again must be a new one.
 * A nameless copy is known as /proc/self/fd/N, so N stays taken until the library is closed. */
#if !defined(SLW_STATIC)

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "code.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/library.h"

/* A nameless file; `path` is what dlopen can reach it by. -1 where there is no such thing. */
static int make_nameless(char *path, size_t path_bytes) {
#if defined(SYS_memfd_create)
  /* As a system call: the C library has a function for it only since glibc 2.27. */
  int file = (int)syscall(SYS_memfd_create, "slipway-library", 1U /* MFD_CLOEXEC */);
  (void)slw_format(path, path_bytes, "/proc/self/fd/%d", file);
  return file;
#else
  (void)path;
  (void)path_bytes;
  return -1;
#endif
}

static int make_named(char *path, size_t path_bytes) {
  const char *folder = getenv("TMPDIR");
  (void)slw_format(path, path_bytes, "%s/slipway-XXXXXX", (folder != NULL) ? folder : "/tmp");
  return mkstemp(path);
}

static int write_all(int file, const uint8_t *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(file, bytes, size);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return 0;
    }
    bytes += written;
    size -= (size_t)written;
  }
  return 1;
}

/* Fill the file and load it; takes the file over. Returns 0 with the thread's error set. */
static int load_copy(slw_code *code, const slw_elf *elf, const char *name, const char *path,
                     int file) {
  if (file < 0 || !write_all(file, elf->bytes, elf->size_bytes)) {
    (void)slw_error_setf("OSError", "cannot load %s: a temporary copy cannot be written: %s", name,
                         strerror(errno));
  } else {
    code->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (code->handle != NULL) {
      code->file = file;
      return 1;
    }
    const char *reason = dlerror();
    (void)slw_error_setf("ArtifactError", "cannot load %s: %s", name,
                         (reason != NULL) ? reason : "the system's loader refused it");
  }
  if (file >= 0) {
    (void)close(file);
  }
  return 0;
}

slw_status slw_code_open(slw_code *code, const slw_elf *elf, const char *name) {
  char path[512];
  int file = make_nameless(path, sizeof path);
  if (file >= 0 && load_copy(code, elf, name, path, file)) {
    return SLW_OK;
  }
  /* Some systems forbid running code from nameless files. */
  file = make_named(path, sizeof path);
  if (!load_copy(code, elf, name, path, file)) {
    if (file >= 0) {
      (void)unlink(path);
    }
    return SLW_ERROR_FORMAT;
  }
  (void)unlink(path);
  return SLW_OK;
}

void slw_code_close(slw_code *code) {
  (void)dlclose(code->handle);
  if (code->file >= 0) {
    (void)close(code->file);
  }
}

void *slw_code_symbol(const slw_code *code, const slw_elf *elf, const char *symbol) {
  (void)elf;
  return dlsym(code->handle, symbol);
}

void slw_library_pin(const void *address) {
  Dl_info info;
  if (dladdr(address, &info) != 0 && info.dli_fname != NULL) {
    (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

#else
typedef int slw_code_dl_is_for_dynamic_programs;
#endif
