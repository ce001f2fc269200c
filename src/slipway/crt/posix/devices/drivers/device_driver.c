/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers, opened when something first asks for one.   A static program
 * asks a child (device_proxy.c). */
#include "device_driver.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/object.h"

static const char *find_functions(slw_device_driver *driver) {
  char *function = driver->functions;
  void *library = NULL;
  for (const char *name = driver->libraries; *name != '\0' && library == NULL;
       name += strlen(name) + 1U) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    return driver->advice;
  }
  for (const char *name = driver->symbols; *name != '\0'; name += strlen(name) + 1U) {
    void *found = dlsym(library, name);
    if (found == NULL) {
      (void)slw_format(driver->missing, sizeof driver->missing, "its %s has no %s",
                       driver->libraries, name);
      return driver->missing;
    }
    memcpy(function, &found, sizeof found);
    function += sizeof found;
  }
  return NULL;
}
static void look(slw_device_driver *driver) {
  const char *missing;
  (void)pthread_mutex_lock(&driver->lock);
  if (!driver->is_looked_for) {
    missing = find_functions(driver);
    if (missing == NULL) {
      driver->opened_by = getpid();
      missing = driver->list(&driver->num_devices);
    }
    if (missing != NULL && missing != driver->missing) {
      (void)slw_format(driver->missing, sizeof driver->missing, "%s", missing);
    }
    driver->is_looked_for = 1;
  }
  (void)pthread_mutex_unlock(&driver->lock);
}

static int is_forked(const slw_device_driver *driver) {
  return driver->opened_by != 0 && driver->opened_by != getpid();
}

int slw_driver_has(slw_device_driver *driver, int32_t device_id) {
  look(driver);
  return !is_forked(driver) && device_id >= 0 && device_id < driver->num_devices;
}

int slw_driver_works(slw_device_driver *driver) {
  look(driver);
  if (is_forked(driver)) {
    (void)slw_error_setf("DeviceError",
                         "%s does not work in a fork of a process that has used it. Start a process "
                         "of its own instead: rpc.PopenSession(), or an RPC server before %s is used "
                         "here.",
                         driver->title, driver->title);
    return 0;
  }
  if (driver->missing[0] != '\0') {
    (void)slw_error_setf("DeviceError", "%s does not work on this machine: %s.", driver->title,
                         driver->missing);
    return 0;
  }
  return 1;
}

int slw_driver_opens(slw_device_driver *driver, int32_t device_id,
                     slw_status (*open)(int32_t device_id)) {
  slw_status status = SLW_OK;
  if (!slw_driver_works(driver)) {
    return 0;
  }
  if (!slw_driver_has(driver, device_id)) {
    (void)slw_error_setf("DeviceError", "there is no %s(%d): this machine has %d %s device%s, "
                                        "%s(0)%s.",
                         driver->kind, (int)device_id, (int)driver->num_devices, driver->title,
                         (driver->num_devices == 1) ? "" : "s", driver->kind,
                         (driver->num_devices == 1) ? "" : " and so on");
    return 0;
  }
  (void)pthread_mutex_lock(&driver->lock);
  if ((driver->opened >> device_id & 1U) == 0U) {
    status = open(device_id);
    driver->opened |= (status == SLW_OK) ? 1U << device_id : 0U;
  }
  (void)pthread_mutex_unlock(&driver->lock);
  return status == SLW_OK;
}

uint64_t slw_driver_launches(const slw_device_driver *driver, int32_t device_id) {
  return (device_id >= 0 && device_id < SLW_MAX_DEVICES) ? driver->launches[device_id] : 0U;
}

slw_status slw_driver_wait(slw_device_driver *driver,
                           slw_status (*synchronize)(int32_t device_id)) {
  slw_status status = SLW_OK;
  if (driver->opened == 0U || is_forked(driver)) {
    return SLW_OK; /* no work here; or it is the other process's, which waits itself */
  }
  for (int32_t id = 0; id < driver->num_devices && status == SLW_OK; ++id) {
    if ((driver->opened >> id & 1U) != 0U) {
      status = synchronize(id);
    }
  }
  return status;
}

static void copy_last(slw_device_driver *driver, int32_t device_id, char *out) {
  (void)pthread_mutex_lock(&driver->last_lock);
  (void)slw_format(out, SLW_KERNEL_CHARS, "%s",
                   (driver->last_device == device_id) ? driver->last : "");
  (void)pthread_mutex_unlock(&driver->last_lock);
}

static void note_last(slw_device_driver *driver, int32_t device_id, const char *kernel) {
  (void)pthread_mutex_lock(&driver->last_lock);
  (void)slw_format(driver->last, SLW_KERNEL_CHARS, "%s", kernel);
  driver->last_device = device_id;
  (void)pthread_mutex_unlock(&driver->last_lock);
}

