/* Integer layers for cores that only multiply words (scalar_sums.c). */

/* A sum times a multiplier and 2^-right, rounded twice as TFLite's reference kernels do, plus the zero
 * point, clipped.  With `twice` = 2 * multiplier, v has one bit more than the first rounding keeps:
 * that is (v + 1) >> 1.  The second adds a half and takes 1 off what is negative.  Both at once, and
 * the zero point: (v + 1 + ((2 * zero + 1) << right)) >> (right + 1), with v - 1 for what is negative.
 * |sum| is below 2^29, and the zero point's term below 2^26, which whoever chose this kernel has
 * checked. */
struct slw_scale {
  int32_t twice, low, high;
  int32_t word; /* 1 + the zero point's term, and in the last five bits right + 1 */
};

static inline void slw_scale(const struct slw_scale *scale, int32_t sum, int32_t less,
                             int8_t *out) {
#if defined(__riscv_xlen) && __riscv_xlen == 64
  slw_word value = ((int64_t)sum * (uint32_t)scale->twice) >> 31;
#else
  slw_word value = (slw_word)(((int64_t)(2 * sum) * (uint32_t)scale->twice) >> 32);
#endif
  value += (value >> 31) & less;
  value = (value + (scale->word >> 5)) >> ((uint32_t)scale->word & 31u);
  if (value < scale->low) {
    value = scale->low;
  }
  if (value > scale->high) {
    value = scale->high;
  }
  *out = (int8_t)value;
}

/* The outputs of the channels of a tile, which has four sums of each pixel.  `less` is -2, or 0 where
 * every output above the lowest comes from a positive sum. */
static inline void slw_scale_channels(const struct slw_layer *layer, const int32_t *sums,
                                      const int32_t *end, const int32_t *multiplier,
                                      const int32_t *shift, uint32_t pixels, int32_t less,
                                      int8_t *out) {
  const uint32_t channels = layer->out_channels;
  const uint32_t step = layer->per_channel;
  struct slw_scale scale = {0, layer->out_min, layer->out_max, 0};
  for (; sums != end; ++sums, ++out, multiplier += step, shift += step) {
    int8_t *to = out;
    scale.twice = *multiplier;
    scale.word = *shift;
    if (pixels == 4u) {
      slw_scale(&scale, sums[0], less, to);
      to += channels;
      slw_scale(&scale, sums[4], less, to);
      to += channels;
      slw_scale(&scale, sums[8], less, to);
      to += channels;
      slw_scale(&scale, sums[12], less, to);
    } else {
      for (uint32_t i = 0; i < pixels; ++i, to += channels) {
        slw_scale(&scale, sums[4u * i], less, to);
      }
    }
  }
}

/* The outputs of up to four channels of so many pixels; sums[4 * pixel + channel]. */
static SLW_SHARED void slw_scale_tile(const struct slw_layer *layer,
                                      const struct slw_scales *scales, uint32_t c,
                                      const int32_t *sums, uint32_t pixels, int8_t *out) {
  const uint32_t left = layer->out_channels - c;
  const int32_t *multiplier = scales->multiplier + c * layer->per_channel;
  const int32_t *shift = scales->shift + c * layer->per_channel;
  const int32_t *end = sums + (left < 4u ? left : 4u);
  if (pixels != 4u) {
    slw_scale_channels(layer, sums, end, multiplier, shift, pixels, -2, out + c);
  } else if (layer->out_min < layer->out_zero) {
    slw_scale_channels(layer, sums, end, multiplier, shift, 4u, -2, out + c);
  } else {
    slw_scale_channels(layer, sums, end, multiplier, shift, 4u, 0, out + c);
  }
}

/* The outputs of one window. */
static SLW_SHARED void slw_pixel(const struct slw_layer *layer, const int8_t *window,
                                 uint32_t size, const int8_t *weights,
                                 const struct slw_scales *scales, int8_t *out) {
  const uint32_t channels = layer->out_channels;
  for (uint32_t c = 0; c < channels; c += 4u) {
    int32_t sums[8];
    if (channels - c > 4u) {
      slw_row_of_eight(weights, weights + 4u * size, window, size, scales->bias + c, sums);
      slw_scale_tile(layer, scales, c, sums, 1u, out);
      c += 4u;
      slw_scale_tile(layer, scales, c, sums + 4, 1u, out);
      weights += 8u * size;
    } else {
      slw_row(weights, window, size, scales->bias + c, sums);
      slw_scale_tile(layer, scales, c, sums, 1u, out);
    }
  }
}

/* weights: [out_channels / 4][window][4], and biases, padded with zeros; scales as slw_scale wants
 * them.  workspace: four windows. */
