/* Integer layers. With the DSP extension two products are summed by one instruction (smlad): data
 * is widened to 16 bits once for all output channels, weights as they are read.  In a widened word
 * of four bytes the order is (0, 2), (1, 3), which is what sxtb16 gives.
 */
static inline uint32_t slw_load4(const int8_t *at) {
  uint32_t word;
  __builtin_memcpy(&word, at, 4);
  return word;
}

#if defined(__ARM_FEATURE_SIMD32)
static inline uint32_t slw_even(uint32_t bytes) {
  uint32_t pair;
  __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(bytes));
  return pair;
}
static inline uint32_t slw_odd(uint32_t bytes) {
  uint32_t pair;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(bytes));
  return pair;
}
static inline int32_t slw_dot2(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
static inline int32_t slw_low(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  __asm__("smlabb %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
static inline int32_t slw_high(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  __asm__("smlatt %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
static inline int32_t slw_high_product(int32_t sum, int32_t multiplier) {
  int32_t result;
  __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(sum * 2), "r"(multiplier));
  return result;
}
static inline int8_t slw_saturate(int32_t value) {
  int32_t result;
  __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(value));
  return (int8_t)result;
}

/* Two output channels of two pixels: sums += weights x columns, `words` pairs of weight words. */
static inline void slw_dot_2x2(const uint32_t *weights, const uint32_t *columns, uint32_t words,
                               int32_t *a0, int32_t *a1, int32_t *b0, int32_t *b1) {
  const uint32_t *end = weights + 2u * words;
  int32_t s00 = *a0;
  int32_t s01 = *a1;
  int32_t s10 = *b0;
  int32_t s11 = *b1;
  uint32_t w;
  uint32_t v;
  uint32_t t;
  uint32_t u;
  uint32_t x;
  uint32_t y;
  __asm__ volatile(
      "1: ldrd %[w], %[v], [%[p]], #8\n"
      "ldrd %[x], %[y], [%[c]], #8\n"
      "sxtb16 %[t], %[w]\n"
      "sxtb16 %[w], %[w], ror #8\n"
      "sxtb16 %[u], %[v]\n"
      "sxtb16 %[v], %[v], ror #8\n"
      "smlad %[s00], %[t], %[x], %[s00]\n"
      "smlad %[s01], %[u], %[x], %[s01]\n"
      "smlad %[s00], %[w], %[y], %[s00]\n"
      "smlad %[s01], %[v], %[y], %[s01]\n"
      "ldrd %[x], %[y], [%[c]], #8\n"
      "smlad %[s10], %[t], %[x], %[s10]\n"
      "smlad %[s11], %[u], %[x], %[s11]\n"
      "smlad %[s10], %[w], %[y], %[s10]\n"
      "smlad %[s11], %[v], %[y], %[s11]\n"
      "cmp %[p], %[e]\n"
      "bne 1b\n"
      : [s00] "+r"(s00), [s01] "+r"(s01), [s10] "+r"(s10), [s11] "+r"(s11), [p] "+r"(weights),
        [c] "+r"(columns), [w] "=&r"(w), [v] "=&r"(v), [t] "=&r"(t), [u] "=&r"(u),
        [x] "=&r"(x), [y] "=&r"(y)
      : [e] "r"(end)
      : "cc", "memory");
  *a0 = s00;
  *a1 = s01;
  *b0 = s10;
  *b1 = s11;
}

/* One window of four channels: returns the weights behind it. */
static inline const uint32_t *slw_taps(const int8_t **tap, const int8_t **end, uint32_t offset,
                                       const uint32_t *weights, int32_t *s0, int32_t *s1,
                                       int32_t *s2, int32_t *s3) {
  uint32_t x;
  uint32_t y;
  uint32_t w;
  uint32_t v;
  __asm__ volatile(
      "1: ldr %[x], [%[t]], #4\n"
      "ldrd %[w], %[v], [%[p]], #8\n"
      "ldr %[x], [%[x], %[o]]\n"
      "sxtb16 %[y], %[x]\n"
      "sxtb16 %[x], %[x], ror #8\n"
      "smlabb %[s0], %[y], %[w], %[s0]\n"
      "smlatt %[s2], %[y], %[w], %[s2]\n"
      "smlabb %[s1], %[x], %[v], %[s1]\n"
      "smlatt %[s3], %[x], %[v], %[s3]\n"
      "cmp %[t], %[e]\n"
      "bne 1b\n"
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [s2] "+r"(*s2), [s3] "+r"(*s3), [t] "+r"(tap),
        [p] "+r"(weights), [x] "=&r"(x), [y] "=&r"(y), [w] "=&r"(w), [v] "=&r"(v)
      : [o] "r"(offset), [e] "r"(end)
      : "cc", "memory");
  return weights;
}
#else
static inline uint32_t slw_pair(int32_t low, int32_t high) {
  return ((uint32_t)low & 0xFFFFu) | ((uint32_t)high << 16);
}
static inline uint32_t slw_even(uint32_t bytes) {
  return slw_pair((int8_t)(uint8_t)bytes, (int8_t)(uint8_t)(bytes >> 16));
}
static inline uint32_t slw_odd(uint32_t bytes) { return slw_even(bytes >> 8); }
static inline int32_t slw_low(uint32_t a, uint32_t b, int32_t sum) {
  return sum + (int32_t)(int16_t)(uint16_t)a * (int16_t)(uint16_t)b;
}
static inline int32_t slw_high(uint32_t a, uint32_t b, int32_t sum) {
  return slw_low(a >> 16, b >> 16, sum);
}
static inline int32_t slw_dot2(uint32_t a, uint32_t b, int32_t sum) {
  return slw_high(a, b, slw_low(a, b, sum));
}
static inline int32_t slw_high_product(int32_t sum, int32_t multiplier) {
  return (int32_t)(((int64_t)sum * multiplier + 1073741824) >> 31);
}
static inline int8_t slw_saturate(int32_t value) {
  value = value < -128 ? -128 : value;
  return (int8_t)(value > 127 ? 127 : value);
}
static inline const uint32_t *slw_taps(const int8_t **tap, const int8_t **end, uint32_t offset,
                                       const uint32_t *weights, int32_t *s0, int32_t *s1,
                                       int32_t *s2, int32_t *s3) {
  for (; tap != end; ++tap, weights += 2) {
    const uint32_t bytes = slw_load4(*tap + offset);
    *s0 = slw_low(slw_even(bytes), weights[0], *s0);
    *s2 = slw_high(slw_even(bytes), weights[0], *s2);
    *s1 = slw_low(slw_odd(bytes), weights[1], *s1);
    *s3 = slw_high(slw_odd(bytes), weights[1], *s3);
  }
  return weights;
}
static inline void slw_dot_2x2(const uint32_t *weights, const uint32_t *columns, uint32_t words,
                               int32_t *a0, int32_t *a1, int32_t *b0, int32_t *b1) {
  for (; words > 0u; --words, weights += 2, columns += 4) {
    *a0 = slw_dot2(slw_odd(weights[0]), columns[1],
                   slw_dot2(slw_even(weights[0]), columns[0], *a0));
    *a1 = slw_dot2(slw_odd(weights[1]), columns[1],
                   slw_dot2(slw_even(weights[1]), columns[0], *a1));
    *b0 = slw_dot2(slw_odd(weights[0]), columns[3],
                   slw_dot2(slw_even(weights[0]), columns[2], *b0));
    *b1 = slw_dot2(slw_odd(weights[1]), columns[3],
                   slw_dot2(slw_even(weights[1]), columns[2], *b1));
  }
}
#endif

/* sum * multiplier * 2^(shift - 31), rounded twice as TFLite's reference kernels do, plus the
 * output's zero point, clipped.  |sum| is below 2^30, which whoever chose this kernel has checked.
 *
 * First rounding: (sum * multiplier + 2^30) >> 31 = (2 * sum * multiplier + 2^31) >> 32.
 * Second, for a right shift of at least 1: (v + 2^(right - 1) - (v < 0)) >> right.
 */
static inline int8_t slw_clip(const struct slw_layer *layer, int32_t value) {
  if (layer->clips != 0u) {
    value = value < layer->out_min ? layer->out_min : value;
    value = value > layer->out_max ? layer->out_max : value;
    return (int8_t)value;
  }
  return slw_saturate(value);
}

/* `twice_zero` is 2 * out_zero + 1: the second rounding's half and the zero point together are
 * (2 * zero + 1) << (right - 1), and right - 1 is ~shift. */
static inline int8_t slw_requantize(const struct slw_layer *layer, int32_t sum, int32_t multiplier,
                                    int32_t shift, int32_t twice_zero) {
  int32_t value;
  if (shift < 0) {
    value = slw_high_product(sum, multiplier);
    value += value >> 31;
    value += (int32_t)((uint32_t)twice_zero << ~shift);
    return slw_clip(layer, value >> -shift);
  }
  value = slw_high_product((int32_t)((uint32_t)sum << shift), multiplier);
  return slw_clip(layer, value + (twice_zero >> 1));
}

/* Widen `count` bytes, a multiple of 4, into every other pair of words: two pixels interleave. */
static void slw_widen(uint32_t *to, const int8_t *from, uint32_t count) {
  for (; count > 0u; count -= 4u, from += 4, to += 4) {
    uint32_t bytes = slw_load4(from);
    to[0] = slw_even(bytes);
    to[1] = slw_odd(bytes);
  }
}

/* Gather the window of output pixel (y, x), widened, into `to`; `bytes` holds it in between. */
static void slw_column(const struct slw_layer *layer, const int8_t *data, int32_t y, int32_t x,
                       uint32_t *to, int8_t *bytes, uint32_t padded) {
  const uint32_t channels = layer->in_channels;
  const int32_t top = y * layer->stride_y - layer->pad_top;
  const int32_t left = x * layer->stride_x - layer->pad_left;
  int8_t *at = bytes;
  uint32_t i;
  if (layer->direct != 0u && channels == padded) {
    slw_widen(to, data + ((uint32_t)top * layer->in_width + (uint32_t)left) * channels, padded);
    return;
  }
  for (uint32_t ky = 0; ky < layer->kernel_height; ++ky) {
    const int32_t row = top + (int32_t)(ky * layer->dilation_y);
    const int inside = row >= 0 && row < layer->in_height;
    for (uint32_t kx = 0; kx < layer->kernel_width; ++kx) {
      const int32_t column = left + (int32_t)(kx * layer->dilation_x);
      if (inside && column >= 0 && column < layer->in_width) {
        const int8_t *from =
            data + ((uint32_t)row * layer->in_width + (uint32_t)column) * channels;
        i = 0;
        for (; i + 4u <= channels; i += 4u) {
          __builtin_memcpy(at + i, from + i, 4);
        }
        for (; i < channels; ++i) {
          at[i] = from[i];
        }
      } else {
        for (i = 0; i < channels; ++i) {
          at[i] = (int8_t)layer->pad_value;
        }
      }
      at += channels;
    }
  }
  for (i = (uint32_t)(at - bytes); i < padded; ++i) {
    bytes[i] = 0;
  }
  slw_widen(to, bytes, padded);
}

/* All output channels of two pixels, or of one when out_b is null. */
static void slw_conv_pixels(const struct slw_layer *layer, const uint32_t *columns,
                            const uint32_t *weights, const struct slw_scales *scales, int8_t *out_a,
                            int8_t *out_b, uint32_t words) {
  const uint32_t step = layer->per_channel;
  const uint32_t channels = layer->out_channels;
  const int32_t zero = 2 * layer->out_zero + 1;
  for (uint32_t c = 0; c < channels; c += 2u) {
    const uint32_t two = c + 1u < channels;
    const int32_t *multiplier = scales->multiplier + c * step;
    const int32_t *shift = scales->shift + c * step;
    int32_t a0 = scales->bias[c];
    int32_t a1 = scales->bias[c + two];
    int32_t b0 = a0;
    int32_t b1 = a1;
    slw_dot_2x2(weights, columns, words, &a0, &a1, &b0, &b1);
    out_a[c] = slw_requantize(layer, a0, multiplier[0], shift[0], zero);
    if (out_b != 0) {
      out_b[c] = slw_requantize(layer, b0, multiplier[0], shift[0], zero);
    }
    if (two != 0u) {
      out_a[c + 1u] = slw_requantize(layer, a1, multiplier[step], shift[step], zero);
      if (out_b != 0) {
        out_b[c + 1u] = slw_requantize(layer, b1, multiplier[step], shift[step], zero);
      }
    }
    weights += 2u * words;
  }
}

/* A product of one row: weights as for a convolution, four output channels at a time.  The row has
 * a multiple of 4 elements. */
static SLW_SHARED void slw_dense_int8(const struct slw_layer *layer, const int8_t *data,
                                      const uint32_t *weights, const struct slw_scales *scales,
                                      int8_t *out, uint8_t *workspace) {
  const uint32_t words = layer->in_channels / 4u;
  const uint32_t channels = layer->out_channels;
  const uint32_t step = layer->per_channel;
  (void)workspace;
  for (uint32_t c = 0; c < channels; c += 4u) {
    const uint32_t *w = weights;
    const uint32_t *v = c + 2u < channels ? weights + 2u * words : weights;
    const uint32_t *end = weights + 2u * words;
    const int8_t *x = data;
    int32_t sums[4] = {0, 0, 0, 0};
    int32_t s0 = 0;
    int32_t s1 = 0;
    int32_t s2 = 0;
    int32_t s3 = 0;
    for (; w != end; w += 2, v += 2, x += 4) {
      const uint32_t bytes = slw_load4(x);
      const uint32_t even = slw_even(bytes);
      const uint32_t odd = slw_odd(bytes);
      s0 = slw_dot2(slw_odd(w[0]), odd, slw_dot2(slw_even(w[0]), even, s0));
      s1 = slw_dot2(slw_odd(w[1]), odd, slw_dot2(slw_even(w[1]), even, s1));
      s2 = slw_dot2(slw_odd(v[0]), odd, slw_dot2(slw_even(v[0]), even, s2));
      s3 = slw_dot2(slw_odd(v[1]), odd, slw_dot2(slw_even(v[1]), even, s3));
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    for (uint32_t i = 0; i < 4u && c + i < channels; ++i) {
      const uint32_t at = (c + i) * step;
      out[c + i] = slw_requantize(layer, sums[i] + scales->bias[c + i], scales->multiplier[at],
                                  scales->shift[at], 2 * layer->out_zero + 1);
    }
    weights += 4u * words;
  }
}

/* weights: for each pair of output channels the words of both in turn, a word being 4 elements of
 * the window, which is filled up to a multiple of 4.  workspace: 5 bytes per element. */
static SLW_SHARED void slw_conv_int8(const struct slw_layer *layer, const int8_t *data,
                                     const uint32_t *weights, const struct slw_scales *scales,
                                     int8_t *out, uint8_t *workspace) {
  const uint32_t kernel =
      (uint32_t)layer->kernel_height * layer->kernel_width * layer->in_channels;
  const uint32_t padded = (kernel + 3u) & ~3u;
  const uint32_t channels = layer->out_channels;
  const uint32_t pixels = (uint32_t)layer->out_height * layer->out_width;
  uint32_t *columns = (uint32_t *)(void *)workspace;
  int8_t *bytes = (int8_t *)(columns + padded);
  int32_t y = 0;
  int32_t x = 0;
  for (uint32_t pixel = 0; pixel < pixels; pixel += 2u) {
    int8_t *second = 0;
    slw_column(layer, data, y, x, columns, bytes, padded);
    if (++x == layer->out_width) {
      x = 0;
      ++y;
    }
    if (pixel + 1u < pixels) {
      second = out + channels;
      slw_column(layer, data, y, x, columns + 2, bytes, padded);
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    slw_conv_pixels(layer, columns, weights, scales, out, second, padded / 4u);
    out += 2u * channels;
  }
}

/* weights: [channels / 4][kernel][4] int16, each four channels in the order 0, 2, 1, 3, filled up
 * with zeros.  workspace: channels bytes of border, then a pointer for each kernel element. */
static SLW_SHARED void slw_depthwise_int8(const struct slw_layer *layer, const int8_t *data,
                                          const uint32_t *weights,
                                          const struct slw_scales *scales, int8_t *out,
                                          uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  int8_t *border = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  const uint32_t step = layer->per_channel;
  const int32_t zero = 2 * layer->out_zero + 1;
  for (uint32_t i = 0; i < channels; ++i) {
    border[i] = (int8_t)layer->pad_value;
  }
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int8_t **at = slw_next_window(layer, data, y, x, border, window);
      const int32_t *multiplier = scales->multiplier;
      const int32_t *shift = scales->shift;
      const uint32_t *w = weights;
      uint32_t c = 0;
      for (; c + 4u <= channels; c += 4u) {
        const int32_t *bias = scales->bias + c;
        int32_t s0 = bias[0];
        int32_t s1 = bias[1];
        int32_t s2 = bias[2];
        int32_t s3 = bias[3];
        w = slw_taps(window, at, c, w, &s0, &s1, &s2, &s3);
        out[0] = slw_requantize(layer, s0, multiplier[0], shift[0], zero);
        out[1] = slw_requantize(layer, s1, multiplier[step], shift[step], zero);
        out[2] = slw_requantize(layer, s2, multiplier[2u * step], shift[2u * step], zero);
        out[3] = slw_requantize(layer, s3, multiplier[3u * step], shift[3u * step], zero);
        out += 4;
        multiplier += 4u * step;
        shift += 4u * step;
      }
      for (uint32_t last = 0; c < channels; ++last, ++c) {
        /* What is left of a group of four; its second and third are swapped. */
        const int16_t *v = (const int16_t *)(const void *)w + ((last * 2u) % 3u);
        int32_t sum = scales->bias[c];
        for (const int8_t **tap = window; tap != at; ++tap, v += 4) {
          sum += (*tap)[c] * *v;
        }
        *out++ = slw_requantize(layer, sum, *multiplier, *shift, zero);
        multiplier += step;
        shift += step;
      }
    }
  }
}