slw_status slw_driver_failed(slw_device_driver *driver, int32_t device_id, const char *what,
                             int32_t code, const char *words) {
  char last[SLW_KERNEL_CHARS];
  const char *advice = (words[0] == SLW_FULL[0])
                           ? "its memory is full: delete arrays and modules that are not needed, "
                             "trim() the device, or compute less at once"
                       : (words[0] == SLW_LOST[0])
                           ? "the device is lost, with what was in its memory; arrays of the host are "
                             "not. Start the program, or the session with its server, again, and look "
                             "at the system's log (dmesg)"
                           : "";
  copy_last(driver, device_id, last);
  if (strstr(what, last) != NULL) {
    last[0] = '\0';
  }
  (void)slw_error_setf("DeviceError", "%s(%d) (%s): %s failed with error %d (%s%s).%s%s%s",
                       driver->kind, (int)device_id, driver->name(device_id), what, (int)code,
                       words + (advice[0] != '\0'), advice,
                       (last[0] != '\0') ? " The last kernel that it was given is " : "", last,
                       (last[0] != '\0') ? "." : "");
  return SLW_ERROR_CALL;
}

const char *slw_driver_words(const slw_driver_error *known, int32_t code, const char *other) {
  while (known->words != NULL && known->code != code) {
    ++known;
  }
  return (known->words != NULL) ? known->words : other;
}

slw_status slw_driver_refused(const slw_device_driver *driver, int32_t device_id,
                              const char *kernel, int32_t code, const char *log,
                              const char *advice) {
  (void)slw_error_setf("DeviceError",
                       "the driver of %s(%d) (%s) refused the code of kernel %s (error %d): %s%s",
                       driver->kind, (int)device_id, driver->name(device_id), kernel, (int)code,
                       (log[0] != '\0') ? log : "it says no more. A newer driver may take it.", advice);
  return SLW_ERROR_CALL;
}

slw_status slw_driver_check_threads(const slw_device_driver *driver, int32_t device_id,
                                    const slw_device_launch *launch, size_t most) {
  size_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  if (most == 0U || threads <= most) {
    return SLW_OK;
  }
  (void)slw_error_setf("DeviceError",
                       "kernel %s is launched with %zu threads in a block, and %s(%d) (%s) runs it "
                       "with %zu at most. Split its axes by less, or compile for a target with "
                       "-max_threads_per_block=%zu.",
                       launch->kernel, threads, driver->kind, (int)device_id,
                       driver->name(device_id), most, most);
  return SLW_ERROR_ARGUMENT;
}

slw_status slw_driver_of_launch(slw_device_driver *driver, const slw_device_launch *launch,
                                slw_status (*device_of)(const void *address, int32_t *device_id),
                                int32_t *device_id) {
  int is_first = 1;
  if (!slw_driver_works(driver)) {
    return SLW_ERROR_CALL;
  }
  for (int32_t i = 0; launch->signature[i] != '\0'; ++i) {
    int32_t id = 0;
    if (launch->signature[i] != 'p' || launch->args[i].v_ptr == NULL) {
      continue;
    }
    if (device_of(launch->args[i].v_ptr, &id) != SLW_OK) {
      return SLW_ERROR_CALL;
    }
    if (!is_first && id != *device_id) {
      (void)slw_error_setf("DeviceError",
                           "kernel %s was given tensors of %s(%d) and %s(%d): copy them to one "
                           "device.",
                           launch->kernel, driver->kind, (int)*device_id, driver->kind, (int)id);
      return SLW_ERROR_TENSOR;
    }
    is_first = 0;
    *device_id = id;
  }
  if (*device_id >= 0 && *device_id < SLW_MAX_DEVICES) {
    ++driver->launches[*device_id];
    note_last(driver, *device_id, launch->kernel);
  }
  return SLW_OK;
}

slw_status slw_device_scalar_of(char kind, const TVMFFIAny *arg, slw_device_scalar *out) {
  double number = (arg->type_index == kTVMFFIFloat) ? arg->v_float64 : (double)arg->v_int64;
  switch (kind) {
    case '1':
    case '2':
    case '4':
    case '8': /* the low bytes come first on every device this runs on */
      out->value.whole = arg->v_int64;
      out->size_bytes = (size_t)(kind - '0');
      return SLW_OK;
    case 'f':
      out->value.single = (float)number;
      out->size_bytes = sizeof out->value.single;
      return SLW_OK;
    case 'd':
      out->value.number = number;
      out->size_bytes = sizeof out->value.number;
      return SLW_OK;
    default:
      slw_error_set("DeviceError", "a launch describes its arguments in a way this runtime does not "
                                   "know: it was compiled by another version.");
      return SLW_ERROR_ARGUMENT;
  }
}

slw_status slw_device_give_int(TVMFFIAny *out, uint64_t value) {
  memset(out, 0, sizeof *out);
  out->type_index = kTVMFFIInt;
  out->v_int64 = (int64_t)value;
  return SLW_OK;
}

slw_status slw_device_give_dimensions(TVMFFIAny *out, size_t x, size_t y, size_t z) {
  char text[80];
  size_t used = slw_format(text, sizeof text, "[%zu, %zu, %zu]", x, y, z);
  return slw_any_set_string(out, text, used);
}
