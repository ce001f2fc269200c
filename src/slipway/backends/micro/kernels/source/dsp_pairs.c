/* Depthwise convolutions by pairs of window elements: of two elements the four channels are put
 * beside each other, widened, and each channel's two products summed by one instruction.
 *
 * The stream (dsp_stream.c) goes by four channels.  Their weights are, for each pair of elements, four
 * words of two; for a last single element two words, of channels 0 and 2, then 1 and 3.  Weights and
 * biases are doubled, so that sums are.
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
#define SLW_SCALE_NEXT(sum) \
  "ldmia r12!, {r9, r10, r11}\n" SLW_SCALE(sum, "r9", "r10", "r11", "[r4], #1")
#define SLW_SCALES \
  SLW_SCALE_NEXT("r0") SLW_SCALE_NEXT("r1") SLW_SCALE_NEXT("r2") SLW_SCALE_NEXT("r3")

/* Four channels of a window of 3 x 3 pixels, which lie `pixel` bytes apart, the lines `line`.
 *  Returns the stream after them. */
static inline const uint32_t *slw_pairs_3x3(const int8_t *data, uint32_t line, uint32_t pixel,
                                            const uint32_t *stream, const uint32_t *scale,
                                            int8_t *out) {
  register const uint32_t *r4 __asm__("r4") = stream;
  register const int8_t *r5 __asm__("r5") = data;
  register uint32_t r6 __asm__("r6") = pixel;
  register uint32_t r8 __asm__("r8") = line;
  register int8_t *r12 __asm__("r12") = out;
  register const uint32_t *lr __asm__("lr") = scale;
  __asm__ volatile(
      "push {r12, lr}\n"
      "ldmia r4!, {r0, r1, r2, r3}\n"
      "ldr r9, [r5]\n ldr r10, [r5, r6]\n" SLW_PAIR
      "ldr r9, [r5, r6, lsl #1]\n add r5, r5, r8\n ldr r10, [r5]\n" SLW_PAIR
      "ldr r9, [r5, r6]\n ldr r10, [r5, r6, lsl #1]\n add r5, r5, r8\n" SLW_PAIR
      "ldr r9, [r5]\n ldr r10, [r5, r6]\n" SLW_PAIR
      "ldr r9, [r5, r6, lsl #1]\n" SLW_SINGLE
      "mov r5, r4\n"
      "pop {r4, r12}\n" SLW_SCALES
      : "+r"(r4), "+r"(r5), "+r"(r12), "+r"(lr)
      : "r"(r6), "r"(r8)
      : "memory", "r0", "r1", "r2", "r3", "r9", "r10", "r11");
  return (const uint32_t *)(const void *)r5;
}

/* Four channels of a window of `taps` elements, from byte `offset` of each. */
static inline const uint32_t *slw_pairs(const int8_t *const *window, uint32_t taps,
                                        uint32_t offset, const uint32_t *stream,
                                        const uint32_t *scale, int8_t *out) {
  register const uint32_t *r4 __asm__("r4") = stream;
  register const int8_t *const *r5 __asm__("r5") = window;
  register uint32_t r6 __asm__("r6") = offset;
  register uint32_t r8 __asm__("r8") = taps;
  register int8_t *r12 __asm__("r12") = out;
  register const uint32_t *lr __asm__("lr") = scale;
  __asm__ volatile(
      "push {r8, r12, lr}\n"
      "ldmia r4!, {r0, r1, r2, r3}\n"
      "bic r8, r8, #1\n"
      "adds r8, r5, r8, lsl #2\n"
      "cmp r5, r8\n"
      "beq 2f\n"
      "1: ldrd r9, r10, [r5], #8\n"
      "ldr r9, [r9, r6]\n ldr r10, [r10, r6]\n" SLW_PAIR
      "cmp r5, r8\n"
      "bne 1b\n"
      "2: pop {r8}\n"
      "tst r8, #1\n"
      "beq 3f\n"
      "ldr r9, [r5]\n ldr r9, [r9, r6]\n" SLW_SINGLE
      "3: mov r8, r4\n"
      "pop {r4, r12}\n" SLW_SCALES
      : "+r"(r4), "+r"(r5), "+r"(r8), "+r"(r12), "+r"(lr)
      : "r"(r6)
      : "cc", "memory", "r0", "r1", "r2", "r3", "r9", "r10", "r11");
  return (const uint32_t *)r8;
}
#else
static inline const uint32_t *slw_pairs(const int8_t *const *window, uint32_t taps,
                                        uint32_t offset, const uint32_t *stream,
                                        const uint32_t *scale, int8_t *out) {
  int32_t sums[4];
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
  for (uint32_t c = 0; c < 4u; ++c) {
    out[c] = slw_output_at(sums[c] >> 1, scale + 3u * c);
  }
  return stream;
}
static inline const uint32_t *slw_pairs_3x3(const int8_t *data, uint32_t line, uint32_t pixel,
                                            const uint32_t *stream, const uint32_t *scale,
                                            int8_t *out) {
  const int8_t *window[9];
  for (uint32_t i = 0; i < 9u; ++i) {
    window[i] = data + i / 3u * line + i % 3u * pixel;
  }
  return slw_pairs(window, 9, 0, stream, scale, out);
}
#endif

