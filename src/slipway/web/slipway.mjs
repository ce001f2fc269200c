// Slipway in JavaScript: models and functions that `export_library("x.wasm")` wrote, in browsers,
// workers, node and deno.  No dependency; types are in slipway.d.ts.
//
//     import * as slipway from "./slipway.mjs";
//     const model = await slipway.load("model.wasm");
//     const { output } = await model.run({ input: image });
//
// Values cross in TVM-FFI's calling convention (crt/include/slipway/abi.h): 16 bytes each, a tag and
// a payload.  What the WebAssembly side allocated belongs to a JavaScript object: `dispose()` gives
// it back, a scope does so for all that was made inside, and a finalizer catches what was forgotten.

const NONE = 0, INT = 1, BOOL = 2, FLOAT = 3, POINTER = 4, DEVICE = 6, DLTENSOR = 7;
const RAW_TEXT = 8, BYTE_ARRAY = 9, SMALL_TEXT = 11, SMALL_BYTES = 12;
const TEXT = 65, BYTES = 66, FUNCTION = 68, TENSOR = 70, MODULE = 73;
const ANY_BYTES = 16;
const SCRATCH_BYTES = 1 << 16;
const PAGES = [65536, 32768, 16384, 8192, 4096]; // of 64 KB, that shared memory may grow to
const STACK_BYTES = 1 << 18; // of a worker
const MOST_THREADS = 16;
const WORKER_START_MS = 10000;
const OPTIONS = ["onProgress", "cache", "params", "threads"];
const WARM_UP_MS = 20, MEASURED_MS = 50, MAX_PROFILE_RUNS = 10000;
const KINDS = ["int", "uint", "float", "handle", "bfloat", "complex", "bool"];
const DEVICES = { cpu: 1, cuda: 2, opencl: 4, vulkan: 7, metal: 8, webgpu: 15 };
const ARRAYS = {
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bfloat16: Uint16Array,
  bool: Uint8Array,
};
// A function `() -> v128`: what an engine without SIMD refuses.
const SIMD_PROBE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15,
  253, 98, 11,
]);
const PROBE_HEAD = [0, 97, 115, 109, 1, 0, 0, 0, 1];
const PROBES = {
  simd128: SIMD_PROBE,
  "relaxed-simd": new Uint8Array([ // i8x16.relaxed_swizzle
    ...PROBE_HEAD, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11,
  ]),
  atomics: new Uint8Array([ // i32.atomic.load of a memory that is shared
    ...PROBE_HEAD, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1, 10, 11, 1, 9, 0, 65, 0, 254, 16, 2, 0, 26, 11,
  ]),
};
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What went wrong: `name` is the class that Python or C gave it, such as "ValueError". */
export class SlipwayError extends Error {
  constructor(message, kind = "SlipwayError", options) {
    super(message, options);
    this.name = kind;
  }
}

/** A place to compute on. */
export class Device {
  constructor(type, index = 0) {
    this.deviceType = typeof type === "string" ? DEVICES[type] : type;
    this.deviceId = index;
    if (this.deviceType === undefined) {
      throw new SlipwayError(`there is no kind of device '${type}'`, "ValueError");
    }
  }
  toString() {
    const name = Object.keys(DEVICES).find((k) => DEVICES[k] === this.deviceType);
    return `${name ?? this.deviceType}(${this.deviceId})`;
  }
}

/** A number with a type of its own: `new Scalar(2, "float64")` is not taken for an integer. */
export class Scalar {
  constructor(value, dtype) {
    this.value = value;
    this.dtype = dtype;
  }
}

/** Something in the program's memory that has one owner. */
class Owned {
  #release;
  constructor(runtime, release) {
    this.runtime = runtime;
    this.#release = release;
    if (release) {
      runtime.keep(this, release);
    }
  }
  /** Give the memory back; using the object afterwards is an error. */
  dispose() {
    const release = this.#release;
    this.#release = undefined;
    this.isDisposed = true;
    if (release) {
      this.runtime.forget(this);
      release();
    }
  }
  check(what = this.constructor.name) {
    if (this.isDisposed) {
      throw new SlipwayError(`this ${what} was disposed of`, "ReferenceError");
    }
  }
}

/** A tensor in the program's memory (classic name: NDArray). */
export class Tensor extends Owned {
  constructor(runtime, dl, object = 0) {
    super(runtime, object ? () => runtime.exports.slw_web_release(object) : undefined);
    const view = runtime.view();
    const ndim = view.getInt32(dl + 12, true);
    const shapeAt = view.getUint32(dl + 20, true);
    this.address = dl;
    this.dataAddress = view.getUint32(dl, true) + Number(view.getBigUint64(dl + 32, true));
    this.device = new Device(view.getInt32(dl + 4, true), view.getInt32(dl + 8, true));
    this.bits = view.getUint8(dl + 17);
    this.dtype = dtypeText(view.getUint8(dl + 16), this.bits);
    this.shape = Array.from({ length: ndim }, (_, i) => Number(view.getBigInt64(shapeAt + 8 * i, true)));
    this.size = this.shape.reduce((a, b) => a * b, 1);
  }
  get ndim() {
    return this.shape.length;
  }
  /** A view of the elements; it goes stale when the memory grows: read it, do not keep it. */
  get data() {
    this.check();
    const Type = arrayOf(this.dtype);
    return new Type(this.runtime.memory.buffer, this.dataAddress, this.size);
  }
  /** Copy numbers (an array, a typed array, nested arrays) or another tensor into this one. */
  copyFrom(source) {
    if (source instanceof Tensor) {
      if (source.dtype !== this.dtype || source.size !== this.size) {
        throw new SlipwayError(
          `cannot copy ${source.dtype}[${source.shape}] into ${this.dtype}[${this.shape}]`,
          "ValueError",
        );
      }
      this.data.set(source.data);
      return this;
    }
    fill(this.data, source, this.dtype, this.shape, "the tensor");
    return this;
  }
  /** Copy the elements out: a typed array that has `shape` and `dtype`; float16 becomes float32. */
  toArray() {
    const raw = this.data.slice();
    const made = isHalf(this.dtype) ? Float32Array.from(raw, (w) => fromHalf(w, this.dtype)) : raw;
    return Object.assign(made, { shape: [...this.shape], dtype: this.dtype });
  }
  /** A view of the bytes, whatever the elements are; it goes stale as `data` does. */
  raw() {
    this.check();
    return this.runtime.bytes(this.dataAddress, Math.ceil((this.size * this.bits) / 8));
  }
  toRawBytes() {
    return this.raw().slice();
  }
  /** Copy the bytes of a buffer, or of any view of one, whatever its elements are. */
  copyFromRawBytes(source) {
    const own = this.raw();
    const bytes = asBytes(source, "copyFromRawBytes");
    if (bytes.length !== own.length) {
      throw new SlipwayError(
        `the tensor has ${own.length} bytes, and ${bytes.length} were given`, "ValueError");
    }
    own.set(bytes);
    return this;
  }
}
export { Tensor as NDArray };

/** Functions by name; of a model also "default", which makes an executor. */
export class Module extends Owned {
  constructor(runtime, address, isOwned) {
    super(runtime, isOwned ? () => runtime.exports.slw_web_release(address) : undefined);
    this.address = address;
  }
  getFunction(name) {
    this.check();
    const { runtime } = this;
    return runtime.withScratch(() => {
      const out = runtime.scratch(8);
      if (runtime.exports.slw_web_get_function(this.address, runtime.text(name), out) !== 0) {
        throw runtime.error();
      }
      const view = runtime.view();
      return runtime.makeFunction(view.getUint32(out, true), view.getUint32(out + 4, true), this);
    });
  }
}

const GIVE_ADDRESSES = [
  "slw_web_get_memory", "slw_web_library", "slw_web_tensor", "slw_web_dltensor", "slw_web_function_name",
  "slw_web_error_kind", "slw_web_error_message",
];

