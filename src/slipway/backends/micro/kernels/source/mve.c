/* Integer layers sixteen bytes at a time, for cores with vectors (MVE).  Elsewhere, and without
 * optimisation, the same arrangement is computed by plain C.
 *
 * The constants of four channels lie in one stream, in the order in which they are needed: four
 * biases; the weights, sixteen elements of each channel in turn; four multipliers; four shifts.  All
 * is padded with zeros to full fours and sixteens.  Of a product all multipliers and shifts stand in
 * front, those of four channels where all have the same.
 *
 * Every right shift is at least 1 and |sum| below 2^29, which whoever chose these kernels has checked.
 */

/* A run of channels; the assembly reads these fields by their offsets. */
struct slw_vectors {
  const int8_t *a, *b;    /* windows of two pixels, each of 16 * `chunks` elements */
  uint32_t steps;         /* of the loop over them: see SLW_STEPS */
  uint32_t apart;         /* bytes between the outputs of both pixels */
  int8_t *out, *end;
  const int32_t *stream;
  int32_t zero, low, high;
  const int32_t *scales;
};

/* Twice the rounds of two chunks behind the first, and 1 where that begins with its second chunk. */
#define SLW_STEPS(chunks) ((((chunks) & 1u) != 0u) ? (chunks) : (chunks) - 2u)

#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
#define SLW_CHUNK              \
  "vldrb.8 q0, [r1], #16\n"    \
  "vldrb.8 q2, [r5], #16\n"    \
  "vldrb.8 q1, [r3], #16\n"    \
  "vmladava.s8 r0, q0, q2\n"   \
  "vldrb.8 q3, [r5], #16\n"    \
  "vmladava.s8 r8, q1, q2\n"   \
  "vldrb.8 q2, [r5], #16\n"    \
  "vmladava.s8 r2, q0, q3\n"   \
  "vmladava.s8 r10, q1, q3\n"  \
  "vldrb.8 q3, [r5], #16\n"    \
  "vmladava.s8 r4, q0, q2\n"   \
  "vmladava.s8 r12, q1, q2\n"  \
  "vmladava.s8 r6, q0, q3\n"   \
  "vmladava.s8 lr, q1, q3\n"

/* The two roundings of slw_requantize, of the sums in q0. */
#define SLW_SCALE_Q0(free, multiplier, shift) \
  "vldrw.32 " free ", " multiplier "\n"       \
  "vqrdmulh.s32 q0, q0, " free "\n"           \
  "vshr.s32 " free ", q0, #31\n"              \
  "vadd.i32 q0, q0, " free "\n"               \
  "vldrw.32 " free ", " shift "\n"            \
  "vrshl.s32 q0, q0, " free "\n"

/* Fours of channels of two pixels.  Returns what lies behind their constants.
 *
 * This takes every register.  gcc does not give away r7 where it keeps a frame pointer there: it is
 * saved. */
static SLW_SHARED const int32_t *slw_channels_4x2(const struct slw_vectors *run) {
  register const void *r0 __asm__("r0") = run;
  __asm__ volatile(
      "push {r7}\n"
      "mov r9, r0\n"
      "ldr r0, [r9, #28]\n"
      "ldrd r1, r2, [r9, #32]\n"
      "ldrd r7, r3, [r9, #16]\n"
      "ldr r5, [r9, #24]\n"
      "vdup.32 q5, r0\n"
      "vdup.32 q6, r1\n"
      "vdup.32 q7, r2\n"
      "1: ldr r11, [r9, #8]\n"
      "ldrd r1, r3, [r9]\n"
      "ldrd r0, r2, [r5]\n"
      "lsrs r11, r11, #1\n"
      "ldrd r8, r10, [r5], #8\n"
      "ldrd r4, r6, [r5]\n"
      "ldrd r12, lr, [r5], #8\n"
      "bcs 3f\n"
      "2:\n" SLW_CHUNK "3:\n" SLW_CHUNK
      "subs r11, r11, #1\n"
      "bpl 2b\n"
      "vmov q0[2], q0[0], r0, r4\n"
      "vmov q0[3], q0[1], r2, r6\n"
      "vldrw.32 q2, [r5], #16\n"
      "vmov q1[2], q1[0], r8, r12\n"
      "vmov q1[3], q1[1], r10, lr\n"
      "vqrdmulh.s32 q0, q0, q2\n"
      "vqrdmulh.s32 q1, q1, q2\n"
      "vshr.s32 q3, q0, #31\n"
      "vshr.s32 q4, q1, #31\n"
      "vldrw.32 q2, [r5], #16\n"
      "vadd.i32 q0, q0, q3\n"
      "vadd.i32 q1, q1, q4\n"
      "vrshl.s32 q0, q0, q2\n"
      "vrshl.s32 q1, q1, q2\n"
      "ldr r0, [r9, #12]\n"
      "vadd.i32 q0, q0, q5\n"
      "vadd.i32 q1, q1, q5\n"
      "vmax.s32 q0, q0, q6\n"
      "vmax.s32 q1, q1, q6\n"
      "ldr r1, [r9, #20]\n"
      "vmin.s32 q0, q0, q7\n"
      "vmin.s32 q1, q1, q7\n"
      "add r0, r0, r7\n"
      "vstrb.32 q1, [r0]\n"
      "vstrb.32 q0, [r7], #4\n"
      "cmp r7, r1\n"
      "bne 1b\n"
      "mov r0, r5\n"
      "pop {r7}\n"
      : "+r"(r0)
      :
      : "cc", "memory", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr",
        "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7");
  return (const int32_t *)r0;
}
#undef SLW_CHUNK