/* What is left of four channels. */
static inline void slw_pairs_tail(const int8_t *const *window, uint32_t taps, uint32_t offset,
                                  const uint32_t *stream, const uint32_t *scale, uint32_t count,
                                  int8_t *out) {
  const uint32_t pairs = taps / 2u;
  const int16_t *weights = (const int16_t *)(const void *)(stream + 4);
  for (uint32_t c = 0; c < count; ++c, scale += 3) {
    int32_t sum = (int32_t)stream[c];
    for (uint32_t i = 0; i < pairs; ++i) {
      sum += window[2u * i][offset + c] * weights[8u * i + 2u * c];
      sum += window[2u * i + 1u][offset + c] * weights[8u * i + 2u * c + 1u];
    }
    if (taps % 2u != 0u) { /* the second and the third are swapped */
      sum += window[taps - 1u][offset + c] * weights[8u * pairs + (c * 2u) % 3u];
    }
    out[c] = slw_output_at(sum >> 1, scale);
  }
}

/* workspace: channels bytes of padding, then a pointer
 * for each element of the window. */
static SLW_SHARED void slw_depthwise_pairs(const struct slw_layer *layer, const int8_t *data,
                                           const uint32_t *streams, const struct slw_scales *unused,
                                           int8_t *out, uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  const uint32_t line = (uint32_t)layer->in_width * channels;
  const uint32_t taps = (uint32_t)(layer->kernel_height * layer->kernel_width);
  const uint32_t is_3x3 = (uint32_t)(layer->kernel_height == 3 && layer->kernel_width == 3 &&
                                     layer->dilation_y == 1 && layer->dilation_x == 1 &&
                                     channels % 4u == 0u);
  const uint32_t *const after =
      streams + (channels + 3u) / 4u * (4u + 4u * (taps / 2u) + 2u * (taps % 2u));
  const uint32_t step = 12u * layer->per_channel;
  int8_t *padding = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  int8_t *at = out;
  (void)unused;
  slw_fill(padding, layer->pad_value, channels);
  for (int32_t y = 0; y < layer->out_height; ++y) {
    const int32_t top = y * layer->stride_y - layer->pad_top;
    const int inside = top >= 0 && top + 2 < layer->in_height;
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int32_t left = x * layer->stride_x - layer->pad_left;
      const uint32_t *stream = streams;
      const uint32_t *scale = after;
      uint32_t c = 0;
      if (is_3x3 != 0u && inside && left >= 0 && left + 2 < layer->in_width) {
        const int8_t *corner = data + (uint32_t)top * line + (uint32_t)left * channels;
        const int8_t *end = corner + channels;
        SLW_ROLLED
        for (; corner != end; corner += 4, at += 4, scale += step) {
          stream = slw_pairs_3x3(corner, line, channels, stream, scale, at);
        }
        continue;
      }
      (void)slw_window(layer, data, top, left, padding, window);
      SLW_ROLLED
      for (; c + 4u <= channels; c += 4u, at += 4, scale += step) {
        stream = slw_pairs(window, taps, c, stream, scale, at);
      }
      if (c < channels) {
        slw_pairs_tail(window, taps, c, stream, scale, channels - c, at);
        at += channels - c;
      }
    }
  }
  slw_clip(layer, out);
}