/** The same functions, with addresses of the upper two gigabytes as positive numbers. */
function withUnsigned(functions) {
  const found = { ...functions };
  for (const name of GIVE_ADDRESSES.filter((known) => functions[known])) {
    found[name] = (...args) => functions[name](...args) >>> 0;
  }
  return found;
}

/** One program: its memory, its functions, and those that JavaScript gave it. */
export class Runtime {
  #top;
  #scratchEnd;
  #scopes = [];
  #finalizers = new FinalizationRegistry((release) => release());
  #names = new Map();
  #packed = new WeakMap(); // a JavaScript function has one index in the table
  #thrown;

  constructor(instance, metadata = {}, memory = instance.exports.memory) {
    this.metadata = metadata;
    this.exports = withUnsigned(instance.exports);
    this.memory = memory;
    this.workers = [];
    this.table = instance.exports.__indirect_function_table;
    if (!this.exports.slw_web_library) {
      throw new SlipwayError(
        "this module has no runtime inside: write it with export_library(\"x.wasm\")",
        "ArtifactError",
      );
    }
    this.#top = this.exports.slw_web_get_memory(SCRATCH_BYTES);
    this.#scratchEnd = this.#top + SCRATCH_BYTES;
    this.exports.slw_web_set_clock(this.#tableIndex(() => performance.now() * 1e6, [], 0x7c));
    const library = this.exports.slw_web_library();
    if (!library) {
      throw new SlipwayError("the page has no memory for the library", "MemoryError");
    }
    this.library = new Module(this, library, false);
  }

  /** How many threads a parallel loop is shared by; 1 where the page is not isolated. */
  get numThreads() {
    return 1 + this.workers.length;
  }
  /** Let `count` threads work on parallel loops: workers over the same memory. */
  async startThreads(module, count) {
    this.exports.slw_web_set_threads(count);
    try {
      while (this.numThreads < count) {
        this.workers.push(await this.#worker(module));
      }
    } catch (cause) {
      this.stopThreads();
      throw cause;
    }
  }
  /** End the workers; one thread goes on. */
  stopThreads() {
    this.exports.slw_web_set_threads?.(1);
    this.workers = [];
  }
  async #worker(module) {
    const stack = this.exports.slw_web_get_memory(STACK_BYTES);
    if (!stack) {
      throw new SlipwayError("the page has no memory for the stack of a worker", "MemoryError");
    }
    const giveBack = () => this.exports.slw_web_give_memory(stack);
    try {
      return await startedWorker({ module, memory: this.memory, stack: stack + STACK_BYTES }, giveBack);
    } catch (cause) {
      giveBack();
      throw new SlipwayError(
        `a worker for a second thread did not start: ${said(cause)}. thread.mjs must be beside ${import.meta.url}, ` +
          "from the same server; load(..., { threads: 1 }) needs none",
        "UnsupportedError", { cause });
    }
  }

  // Classic names.
  systemLib() {
    return this.library;
  }
  cpu(index = 0) {
    return new Device("cpu", index);
  }
  device(type, index = 0) {
    return new Device(type, index);
  }
  scalar(value, dtype) {
    return new Scalar(value, dtype);
  }
  /** The functions that the module was compiled with. */
  listFunctionNames() {
    const count = this.exports.slw_web_num_functions();
    return Array.from({ length: count }, (_, i) => this.readText(this.exports.slw_web_function_name(i)));
  }

  /** Make a tensor of zeros. */
  empty(shape, dtype = "float32", device = this.cpu()) {
    const sizes = typeof shape === "number" ? [shape] : Array.isArray(shape) || ArrayBuffer.isView(shape) ? [...shape] : [NaN];
    if (!sizes.every((n) => typeof n === "bigint" || Number.isSafeInteger(n))) {
      throw new SlipwayError(`a shape is a list of whole numbers, and ${shown(shape)} is none`, "TypeError");
    }
    const { code, bits } = dtypeParts(dtype);
    if (device.deviceType !== DEVICES.cpu) {
      throw new SlipwayError(`tensors are made on cpu(0) here, not on ${device}`, "ValueError");
    }
    return this.withScratch(() => {
      const at = this.scratch(8 * Math.max(1, sizes.length));
      sizes.forEach((n, i) => this.view().setBigInt64(at + 8 * i, BigInt(n), true));
      const made = this.exports.slw_web_tensor(at, sizes.length, code, bits);
      if (!made) {
        throw new SlipwayError(
          `no tensor of shape [${sizes}] and dtype ${dtype}: the shape is not one, or the page has no ` +
            "memory for it", "ValueError");
      }
      return this.tensorOf(made);
    });
  }
  /** The tensor that an object of the program is; the object belongs to it. */
  tensorOf(object) {
    return new Tensor(this, this.exports.slw_web_dltensor(object), object);
  }
  /** Make a tensor of numbers; typed arrays keep their type. */
  tensor(values, shape, dtype) {
    const found = shapeOf(values);
    const numbers = shape && ArrayBuffer.isView(values) ? values.subarray() : values; // a shape that is said is another one
    return this.empty(shape ?? found, dtype ?? dtypeOf(values)).copyFrom(numbers);
  }

  /** Let compiled code find `func` as `name`. */
  registerFunc(name, func, override = false) {
    if (typeof name !== "string" || typeof func !== "function") {
      throw new SlipwayError(
        `registerFunc takes a name and a function, and got ${shown(name)} and ${shown(func)}`, "TypeError");
    }
    if (this.#names.has(name) && !override) {
      throw new SlipwayError(
        `a function '${name}' is registered already: pass override = true to replace it`,
        "ValueError");
    }
    const packed = this.#wrapped(func);
    const replaced = this.#names.get(name);
    if (replaced) { // compiled code remembers what it found: its index in the table changes
      this.table.set(replaced.tableIndex, this.table.get(packed.tableIndex));
      return;
    }
    this.withScratch(() => {
      const text = this.text(name);
      const size = encoder.encode(name).length;
      if (this.exports.slw_web_register(text, size, packed.tableIndex) !== 0) {
        throw new SlipwayError("the page has no memory for the name", "MemoryError");
      }
    });
    this.#names.set(name, packed);
  }
  getGlobalFunc(name) {
    const found = this.#names.get(name);
    if (!found) {
      const known = [...this.#names.keys()].join(", ") || "none";
      throw new SlipwayError(
        `there is no global function '${name}'; registered are: ${known}`, "ValueError");
    }
    return found;
  }
  listGlobalFuncNames() {
    return [...this.#names.keys()];
  }
  removeGlobalFunc(name) {
    this.#names.delete(name);
    this.withScratch(() => {
      this.exports.slw_web_remove(this.text(name), encoder.encode(name).length);
    });
  }
  isPackedFunc(value) {
    return typeof value === "function" && value.tableIndex !== undefined;
  }
  /** Make a function that compiled code can call, and JavaScript too; one of another program is
   * called there. */
  toPackedFunc(func) {
    if (this.isPackedFunc(func) && func.runtime === this) {
      return func;
    }
    if (typeof func !== "function") {
      throw new SlipwayError(`toPackedFunc takes a function, and got ${shown(func)}`, "TypeError");
    }
    if (!this.#packed.has(func)) {
      this.#packed.set(func, this.#wrapped(func));
    }
    return this.#packed.get(func);
  }
  #wrapped(func) {
    const index = this.#tableIndex((_self, argsAt, count, resultAt) => {
      const args = argsAt >>> 0, result = resultAt >>> 0;
      try {
        const values = Array.from({ length: count }, (_, i) => this.read(args + ANY_BYTES * i, false));
        this.write(result, func(...values), true);
        return 0;
      } catch (thrown) {
        this.#thrown = thrown;
        this.withScratch(() => {
          const kind = this.text(thrown?.name ?? "Error");
          this.exports.slw_web_set_error(kind, this.text(String(thrown?.message ?? thrown)));
        });
        return -1;
      }
    }, [0x7f, 0x7f, 0x7f, 0x7f], 0x7f);
    return this.makeFunction(index, 0, undefined);
  }

