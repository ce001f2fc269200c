// One RPC session in JavaScript: the C session (crt/web/device/device.c) as WebAssembly, and what its
// hooks ask for.  Runs in a worker of a page, and in node.
//
// Every uploaded module is a program with a memory of its own.  A tensor waits in JavaScript until a
// module uses it; from then on it lies in that module's memory, where the client's reads and writes
// find it, and no call copies it.  Another module that is called with it works on a copy, which is
// copied back when the call is over.

import { Runtime, SlipwayError, instantiateSync } from "../slipway.mjs";

const FUNCTION = 68, TENSOR = 70, MODULE = 73;
const RAW_TEXT = 8, BYTE_ARRAY = 9, TEXT = 65, BYTES = 66, SMALL_TEXT = 11, SMALL_BYTES = 12;
const POINTER = 4, PLAIN = new Set([0, 1, 2, 3, 5, 6]); // none, int, bool, float, dtype, device
const ANY_BYTES = 16, HEAD_BYTES = 24, HEADER_BYTES = 16, GREETING_BYTES = 1024, OPTIONS_BYTES = 24;
const OK = 0, NOT_FOUND = 8, LIMIT = 9, MEMORY = 10, REMOTE = 12;
const RANDOM_BYTES = 65536; // of one call
export const MAX_WAITING_BYTES = 1 << 28; // that a client sent and the session has not taken

const encoder = new TextEncoder();

/** Bytes that have come, in order. */
class Inbox {
  #parts = [];
  #at = 0; // in the first part
  size = 0;

  push(bytes) {
    this.#parts.push(bytes);
    this.size += bytes.length;
  }
  /** Move `out.length` bytes out; there must be so many. */
  take(out) {
    this.size -= out.length;
    for (let done = 0; done < out.length;) {
      const first = this.#parts[0];
      const part = first.subarray(this.#at, this.#at + out.length - done);
      out.set(part, done);
      done += part.length;
      this.#at += part.length;
      if (this.#at === first.length) {
        this.#parts.shift();
        this.#at = 0;
      }
    }
  }
  /** Return the little-endian number that the next four bytes are. */
  peek() {
    let value = 0;
    for (let i = 0, part = 0, at = this.#at; i < 4; ++i, ++at) {
      while (at === this.#parts[part].length) {
        part += 1;
        at = 0;
      }
      value += this.#parts[part][at] * 2 ** (8 * i);
    }
    return value;
  }
}

/**
 * A session; `push` what comes, `close` at the end.
 *
 * `host.write(bytes, delayMs)` sends, `host.note(event, delayMs)` is told what happens: {enters,
 * timeoutMs}, {begins, timeoutMs, name}, {ends}, {loads, size}, {over}.
 */
export class Session {
  #things = new Map(); // what the C session knows by a number
  #numbers = new Map(); // the number of an object of the C session, by its address
  #count = 0;
  #files = new Map();
  #upload;
  #step = 0;
  #delayMs = 0;
  #outgoing = [];
  #inbox = new Inbox();
  isOver = false;

