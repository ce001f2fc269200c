/* Integer layers sixteen bytes at a time, for cores with vectors (MVE).  A quad is four sums: of four
 * output channels of one pixel.  Elsewhere, and without optimisation, the same arrangement is
 * computed by plain C.
 *
 * Every right shift is at least 1 and |sum| below 2^29, which whoever chose these kernels has checked.
 */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
typedef int32x4_t slw_quad;

/* Four output channels of two pixels, 16 * `chunks` elements of each window. Returns the weights
 * behind them. */
static inline const int8_t *slw_dot_4x2(const int8_t *weights, const int8_t *a, const int8_t *b,
                                        uint32_t chunks, const int32_t *bias, slw_quad *sums_a,
                                        slw_quad *sums_b) {
  /* Registers are named: optimising for size, or with one for a frame pointer, gcc finds none for
   * the operands beside the sums. */
  register int32_t a0 __asm__("r0") = bias[0];
  register int32_t a1 __asm__("r2") = bias[1];
  register int32_t a2 __asm__("r4") = bias[2];
  register int32_t a3 __asm__("r6") = bias[3];
  register const int8_t *pa __asm__("r1") = a;
  register const int8_t *pb __asm__("r3") = b;
  register const int8_t *pw __asm__("r5") = weights;
  register uint32_t n __asm__("r11") = chunks;
  slw_quad qa;
  slw_quad qb;
  __asm__ volatile(
      "mov r8, r0\n"
      "mov r10, r2\n"
      "mov r12, r4\n"
      "mov lr, r6\n"
      "1: vldrb.8 q0, [%[a]], #16\n"
      "vldrb.8 q2, [%[w]], #16\n"
      "vldrb.8 q1, [%[b]], #16\n"
      "vmladava.s8 r0, q0, q2\n"
      "vldrb.8 q3, [%[w]], #16\n"
      "vmladava.s8 r8, q1, q2\n"
      "vldrb.8 q2, [%[w]], #16\n"
      "vmladava.s8 r2, q0, q3\n"
      "vmladava.s8 r10, q1, q3\n"
      "vldrb.8 q3, [%[w]], #16\n"
      "vmladava.s8 r4, q0, q2\n"
      "subs %[n], %[n], #1\n"
      "vmladava.s8 r12, q1, q2\n"
      "vmladava.s8 r6, q0, q3\n"
      "vmladava.s8 lr, q1, q3\n"
      "bne 1b\n"
      "vmov %q[qa][2], %q[qa][0], r0, r4\n"
      "vmov %q[qa][3], %q[qa][1], r2, r6\n"
      "vmov %q[qb][2], %q[qb][0], r8, r12\n"
      "vmov %q[qb][3], %q[qb][1], r10, lr\n"
      : [qa] "=&w"(qa), [qb] "=&w"(qb), [a] "+r"(pa), [b] "+r"(pb), [w] "+r"(pw),
        [n] "+r"(n), "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3)
      :
      : "cc", "memory", "q0", "q1", "q2", "q3", "r8", "r10", "r12", "lr");
  *sums_a = qa;
  *sums_b = qb;
  return pw;
}

/* Four output channels of one pixel; the window has `size` elements. */
static inline const int8_t *slw_dot_4x1(const int8_t *weights, const int8_t *a, uint32_t size,
                                        const int32_t *bias, slw_quad *sums) {
  slw_quad q;
  __asm__ volatile(
      "ldrd r0, r2, [%[bias]]\n"
      "ldrd r4, r6, [%[bias], #8]\n"
      "dlstp.8 lr, %[n]\n"
      "1: vldrb.8 q0, [%[a]], #16\n"
      "vldrb.8 q1, [%[w]], #16\n"
      "vldrb.8 q2, [%[w]], #16\n"
      "vmladava.s8 r0, q0, q1\n"
      "vldrb.8 q3, [%[w]], #16\n"
      "vmladava.s8 r2, q0, q2\n"
      "vldrb.8 q1, [%[w]], #16\n"
      "vmladava.s8 r4, q0, q3\n"
      "vmladava.s8 r6, q0, q1\n"
      "letp lr, 1b\n"
      "vmov %q[q][2], %q[q][0], r0, r4\n"
      "vmov %q[q][3], %q[q][1], r2, r6\n"
      : [q] "=&w"(q), [a] "+r"(a), [w] "+r"(weights)
      : [bias] "r"(bias), [n] "r"(size)
      : "cc", "memory", "q0", "q1", "q2", "q3", "r0", "r2", "r4", "r6", "lr");
  *sums = q;
  return weights;
}

