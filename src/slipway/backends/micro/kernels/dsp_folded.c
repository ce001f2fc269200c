/* Integer layers with two weights folded into 16 bits: a halfword of a word of four is
 * 256 * -w[even] + w[odd], for the even and the odd element of a pair.  Data is widened to
 *
 *   first  = -even - 1               (all bits of the byte flipped, then its sign extended)
 *   second = 256 * odd + even + 128  (the two bytes as they lie, the top bit of one flipped)
 *
 * so that with the word itself and with its low bytes, which one sxtb16 gives,
 *
 *   (256 * -w[even] + w[odd]) * first + w[odd] * second
 *       = 256 * (w[even] * even + w[odd] * odd) + 256 * w[even] + 127 * w[odd]:
 *
 * four products take three instructions instead of four.  The last two terms are in the bias, and
 * sums are 256 times as large, hence below 2^23: whoever chose these kernels has checked that, and
 * that no even weight is -128.  Sums on the way may wrap.  Weights and biases are padded with zeros
 * to whole groups of channels, scales too.
 */
#define SLW_FLIPPED 0x00FF00FFu
#define SLW_RAISED 0x00800080u

#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
/* Enter a loop of four steps so that `words` of them are done: the flags are those of
 * words << 31. */
#define SLW_ENTER \
  "bpl 5f\n"      \
  "bcs 2f\n"      \
  "b 4f\n"        \
  "5: bcs 3f\n"

/* sums[2 * pixel + channel] of two channels and three pixels; returns the weights behind them.
 * This takes every register, as slw_dot_2x3 does. */
#define SLW_DOT_2X3(w, columns, words, bias, sums)                                               \
  do {                                                                                           \
    register int32_t a0 __asm__("r0") = (bias)[0];                                               \
    register int32_t a1 __asm__("r1") = (bias)[1];                                               \
    register int32_t b0 __asm__("r2") = a0;                                                      \
    register int32_t b1 __asm__("r3") = a1;                                                      \
    register int32_t c0 __asm__("r4") = a0;                                                      \
    register int32_t c1 __asm__("r5") = a1;                                                      \
    register const uint32_t *at __asm__("r6") = (w);                                             \
    register const uint32_t *from __asm__("r8") = (columns);                                     \
    register uint32_t steps __asm__("r9") = (words);                                             \
    __asm__ volatile(                                                                            \
        "push {r7}\n"                                                                            \
        "add r7, r6, r9, lsl #3\n"                                                               \
        "lsls r9, r9, #31\n" SLW_ENTER "1:\n" SLW_STEP_2X3 "2:\n" SLW_STEP_2X3                   \
        "3:\n" SLW_STEP_2X3 "4:\n" SLW_STEP_2X3                                                  \
        "cmp r6, r7\n"                                                                           \
        "bne 1b\n"                                                                               \
        "pop {r7}\n"                                                                             \
        : "+r"(a0), "+r"(a1), "+r"(b0), "+r"(b1), "+r"(c0), "+r"(c1), "+r"(at), "+r"(from),      \
          "+r"(steps)                                                                            \
        :                                                                                        \
        : "cc", "memory", "r10", "r11", "r12", "lr");                                            \
    (w) = at;                                                                                    \
    (sums)[0] = a0;                                                                              \
    (sums)[1] = a1;                                                                              \
    (sums)[2] = b0;                                                                              \
    (sums)[3] = b1;                                                                              \
    (sums)[4] = c0;                                                                              \
    (sums)[5] = c1;                                                                              \
  } while (0)
#define SLW_PRODUCTS           \
  "smlad r0, r9, r11, r0\n"    \
  "smlad r1, r10, r11, r1\n"   \
  "smlad r2, r9, r12, r2\n"    \
  "smlad r3, r10, r12, r3\n"   \
  "smlad r4, r9, lr, r4\n"     \
  "smlad r5, r10, lr, r5\n"
#define SLW_STEP_2X3           \
  "ldmia r6!, {r9, r10}\n"     \
  "ldmia r8!, {r11, r12, lr}\n" SLW_PRODUCTS \
  "sxtb16 r9, r9\n"            \
  "sxtb16 r10, r10\n"          \
  "ldmia r8!, {r11, r12, lr}\n" SLW_PRODUCTS

/* The high word of twice a sum, of which 256 times is given, and a multiplier. */
static inline int32_t slw_high_product_folded(int32_t sum, int32_t multiplier) {
  int32_t result;
  __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(sum >> 7), "r"(multiplier));
  return result;
}

