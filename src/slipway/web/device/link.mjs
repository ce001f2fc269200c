// A WebSocket to the proxy as a stream of the protocol's frames, and the greeting that opens one
// (docs/rpc-protocol.md).

import { Runtime, SlipwayError } from "../slipway.mjs";

export const Code = {
  HELLO: 1, CHALLENGE: 2, AUTHENTICATE: 3, WELCOME: 4, REGISTER: 64, ASSIGN: 65, IDLE: 66, HEARTBEAT: 67,
  REVOKE: 72, OPEN: 96, RETURN: 128, ERROR: 129,
};
export const Role = { DEVICE: 1, CARRIER: 3 };
const HEADER_BYTES = 16, GREETING_BYTES = 1024, STEP_MS = 10000, NONCE_BYTES = 32;
const MAGIC = "SLIPWAY\n", VERSION = 1, PROOF = 32n;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Write numbers and texts one after the other: `["u32", 7]`, `["text", "abc"]` (with a NUL). */
export function packed(...fields) {
  const sizes = { u16: 2, u32: 4, u64: 8 };
  const parts = fields.map(([type, value]) => (
    type === "bytes" ? value : type === "text" ? encoder.encode(`${value}\0`) : undefined));
  const size = fields.reduce((sum, [type], i) => sum + (parts[i]?.length ?? sizes[type]), 0);
  const out = new Uint8Array(Math.ceil(size / 8) * 8);
  const view = new DataView(out.buffer);
  let at = 0;
  fields.forEach(([type, value], i) => {
    if (parts[i]) {
      out.set(parts[i], at);
    } else if (type === "u16") {
      view.setUint16(at, value, true);
    } else if (type === "u32") {
      view.setUint32(at, value, true);
    } else {
      view.setBigUint64(at, BigInt(value), true);
    }
    at += parts[i]?.length ?? sizes[type];
  });
  return out;
}

export function textSize(text) {
  return encoder.encode(text).length;
}

export function frame(code, id, payload = new Uint8Array(0)) {
  const out = new Uint8Array(HEADER_BYTES + payload.length);
  const view = new DataView(out.buffer);
  view.setUint32(0, payload.length, true);
  view.setUint16(4, code, true);
  view.setUint32(8, id, true);
  out.set(payload, HEADER_BYTES);
  return out;
}

export function errorFrame(failure, kind, message) {
  return frame(Code.ERROR, 0, packed(
    ["u32", failure], ["u32", textSize(kind)], ["u32", textSize(message)], ["u32", 0], ["text", kind],
    ["text", message]));
}

/** Reads fields of a payload; beyond its end is a RangeError. */
export class Reader {
  constructor(payload) {
    this.payload = payload;
    this.view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    this.at = 0;
  }
  u32() {
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }
  text(size) {
    if (this.at + size + 1 > this.payload.length) {
      throw new RangeError("a text reaches beyond its frame");
    }
    const text = decoder.decode(this.payload.subarray(this.at, this.at + size));
    this.at += size + 1;
    return text;
  }
}

/** One connection to the proxy. */
export class Link {
  #parts = new Uint8Array(0);
  #waiting;
  #isRaw = false;
  #failure;

