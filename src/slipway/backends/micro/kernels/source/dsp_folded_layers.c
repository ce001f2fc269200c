/* Convolutions and products by the sums of dsp_folded.c: windows are widened, three pixels at a time.
 */
#define SLW_COPY_COST 8u /* of a row of a window, in words of an output channel */

/* The bytes of a window's row where each of them is read where it lies: whole words, or padded to
 * them where that is not much more to multiply than a padded window, which is copied first: 0. */
static inline uint32_t slw_row_bytes(const struct slw_layer *layer) {
  const uint32_t rows = (uint32_t)layer->kernel_height;
  const uint32_t size = (uint32_t)layer->kernel_width * layer->in_channels;
  const uint32_t padded = (size + 3u) & ~3u;
  const uint32_t more = rows * (padded / 4u) - (rows * size + 3u) / 4u;
  const int pays = layer->dilation_x == 1 && more * layer->out_channels <= SLW_COPY_COST * rows;
  return layer->in_channels % 4u == 0u || pays ? padded : 0u;
}

/* One row of a window, from column `left` on, into bytes; `line` is NULL outside of the data. */
static inline void slw_copy_row(const struct slw_layer *layer, const int8_t *line, int32_t left,
                                int8_t *to) {
  const uint32_t channels = layer->in_channels;
  const int32_t past = left + layer->kernel_width;
  const int32_t from = left < 0 ? 0 : left;
  const int32_t until = past > layer->in_width ? layer->in_width : past;
  if (line != NULL && layer->dilation_x == 1 && from < until) {
    slw_fill(to, layer->pad_value, (uint32_t)(from - left) * channels);
    slw_copy(to + (uint32_t)(from - left) * channels, line + (uint32_t)from * channels,
             (uint32_t)(until - from) * channels);
    slw_fill(to + (uint32_t)(until - left) * channels, layer->pad_value,
             (uint32_t)(past - until) * channels);
    return;
  }
  for (int32_t i = 0; i < layer->kernel_width; ++i, left += layer->dilation_x, to += channels) {
    if (line != NULL && left >= 0 && left < layer->in_width) {
      slw_copy(to, line + (uint32_t)left * channels, channels);
    } else {
      slw_fill(to, layer->pad_value, channels);
    }
  }
}

/* `count` bytes of padding, a multiple of 4, widened. */
static inline uint32_t *slw_widen_pad(const struct slw_layer *layer, uint32_t count, uint32_t *to) {
  const uint32_t pad = (uint32_t)(uint8_t)layer->pad_value * 0x01010101u;
  const uint32_t first = slw_even(pad ^ SLW_FLIPPED);
  for (; count > 0u; count -= 4u, to += 6) {
    to[0] = first;
    to[3] = pad ^ SLW_RAISED;
  }
  return to;
}

/* One row of a window of whole words, whose line is not NULL only within the data, widened. */
static inline uint32_t *slw_widen_row(const struct slw_layer *layer, const int8_t *line,
                                      int32_t left, uint32_t *to) {
  const uint32_t channels = layer->in_channels;
  for (int32_t i = 0; i < layer->kernel_width; ++i, left += layer->dilation_x) {
    if (line != NULL && left >= 0 && left < layer->in_width) {
      to = slw_widen_rows(to, line + (uint32_t)left * channels, channels, 0u, 1u);
    } else {
      to = slw_widen_pad(layer, channels, to);
    }
  }
  return to;
}

/* The window whose corner is (top, left), widened, into every other three words of `to`.  A row is
 * `row` bytes, of which those beyond the window have weights of 0; 0: the window as a whole is
 * copied and padded.  `bytes` has room for a row or window that is copied, NULL where none is. */
