/* SPDX-License-Identifier: Apache-2.0
 * The folder of a session: made, locked while it is in use, removed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc_server_internal.h"

#define PREFIX "slipway-rpc-"
#define FRESH_S 10 /* a folder this young may be one that is just being made */
#define MAX_DEPTH 32 /* uploads make none; a session's own code may */

/* Empty the folder behind `fd`; takes over the descriptor. */
static void empty_folder(int fd, int depth) {
  DIR *folder = fdopendir(fd);
  const struct dirent *entry;
  if (folder == NULL) {
    (void)close(fd);
    return;
  }
  for (entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    const char *name = entry->d_name;
    int below;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        unlinkat(dirfd(folder), name, 0) == 0) {
      continue;
    }
    below = openat(dirfd(folder), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0 && depth < MAX_DEPTH) {
      empty_folder(below, depth + 1);
    } else if (below >= 0) {
      (void)close(below);
    }
    (void)unlinkat(dirfd(folder), name, AT_REMOVEDIR);
  }
  (void)closedir(folder);
}

void slw_rpc_remove_folder(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) {
    empty_folder(fd, 0);
    (void)rmdir(path);
  }
}

/* Lock a folder; true, too, where the file system or the kernel has no locks. */
static bool lock(int fd) {
  return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == EOPNOTSUPP ||
         errno == EINVAL || errno == ENOSYS;
}

static const char *base_folder(void) {
  const char *base = getenv("TMPDIR");
  return base != NULL && base[0] == '/' ? base : "/tmp";
}

int slw_rpc_make_folder(char *path, size_t size) {
  int fd;
  int count = snprintf(path, size, "%s/" PREFIX "XXXXXX", base_folder());
  if (count < 0 || (size_t)count >= size || mkdtemp(path) == NULL) {
    return -1;
  }
  fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || !lock(fd)) {
    if (fd >= 0) {
      (void)close(fd);
    }
    (void)rmdir(path);
    return -1;
  }
  return fd;
}

static void remove_if_unused(int base, const char *name) {
  struct stat status;
  int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
      time(NULL) - status.st_mtime > FRESH_S && flock(fd, LOCK_EX | LOCK_NB) == 0) {
    int copy = dup(fd);
    if (copy >= 0) {
      empty_folder(copy, 0);
    }
    (void)unlinkat(base, name, AT_REMOVEDIR);
  }
  (void)close(fd);
}

void slw_rpc_sweep_folders(void) {
  DIR *base = opendir(base_folder());
  const struct dirent *entry;
  if (base == NULL) {
    return;
  }
  for (entry = readdir(base); entry != NULL; entry = readdir(base)) {
    if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1u) == 0) {
      remove_if_unused(dirfd(base), entry->d_name);
    }
  }
  (void)closedir(base);
}
