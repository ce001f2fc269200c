/* Windows in one piece, for kernels that read them as a row.
 */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__)
static inline void slw_copy(int8_t *to, const int8_t *from, uint32_t size) {
  __asm__ volatile(
      "wlstp.8 lr, %[n], 2f\n"
      "1: vldrb.8 q0, [%[f]], #16\n"
      "vstrb.8 q0, [%[t]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [f] "+r"(from), [t] "+r"(to)
      : [n] "r"(size)
      : "cc", "memory", "q0", "lr");
}

static inline void slw_fill(int8_t *to, int16_t value, uint32_t size) {
  __asm__ volatile(
      "vdup.8 q0, %[v]\n"
      "wlstp.8 lr, %[n], 2f\n"
      "1: vstrb.8 q0, [%[t]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [t] "+r"(to)
      : [n] "r"(size), [v] "r"(value)
      : "cc", "memory", "q0", "lr");
}
#define SLW_HAS_FILL
#elif defined(__ARM_FEATURE_UNALIGNED) && defined(__GNUC__)
/* By words, wherever they lie. */
static inline void slw_copy(int8_t *to, const int8_t *from, uint32_t size) {
  const int8_t *end = from + (size & ~3u);
  for (; from != end; to += 4, from += 4) {
    __builtin_memcpy(to, from, 4);
  }
  if ((size & 2u) != 0u) {
    __builtin_memcpy(to, from, 2);
    to += 2;
    from += 2;
  }
  if ((size & 1u) != 0u) {
    *to = *from;
  }
}
#else
static inline void slw_copy(int8_t *to, const int8_t *from, uint32_t size) {
  for (; size >= 4u; size -= 4u, to += 4, from += 4) {
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
  }
  for (; size > 0u; --size) {
    *to++ = *from++;
  }
}
#endif

#if !defined(SLW_HAS_FILL)
static inline void slw_fill(int8_t *to, int16_t value, uint32_t size) {
  for (; size > 0u; --size) {
    *to++ = (int8_t)value;
  }
}
#endif

/* The window of output pixel (y, x) in one piece: the data itself where it is a multiple of `unit`
 * long, or gathered into `to`. */
static SLW_SHARED const int8_t *slw_gather(const struct slw_layer *layer, const int8_t *data,
                                           int32_t y, int32_t x, int8_t *to, uint32_t unit) {
  const uint32_t channels = layer->in_channels;
  const int32_t top = y * layer->stride_y - layer->pad_top;
  const int32_t left = x * layer->stride_x - layer->pad_left;
  const int32_t last = left + (layer->kernel_width - 1) * layer->dilation_x;
  const uint32_t run = (uint32_t)layer->kernel_width * channels;
  int8_t *at = to;
  if (layer->direct != 0u) {
    const int8_t *from = data + (uint32_t)(top * layer->in_width + left) * channels;
    if (channels % unit == 0u) {
      return from;
    }
    slw_copy(to, from, channels);
    return to;
  }
  if (top >= 0 && top + (layer->kernel_height - 1) * layer->dilation_y < layer->in_height &&
      left >= 0 && last < layer->in_width && layer->dilation_x == 1) {
    const uint32_t line = (uint32_t)layer->in_width * channels;
    const uint32_t step = (uint32_t)layer->dilation_y * line;
    const int8_t *from = data + (uint32_t)top * line + (uint32_t)left * channels;
    for (uint32_t rows = (uint32_t)layer->kernel_height; rows > 0u; --rows) {
      slw_copy(at, from, run);
      at += run;
      from += step;
    }
    return to;
  }
  for (int32_t ky = 0; ky < layer->kernel_height; ++ky) {
    const int32_t row = top + ky * layer->dilation_y;
    const int8_t *line = data + (uint32_t)(row * layer->in_width) * channels;
    if (row < 0 || row >= layer->in_height) {
      slw_fill(at, layer->pad_value, run);
      at += run;
    } else if (left >= 0 && last < layer->in_width && layer->dilation_x == 1) {
      slw_copy(at, line + (uint32_t)left * channels, run);
      at += run;
    } else {
      for (int32_t column = left; column <= last; column += layer->dilation_x) {
        if (column >= 0 && column < layer->in_width) {
          slw_copy(at, line + (uint32_t)column * channels, channels);
        } else {
          slw_fill(at, layer->pad_value, channels);
        }
        at += channels;
      }
    }
  }
  return to;
}
