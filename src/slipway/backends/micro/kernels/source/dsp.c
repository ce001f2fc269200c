/* Integer layers by words (dsp_words.c): data is widened to 16 bits once for all output channels,
 * weights as they are read.
 */
/* How sums become outputs, in one place that stores to the outputs cannot change.  `right` is
 * ~shift, so the right shift less 1; below 0 it stands for a shift to the left.
 * `plain`: no shift is to the left, and no clip is narrower than int8. */
struct slw_output {
  const int32_t *multiplier, *right;
  uint32_t step, plain;
  int32_t twice_zero, low, high;
};

static struct slw_output slw_output_of(const struct slw_layer *layer,
                                       const struct slw_scales *scales) {
  struct slw_output output = {
      scales->multiplier, scales->shift, layer->per_channel, (uint32_t)(layer->clips == 0u),
      2 * layer->out_zero + 1, 2 * layer->out_min, 2 * layer->out_max};
  for (uint32_t c = 0; c < layer->out_channels; ++c) {
    if (scales->shift[c * layer->per_channel] < 0) {
      output.plain = 0;
    }
  }
  return output;
}

/* sum * multiplier * 2^(shift - 31), rounded twice as TFLite's reference kernels do, plus the
 * output's zero point, clipped.  |sum|, shifted left if at all, is below 2^29, which whoever chose
 * this kernel has checked.
 *
 * First rounding: (sum * multiplier + 2^30) >> 31 = (2 * sum * multiplier + 2^31) >> 32.
 * Second, for a right shift of at least 1: (v + 2^(right - 1) - (v < 0)) >> right; its half and
 * the zero point together are (2 * zero + 1) << (right - 1).
 */
static inline int8_t slw_requantize_plain(int32_t sum, int32_t multiplier, int32_t right,
                                          int32_t half) {
  const int32_t value = slw_high_product(sum, multiplier);
  return slw_saturate_half((value + (value >> 31) + half) >> right);
}

static SLW_SHARED int8_t slw_requantize(const struct slw_output *output, int32_t sum, uint32_t c) {
  const int32_t multiplier = output->multiplier[c * output->step];
  const int32_t right = output->right[c * output->step];
  int32_t twice;
  if (right >= 0) {
    twice = slw_high_product(sum, multiplier);
    twice += (twice >> 31) + (int32_t)((uint32_t)output->twice_zero << right);
    twice >>= right;
  } else {
    twice = slw_high_product((int32_t)((uint32_t)sum << ~right), multiplier);
    twice = 2 * twice + output->twice_zero;
  }
  twice = twice < output->low ? output->low : twice;
  return slw_saturate_half(twice > output->high ? output->high : twice);
}

/* slw_widen, or another with its arguments. */
typedef uint32_t *slw_widener(uint32_t *to, const int8_t *from, uint32_t count);

/* The window of output pixel (y, x), widened, into `to`; `bytes` holds what cannot be widened in
 * place, or is null where everything can. */
static inline void slw_column(const struct slw_layer *layer, const int8_t *data, int32_t y,
                              int32_t x, uint32_t *to, int8_t *bytes, uint32_t padded,
                              slw_widener *widen) {
  const uint32_t channels = layer->in_channels;
  const int32_t top = y * layer->stride_y - layer->pad_top;
  const int32_t left = x * layer->stride_x - layer->pad_left;
  const int32_t last = left + (layer->kernel_width - 1) * layer->dilation_x;
  if (bytes != NULL) {
    /* What is gathered is padded with zeros once, by whoever gave the memory. */
    (void)widen(to, slw_gather(layer, data, y, x, bytes, 4u), padded);
    return;
  }
  for (int32_t ky = 0; ky < layer->kernel_height; ++ky) {
    const int32_t row = top + ky * layer->dilation_y;
    const int inside = row >= 0 && row < layer->in_height;
    const int8_t *line = data + (uint32_t)(row * layer->in_width) * channels;
    if (inside && left >= 0 && last < layer->in_width && layer->dilation_x == 1) {
      to = widen(to, line + (uint32_t)left * channels,
                     (uint32_t)layer->kernel_width * channels);
      continue;
    }
    for (int32_t column = left; column <= last; column += layer->dilation_x) {
      if (inside && column >= 0 && column < layer->in_width) {
        to = widen(to, line + (uint32_t)column * channels, channels);
      } else {
        const uint32_t pad = ((uint32_t)layer->pad_value & 0xFFFFu) * 0x10001u;
        for (uint32_t i = 0; i < channels; i += 4u, to += 6) {
          to[0] = pad;
          to[1] = pad;
        }
      }
    }
  }
}

