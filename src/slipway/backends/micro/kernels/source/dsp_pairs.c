/* Depthwise convolutions by pairs of window elements: of two elements the four channels are put
 * beside each other, widened, and each channel's two products summed by one instruction.
 *
 * The stream (dsp_stream.c) goes by four channels.  Their weights are, for each pair of elements, four
 * words of two; for a last single element two words, of channels 0 and 2, then 1 and 3.  Weights and
 * biases are doubled, or 256 times as large (`line`), so that sums are.  Channels that are left over
 * are the last of four, the first of which were computed before.
 */
#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
/* Sums are r0 to r3, the stream r4; r9 and r10 hold four channels of two elements. */
#define SLW_PAIR                 \
  "pkhbt r11, r9, r10, lsl #16\n" \
  "pkhtb r10, r10, r9, asr #16\n" \
  "ldrd r12, lr, [r4], #8\n"     \
  "sxtb16 r9, r11\n"             \
  "smlad r0, r9, r12, r0\n"      \
  "sxtb16 r11, r11, ror #8\n"    \
  "smlad r1, r11, lr, r1\n"      \
  "ldrd r12, lr, [r4], #8\n"     \
  "sxtb16 r9, r10\n"             \
  "smlad r2, r9, r12, r2\n"      \
  "sxtb16 r10, r10, ror #8\n"    \
  "smlad r3, r10, lr, r3\n"
#define SLW_SINGLE               \
  "ldrd r12, lr, [r4], #8\n"     \
  "sxtb16 r10, r9\n"             \
  "sxtb16 r9, r9, ror #8\n"      \
  "smlabb r0, r10, r12, r0\n"    \
  "smlatt r2, r10, r12, r2\n"    \
  "smlabb r1, r9, lr, r1\n"      \
  "smlatt r3, r9, lr, r3\n"
#define SLW_EXACT(sum) \
  "ldmia r4!, {r9, r10, r11}\n" SLW_SCALE(sum, "r9", "r10", "r11", "r7")
#define SLW_EXACTLY SLW_EXACT("r0") SLW_EXACT("r1") SLW_EXACT("r2") SLW_EXACT("r3")
#define SLW_BY_LINE                      \
  "ldmia r4!, {r9, r10, r11, r12, lr}\n" \
  SLW_LINE("r0", "r10", "r9", "r7") SLW_LINE("r1", "r11", "r9", "r7") \
  SLW_LINE("r2", "r12", "r9", "r7") SLW_LINE("r3", "lr", "r9", "r7")

/* Channels, four by four, of a window of 3 x 3 pixels, which lie `pixel` bytes apart, the lines
 * `line`; each returns the stream after them.  gcc does not give away r7 where it keeps a frame pointer
 * there: it is saved, with the end of the outputs. */
#define SLW_PAIRS_3X3(name, scales)                                                             \
  static inline const uint32_t *name(const int8_t *data, uint32_t line, uint32_t pixel,         \
                                     const uint32_t *stream, int8_t *out, int8_t *end) {        \
    register const uint32_t *r4 __asm__("r4") = stream;                                         \
    register const int8_t *r5 __asm__("r5") = data;                                             \
    register uint32_t r6 __asm__("r6") = pixel;                                                 \
    register uint32_t r8 __asm__("r8") = line;                                                  \
    register int8_t *r12 __asm__("r12") = out;                                                  \
    register int8_t *lr __asm__("lr") = end;                                                    \
    __asm__ volatile(                                                                           \
        "push {r7, lr}\n"                                                                       \
        "mov r7, r12\n"                                                                         \
        "1: ldmia r4!, {r0, r1, r2, r3}\n"                                                      \
        "ldr r9, [r5]\n ldr r10, [r5, r6]\n" SLW_PAIR                                           \
        "ldr r9, [r5, r6, lsl #1]\n add r5, r5, r8\n ldr r10, [r5]\n" SLW_PAIR                  \
        "ldr r9, [r5, r6]\n ldr r10, [r5, r6, lsl #1]\n add r5, r5, r8\n" SLW_PAIR              \
        "ldr r9, [r5]\n ldr r10, [r5, r6]\n" SLW_PAIR                                           \
        "ldr r9, [r5, r6, lsl #1]\n" SLW_SINGLE                                                 \
        scales                                                                                  \
        "sub r5, r5, r8, lsl #1\n"                                                              \
        "ldr r9, [sp, #4]\n"                                                                    \
        "add r5, r5, #4\n"                                                                      \
        "cmp r7, r9\n"                                                                          \
        "bne 1b\n"                                                                              \
        "pop {r7, lr}\n"                                                                        \
        : "+r"(r4), "+r"(r5), "+r"(r12), "+r"(lr)                                               \
        : "r"(r6), "r"(r8)                                                                      \
        : "cc", "memory", "r0", "r1", "r2", "r3", "r9", "r10", "r11");                          \
    return r4;                                                                                  \
  }

