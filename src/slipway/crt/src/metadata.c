/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/metadata.h"

#include <string.h>

#include "slipway/cpu.h"
#include "slipway/error.h"
#include "slipway/format.h"

static int is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Move `at` past the string that starts at it (on the quote); 0 if it does not end. */
static int skip_string(const char *json, size_t size, size_t *at) {
  for (++*at; *at < size; ++*at) {
    if (json[*at] == '\\') {
      ++*at;
    } else if (json[*at] == '"') {
      ++*at;
      return 1;
    }
  }
  return 0;
}

/* Move `at` past one value: a string, a bracketed thing, or a bare word. */
static int skip_value(const char *json, size_t size, size_t *at) {
  size_t depth = 0;
  while (*at < size) {
    char c = json[*at];
    if (c == '"') {
      if (!skip_string(json, size, at)) {
        return 0;
      }
      if (depth == 0) {
        return 1;
      }
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
      return 1; /* the end of a bare word belongs to what surrounds it */
    }
    if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
      if (depth == 0) {
        ++*at;
        return 1;
      }
    }
    ++*at;
  }
  return 0;
}

static void skip_spaces(const char *json, size_t size, size_t *at) {
  while (*at < size && is_space(json[*at])) {
    ++*at;
  }
}

static slw_text value_between(const char *json, size_t from, size_t to) {
  slw_text value;
  while (to > from && is_space(json[to - 1])) {
    --to;
  }
  if (to - from >= 2 && json[from] == '"') {
    ++from;
    --to;
  }
  value.text = json + from;
  value.size_bytes = to - from;
  return value;
}

slw_status slw_metadata_find(const char *json, size_t size_bytes, const char *key,
                             slw_text *value) {
  size_t at = 0;
  size_t key_bytes = strlen(key);
  skip_spaces(json, size_bytes, &at);
  if (at >= size_bytes || json[at] != '{') {
    return SLW_ERROR_FORMAT;
  }
  ++at;
  for (;;) {
    size_t key_at;
    size_t key_end;
    size_t value_at;
    skip_spaces(json, size_bytes, &at);
    if (at < size_bytes && json[at] == '}') {
      return SLW_ERROR_NOT_FOUND;
    }
    key_at = at + 1;
    if (at >= size_bytes || json[at] != '"' || !skip_string(json, size_bytes, &at)) {
      return SLW_ERROR_FORMAT;
    }
    key_end = at - 1;
    skip_spaces(json, size_bytes, &at);
    if (at >= size_bytes || json[at] != ':') {
      return SLW_ERROR_FORMAT;
    }
    ++at;
    skip_spaces(json, size_bytes, &at);
    value_at = at;
    if (!skip_value(json, size_bytes, &at)) {
      return SLW_ERROR_FORMAT;
    }
    if (key_end - key_at == key_bytes && memcmp(json + key_at, key, key_bytes) == 0) {
      *value = value_between(json, value_at, at);
      return SLW_OK;
    }
    skip_spaces(json, size_bytes, &at);
    if (at < size_bytes && json[at] == ',') {
      ++at;
    }
  }
}

slw_status slw_metadata_next(slw_text list, size_t *offset, slw_text *item) {
  size_t at = *offset;
  size_t start;
  while (at < list.size_bytes && list.text[at] != '"') {
    ++at;
  }
  start = at;
  if (at >= list.size_bytes || !skip_string(list.text, list.size_bytes, &at)) {
    return SLW_ERROR_NOT_FOUND;
  }
  item->text = list.text + start + 1;
  item->size_bytes = at - start - 2;
  *offset = at;
  return SLW_OK;
}

static slw_status check_features(slw_text list, const char *name) {
  char missing[256] = "";
  size_t used = 0;
  size_t offset = 0;
  slw_text item;
  while (slw_metadata_next(list, &offset, &item) == SLW_OK) {
    if (slw_cpu_has(item.text, item.size_bytes) == SLW_CPU_LACKS) {
      char word[40];
      size_t length = (item.size_bytes < sizeof word) ? item.size_bytes : sizeof word - 1;
      memcpy(word, item.text, length);
      word[length] = '\0';
      used += slw_format(missing + used, sizeof missing - used, "%s%s", (used > 0) ? ", " : "",
                         word);
    }
  }
  if (used == 0) {
    return SLW_OK;
  }
  (void)slw_error_setf("ArtifactError",
                       "%s needs the processor features %s, which this processor does not have. "
                       "Compile it for this processor: give its -mcpu, or leave those features "
                       "out of -mattr.",
                       name, missing);
  return SLW_ERROR_FEATURE;
}

slw_status slw_metadata_check(const char *json, size_t size_bytes, const char *name) {
  slw_text value;
  if (slw_metadata_find(json, size_bytes, "format_version", &value) != SLW_OK) {
    (void)slw_error_setf("ArtifactError", "%s is damaged: its metadata cannot be read. Export it "
                                          "again.", name);
    return SLW_ERROR_FORMAT;
  }
  if (value.size_bytes != 1 || value.text[0] != '0' + SLW_FORMAT_VERSION) {
    (void)slw_error_setf("ArtifactError",
                         "%s was written by another version of Slipway, and this runtime reads "
                         "format version %d only. Compile it again, or update the runtime.",
                         name, SLW_FORMAT_VERSION);
    return SLW_ERROR_VERSION;
  }
  if (slw_metadata_find(json, size_bytes, "isa", &value) == SLW_OK) {
    return check_features(value, name);
  }
  return SLW_OK;
}
