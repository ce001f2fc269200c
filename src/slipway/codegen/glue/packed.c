/* Argument checks and error reporting of every exported function.
 *
 * This text is part of each generated library: the C generator copies it, the LLVM generator
 * uses packed32.ll / packed64.ll, which tools/generate_glue.py makes of it.  It includes and
 * imports nothing.
 *
 * A function's parameters are described by one array of int32_t (no pointers, hence no
 * relocations), built by codegen/packed.py:
 *
 *   [0] number of parameters   [1] byte offset of the function's name behind the array start
 *   then per parameter SLW_ROW values:
 *     kind (0 tensor, 1 integer, 2 float, 3 pointer), name offset, type code, bits, lanes,
 *     ndim, device type (-1 any), alignment in bytes, first of the dimensions,
 *     number of given strides (0: compact)
 *   then dimensions and strides as (low, high) words: a value of at least 0 is fixed,
 *   -1 - k means symbol k: its first mention binds it, the others must agree.
 */

typedef signed char slw_i8;
typedef unsigned char slw_u8;
typedef unsigned short slw_u16;
typedef int slw_i32;
typedef unsigned int slw_u32;
typedef long long slw_i64;
typedef unsigned long long slw_u64;
#ifdef __UINTPTR_TYPE__
typedef __UINTPTR_TYPE__ slw_uptr;
#else
typedef unsigned long slw_uptr;
#endif

typedef struct {
  slw_i32 type_index;
  slw_u32 padding;
  union {
    slw_i64 i;
    double f;
    void *p;
  } v;
} SlwAny;

typedef struct {
  void *data;
  slw_i32 device_type;
  slw_i32 device_id;
  slw_i32 ndim;
  slw_u8 code;
  slw_u8 bits;
  slw_u16 lanes;
  slw_i64 *shape;
  slw_i64 *strides;
  slw_u64 byte_offset;
} SlwTensor;

enum { SLW_ROW = 10, SLW_HEAD = 2, SLW_TEXT = 400 };

extern void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);
extern void *__tvm_ffi__library_ctx;

/* The message under construction, and the error object that carries it where no one else can. */
static char slw_text[SLW_TEXT];
static slw_u32 slw_used;

typedef struct {
  const char *data;
  slw_uptr size;
} SlwBytes;

static struct {
  slw_u64 references;
  slw_i32 type_index;
  slw_u32 padding;
  union {
    void (*deleter)(void *self, int flags);
    slw_u64 room;
  } d;
  SlwBytes kind;
  SlwBytes message;
  SlwBytes backtrace;
  void (*update_backtrace)(void *self, const SlwBytes *backtrace, slw_i32 mode);
  void *cause_chain;
  void *extra_context;
} slw_error;

static void slw_keep(void *self, int flags) {
  (void)self;
  (void)flags;
}

static void slw_no_backtrace(void *self, const SlwBytes *backtrace, slw_i32 mode) {
  (void)self;
  (void)backtrace;
  (void)mode;
}

static void slw_put(const char *text) {
  while (*text != '\0' && slw_used < SLW_TEXT - 1) {
    slw_text[slw_used] = *text;
    ++slw_used;
    ++text;
  }
  slw_text[slw_used] = '\0';
}

/* Decimal digits by subtraction of powers: no 64-bit division, which some CPUs lack. */
static void slw_put_int(slw_i64 value) {
  slw_u64 rest = value < 0 ? 0U - (slw_u64)value : (slw_u64)value;
  slw_u64 power = 1;
  int digits = 1;
  char one[2] = {'0', '\0'};
  while (digits < 19 && power <= rest >> 3 && power * 10U <= rest) {
    power *= 10U;
    ++digits;
  }
  if (value < 0) {
    slw_put("-");
  }
  while (digits > 0) {
    int k;
    one[0] = '0';
    while (rest >= power && one[0] < '9') {
      rest -= power;
      ++one[0];
    }
    slw_put(one);
    --digits;
    power = 1;
    for (k = 1; k < digits; ++k) {
      power *= 10U;
    }
  }
}

/* The name of a kind of device by DLPack's number, as runtime/devices.py spells it. */
static void slw_put_device(slw_i32 type) {
  static const char names[17][8] = {"", "cpu", "cuda", "", "opencl", "", "", "vulkan", "metal",
                                    "", "rocm", "", "", "", "", "webgpu", "hexagon"};
  if (type > 0 && type < 17 && names[type][0] != '\0') {
    slw_put(names[type]);
    return;
  }
  slw_put("device type ");
  slw_put_int(type);
}