static inline void slw_column_folded(const struct slw_layer *layer, const int8_t *data, int32_t top,
                                     int32_t left, uint32_t *to, int8_t *bytes, uint32_t row,
                                     uint32_t padded) {
  const uint32_t channels = layer->in_channels;
  const uint32_t line = (uint32_t)layer->in_width * channels;
  const uint32_t all = (uint32_t)layer->in_height * line;
  const int32_t past = top + layer->kernel_height * layer->dilation_y;
  int8_t *at = bytes;
  if (layer->direct != 0u && row != 0u) {
    const uint32_t offset = (uint32_t)top * line + (uint32_t)left * channels;
    if (offset + row <= all) {
      (void)slw_widen_rows(to, data + offset, row, 0u, 1u);
      return;
    }
  }
  if (row != 0u && left >= 0 && left + layer->kernel_width <= layer->in_width &&
      layer->dilation_x == 1 && layer->dilation_y == 1) {
    /* Rows above the data, in it, and below it. */
    const int32_t first = top < 0 ? 0 : top;
    const int32_t end = past > layer->in_height ? layer->in_height : past;
    const uint32_t rows = first < end ? (uint32_t)(end - first) : 0u;
    const uint32_t offset = (uint32_t)first * line + (uint32_t)left * channels;
    if (rows != 0u && offset + (rows - 1u) * line + row <= all) {
      to = slw_widen_pad(layer, (uint32_t)(first - top) * row, to);
      to = slw_widen_rows(to, data + offset, row, line, rows);
      (void)slw_widen_pad(layer, (uint32_t)(past - end) * row, to);
      return;
    }
  }
  for (; top != past; top += layer->dilation_y) {
    const int8_t *from = top >= 0 && top < layer->in_height ? data + (uint32_t)top * line : NULL;
    if (bytes == NULL) {
      to = slw_widen_row(layer, from, left, to);
    } else if (row != 0u && from == NULL) {
      to = slw_widen_pad(layer, row, to);
    } else {
      slw_copy_row(layer, from, left, at);
      if (row != 0u) {
        to = slw_widen_rows(to, at, row, 0u, 1u);
      } else {
        at += (uint32_t)layer->kernel_width * channels;
      }
    }
  }
  if (row == 0u) {
    (void)slw_widen_rows(to, bytes, padded, 0u, 1u);
  }
}

/* All channels of up to three pixels.  What lies after the last pixel is written to it, and the
 * second of an odd last pair beside it.  A group of channels is so many words of the stream. */
static inline void slw_pixels(const uint32_t *stream, const uint32_t *end, const uint32_t *columns,
                              uint32_t words, int8_t *first, int8_t *second, int8_t *third,
                              int by_line) {
  if (by_line) {
    slw_line_pixels(stream, end, columns, words, first, second, third);
  } else {
    slw_fold_pixels(stream, end, columns, words, first, second, third);
  }
}
static inline void slw_pixels_folded(const struct slw_layer *layer, const uint32_t *columns,
                                     uint32_t words, const uint32_t *stream, uint32_t group,
                                     uint32_t count, int8_t *out, int by_line) {
  const uint32_t channels = layer->out_channels;
  const uint32_t *last_group = stream + channels / 2u * group;
  int8_t *second = count > 1u ? out + channels : out;
  int8_t *third = count > 2u ? second + channels : second;
  if (stream != last_group) {
    slw_pixels(stream, last_group, columns, words, out, second, third, by_line);
  }
  if (channels % 2u != 0u) {
    int8_t last[6];
    slw_pixels(last_group, last_group + group, columns, words, last, last + 2, last + 4, by_line);
    third[channels - 1u] = last[4];
    second[channels - 1u] = count > 1u ? last[2] : last[0];
    out[channels - 1u] = last[0];
  }
}

/* The window is padded to a multiple of 4, or its rows are.
 * workspace: 6 bytes per element, and 1 more of the window or row where channels are no multiple
 * of 4. */
