/* Depthwise convolutions with vectors: the elements of a window that belong to one channel are put
 * beside each other, so that one instruction sums sixteen products as for a convolution (mve.c).
 *
 * Four elements of the window, for all channels, are a slot: a word of four bytes for each channel.
 * A sum takes four slots at a time, a block.  A slot is a column of the window where that has at
 * most four rows and columns: columns are then spread once, for all windows that they are in.
 *
 * The constants are a stream as for a convolution, by eight channels: the even ones, the odd ones.
 */

/* Eight channels and more; the assembly reads these fields by their offsets. */
struct slw_spread {
  const int8_t *slots[4]; /* of the first block */
  int8_t *out;
  uint32_t channels;
  const int32_t *stream;
  int32_t zero, low, high;
  uint32_t blocks, block_bytes;
};

#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
/* Four elements of `channels` channels, from `offset` on, to a slot. */
static inline void slw_spread_slot(const int8_t *const *from, uint32_t offset, int8_t *slot,
                                   uint32_t channels) {
  const int8_t *a = from[0] + offset;
  const int8_t *b = from[1] + offset;
  const int8_t *c = from[2] + offset;
  const int8_t *d = from[3] + offset;
  __asm__ volatile(
      "1: vctp.8 %[n]\n"
      "vpstttt\n"
      "vldrbt.8 q0, [%[a]], #16\n"
      "vldrbt.8 q1, [%[b]], #16\n"
      "vldrbt.8 q2, [%[c]], #16\n"
      "vldrbt.8 q3, [%[d]], #16\n"
      "subs %[n], %[n], #16\n"
      "vst40.8 {q0, q1, q2, q3}, [%[s]]\n"
      "vst41.8 {q0, q1, q2, q3}, [%[s]]\n"
      "vst42.8 {q0, q1, q2, q3}, [%[s]]\n"
      "vst43.8 {q0, q1, q2, q3}, [%[s]]!\n"
      "bhi 1b\n"
      : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [s] "+r"(slot), [n] "+r"(channels)
      :
      : "cc", "memory", "q0", "q1", "q2", "q3");
}

#define SLW_BLOCK(o0, o1, o2, o3)        \
  "vldrw.32 q0, [q4, #" #o0 "]\n"        \
  "vldrb.8 q1, [r5], #16\n"              \
  "vldrw.32 q3, [q4, #" #o1 "]\n"        \
  "vmladava.s8 r0, q0, q1\n"             \
  "vldrb.8 q7, [r5], #16\n"              \
  "vldrw.32 q0, [q4, #" #o2 "]\n"        \
  "vmladava.s8 r2, q3, q7\n"             \
  "vldrb.8 q1, [r5], #16\n"              \
  "vldrw.32 q3, [q4, #" #o3 "]\n"        \
  "vmladava.s8 r4, q0, q1\n"             \
  "vldrb.8 q7, [r5], #16\n"              \
  "vmladava.s8 r6, q3, q7\n"
#define SLW_BIASES "ldrd r0, r2, [r5], #8\n" "ldrd r4, r6, [r5], #8\n"
#define SLW_NARROW(part)                 \
  "vmov q0[2], q0[0], r0, r4\n"          \
  "vmov q0[3], q0[1], r2, r6\n"          \
  SLW_SCALE_Q0("q1", "[r5], #16", "[r5], #16") \
  "vqmovn" part ".s32 q2, q0\n"
