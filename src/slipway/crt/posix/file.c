/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slipway/error.h"

/* Fill memory from a file; 0 with errno, which is 0 where the file has become shorter. */
static int read_all(int descriptor, uint8_t *at, size_t size_bytes) {
  while (size_bytes > 0) {
    ssize_t count = read(descriptor, at, size_bytes);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      errno = (count == 0) ? 0 : errno;
      return 0;
    }
    at += count;
    size_bytes -= (size_t)count;
  }
  return 1;
}

static slw_status fill(slw_file *file, int descriptor, const char *path) {
  void *bytes = mmap(NULL, file->size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
  if (bytes == MAP_FAILED) {
    (void)slw_error_setf("MemoryError", "no memory for the %llu bytes of %s",
                         (unsigned long long)file->size_bytes, path);
    return SLW_ERROR_MEMORY;
  }
  file->bytes = bytes;
  if (!read_all(descriptor, bytes, file->size_bytes)) {
    (void)slw_error_setf("OSError", "cannot read %s: %s", path,
                         (errno != 0) ? strerror(errno) : "it became shorter meanwhile");
    slw_file_free(file);
    return SLW_ERROR_IO;
  }
  return SLW_OK;
}

slw_status slw_file_read(slw_file *file, const char *path) {
  struct stat about;
  slw_status status;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  memset(file, 0, sizeof *file);
  if (descriptor < 0 || fstat(descriptor, &about) != 0) {
    (void)slw_error_setf((errno == ENOENT) ? "FileNotFoundError" : "OSError",
                         "cannot open %s: %s. Check the path; export_library writes such files.",
                         path, strerror(errno));
    if (descriptor >= 0) {
      (void)close(descriptor);
    }
    return (errno == ENOENT) ? SLW_ERROR_NOT_FOUND : SLW_ERROR_IO;
  }
  if (!S_ISREG(about.st_mode) || about.st_size <= 0 ||
      (uint64_t)about.st_size > (uint64_t)(SIZE_MAX / 2)) {
    (void)slw_error_setf("ArtifactError", "%s is %s.", path,
                         S_ISREG(about.st_mode) ? "empty, or too large for this machine"
                                                : "not a file");
    (void)close(descriptor);
    return SLW_ERROR_FORMAT;
  }
  file->size_bytes = (size_t)about.st_size;
  status = fill(file, descriptor, path);
  (void)close(descriptor);
  return status;
}

void slw_file_free(slw_file *file) {
  if (file->bytes != NULL) {
    (void)munmap((void *)(uintptr_t)file->bytes, file->size_bytes);
    file->bytes = NULL;
  }
}

void slw_file_forget(const void *bytes, size_t size_bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t from = ((uintptr_t)bytes + page - 1U) & ~(page - 1U);
  uintptr_t to = ((uintptr_t)bytes + size_bytes) & ~(page - 1U);
  if (to > from) {
    (void)madvise((void *)from, to - from, MADV_DONTNEED);
  }
}