/* Widen `count` bytes, a multiple of 4: of six words of three pixels the first and the fourth. */
static inline uint32_t *slw_widen_folded(uint32_t *to, const int8_t *from, uint32_t count) {
  const int8_t *end = from + count;
  uint32_t x;
  uint32_t y;
  if (count == 0u) {
    return to;
  }
  __asm__ volatile(
      "1: ldr %[x], [%[f]], #4\n"
      "eor %[y], %[x], #0x00FF00FF\n"
      "eor %[x], %[x], #0x00800080\n"
      "sxtb16 %[y], %[y]\n"
      "str %[x], [%[t], #12]\n"
      "str %[y], [%[t]], #24\n"
      "cmp %[f], %[e]\n"
      "bne 1b\n"
      : [f] "+r"(from), [t] "+r"(to), [x] "=&r"(x), [y] "=&r"(y)
      : [e] "r"(end)
      : "cc", "memory");
  return to;
}

/* Four output channels of one row of `words` words: returns the weights behind it. */
static inline const uint32_t *slw_dot_4x1_folded(const uint32_t *weights, const int8_t *row,
                                                 uint32_t words, int32_t *sums) {
  const int8_t *end = row + 4u * words;
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
  uint32_t x;
  uint32_t y = words;
  __asm__ volatile(
      "lsls %[y], %[y], #31\n" SLW_ENTER
#define SLW_STEP                             \
  "ldr %[x], [%[r]], #4\n"                   \
  "ldmia %[p]!, {r8, r9, r10, r11}\n"        \
  "eor %[y], %[x], #0x00FF00FF\n"            \
  "eor %[x], %[x], #0x00800080\n"            \
  "sxtb16 %[y], %[y]\n"                      \
  "smlad %[s0], r8, %[y], %[s0]\n"           \
  "smlad %[s1], r9, %[y], %[s1]\n"           \
  "smlad %[s2], r10, %[y], %[s2]\n"          \
  "smlad %[s3], r11, %[y], %[s3]\n"          \
  "sxtb16 r8, r8\n sxtb16 r9, r9\n"          \
  "sxtb16 r10, r10\n sxtb16 r11, r11\n"      \
  "smlad %[s0], r8, %[x], %[s0]\n"           \
  "smlad %[s1], r9, %[x], %[s1]\n"           \
  "smlad %[s2], r10, %[x], %[s2]\n"          \
  "smlad %[s3], r11, %[x], %[s3]\n"
      "1:\n" SLW_STEP "2:\n" SLW_STEP "3:\n" SLW_STEP "4:\n" SLW_STEP
#undef SLW_STEP
      "cmp %[r], %[e]\n"
      "bne 1b\n"
      : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [r] "+r"(row),
        [p] "+r"(weights), [x] "=&r"(x), [y] "+r"(y)
      : [e] "r"(end)
      : "cc", "memory", "r8", "r9", "r10", "r11");
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
  return weights;
}
#else
static inline int32_t slw_folded_products(uint32_t pair, uint32_t data, int32_t sum) {
  return (int32_t)((uint32_t)sum + (uint32_t)slw_low(pair, data, 0) +
                   (uint32_t)slw_high(pair, data, 0));
}
static inline int32_t slw_high_product_folded(int32_t sum, int32_t multiplier) {
  return slw_high_product(sum >> 8, multiplier);
}
static inline uint32_t slw_first(uint32_t bytes) { return slw_even(bytes ^ SLW_FLIPPED); }

#define SLW_DOT_2X3(w, columns, words, bias, sums) \
  (w) = slw_dot_2x3_folded(w, columns, words, bias, sums)
static inline const uint32_t *slw_dot_2x3_folded(const uint32_t *weights, const uint32_t *columns,
                                                 uint32_t words, const int32_t *bias,
                                                 int32_t *sums) {
  for (uint32_t i = 0; i < 6u; ++i) {
    sums[i] = bias[i % 2u];
  }
  for (; words > 0u; --words, weights += 2, columns += 6) {
    for (uint32_t i = 0; i < 6u; ++i) {
      const uint32_t word = weights[i % 2u];
      sums[i] = slw_folded_products(word, columns[i / 2u], sums[i]);
      sums[i] = slw_folded_products(slw_even(word), columns[3u + i / 2u], sums[i]);
    }
  }
  return weights;
}
static inline uint32_t *slw_widen_folded(uint32_t *to, const int8_t *from, uint32_t count) {
  for (; count > 0u; count -= 4u, from += 4, to += 6) {
    const uint32_t bytes = slw_load4(from);
    to[0] = slw_first(bytes);
    to[3] = bytes ^ SLW_RAISED;
  }
  return to;
}
static inline const uint32_t *slw_dot_4x1_folded(const uint32_t *weights, const int8_t *row,
                                                 uint32_t words, int32_t *sums) {
  for (; words > 0u; --words, row += 4) {
    const uint32_t bytes = slw_load4(row);
    for (uint32_t c = 0; c < 4u; ++c, ++weights) {
      const int32_t sum = slw_folded_products(*weights, slw_first(bytes), sums[c]);
      sums[c] = slw_folded_products(slw_even(*weights), bytes ^ SLW_RAISED, sum);
    }
  }
  return weights;
}
#endif

