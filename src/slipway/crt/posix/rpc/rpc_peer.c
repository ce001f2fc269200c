/* SPDX-License-Identifier: Apache-2.0
 * What a client passes besides numbers and tensors, as objects that any function here can take:
 * its own functions, and lists.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "rpc_server_internal.h"
#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/platform.h"

static slw_rpc_session *the_session; /* one in a process */
static const slw_rpc_server_config *the_config;
static pthread_t the_thread;

static int call_client(void *number, const TVMFFIAny *args, int32_t count, TVMFFIAny *result) {
  const slw_rpc_failure_text *failure = &the_session->failure;
  if (pthread_equal(pthread_self(), the_thread) == 0) {
    (void)slw_error_setf("RPCError", "a client's function can be called only on the thread that "
                                     "the client's call runs on");
    if (the_config->ffi_set_error != NULL) {
      the_config->ffi_set_error("RPCError", slw_error_message());
    }
    return -1;
  }
  if (slw_rpc_session_call_back(the_session, (uint64_t)(uintptr_t)number, args, count, result) ==
      SLW_RPC_OK) {
    return 0;
  }
  (void)slw_error_setf(failure->kind, "%s", failure->message);
  if (the_config->ffi_set_error != NULL) {
    the_config->ffi_set_error(failure->kind, failure->message); /* for a caller in Python */
  }
  return -1;
}

static int make_callback(void *context, uint64_t number, TVMFFIAny *out) {
  slw_function function;
  (void)context;
  function.call = call_client;
  function.self = (void *)(uintptr_t)number;
  if (number > UINTPTR_MAX || slw_any_set_function(out, function, NULL) != SLW_OK) {
    (void)slw_error_setf("MemoryError", "the device has no memory for a callback");
    return SLW_RPC_FAIL_MEMORY;
  }
  return SLW_RPC_OK;
}

/* tvm-ffi's ArrayObj: the items lie in the object. */
typedef struct list_object {
  TVMFFIObject object;
  TVMFFIAny *data;
  int64_t size;
  int64_t capacity;
  void (*data_deleter)(void *);
  TVMFFIAny items[];
} list_object;

static void delete_list(void *self, int flags) {
  list_object *list = self;
  int64_t i;
  if ((flags & 1) != 0) {
    for (i = 0; i < list->size; ++i) {
      slw_any_clear(&list->items[i]);
    }
  }
  if ((flags & 2) != 0) {
    slw_platform_free(self);
  }
}

static int make_list(void *context, TVMFFIAny *items, uint32_t count, TVMFFIAny *out) {
  size_t size = count * sizeof(TVMFFIAny);
  list_object *list = slw_platform_alloc(sizeof *list + size, sizeof(uint64_t));
  (void)context;
  if (list == NULL) {
    (void)slw_error_setf("MemoryError", "the device has no memory for a list");
    return SLW_RPC_FAIL_MEMORY;
  }
  slw_object_init(&list->object, kTVMFFIArray, delete_list);
  list->data = list->items;
  list->size = count;
  list->capacity = count;
  list->data_deleter = NULL;
  if (size > 0u) {
    memcpy(list->items, items, size);
  }
  out->type_index = kTVMFFIArray;
  out->v_obj = &list->object;
  return SLW_RPC_OK;
}

void slw_rpc_peer_hooks(slw_rpc_hooks *hooks, slw_rpc_session *session,
                        const slw_rpc_server_config *config) {
  the_session = session;
  the_config = config;
  the_thread = pthread_self();
  hooks->make_callback = make_callback;
  hooks->make_list = make_list;
}
