/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * JSON taken apart into tokens that point into the text. For hosts: it allocates.
 */
#ifndef SLW_JSON_H_
#define SLW_JSON_H_

#include <stddef.h>
#include <stdint.h>

#include "slipway/status.h"

typedef enum {
  SLW_JSON_OBJECT,
  SLW_JSON_ARRAY,
  SLW_JSON_STRING, /* without its quotes, escapes as they are written */
  SLW_JSON_WORD    /* a number, true, false or null */
} slw_json_type;

typedef struct {
  slw_json_type type;
  uint32_t count; /* values of an array, names of an object */
  uint32_t next;  /* the token after this one and all that is in it */
  const char *text;
  size_t size_bytes;
} slw_json_token;

/** Tokens in the order of the text; an object's are name, value, name, value, ... The first is the
 * whole document. */
typedef struct {
  slw_json_token *tokens; /* free() them */
  uint32_t count;
} slw_json;

#define SLW_JSON_NONE 0xffffffffU

/** Take a document apart.
 * @retval SLW_ERROR_FORMAT it is not JSON, or nested more than 64 deep
 * @retval SLW_ERROR_MEMORY */
slw_status slw_json_parse(const char *text, size_t size_bytes, slw_json *out);

/** Return the token of the value that an object has under a name, or SLW_JSON_NONE. */
uint32_t slw_json_find(const slw_json *json, uint32_t object, const char *name);

/** Read a whole number, also one that is written as a string. Returns 0 if it is none. */
int slw_json_int(const slw_json *json, uint32_t token, int64_t *value);

/** Write a string's text, escapes resolved, as UTF-8 and without a NUL; `out` may be NULL to only
 * count. It is never longer than the token. Returns 0 if an escape is wrong. */
int slw_json_text(const slw_json *json, uint32_t token, char *out, size_t *size_bytes);

#endif /* SLW_JSON_H_ */
