/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define MAX_JSON_DEPTH 64

typedef struct {
  const char *text;
  size_t size;
  size_t at;
  slw_json *out;
  size_t capacity;
} json_reader;

static void skip_json_spaces(json_reader *r) {
  while (r->at < r->size && strchr(" \t\r\n", r->text[r->at]) != NULL && r->text[r->at] != '\0') {
    ++r->at;
  }
}

static char peek_json(const json_reader *r) { return (r->at < r->size) ? r->text[r->at] : '\0'; }

static slw_status add_token(json_reader *r, slw_json_type type, uint32_t *index) {
  slw_json *json = r->out;
  if (json->count == r->capacity) {
    size_t capacity = (r->capacity > 0) ? 2U * r->capacity : 64U;
    slw_json_token *grown = (capacity < SLW_JSON_NONE)
                                ? realloc(json->tokens, capacity * sizeof *grown)
                                : NULL;
    if (grown == NULL) {
      return SLW_ERROR_MEMORY;
    }
    json->tokens = grown;
    r->capacity = capacity;
  }
  *index = json->count++;
  memset(&json->tokens[*index], 0, sizeof json->tokens[*index]);
  json->tokens[*index].type = type;
  json->tokens[*index].next = json->count;
  return SLW_OK;
}

static slw_status read_json_string(json_reader *r) {
  uint32_t index = 0;
  size_t from = ++r->at;
  slw_status status = add_token(r, SLW_JSON_STRING, &index);
  while (status == SLW_OK && peek_json(r) != '"') {
    if (r->at >= r->size || (unsigned char)r->text[r->at] < ' ') {
      return SLW_ERROR_FORMAT;
    }
    r->at += (r->text[r->at] == '\\') ? 2U : 1U;
  }
  if (status == SLW_OK) {
    r->out->tokens[index].text = r->text + from;
    r->out->tokens[index].size_bytes = r->at - from;
    ++r->at;
  }
  return status;
}

static int is_of_a_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

static slw_status read_json_word(json_reader *r) {
  uint32_t index = 0;
  size_t from = r->at;
  slw_status status = add_token(r, SLW_JSON_WORD, &index);
  while (is_of_a_word(peek_json(r))) {
    ++r->at;
  }
  if (status == SLW_OK) {
    r->out->tokens[index].text = r->text + from;
    r->out->tokens[index].size_bytes = r->at - from;
  }
  return (status == SLW_OK && r->at == from) ? SLW_ERROR_FORMAT : status;
}

/* Read a string or a word, or begin what is in brackets: *opened is its token then. */
static slw_status read_json_one(json_reader *r, uint32_t *opened) {
  const char c = peek_json(r);
  *opened = SLW_JSON_NONE;
  if (c == '"') {
    return read_json_string(r);
  }
  if (c != '{' && c != '[') {
    return read_json_word(r);
  }
  ++r->at;
  return add_token(r, (c == '{') ? SLW_JSON_OBJECT : SLW_JSON_ARRAY, opened);
}

/* Behind a value: close what ends here, and stand before the next value, whose parent is the top of
 * `open`, or behind the document. */
static slw_status close_and_part(json_reader *r, uint32_t *open, size_t *depth) {
  while (*depth > 0) {
    slw_json_token *parent = &r->out->tokens[open[*depth - 1U]];
    const char end = (parent->type == SLW_JSON_OBJECT) ? '}' : ']';
    skip_json_spaces(r);
    if (peek_json(r) == end) {
      ++r->at;
      parent->next = r->out->count;
      --*depth;
      continue;
    }
    if (parent->count > 0) {
      if (peek_json(r) != ',') {
        return SLW_ERROR_FORMAT;
      }
      ++r->at;
      skip_json_spaces(r);
    }
    return (++parent->count == 0) ? SLW_ERROR_FORMAT : SLW_OK;
  }
  return SLW_OK;
}

static slw_status read_json_name(json_reader *r) {
  slw_status status = (peek_json(r) == '"') ? read_json_string(r) : SLW_ERROR_FORMAT;
  skip_json_spaces(r);
  if (status == SLW_OK && peek_json(r) != ':') {
    return SLW_ERROR_FORMAT;
  }
  ++r->at;
  skip_json_spaces(r);
  return status;
}

static slw_status read_json_all(json_reader *r) {
  uint32_t open[MAX_JSON_DEPTH];
  size_t depth = 0;
  slw_status status = SLW_OK;
  do {
    uint32_t opened = SLW_JSON_NONE;
    if (depth > 0 && r->out->tokens[open[depth - 1U]].type == SLW_JSON_OBJECT) {
      status = read_json_name(r);
    }
    if (status == SLW_OK) {
      status = read_json_one(r, &opened);
    }
    if (status == SLW_OK && opened != SLW_JSON_NONE) {
      if (depth == MAX_JSON_DEPTH) {
        return SLW_ERROR_FORMAT;
      }
      open[depth++] = opened;
    }
    if (status == SLW_OK) {
      status = close_and_part(r, open, &depth);
    }
  } while (status == SLW_OK && depth > 0);
  skip_json_spaces(r);
  return (status == SLW_OK && r->at != r->size) ? SLW_ERROR_FORMAT : status;
}