  // Scopes: what is made inside is disposed of at the end.
  beginScope() {
    this.#scopes.push(new Set());
  }
  endScope() {
    const scope = this.#scopes.pop();
    if (!scope) {
      throw new SlipwayError("endScope() without beginScope()", "RuntimeError");
    }
    for (const owned of [...scope].reverse()) {
      owned.dispose();
    }
  }
  withNewScope(action) {
    this.beginScope();
    try {
      const result = action();
      if (typeof result?.then === "function") { // scopes are a stack, on which others work while it waits
        Promise.resolve(result).catch(() => {}); // it goes on with what was disposed of
        throw new SlipwayError(
          "withNewScope takes a function that is done when it returns, and this one is async: its scope would end " +
            "at the first await. Wait before, or dispose() of what it makes", "TypeError");
      }
      return result instanceof Owned ? this.moveToParentScope(result) : result;
    } finally {
      this.endScope();
    }
  }
  detachFromCurrentScope(owned) {
    this.#scopes.at(-1)?.delete(owned);
    return owned;
  }
  attachToCurrentScope(owned) {
    this.#scopes.at(-1)?.add(owned);
    return owned;
  }
  moveToParentScope(owned) {
    this.detachFromCurrentScope(owned);
    this.#scopes.at(-2)?.add(owned);
    return owned;
  }
  keep(owned, release) {
    this.#finalizers.register(owned, release, owned);
    this.attachToCurrentScope(owned);
  }
  forget(owned) {
    this.#finalizers.unregister(owned);
    for (const scope of this.#scopes) {
      scope.delete(owned);
    }
  }

  // Memory.
  view() {
    return new DataView(this.memory.buffer);
  }
  bytes(at, count) {
    return new Uint8Array(this.memory.buffer, at, count);
  }
  /** Run `action`, whose `scratch` memory is free again afterwards. */
  withScratch(action) {
    const top = this.#top;
    const blocks = this.#blocks;
    this.#blocks = [];
    try {
      return action();
    } finally {
      this.#top = top;
      for (const block of this.#blocks) {
        this.exports.slw_web_give_memory(block);
      }
      this.#blocks = blocks;
    }
  }
  #blocks = [];
  scratch(count) {
    const at = Math.ceil(this.#top / 16) * 16; // `& ~15` would make it a negative number above 2 GB
    if (at + count <= this.#scratchEnd) {
      this.#top = at + count;
      return at;
    }
    const block = this.exports.slw_web_get_memory(count);
    if (!block) {
      throw new SlipwayError(`the page has no memory for ${count} bytes`, "MemoryError");
    }
    this.#blocks.push(block);
    return block;
  }
  text(string) {
    const data = encoder.encode(string);
    const at = this.scratch(data.length + 1);
    this.bytes(at, data.length).set(data);
    this.bytes(at + data.length, 1)[0] = 0;
    return at;
  }
  /** The SHA-256 of bytes, in hexadecimal digits; pages from plain http have no other. */
  sha256(bytes) {
    return this.withScratch(() => {
      const digest = this.scratch(32);
      const at = this.scratch(Math.max(1, bytes.length));
      this.bytes(at, bytes.length).set(bytes);
      this.exports.slw_web_sha256(at, bytes.length, digest);
      return Array.from(this.bytes(digest, 32), (byte) => byte.toString(16).padStart(2, "0")).join("");
    });
  }
  readText(at) {
    const all = new Uint8Array(this.memory.buffer);
    return decoder.decode(all.slice(at, all.indexOf(0, at)));
  }

  // Calls.
  error() {
    const message = this.readText(this.exports.slw_web_error_message());
    const kind = this.readText(this.exports.slw_web_error_kind()) || "RuntimeError";
    this.exports.slw_web_clear_error();
    const thrown = this.#thrown;
    this.#thrown = undefined;
    if (thrown instanceof Error && thrown.message === message) {
      return thrown; // what a JavaScript function threw comes out as it was
    }
    return new SlipwayError(message || "a compiled function failed and did not say why", kind);
  }
  makeFunction(tableIndex, self, owner) {
    const call = (...args) => {
      owner?.check?.();
      return this.#call(tableIndex, self, args);
    };
    return Object.assign(call, { runtime: this, tableIndex, self, owner, dispose() {} });
  }
  #call(tableIndex, self, args) {
    return this.withScratch(() => {
      const list = this.scratch(ANY_BYTES * Math.max(1, args.length));
      const result = this.scratch(ANY_BYTES);
      this.bytes(result, ANY_BYTES).fill(0);
      const made = args.filter((_, i) => this.write(list + ANY_BYTES * i, args[i], false));
      try {
        if (this.#enter(this.table.get(tableIndex), self, list, args.length, result) !== 0) {
          throw this.error();
        }
      } finally {
        args.forEach((value, i) => made.includes(value) && this.#drop(list + ANY_BYTES * i));
      }
      return this.read(result, true);
    });
  }
  #enter(entry, ...args) {
    try {
      return entry(...args);
    } catch (trap) {
      if (!(trap instanceof WebAssembly.RuntimeError)) {
        throw trap;
      }
      throw new SlipwayError(
        `the program stopped (${trap.message}): load it again before using it further`,
        "RuntimeError", { cause: trap });
    }
  }
  #drop(at) {
    this.exports.slw_web_release(this.view().getUint32(at + 8, true));
  }

  /** Write a value; returns whether an object was made for it.  A result owns its objects. */
  write(at, value, isResult) {
    const view = this.view();
    view.setBigUint64(at, 0n, true);
    view.setBigUint64(at + 8, 0n, true);
    const tag = (type) => this.view().setInt32(at, type, true);
    if (value === undefined || value === null) {
      return false;
    }
    if (value instanceof Scalar) {
      const isReal = value.dtype.startsWith("float");
      tag(isReal ? FLOAT : INT);
      if (isReal) {
        view.setFloat64(at + 8, Number(value.value), true);
      } else {
        view.setBigInt64(at + 8, BigInt(value.value), true);
      }
    } else if (typeof value === "number" && !(Number.isInteger(value) && Math.abs(value) < 2 ** 63)) {
      tag(FLOAT);
      view.setFloat64(at + 8, value, true);
    } else if (typeof value === "number" || typeof value === "bigint") {
      if (BigInt.asIntN(64, BigInt(value)) !== BigInt(value)) {
        throw new SlipwayError(`${value} does not fit into an integer of 64 bits`, "OverflowError");
      }
      tag(INT);
      view.setBigInt64(at + 8, BigInt(value), true);
    } else if (typeof value === "boolean") {
      tag(BOOL);
      view.setBigInt64(at + 8, BigInt(value), true);
    } else if (typeof value === "string") {
      return this.#writeText(at, value, isResult);
    } else if (value instanceof Device) {
      tag(DEVICE);
      view.setInt32(at + 8, value.deviceType, true);
      view.setInt32(at + 12, value.deviceId, true);
    } else if (value instanceof Tensor) {
      value.check();
      this.#checkOwn(value, "copy it: `tensor(other.toArray())`");
      this.#writeTensor(at, value, isResult);
    } else if (value instanceof Module) {
      value.check();
      this.#checkOwn(value, "pass a function that calls it");
      tag(MODULE);
      view.setUint32(at + 8, value.address, true);
      if (isResult) {
        this.exports.slw_web_retain(value.address);
      }
    } else if (value instanceof Uint8Array && isResult) {
      this.#writeBytes(at, value);
    } else if (value instanceof Uint8Array) {
      const data = this.scratch(value.length);
      const pair = this.scratch(8);
      this.bytes(data, value.length).set(value);
      this.view().setUint32(pair, data, true);
      this.view().setUint32(pair + 4, value.length, true);
      tag(BYTE_ARRAY);
      this.view().setUint32(at + 8, pair, true);
    } else if (typeof value === "function") {
      return this.#writeFunction(at, this.toPackedFunc(value), isResult);
    } else {
      throw new SlipwayError(
        `a value of type ${value?.constructor?.name ?? typeof value} cannot be passed: pass numbers, ` +
          "text, booleans, Uint8Array, functions, or tensors made with tensor() or empty()",
        "TypeError");
    }
    return false;
  }
  #checkOwn(value, advice) {
    if (value.runtime !== this) { // its address means something else here
      throw new SlipwayError(
        `this ${value.constructor.name} lies in the memory of another program: ${advice}`, "ValueError");
    }
  }
  #writeFunction(at, { tableIndex, self, owner, object }, isResult) {
    if (object) { // it came from the program as an object, and goes back as the same one
      this.view().setInt32(at, FUNCTION, true);
      this.view().setUint32(at + 8, object, true);
      if (isResult) {
        this.exports.slw_web_retain(object);
      }
      return false;
    }
    const keeper = owner?.address ?? 0;
    if (this.exports.slw_web_set_function(at, tableIndex, self, keeper) !== 0) {
      throw new SlipwayError("the page has no memory for a function", "MemoryError");
    }
    return true;
  }
  #writeText(at, value, isResult) {
    if (!isResult && !value.includes("\0")) { // which would end it
      const text = this.text(value);
      this.view().setInt32(at, RAW_TEXT, true);
      this.view().setUint32(at + 8, text, true);
      return false;
    }
    this.withScratch(() => {
      const size = encoder.encode(value).length;
      if (this.exports.slw_web_set_text(at, this.text(value), size) !== 0) {
        throw new SlipwayError("the page has no memory for a text", "MemoryError");
      }
    });
    return this.view().getInt32(at, true) >= TEXT; // short ones lie in the value itself
  }
  #writeBytes(at, value) {
    this.withScratch(() => {
      const data = this.scratch(Math.max(1, value.length));
      this.bytes(data, value.length).set(value);
      if (this.exports.slw_web_set_bytes(at, data, value.length) !== 0) {
        throw new SlipwayError("the page has no memory for bytes", "MemoryError");
      }
    });
  }
  #writeTensor(at, value, isResult) {
    const view = this.view();
    if (!isResult) {
      view.setInt32(at, DLTENSOR, true);
      view.setUint32(at + 8, value.address, true);
      return;
    }
    const copy = this.empty(value.shape, value.dtype).copyFrom(value);
    const object = copy.address - this.#headBytes();
    this.exports.slw_web_retain(object);
    this.view().setInt32(at, TENSOR, true);
    this.view().setUint32(at + 8, object, true);
    copy.dispose();
  }
  #headBytes() {
    return 24; // TVMFFIObject, which a tensor object starts with
  }

  /** Read a value; of a result, its object belongs to what is returned. */
  read(at, isResult) {
    const view = this.view();
    const type = view.getInt32(at, true);
    const word = view.getUint32(at + 8, true);
    switch (type) {
      case NONE:
        return undefined;
      case INT: {
        const number = view.getBigInt64(at + 8, true);
        return Number.isSafeInteger(Number(number)) ? Number(number) : number;
      }
      case BOOL:
        return view.getBigInt64(at + 8, true) !== 0n;
      case FLOAT:
        return view.getFloat64(at + 8, true);
      case POINTER:
        return word;
      case DEVICE:
        return new Device(view.getInt32(at + 8, true), view.getInt32(at + 12, true));
      case DLTENSOR:
        return new Tensor(this, word);
      case TENSOR:
        if (!isResult) {
          this.exports.slw_web_retain(word);
        }
        return this.tensorOf(word);
      case MODULE:
        if (!isResult) {
          this.exports.slw_web_retain(word);
        }
        return new Module(this, word, true);
      case FUNCTION:
        return this.#readFunction(at, word, isResult);
      case RAW_TEXT:
      case BYTE_ARRAY:
      case SMALL_TEXT:
      case SMALL_BYTES:
      case TEXT:
      case BYTES:
        return this.#readBytes(at, type, word, isResult);
      default:
        throw new SlipwayError(`a value with the tag ${type} cannot be read here`, "TypeError");
    }
  }
  #readFunction(at, object, isResult) {
    return this.withScratch(() => {
      const out = this.scratch(8);
      this.exports.slw_web_read_function(at, out);
      if (!isResult) {
        this.exports.slw_web_retain(object);
      }
      const view = this.view();
      const made = this.makeFunction(view.getUint32(out, true), view.getUint32(out + 4, true));
      made.object = object;
      const release = () => this.exports.slw_web_release(object);
      this.#finalizers.register(made, release, made);
      made.dispose = () => {
        this.#finalizers.unregister(made);
        made.dispose = () => {};
        release();
      };
      return made;
    });
  }
  #readBytes(at, type, object, isResult) {
    return this.withScratch(() => {
      const pair = this.scratch(8);
      if (this.exports.slw_web_get_bytes(at, pair) !== 0) {
        throw new SlipwayError("a text could not be read", "TypeError");
      }
      const view = this.view();
      const data = this.bytes(view.getUint32(pair, true), view.getUint32(pair + 4, true)).slice();
      if (isResult && type >= TEXT) {
        this.exports.slw_web_release(object);
      }
      return type === RAW_TEXT || type === SMALL_TEXT || type === TEXT ? decoder.decode(data) : data;
    });
  }

  /** Put a JavaScript function into the table: a module of 40 bytes gives it a type. */
  #tableIndex(func, params, result) {
    const type = [0x60, params.length, ...params, 1, result];
    const bytes = new Uint8Array([
      0, 97, 115, 109, 1, 0, 0, 0,
      1, type.length + 1, 1, ...type, // the type
      2, 7, 1, 1, 101, 1, 102, 0, 0, // import "e" "f"
      7, 5, 1, 1, 102, 0, 0, // export "f"
    ]);
    const made = new WebAssembly.Instance(new WebAssembly.Module(bytes), { e: { f: func } });
    const index = this.table.grow(1);
    this.table.set(index, made.exports.f);
    return index;
  }
}

