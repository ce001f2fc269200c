/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/tar.h"

#include <string.h>

#include "bytes.h"

#define BLOCK 512U

/* Field offsets and lengths of a ustar header. */
#define NAME_AT 0U
#define NAME_BYTES 100U
#define SIZE_AT 124U
#define SIZE_BYTES 12U
#define CHECKSUM_AT 148U
#define CHECKSUM_BYTES 8U
#define TYPE_AT 156U
#define MAGIC_AT 257U
#define PREFIX_AT 345U
#define PREFIX_BYTES 155U

/* Return 0 unless the field is an octal number ended by a space or NUL. */
static int read_octal(const uint8_t *field, size_t length, uint64_t *value) {
  size_t i = 0;
  *value = 0;
  while (i < length && field[i] == ' ') {
    ++i;
  }
  if (i == length || field[i] < '0' || field[i] > '7') {
    return 0;
  }
  for (; i < length && field[i] >= '0' && field[i] <= '7'; ++i) {
    *value = *value * 8U + (uint64_t)(field[i] - '0');
  }
  return i == length || field[i] == ' ' || field[i] == 0;
}

static int is_zero_block(const uint8_t *block) {
  for (size_t i = 0; i < BLOCK; ++i) {
    if (block[i] != 0) {
      return 0;
    }
  }
  return 1;
}

/* The sum of all header bytes, those of the checksum itself counted as spaces. */
static int checksum_matches(const uint8_t *header) {
  uint64_t sum = 0;
  uint64_t stated = 0;
  for (size_t i = 0; i < BLOCK; ++i) {
    int in_field = i >= CHECKSUM_AT && i < CHECKSUM_AT + CHECKSUM_BYTES;
    sum += in_field ? (uint64_t)' ' : header[i];
  }
  return read_octal(header + CHECKSUM_AT, CHECKSUM_BYTES, &stated) && stated == sum;
}

static size_t copy_field(char *to, const uint8_t *field, size_t length) {
  size_t used = 0;
  while (used < length && field[used] != 0) {
    to[used] = (char)field[used];
    ++used;
  }
  return used;
}

static void read_name(const uint8_t *header, char *name) {
  size_t used = copy_field(name, header + PREFIX_AT, PREFIX_BYTES);
  if (used > 0) {
    name[used++] = '/';
  }
  used += copy_field(name + used, header + NAME_AT, NAME_BYTES);
  name[used] = '\0';
}

slw_status slw_tar_next(const void *bytes, size_t size_bytes, size_t *offset_bytes,
                        slw_tar_member *member) {
  const uint8_t *archive = bytes;
  size_t offset = *offset_bytes;
  for (;;) {
    const uint8_t *header = archive + offset;
    uint64_t length = 0;
    uint64_t padded;
    if (!slw_in_range(offset, BLOCK, size_bytes)) {
      return SLW_ERROR_TRUNCATED;
    }
    if (is_zero_block(header)) {
      return SLW_ERROR_NOT_FOUND;
    }
    if (memcmp(header + MAGIC_AT, "ustar", 5) != 0 || !checksum_matches(header) ||
        !read_octal(header + SIZE_AT, SIZE_BYTES, &length)) {
      return SLW_ERROR_FORMAT;
    }
    offset += BLOCK;
    padded = (length + BLOCK - 1U) / BLOCK * BLOCK; /* 11 octal digits: no overflow */
    if (!slw_in_range(offset, padded, size_bytes)) {
      return SLW_ERROR_TRUNCATED;
    }
    offset += (size_t)padded;
    if (header[TYPE_AT] == '0' || header[TYPE_AT] == 0) {
      read_name(header, member->name);
      member->data = header + BLOCK;
      member->size_bytes = (size_t)length;
      *offset_bytes = offset;
      return SLW_OK;
    }
  }
}

slw_status slw_tar_find(const void *bytes, size_t size_bytes, const char *name,
                        slw_tar_member *member) {
  size_t offset = 0;
  for (;;) {
    slw_status status = slw_tar_next(bytes, size_bytes, &offset, member);
    if (status != SLW_OK || slw_text_equal(member->name, name)) {
      return status;
    }
  }
}

int slw_tar_is_archive(const void *bytes, size_t size_bytes) {
  return size_bytes >= BLOCK && memcmp((const uint8_t *)bytes + MAGIC_AT, "ustar", 5) == 0;
}
