/* SPDX-License-Identifier: Apache-2.0
 * Removing a session's folder.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc_server_internal.h"

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
