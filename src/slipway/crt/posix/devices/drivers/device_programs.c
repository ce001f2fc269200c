/* SPDX-License-Identifier: Apache-2.0 */
/* The code that kernels come from: under its SHA-256, compiled by a device's driver when the first
 * of its kernels is launched there, and kept until the last library that has the code is closed. */
#include <stdlib.h>
#include <string.h>

#include "device_driver.h"
#include "slipway/error.h"

static slw_device_text *find_text(slw_device_text *known, const char *digest) {
  while (known != NULL && strncmp(known->digest, digest, SLW_DIGEST_CHARS) != 0) {
    known = known->next;
  }
  return known;
}

static void *make_room(size_t size_bytes) {
  void *made = calloc(1, size_bytes);
  if (made == NULL) {
    slw_error_set("MemoryError", "no memory for the code of a device");
  }
  return made;
}

static slw_status add_text(slw_device_text **known, const char *digest, const void *code,
                           size_t size_bytes) {
  slw_device_text *made = find_text(*known, digest);
  if (made != NULL) {
    ++made->holders;
    return SLW_OK;
  }
  made = make_room(sizeof *made + size_bytes + 1U);
  if (made == NULL) {
    return SLW_ERROR_MEMORY;
  }
  memcpy(made->digest, digest, SLW_DIGEST_CHARS);
  memcpy(made->text, code, size_bytes);
  made->size_bytes = size_bytes;
  made->holders = 1;
  made->next = *known;
  *known = made;
  return SLW_OK;
}

slw_status slw_driver_add_code(slw_device_driver *driver, const char *digest, const void *code,
                               size_t size_bytes) {
  slw_status status;
  (void)pthread_mutex_lock(&driver->cache_lock);
  status = add_text(&driver->known, digest, code, size_bytes);
  (void)pthread_mutex_unlock(&driver->cache_lock);
  return status;
}

/* Take what nobody holds any more off the list; NULL where somebody does. */
static slw_device_text *take_unheld(slw_device_text **known, const char *digest) {
  slw_device_text *found;
  while (*known != NULL && strncmp((*known)->digest, digest, SLW_DIGEST_CHARS) != 0) {
    known = &(*known)->next;
  }
  found = *known;
  if (found == NULL || --found->holders > 0U) {
    return NULL;
  }
  *known = found->next;
  return found;
}

static void release_programs(slw_device_driver *driver, slw_device_program *program) {
  int works = slw_driver_works(driver); /* not in a fork: there the driver is another process's */
  while (program != NULL) {
    slw_device_program *gone = program;
    slw_device_kernel *kernel = gone->kernels;
    if (works) {
      driver->drop(gone->device_id, gone);
    }
    while (kernel != NULL) {
      slw_device_kernel *next = kernel->next;
      free(kernel);
      kernel = next;
    }
    program = gone->next;
    free(gone);
  }
}

void slw_driver_drop_code(slw_device_driver *driver, const char *digest) {
  slw_device_text *gone;
  (void)pthread_mutex_lock(&driver->cache_lock);
  gone = take_unheld(&driver->known, digest);
  (void)pthread_mutex_unlock(&driver->cache_lock);
  if (gone != NULL && gone->programs != NULL) {
    release_programs(driver, gone->programs);
  }
  free(gone);
}

static slw_device_program *compiled(const slw_device_driver *driver, int32_t device_id,
                                    slw_device_text *code, const char *kernel) {
  slw_device_program *found = code->programs;
  while (found != NULL && found->device_id != device_id) {
    found = found->next;
  }
  if (found != NULL) {
    return found;
  }
  found = make_room(sizeof *found);
  if (found == NULL) {
    return NULL;
  }
  found->device_id = device_id;
  if (driver->program(device_id, code, kernel, &found->handle) != SLW_OK) {
    free(found);
    return NULL;
  }
  found->next = code->programs;
  code->programs = found;
  return found;
}

static slw_device_kernel *make_kernel(const slw_device_driver *driver, const slw_device_text *code,
                                      slw_device_program *from,
                                      const slw_device_launch *launch) {
  size_t length = strlen(launch->kernel);
  slw_device_kernel *made = make_room(sizeof *made + length + 1U);
  if (made == NULL) {
    return NULL;
  }
  memcpy(made->name, launch->kernel, length);
  if (driver->kernel(from->device_id, from->handle, code, launch, made) != SLW_OK) {
    free(made);
    return NULL;
  }
  made->next = from->kernels;
  from->kernels = made;
  return made;
}

static slw_device_kernel *find_kernel(slw_device_driver *driver, int32_t device_id,
                                      const slw_device_launch *launch) {
  slw_device_text *code = find_text(driver->known, launch->digest);
  slw_device_program *from;
  slw_device_kernel *found;
  if (code == NULL) {
    (void)slw_error_setf("DeviceError",
                         "the %s code of kernel %s is not loaded here. Load the %s file that belongs "
                         "to this library (and import_module it), or export the library as .tar or "
                         ".so, which carry it.",
                         driver->title, launch->kernel, driver->ending);
    return NULL;
  }
  from = compiled(driver, device_id, code, launch->kernel);
  if (from == NULL) {
    return NULL;
  }
  found = from->kernels;
  while (found != NULL && strcmp(found->name, launch->kernel) != 0) {
    found = found->next;
  }
  return (found != NULL) ? found : make_kernel(driver, code, from, launch);
}

const slw_device_kernel *slw_driver_kernel(slw_device_driver *driver, int32_t device_id,
                                           const slw_device_launch *launch) {
  slw_device_kernel *found;
  (void)pthread_mutex_lock(&driver->cache_lock);
  found = find_kernel(driver, device_id, launch);
  (void)pthread_mutex_unlock(&driver->cache_lock);
  return found;
}
