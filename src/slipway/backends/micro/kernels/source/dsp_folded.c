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
 * that no even weight is -128.  Sums on the way may wrap.
 *
 * The stream (dsp_stream.c) goes by two channels, or by four for a product; all of it is padded with
 * zeros to whole groups.  Weights are, for each four elements, a word of each channel.
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
#define SLW_PRODUCTS          \
  "smlad r0, r9, r11, r0\n"   \
  "smlad r1, r10, r11, r1\n"  \
  "smlad r2, r9, r12, r2\n"   \
  "smlad r3, r10, r12, r3\n"  \
  "smlad r4, r9, lr, r4\n"    \
  "smlad r5, r10, lr, r5\n"
#define SLW_STEP                 \
  "ldmia r6!, {r9, r10}\n"       \
  "ldmia r8!, {r11, r12, lr}\n"  \
  SLW_PRODUCTS                   \
  "sxtb16 r9, r9\n"              \
  "sxtb16 r10, r10\n"            \
  "ldmia r8!, {r11, r12, lr}\n"  \
  SLW_PRODUCTS
#define SLW_SCALE_PIXEL(sum, to) \
  "asr " sum ", " sum ", #7\n" SLW_SCALE(sum, "r6", "r8", "r9", to)

/* Two channels of three pixels, whose windows lie in `columns`.  The third pixel is written first,
 * the first one last.
 *
 * This takes every register.  gcc does not give away r7 where it keeps a frame pointer there: it is
 * saved. */
static SLW_SHARED void slw_fold_pixels(const uint32_t *stream, const uint32_t *columns,
                                       uint32_t words, const uint32_t *scale, int8_t *first,
                                       int8_t *second, int8_t *third) {
  register const uint32_t *r6 __asm__("r6") = stream;
  register const uint32_t *r8 __asm__("r8") = columns;
  register uint32_t r9 __asm__("r9") = words;
  register int8_t *r10 __asm__("r10") = first;
  register int8_t *r11 __asm__("r11") = second;
  register int8_t *r12 __asm__("r12") = third;
  register const uint32_t *lr __asm__("lr") = scale;
  __asm__ volatile(
      "push {r7, r10, r11, r12, lr}\n"
      "ldmia r6!, {r0, r1}\n"
      "mov r2, r0\n mov r3, r1\n mov r4, r0\n mov r5, r1\n"
      "add r7, r6, r9, lsl #3\n"
      "lsls r9, r9, #31\n"
      SLW_ENTER
      "1:\n" SLW_STEP "2:\n" SLW_STEP "3:\n" SLW_STEP "4:\n" SLW_STEP
      "cmp r6, r7\n"
      "bne 1b\n"
      "pop {r7, r10, r11, r12, lr}\n"
      "ldmia lr!, {r6, r8, r9}\n"
      SLW_SCALE_PIXEL("r4", "[r12]")
      SLW_SCALE_PIXEL("r2", "[r11]")
      SLW_SCALE_PIXEL("r0", "[r10]")
      "ldmia lr!, {r6, r8, r9}\n"
      SLW_SCALE_PIXEL("r5", "[r12, #1]")
      SLW_SCALE_PIXEL("r3", "[r11, #1]")
      SLW_SCALE_PIXEL("r1", "[r10, #1]")
      : "+r"(r6), "+r"(r8), "+r"(r9), "+r"(lr)
      : "r"(r10), "r"(r11), "r"(r12)
      : "cc", "memory", "r0", "r1", "r2", "r3", "r4", "r5");
}
#undef SLW_STEP

/* Four channels of a row of `words` words. */
#define SLW_STEP                                       \
  "ldr r12, [r5], #4\n"                                \
  "ldmia r4!, {r8, r9, r10, r11}\n"                    \
  "eor lr, r12, #0x00FF00FF\n"                         \
  "eor r12, r12, #0x00800080\n"                        \
  "sxtb16 lr, lr\n"                                    \
  "smlad r0, r8, lr, r0\n smlad r1, r9, lr, r1\n"      \
  "smlad r2, r10, lr, r2\n smlad r3, r11, lr, r3\n"    \
  "sxtb16 r8, r8\n sxtb16 r9, r9\n"                    \
  "sxtb16 r10, r10\n sxtb16 r11, r11\n"                \
  "smlad r0, r8, r12, r0\n smlad r1, r9, r12, r1\n"    \
  "smlad r2, r10, r12, r2\n smlad r3, r11, r12, r3\n"
#define SLW_SCALE_ROW(sum)         \
  "ldmia r4!, {r8, r9, lr}\n"      \
  "asr " sum ", " sum ", #7\n" SLW_SCALE(sum, "r8", "r9", "lr", "[r12], #1")
static SLW_SHARED void slw_fold_row(const uint32_t *stream, const int8_t *row, uint32_t words,
                                    const uint32_t *scale, int8_t *out) {
  register const uint32_t *r4 __asm__("r4") = stream;
  register const int8_t *r5 __asm__("r5") = row;
  register uint32_t r6 __asm__("r6") = words;
  register const uint32_t *r8 __asm__("r8") = scale;
  register int8_t *r12 __asm__("r12") = out;
  __asm__ volatile(
      "push {r8, r12}\n"
      "ldmia r4!, {r0, r1, r2, r3}\n"
      "lsls lr, r6, #31\n"
      "add r6, r5, r6, lsl #2\n"
      SLW_ENTER
      "1:\n" SLW_STEP "2:\n" SLW_STEP "3:\n" SLW_STEP "4:\n" SLW_STEP
      "cmp r5, r6\n"
      "bne 1b\n"
      "pop {r4, r12}\n"
      SLW_SCALE_ROW("r0") SLW_SCALE_ROW("r1") SLW_SCALE_ROW("r2") SLW_SCALE_ROW("r3")
      : "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r8), "+r"(r12)
      :
      : "cc", "memory", "r0", "r1", "r2", "r3", "r9", "r10", "r11", "lr");
}
#undef SLW_STEP

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

