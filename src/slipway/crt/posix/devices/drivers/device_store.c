/* SPDX-License-Identifier: Apache-2.0 */
/* Files of what drivers made of kernels, in the folder that SLIPWAY_DEVICE_CACHE names; without it
 * nothing is kept.
 *
 * A file's name is the SHA-256 of all that its content depends on (the code, the driver and its
 * version, the device, the options), and it begins with the SHA-256 of what follows.  Only files of
 * this user's that nobody else can write are read: a driver trusts what it is given. */
#include "device_store.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slipway/format.h"
#include "slipway/sha256.h"

#define PATH_CHARS 1024
#define MOST_BYTES ((size_t)256 << 20)

int slw_device_store_keeps(void) {
  const char *folder = getenv("SLIPWAY_DEVICE_CACHE");
  return folder != NULL && folder[0] != '\0' && strlen(folder) <= PATH_CHARS - 96U;
}

/* The path of what is kept under `key`, or 0 where nothing is. */
static int find_path(const char *const *key, char path[PATH_CHARS]) {
  const char *folder = getenv("SLIPWAY_DEVICE_CACHE");
  uint8_t digest[SLW_SHA256_BYTES];
  slw_sha256 hash;
  size_t used;
  if (!slw_device_store_keeps()) {
    return 0;
  }
  slw_sha256_init(&hash);
  for (; *key != NULL; ++key) {
    slw_sha256_update(&hash, *key, strlen(*key) + 1U);
  }
  slw_sha256_final(&hash, digest);
  used = slw_format(path, PATH_CHARS, "%s/", folder);
  for (size_t i = 0; i < SLW_SHA256_BYTES; ++i) {
    static const char DIGITS[] = "0123456789abcdef";
    path[used++] = DIGITS[digest[i] >> 4];
    path[used++] = DIGITS[digest[i] & 15U];
  }
  (void)slw_format(path + used, PATH_CHARS - used, ".bin");
  return 1;
}

static void digest_of(const void *bytes, size_t size_bytes, uint8_t digest[SLW_SHA256_BYTES]) {
  slw_sha256 hash;
  slw_sha256_init(&hash);
  slw_sha256_update(&hash, bytes, size_bytes);
  slw_sha256_final(&hash, digest);
}

static size_t size_of(int file) {
  struct stat about;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid() ||
      (about.st_mode & (S_IWGRP | S_IWOTH)) != 0 || about.st_size <= SLW_SHA256_BYTES ||
      (uint64_t)about.st_size > MOST_BYTES) {
    return 0;
  }
  return (size_t)about.st_size;
}

static int read_all(int file, uint8_t *bytes, size_t size_bytes) {
  while (size_bytes > 0U) {
    ssize_t got = read(file, bytes, size_bytes);
    if (got <= 0) {
      return 0;
    }
    bytes += got;
    size_bytes -= (size_t)got;
  }
  return 1;
}

static int write_all(int file, const uint8_t *bytes, size_t size_bytes) {
  while (size_bytes > 0U) {
    ssize_t put = write(file, bytes, size_bytes);
    if (put <= 0) {
      return 0;
    }
    bytes += put;
    size_bytes -= (size_t)put;
  }
  return 1;
}

void *slw_device_store_read(const char *const *key, size_t *size_bytes) {
  char path[PATH_CHARS];
  uint8_t said[SLW_SHA256_BYTES];
  uint8_t found[SLW_SHA256_BYTES] = {0};
  void *bytes = NULL;
  size_t whole;
  int file = find_path(key, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (file < 0) {
    return NULL;
  }
  whole = size_of(file);
  if (whole > 0U && read_all(file, said, sizeof said)) {
    *size_bytes = whole - sizeof said;
    bytes = malloc(*size_bytes);
    if (bytes != NULL && read_all(file, bytes, *size_bytes)) {
      digest_of(bytes, *size_bytes, found);
    }
    if (bytes != NULL && memcmp(said, found, sizeof found) != 0) {
      free(bytes);
      bytes = NULL;
    }
  }
  (void)close(file);
  return bytes;
}

void slw_device_store_write(const char *const *key, const void *bytes, size_t size_bytes) {
  char path[PATH_CHARS];
  char part[PATH_CHARS + 32];
  uint8_t digest[SLW_SHA256_BYTES];
  int file;
  int is_whole;
  if (size_bytes == 0U || size_bytes > MOST_BYTES - sizeof digest || !find_path(key, path)) {
    return;
  }
  (void)mkdir(getenv("SLIPWAY_DEVICE_CACHE"), 0700);
  (void)slw_format(part, sizeof part, "%s.%d", path, (int)getpid());
  file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    return;
  }
  digest_of(bytes, size_bytes, digest);
  is_whole = write_all(file, digest, sizeof digest) && write_all(file, bytes, size_bytes);
  is_whole = (close(file) == 0) && is_whole;
  /* Whole or not at all: another process may read it now. */
  if (!is_whole || rename(part, path) != 0) {
    (void)unlink(part);
  }
}