/* Fours of channels of one row of `steps` elements, `a`.  Their scales lie `apart` words from each
 * other, at `scales`: that moves behind them. */
static SLW_SHARED const int32_t *slw_channels_4x1(struct slw_vectors *run) {
  register void *r0 __asm__("r0") = run;
  __asm__ volatile(
      "push {r0}\n"
      "ldrd r3, r9, [r0, #16]\n"
      "ldrd r5, r8, [r0, #24]\n"
      "ldrd r10, r11, [r0, #32]\n"
      "ldr r12, [r0]\n"
      "vdup.32 q5, r8\n"
      "vdup.32 q6, r10\n"
      "vdup.32 q7, r11\n"
      "ldrd r8, r11, [r0, #8]\n"
      "ldr r10, [r0, #40]\n"
      "1: ldrd r0, r2, [r5], #8\n"
      "mov r1, r12\n"
      "ldrd r4, r6, [r5], #8\n"
      "dlstp.8 lr, r8\n"
      "2: vldrb.8 q0, [r1], #16\n"
      "vldrb.8 q1, [r5], #16\n"
      "vldrb.8 q2, [r5], #16\n"
      "vmladava.s8 r0, q0, q1\n"
      "vldrb.8 q3, [r5], #16\n"
      "vmladava.s8 r2, q0, q2\n"
      "vldrb.8 q4, [r5], #16\n"
      "vmladava.s8 r4, q0, q3\n"
      "vmladava.s8 r6, q0, q4\n"
      "letp lr, 2b\n"
      "vmov q0[2], q0[0], r0, r4\n"
      "vmov q0[3], q0[1], r2, r6\n"
      SLW_SCALE_Q0("q1", "[r10]", "[r10, #16]")
      "add r10, r10, r11, lsl #2\n"
      "vadd.i32 q0, q0, q5\n"
      "vmax.s32 q0, q0, q6\n"
      "vmin.s32 q0, q0, q7\n"
      "vstrb.32 q0, [r3], #4\n"
      "cmp r3, r9\n"
      "bne 1b\n"
      "pop {r0}\n"
      "str r10, [r0, #40]\n"
      "mov r0, r5\n"
      : "+r"(r0)
      :
      : "cc", "memory", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr",
        "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7");
  return (const int32_t *)r0;
}
#else
#define SLW_CHUNKS(steps) ((((steps) & 1u) != 0u) ? (steps) : (steps) + 2u)

static inline int8_t slw_scale_sum(int32_t sum, int32_t multiplier, int32_t shift, int32_t zero,
                                   int32_t low, int32_t high) {
  int32_t v = (int32_t)(((int64_t)sum * multiplier + 1073741824) >> 31);
  v += (v >> 31) + (int32_t)(1u << (-shift - 1));
  v = (v >> -shift) + zero;
  v = v < low ? low : v;
  return (int8_t)(v > high ? high : v);
}

/* One four of channels of one pixel. Returns what lies behind its weights. */
static inline const int32_t *slw_four(const struct slw_vectors *run, const int32_t *stream,
                                      const int32_t *scales, const int8_t *row, uint32_t size,
                                      int8_t *out) {
  const int8_t *weights = (const int8_t *)(const void *)(stream + 4);
  for (uint32_t i = 0; i < 4u; ++i) {
    int32_t sum = stream[i];
    for (uint32_t k = 0; k < size; ++k) {
      sum += row[k] * weights[64u * (k / 16u) + 16u * i + k % 16u];
    }
    out[i] = slw_scale_sum(sum, scales[i], scales[4u + i], run->zero, run->low, run->high);
  }
  return stream + 4u + 16u * ((size + 15u) / 16u);
}

