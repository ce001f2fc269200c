/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses for memory that a driver gives handles for: each allocation reserves as much address
 * space, which nothing may touch, and an address inside stands for an offset in it. */
#ifndef SLIPWAY_DEVICE_SPACE_H_
#define SLIPWAY_DEVICE_SPACE_H_

#include <pthread.h>

#include "slipway/abi.h"
#include "slipway/status.h"

typedef struct {
  char *base;
  size_t size_bytes; /* reserved, and there: at least one */
  int32_t device_id;
  void *held; /* what the kind of device keeps of the allocation */
} slw_device_range;

/* The allocations of a kind of device, sorted by base. */
typedef struct {
  slw_device_range *ranges;
  size_t count;
  size_t capacity;
  pthread_mutex_t lock;
} slw_device_space;

#define SLW_DEVICE_SPACE_EMPTY {NULL, 0, 0, PTHREAD_MUTEX_INITIALIZER}

/* Reserve addresses for an allocation, and remember it. */
slw_status slw_device_space_add(slw_device_space *space, size_t size_bytes, int32_t device_id,
                                void *held, void **base);

/* The allocation that an address lies in, with the byte where it lies; 0: in none. */
int slw_device_space_find(slw_device_space *space, const void *address, slw_device_range *range,
                          size_t *offset);

/* Forget the allocation that begins at an address, and return what was held; NULL: none does. */
void *slw_device_space_remove(slw_device_space *space, const void *base);

#endif /* SLIPWAY_DEVICE_SPACE_H_ */