/* Report the error `message` of the given kind; what it returns, the function must return. */
int slw_raise(SlwAny *result, const char *kind, const char *message);
int slw_raise(SlwAny *result, const char *kind, const char *message) {
  if (__TVMFFIErrorSetRaisedFromCStr != 0) {
    __TVMFFIErrorSetRaisedFromCStr(kind, message);
    return -1;
  }
  if (__tvm_ffi__library_ctx == 0 || result == 0) {
    return -1;
  }
  slw_error.references = (1ULL << 32) | (1ULL << 30);
  slw_error.type_index = 67;
  slw_error.d.deleter = slw_keep;
  slw_error.kind.data = kind;
  slw_error.kind.size = 0;
  while (kind[slw_error.kind.size] != '\0') {
    ++slw_error.kind.size;
  }
  slw_error.message.data = message;
  slw_error.message.size = 0;
  while (message[slw_error.message.size] != '\0') {
    ++slw_error.message.size;
  }
  slw_error.backtrace.data = "";
  slw_error.backtrace.size = 0;
  slw_error.update_backtrace = slw_no_backtrace;
  slw_error.cause_chain = 0;
  slw_error.extra_context = 0;
  result->type_index = 67;
  result->padding = 0;
  result->v.i = 0;
  result->v.p = &slw_error;
  return 0;
}

static void slw_begin(const slw_i32 *spec, slw_i32 arg) {
  slw_used = 0;
  slw_put((const char *)spec + spec[1]);
  slw_put(": ");
  if (arg >= 0) {
    slw_put("argument ");
    slw_put_int(arg);
    slw_put(" (");
    slw_put((const char *)spec + spec[SLW_HEAD + arg * SLW_ROW + 1]);
    slw_put(") ");
  }
}

static int slw_end(SlwAny *result, const char *kind) { return slw_raise(result, kind, slw_text); }

static void slw_put_type(slw_i32 code, slw_i32 bits, slw_i32 lanes) {
  static const char names[7][8] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  slw_put(code >= 0 && code < 7 ? names[code] : "type");
  if (code != 6) {
    slw_put_int(bits);
  }
  if (lanes != 1) {
    slw_put("x");
    slw_put_int(lanes);
  }
}

static slw_i64 slw_wide(const slw_i32 *words) {
  return (slw_i64)(((slw_u64)(slw_u32)words[1] << 32) | (slw_u64)(slw_u32)words[0]);
}

/* Compare with, or bind, a dimension or stride; nonzero when it agrees. */
static int slw_agrees(slw_i64 wanted, slw_i64 actual, slw_i64 *symbols, slw_u8 *bound,
                      slw_i64 *expected) {
  slw_i64 symbol = -1 - wanted;
  *expected = wanted;
  if (wanted >= 0) {
    return wanted == actual;
  }
  if (bound[symbol] == 0) {
    bound[symbol] = 1;
    symbols[symbol] = actual;
    return 1;
  }
  *expected = symbols[symbol];
  return symbols[symbol] == actual;
}

static void slw_put_expected(const char *what, slw_i32 dim, slw_i64 expected, slw_i64 actual) {
  slw_put("has ");
  slw_put(what);
  slw_put("[");
  slw_put_int(dim);
  slw_put("] = ");
  slw_put_int(actual);
  slw_put(", expected ");
  slw_put_int(expected);
}

static int slw_check_tensor(const slw_i32 *spec, slw_i32 arg, const SlwTensor *tensor,
                            slw_i64 *value, slw_i64 *symbols, slw_u8 *bound, SlwAny *result) {
  const slw_i32 *row = spec + SLW_HEAD + arg * SLW_ROW;
  const slw_i32 *dims = spec + row[8];
  slw_i64 compact = 1;
  slw_i64 expected = 0;
  int empty = 0;
  slw_uptr address;
  slw_i32 d;
  if (tensor->ndim != row[5]) {
    slw_begin(spec, arg);
    slw_put("has ");
    slw_put_int(tensor->ndim);
    slw_put(" dimensions, expected ");
    slw_put_int(row[5]);
    return slw_end(result, "ValueError");
  }
  if (((slw_i32)tensor->code != row[2] && !(row[2] == 6 && tensor->code == 1)) ||
      ((slw_i32)tensor->bits != row[3] && !(row[2] == 6 && tensor->bits == 1)) ||
      (slw_i32)tensor->lanes != row[4]) {
    slw_begin(spec, arg);
    slw_put("has dtype ");
    slw_put_type(tensor->code, tensor->bits, tensor->lanes);
    slw_put(", expected ");
    slw_put_type(row[2], row[3], row[4]);
    return slw_end(result, "TypeError");
  }
  for (d = 0; d < row[5]; ++d) {
    empty |= tensor->shape[d] == 0;
    if (!slw_agrees(slw_wide(dims + 2 * d), tensor->shape[d], symbols, bound, &expected)) {
      slw_begin(spec, arg);
      slw_put_expected("shape", d, expected, tensor->shape[d]);
      return slw_end(result, "ValueError");
    }
  }
  for (d = row[5] - 1; d >= 0; --d) {
    slw_i64 stride = tensor->strides != 0 ? tensor->strides[d] : compact;
    expected = compact;
    int differs = row[9] != 0 ? !slw_agrees(slw_wide(dims + 2 * (row[5] + d)), stride, symbols,
                                            bound, &expected)
                              : stride != compact;
    if (differs && tensor->shape[d] != 1 && !empty) {
      slw_begin(spec, arg);
      slw_put_expected("strides", d, expected, stride);
      slw_put(row[9] != 0 ? "" : " (a compact array); make it contiguous");
      return slw_end(result, "ValueError");
    }
    compact *= tensor->shape[d];
  }
  if (row[6] >= 0 && tensor->device_type != row[6]) {
    slw_begin(spec, arg);
    slw_put("is on a device of kind ");
    slw_put_device(tensor->device_type);
    slw_put(", expected ");
    slw_put_device(row[6]);
    slw_put("; copy it there first");
    return slw_end(result, "ValueError");
  }
  address = (slw_uptr)tensor->data + (slw_uptr)tensor->byte_offset;
  if ((address & ((slw_uptr)row[7] - 1U)) != 0U) {
    slw_begin(spec, arg);
    slw_put("is not aligned to ");
    slw_put_int(row[7]);
    slw_put(" bytes");
    return slw_end(result, "ValueError");
  }
  if (address == 0U && !empty) {
    slw_begin(spec, arg);
    slw_put("has a null data pointer");
    return slw_end(result, "ValueError");
  }
  *value = (slw_i64)(slw_u64)address;
  return 1;
}