/* As slw_requantize_plain, of 256 times a sum. */
static inline int8_t slw_requantize_folded(int32_t sum, int32_t multiplier, int32_t right,
                                           int32_t half) {
  const int32_t value = slw_high_product_folded(sum, multiplier);
  return slw_saturate_half((value + (value >> 31) + half) >> right);
}

/* The same of a channel with one sum. */
static inline int8_t slw_scaled_folded(int32_t sum, int32_t multiplier, int32_t right,
                                       uint32_t twice_zero) {
  return slw_requantize_folded(sum, multiplier, right, (int32_t)(twice_zero << right));
}

/* What is clipped to less than int8 is so behind the layer. */
static inline void slw_clip(const struct slw_layer *layer, int8_t *out) {
  const uint32_t pixels = (uint32_t)layer->out_height * (uint32_t)layer->out_width;
  if (layer->clips != 0u) {
    for (const int8_t *end = out + pixels * layer->out_channels; out != end; ++out) {
      const int16_t value = *out < layer->out_min ? layer->out_min : *out;
      *out = (int8_t)(value > layer->out_max ? layer->out_max : value);
    }
  }
}

/* The window of output pixel (y, x), widened, into every other three words of `to`; `bytes` as
 * slw_column has it. */
static inline void slw_column_folded(const struct slw_layer *layer, const int8_t *data, int32_t y,
                                     int32_t x, uint32_t *to, int8_t *bytes, uint32_t padded) {
  const uint32_t channels = layer->in_channels;
  const int32_t top = y * layer->stride_y - layer->pad_top;
  const int32_t left = x * layer->stride_x - layer->pad_left;
  const int32_t last = left + (layer->kernel_width - 1) * layer->dilation_x;
  if (bytes != NULL) {
    /* What is gathered is padded with zeros once, by whoever gave the memory. */
    (void)slw_widen_folded(to, slw_gather(layer, data, y, x, bytes, 4u), padded);
    return;
  }
  if (layer->direct != 0u) {
    (void)slw_widen_folded(to, data + (uint32_t)(top * layer->in_width + left) * channels,
                           channels);
    return;
  }
  for (int32_t ky = 0; ky < layer->kernel_height; ++ky) {
    const int32_t row = top + ky * layer->dilation_y;
    const int inside = row >= 0 && row < layer->in_height;
    const int8_t *line = data + (uint32_t)(row * layer->in_width) * channels;
    if (inside && left >= 0 && last < layer->in_width && layer->dilation_x == 1) {
      to = slw_widen_folded(to, line + (uint32_t)left * channels,
                            (uint32_t)layer->kernel_width * channels);
      continue;
    }
    for (int32_t column = left; column <= last; column += layer->dilation_x) {
      if (inside && column >= 0 && column < layer->in_width) {
        to = slw_widen_folded(to, line + (uint32_t)column * channels, channels);
      } else {
        const uint32_t pad = (uint32_t)(uint8_t)layer->pad_value * 0x01010101u;
        const uint32_t first = slw_even(pad ^ SLW_FLIPPED);
        for (uint32_t i = 0; i < channels; i += 4u, to += 6) {
          to[0] = first;
          to[3] = pad ^ SLW_RAISED;
        }
      }
    }
  }
}

/* All channels of up to three pixels.  What there is no room for, pixels behind the last and the
 * second of an odd last pair, is written where its neighbour comes to lie after it. */
