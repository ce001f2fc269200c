/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of device do alike: keep code under its SHA-256, and read a launch's arguments. */
#ifndef SLIPWAY_DEVICE_TEXT_H_
#define SLIPWAY_DEVICE_TEXT_H_

#include "slipway/device_api.h"

#define SLW_DIGEST_CHARS 64

/* Code that was made known, and what a kind of device made of it. */
typedef struct slw_device_text {
  struct slw_device_text *next;
  void *programs;
  size_t size_bytes;
  char digest[SLW_DIGEST_CHARS];
  char text[]; /* with a NUL behind it */
} slw_device_text;

/* Put a copy of code in front of a list that has none of that digest. */
slw_status slw_device_text_add(slw_device_text **list, const char *digest, const void *text,
                               size_t size_bytes);
slw_device_text *slw_device_text_find(slw_device_text *list, const char *digest);

/* A scalar argument as the bytes that a kernel takes. */
typedef struct {
  union {
    int64_t whole;
    float single;
    double number;
  } value;
  size_t size_bytes;
} slw_device_scalar;

/* `kind` is a character of slw_device_launch's signature, but not 'p'. */
slw_status slw_device_scalar_of(char kind, const TVMFFIAny *arg, slw_device_scalar *out);

/* Find the device that a launch's tensors are on: `device_of` tells that of an address. */
slw_status slw_device_of_launch(const slw_device_launch *launch, const char *kind,
                                slw_status (*device_of)(const void *address, int32_t *device_id),
                                int32_t *device_id);

#endif /* SLIPWAY_DEVICE_TEXT_H_ */
