/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/error.h"

#include "slipway/format.h"

/* A device without threads has one error for all. */
#if defined(__STDC_NO_THREADS__) && !defined(__GNUC__)
#define THREAD_LOCAL
#elif defined(SLW_NO_THREADS)
#define THREAD_LOCAL
#else
#define THREAD_LOCAL _Thread_local
#endif

static THREAD_LOCAL char error_kind[SLW_ERROR_KIND_BYTES];
static THREAD_LOCAL char error_message[SLW_ERROR_MESSAGE_BYTES];
static slw_error_set_fn error_sink;

int (*slw_error_is_elsewhere)(void);

void slw_error_set(const char *kind, const char *message) {
  if (message != error_message) {
    (void)slw_format(error_message, sizeof error_message, "%s", (message != NULL) ? message : "");
  }
  if (kind != error_kind) {
    (void)slw_format(error_kind, sizeof error_kind, "%s",
                     (kind != NULL) ? kind : "RuntimeError");
  }
  if (error_sink != NULL) {
    error_sink(error_kind, error_message);
  }
}

int slw_error_setf(const char *kind, const char *format, ...) {
  /* A buffer of its own, because an argument may be the current message. */
  char text[SLW_ERROR_MESSAGE_BYTES];
  va_list list;
  va_start(list, format);
  (void)slw_format_list(text, sizeof text, format, list);
  va_end(list);
  slw_error_set(kind, text);
  return -1;
}

const char *slw_error_kind(void) { return error_kind; }

const char *slw_error_message(void) { return error_message; }

void slw_error_clear(void) {
  error_kind[0] = '\0';
  error_message[0] = '\0';
}

void slw_error_set_sink(slw_error_set_fn sink) { error_sink = sink; }