slw_status slw_json_parse(const char *text, size_t size_bytes, slw_json *out) {
  json_reader r = {text, size_bytes, 0, out, 0};
  slw_status status;
  memset(out, 0, sizeof *out);
  while (r.size > 0 && text[r.size - 1U] == '\0') {
    --r.size; /* a text of C may come with its end */
  }
  skip_json_spaces(&r);
  status = read_json_all(&r);
  if (status != SLW_OK) {
    free(out->tokens);
    memset(out, 0, sizeof *out);
  }
  return status;
}

uint32_t slw_json_find(const slw_json *json, uint32_t object, const char *name) {
  const size_t length = strlen(name);
  uint32_t at = object + 1U;
  if (object >= json->count || json->tokens[object].type != SLW_JSON_OBJECT) {
    return SLW_JSON_NONE;
  }
  for (uint32_t i = 0; i < json->tokens[object].count; ++i) {
    const slw_json_token *key = &json->tokens[at];
    if (key->size_bytes == length && memcmp(key->text, name, length) == 0) {
      return at + 1U;
    }
    at = json->tokens[at + 1U].next;
  }
  return SLW_JSON_NONE;
}

int slw_json_int(const slw_json *json, uint32_t token, int64_t *value) {
  const slw_json_token *number;
  uint64_t sum = 0;
  size_t at = 0;
  int is_negative;
  if (token >= json->count) {
    return 0;
  }
  number = &json->tokens[token];
  is_negative = (number->size_bytes > 0 && number->text[0] == '-') ? 1 : 0;
  at = (size_t)is_negative;
  if (number->type == SLW_JSON_OBJECT || number->type == SLW_JSON_ARRAY ||
      at == number->size_bytes || number->size_bytes > 18U) { /* so it cannot overflow */
    return 0;
  }
  for (; at < number->size_bytes; ++at) {
    const char c = number->text[at];
    if (c < '0' || c > '9') {
      return 0;
    }
    sum = 10U * sum + (uint64_t)(c - '0');
  }
  *value = is_negative ? -(int64_t)sum : (int64_t)sum;
  return 1;
}

static int read_hex(const char *text, size_t left, uint32_t *code) {
  *code = 0;
  if (left < 4) {
    return 0;
  }
  for (size_t i = 0; i < 4; ++i) {
    static const char DIGITS[] = "0123456789abcdef";
    const char c = (text[i] >= 'A' && text[i] <= 'F') ? (char)(text[i] - 'A' + 'a') : text[i];
    const char *digit = (c != '\0') ? strchr(DIGITS, c) : NULL;
    if (digit == NULL) {
      return 0;
    }
    *code = 16U * *code + (uint32_t)(digit - DIGITS);
  }
  return 1;
}

static size_t to_utf8(uint32_t code, char *out) {
  if (code < 0x80U) {
    out[0] = (char)code;
    return 1;
  }
  if (code < 0x800U) {
    out[0] = (char)(0xc0U | (code >> 6));
    out[1] = (char)(0x80U | (code & 0x3fU));
    return 2;
  }
  if (code < 0x10000U) {
    out[0] = (char)(0xe0U | (code >> 12));
    out[1] = (char)(0x80U | ((code >> 6) & 0x3fU));
    out[2] = (char)(0x80U | (code & 0x3fU));
    return 3;
  }
  out[0] = (char)(0xf0U | (code >> 18));
  out[1] = (char)(0x80U | ((code >> 12) & 0x3fU));
  out[2] = (char)(0x80U | ((code >> 6) & 0x3fU));
  out[3] = (char)(0x80U | (code & 0x3fU));
  return 4;
}

/* Read what follows a backslash; *at moves past it. Returns the bytes it makes, 0 if it is
 * wrong (a NUL is, because texts end with one). */
static size_t read_escape(const slw_json_token *token, size_t *at, char *out) {
  static const char NAMES[] = "\"\\/bfnrt";
  static const char VALUES[] = "\"\\/\b\f\n\r\t";
  const char c = token->text[(*at)++];
  const char *name = strchr(NAMES, c);
  uint32_t code = 0;
  uint32_t low = 0;
  if (c != 'u') {
    out[0] = (name != NULL && c != '\0') ? VALUES[name - NAMES] : '\0';
    return (out[0] != '\0') ? 1U : 0U;
  }
  if (!read_hex(token->text + *at, token->size_bytes - *at, &code) || code == 0) {
    return 0;
  }
  *at += 4;
  if (code < 0xd800U || code > 0xdfffU) {
    return to_utf8(code, out);
  }
  if (code > 0xdbffU || token->size_bytes - *at < 6 || token->text[*at] != '\\' ||
      token->text[*at + 1U] != 'u' ||
      !read_hex(token->text + *at + 2, token->size_bytes - *at - 2U, &low) || low < 0xdc00U ||
      low > 0xdfffU) {
    return 0; /* half of a pair */
  }
  *at += 6;
  return to_utf8(0x10000U + ((code - 0xd800U) << 10) + (low - 0xdc00U), out);
}

int slw_json_text(const slw_json *json, uint32_t token, char *out, size_t *size_bytes) {
  size_t used = 0;
  const slw_json_token *text = (token < json->count) ? &json->tokens[token] : NULL;
  if (text == NULL || text->type != SLW_JSON_STRING) {
    return 0;
  }
  for (size_t at = 0; at < text->size_bytes;) {
    char few[4];
    size_t length = 1;
    few[0] = text->text[at++];
    if (few[0] == '\\') {
      length = read_escape(text, &at, few);
    }
    if (length == 0) {
      return 0;
    }
    if (out != NULL) {
      memcpy(out + used, few, length);
    }
    used += length;
  }
  *size_bytes = used;
  return 1;
}