static SLW_SHARED const int32_t *slw_channels_4x2(const struct slw_vectors *run) {
  const uint32_t size = 16u * SLW_CHUNKS(run->steps);
  const int32_t *stream = run->stream;
  for (int8_t *out = run->out; out != run->end; out += 4) {
    const int32_t *scales = stream + 4u + size;
    (void)slw_four(run, stream, scales, run->b, size, out + run->apart);
    (void)slw_four(run, stream, scales, run->a, size, out);
    stream = scales + 8;
  }
  return stream;
}

static SLW_SHARED const int32_t *slw_channels_4x1(struct slw_vectors *run) {
  const int32_t *stream = run->stream;
  for (int8_t *out = run->out; out != run->end; out += 4) {
    stream = slw_four(run, stream, run->scales, run->a, run->steps, out);
    run->scales += run->apart;
  }
  return stream;
}
#endif

static inline void slw_vectors_of(struct slw_vectors *run, const struct slw_layer *layer) {
  run->zero = layer->out_zero;
  run->low = layer->out_min;
  run->high = layer->out_max;
}

/* The window of the next pixel; see slw_gather. */
static inline const int8_t *slw_next_row(const struct slw_layer *layer, const int8_t *data,
                                         int32_t *y, int32_t *x, int8_t *to) {
  const int8_t *row;
  if (layer->direct != 0u && layer->in_channels % 16u == 0u) {
    const int32_t at = *y * layer->stride_y * layer->in_width + *x * layer->stride_x;
    row = data + (uint32_t)at * layer->in_channels;
  } else {
    row = slw_gather(layer, data, *y, *x, to, 16u);
  }
  if (++*x == layer->out_width) {
    *x = 0;
    ++*y;
  }
  return row;
}

/* workspace: two windows, each padded to 16. */
static SLW_SHARED void slw_conv_mve(const struct slw_layer *layer, const int8_t *data,
                                    const int32_t *stream, const struct slw_scales *scales,
                                    int8_t *out, uint8_t *workspace) {
  const uint32_t size =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t chunks = (size + 15u) / 16u;
  const uint32_t channels = layer->out_channels;
  const uint32_t fours = channels & ~3u;
  const uint32_t pixels = (uint32_t)(layer->out_height * layer->out_width);
  int8_t *first = (int8_t *)workspace;
  int8_t *second = first + 16u * chunks;
  struct slw_vectors run;
  int8_t last[8]; /* channels that do not make a four, of two pixels */
  int32_t y = 0;
  int32_t x = 0;
  (void)scales;
  slw_fill(first + size, 0, 16u * chunks - size);
  slw_fill(second + size, 0, 16u * chunks - size);
  slw_vectors_of(&run, layer);
  run.steps = SLW_STEPS(chunks);
  for (uint32_t pixel = 0; pixel < pixels; pixel += 2u) {
    run.a = slw_next_row(layer, data, &y, &x, first);
    run.b = run.a;
    run.apart = 0;
    if (pixel + 1u < pixels) {
      run.b = slw_next_row(layer, data, &y, &x, second);
      run.apart = channels;
    }
    run.stream = stream;
    if (fours != 0u) {
      run.out = out;
      run.end = out + fours;
      run.stream = slw_channels_4x2(&run);
    }
    if (fours != channels) {
      int8_t *one = out + fours;
      int8_t *other = one + run.apart;
      run.out = last;
      run.end = last + 4;
      run.apart = 4;
      (void)slw_channels_4x2(&run);
      for (uint32_t i = 0; i < channels - fours; ++i) {
        other[i] = last[4u + i];
        one[i] = last[i];
      }
    }
    out += 2u * channels;
  }
}

/* A product of one row. */
static SLW_SHARED void slw_dense_mve(const struct slw_layer *layer, const int8_t *data,
                                     const int32_t *stream, const struct slw_scales *scales,
                                     int8_t *out, uint8_t *workspace) {
  const uint32_t channels = layer->out_channels;
  const uint32_t fours = channels & ~3u;
  struct slw_vectors run;
  int8_t last[4];
  (void)scales;
  (void)workspace;
  slw_vectors_of(&run, layer);
  run.a = data;
  run.b = data;
  run.steps = layer->in_channels;
  run.scales = stream;
  run.stream = stream + 8u * (layer->per_channel != 0u ? (channels + 3u) / 4u : 1u);
  run.apart = 8u * layer->per_channel;
  if (fours != 0u) {
    run.out = out;
    run.end = out + fours;
    run.stream = slw_channels_4x1(&run);
  }
  if (fours != channels) {
    run.out = last;
    run.end = last + 4;
    (void)slw_channels_4x1(&run);
    for (uint32_t i = 0; i < channels - fours; ++i) {
      out[fours + i] = last[i];
    }
  }
}