static SLW_SHARED void slw_conv_scalar(const struct slw_layer *layer, const int8_t *data,
                                       const int8_t *weights, const struct slw_scales *scales,
                                       int8_t *out, uint8_t *workspace) {
  const uint32_t size =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t channels = layer->out_channels;
  const uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  int32_t y = 0;
  int32_t x = 0;
  for (uint32_t pixel = 0; pixel < pixels; pixel += 4u) {
    const uint32_t count = pixels - pixel < 4u ? pixels - pixel : 4u;
    const int8_t *w = weights;
    const int8_t *windows[4];
    for (uint32_t i = 0; i < count; ++i) {
      if (layer->direct != 0u) {
        const int32_t at = y * layer->stride_y * layer->in_width + x * layer->stride_x;
        windows[i] = data + (uint32_t)at * size;
      } else {
        windows[i] = slw_gather(layer, data, y, x, (int8_t *)workspace + i * size, 1u);
      }
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    for (uint32_t c = 0; count == 4u && c < channels; c += 4u) {
      int32_t sums[16];
      w = slw_tile(w, windows, size, scales->bias + c, sums);
      slw_scale_tile(layer, scales, c, sums, 4u, out);
    }
    for (uint32_t i = 0; count != 4u && i < count; ++i) {
      slw_pixel(layer, windows[i], size, weights, scales, out + i * channels);
    }
    out += 4u * channels;
  }
}

/* A product of one row; weights as for a convolution. */
static SLW_SHARED void slw_dense_scalar(const struct slw_layer *layer, const int8_t *data,
                                        const int8_t *weights, const struct slw_scales *scales,
                                        int8_t *out, uint8_t *workspace) {
  (void)workspace;
  slw_pixel(layer, data, layer->in_channels, weights, scales, out);
}

/* The window of output pixel (y, x) into every fourth pointer, from that of four pixels before. */
static inline void slw_fourth_window(const struct slw_layer *layer, const int8_t *data, int32_t y,
                                     int32_t x, const int8_t *padding, const int8_t **window) {
  const int32_t left = x * layer->stride_x - layer->pad_left;
  const int32_t top = y * layer->stride_y - layer->pad_top;
  const int32_t right = layer->in_width - (layer->kernel_width - 1) * layer->dilation_x;
  const int32_t bottom = layer->in_height - (layer->kernel_height - 1) * layer->dilation_y;
  if (left >= 4 * layer->stride_x && left < right && top >= 0 && top < bottom) {
    /* As the pixel before, all inside: every pointer moves by four strides. */
    const uint32_t stride = 4u * (uint32_t)layer->stride_x * layer->in_channels;
    const int8_t **end = window + 4u * (uint32_t)(layer->kernel_height * layer->kernel_width);
    for (; window != end; window += 4) {
      *window += stride;
    }
    return;
  }
  for (int32_t row = top; row < top + layer->kernel_height * layer->dilation_y;
       row += layer->dilation_y) {
    const int has_row = row >= 0 && row < layer->in_height;
    int32_t column = left;
    for (int32_t kx = 0; kx < layer->kernel_width; ++kx, column += layer->dilation_x, window += 4) {
      const int inside = has_row && column >= 0 && column < layer->in_width;
      *window = inside ? data + (uint32_t)(row * layer->in_width + column) * layer->in_channels
                       : padding;
    }
  }
}

/* weights: [channels / 4][window][4]; the last four overlap those before where channels are no
 * multiple of four, and are padded with zeros where there are less.
 * workspace: channels bytes of padding, then four pointers for each window element. */
static SLW_SHARED void slw_depthwise_scalar(const struct slw_layer *layer, const int8_t *data,
                                            const int8_t *weights,
                                            const struct slw_scales *scales, int8_t *out,
                                            uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  const uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  const uint32_t taps = (uint32_t)(layer->kernel_height * layer->kernel_width);
  int8_t *padding = (int8_t *)workspace;
  const int8_t **window = (const int8_t **)(void *)(workspace + ((channels + 15u) & ~15u));
  int32_t y = 0;
  int32_t x = 0;
  slw_fill(padding, layer->pad_value, channels);
  for (uint32_t i = 0; i < 4u * taps; ++i) {
    window[i] = padding; /* what pixels after the last one read */
  }
  for (uint32_t pixel = 0; pixel < pixels; pixel += 4u) {
    const uint32_t count = pixels - pixel < 4u ? pixels - pixel : 4u;
    const int8_t *w = weights;
    for (uint32_t i = 0; i < count; ++i) {
      slw_fourth_window(layer, data, y, x, padding, window + i);
      if (++x == layer->out_width) {
        x = 0;
        ++y;
      }
    }
    for (uint32_t done = 0; done < channels; done += 4u, w += 4u * taps) {
      const uint32_t c = channels - done >= 4u || channels < 4u ? done : channels - 4u;
      int32_t sums[16];
      if (channels >= 4u) {
        slw_taps(w, window, taps, c, scales->bias + c, sums);
      } else {
        for (uint32_t at = 0; at < 16u; ++at) {
          int32_t sum = scales->bias[at % 4u];
          for (uint32_t tap = 0; at % 4u < channels && tap < taps; ++tap) {
            sum += window[4u * tap + at / 4u][at % 4u] * w[4u * tap + at % 4u];
          }
          sums[at] = sum;
        }
      }
      slw_scale_tile(layer, scales, c, sums, count, out);
    }
    out += 4u * channels;
  }
}