/* One window of up to 16 channels, two elements at a time: their products are added in 16 bits.
 * The sums' channels are in the order of slw_store_16. Returns the weights behind. */
static inline const int8_t *slw_taps_16(const int8_t **tap, const int8_t **end, uint32_t offset,
                                        uint32_t lanes, const int8_t *weights, slw_quad *sums) {
  slw_quad s0 = sums[0];
  slw_quad s1 = sums[1];
  slw_quad s2 = sums[2];
  slw_quad s3 = sums[3];
  int8x16_t x;
  int8x16_t y;
  int8x16_t w;
  int8x16_t p;
  const int8_t *a;
  const int8_t *b;
  const mve_pred16_t active = vctp8q(lanes);
  __asm__ volatile(
      "1: ldrd %[a], %[b], [%[t]], #8\n"
      "vldrb.8 %q[w], [%[v]], #16\n"
      "add %[a], %[a], %[o]\n"
      "add %[b], %[b], %[o]\n"
      "vpstt\n"
      "vldrbt.8 %q[x], [%[a]]\n"
      "vldrbt.8 %q[y], [%[b]]\n"
      "vmullb.s8 %q[p], %q[x], %q[w]\n"
      "vmullt.s8 %q[x], %q[x], %q[w]\n"
      "vldrb.8 %q[w], [%[v]]\n"
      "vmullb.s8 %q[w], %q[y], %q[w]\n"
      "vadd.i16 %q[p], %q[p], %q[w]\n"
      "vldrb.8 %q[w], [%[v]], #16\n"
      "vmullt.s8 %q[w], %q[y], %q[w]\n"
      "vmovlb.s16 %q[y], %q[p]\n"
      "vadd.i16 %q[x], %q[x], %q[w]\n"
      "vmovlt.s16 %q[p], %q[p]\n"
      "vadd.i32 %q[s0], %q[s0], %q[y]\n"
      "vmovlb.s16 %q[y], %q[x]\n"
      "vadd.i32 %q[s1], %q[s1], %q[p]\n"
      "vmovlt.s16 %q[x], %q[x]\n"
      "vadd.i32 %q[s2], %q[s2], %q[y]\n"
      "cmp %[t], %[e]\n"
      "vadd.i32 %q[s3], %q[s3], %q[x]\n"
      "bne 1b\n"
      : [s0] "+w"(s0), [s1] "+w"(s1), [s2] "+w"(s2), [s3] "+w"(s3), [x] "=&w"(x), [y] "=&w"(y),
        [w] "=&w"(w), [p] "=&w"(p), [t] "+r"(tap), [v] "+r"(weights), [a] "=&r"(a), [b] "=&r"(b)
      : [e] "r"(end), [o] "r"(offset), "Up"(active)
      : "cc", "memory");
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
  return weights;
}

static inline slw_quad slw_load_quad(const int32_t *from) { return vldrwq_s32(from); }

/* The two roundings of slw_requantize, and the zero point. */
static inline slw_quad slw_scale_quad(slw_quad sums, const int32_t *multiplier,
                                      const int32_t *shift, int32_t zero) {
  slw_quad v = vqrdmulhq_s32(sums, vldrwq_s32(multiplier));
  v = vaddq_s32(v, vshrq_n_s32(v, 31));
  v = vrshlq_s32(v, vldrwq_s32(shift));
  return vaddq_n_s32(v, zero);
}

static inline void slw_store_quad(int8_t *to, slw_quad v, int32_t low, int32_t high,
                                  uint32_t count) {
  v = vminq_s32(vmaxq_s32(v, vdupq_n_s32(low)), vdupq_n_s32(high));
  if (count >= 4u) {
    vstrbq_s32(to, v);
  } else {
    vstrbq_p_s32(to, v, vctp32q(count));
  }
}

