/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/array.h"

#include <string.h>

#include "slipway/object.h"
#include "slipway/platform.h"

#define DESTROY 1
#define FREE 2

static void delete_array(void *self, int flags) {
  slw_array *array = self;
  if ((flags & DESTROY) != 0) {
    for (int64_t i = 0; i < array->size; ++i) {
      slw_any_clear(&array->items[i]);
    }
    array->size = 0;
  }
  if ((flags & FREE) != 0) {
    slw_platform_free(array);
  }
}

slw_status slw_array_make(int64_t capacity, slw_array **out) {
  slw_array *made;
  size_t size;
  if (capacity < 0) {
    return SLW_ERROR_ARGUMENT;
  }
  if ((uint64_t)capacity > (SIZE_MAX / 2U - sizeof *made) / sizeof made->items[0]) {
    return SLW_ERROR_MEMORY;
  }
  size = sizeof *made + (size_t)capacity * sizeof made->items[0];
  made = slw_platform_alloc(size, sizeof(uint64_t));
  if (made == NULL) {
    return SLW_ERROR_MEMORY;
  }
  memset(made, 0, size);
  slw_object_init(&made->object, kTVMFFIArray, delete_array);
  made->items = (TVMFFIAny *)(void *)(made + 1);
  made->capacity = capacity;
  *out = made;
  return SLW_OK;
}

slw_array *slw_object_array(TVMFFIObject *object) {
  return (object != NULL && object->type_index == kTVMFFIArray) ? (slw_array *)(void *)object
                                                                : NULL;
}