/** Make the executor of a program that holds a model. */
function executorOf(runtime) {
  try {
    return runtime.library.getFunction("default")(runtime.cpu());
  } catch (cause) {
    if (cause.name !== "AttributeError") {
      throw cause;
    }
    const names = runtime.listFunctionNames();
    throw new SlipwayError(
      `this module holds no model, but the functions ${names.join(", ").slice(0, 200)}: instantiate() gives them, ` +
        `(await instantiate(source)).systemLib().getFunction("${names[0]}")`, "ArtifactError", { cause });
  }
}

/** A model: its inputs and outputs by name, and the executor's functions underneath. */
export class Model {
  #functions = new Map();

  constructor(runtime) {
    this.runtime = runtime;
    this.module = executorOf(runtime);
    const given = this.#describe("get_input_info", runtime.metadata.inputs);
    this.inputs = given.filter(({ role }) => role === "input").map(({ role, ...about }) => about);
    this.states = given.filter(({ role }) => role === "state").map(({ role, ...about }) => about);
    this.outputs = this.#describe("get_output_info", runtime.metadata.outputs).map(({ role, ...about }) => about);
    this.openSizes = runtime.metadata.open_sizes ?? [];
    if (this.outputs.length === 1 && this.outputs[0].name === "output0") {
      this.outputs[0].name = "output";
    }
  }
  /** A function of the executor: set_input, run, get_output, profile, ... */
  getFunction(name) {
    this.module.check("model");
    if (!this.#functions.has(name)) {
      this.#functions.set(name, this.module.getFunction(name));
    }
    return this.#functions.get(name);
  }
  #describe(name, known = []) {
    const lines = this.getFunction(name)().split("\n").filter(Boolean);
    return lines.map((line) => line.split("\t")).map(([label, dtype, extents, role], i) => {
      const shape = extents ? extents.split(",").map(Number) : [];
      const about = role === "output" ? known[i] : known.find((input) => input.name === label);
      return { name: label, dtype, shape, axes: about?.shape ?? shape, role };
    });
  }
  /** Set inputs, run, and copy the outputs out: `{name: typed array with shape and dtype}`. */
  async run(inputs = {}) {
    return this.runSync(inputs);
  }
  runSync(inputs = {}) {
    if (!isRecord(inputs) || inputs instanceof Tensor) {
      const names = this.inputs.map(({ name }) => `${name}: numbers`).join(", ");
      throw new SlipwayError(
        `run takes an object of inputs by name, { ${names} }, and got ${shown(inputs)}`, "TypeError");
    }
    for (const [name, value] of Object.entries(inputs)) {
      this.setInput(name, value);
    }
    this.getFunction("run")();
    const found = Object.fromEntries(this.outputs.map(({ name }, i) => [name, this.getOutput(i)]));
    if (this.outputs.length === 1 && !("output" in found)) { // whatever the model calls it
      Object.defineProperty(found, "output", { value: found[this.outputs[0].name] });
    }
    return found;
  }
  /** Set an input, or what a state holds; an input of open dimensions takes any of their sizes. */
  setInput(name, value) {
    const about = [...this.inputs, ...this.states].find((input) => input.name === name);
    if (!about) {
      const known = this.inputs.map((input) => `'${input.name}'`).join(", ");
      throw new SlipwayError(`the model has no input '${name}'. Its inputs are: ${known}`, "ValueError");
    }
    if (value instanceof Tensor && value.runtime === this.runtime) {
      this.getFunction("set_input")(name, value);
      return;
    }
    const numbers = value instanceof Tensor ? value.toArray() : value;
    const isOpen = about.axes.some((axis) => typeof axis !== "number");
    const tensor = isOpen
      ? this.runtime.empty(openShape(about, numbers), about.dtype)
      : this.getFunction("get_input")(name);
    try {
      fill(tensor.data, numbers, tensor.dtype, tensor.shape, `input '${name}'`);
      if (isOpen) {
        this.getFunction("set_input")(name, tensor);
      }
    } finally {
      tensor.dispose();
    }
  }
  /** Let the states hold again what they held at first. */
  reset() {
    this.getFunction("reset_states")();
  }
  /** What the states hold: `{name: typed array with shape and dtype}`, for `loadState`. */
  saveState() {
    return Object.fromEntries(this.states.map(({ name }) => {
      const held = this.getFunction("get_input")(name);
      try {
        return [name, held.toArray()];
      } finally {
        held.dispose();
      }
    }));
  }
  loadState(saved) {
    const names = (list) => [...list].sort().map((name) => `'${name}'`).join(", ") || "none";
    const [given, own] = [names(Object.keys(saved ?? {})), names(this.states.map(({ name }) => name))];
    if (given !== own) {
      throw new SlipwayError(
        `what was saved has the states ${given}, and this model has ${own}: save them of the same model`,
        "ValueError");
    }
    for (const [name, value] of Object.entries(saved)) {
      this.setInput(name, value);
    }
  }
  getOutput(index) {
    const found = this.getFunction("get_output")(index);
    try {
      return found.toArray();
    } finally {
      found.dispose();
    }
  }
  /** Set parameters from the bytes of `save_param_dict`; returns how many. */
  loadParams(bytes) {
    return this.getFunction("load_params")(asBytes(bytes, "loadParams"));
  }
  /** Milliseconds of each layer: the median of `repeat` measurements, each of several runs where
   * one is short: a page's clock has steps of up to 0.1 ms, which averages over many runs undo. */
  profile(repeat = 10) {
    const profile = this.#profiler();
    const run = this.getFunction("run");
    const started = performance.now();
    let runs = 0;
    let ms = 0;
    for (; ms < WARM_UP_MS; ++runs) {
      run();
      ms = performance.now() - started;
    }
    const number = Math.min(MAX_PROFILE_RUNS, Math.max(1, Math.round((MEASURED_MS * runs) / ms)));
    const raw = profile(number, repeat);
    const seconds = new Float64Array(raw.buffer, raw.byteOffset, raw.byteLength / 8);
    const names = this.getFunction("get_node_info")().split("\n").filter(Boolean);
    return names
      .map((line, node) => {
        const [name, func] = line.split("\t");
        const times = Array.from({ length: repeat }, (_, r) => seconds[r * names.length + node]);
        const layer = this.runtime.metadata.operators?.[name]?.layer || name;
        return { layer, function: func, ms: 1e3 * times.sort((a, b) => a - b)[repeat >> 1] };
      })
      .filter((layer) => layer.function && layer.function !== "__nop");
  }
  #profiler() {
    try {
      return this.getFunction("profile");
    } catch (cause) {
      if (cause.name !== "AttributeError") {
        throw cause;
      }
      throw new SlipwayError(
        "a model compiled ahead of time is one function, whose layers nobody times: build it with " +
          'Executor("graph"), or time model.run', "UnsupportedError", { cause });
    }
  }
  dispose() {
    this.module.dispose();
    this.runtime.stopThreads();
  }
}

