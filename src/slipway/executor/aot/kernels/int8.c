/* Integer layers. With the DSP extension two products are summed by one instruction (smlad): data
 * is widened to 16 bits once for all output channels, weights as they are read.  In a widened word
 * of four bytes the order is (0, 2), (1, 3), which is what sxtb16 gives.  Zero points are folded
 * into the biases; the border holds the data's zero point.
 */
struct slw_layer {
  uint16_t in_height, in_width, in_channels;
  uint16_t out_height, out_width, out_channels;
  uint16_t kernel_height, kernel_width;
  uint16_t stride_y, stride_x;
  uint16_t dilation_y, dilation_x;
  int16_t pad_top, pad_left;
  int16_t pad_value, out_zero, out_min, out_max;
  uint16_t per_channel; /* step in multipliers and shifts: 1, or 0 for one of each */
};

struct slw_scales {
  const int32_t *bias, *multiplier, *shift;
};

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
#endif

/* sum * multiplier * 2^(shift - 31), rounded as TFLite's reference kernels do. */
static inline int8_t slw_requantize(const struct slw_layer *layer, int32_t sum, int32_t multiplier,
                                    int32_t shift) {
  int32_t left = shift > 0 ? shift : 0;
  int32_t right = shift > 0 ? 0 : -shift;
  int64_t product = (int64_t)(int32_t)((uint32_t)sum << left) * multiplier;
  int32_t value = (int32_t)((product + 1073741824) >> 31);
  int32_t mask = (int32_t)((1u << right) - 1u);
  int32_t rest = value & mask;
  value = (value >> right) + (rest > (mask >> 1) + (value < 0)) + layer->out_zero;
  value = value < layer->out_min ? layer->out_min : value;
  return (int8_t)(value > layer->out_max ? layer->out_max : value);
}