static inline void slw_pixels_folded(const struct slw_layer *layer, const uint32_t *columns,
                                     uint32_t words, const uint32_t *weights,
                                     const struct slw_scales *scales, uint32_t count,
                                     int8_t *out) {
  const int32_t *bias = scales->bias;
  const int32_t *multiplier = scales->multiplier;
  const int32_t *right = scales->shift;
  const uint32_t step = 2u * layer->per_channel;
  const uint32_t channels = layer->out_channels;
  const uint32_t twice_zero = (uint32_t)(2 * layer->out_zero + 1);
  const uint32_t second = count > 1u ? channels : 0u;
  const uint32_t third = count > 2u ? 2u * channels : second;
  const int8_t *end = out + channels;
  while (out != end) {
    const uint32_t next = end - out > 1 ? 1u : 0u;
    int32_t sums[6];
    SLW_DOT_2X3(weights, columns, words, bias, sums);
    const int32_t half0 = (int32_t)(twice_zero << right[0]);
    const int32_t half1 = (int32_t)(twice_zero << right[1]);
    int8_t *at = out + next;
    at[third] = slw_requantize_folded(sums[5], multiplier[1], right[1], half1);
    at[second] = slw_requantize_folded(sums[3], multiplier[1], right[1], half1);
    at[0] = slw_requantize_folded(sums[1], multiplier[1], right[1], half1);
    out[third] = slw_requantize_folded(sums[4], multiplier[0], right[0], half0);
    out[second] = slw_requantize_folded(sums[2], multiplier[0], right[0], half0);
    out[0] = slw_requantize_folded(sums[0], multiplier[0], right[0], half0);
    bias += 2;
    multiplier += step;
    right += step;
    out = at + 1;
  }
}

/* weights: for each pair of output channels the words of both in turn, a word being 4 elements of
 * the window, which is padded to a multiple of 4.  Biases and scales are for pairs.
 * workspace: 6 bytes per element, and 1 more where channels are no multiple of 4. */
static SLW_SHARED void slw_conv_folded(const struct slw_layer *layer, const int8_t *data,
                                       const uint32_t *weights, const struct slw_scales *scales,
                                       int8_t *out, uint8_t *workspace) {
  const uint32_t size =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t padded = (size + 3u) & ~3u;
  const uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  uint32_t *columns = (uint32_t *)(void *)workspace;
  int8_t *bytes = NULL;
  int8_t *at = out;
  int32_t y = 0;
  int32_t x = 0;
  if (layer->in_channels % 4u != 0u) {
    bytes = (int8_t *)workspace + 6u * padded;
    slw_fill(bytes + size, 0, padded - size);
  }
  for (uint32_t pixel = 0; pixel < pixels; pixel += 3u) {
    const uint32_t count = pixels - pixel < 3u ? pixels - pixel : 3u;
    for (uint32_t i = 0; i < count; ++i) {
      slw_column_folded(layer, data, y, x, columns + i, bytes, padded);
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    slw_pixels_folded(layer, columns, padded / 4u, weights, scales, count, at);
    at += 3u * layer->out_channels;
  }
  slw_clip(layer, out);
}

/* One row times a matrix: for each four output channels their words in turn, a word being 4
 * elements of the row, which is padded to a multiple of 4.  Biases and scales are for fours.
 * workspace: the row, where it has another length. */
static SLW_SHARED void slw_dense_folded(const struct slw_layer *layer, const int8_t *data,
                                        const uint32_t *weights, const struct slw_scales *scales,
                                        int8_t *out, uint8_t *workspace) {
  const uint32_t size = layer->in_channels;
  const uint32_t words = (size + 3u) / 4u;
  const uint32_t step = 4u * layer->per_channel;
  const uint32_t twice_zero = (uint32_t)(2 * layer->out_zero + 1);
  const int32_t *bias = scales->bias;
  const int32_t *multiplier = scales->multiplier;
  const int32_t *right = scales->shift;
  int8_t *at = out;
  if (size % 4u != 0u) {
    int8_t *row = (int8_t *)workspace;
    slw_copy(row, data, size);
    slw_fill(row + size, 0, 4u * words - size);
    data = row;
  }
  for (const int8_t *end = out + layer->out_channels; at != end;) {
    int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
    weights = slw_dot_4x1_folded(weights, data, words, sums);
    if (end - at < 4) {
      for (uint32_t c = 0; at != end; ++c, ++at) {
        *at = slw_scaled_folded(sums[c], multiplier[c], right[c], twice_zero);
      }
      break;
    }
    at[0] = slw_scaled_folded(sums[0], multiplier[0], right[0], twice_zero);
    at[1] = slw_scaled_folded(sums[1], multiplier[1], right[1], twice_zero);
    at[2] = slw_scaled_folded(sums[2], multiplier[2], right[2], twice_zero);
    at[3] = slw_scaled_folded(sums[3], multiplier[3], right[3], twice_zero);
    at += 4;
    bias += 4;
    multiplier += step;
    right += step;
  }
  slw_clip(layer, out);
}