  constructor(url) {
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.opened = new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onerror = () => reject(new SlipwayError("the proxy cannot be reached", "OSError"));
    });
    this.opened.catch(() => {});
    this.closed = new Promise((resolve) => {
      this.socket.onclose = () => {
        this.#fail(new SlipwayError("the connection was lost", "OSError"));
        resolve();
      };
    });
    this.socket.onmessage = ({ data }) => this.#take(new Uint8Array(data));
  }
  send(bytes) {
    if (this.socket.readyState === WebSocket.OPEN) {
      this.socket.send(bytes);
    }
  }
  close() {
    this.socket.close();
    this.#fail(new SlipwayError("the connection was closed", "OSError"));
  }
  /** The next frame: {code, id, payload}; an Error when there will be none, or not in time. */
  async next(timeoutMs) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = timeoutMs && setTimeout(() => reject(new SlipwayError("the proxy gave no answer", "TimeoutError")), timeoutMs);
    });
    try {
      for (;;) {
        const found = this.#frame();
        if (found) {
          return found;
        }
        if (this.#failure) {
          throw this.#failure;
        }
        const more = new Promise((resolve) => {
          this.#waiting = resolve;
        });
        await Promise.race([more, late]);
      }
    } finally {
      clearTimeout(timer);
      this.#waiting = undefined;
    }
  }
  /** From now on bytes go to `take` as they come; those that are here first. */
  raw(take) {
    this.#isRaw = true;
    this.take = take;
    const rest = this.#parts;
    this.#parts = new Uint8Array(0);
    if (rest.length) {
      take(rest);
    }
  }
  #take(bytes) {
    if (this.#isRaw) {
      this.take(bytes);
      return;
    }
    const joined = new Uint8Array(this.#parts.length + bytes.length);
    joined.set(this.#parts);
    joined.set(bytes, this.#parts.length);
    this.#parts = joined;
    this.#waiting?.();
  }
  #frame() {
    const all = this.#parts;
    if (all.length < HEADER_BYTES) {
      return undefined;
    }
    const view = new DataView(all.buffer, all.byteOffset);
    const size = view.getUint32(0, true);
    if (size > GREETING_BYTES || size % 8 || view.getUint16(6, true) || view.getUint32(12, true)) {
      throw new SlipwayError("the proxy does not speak this protocol", "OSError");
    }
    if (all.length < HEADER_BYTES + size) {
      return undefined;
    }
    this.#parts = all.slice(HEADER_BYTES + size);
    const payload = all.slice(HEADER_BYTES, HEADER_BYTES + size);
    return { code: view.getUint16(4, true), id: view.getUint32(8, true), payload };
  }
  #fail(error) {
    this.#failure = error;
    this.#waiting?.();
  }
}

/** Proofs that a peer has the token, made by the C session's code: pages without TLS have no crypto.subtle. */
export class Prover {
  constructor(program, token) {
    const nothing = () => 0;
    const page = Object.fromEntries(WebAssembly.Module.imports(program).map(({ name }) => [name, nothing]));
    this.own = new Runtime(new WebAssembly.Instance(program, { page }));
    this.secret = encoder.encode(token);
  }
  get hasToken() {
    return this.secret.length > 0;
  }
  proof(label, first, second) {
    const { own, secret } = this;
    return own.withScratch(() => {
      const copied = (bytes) => {
        const at = own.scratch(bytes.length);
        own.bytes(at, bytes.length).set(bytes);
        return at;
      };
      const out = own.scratch(NONCE_BYTES);
      own.exports.slw_device_proof(
        copied(secret), secret.length, own.text(label), copied(first), copied(second), out);
      return own.bytes(out, NONCE_BYTES).slice();
    });
  }
}

/** Greet on a fresh link; an Error with the proxy's reason when it refuses, or proves nothing. */
export async function greet(link, role, key, name, prover) {
  await link.opened;
  link.send(frame(Code.HELLO, 1, packed(
    ["bytes", encoder.encode(MAGIC)], ["u16", VERSION], ["u16", VERSION], ["u32", role],
    ["u64", prover.hasToken ? PROOF : 0n], ["u32", GREETING_BYTES], ["u32", 0], ["u16", textSize(key)],
    ["u16", textSize(name)], ["u32", 0], ["text", key], ["text", name])));
  let reply = await link.next(STEP_MS);
  let expected;
  if (reply.code === Code.CHALLENGE && reply.payload.length >= NONCE_BYTES) {
    if (!prover.hasToken) {
      throw new SlipwayError("the proxy asks for its token", "AuthError");
    }
    const challenge = reply.payload.subarray(0, NONCE_BYTES);
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const mac = prover.proof("slipway rpc 1 client", challenge, nonce);
    expected = prover.proof("slipway rpc 1 server", nonce, challenge);
    link.send(frame(Code.AUTHENTICATE, 1, packed(["bytes", nonce], ["bytes", mac])));
    reply = await link.next(STEP_MS);
  }
  if (reply.code === Code.ERROR) {
    throw refusal(reply.payload);
  }
  if (reply.code !== Code.WELCOME) {
    throw new SlipwayError("the proxy does not speak this protocol", "OSError");
  }
  const proof = reply.payload.subarray(32, 64);
  if (prover.hasToken && !(expected && isEqual(proof, expected))) {
    throw new SlipwayError("the proxy does not prove that it has the same token", "AuthError");
  }
}

export function refusal(payload) {
  const reader = new Reader(payload);
  const failure = reader.u32();
  const [kindSize, messageSize] = [reader.u32(), reader.u32()];
  reader.u32();
  reader.text(kindSize);
  return new SlipwayError(reader.text(messageSize), failure === 3 ? "AuthError" : "OSError");
}

function isEqual(a, b) {
  return a.length === b.length && a.reduce((apart, byte, i) => apart | (byte ^ b[i]), 0) === 0;
}