/* Channels, four by four, of a window of `taps` elements, from byte `offset` of each.  On the stack lie
 * the window, the end of its pairs, `taps`, r7 and the end of the outputs. */
#define SLW_PAIRS(name, scales)                                                                 \
  static SLW_SHARED const uint32_t *name(const int8_t *const *window, uint32_t taps,            \
                                         uint32_t offset, const uint32_t *stream, int8_t *out,  \
                                         int8_t *end) {                                         \
    register const uint32_t *r4 __asm__("r4") = stream;                                         \
    register const int8_t *const *r5 __asm__("r5") = window;                                    \
    register uint32_t r6 __asm__("r6") = offset;                                                \
    register uint32_t r8 __asm__("r8") = taps;                                                  \
    register int8_t *r12 __asm__("r12") = out;                                                  \
    register int8_t *lr __asm__("lr") = end;                                                    \
    __asm__ volatile(                                                                           \
        "push {r7, lr}\n"                                                                       \
        "mov r7, r12\n"                                                                         \
        "bic r9, r8, #1\n"                                                                      \
        "add r9, r5, r9, lsl #2\n"                                                              \
        "mov r10, r8\n"                                                                         \
        "push {r5, r9, r10}\n"                                                                  \
        "1: ldrd r5, r8, [sp]\n"                                                                \
        "ldmia r4!, {r0, r1, r2, r3}\n"                                                         \
        "cmp r5, r8\n"                                                                          \
        "beq 3f\n"                                                                              \
        "2: ldrd r9, r10, [r5], #8\n"                                                           \
        "ldr r9, [r9, r6]\n ldr r10, [r10, r6]\n" SLW_PAIR                                      \
        "cmp r5, r8\n"                                                                          \
        "bne 2b\n"                                                                              \
        "3: ldr r8, [sp, #8]\n"                                                                 \
        "tst r8, #1\n"                                                                          \
        "beq 4f\n"                                                                              \
        "ldr r9, [r5]\n ldr r9, [r9, r6]\n" SLW_SINGLE                                          \
        "4:\n" scales                                                                           \
        "ldr r9, [sp, #16]\n"                                                                   \
        "add r6, r6, #4\n"                                                                      \
        "cmp r7, r9\n"                                                                          \
        "bne 1b\n"                                                                              \
        "add sp, sp, #12\n"                                                                     \
        "pop {r7, lr}\n"                                                                        \
        : "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r8), "+r"(r12), "+r"(lr)                           \
        :                                                                                       \
        : "cc", "memory", "r0", "r1", "r2", "r3", "r9", "r10", "r11");                          \
    return r4;                                                                                  \
  }
SLW_PAIRS(slw_pairs, SLW_EXACTLY)
SLW_PAIRS(slw_pairs_line, SLW_BY_LINE)
SLW_PAIRS_3X3(slw_pairs_3x3, SLW_EXACTLY)
SLW_PAIRS_3X3(slw_pairs_3x3_line, SLW_BY_LINE)
#else
#define SLW_PAIRS(name, scale_words, output)                                                       \
  static inline const uint32_t *name(const int8_t *const *window, uint32_t taps, uint32_t offset,  \
                                     const uint32_t *stream, int8_t *out, int8_t *end) {           \
    for (; out != end; out += 4, offset += 4u, stream += scale_words) {                            \
      const uint32_t *scales;                                                                      \
      int32_t sums[4];                                                                             \
      stream = slw_pair_sums(window, taps, offset, stream, sums);                                  \
      scales = stream;                                                                             \
      for (uint32_t c = 0; c < 4u; ++c) {                                                          \
        const int32_t sum = sums[c];                                                               \
        out[c] = output;                                                                           \
      }                                                                                            \
    }                                                                                              \
    return stream;                                                                                 \
  }
#define SLW_PAIRS_3X3(name, pairs)                                                                 \
  static inline const uint32_t *name(const int8_t *data, uint32_t line, uint32_t pixel,            \
                                     const uint32_t *stream, int8_t *out, int8_t *end) {           \
    const int8_t *window[9];                                                                       \
    for (uint32_t i = 0; i < 9u; ++i) {                                                            \
      window[i] = data + i / 3u * line + i % 3u * pixel;                                           \
    }                                                                                              \
    return pairs(window, 9, 0, stream, out, end);                                                  \
  }
static inline const uint32_t *slw_pair_sums(const int8_t *const *window, uint32_t taps,
                                            uint32_t offset, const uint32_t *stream,
                                            int32_t *sums) {
  for (uint32_t c = 0; c < 4u; ++c) {
    sums[c] = (int32_t)*stream++;
  }
  for (; taps > 1u; taps -= 2u, window += 2) {
    for (uint32_t c = 0; c < 4u; ++c) {
      sums[c] = slw_dot2(slw_pair(window[0][offset + c], window[1][offset + c]), *stream++, sums[c]);
    }
  }
  if (taps == 1u) {
    const uint32_t bytes = slw_load4(*window + offset);
    sums[0] = slw_low(slw_even(bytes), stream[0], sums[0]);
    sums[2] = slw_high(slw_even(bytes), stream[0], sums[2]);
    sums[1] = slw_low(slw_odd(bytes), stream[1], sums[1]);
    sums[3] = slw_high(slw_odd(bytes), stream[1], sums[3]);
    stream += 2;
  }
  return stream;
}
SLW_PAIRS(slw_pairs, 12u, slw_output_at(sum >> 1, scales + 3u * c))
SLW_PAIRS(slw_pairs_line, 5u, slw_line_at(sum, scales, c))
SLW_PAIRS_3X3(slw_pairs_3x3, slw_pairs)
SLW_PAIRS_3X3(slw_pairs_3x3_line, slw_pairs_line)
#endif

static inline const uint32_t *slw_pairs_inside(const int8_t *data, uint32_t line, uint32_t pixel,
                                               const uint32_t *stream, int8_t *out, int8_t *end,
                                               int by_line) {
  return by_line ? slw_pairs_3x3_line(data, line, pixel, stream, out, end)
                 : slw_pairs_3x3(data, line, pixel, stream, out, end);
}
static inline const uint32_t *slw_pairs_of(const int8_t *const *window, uint32_t taps,
                                           uint32_t offset, const uint32_t *stream, int8_t *out,
                                           int8_t *end, int by_line) {
  return by_line ? slw_pairs_line(window, taps, offset, stream, out, end)
                 : slw_pairs(window, taps, offset, stream, out, end);
}

/* At least four channels.  workspace: channels bytes of padding, then a pointer for each element of
 * the window. */
static SLW_SHARED void slw_depthwise_streamed(const struct slw_layer *layer, const int8_t *data,
                                              const uint32_t *streams, int8_t *out,
                                              uint8_t *workspace, int by_line) {
  const uint32_t channels = layer->in_channels;
  const uint32_t whole = channels & ~3u;
  const uint32_t line = (uint32_t)layer->in_width * channels;
  const uint32_t taps = (uint32_t)(layer->kernel_height * layer->kernel_width);
  const uint32_t is_3x3 = (uint32_t)(layer->kernel_height == 3 && layer->kernel_width == 3 &&
                                     layer->dilation_y == 1 && layer->dilation_x == 1);
  int8_t *padding = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  int8_t *at = out;
  slw_fill(padding, layer->pad_value, channels);
  for (int32_t y = 0; y < layer->out_height; ++y) {
    const int32_t top = y * layer->stride_y - layer->pad_top;
    const int inside = top >= 0 && top + 2 < layer->in_height;
    for (int32_t x = 0; x < layer->out_width; ++x, at += channels) {
      const int32_t left = x * layer->stride_x - layer->pad_left;
      const uint32_t *stream = streams;
      if (is_3x3 != 0u && inside && left >= 0 && left + 2 < layer->in_width) {
        const int8_t *corner = data + (uint32_t)top * line + (uint32_t)left * channels;
        stream = slw_pairs_inside(corner, line, channels, stream, at, at + whole, by_line);
        if (whole < channels) {
          (void)slw_pairs_inside(corner + channels - 4, line, channels, stream, at + channels - 4,
                                 at + channels, by_line);
        }
        continue;
      }
      (void)slw_window(layer, data, top, left, padding, window);
      stream = slw_pairs_of(window, taps, 0, stream, at, at + whole, by_line);
      if (whole < channels) {
        (void)slw_pairs_of(window, taps, channels - 4u, stream, at + channels - 4, at + channels,
                           by_line);
      }
    }
  }
  slw_clip(layer, out);
}
static inline void slw_depthwise_pairs(const struct slw_layer *layer, const int8_t *data,
                                       const uint32_t *streams, const struct slw_scales *unused,
                                       int8_t *out, uint8_t *workspace) {
  (void)unused;
  slw_depthwise_streamed(layer, data, streams, out, workspace, 0);
}
static inline void slw_depthwise_line(const struct slw_layer *layer, const int8_t *data,
                                      const uint32_t *streams, const struct slw_scales *unused,
                                      int8_t *out, uint8_t *workspace) {
  (void)unused;
  slw_depthwise_streamed(layer, data, streams, out, workspace, 1);
}