/**
 * Load a model: a URL or path, a Response, bytes, or a compiled WebAssembly.Module.
 * `onProgress(loaded, total, file)` is told of bytes as they come, of the "model" and of "params";
 * `cache` names a browser's cache to keep the files in; `params` are the parameters of a model that
 * was written without them, in any of these forms.
 */
export async function load(source, options) {
  options = checkedOptions(options ?? {});
  const params = startedParams(options);
  let runtime, model;
  try {
    runtime = await instantiate(source, options);
    model = new Model(runtime);
    await loadParamsOf(model, options, params);
  } catch (cause) {
    params.giveUp();
    model?.dispose();
    runtime?.stopThreads();
    throw cause;
  }
  return model;
}

/** Begin to fetch parameters beside the model.  Their size is told with the model, and until then no progress. */
function startedParams({ params, onProgress, cache }) {
  const control = new AbortController();
  const progress = { loaded: 0, total: undefined };
  const tell = onProgress && ((loaded) => {
    progress.loaded = loaded;
    if (progress.total !== undefined) {
      onProgress(loaded, progress.total, "params");
    }
  });
  const get = async (isAnew) => fetched(await params, { cache, isAnew, onProgress: tell, signal: control.signal });
  const first = params === undefined ? undefined : get(false);
  first?.catch(() => {}); // it is waited for later, and belongs to nobody if the model fails before
  return {
    get,
    first,
    giveUp: () => control.abort(),
    expect(total) {
      progress.total = total;
      if (progress.loaded > 0) {
        tell(progress.loaded);
      }
    },
  };
}

function checkedOptions(options) {
  const unknown = isRecord(options) ? Object.keys(options).find((name) => !OPTIONS.includes(name)) : shown(options);
  if (unknown !== undefined) {
    throw new SlipwayError(
      `load takes the options { ${OPTIONS.join(", ")} }, and got ${isRecord(options) ? `'${unknown}'` : unknown}`,
      "TypeError");
  }
  for (const [name, type] of [["onProgress", "function"], ["cache", "string"]]) {
    if (options[name] !== undefined && options[name] !== null && typeof options[name] !== type) {
      throw new SlipwayError(`the option ${name} is a ${type}, and got ${shown(options[name])}`, "TypeError");
    }
  }
  return options;
}