/* The bits of (double)value, cut off below 2^-52 of it; soft-float CPUs need a library for that. */
static slw_i64 slw_double_bits(slw_i64 value) {
  slw_u64 size = value < 0 ? 0U - (slw_u64)value : (slw_u64)value;
  slw_u64 exponent = 1023 + 63;
  if (size == 0U) {
    return 0;
  }
  while ((size >> 63) == 0U) {
    size <<= 1;
    --exponent;
  }
  size = ((size << 1) >> 12) | (exponent << 52) | (value < 0 ? 1ULL << 63 : 0U);
  return (slw_i64)size;
}

/* Check args[0..count) against spec.  On success returns 1, with values[i] the data address or the
 * scalar's bits, and symbols[k] the sizes found; else what the function must return (0 or -1). */
int slw_check_args(const slw_i32 *spec, const SlwAny *args, slw_i32 count, slw_i64 *values,
                   slw_i64 *symbols, slw_u8 *bound, SlwAny *result);
int slw_check_args(const slw_i32 *spec, const SlwAny *args, slw_i32 count, slw_i64 *values,
                   slw_i64 *symbols, slw_u8 *bound, SlwAny *result) {
  slw_i32 i;
  if (count != spec[0]) {
    slw_begin(spec, -1);
    slw_put("got ");
    slw_put_int(count);
    slw_put(" arguments, expected ");
    slw_put_int(spec[0]);
    return slw_end(result, "TypeError");
  }
  for (i = 0; i < count; ++i) {
    const slw_i32 *row = spec + SLW_HEAD + i * SLW_ROW;
    slw_i32 given = args[i].type_index;
    if (row[0] == 0) {
      const SlwTensor *tensor = 0;
      int status;
      if (given == 7) {
        tensor = (const SlwTensor *)args[i].v.p;
      } else if (given == 70) {
        tensor = (const SlwTensor *)(const void *)((const char *)args[i].v.p + 24);
      }
      if (tensor == 0) {
        slw_begin(spec, i);
        slw_put("must be a tensor");
        return slw_end(result, "TypeError");
      }
      status = slw_check_tensor(spec, i, tensor, &values[i], symbols, bound, result);
      if (status != 1) {
        return status;
      }
    } else if (row[0] == 1 && (given == 1 || given == 2)) {
      values[i] = args[i].v.i;
    } else if (row[0] == 2 && given == 3) {
      values[i] = args[i].v.i;
    } else if (row[0] == 2 && (given == 1 || given == 2)) {
      values[i] = slw_double_bits(args[i].v.i);
    } else if (row[0] == 3 && (given == 4 || given == 0)) {
      values[i] = given == 0 ? 0 : (slw_i64)(slw_u64)(slw_uptr)args[i].v.p;
    } else if (row[0] == 3 && (given == 7 || given == 70)) {
      const char *object = (const char *)args[i].v.p;
      const SlwTensor *tensor = (const SlwTensor *)(const void *)(object + (given == 70 ? 24 : 0));
      values[i] = (slw_i64)(slw_u64)((slw_uptr)tensor->data + (slw_uptr)tensor->byte_offset);
    } else {
      slw_begin(spec, i);
      slw_put(row[0] == 1 ? "must be an integer" : row[0] == 2 ? "must be a number"
                                                              : "must be a pointer");
      return slw_end(result, "TypeError");
    }
  }
  return 1;
}
