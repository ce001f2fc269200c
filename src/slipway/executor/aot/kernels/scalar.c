/* Integer layers one product at a time, for cores that only multiply words: what counts is how often
 * a byte that was loaded is used.  A tile is four output channels of four pixels.
 */

struct slw_range {
  int32_t twice_zero, low, high; /* 2 * zero point + 1 */
};

static inline struct slw_range slw_range_of(const struct slw_layer *layer) {
  const struct slw_range range = {2 * layer->out_zero + 1, layer->out_min, layer->out_max};
  return range;
}

/* slw_requantize of dsp.c, for right shifts of at least 1: `twice` is 2 * multiplier, so that the
 * product's upper word is what the first rounding keeps; `right` is ~shift, the shift less 1. */
static inline int8_t slw_scale(struct slw_range range, int32_t sum, int32_t twice, int32_t right) {
  const int64_t product = (int64_t)sum * (uint32_t)twice;
  int32_t value = (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
  value += (value >> 31) + (int32_t)((uint32_t)range.twice_zero << right);
  value = value >> right >> 1;
  value = value < range.low ? range.low : value;
  value = value > range.high ? range.high : value;
  return (int8_t)value;
}

/* Four sums += x * w0 ... x * w3.  On RISC-V in words of the machine and in this very order: the
 * compiler would rename the sums, which leaves no registers for the windows. */
#if defined(__riscv_mul) && defined(__GNUC__)
typedef long slw_word;
static inline void slw_mac4(slw_word x, slw_word w0, slw_word w1, slw_word w2, slw_word w3,
                            slw_word *s0, slw_word *s1, slw_word *s2, slw_word *s3) {
  slw_word t;
  __asm__ volatile(
      "mul %[t], %[x], %[w0]\n add %[s0], %[s0], %[t]\n"
      "mul %[t], %[x], %[w1]\n add %[s1], %[s1], %[t]\n"
      "mul %[t], %[x], %[w2]\n add %[s2], %[s2], %[t]\n"
      "mul %[t], %[x], %[w3]\n add %[s3], %[s3], %[t]\n"
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [s2] "+r"(*s2), [s3] "+r"(*s3), [t] "=&r"(t)
      : [x] "r"(x), [w0] "r"(w0), [w1] "r"(w1), [w2] "r"(w2), [w3] "r"(w3)
      : "memory");
}
#else
typedef int32_t slw_word;
static inline void slw_mac4(slw_word x, slw_word w0, slw_word w1, slw_word w2, slw_word w3,
                            slw_word *s0, slw_word *s1, slw_word *s2, slw_word *s3) {
  *s0 += x * w0;
  *s1 += x * w1;
  *s2 += x * w2;
  *s3 += x * w3;
}
#endif

/* sums[4 * pixel + channel] = bias[channel] + weights x windows; returns the weights behind. */
static SLW_SHARED const int8_t *slw_tile(const int8_t *weights, const int8_t *const *windows,
                                         uint32_t size, const int32_t *bias, int32_t *sums) {
  const int8_t *a = windows[0];
  const int8_t *b = windows[1];
  const int8_t *c = windows[2];
  const int8_t *d = windows[3];
  const int8_t *end = a + size;
  slw_word a0 = bias[0], a1 = bias[1], a2 = bias[2], a3 = bias[3];
  slw_word b0 = bias[0], b1 = bias[1], b2 = bias[2], b3 = bias[3];
  slw_word c0 = bias[0], c1 = bias[1], c2 = bias[2], c3 = bias[3];
  slw_word d0 = bias[0], d1 = bias[1], d2 = bias[2], d3 = bias[3];
#define SLW_STEP(k)                                                                          \
  {                                                                                          \
    const slw_word w0 = weights[4 * (k)];                                                    \
    const slw_word w1 = weights[4 * (k) + 1];                                                \
    const slw_word w2 = weights[4 * (k) + 2];                                                \
    const slw_word w3 = weights[4 * (k) + 3];                                                \
    slw_mac4(a[k], w0, w1, w2, w3, &a0, &a1, &a2, &a3);                              \
    slw_mac4(b[k], w0, w1, w2, w3, &b0, &b1, &b2, &b3);                              \
    slw_mac4(c[k], w0, w1, w2, w3, &c0, &c1, &c2, &c3);                            \
    slw_mac4(d[k], w0, w1, w2, w3, &d0, &d1, &d2, &d3);                          \
  }
  for (; size % 4u != 0u; --size, ++a, ++b, ++c, ++d, weights += 4) {
    SLW_STEP(0)
  }
  for (; a != end; a += 4, b += 4, c += 4, d += 4, weights += 16) {
    SLW_STEP(0)
    SLW_STEP(1)
    SLW_STEP(2)
    SLW_STEP(3)
  }
#undef SLW_STEP
  sums[0] = (int32_t)a0, sums[1] = (int32_t)a1, sums[2] = (int32_t)a2, sums[3] = (int32_t)a3;
  sums[4] = (int32_t)b0, sums[5] = (int32_t)b1, sums[6] = (int32_t)b2, sums[7] = (int32_t)b3;
  sums[8] = (int32_t)c0, sums[9] = (int32_t)c1, sums[10] = (int32_t)c2, sums[11] = (int32_t)c3;
  sums[12] = (int32_t)d0, sums[13] = (int32_t)d1, sums[14] = (int32_t)d2, sums[15] = (int32_t)d3;
  return weights;
}

/* One window: sums[channel] = bias[channel] + weights x window; returns the weights behind. */
static inline const int8_t *slw_row(const int8_t *weights, const int8_t *window, uint32_t size,
                                    const int32_t *bias, int32_t *sums) {
  const int8_t *end = window + size;
  slw_word s0 = bias[0], s1 = bias[1], s2 = bias[2], s3 = bias[3];
#define SLW_STEP(k)                                                                          \
  slw_mac4(window[k], weights[4 * (k)], weights[4 * (k) + 1], weights[4 * (k) + 2],          \
           weights[4 * (k) + 3], &s0, &s1, &s2, &s3);
  for (; size % 4u != 0u; --size, ++window, weights += 4) {
    SLW_STEP(0)
  }
  for (; window != end; window += 4, weights += 16) {
    SLW_STEP(0)
    SLW_STEP(1)
    SLW_STEP(2)
    SLW_STEP(3)
  }
#undef SLW_STEP
  sums[0] = (int32_t)s0, sums[1] = (int32_t)s1, sums[2] = (int32_t)s2, sums[3] = (int32_t)s3;
  return weights;
}

/* weights: [out_channels / 4][window][4], and biases, filled up with zeros; scales as slw_scale wants
 * them.  workspace: four windows. */
static SLW_SHARED void slw_conv_scalar(const struct slw_layer *layer, const int8_t *data,
                                       const int8_t *weights, const struct slw_scales *scales,
                                       int8_t *out, uint8_t *workspace) {
  const uint32_t size =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t channels = layer->out_channels;
  const uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  const uint32_t step = layer->per_channel;
  const struct slw_range range = slw_range_of(layer);
  int32_t y = 0;
  int32_t x = 0;
  for (uint32_t pixel = 0; pixel < pixels; pixel += 4u) {
    const uint32_t count = pixels - pixel < 4u ? pixels - pixel : 4u;
    const int8_t *w = weights;
    const int8_t *windows[4];
    for (uint32_t i = 0; i < count; ++i) {
      windows[i] = slw_gather(layer, data, y, x, (int8_t *)workspace + i * size, 1u);
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    for (uint32_t c = 0; c < channels; c += 4u) {
      const uint32_t lanes = channels - c < 4u ? channels - c : 4u;
      int32_t sums[16];
      if (count == 4u) {
        w = slw_tile(w, windows, size, scales->bias + c, sums);
      } else {
        const int8_t *next = w;
        for (uint32_t i = 0; i < count; ++i) {
          next = slw_row(w, windows[i], size, scales->bias + c, sums + 4u * i);
        }
        w = next;
      }
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        const int32_t multiplier = scales->multiplier[(c + lane) * step];
        const int32_t shift = scales->shift[(c + lane) * step];
        int8_t *to = out + c + lane;
        for (uint32_t i = 0; i < count; ++i, to += channels) {
          *to = slw_scale(range, sums[4u * i + lane], multiplier, shift);
        }
      }
    }
    out += 4u * channels;
  }
}

/* A product of one row; weights as for a convolution. */
static SLW_SHARED void slw_dense_scalar(const struct slw_layer *layer, const int8_t *data,
                                        const int8_t *weights, const struct slw_scales *scales,
                                        int8_t *out, uint8_t *workspace) {
  const uint32_t channels = layer->out_channels;
  const uint32_t step = layer->per_channel;
  const struct slw_range range = slw_range_of(layer);
  (void)workspace;
  for (uint32_t c = 0; c < channels; c += 4u) {
    int32_t sums[4];
    weights = slw_row(weights, data, layer->in_channels, scales->bias + c, sums);
    for (uint32_t lane = 0; lane < 4u && c + lane < channels; ++lane) {
      const uint32_t at = (c + lane) * step;
      out[c + lane] = slw_scale(range, sums[lane], scales->multiplier[at], scales->shift[at]);
    }
  }
}

/* weights: [channels / 4][window][4], filled up with zeros.
 * workspace: channels bytes of border, then a pointer for each window element. */
static SLW_SHARED void slw_depthwise_scalar(const struct slw_layer *layer, const int8_t *data,
                                            const int8_t *weights,
                                            const struct slw_scales *scales, int8_t *out,
                                            uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  const uint32_t step = layer->per_channel;
  const struct slw_range range = slw_range_of(layer);
  int8_t *border = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  slw_fill(border, layer->pad_value, channels);
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int8_t **end = slw_next_window(layer, data, y, x, border, window);
      const int32_t *multiplier = scales->multiplier;
      const int32_t *shift = scales->shift;
      const int8_t *w = weights;
      for (uint32_t c = 0; c < channels; c += 4u) {
        const int32_t *bias = scales->bias + c;
        const int8_t **tap = window;
        if (channels - c >= 4u) {
          int32_t s0 = bias[0], s1 = bias[1], s2 = bias[2], s3 = bias[3];
          for (; tap != end; ++tap, w += 4) {
            const int8_t *at = *tap + c;
            s0 += at[0] * w[0];
            s1 += at[1] * w[1];
            s2 += at[2] * w[2];
            s3 += at[3] * w[3];
          }
          out[0] = slw_scale(range, s0, multiplier[0], shift[0]);
          out[1] = slw_scale(range, s1, multiplier[step], shift[step]);
          out[2] = slw_scale(range, s2, multiplier[2u * step], shift[2u * step]);
          out[3] = slw_scale(range, s3, multiplier[3u * step], shift[3u * step]);
          out += 4;
          multiplier += 4u * step;
          shift += 4u * step;
        } else {
          for (uint32_t lane = 0; c + lane < channels; ++lane) {
            int32_t sum = bias[lane];
            for (tap = window; tap != end; ++tap) {
              sum += (*tap)[c + lane] * w[4 * (tap - window) + (int32_t)lane];
            }
            *out++ = slw_scale(range, sum, *multiplier, *shift);
            multiplier += step;
            shift += step;
          }
        }
      }
    }
  }
}