async function loadParamsOf(model, { params, cache }, started) {
  const about = model.runtime.metadata.params;
  if (!about) {
    if (params !== undefined) {
      throw new SlipwayError("this model has its parameters inside: load it without `params`", "ValueError");
    }
    return;
  }
  if (params === undefined) {
    throw new SlipwayError(
      `this model was written without its parameters (${about.bytes} bytes): give the file that ` +
        'export_library(..., params_file=...) wrote beside it, load("model.wasm", { params: "model.params" })',
      "ValueError");
  }
  started.expect(about.bytes);
  const isRight = (bytes) => bytes.length === about.bytes && model.runtime.sha256(bytes) === about.sha256;
  let bytes = await started.first;
  const source = await params;
  if (!isRight(bytes) && isAddress(source)) { // some cache has those of another version of the model
    bytes = await started.get(true);
  }
  if (!isRight(bytes)) {
    await forget(source, cache);
    throw new SlipwayError(
      `these are not the parameters of this model: ${bytes.length} bytes with another sum than the ` +
        `${about.bytes} bytes ${about.sha256.slice(0, 12)}... that it was written with. Put both files on the ` +
        "server again, in binary mode", "ArtifactError");
  }
  model.loadParams(bytes);
}

function isAddress(source) {
  return (typeof source === "string" || source instanceof URL) && !isFile(source);
}

async function forget(source, cache) {
  if (isAddress(source) && cache) {
    await (await storeOf(cache))?.delete(source).catch(() => false);
  }
}

/** A cache of the browser; undefined where it offers none, or refuses (private windows do). */
async function storeOf(cache) {
  return cache ? globalThis.caches?.open(cache).catch(() => undefined) : undefined;
}

/** Bytes in any view of them; undefined for everything else. */
function bytesOf(source) {
  const isShared = (buffer) => typeof SharedArrayBuffer !== "undefined" && buffer instanceof SharedArrayBuffer;
  const buffer = ArrayBuffer.isView(source) ? source.buffer : source;
  if (!(buffer instanceof ArrayBuffer || isShared(buffer))) {
    return undefined;
  }
  const bytes = new Uint8Array(buffer, source.byteOffset ?? 0, source.byteLength);
  return isShared(buffer) ? bytes.slice() : bytes; // engines compile no memory that may change
}

function asBytes(source, taker) {
  const bytes = bytesOf(source);
  if (!bytes) {
    throw new SlipwayError(
      `${taker} takes bytes: an ArrayBuffer, or a view of one such as a Uint8Array, and got ${shown(source)}`, "TypeError");
  }
  return bytes;
}

/** Compile what is at `source`.  What a cache has of it that is no module is fetched again: it may be
 * what the server once answered in its place. */
async function compiled(source, options) {
  if (source instanceof WebAssembly.Module) {
    return source;
  }
  for (let isAnew = false; ; isAnew = true) {
    try {
      return await compile(await fetched(source, { ...options, isAnew }));
    } catch (cause) {
      if (cause.name !== "ArtifactError") {
        throw cause;
      }
      await forget(source, options.cache);
      if (isAnew || !options.cache || !isAddress(source)) {
        throw cause;
      }
    }
  }
}

/** Load functions; the classic entry: `const tvm = await instantiate(bytes)`. */
export async function instantiate(source, options) {
  options = checkedOptions(options ?? {});
  const module = await compiled(await source, options); // `fetch(...)` gives a promise
  const memory = sharedMemory(module);
  const wanted = await threadsFor(memory, options.threads);
  let instance;
  try {
    instance = await WebAssembly.instantiate(module, imports(memory));
  } catch (cause) {
    throw notStarted(cause);
  }
  const runtime = new Runtime(instance, metadataOf(module), memory);
  if (wanted > 1) {
    try {
      await runtime.startThreads(module, wanted);
    } catch (cause) {
      if (options.threads !== undefined) {
        throw cause;
      } // nobody asked: one thread runs the model as well
    }
  }
  return runtime;
}

/** The same at once, for workers: from bytes or a WebAssembly.Module. */
export function instantiateSync(source) {
  let module = source;
  if (!(source instanceof WebAssembly.Module)) {
    const bytes = bytesOf(source);
    if (!bytes) {
      throw new SlipwayError("give instantiateSync() bytes or a WebAssembly.Module", "TypeError");
    }
    checkHead(bytes);
    try {
      module = new WebAssembly.Module(bytes);
    } catch (cause) {
      throw refusal(cause);
    }
  }
  try {
    const memory = sharedMemory(module);
    const instance = new WebAssembly.Instance(module, imports(memory));
    return new Runtime(instance, metadataOf(module), memory);
  } catch (cause) {
    throw notStarted(cause);
  }
}

function notStarted(cause) {
  if (cause instanceof SlipwayError) {
    return cause;
  }
  if (cause instanceof RangeError) {
    return new SlipwayError(
      `the page has no memory for the module: ${cause.message}. Close other pages, or take a smaller model`,
      "MemoryError", { cause });
  }
  return forbidden(cause) ?? new SlipwayError(
    `the module cannot be started: ${said(cause)}. Write it with export_library("x.wasm")`,
    "ArtifactError", { cause });
}

function metadataOf(module) {
  const [about] = WebAssembly.Module.customSections(module, "slipway.metadata");
  try {
    return about ? JSON.parse(decoder.decode(about)) : {};
  } catch (cause) {
    throw new SlipwayError(
      `the module's own description is damaged: ${cause.message}. Write the file again, and copy it in ` +
        "binary mode", "ArtifactError", { cause });
  }
}

function imports(memory) {
  return memory ? { env: { memory } } : {};
}

/** Memory that workers may share, for a module that was compiled for it; else undefined. */
function sharedMemory(module) {
  const initial = metadataOf(module).shared_pages;
  if (initial === undefined) {
    return undefined;
  }
  let cause;
  for (const maximum of PAGES.filter((pages) => pages >= initial)) { // phones refuse large ones
    try {
      return new WebAssembly.Memory({ initial, maximum, shared: true });
    } catch (refused) {
      cause = refused;
    }
  }
  throw new SlipwayError(
    `this engine gives no memory of ${initial * 65536} bytes that workers may share` +
      `${cause ? `: ${cause.message}` : ""}. Compile without +atomics`, "MemoryError", { cause });
}

/** How many threads a module gets: as many as were asked for, or as the machine has. */
async function threadsFor(memory, wanted) {
  if (wanted !== undefined && !(Number.isInteger(wanted) && wanted >= 1)) {
    throw new SlipwayError(`threads is a whole number from 1 on, and ${shown(wanted)} is none`, "ValueError");
  }
  if (wanted > 1 && !memory) {
    throw new SlipwayError(
      `the module was compiled for one thread, and ${wanted} were asked for: compile it for ` +
        '"llvm -mtriple=wasm32 -mattr=+atomics"', "UnsupportedError");
  }
  const isIsolated = globalThis.crossOriginIsolated ?? true; // node has no pages
  if (wanted > 1 && !isIsolated) {
    throw new SlipwayError(
      `${wanted} threads need a page that is isolated. Serve it over https (or from the machine itself) ` +
        "with the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: " +
        "require-corp; without `threads`, one thread runs the model", "UnsupportedError");
  }
  const isSharing = typeof SharedArrayBuffer !== "undefined"; // WebKit has pages that are isolated and do not
  if (wanted > 1 && !isSharing) {
    throw new SlipwayError(
      `${wanted} threads need memory that workers share, and this engine has no SharedArrayBuffer; without ` +
        "`threads`, one thread runs the model", "UnsupportedError");
  }
  if (wanted !== undefined || !memory || !isIsolated || !isSharing || globalThis.Deno) {
    return wanted ?? 1; // deno waits for its workers, so that a program would not end
  }
  const here = globalThis.navigator?.hardwareConcurrency ?? (await nodeModule("os")).cpus().length;
  return Math.min(here, MOST_THREADS);
}