#define SLW_EIGHT(blocks_even, blocks_odd)                                           \
  "vldrw.32 q4, [r0]\n"                                                              \
  "ldrd r3, r11, [r0, #16]\n"                                                        \
  "ldrd r5, r8, [r0, #24]\n"                                                         \
  "ldrd r1, r9, [r0, #32]\n"                                                         \
  "ldrd r12, lr, [r0, #40]\n"                                                        \
  "vdup.16 q5, r1\n"                                                                 \
  "vdup.16 q6, r9\n"                                                                 \
  "mul r1, r12, lr\n"                                                                \
  "mov r9, #32\n"                                                                    \
  "1:\n" SLW_BIASES blocks_even SLW_NARROW("b") SLW_BIASES blocks_odd SLW_NARROW("t") \
  "vqadd.s16 q2, q2, r8\n"                                                           \
  "vctp.16 r11\n"                                                                    \
  "vmax.s16 q2, q2, q5\n"                                                            \
  "subs r11, r11, #8\n"                                                              \
  "vmin.s16 q2, q2, q6\n"                                                            \
  "vadd.i32 q4, q4, r9\n"                                                            \
  "vpst\n"                                                                           \
  "vstrbt.16 q2, [r3], #8\n"                                                         \
  "bhi 1b\n"                                                                         \
  "mov r0, r5\n"
#define SLW_BLOCKS(label, ...)           \
  "mov r10, r12\n"                       \
  label ":\n" SLW_BLOCK(__VA_ARGS__)     \
  "subs r10, r10, #1\n"                  \
  "vadd.i32 q4, q4, lr\n"                \
  "bne " label "b\n"                     \
  "vsub.i32 q4, q4, r1\n"
#define SLW_EIGHT_CLOBBERS                                                                  \
  "cc", "memory", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", \
      "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"

/* Eights of channels. Returns what lies behind their constants. */
static SLW_SHARED const int32_t *slw_sum_block(const struct slw_spread *run) {
  register const void *r0 __asm__("r0") = run;
  __asm__ volatile(SLW_EIGHT(SLW_BLOCK(0, 8, 16, 24), SLW_BLOCK(4, 12, 20, 28))
                   : "+r"(r0)
                   :
                   : SLW_EIGHT_CLOBBERS);
  return (const int32_t *)r0;
}

static SLW_SHARED const int32_t *slw_sum_blocks(const struct slw_spread *run) {
  register const void *r0 __asm__("r0") = run;
  __asm__ volatile(
      SLW_EIGHT(SLW_BLOCKS("2", 0, 8, 16, 24), SLW_BLOCKS("3", 4, 12, 20, 28))
      : "+r"(r0)
      :
      : SLW_EIGHT_CLOBBERS);
  return (const int32_t *)r0;
}
#else
static inline void slw_spread_slot(const int8_t *const *from, uint32_t offset, int8_t *slot,
                                   uint32_t channels) {
  for (uint32_t i = 0; i < channels; ++i) {
    for (uint32_t k = 0; k < 4u; ++k) {
      slot[4u * i + k] = from[k][offset + i];
    }
  }
}

static SLW_SHARED const int32_t *slw_sum_blocks(const struct slw_spread *run) {
  const uint32_t words = 4u + 16u * run->blocks + 8u; /* of the constants of four channels */
  const int32_t *four = run->stream;
  for (uint32_t c = 0; c < ((run->channels + 7u) & ~7u); ++c) {
    const uint32_t lane = c % 8u / 2u;
    const int32_t *constants = four + words * (c % 2u);
    const int8_t *weights = (const int8_t *)(const void *)(constants + 4) + 16u * lane;
    const int32_t *scales = constants + words - 8u + lane;
    int32_t sum = constants[lane];
    for (uint32_t k = 0; c < run->channels && k < 16u * run->blocks; ++k) {
      sum += run->slots[k % 16u / 4u][run->block_bytes * (k / 16u) + 4u * c + k % 4u] *
             weights[64u * (k / 16u) + k % 16u];
    }
    if (c < run->channels) {
      run->out[c] = slw_scale_sum(sum, scales[0], scales[4], run->zero, run->low, run->high);
    }
    four += c % 8u == 7u ? 2u * words : 0u;
  }
  return four;
}

static inline const int32_t *slw_sum_block(const struct slw_spread *run) {
  return slw_sum_blocks(run);
}
#endif

static inline void slw_spread_of(struct slw_spread *run, const struct slw_layer *layer) {
  run->zero = layer->out_zero;
  run->low = layer->out_min;
  run->high = layer->out_max;
}

