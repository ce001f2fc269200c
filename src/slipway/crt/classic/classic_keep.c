/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread keeps for its caller goes when the thread ends. */
#include "slipway/classic.h"

#if defined(SLW_NO_THREADS)
static TVMFFIObject *kept_objects[SLW_KEPT_COUNT];

static TVMFFIObject **objects_of_thread(void) { return kept_objects; }
#else
#include <pthread.h>
#include <stdlib.h>

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release_all(void *value) {
  TVMFFIObject **objects = value;
  for (int i = 0; i < SLW_KEPT_COUNT; ++i) {
    slw_object_release(objects[i]);
  }
  free(objects);
}

static void release_of_main(void) {
  void *value = pthread_getspecific(key);
  if (value != NULL) {
    (void)pthread_setspecific(key, NULL);
    release_all(value);
  }
}

static void make_key(void) {
  (void)pthread_key_create(&key, release_all);
  (void)atexit(release_of_main); /* keys of the thread that calls exit are not destroyed */
}

static TVMFFIObject **objects_of_thread(void) {
  TVMFFIObject **objects;
  (void)pthread_once(&once, make_key);
  objects = pthread_getspecific(key);
  if (objects == NULL) {
    objects = calloc(SLW_KEPT_COUNT, sizeof *objects);
    if (objects != NULL && pthread_setspecific(key, objects) != 0) {
      free(objects);
      objects = NULL;
    }
  }
  return objects;
}
#endif

void slw_classic_keep(slw_kept kind, TVMFFIObject *object) {
  TVMFFIObject **objects = objects_of_thread();
  if (objects != NULL) { /* else there is no memory, and the object stays for good */
    slw_object_release(objects[kind]);
    objects[kind] = object;
  }
}