/* One channel of up to three pixels. */
static inline void slw_store_pixels(const struct slw_output *output, uint32_t c,
                                    const int32_t *sums, uint32_t count, uint32_t channels,
                                    int8_t *out) {
  if (output->plain != 0u && count == 3u) {
    const int32_t multiplier = output->multiplier[c * output->step];
    const int32_t right = output->right[c * output->step];
    const int32_t half = (int32_t)((uint32_t)output->twice_zero << right);
    out[0] = slw_requantize_plain(sums[0], multiplier, right, half);
    out[channels] = slw_requantize_plain(sums[2], multiplier, right, half);
    out[2u * channels] = slw_requantize_plain(sums[4], multiplier, right, half);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    out[i * channels] = slw_requantize(output, sums[2u * i], c);
  }
}

/* The same of one pixel of four channels, the first of which has the number c. */
static inline void slw_store_channels(const struct slw_output *output, const int32_t *multiplier,
                                      const int32_t *right, int32_t twice_zero, uint32_t c,
                                      int32_t s0, int32_t s1, int32_t s2, int32_t s3,
                                      int8_t *out) {
  if (output->plain != 0u) {
    const uint32_t zero = (uint32_t)twice_zero;
    const uint32_t step = output->step;
    out[0] = slw_requantize_plain(s0, *multiplier, *right, (int32_t)(zero << *right));
    multiplier += step;
    right += step;
    out[1] = slw_requantize_plain(s1, *multiplier, *right, (int32_t)(zero << *right));
    multiplier += step;
    right += step;
    out[2] = slw_requantize_plain(s2, *multiplier, *right, (int32_t)(zero << *right));
    multiplier += step;
    right += step;
    out[3] = slw_requantize_plain(s3, *multiplier, *right, (int32_t)(zero << *right));
    return;
  }
  out[0] = slw_requantize(output, s0, c);
  out[1] = slw_requantize(output, s1, c + 1u);
  out[2] = slw_requantize(output, s2, c + 2u);
  out[3] = slw_requantize(output, s3, c + 3u);
}

/* Four output channels of one row: slw_dot_4x1, or another with its arguments. */
typedef const uint32_t *slw_dot_row(const uint32_t *weights, const int8_t *row, uint32_t size,
                                    int32_t *sums);

/* A product of one row of a multiple of 8 elements, whose sums `dot` computes.  Weights and biases
 * are padded with zeros to groups of four channels. */
static inline void slw_dense_with(slw_dot_row *dot, const struct slw_layer *layer,
                                  const int8_t *data, const uint32_t *weights,
                                  const struct slw_scales *scales, int8_t *out) {
  const struct slw_output output = slw_output_of(layer, scales);
  const uint32_t channels = layer->out_channels;
  const uint32_t size = layer->in_channels;
  const int32_t *bias = scales->bias;
  for (uint32_t c = 0; c < channels; c += 4u, bias += 4) {
    int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
    weights = dot(weights, data, size, sums);
    if (channels - c >= 4u) {
      slw_store_channels(&output, output.multiplier + c * output.step,
                         output.right + c * output.step, output.twice_zero, c, sums[0], sums[1],
                         sums[2], sums[3], out + c);
    } else {
      for (uint32_t i = 0; c + i < channels; ++i) {
        out[c + i] = slw_requantize(&output, sums[i], c + i);
      }
    }
  }
}

/* weights: for each four output channels their words in turn, a word being 4 elements of the row. */
static SLW_SHARED void slw_dense_int8(const struct slw_layer *layer, const int8_t *data,
                                      const uint32_t *weights, const struct slw_scales *scales,
                                      int8_t *out, uint8_t *workspace) {
  (void)workspace;
  slw_dense_with(slw_dot_4x1, layer, data, weights, scales, out);
}

/* Two output channels of three pixels: slw_dot_2x3, or another with its arguments. */
typedef void slw_dot_pair(const uint32_t *weights, const uint32_t *columns, uint32_t words,
                          const int32_t *bias, int32_t *sums);

/* A convolution whose sums `dot` computes, from `words` of weights for each 4 elements of the window
 * of a pair of output channels.  The window is padded to a multiple of 8; biases are for pairs.
 * workspace: 6 bytes per element, and 1 more where channels are no multiple of 4. */
