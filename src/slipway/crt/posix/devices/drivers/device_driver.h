/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of device do alike: open a driver with the system's loader, number its devices,
 * keep code under its SHA-256 with what the driver made of it, and read a launch's arguments. */
#ifndef SLIPWAY_DEVICE_DRIVER_H_
#define SLIPWAY_DEVICE_DRIVER_H_

#include <pthread.h>
#include <sys/types.h>

#include "slipway/device_api.h"

#define SLW_DIGEST_CHARS 64
#define SLW_MAX_DEVICES 16
#define SLW_KERNEL_CHARS 96 /* of a name that is kept for messages, with its NUL */

/* A kernel as the driver has compiled it. */
typedef struct slw_device_kernel {
  struct slw_device_kernel *next;
  uint64_t handles[3]; /* what they are is the driver's business */
  size_t most_threads; /* of a block; 0: not known */
  char name[];
} slw_device_kernel;

/* What a device made of some code. */
typedef struct slw_device_program {
  struct slw_device_program *next;
  int32_t device_id;
  uint64_t handle;
  slw_device_kernel *kernels;
} slw_device_program;

/* Code that was made known. */
typedef struct slw_device_text {
  struct slw_device_text *next;
  size_t holders; /* libraries and files it was loaded with */
  slw_device_program *programs;
  size_t size_bytes;
  char digest[SLW_DIGEST_CHARS];
  char text[]; /* followed by a NUL */
} slw_device_text;

/* A driver.  Lists of names are one text: each name ends with a NUL, the list with an empty one. */
typedef struct {
  const char *kind;      /* "opencl" */
  const char *title;     /* "OpenCL" */
  const char *ending;    /* of files with its code */
  const char *libraries; /* tried in order */
  const char *advice;    /* said where there is none of them */
  const char *symbols;   /* of its functions */
  void *functions;       /* their addresses, in the same order */
  /* Start the driver and count its devices; return what keeps it from working, or NULL. */
  const char *(*list)(int32_t *num_devices);
  const char *(*name)(int32_t device_id);
  /* Compile code, or find a kernel in it, with the cache's lock held; each sets the thread's error. */
  slw_status (*program)(int32_t device_id, const slw_device_text *code, const char *kernel,
                        uint64_t *handle);
  slw_status (*kernel)(int32_t device_id, uint64_t program, const slw_device_text *code,
                       const slw_device_launch *launch, slw_device_kernel *out);
  /* Release a program and its kernels once no work uses them; the cache's lock is not held. */
  void (*drop)(int32_t device_id, const slw_device_program *program);

  int is_looked_for;
  char missing[200]; /* what keeps it from working here; empty: nothing */
  int32_t num_devices;
  uint32_t opened; /* a bit for each device on which something was done */
  _Atomic uint64_t launches[SLW_MAX_DEVICES];
  char last[SLW_KERNEL_CHARS]; /* the kernel that was launched last, and where */
  int32_t last_device;
  pid_t opened_by; /* drivers have threads, which a fork of the process does not have */
  slw_device_text *known;
  pthread_mutex_t lock;       /* of what is opened and looked for */
  pthread_mutex_t cache_lock; /* of `known` */
  pthread_mutex_t last_lock;  /* of `last` */
} slw_device_driver;

#define SLW_DRIVER_LOCKS                                                                           \
  .lock = PTHREAD_MUTEX_INITIALIZER, .cache_lock = PTHREAD_MUTEX_INITIALIZER,                      \
  .last_lock = PTHREAD_MUTEX_INITIALIZER

/* Whether there is a device of this number; nothing is said where there is none. */
int slw_driver_has(slw_device_driver *driver, int32_t device_id);

/* Whether the driver works here; else the thread's error is set. */
int slw_driver_works(slw_device_driver *driver);

/* Whether a device is there and open, which `open` does once; else the thread's error is set. */
int slw_driver_opens(slw_device_driver *driver, int32_t device_id,
                     slw_status (*open)(int32_t device_id));

/* How many launches found their device. */
uint64_t slw_driver_launches(const slw_device_driver *driver, int32_t device_id);

/* Wait for each device on which something was done. Opens nothing. */
slw_status slw_driver_wait(slw_device_driver *driver, slw_status (*synchronize)(int32_t device_id));

/* Set the thread's error: `what` could not be done on a device. It names the kernel that the device was
 * given last: drivers tell of what a kernel did when something else is asked. */
slw_status slw_driver_failed(slw_device_driver *driver, int32_t device_id, const char *what,
                             int32_t code, const char *words);

/* The sentence of an error's number in a table that ends with a NULL, or `other`. */
typedef struct {
  int32_t code;
  const char *words;
} slw_driver_error;
const char *slw_driver_words(const slw_driver_error *known, int32_t code, const char *other);

/* Set the thread's error: the driver does not take the code of a kernel. `log` is what it says. */
slw_status slw_driver_refused(const slw_device_driver *driver, int32_t device_id,
                              const char *kernel, int32_t code, const char *log,
                              const char *advice);

/* The first character of a table's words, where memory is full or the device is lost: what to do then is
 * said behind them. */
#define SLW_FULL "#"
#define SLW_LOST "!"
/* What to do where the host's memory is full. */
#define SLW_SPARE "end other programs, or give the process more memory (ulimit -v, a container's limit)"

/* Put a copy of code to what is known, or hold once more what is; drop it as often. */
slw_status slw_driver_add_code(slw_device_driver *driver, const char *digest, const void *code,
                               size_t size_bytes);
void slw_driver_drop_code(slw_device_driver *driver, const char *digest);

/* The kernel of a launch, compiled for the device; NULL with the thread's error set. */
const slw_device_kernel *slw_driver_kernel(slw_device_driver *driver, int32_t device_id,
                                           const slw_device_launch *launch);

/* Refuse a block of more threads than `most`, where that is known. */
slw_status slw_driver_check_threads(const slw_device_driver *driver, int32_t device_id,
                                    const slw_device_launch *launch, size_t most);

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

/* Find the device that a launch's tensors are on, and whether the driver works: `device_of` tells
 * that of an address. */
slw_status slw_driver_of_launch(slw_device_driver *driver, const slw_device_launch *launch,
                                slw_status (*device_of)(const void *address, int32_t *device_id),
                                int32_t *device_id);

/* Values of attributes. */
slw_status slw_device_give_int(TVMFFIAny *out, uint64_t value);
slw_status slw_device_give_dimensions(TVMFFIAny *out, size_t x, size_t y, size_t z);

#endif /* SLIPWAY_DEVICE_DRIVER_H_ */