/** Start thread.mjs in a worker, and wait until it serves; `ended` is called when it does no more. */
async function startedWorker(about, ended) {
  const isNode = typeof Worker === "undefined";
  const worker = isNode
    ? new (await nodeModule("worker_threads")).Worker(new URL("./thread.mjs", import.meta.url), { execArgv: [] })
    : new Worker(new URL("./thread.mjs", import.meta.url), { type: "module" }); // as bundlers look for it
  const answered = new Promise((resolve, reject) => {
    const fail = (event) => {
      event.preventDefault?.(); // deno ends a program for it
      reject(new Error(event.message || "its script cannot be loaded"));
    };
    const hear = (data) => {
      if (data.isOver) {
        worker.terminate();
        ended();
      } else if (data.error) {
        reject(new Error(data.error));
      } else {
        resolve();
      }
    };
    const timer = setTimeout(() => reject(new Error("it does not answer")), WORKER_START_MS);
    const settle = (action) => (value) => {
      clearTimeout(timer);
      action(value);
    };
    if (isNode) {
      worker.on("message", settle(hear));
      worker.on("error", settle(fail));
    } else {
      worker.onmessage = settle(({ data }) => hear(data));
      worker.onerror = settle(fail);
    }
  });
  try {
    worker.postMessage(about);
    await answered;
  } catch (cause) {
    worker.terminate();
    throw cause;
  }
  worker.unref?.(); // a program may end while its workers wait for work
  return worker;
}

function checkHead(bytes) {
  const head = bytes.subarray(0, 4);
  if (head.length < 4 || String.fromCharCode(...head) !== "\0asm") {
    throw new SlipwayError(
      `this is no WebAssembly (its first bytes are ${[...head]}): compile for "llvm -mtriple=wasm32" and ` +
        'write export_library("x.wasm"). From a server: is the address right? Servers answer with a page ' +
        "of HTML when a file is missing", "ArtifactError");
  }
}

/** Tell whether this engine has a feature that a target may ask for: "simd128", "relaxed-simd", "atomics". */
export function hasFeature(name) {
  if (!Object.hasOwn(PROBES, name)) {
    throw new SlipwayError(`no feature is called ${JSON.stringify(name)}: there are ${Object.keys(PROBES).join(", ")}`,
      "TypeError");
  }
  return WebAssembly.validate(PROBES[name]);
}

/**
 * Return what belongs to the first features in `choices` that this engine has all of:
 * `{"relaxed-simd": "fast.wasm", simd128: "model.wasm", "": "plain.wasm"}`.  Several have a + between.
 */
export function byFeature(choices) {
  const names = Object.keys(Object(choices));
  const chosen = names.find((name) => name.split("+").filter(Boolean).every(hasFeature));
  if (chosen === undefined) {
    throw new SlipwayError(
      `this engine has none of ${names.map((name) => JSON.stringify(name)).join(", ") || "no features"}: update it, or ` +
        'give a model that was compiled with -mattr=-simd128, under the name ""', "UnsupportedError");
  }
  return choices[chosen];
}

/** What an error says, to be followed by a sentence: some engines end theirs with a full stop. */
function said(cause) {
  return String(cause.message).replace(/\.+$/, "");
}

/** The error of a page whose policy forbids WebAssembly, in each engine's words; else undefined. */
function forbidden(cause) {
  if (!/content security policy|blocked by CSP|unsafe-eval/i.test(cause.message)) {
    return undefined;
  }
  return new SlipwayError(
    `the page's Content-Security-Policy forbids WebAssembly: add 'wasm-unsafe-eval' to its script-src (${said(cause)})`,
    "UnsupportedError", { cause });
}

function refusal(cause) {
  const byPolicy = forbidden(cause);
  if (byPolicy) {
    return byPolicy;
  }
  if (!WebAssembly.validate(SIMD_PROBE)) {
    return new SlipwayError(
      "this browser has no WebAssembly SIMD: update it, or compile the model with -mattr=-simd128",
      "UnsupportedError", { cause });
  }
  return new SlipwayError(
    `this engine refuses the module: ${said(cause)}. The file may be cut off; or it needs what this ` +
      'engine lacks (+relaxed-simd): compile without, or let byFeature({"relaxed-simd": ..., simd128: ...}) ' +
      "choose between two", "ArtifactError", { cause });
}

async function compile(bytes) {
  checkHead(bytes);
  try {
    return await WebAssembly.compile(bytes);
  } catch (cause) {
    throw refusal(cause);
  }
}

async function fetched(source, { onProgress, cache, isAnew, signal } = {}) {
  const bytes = bytesOf(source);
  if (bytes) {
    return bytes;
  }
  if (typeof Blob !== "undefined" && source instanceof Blob) { // a file that was dropped on the page
    const read = new Uint8Array(await received(source, source.arrayBuffer()));
    onProgress?.(read.length, read.length, "model");
    return read;
  }
  let response = source, keep;
  if (typeof source === "string" || source instanceof URL) {
    if (isFile(source)) {
      const read = await readFrom(source);
      onProgress?.(read.length, read.length, "model");
      return read;
    }
    ({ response, keep } = await requested(source, cache, isAnew, signal));
  }
  if (typeof response?.arrayBuffer !== "function") {
    throw new SlipwayError(
      "give load() a URL, a path, bytes, a Blob, a Response or a WebAssembly.Module", "TypeError");
  }
  if (!response.ok) {
    throw new SlipwayError(`${response.url || source}: the server answered ${response.status}`, "OSError");
  }
  if (response.bodyUsed) {
    throw new SlipwayError("this Response was read already: give load() another, or its bytes", "ValueError");
  }
  const read = onProgress && response.body ? await collected(response, onProgress)
    : new Uint8Array(await received(response, response.arrayBuffer()));
  await keep?.(read);
  return read;
}

async function readFrom(path) {
  const { readFile } = await nodeModule("fs/promises");
  try {
    return new Uint8Array(await readFile(path));
  } catch (cause) {
    throw new SlipwayError(`cannot read ${path}: ${cause.message}`, "FileNotFoundError", { cause });
  }
}

/** Wait for a part of an answer. */
async function received(response, part) {
  try {
    return await part;
  } catch (cause) {
    throw new SlipwayError(
      `the connection broke while ${response.url || response.name || "the answer"} was read: ${cause.message}. Try again`,
      "OSError", { cause });
  }
}

/** A module of node's own, by a name that bundlers for pages do not look for. */
function nodeModule(name) {
  const address = `node:${name}`;
  return import(/* webpackIgnore: true */ /* @vite-ignore */ address);
}

function isFile(source) {
  if (typeof process === "undefined" || !process.versions?.node) {
    return false;
  }
  return source instanceof URL ? source.protocol === "file:" : !/^[a-z]+:\/\//.test(source);
}

/** Find a file in a cache of the browser, if that is named, or on the server; `keep` puts what was read into the cache. */
async function requested(source, cache, isAnew, signal) {
  const store = await storeOf(cache);
  const kept = isAnew ? undefined : await store?.match(source).catch(() => undefined);
  if (kept) {
    return { response: kept };
  }
  let response;
  try {
    response = await fetch(source, isAnew ? { cache: "reload", signal } : { signal });
  } catch (cause) {
    throw new SlipwayError(`cannot fetch ${source}: ${cause.message}`, "OSError", { cause });
  }
  // Not the answer itself, which may name a length before it was expanded, or be one that caches refuse.
  // A cache that is full keeps nothing, and the model runs without.
  const keep = (bytes) => store?.put(source, new Response(bytes, { headers: { "Content-Length": bytes.length } }))
    .catch(() => undefined);
  return { response, keep };
}

async function collected(response, onProgress) {
  const total = Number(response.headers.get("Content-Length")) || undefined;
  const parts = [];
  let loaded = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await received(response, reader.read());
    if (done) {
      break;
    }
    parts.push(value);
    loaded += value.length;
    onProgress(loaded, total, "model");
  }
  const bytes = new Uint8Array(loaded);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

// Types and elements.
function dtypeText(code, bits) {
  return KINDS[code] === "bool" ? "bool" : `${KINDS[code] ?? code}${bits}`;
}

function dtypeParts(dtype) {
  const found = /^([a-z]+?)(\d*)$/.exec(dtype);
  const code = KINDS.indexOf(found?.[1]);
  if (code < 0 || !ARRAYS[dtype]) {
    throw new SlipwayError(
      `there is no dtype '${dtype}' here; there are ${Object.keys(ARRAYS).join(", ")}`, "ValueError");
  }
  return { code, bits: dtype === "bool" ? 8 : Number(found[2]) };
}

