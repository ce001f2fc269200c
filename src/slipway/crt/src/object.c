/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/object.h"

#include <string.h>

#include "slipway/error.h"
#include "slipway/platform.h"

/* tvm-ffi counts strong references in the low and weak ones in the high 32 bits; all strong
 * references together hold one weak one. */
#define STRONG_ONE ((uint64_t)1)
#define WEAK_ONE ((uint64_t)1 << 32)
#define STRONG_MASK ((uint64_t)0xffffffff)
#define DELETE_STRONG 1
#define DELETE_WEAK 2

/* Processors without 64-bit atomics (32-bit ARM before v6K, RISC-V 32) count the halves: both
 * counters are little-endian words, so a strong count is the first one. */
#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ >= 8
#define COUNT_ADD(p, n) __atomic_fetch_add((p), (n), __ATOMIC_RELAXED)
#define COUNT_SUB(p, n) __atomic_fetch_sub((p), (n), __ATOMIC_ACQ_REL)

void slw_object_retain(TVMFFIObject *object) {
  (void)COUNT_ADD(&object->combined_ref_count, STRONG_ONE);
}

void slw_object_release(TVMFFIObject *object) {
  uint64_t before;
  if (object == NULL) {
    return;
  }
  before = COUNT_SUB(&object->combined_ref_count, STRONG_ONE);
  if ((before & STRONG_MASK) != 1 || object->deleter == NULL) {
    return;
  }
  if (before == (WEAK_ONE | STRONG_ONE)) {
    object->deleter(object, DELETE_STRONG | DELETE_WEAK);
    return;
  }
  object->deleter(object, DELETE_STRONG);
  before = COUNT_SUB(&object->combined_ref_count, WEAK_ONE);
  if ((before >> 32) == 1) {
    object->deleter(object, DELETE_WEAK);
  }
}
#else
/* One thread needs no atomics, and a Cortex-M0 has none. */
#if defined(SLW_NO_THREADS)
static uint32_t half_add(uint32_t *count, uint32_t change) {
  uint32_t before = *count;
  *count = before + change;
  return before;
}
#else
static uint32_t half_add(uint32_t *count, uint32_t change) {
  return __atomic_fetch_add(count, change, __ATOMIC_ACQ_REL);
}
#endif

static uint32_t *strong_count(TVMFFIObject *object) {
  return (uint32_t *)(void *)&object->combined_ref_count;
}

void slw_object_retain(TVMFFIObject *object) {
  (void)half_add(strong_count(object), 1U);
}

void slw_object_release(TVMFFIObject *object) {
  uint32_t *weak_count;
  if (object == NULL || half_add(strong_count(object), 0U - 1U) != 1U || object->deleter == NULL) {
    return;
  }
  weak_count = strong_count(object) + 1;
  if (half_add(weak_count, 0U) == 1U) {
    object->deleter(object, DELETE_STRONG | DELETE_WEAK);
    return;
  }
  object->deleter(object, DELETE_STRONG);
  if (half_add(weak_count, 0U - 1U) == 1U) {
    object->deleter(object, DELETE_WEAK);
  }
}
#endif

void slw_object_init(TVMFFIObject *object, int32_t type_index,
                     void (*deleter)(void *self, int flags)) {
  memset(object, 0, sizeof *object);
  object->combined_ref_count = WEAK_ONE | STRONG_ONE;
  object->type_index = type_index;
  object->deleter = deleter;
}

void slw_any_clear(TVMFFIAny *value) {
  if (value->type_index >= kTVMFFIStaticObjectBegin) {
    slw_object_release(value->v_obj);
  }
  memset(value, 0, sizeof *value);
}

static void free_when_unreferenced(void *self, int flags) {
  if ((flags & DELETE_WEAK) != 0) {
    slw_platform_free(self);
  }
}

typedef struct {
  TVMFFIObject object;
  TVMFFIByteArray bytes;
  char data[];
} string_object;

