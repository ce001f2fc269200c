/* SPDX-License-Identifier: Apache-2.0 */
/* What the streams of all kinds of device do alike: their numbers, which of them a thread uses, and the
 * host's memory that devices copy by themselves. */
#ifndef SLIPWAY_DEVICE_STREAMS_H_
#define SLIPWAY_DEVICE_STREAMS_H_

#include "device_driver.h"

#define SLW_MAX_STREAMS 32 /* of a device, beside its own queue */

typedef struct {
  uint64_t number; /* unlike that of any other of the process; 0: no stream */
  void *queue;     /* the driver's */
  uint64_t seen;   /* of the own queue's work: what this waits for already */
  int has_work;    /* that the own queue does not wait for yet */
} slw_stream;

typedef struct {
  slw_stream streams[SLW_MAX_STREAMS];
  size_t count;
  uint64_t own_work; /* grows with what the own queue is given while there are streams */
} slw_stream_set;

/* The lock of the device that a set belongs to is held. */

/* A slot for a stream of this queue; NULL with the thread's error set. */
slw_stream *slw_stream_add(const slw_device_driver *driver, int32_t device_id, slw_stream_set *set,
                           void *queue);
/* The stream of a number; NULL with the thread's error set. */
slw_stream *slw_stream_find(const slw_device_driver *driver, int32_t device_id, slw_stream_set *set,
                            uint64_t number);
void slw_stream_remove(slw_stream_set *set, slw_stream *gone);

/* The host's memory that a driver made. */
typedef struct slw_pinned {
  struct slw_pinned *next;
  char *base;
  size_t size_bytes;
  int32_t device_id;
  void *held; /* what the driver keeps of it */
} slw_pinned;

typedef struct {
  slw_pinned *first;
  pthread_mutex_t lock;
} slw_pinned_list;

#define SLW_PINNED_EMPTY {NULL, PTHREAD_MUTEX_INITIALIZER}

slw_status slw_pinned_add(slw_pinned_list *list, const slw_pinned *made);
/* Take the memory that begins at an address off the list; 0: none does. */
int slw_pinned_remove(slw_pinned_list *list, const void *base, slw_pinned *out);
/* Refuse bytes that are in none of a list's memory; `out` may be NULL. */
slw_status slw_pinned_check(const slw_device_driver *driver, slw_pinned_list *list,
                            const void *address, size_t size_bytes, slw_pinned *out);

#endif /* SLIPWAY_DEVICE_STREAMS_H_ */