static SLW_SHARED void slw_conv_streamed(const struct slw_layer *layer, const int8_t *data,
                                         const uint32_t *stream, int8_t *out, uint8_t *workspace,
                                         int by_line) {
  const uint32_t size =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t row = slw_row_bytes(layer);
  const uint32_t padded = row != 0u ? row * (uint32_t)layer->kernel_height : (size + 3u) & ~3u;
  const uint32_t group = 2u + padded / 2u + (by_line ? 3u : 6u);
  const int32_t right = layer->out_width * layer->stride_x - layer->pad_left;
  uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  uint32_t *columns = (uint32_t *)(void *)workspace;
  int8_t *bytes = NULL;
  int8_t *at = out;
  int32_t top = -layer->pad_top;
  int32_t left = -layer->pad_left;
  if (layer->in_channels % 4u != 0u) {
    bytes = (int8_t *)workspace + 6u * padded;
    if (row == 0u) {
      slw_fill(bytes + size, 0, padded - size);
    }
  }
  while (pixels > 0u) {
    const uint32_t count = pixels < 3u ? pixels : 3u;
    for (uint32_t i = 0; i < count; ++i) {
      slw_column_folded(layer, data, top, left, columns + i, bytes, row, padded);
      left += layer->stride_x;
      if (left == right) {
        left = -layer->pad_left;
        top += layer->stride_y;
      }
    }
    slw_pixels_folded(layer, columns, padded / 4u, stream, group, count, at, by_line);
    at += count * layer->out_channels;
    pixels -= count;
  }
  slw_clip(layer, out);
}
static inline void slw_conv_folded(const struct slw_layer *layer, const int8_t *data,
                                   const uint32_t *stream, const struct slw_scales *unused,
                                   int8_t *out, uint8_t *workspace) {
  (void)unused;
  slw_conv_streamed(layer, data, stream, out, workspace, 0);
}
static inline void slw_conv_line(const struct slw_layer *layer, const int8_t *data,
                                 const uint32_t *stream, const struct slw_scales *unused,
                                 int8_t *out, uint8_t *workspace) {
  (void)unused;
  slw_conv_streamed(layer, data, stream, out, workspace, 1);
}

/* One row times a matrix.  The row is padded to a multiple of 4.
 * workspace: the row, where it has another length. */
static inline void slw_row(const uint32_t *stream, const int8_t *row, uint32_t words,
                           const uint32_t *scale, int8_t *out, int by_line) {
  if (by_line) {
    slw_line_row(stream, row, words, scale, out);
  } else {
    slw_fold_row(stream, row, words, scale, out);
  }
}
static SLW_SHARED void slw_dense_streamed(const struct slw_layer *layer, const int8_t *data,
                                          const uint32_t *stream, int8_t *out, uint8_t *workspace,
                                          int by_line) {
  const uint32_t size = layer->in_channels;
  const uint32_t words = (size + 3u) / 4u;
  const uint32_t whole = layer->out_channels & ~3u;
  const uint32_t group = 4u + 4u * words + (by_line ? 5u : 0u);
  const uint32_t step = by_line ? group : 12u * layer->per_channel;
  const uint32_t *scale =
      stream + (by_line ? group - 5u : (layer->out_channels + 3u) / 4u * group);
  if (workspace != NULL) { /* size % 4u != 0u, in words that a compiler can follow */
    int8_t *row = (int8_t *)workspace;
    slw_copy(row, data, size);
    slw_fill(row + size, 0, 4u * words - size);
    data = row;
  }
  for (uint32_t c = 0; c < whole; c += 4u) {
    slw_row(stream, data, words, scale, out + c, by_line);
    stream += group;
    scale += step;
  }
  if (whole < layer->out_channels) {
    int8_t last[4];
    slw_row(stream, data, words, scale, last, by_line);
    for (uint32_t c = whole; c < layer->out_channels; ++c) {
      out[c] = last[c - whole];
    }
  }
  slw_clip(layer, out);
}
static inline void slw_dense_folded(const struct slw_layer *layer, const int8_t *data,
                                    const uint32_t *stream, const struct slw_scales *unused,
                                    int8_t *out, uint8_t *workspace) {
  (void)unused;
  slw_dense_streamed(layer, data, stream, out, workspace, 0);
}
static inline void slw_dense_line(const struct slw_layer *layer, const int8_t *data,
                                  const uint32_t *stream, const struct slw_scales *unused,
                                  int8_t *out, uint8_t *workspace) {
  (void)unused;
  slw_dense_streamed(layer, data, stream, out, workspace, 1);
}
