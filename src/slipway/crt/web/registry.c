/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include <string.h>

#include "slipway/platform.h"
#include "web.h"

typedef struct entry {
  struct entry *next;
  slw_function function;
  size_t name_bytes;
  char name[];
} entry;

static entry *entries;

static entry *find(const char *name, size_t name_bytes) {
  for (entry *e = entries; e != NULL; e = e->next) {
    if (e->name_bytes == name_bytes && memcmp(e->name, name, name_bytes) == 0) {
      return e;
    }
  }
  return NULL;
}

const slw_function *slw_web_find(const char *name, size_t name_bytes) {
  const entry *found = find(name, name_bytes);
  return (found != NULL) ? &found->function : NULL;
}

/** Register a function of the table under a name, in the place of one that has it.
 * @return 0, or -1 when there is no memory */
SLW_WEB_API
int slw_web_register(const char *name, size_t name_bytes, TVMFFISafeCallType call) {
  entry *e = find(name, name_bytes);
  if (e == NULL) {
    e = slw_platform_alloc(sizeof *e + name_bytes, 16);
    if (e == NULL) {
      return -1;
    }
    memcpy(e->name, name, name_bytes);
    e->name_bytes = name_bytes;
    e->next = entries;
    entries = e;
  }
  e->function.call = call;
  e->function.self = NULL;
  return 0;
}

SLW_WEB_API
void slw_web_remove(const char *name, size_t name_bytes) {
  for (entry **at = &entries; *at != NULL; at = &(*at)->next) {
    if ((*at)->name_bytes == name_bytes && memcmp((*at)->name, name, name_bytes) == 0) {
      entry *found = *at;
      *at = found->next;
      slw_platform_free(found);
      return;
    }
  }
}
