/* SPDX-License-Identifier: Apache-2.0
 * The objects that a session holds for its client, by handle.
 *
 * handle = generation << 32 | (index + 1), so that 0 is no handle and a handle that was freed
 * stays invalid when its entry is used again.
 */
#include "rpc_internal.h"

static slw_rpc_entry *find(const slw_rpc_session *session, uint64_t handle) {
  uint32_t index = (uint32_t)handle - 1u;
  slw_rpc_entry *entry;
  if (index >= session->entries_used) {
    return NULL;
  }
  entry = &session->entries[index];
  return entry->object != NULL && entry->generation == (uint32_t)(handle >> 32) ? entry : NULL;
}

uint64_t slw_rpc_handle_new(slw_rpc_session *session, TVMFFIObject *object, const char *name) {
  uint32_t index;
  slw_rpc_entry *entry;
  char *kept;
  uint32_t i;
  if (session->free_entry != UINT32_MAX) {
    index = session->free_entry;
    session->free_entry = session->entries[index].next_free;
  } else if (session->entries_used < session->config.max_handles) {
    index = session->entries_used++;
  } else {
    return 0;
  }
  entry = &session->entries[index];
  entry->object = object;
  entry->generation += 1u;
  session->live_entries += 1u;
  if (session->config.name_bytes > 0u) {
    kept = session->names + (size_t)index * session->config.name_bytes;
    for (i = 0; i + 1u < session->config.name_bytes && name[i] != '\0'; ++i) {
      kept[i] = name[i];
    }
    kept[i] = '\0';
  }
  return (uint64_t)entry->generation << 32 | (index + 1u);
}

TVMFFIObject *slw_rpc_handle_get(const slw_rpc_session *session, uint64_t handle) {
  slw_rpc_entry *entry = find(session, handle);
  return entry == NULL ? NULL : entry->object;
}

const char *slw_rpc_handle_name(const slw_rpc_session *session, uint64_t handle) {
  if (session->config.name_bytes == 0u || find(session, handle) == NULL) {
    return "";
  }
  return session->names + (size_t)((uint32_t)handle - 1u) * session->config.name_bytes;
}

void slw_rpc_handle_free(slw_rpc_session *session, uint64_t handle) {
  slw_rpc_entry *entry = find(session, handle);
  TVMFFIObject *object;
  if (entry == NULL) {
    return;
  }
  object = entry->object;
  entry->object = NULL;
  session->live_entries -= 1u;
  entry->next_free = session->free_entry;
  session->free_entry = (uint32_t)handle - 1u;
  session->config.hooks->release(session->config.hooks->context, object);
}

DLTensor *slw_rpc_tensor_get(const slw_rpc_session *session, uint64_t handle) {
  TVMFFIObject *object = slw_rpc_handle_get(session, handle);
  if (object == NULL || object->type_index != kTVMFFITensor) {
    return NULL;
  }
  return (DLTensor *)(void *)(object + 1);
}
