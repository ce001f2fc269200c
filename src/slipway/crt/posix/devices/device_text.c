/* SPDX-License-Identifier: Apache-2.0 */
#include "device_text.h"

#include <stdlib.h>
#include <string.h>

#include "slipway/error.h"

slw_device_text *slw_device_text_find(slw_device_text *list, const char *digest) {
  while (list != NULL && strncmp(list->digest, digest, SLW_DIGEST_CHARS) != 0) {
    list = list->next;
  }
  return list;
}

slw_status slw_device_text_add(slw_device_text **list, const char *digest, const void *text,
                               size_t size_bytes) {
  slw_device_text *made;
  if (slw_device_text_find(*list, digest) != NULL) {
    return SLW_OK;
  }
  made = calloc(1, sizeof *made + size_bytes + 1U);
  if (made == NULL) {
    slw_error_set("MemoryError", "no memory for the code of a device");
    return SLW_ERROR_MEMORY;
  }
  memcpy(made->digest, digest, SLW_DIGEST_CHARS);
  memcpy(made->text, text, size_bytes);
  made->size_bytes = size_bytes;
  made->next = *list;
  *list = made;
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

slw_status slw_device_of_launch(const slw_device_launch *launch, const char *kind,
                                slw_status (*device_of)(const void *address, int32_t *device_id),
                                int32_t *device_id) {
  int is_first = 1;
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
                           launch->kernel, kind, (int)*device_id, kind, (int)id);
      return SLW_ERROR_TENSOR;
    }
    is_first = 0;
    *device_id = id;
  }
  return SLW_OK;
}
