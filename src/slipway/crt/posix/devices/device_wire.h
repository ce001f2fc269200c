/* SPDX-License-Identifier: Apache-2.0 */
/* What a static program and its dynamic child say to each other about devices: over a pair of
 * sockets, a message and the bytes after it, each answered by one of the same form. */
#ifndef SLIPWAY_DEVICE_WIRE_H_
#define SLIPWAY_DEVICE_WIRE_H_

#include <stddef.h>
#include <stdint.h>

#define SLW_DEVICE_SOCKET 3 /* of the child */

typedef enum {
  SLW_DEVICE_ALLOC,      /* device, first: bytes -> first: address */
  SLW_DEVICE_RELEASE,    /* first: address */
  SLW_DEVICE_WHERE,      /* first: address -> device */
  SLW_DEVICE_READ,       /* first: address, second: bytes -> the bytes */
  SLW_DEVICE_WRITE,      /* first: address, the bytes */
  SLW_DEVICE_COPY,       /* first: from, second: to, third: bytes */
  SLW_DEVICE_ADD_CODE,   /* the digest, the code */
  SLW_DEVICE_DROP_CODE,  /* the digest */
  SLW_DEVICE_LAUNCH,     /* slw_device_wire_launch, arguments, digest, kernel and signature */
  SLW_DEVICE_SYNC,       /* device */
  SLW_DEVICE_WAIT_ALL,   /* nothing */
  SLW_DEVICE_LAUNCHES,   /* device -> first: how many */
  SLW_DEVICE_MARK,       /* device -> first: the mark */
  SLW_DEVICE_BETWEEN,    /* device, first and second: marks -> first: nanoseconds */
  SLW_DEVICE_TRIM,       /* device */
  SLW_DEVICE_ATTRIBUTE,  /* device, first: which -> second: its type; first, or the text */
  SLW_DEVICE_ALLOC_IMAGE /* device, first: columns, second: rows, third: bits -> first: address */
} slw_device_op;

typedef struct {
  int32_t op;
  int32_t kind;   /* of device */
  int32_t device; /* its number */
  int32_t status; /* of an answer; else than SLW_OK: the bytes are the error's kind and message */
  uint64_t first;
  uint64_t second;
  uint64_t third;
  uint64_t size_bytes; /* of what follows */
} slw_device_message;

/* What a launch begins with; the arguments, 16 bytes each, and three texts with their NULs follow. */
typedef struct {
  uint64_t grid[3];
  uint64_t block[3];
  uint64_t num_args;
} slw_device_wire_launch;

/* Send or take all of some bytes. @return 0, or -1 where the other side has gone */
int slw_device_send(int socket, const void *data, size_t size_bytes);
int slw_device_take(int socket, void *data, size_t size_bytes);

#endif /* SLIPWAY_DEVICE_WIRE_H_ */