/* Windows of at most four rows and four columns, which lie beside each other.
 * workspace: four slots, then as many bytes of padding as there are channels. */
static SLW_SHARED void slw_depthwise_columns(const struct slw_layer *layer, const int8_t *data,
                                             const int32_t *stream,
                                             const struct slw_scales *scales, int8_t *out,
                                             uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  const uint32_t slot_bytes = 4u * ((channels + 15u) & ~15u);
  int8_t *slots = (int8_t *)workspace;
  int8_t *padding = slots + 4u * slot_bytes;
  const int8_t *const outside[4] = {padding, padding, padding, padding};
  const int32_t rows = layer->kernel_height;
  struct slw_spread run;
  (void)scales;
  slw_fill(padding, layer->pad_value, channels);
  slw_spread_of(&run, layer);
  run.blocks = 1;
  run.block_bytes = 0;
  run.channels = channels;
  for (int32_t y = 0; y < layer->out_height; ++y) {
    const int32_t top = y * layer->stride_y - layer->pad_top;
    const int8_t *from[4]; /* the next column; a row that the window has not is its last one */
    uint32_t step[4];
    int32_t left = -layer->pad_left;
    int32_t column = left;
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t row = top + (i < rows ? i : rows - 1) * layer->dilation_y;
      const int inside = row >= 0 && row < layer->in_height;
      from[i] = inside ? data + (uint32_t)(row * layer->in_width) * channels : padding;
      step[i] = inside ? channels : 0u;
    }
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const uint32_t phase = (uint32_t)left;
      const int32_t end = left + layer->kernel_width;
      for (; column < end; ++column) {
        const int inside = column >= 0 && column < layer->in_width;
        if (column >= left) { /* others are between windows */
          slw_spread_slot(inside ? from : outside, 0,
                          slots + slot_bytes * ((uint32_t)column & 3u), channels);
        }
        if (inside) {
          from[0] += step[0];
          from[1] += step[1];
          from[2] += step[2];
          from[3] += step[3];
        }
      }
      for (uint32_t i = 0; i < 4u; ++i) {
        run.slots[i] = slots + slot_bytes * ((phase + i) & 3u);
      }
      run.out = out;
      run.stream = stream;
      (void)slw_sum_block(&run);
      out += channels;
      left += layer->stride_x;
    }
  }
}

/* Any window.  workspace: the slots of sixteen channels, as many bytes of padding as there are
 * channels, then a pointer for each window element; slots are padded to fours, elements too. */
static SLW_SHARED void slw_depthwise_mve(const struct slw_layer *layer, const int8_t *data,
                                         const int32_t *stream, const struct slw_scales *scales,
                                         int8_t *out, uint8_t *workspace) {
  const uint32_t channels = layer->in_channels;
  const uint32_t taps = (uint32_t)(layer->kernel_height * layer->kernel_width);
  const uint32_t blocks = (taps + 15u) / 16u;
  int8_t *slots = (int8_t *)workspace;
  int8_t *padding = slots + 256u * blocks;
  const int8_t **window = (const int8_t **)(void *)(padding + ((channels + 15u) & ~15u));
  struct slw_spread run;
  (void)scales;
  slw_fill(padding, layer->pad_value, channels);
  slw_spread_of(&run, layer);
  run.blocks = blocks;
  run.block_bytes = 256;
  for (uint32_t i = 0; i < 4u; ++i) {
    run.slots[i] = slots + 64u * i;
    window[taps + i] = padding;
  }
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      (void)slw_next_window(layer, data, y, x, padding, window);
      run.stream = stream;
      for (uint32_t c = 0; c < channels; c += 16u) {
        int8_t *slot = slots;
        run.channels = channels - c < 16u ? channels - c : 16u;
        run.out = out + c;
        for (uint32_t k = 0; k < taps; k += 4u, slot += 64) {
          slw_spread_slot(window + k, c, slot, run.channels);
        }
        run.stream = blocks == 1u ? slw_sum_block(&run) : slw_sum_blocks(&run);
      }
      out += channels;
    }
  }
}