#else
static inline int32_t slw_fold(uint32_t pair, uint32_t data, int32_t sum) {
  return (int32_t)((uint32_t)sum + (uint32_t)slw_low(pair, data, 0) +
                   (uint32_t)slw_high(pair, data, 0));
}
static inline int32_t slw_fold4(uint32_t word, uint32_t first, uint32_t second, int32_t sum) {
  return slw_fold(slw_even(word), second, slw_fold(word, first, sum));
}
static inline uint32_t *slw_widen_folded(uint32_t *to, const int8_t *from, uint32_t count) {
  for (; count > 0u; count -= 4u, from += 4, to += 6) {
    const uint32_t bytes = slw_load4(from);
    to[0] = slw_even(bytes ^ SLW_FLIPPED);
    to[3] = bytes ^ SLW_RAISED;
  }
  return to;
}
static inline void slw_fold_pixels(const uint32_t *stream, const uint32_t *columns, uint32_t words,
                                   const uint32_t *scale, int8_t *first, int8_t *second,
                                   int8_t *third) {
  int8_t *const pixels[3] = {first, second, third};
  for (uint32_t pixel = 3u; pixel-- > 0u;) {
    for (uint32_t c = 0; c < 2u; ++c) {
      int32_t sum = (int32_t)stream[c];
      for (uint32_t i = 0; i < words; ++i) {
        const uint32_t *data = columns + 6u * i + pixel;
        sum = slw_fold4(stream[2u + 2u * i + c], data[0], data[3], sum);
      }
      pixels[pixel][c] = slw_output_at(sum >> 8, scale + 3u * c);
    }
  }
}
static inline void slw_fold_row(const uint32_t *stream, const int8_t *row, uint32_t words,
                                const uint32_t *scale, int8_t *out) {
  for (uint32_t c = 0; c < 4u; ++c) {
    int32_t sum = (int32_t)stream[c];
    for (uint32_t i = 0; i < words; ++i) {
      const uint32_t bytes = slw_load4(row + 4u * i);
      sum = slw_fold4(stream[4u + 4u * i + c], slw_even(bytes ^ SLW_FLIPPED), bytes ^ SLW_RAISED,
                      sum);
    }
    out[c] = slw_output_at(sum >> 8, scale + 3u * c);
  }
}
#endif

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

/* All channels of up to three pixels.  What lies after the last pixel is written to it, and the
 * second of an odd last pair beside it. */
static inline void slw_pixels_folded(const struct slw_layer *layer, const uint32_t *columns,
                                     uint32_t words, const uint32_t *stream, uint32_t count,
                                     int8_t *out) {
  const uint32_t channels = layer->out_channels;
  const uint32_t group = 2u + 2u * words;
  const uint32_t *scale = stream + (channels + 1u) / 2u * group;
  const uint32_t step = 6u * layer->per_channel;
  int8_t *second = count > 1u ? out + channels : out;
  int8_t *third = count > 2u ? second + channels : second;
  for (const int8_t *end = out + (channels & ~1u); out != end; out += 2, second += 2, third += 2) {
    slw_fold_pixels(stream, columns, words, scale, out, second, third);
    stream += group;
    scale += step;
  }
  if (channels % 2u != 0u) {
    int8_t last[6];
    slw_fold_pixels(stream, columns, words, scale, last, last + 2, last + 4);
    *third = last[4];
    *second = count > 1u ? last[2] : last[0];
    *out = last[0];
  }
}

/* The window is padded to a multiple of 4.
 * workspace: 6 bytes per element, and 1 more where channels are no multiple of 4. */
static SLW_SHARED void slw_conv_folded(const struct slw_layer *layer, const int8_t *data,
                                       const uint32_t *stream, const struct slw_scales *unused,
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
  (void)unused;
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
    slw_pixels_folded(layer, columns, padded / 4u, stream, count, at);
    at += count * layer->out_channels;
  }
  slw_clip(layer, out);
}

/* One row times a matrix.  The row is padded to a multiple of 4.
 * workspace: the row, where it has another length. */
static SLW_SHARED void slw_dense_folded(const struct slw_layer *layer, const int8_t *data,
                                        const uint32_t *stream, const struct slw_scales *unused,
                                        int8_t *out, uint8_t *workspace) {
  const uint32_t size = layer->in_channels;
  const uint32_t words = (size + 3u) / 4u;
  const uint32_t whole = layer->out_channels & ~3u;
  const uint32_t group = 4u + 4u * words;
  const uint32_t *scale = stream + (layer->out_channels + 3u) / 4u * group;
  (void)unused;
  if (workspace != NULL) { /* size % 4u != 0u, in words that a compiler can follow */
    int8_t *row = (int8_t *)workspace;
    slw_copy(row, data, size);
    slw_fill(row + size, 0, 4u * words - size);
    data = row;
  }
  for (uint32_t c = 0; c < whole; c += 4u) {
    slw_fold_row(stream, data, words, scale, out + c);
    stream += group;
    scale += 12u * layer->per_channel;
  }
  if (whole < layer->out_channels) {
    int8_t last[4];
    slw_fold_row(stream, data, words, scale, last);
    for (uint32_t c = whole; c < layer->out_channels; ++c) {
      out[c] = last[c - whole];
    }
  }
  slw_clip(layer, out);
}