  constructor(program, { key, lease = "", about, token = "", needsToken = false }, host) {
    this.host = host;
    const instance = new WebAssembly.Instance(program, { page: this.#hooks() });
    this.own = new Runtime(instance);
    this.exports = instance.exports;
    this.frameBytes = this.exports.slw_device_frame_bytes();
    this.own.withScratch(() => {
      const secret = encoder.encode(token);
      const at = this.own.scratch(secret.length + 1);
      this.own.bytes(at, secret.length).set(secret);
      const texts = [key, lease, about].map((text) => this.own.text(text));
      if (this.exports.slw_device_begin(...texts, at, secret.length, needsToken ? 1 : 0) !== 0) {
        throw this.own.error();
      }
    });
  }

  /** Take bytes of the client, and handle the frames that are whole. */
  push(bytes) {
    if (this.isOver || bytes.length === 0) {
      return;
    }
    this.#inbox.push(bytes);
    while (!this.isOver && this.#hasFrame()) {
      this.#step = this.exports.slw_device_step(this.#step);
      if (this.#step < 0) {
        this.close();
      }
    }
    if (!this.isOver) {
      this.exports.slw_device_flush();
    }
  }
  close() {
    if (!this.isOver) {
      this.isOver = true;
      this.exports.slw_device_close();
      this.host.note({ over: true }, this.#delayMs);
    }
  }
  #hasFrame() {
    if (this.#inbox.size < HEADER_BYTES) {
      return false;
    }
    const size = this.#inbox.peek();
    const most = this.#step < 2 ? GREETING_BYTES : this.frameBytes;
    return size > most || this.#inbox.size >= HEADER_BYTES + size; // too large: C says so
  }

  // What C asks for.  Nothing that JavaScript throws goes through C.
  #hooks() {
    const guarded = (action, otherwise = REMOTE) => (...args) => {
      try {
        return action(...args);
      } catch (thrown) {
        this.#fail(thrown);
        return thrown instanceof RangeError ? MEMORY : otherwise;
      }
    };
    return {
      read: (at, minimum, maximum) => {
        const count = Math.min(maximum, this.#inbox.size);
        if (count < minimum) {
          return -1;
        }
        this.#inbox.take(this.own.bytes(at, count));
        return count;
      },
      write: (at, count, isLast) => {
        this.#outgoing.push(this.own.bytes(at, count).slice());
        if (isLast) { // whole frames only: who ends the session may add one of its own
          const parts = this.#outgoing;
          this.#outgoing = [];
          this.host.write(joined(parts), this.#delayMs);
        }
      },
      call: guarded((number, args, count, result) => this.#call(number, args, count, result), -1),
      time: guarded((...args) => this.#time(...args)),
      drop: (number) => this.#drop(number),
      load: guarded((name, out) => this.#load(this.own.readText(name), out)),
      find: guarded((module, name, out) => this.#find(module, this.own.readText(name), out)),
      tensor: (size) => {
        try {
          return this.#add({ content: new Uint8Array(size) });
        } catch {
          return 0;
        }
      },
      copy: guarded((number, offset, host, size, toDevice) => {
        const all = contentOf(this.#things.get(number)).subarray(offset, offset + size);
        const here = this.own.bytes(host, size);
        (toDevice ? all : here).set(toDevice ? here : all);
        return OK;
      }),
      ...this.#fileHooks(guarded),
      begins: (id, timeoutMs, name) => {
        this.host.note({ begins: id, timeoutMs: timeoutMs >>> 0, name: this.own.readText(name) });
      },
      ends: () => this.host.note({ ends: true }),
      enters: (timeoutMs) => this.host.note({ enters: true, timeoutMs: timeoutMs >>> 0 }),
      delay: () => {
        this.#delayMs = 1000; // a wrong token is answered late, so that guessing takes its time
      },
      random: (at, count) => {
        const made = crypto.getRandomValues(new Uint8Array(Math.min(count, RANDOM_BYTES)));
        this.own.bytes(at, made.length).set(made);
      },
    };
  }
  #fileHooks(guarded) {
    return {
      file_create: guarded((name, size) => {
        this.#upload = { name: this.own.readText(name), content: new Uint8Array(size) };
        return OK;
      }, LIMIT),
      file_write: (offset, at, size) => this.#upload.content.set(this.own.bytes(at, size), offset),
      file_end: (isWhole) => {
        if (isWhole) {
          this.#files.set(this.#upload.name, this.#upload.content);
        }
        this.#upload = undefined;
      },
      file_open: (name) => {
        this.#opened = this.#files.get(this.own.readText(name));
        if (!this.#opened) {
          this.#fail(noFile(this.own.readText(name)));
        }
        return this.#opened?.length ?? -1;
      },
      file_read: (offset, at, size) => {
        this.own.bytes(at, size).set(this.#opened.subarray(offset, offset + size));
      },
      file_remove: (name) => {
        const text = this.own.readText(name);
        if (this.#files.delete(text)) {
          return OK;
        }
        this.#fail(noFile(text));
        return NOT_FOUND;
      },
      file_list: (at, capacity) => {
        let lines = new Uint8Array(0);
        for (const [name, { length }] of this.#files) {
          const longer = encoder.encode(`${new TextDecoder().decode(lines)}${length} ${name}\n`);
          if (longer.length >= capacity) {
            break; // the list is cut: the reply's frame is full
          }
          lines = longer;
        }
        this.own.bytes(at, lines.length).set(lines);
        return lines.length;
      },
    };
  }
  #opened;

  #fail(thrown) {
    const isMemory = thrown instanceof RangeError && !(thrown instanceof SlipwayError);
    const kind = isMemory ? "MemoryError" : thrown?.name ?? "RuntimeError";
    const message = String(thrown?.message ?? thrown);
    this.own.withScratch(() => {
      const text = this.own.text(isMemory ? `the page has not so much memory (${message})` : message);
      this.exports.slw_web_set_error(this.own.text(kind), text);
    });
  }
  #add(thing) {
    this.#count += 1;
    this.#things.set(this.#count, thing);
    return this.#count;
  }
  #drop(number) {
    const thing = this.#things.get(number);
    this.#things.delete(number);
    this.#numbers.delete(thing?.address);
    thing?.tensor?.dispose();
    thing?.func?.dispose();
    thing?.module?.dispose();
  }
  /** Let the C session's value at `out` refer to a thing. */
  #wrap(out, type, thing, tensor = 0) {
    const number = this.#add(thing);
    if (tensor) {
      this.own.view().setUint32(tensor, number, true); // its data
    }
    if (this.exports.slw_device_wrap(type, number, tensor, out) !== 0) {
      this.#drop(number);
      throw this.own.error();
    }
    thing.address = this.own.view().getUint32(out + 8, true);
    this.#numbers.set(thing.address, number);
  }
  #thingAt(address, what) {
    const thing = this.#things.get(this.#numbers.get(address));
    if (!thing) {
      throw new SlipwayError(`that ${what} is not known here any more`, "ReferenceError");
    }
    return thing;
  }

  // Modules and functions.
  #load(name, out) {
    const content = this.#files.get(name);
    if (!content) {
      this.#fail(noFile(name));
      return NOT_FOUND;
    }
    const world = instantiateSync(content);
    this.#wrap(out, MODULE, { world, module: world.systemLib() });
    this.host.note({ loads: name, size: content.length });
    return OK;
  }
  #find(address, name, out) {
    if (!address) {
      return OK; // no functions but those of modules: the result stays None
    }
    const { world, module } = this.#thingAt(address, "module");
    let func;
    try {
      func = module.getFunction(name);
    } catch (thrown) {
      if (thrown.name !== "AttributeError") {
        throw thrown;
      }
      return OK; // the result stays None
    }
    this.#wrap(out, FUNCTION, { world, func });
    return OK;
  }

  // Calls.
  #call(number, args, count, result) {
    const { world, func } = this.#things.get(number);
    return this.#within(world, args, count, (list, failed) => {
      const out = world.scratch(ANY_BYTES);
      world.bytes(out, ANY_BYTES).fill(0);
      const entry = world.table.get(func.tableIndex);
      failed(enter(() => entry(func.self, list, count, out)));
      this.#bring(world, out, result);
      return 0;
    });
  }
  #time(functionAt, args, count, options, preprocAt, results) {
    const { world, func } = this.#thingAt(functionAt, "function");
    const before = preprocAt ? this.#thingAt(preprocAt, "function") : undefined;
    if (before && before.world !== world) {
      throw new SlipwayError("a function that runs before each measurement is of the same module", "ValueError");
    }
    if (!world.exports.slw_web_time) {
      throw new SlipwayError("this module is of an older Slipway, which timed nothing; write it again", "ArtifactError");
    }
    const repeat = this.own.view().getInt32(options + 4, true);
    return this.#within(world, args, count, (list, failed) => {
      const pair = ({ tableIndex = 0, self = 0 } = {}) => {
        const at = world.scratch(8);
        world.view().setUint32(at, tableIndex, true);
        world.view().setUint32(at + 4, self, true);
        return at;
      };
      const settings = world.scratch(OPTIONS_BYTES);
      world.bytes(settings, OPTIONS_BYTES).set(this.own.bytes(options, OPTIONS_BYTES));
      const seconds = world.scratch(8 * repeat);
      const [timed, first] = [pair(func), pair(before?.func)];
      failed(enter(() => world.exports.slw_web_time(timed, list, count, settings, first, seconds)));
      this.own.bytes(results, 8 * repeat).set(world.bytes(seconds, 8 * repeat));
      return OK;
    });
  }
  /** Run `action` with the arguments in the module's memory; bring back what was lent to it. */
  #within(world, args, count, action) {
    return world.withScratch(() => {
      const list = world.scratch(ANY_BYTES * Math.max(1, count));
      const afterwards = [];
      try {
        for (let i = 0; i < count; ++i) {
          this.#carry(args + ANY_BYTES * i, world, list + ANY_BYTES * i, afterwards);
        }
        return action(list, (status) => {
          if (status !== 0) {
            throw world.error();
          }
        });
      } finally {
        afterwards.reverse().forEach((last) => last());
      }
    });
  }
  /** Copy an argument of the session to a module's memory. */
  #carry(from, world, to, afterwards) {
    const type = this.own.view().getInt32(from, true);
    const word = this.own.view().getUint32(from + 8, true);
    world.bytes(to, ANY_BYTES).set(this.own.bytes(from, ANY_BYTES));
    const point = (address) => world.view().setBigUint64(to + 8, BigInt(address), true);
    if (PLAIN.has(type)) {
      return;
    }
    if (type === RAW_TEXT) {
      point(world.text(this.own.readText(word)));
    } else if (type === BYTE_ARRAY) {
      const view = this.own.view();
      const content = this.own.bytes(view.getUint32(word, true), view.getUint32(word + 4, true));
      const at = world.scratch(content.length + 8);
      const pair = world.scratch(8);
      world.bytes(at, content.length).set(content);
      world.view().setUint32(pair, at, true);
      world.view().setUint32(pair + 4, content.length, true);
      point(pair);
    } else if (type === TENSOR) {
      point(this.#carryTensor(word, world, afterwards));
    } else if (type === FUNCTION) {
      const { func, world: home } = this.#thingAt(word, "function");
      this.#sameWorld(home, world, "function");
      if (world.exports.slw_web_set_function(to, func.tableIndex, func.self, func.owner?.address ?? 0) !== 0) {
        throw new SlipwayError("the page has no memory for a function", "MemoryError");
      }
      afterwards.push(() => world.exports.slw_web_release(world.view().getUint32(to + 8, true)));
    } else if (type === MODULE) {
      const { module, world: home } = this.#thingAt(word, "module");
      this.#sameWorld(home, world, "module");
      point(module.address);
    } else {
      throw new SlipwayError("a page takes no argument of that type", "TypeError");
    }
  }
  #sameWorld(home, world, what) {
    if (home !== world) {
      throw new SlipwayError(
        `a ${what} of one module cannot be passed to another: in a page each has a memory of its own`,
        "TypeError");
    }
  }
  /** Return the object that the tensor of the C session is in the module's memory. */
  #carryTensor(object, world, afterwards) {
    const dl = object + HEAD_BYTES;
    const thing = this.#things.get(this.own.view().getUint32(dl, true));
    if (thing.tensor?.runtime === world) {
      return thing.tensor.address - HEAD_BYTES;
    }
    const made = this.#like(dl, world);
    made.raw().set(contentOf(thing));
    if (!thing.tensor) {
      thing.tensor = made;
      thing.content = undefined;
    } else {
      afterwards.push(() => {
        contentOf(thing).set(made.raw());
        made.dispose();
      });
    }
    return made.address - HEAD_BYTES;
  }
  /** Make a tensor in the module's memory, like the one described in the session's. */
  #like(dl, world) {
    const view = this.own.view();
    const ndim = view.getInt32(dl + 12, true);
    const shape = view.getUint32(dl + 20, true);
    return world.withScratch(() => {
      const at = world.scratch(8 * Math.max(1, ndim));
      world.bytes(at, 8 * ndim).set(this.own.bytes(shape, 8 * ndim));
      const made = world.exports.slw_web_tensor(at, ndim, view.getUint8(dl + 16), view.getUint8(dl + 17));
      if (!made) {
        throw new SlipwayError("the module's memory has no room for the tensor", "MemoryError");
      }
      return world.tensorOf(made);
    });
  }
  /** Copy a module's result to the session. */
  #bring(world, from, to) {
    const type = world.view().getInt32(from, true);
    const word = world.view().getUint32(from + 8, true);
    if (PLAIN.has(type)) {
      this.own.bytes(to, ANY_BYTES).set(world.bytes(from, ANY_BYTES));
    } else if ([RAW_TEXT, BYTE_ARRAY, SMALL_TEXT, SMALL_BYTES, TEXT, BYTES].includes(type)) {
      this.#bringBytes(world, from, to, type);
    } else if (type === TENSOR) {
      this.#bringTensor(world.tensorOf(word), world, to);
    } else if (type === FUNCTION) {
      this.#wrap(to, FUNCTION, { world, func: world.read(from, true) });
    } else if (type === MODULE) {
      this.#wrap(to, MODULE, { world, module: world.read(from, true) });
    } else if (type !== POINTER) {
      throw new SlipwayError(`a result with the tag ${type} cannot travel from a page`, "TypeError");
    }
  }
  #bringBytes(world, from, to, type) {
    const content = world.read(from, true);
    const isText = typeof content === "string";
    const bytes = isText ? encoder.encode(content) : content;
    this.own.withScratch(() => {
      const at = this.own.scratch(bytes.length + 1);
      this.own.bytes(at, bytes.length).set(bytes);
      const set = isText ? this.exports.slw_web_set_text : this.exports.slw_web_set_bytes;
      if (set(to, at, bytes.length) !== 0) {
        throw new SlipwayError("the page has no memory for the result", "MemoryError");
      }
    });
  }
  #bringTensor(tensor, world, to) {
    this.own.withScratch(() => {
      const dl = this.own.scratch(40);
      const shape = this.own.scratch(8 * Math.max(1, tensor.ndim));
      this.own.bytes(dl, 40).set(world.bytes(tensor.address, 40));
      const view = this.own.view();
      tensor.shape.forEach((extent, i) => view.setBigInt64(shape + 8 * i, BigInt(extent), true));
      view.setUint32(dl + 20, shape, true);
      view.setUint32(dl + 24, 0, true); // no strides: what leaves a module is compact
      view.setBigUint64(dl + 32, 0n, true);
      this.#wrap(to, TENSOR, { tensor }, dl);
    });
  }
}

/** The bytes of a tensor, wherever they lie; the view goes stale when its memory grows. */
function contentOf(thing) {
  return thing.tensor ? thing.tensor.raw() : thing.content;
}

function joined(parts) {
  if (parts.length === 1) {
    return parts[0];
  }
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

function enter(action) {
  try {
    return action();
  } catch (trap) {
    throw new SlipwayError(
      `the program stopped (${trap.message}): load the module again before using it further`,
      "RuntimeError", { cause: trap });
  }
}

function noFile(name) {
  return new SlipwayError(`there is no file '${name}' in this session; upload it first`, "FileNotFoundError");
}