function arrayOf(dtype) {
  if (!ARRAYS[dtype]) {
    throw new SlipwayError(`elements of dtype ${dtype} cannot be read here`, "TypeError");
  }
  return ARRAYS[dtype];
}

function dtypeOf(values) {
  const found = Object.keys(ARRAYS).find((k) => !isHalf(k) && k !== "bool" && values instanceof ARRAYS[k]);
  return values?.dtype ?? found ?? "float32";
}

function shapeOf(values) {
  if (values?.shape) {
    return values.shape;
  }
  if (ArrayBuffer.isView(values)) {
    return [values.length];
  }
  return Array.isArray(values) ? [values.length, ...(values.length ? shapeOf(values[0]) : [])] : [];
}

function isHalf(dtype) {
  return dtype === "float16" || dtype === "bfloat16";
}

/** The shape that numbers for an input of open dimensions have: their own; of a flat list, whose
 * shape is only its length, the one that its single open dimension leaves. */
function openShape({ name, axes, shape }, values) {
  if (!["number", "bigint", "boolean"].includes(typeof values) && (typeof values !== "object" || !values)) {
    throw noNumbers(`input '${name}'`);
  }
  const found = shapeOf(values);
  if (found.length === axes.length && (axes.length > 1 || values?.shape)) {
    return found;
  }
  const count = found.reduce((a, b) => a * b, 1);
  const open = axes.flatMap((axis, i) => (typeof axis === "number" ? [] : [i]));
  const known = axes.reduce((a, axis) => (typeof axis === "number" ? a * axis : a), 1);
  if (found.length > 1 || open.length > 1 || count % known) {
    throw new SlipwayError(
      `input '${name}' has shape [${axes}], and numbers of shape [${found}] were given: give nested ` +
        "arrays, or a tensor of that shape", "ValueError");
  }
  return shape.map((extent, i) => (i === open[0] ? count / known : extent));
}

/** Fill a typed array with as many numbers: flat ones, or nested arrays of its shape. */
function fill(target, values, dtype, shape, what) {
  const isNested = isNestedArray(values);
  if (isNested) {
    checkNested(values, shape, what);
  } else if (values?.shape?.length > 1 && !isSameButOnes(values.shape, shape)) { // what a run gave, transposed
    throw new SlipwayError(`${what} has shape [${shape}], and numbers of shape [${values.shape}] were given`, "ValueError");
  }
  const flat = typeof values === "number" || typeof values === "bigint" || typeof values === "boolean"
    ? [values]
    : isNested ? values.flat(Infinity).flatMap((v) => (ArrayBuffer.isView(v) ? [...v] : [v])) : values;
  if (typeof flat?.length !== "number" || typeof flat === "string") {
    throw noNumbers(what);
  }
  if (flat.length !== target.length) {
    throw new SlipwayError(
      `${what} has shape [${shape}] (${target.length} elements of ${dtype}), and ${flat.length} were given`,
      "ValueError");
  }
  const isWide = target instanceof BigInt64Array || target instanceof BigUint64Array;
  const isReal = target instanceof Float32Array || target instanceof Float64Array;
  const isTyped = ArrayBuffer.isView(flat);
  const isTruth = dtype === "bool"; // other bytes than 0 and 1 are no values of it
  if (isTyped && !isTruth && (flat.constructor === target.constructor || (isReal && !isWideArray(flat)))) {
    target.set(flat);
    return;
  }
  for (let i = 0; i < flat.length; ++i) {
    const value = flat[i];
    if (!isTyped && !["number", "bigint", "boolean"].includes(typeof value)) {
      throw new SlipwayError(`${what} takes numbers, and element ${i} is ${shown(value)}`, "TypeError");
    }
    if (isHalf(dtype)) {
      target[i] = toHalf(Number(value), dtype);
    } else if (isReal) {
      target[i] = Number(value);
    } else {
      const whole = isWide ? toBigInt(value, what) : Number(value);
      target[i] = whole;
      if (target[i] !== whole || (isTruth && whole > 1)) {
        throw new SlipwayError(`${what} is of ${dtype}, which ${value} (element ${i}) does not fit into`, "ValueError");
      }
    }
  }
}

function isNestedArray(values) {
  return Array.isArray(values) && values.some((v) => Array.isArray(v) || ArrayBuffer.isView(v));
}

/** Refuse nested arrays that are no block of numbers, or one of another shape but for ones. */
function checkNested(values, shape, what) {
  const extents = shapeOf(values);
  const isBlock = (part, [extent, ...rest]) => (part?.length ?? 1) === extent && (rest.length === 0
    ? !isNestedArray(part) : !ArrayBuffer.isView(part) && part.every((v) => typeof v === "object" && isBlock(v, rest)));
  if (!isBlock(values, extents)) {
    throw new SlipwayError(
      `${what} has shape [${shape}], and the nested arrays that were given are not all of the same length`, "ValueError");
  }
  if (!isSameButOnes(extents, shape)) {
    throw new SlipwayError(`${what} has shape [${shape}], and nested arrays of shape [${extents}] were given`, "ValueError");
  }
}

function isSameButOnes(a, b) {
  const long = (sizes) => Array.from(sizes).filter((n) => n !== 1).join();
  return long(a) === long(b);
}

function noNumbers(what) {
  return new SlipwayError(`${what} takes numbers: a typed array, an array, or nested arrays`, "TypeError");
}

function isWideArray(values) {
  return values instanceof BigInt64Array || values instanceof BigUint64Array;
}

/** Whether it holds values by name; a Map, a promise or a buffer holds none as properties. */
function isRecord(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) {
    return false;
  }
  const kind = Object.prototype.toString.call(value);
  return kind === "[object Object]" || Object.keys(value).length > 0;
}

/** A value as an error names it. */
function shown(value) {
  return typeof value === "string" ? `'${value.slice(0, 40)}'`
    : typeof value === "object" && value !== null ? (Array.isArray(value) ? `[${value.map(String).join(", ").slice(0, 40)}]` : kindOf(value))
    : typeof value === "function" ? "a function" : String(value).slice(0, 40);
}

function kindOf(value) {
  const name = Object.prototype.toString.call(value).slice(8, -1);
  return name === "Object" ? "an object" : `an object of kind ${name}`;
}

function toBigInt(value, what) {
  if (typeof value === "number" && !Number.isInteger(value)) {
    throw new SlipwayError(`${what} takes whole numbers, and ${value} is none`, "ValueError");
  }
  return BigInt(value);
}

const word = new DataView(new ArrayBuffer(4));

/** The bits of the nearest number of 16 bits; ties to even. */
function toHalf(value, dtype) {
  word.setFloat32(0, value);
  const bits = word.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  if (Number.isNaN(value)) {
    return dtype === "bfloat16" ? 0x7fc0 : 0x7e00;
  }
  if (dtype === "bfloat16") {
    return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
  }
  const size = Math.abs(value);
  if (size >= 65520) {
    return sign | 0x7c00;
  }
  if (size < 2 ** -14) {
    return sign | roundEven(size * 2 ** 24);
  }
  let exponent = Math.floor(Math.log2(size)); // off by one next to a power of two
  exponent += size >= 2 ** (exponent + 1) ? 1 : size < 2 ** exponent ? -1 : 0;
  return sign | (roundEven(size * 2 ** (10 - exponent)) + ((exponent + 14) << 10));
}

function roundEven(value) {
  const low = Math.floor(value);
  const fraction = value - low;
  return fraction > 0.5 || (fraction === 0.5 && low % 2 === 1) ? low + 1 : low;
}

function fromHalf(bits, dtype) {
  if (dtype === "bfloat16") {
    word.setUint32(0, bits << 16);
    return word.getFloat32(0);
  }
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) {
    return fraction ? NaN : sign * Infinity;
  }
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}
