/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slipway/error.h"

slw_status slw_file_map(slw_file *file, const char *path) {
  struct stat about;
  void *bytes = MAP_FAILED;
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
  bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  (void)close(descriptor);
  if (bytes == MAP_FAILED) {
    (void)slw_error_setf("OSError", "cannot read %s: %s", path, strerror(errno));
    return SLW_ERROR_IO;
  }
  file->bytes = bytes;
  file->size_bytes = (size_t)about.st_size;
  return SLW_OK;
}

void slw_file_unmap(slw_file *file) {
  if (file->bytes != NULL) {
    (void)munmap((void *)(uintptr_t)file->bytes, file->size_bytes);
    file->bytes = NULL;
  }
}