/* Widen `count` bytes, a multiple of 4. */
static void slw_widen(uint32_t *to, const int8_t *from, uint32_t count) {
  for (; count > 0u; count -= 4u, from += 4, to += 2) {
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
  if (layer->kernel_height == 1u && layer->kernel_width == 1u && channels == padded) {
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

/* Two output channels of two pixels (or of one, when b == a). */
static void slw_conv_pixels(const struct slw_layer *layer, const uint32_t *a, const uint32_t *b,
                            const int8_t *weights, const struct slw_scales *scales, int8_t *out_a,
                            int8_t *out_b, uint32_t padded) {
  const int32_t *multiplier = scales->multiplier;
  const int32_t *shift = scales->shift;
  const uint32_t step = layer->per_channel;
  for (uint32_t c = 0; c < layer->out_channels; c += 2u) {
    const uint32_t two = c + 1u < layer->out_channels;
    const int8_t *w0 = weights;
    const int8_t *w1 = weights + padded * two;
    const uint32_t *pa = a;
    const int8_t *end = w0 + padded;
    int32_t a0 = scales->bias[c];
    int32_t a1 = scales->bias[c + two];
    if (a == b) {
      while (w0 != end) {
        const uint32_t first = slw_load4(w0);
        const uint32_t second = slw_load4(w1);
        a0 = slw_dot2(slw_even(first), pa[0], a0);
        a0 = slw_dot2(slw_odd(first), pa[1], a0);
        a1 = slw_dot2(slw_even(second), pa[0], a1);
        a1 = slw_dot2(slw_odd(second), pa[1], a1);
        pa += 2;
        w0 += 4;
        w1 += 4;
      }
    } else {
      const uint32_t *pb = b;
      int32_t b0 = a0;
      int32_t b1 = a1;
      while (w0 != end) {
        uint32_t word = slw_load4(w0);
        uint32_t even = slw_even(word);
        uint32_t odd = slw_odd(word);
        a0 = slw_dot2(even, pa[0], a0);
        b0 = slw_dot2(even, pb[0], b0);
        a0 = slw_dot2(odd, pa[1], a0);
        b0 = slw_dot2(odd, pb[1], b0);
        word = slw_load4(w1);
        even = slw_even(word);
        odd = slw_odd(word);
        a1 = slw_dot2(even, pa[0], a1);
        b1 = slw_dot2(even, pb[0], b1);
        a1 = slw_dot2(odd, pa[1], a1);
        b1 = slw_dot2(odd, pb[1], b1);
        pa += 2;
        pb += 2;
        w0 += 4;
        w1 += 4;
      }
      out_b[c] = slw_requantize(layer, b0, multiplier[0], shift[0]);
      if (two != 0u) {
        out_b[c + 1u] = slw_requantize(layer, b1, multiplier[step], shift[step]);
      }
    }
    out_a[c] = slw_requantize(layer, a0, multiplier[0], shift[0]);
    if (two != 0u) {
      out_a[c + 1u] = slw_requantize(layer, a1, multiplier[step], shift[step]);
    }
    weights += 2u * padded;
    multiplier += 2u * step;
    shift += 2u * step;
  }
}

/* weights: [out_channels][padded], padded = kernel bytes rounded up to 4.
 * workspace: 5 * padded bytes. */
static SLW_SHARED void slw_conv_int8(const struct slw_layer *layer, const int8_t *data,
                                     const int8_t *weights, const struct slw_scales *scales,
                                     int8_t *out, uint8_t *workspace) {
  const uint32_t kernel =
      (uint32_t)layer->kernel_height * layer->kernel_width * layer->in_channels;
  const uint32_t padded = (kernel + 3u) & ~3u;
  const uint32_t channels = layer->out_channels;
  const uint32_t pixels = (uint32_t)layer->out_height * layer->out_width;
  uint32_t *first = (uint32_t *)(void *)workspace;
  uint32_t *second = first + padded / 2u;
  int8_t *bytes = (int8_t *)(second + padded / 2u);
  int32_t y = 0;
  int32_t x = 0;
  for (uint32_t pixel = 0; pixel < pixels; pixel += 2u) {
    uint32_t *b = first;
    slw_column(layer, data, y, x, first, bytes, padded);
    if (++x == layer->out_width) {
      x = 0;
      ++y;
    }
    if (pixel + 1u < pixels) {
      b = second;
      slw_column(layer, data, y, x, second, bytes, padded);
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    slw_conv_pixels(layer, first, b, weights, scales, out, out + channels, padded);
    out += 2u * channels;
  }
}

/* weights: [kernel][channels] int16, each four channels in the order 0, 2, 1, 3; channels is a
 * multiple of 4.  workspace: channels bytes of border, then a pointer for each kernel element. */
static SLW_SHARED void slw_depthwise_int8(const struct slw_layer *layer, const int8_t *data,
                                          const uint32_t *weights,
                                          const struct slw_scales *scales, int8_t *out,
                                          uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  const uint32_t taps = (uint32_t)layer->kernel_height * layer->kernel_width;
  int8_t *border = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  const uint32_t step = layer->per_channel;
  for (uint32_t i = 0; i < channels; ++i) {
    border[i] = (int8_t)layer->pad_value;
  }
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int8_t **at = window;
      const int32_t *multiplier = scales->multiplier;
      const int32_t *shift = scales->shift;
      for (uint32_t ky = 0; ky < layer->kernel_height; ++ky) {
        const int32_t row = y * layer->stride_y - layer->pad_top + (int32_t)(ky * layer->dilation_y);
        for (uint32_t kx = 0; kx < layer->kernel_width; ++kx) {
          const int32_t column =
              x * layer->stride_x - layer->pad_left + (int32_t)(kx * layer->dilation_x);
          const int inside =
              row >= 0 && row < layer->in_height && column >= 0 && column < layer->in_width;
          *at++ = inside ? data + ((uint32_t)row * layer->in_width + (uint32_t)column) * channels
                         : border;
        }
      }
      for (uint32_t c = 0; c < channels; c += 4u) {
        const uint32_t *w = weights + c / 2u;
        const int32_t *bias = scales->bias + c;
        int32_t s0 = bias[0];
        int32_t s1 = bias[1];
        int32_t s2 = bias[2];
        int32_t s3 = bias[3];
        for (uint32_t t = 0; t < taps; ++t) {
          const uint32_t bytes = slw_load4(window[t] + c);
          const uint32_t even = slw_even(bytes);
          const uint32_t odd = slw_odd(bytes);
          const uint32_t we = w[0];
          const uint32_t wo = w[1];
          s0 = slw_low(even, we, s0);
          s2 = slw_high(even, we, s2);
          s1 = slw_low(odd, wo, s1);
          s3 = slw_high(odd, wo, s3);
          w += channels / 2u;
        }
        out[0] = slw_requantize(layer, s0, multiplier[0], shift[0]);
        out[1] = slw_requantize(layer, s1, multiplier[step], shift[step]);
        out[2] = slw_requantize(layer, s2, multiplier[2u * step], shift[2u * step]);
        out[3] = slw_requantize(layer, s3, multiplier[3u * step], shift[3u * step]);
        out += 4;
        multiplier += 4u * step;
        shift += 4u * step;
      }
    }
  }
}
