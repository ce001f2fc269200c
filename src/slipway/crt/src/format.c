/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/format.h"

typedef struct {
  char *text;
  size_t size;
  size_t used;
  int cut; /* something did not fit */
} writer;

static void put(writer *w, char c) {
  if (w->used + 1 < w->size) {
    w->text[w->used++] = c;
  } else {
    w->cut = 1;
  }
}

size_t slw_format_end(char *text, size_t used) {
  size_t start = used;
  unsigned lead = 0;
  unsigned wanted = 1;
  while (start > 0 && used - start < 4 && ((unsigned char)text[start - 1] & 0xC0u) == 0x80u) {
    --start;
  }
  if (start == 0) {
    return used;
  }
  lead = (unsigned char)text[start - 1];
  if (lead >= 0xC0u) {
    wanted = (lead >= 0xF0u) ? 4u : (lead >= 0xE0u) ? 3u : 2u;
    if (used - (start - 1) < wanted) {
      used = start - 1;
      text[used] = '\0';
    }
  }
  return used;
}

static void put_text(writer *w, const char *s) {
  for (s = (s != NULL) ? s : "(null)"; *s != '\0'; ++s) {
    put(w, *s);
  }
}

static void put_number(writer *w, uint64_t value, unsigned base) {
  char digits[20];
  size_t n = 0;
  do {
    digits[n++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  while (n > 0) {
    put(w, digits[--n]);
  }
}

static int64_t next_signed(va_list *list, int longs, int is_size) {
  if (is_size) {
    return (int64_t)va_arg(*list, size_t);
  }
  if (longs >= 2) {
    return va_arg(*list, long long);
  }
  return (longs == 1) ? va_arg(*list, long) : va_arg(*list, int);
}

static uint64_t next_unsigned(va_list *list, int longs, int is_size) {
  if (is_size) {
    return va_arg(*list, size_t);
  }
  if (longs >= 2) {
    return va_arg(*list, unsigned long long);
  }
  return (longs == 1) ? va_arg(*list, unsigned long) : va_arg(*list, unsigned int);
}

static void put_directive(writer *w, char directive, va_list *list, int longs, int is_size) {
  switch (directive) {
    case 's':
      put_text(w, va_arg(*list, const char *));
      break;
    case 'c':
      put(w, (char)va_arg(*list, int));
      break;
    case 'd': {
      int64_t value = next_signed(list, longs, is_size);
      if (value < 0) {
        put(w, '-');
      }
      put_number(w, (value < 0) ? 0U - (uint64_t)value : (uint64_t)value, 10);
      break;
    }
    case 'u':
      put_number(w, next_unsigned(list, longs, is_size), 10);
      break;
    case 'x':
      put_number(w, next_unsigned(list, longs, is_size), 16);
      break;
    default:
      put(w, directive);
      break;
  }
}

size_t slw_format_list(char *text, size_t size_bytes, const char *format, va_list list) {
  writer w = {text, size_bytes, 0, 0};
  va_list arguments;
  if (size_bytes == 0) {
    return 0;
  }
  va_copy(arguments, list);
  while (*format != '\0') {
    int longs = 0;
    int is_size = 0;
    if (*format != '%') {
      put(&w, *format++);
      continue;
    }
    for (++format; *format == 'l' || *format == 'z'; ++format) {
      longs += (*format == 'l');
      is_size |= (*format == 'z');
    }
    if (*format == '\0') {
      break;
    }
    put_directive(&w, *format++, &arguments, longs, is_size);
  }
  va_end(arguments);
  text[w.used] = '\0';
  return w.cut ? slw_format_end(text, w.used) : w.used;
}

size_t slw_format(char *text, size_t size_bytes, const char *format, ...) {
  va_list list;
  size_t used;
  va_start(list, format);
  used = slw_format_list(text, size_bytes, format, list);
  va_end(list);
  return used;
}