/* Quads of channels (0, 4, 8, 12), (2, 6, 10, 14), (1, ...) and (3, ...). */
static inline void slw_store_16(int8_t *to, const slw_quad *quads, int32_t low, int32_t high,
                                uint32_t count) {
  int16x8_t even = vuninitializedq_s16();
  int16x8_t odd = vuninitializedq_s16();
  int8x16_t all = vuninitializedq_s8();
  even = vqmovntq_s32(vqmovnbq_s32(even, quads[0]), quads[1]);
  odd = vqmovntq_s32(vqmovnbq_s32(odd, quads[2]), quads[3]);
  all = vqmovntq_s16(vqmovnbq_s16(all, even), odd);
  all = vminq_s8(vmaxq_s8(all, vdupq_n_s8((int8_t)low)), vdupq_n_s8((int8_t)high));
  vstrbq_p_s8(to, all, vctp8q(count));
}
#else
typedef struct {
  int32_t lane[4];
} slw_quad;

static const uint8_t slw_order[4] = {0, 2, 1, 3};

static inline const int8_t *slw_dot_4x1(const int8_t *weights, const int8_t *a, uint32_t size,
                                        const int32_t *bias, slw_quad *sums) {
  for (uint32_t i = 0; i < 4u; ++i) {
    sums->lane[i] = bias[i];
  }
  for (uint32_t k = 0; k < size; k += 16u, weights += 64) {
    for (uint32_t i = 0; i < 64u; ++i) {
      if (k + i % 16u < size) {
        sums->lane[i / 16u] += a[k + i % 16u] * weights[i];
      }
    }
  }
  return weights;
}

static inline const int8_t *slw_dot_4x2(const int8_t *weights, const int8_t *a, const int8_t *b,
                                        uint32_t chunks, const int32_t *bias, slw_quad *sums_a,
                                        slw_quad *sums_b) {
  (void)slw_dot_4x1(weights, a, 16u * chunks, bias, sums_a);
  return slw_dot_4x1(weights, b, 16u * chunks, bias, sums_b);
}

static inline const int8_t *slw_taps_16(const int8_t **tap, const int8_t **end, uint32_t offset,
                                        uint32_t lanes, const int8_t *weights, slw_quad *sums) {
  for (; tap != end; ++tap, weights += 16) {
    for (uint32_t i = 0; i < lanes; ++i) {
      sums[slw_order[i % 4u]].lane[i / 4u] += (*tap)[offset + i] * weights[i];
    }
  }
  return weights;
}

static inline slw_quad slw_load_quad(const int32_t *from) {
  slw_quad quad;
  __builtin_memcpy(&quad, from, sizeof(quad));
  return quad;
}

static inline slw_quad slw_scale_quad(slw_quad sums, const int32_t *multiplier,
                                      const int32_t *shift, int32_t zero) {
  for (uint32_t i = 0; i < 4u; ++i) {
    int32_t v = (int32_t)(((int64_t)sums.lane[i] * multiplier[i] + 1073741824) >> 31);
    v += (v >> 31) + (int32_t)(1u << (-shift[i] - 1));
    sums.lane[i] = (v >> -shift[i]) + zero;
  }
  return sums;
}

static inline int8_t slw_between(int32_t value, int32_t low, int32_t high) {
  value = value < low ? low : value;
  return (int8_t)(value > high ? high : value);
}

static inline void slw_store_quad(int8_t *to, slw_quad v, int32_t low, int32_t high,
                                  uint32_t count) {
  for (uint32_t i = 0; i < 4u && i < count; ++i) {
    to[i] = slw_between(v.lane[i], low, high);
  }
}

static inline void slw_store_16(int8_t *to, const slw_quad *quads, int32_t low, int32_t high,
                                uint32_t count) {
  for (uint32_t i = 0; i < 16u && i < count; ++i) {
    to[i] = slw_between(quads[slw_order[i % 4u]].lane[i / 4u], low, high);
  }
}
#endif

/* weights: [out_channels / 4][window / 16][4][16], scales for full fours of channels, both filled up
 * with zeros.  workspace: two windows, each filled up to 16. */