static inline void slw_conv_with(slw_dot_pair *dot, uint32_t words, slw_widener *widen,
                                 const struct slw_layer *layer,
                                 const int8_t *data, const uint32_t *weights,
                                 const struct slw_scales *scales, int8_t *out,
                                 uint8_t *workspace) {
  const uint32_t size =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t padded = (size + 7u) & ~7u;
  const struct slw_output output = slw_output_of(layer, scales);
  const uint32_t channels = layer->out_channels;
  const uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  uint32_t *columns = (uint32_t *)(void *)workspace;
  int8_t *bytes = NULL;
  int32_t y = 0;
  int32_t x = 0;
  if (layer->in_channels % 4u != 0u) {
    bytes = (int8_t *)workspace + 6u * padded;
    slw_fill(bytes + size, 0, padded - size);
  } else {
    for (uint32_t i = size; i < padded; i += 4u) {
      for (uint32_t word = 0; word < 6u; ++word) {
        columns[i / 4u * 6u + word] = 0;
      }
    }
  }
  for (uint32_t pixel = 0; pixel < pixels; pixel += 3u) {
    const uint32_t count = pixels - pixel < 3u ? pixels - pixel : 3u;
    const uint32_t *w = weights;
    for (uint32_t i = 0; i < count; ++i) {
      slw_column(layer, data, y, x, columns + 2u * i, bytes, padded, widen);
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    for (uint32_t c = 0; c < channels; c += 2u, w += words * (padded / 4u)) {
      int32_t sums[6];
      dot(w, columns, padded / 4u, scales->bias + c, sums);
      slw_store_pixels(&output, c, sums, count, channels, out + c);
      if (c + 1u < channels) {
        slw_store_pixels(&output, c + 1u, sums + 1, count, channels, out + c + 1u);
      }
    }
    out += 3u * channels;
  }
}

/* weights: for each pair of output channels the words of both in turn, a word being 4 elements of
 * the window. */
static SLW_SHARED void slw_conv_int8(const struct slw_layer *layer, const int8_t *data,
                                     const uint32_t *weights, const struct slw_scales *scales,
                                     int8_t *out, uint8_t *workspace) {
  slw_conv_with(slw_dot_2x3, 2u, slw_widen, layer, data, weights, scales, out, workspace);
}

/* weights: [channels / 4][kernel][4] int16, each four channels in the order 0, 2, 1, 3, padded
 * with zeros.  workspace: channels bytes of padding, then a pointer for each kernel element. */
static inline void slw_depthwise_with(const struct slw_layer *layer, const int8_t *data,
                                      const uint32_t *weights, const struct slw_scales *scales,
                                      int8_t *out, uint8_t *workspace) {
  const struct slw_output output = slw_output_of(layer, scales);
  const uint32_t channels = layer->in_channels;
  const uint32_t line = (uint32_t)layer->in_width * channels;
  const uint32_t step = 4u * layer->per_channel;
  const int32_t twice_zero = output.twice_zero;
  const uint32_t is_3x3 = (uint32_t)(layer->kernel_height == 3 && layer->kernel_width == 3 &&
                                     layer->dilation_y == 1 && layer->dilation_x == 1);
  int8_t *padding = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  slw_fill(padding, layer->pad_value, channels);
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int32_t top = y * layer->stride_y - layer->pad_top;
      const int32_t left = x * layer->stride_x - layer->pad_left;
      const int32_t *multiplier = scales->multiplier;
      const int32_t *right = scales->shift;
      const int8_t *corner = NULL;
      const int8_t **end = window;
      const uint32_t *w = weights;
      uint32_t c = 0;
      if (is_3x3 != 0u && top >= 0 && left >= 0 && top + 2 < layer->in_height &&
          left + 2 < layer->in_width) {
        corner = data + (uint32_t)top * line + (uint32_t)left * channels;
      }
      if (corner == NULL || channels % 4u != 0u) {
        end = slw_window(layer, data, top, left, padding, window);
      }
      for (; c + 4u <= channels; c += 4u) {
        const int32_t *bias = scales->bias + c;
        int32_t s0 = bias[0];
        int32_t s1 = bias[1];
        int32_t s2 = bias[2];
        int32_t s3 = bias[3];
        if (corner != NULL) {
          w = slw_taps_3x3(corner + c, line, channels, w, &s0, &s1, &s2, &s3);
        } else {
          w = slw_taps(window, end, c, w, &s0, &s1, &s2, &s3);
        }
        slw_store_channels(&output, multiplier, right, twice_zero, c, s0, s1, s2, s3, out);
        multiplier += step;
        right += step;
        out += 4;
      }
      for (uint32_t last = 0; c < channels; ++last, ++c) {
        /* What is left of a group of four; its second and third are swapped. */
        const int16_t *v = (const int16_t *)(const void *)w + ((last * 2u) % 3u);
        int32_t sum = scales->bias[c];
        for (const int8_t **tap = window; tap != end; ++tap, v += 4) {
          sum += (*tap)[c] * *v;
        }
        *out++ = slw_requantize(&output, sum, c);
      }
    }
  }
}

static SLW_SHARED void slw_depthwise_int8(const struct slw_layer *layer, const int8_t *data,
                                          const uint32_t *weights,
                                          const struct slw_scales *scales, int8_t *out,
                                          uint8_t *workspace) {
  slw_depthwise_with(layer, data, weights, scales, out, workspace);
}