static slw_status set_text(TVMFFIAny *out, int32_t type_index, const void *data, size_t size) {
  string_object *text;
  if (size > SIZE_MAX - sizeof *text - 1) {
    return SLW_ERROR_MEMORY;
  }
  text = slw_platform_alloc(sizeof *text + size + 1, sizeof(uint64_t));
  if (text == NULL) {
    return SLW_ERROR_MEMORY;
  }
  slw_object_init(&text->object, type_index, free_when_unreferenced);
  if (size > 0) {
    memcpy(text->data, data, size);
  }
  text->data[size] = '\0';
  text->bytes.data = text->data;
  text->bytes.size = size;
  memset(out, 0, sizeof *out);
  out->type_index = type_index;
  out->v_obj = &text->object;
  return SLW_OK;
}

slw_status slw_any_set_string(TVMFFIAny *out, const char *data, size_t size_bytes) {
  return set_text(out, kTVMFFIStr, data, size_bytes);
}

slw_status slw_any_set_bytes(TVMFFIAny *out, const void *data, size_t size_bytes) {
  return set_text(out, kTVMFFIBytes, data, size_bytes);
}

slw_status slw_any_get_bytes(const TVMFFIAny *value, const char **data, size_t *size_bytes) {
  const TVMFFIByteArray *bytes;
  switch (value->type_index) {
    case kTVMFFIRawStr:
      *data = value->v_c_str;
      *size_bytes = strlen(value->v_c_str);
      return SLW_OK;
    case kTVMFFISmallStr:
    case kTVMFFISmallBytes:
      if (value->small_str_len > sizeof value->v_bytes) {
        return SLW_ERROR_ARGUMENT;
      }
      *data = value->v_bytes;
      *size_bytes = value->small_str_len;
      return SLW_OK;
    case kTVMFFIByteArrayPtr:
      bytes = value->v_ptr;
      break;
    case kTVMFFIStr:
    case kTVMFFIBytes:
      bytes = (const void *)((const char *)value->v_obj + sizeof(TVMFFIObject));
      break;
    default:
      return SLW_ERROR_ARGUMENT;
  }
  *data = bytes->data;
  *size_bytes = bytes->size;
  return SLW_OK;
}

DLTensor *slw_any_get_tensor(const TVMFFIAny *value) {
  if (value->type_index == kTVMFFIDLTensorPtr) {
    return value->v_ptr;
  }
  if (value->type_index == kTVMFFITensor && value->v_obj != NULL) {
    return (void *)((char *)value->v_obj + sizeof(TVMFFIObject));
  }
  return NULL;
}

typedef struct {
  TVMFFIObject object;
  TVMFFIFunctionCell cell;
  slw_function target;
  TVMFFIObject *owner;
} function_object;

static int call_target(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  const function_object *self = handle;
  int failed = self->target.call(self->target.self, args, num_args, result);
#if !defined(SLW_STATIC) /* where tvm-ffi may be in the process */
  /* It ends the process on a failure that left it no error to raise. */
  if (failed != 0 && slw_error_is_elsewhere != NULL && slw_error_is_elsewhere() == 0) {
    slw_error_set("ExecutionError",
                  "the function failed without a reason: it returned an error and set none");
  }
#endif
  return failed;
}

static void delete_function(void *self, int flags) {
  if ((flags & DELETE_STRONG) != 0) {
    slw_object_release(((function_object *)self)->owner);
  }
  free_when_unreferenced(self, flags);
}

slw_status slw_any_set_function(TVMFFIAny *out, slw_function function, TVMFFIObject *owner) {
  function_object *made = slw_platform_alloc(sizeof *made, sizeof(uint64_t));
  if (made == NULL) {
    return SLW_ERROR_MEMORY;
  }
  slw_object_init(&made->object, kTVMFFIFunction, delete_function);
  made->cell.safe_call = call_target;
  made->target = function;
  made->owner = owner;
  if (owner != NULL) {
    slw_object_retain(owner);
  }
  memset(out, 0, sizeof *out);
  out->type_index = kTVMFFIFunction;
  out->v_obj = &made->object;
  return SLW_OK;
}

slw_status slw_any_get_function(const TVMFFIAny *value, slw_function *out) {
  const TVMFFIFunctionCell *cell;
  if (value->type_index != kTVMFFIFunction || value->v_obj == NULL) {
    return SLW_ERROR_ARGUMENT;
  }
  cell = (const void *)((const char *)value->v_obj + sizeof(TVMFFIObject));
  out->call = cell->safe_call;
  out->self = value->v_obj;
  return SLW_OK;
}