static SLW_SHARED void slw_conv_mve(const struct slw_layer *layer, const int8_t *data,
                                    const int8_t *weights, const struct slw_scales *scales,
                                    int8_t *out, uint8_t *workspace) {
  const uint32_t size =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t chunks = (size + 15u) / 16u;
  const uint32_t channels = layer->out_channels;
  const uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  const uint32_t step = 4u * layer->per_channel;
  const int32_t low = layer->out_min;
  const int32_t high = layer->out_max;
  const int32_t zero = layer->out_zero;
  int8_t *first = (int8_t *)workspace;
  int8_t *second = first + 16u * chunks;
  int32_t y = 0;
  int32_t x = 0;
  slw_fill(first + size, 0, 16u * chunks - size);
  slw_fill(second + size, 0, 16u * chunks - size);
  for (uint32_t pixel = 0; pixel < pixels; pixel += 2u) {
    const int32_t *multiplier = scales->multiplier;
    const int32_t *shift = scales->shift;
    const int8_t *w = weights;
    const int8_t *a = slw_gather(layer, data, y, x, first, 16u);
    const int8_t *b = a;
    int8_t *out_b = out;
    slw_quad sums_a;
    slw_quad sums_b;
    if (++x == layer->out_width) {
      x = 0;
      ++y;
    }
    if (pixel + 1u < pixels) {
      b = slw_gather(layer, data, y, x, second, 16u);
      out_b = out + channels;
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    for (uint32_t c = 0; c < channels; c += 4u) {
      w = slw_dot_4x2(w, a, b, chunks, scales->bias + c, &sums_a, &sums_b);
      slw_store_quad(out_b + c, slw_scale_quad(sums_b, multiplier, shift, zero), low, high,
                     channels - c);
      slw_store_quad(out + c, slw_scale_quad(sums_a, multiplier, shift, zero), low, high,
                     channels - c);
      multiplier += step;
      shift += step;
    }
    out += 2u * channels;
  }
}

/* A product of one row; weights and scales as for a convolution. */
static SLW_SHARED void slw_dense_mve(const struct slw_layer *layer, const int8_t *data,
                                     const int8_t *weights, const struct slw_scales *scales,
                                     int8_t *out, uint8_t *workspace) {
  const uint32_t channels = layer->out_channels;
  const uint32_t step = layer->per_channel;
  (void)workspace;
  for (uint32_t c = 0; c < channels; c += 4u) {
    slw_quad sums;
    weights = slw_dot_4x1(weights, data, layer->in_channels, scales->bias + c, &sums);
    sums = slw_scale_quad(sums, scales->multiplier + c * step, scales->shift + c * step,
                          layer->out_zero);
    slw_store_quad(out + c, sums, layer->out_min, layer->out_max, channels - c);
  }
}

/* weights: [channels / 16][window][16], an even number of window elements, scales for full sixteens
 * of channels in the order of slw_store_16, all filled up with zeros.
 * workspace: channels bytes of border, then a pointer for each window element. */
static SLW_SHARED void slw_depthwise_mve(const struct slw_layer *layer, const int8_t *data,
                                         const int8_t *weights, const struct slw_scales *scales,
                                         int8_t *out, uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  const uint32_t step = 4u * layer->per_channel;
  int8_t *border = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  slw_fill(border, layer->pad_value, channels);
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int8_t **end = slw_next_window(layer, data, y, x, border, window);
      const int32_t *multiplier = scales->multiplier;
      const int32_t *shift = scales->shift;
      const int8_t *w = weights;
      if (((uint32_t)(end - window) & 1u) != 0u) {
        *end++ = border; /* its weights are zero */
      }
      for (uint32_t c = 0; c < channels; c += 16u) {
        const uint32_t lanes = channels - c < 16u ? channels - c : 16u;
        slw_quad sums[4];
        for (uint32_t i = 0; i < 4u; ++i) {
          sums[i] = slw_load_quad(scales->bias + c + 4u * i);
        }
        w = slw_taps_16(window, end, c, lanes, w, sums);
        for (uint32_t i = 0; i < 4u; ++i) {
          sums[i] = slw_scale_quad(sums[i], multiplier, shift, layer->out_zero);
          multiplier += step;
          shift += step;
        }
        slw_store_16(out + c, sums, layer->out_min, layer->out_max, lanes);
      }
      out += channels;
    }
  }
}
