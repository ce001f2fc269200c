// A page as a device: it registers with the proxy that served it, and runs the sessions that come.
// docs/rpc-protocol.md, sections 10 and 11, say what is spoken; crt/posix/rpc/rpc_registrar.c does the same.

import { Code, Link, Prover, Reader, Role, errorFrame, frame, greet, packed, refusal, textSize } from "./link.mjs";
import { MAX_WAITING_BYTES } from "./session.mjs";

const HEARTBEAT_MS = 3000, UNUSED_LEASE_MS = 15000, GREETING_MS = 10000, STEP_MS = 10000;
const FIRST_WAIT_MS = 200, LONGEST_WAIT_MS = 10000;
const LIMIT = 9, TIMEOUT = 13, CRASHED = 14, CANCELLED = 15;
const HELLO_KEY_AT = 56; // header, and the fields before the texts

/** One session: its connection, and the worker that serves it. */
class Served {
  #timers = {};
  #waiting = 0;
  #isOver = false;
  what = { client: "", since: 0, running: "", runningSince: 0, calls: 0, modules: [] };

  constructor(link, { program, options, onEnter, onOver, onChange }) {
    Object.assign(this, { link, onEnter, onOver, onChange });
    this.worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.#hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      this.end(CRASHED, `the page's worker ended (${event.message || "no reason given"})`);
    };
    this.worker.postMessage({ program, options });
    this.#limit("greeting", GREETING_MS, "the greeting was not completed in time");
    link.closed.then(() => this.#over("the client has left"));
    link.raw((bytes) => this.#pass(bytes));
  }
  #pass(bytes) {
    if (!this.what.since && !this.what.client) {
      this.what.client = clientOf(bytes);
    }
    this.#waiting += bytes.length;
    if (this.#waiting > MAX_WAITING_BYTES) {
      this.end(LIMIT, "more was sent than the page holds while it computes: wait for replies in between");
      return;
    }
    this.worker.postMessage({ bytes }, bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : []);
  }
  #hear(event) {
    const { what } = this;
    if (event.bytes) {
      this.link.send(event.bytes);
      return;
    }
    if (event.took !== undefined) {
      this.#waiting -= event.took;
      return;
    }
    if (event.over) {
      this.#over("");
    } else if (event.enters) {
      this.#clear("greeting");
      what.since = Date.now();
      if (event.timeoutMs) {
        this.#limit("session", event.timeoutMs, `the session's time limit of ${event.timeoutMs / 1e3} s passed`);
      }
      this.onEnter();
    } else if (event.begins !== undefined) {
      Object.assign(what, { running: event.name, runningSince: Date.now(), calls: what.calls + 1 });
      if (event.timeoutMs) {
        this.#limit("call", event.timeoutMs, `${event.name}: the time limit of ${event.timeoutMs / 1e3} s passed`);
      }
    } else if (event.ends) {
      what.running = "";
      this.#clear("call");
    } else if (event.loads) {
      what.modules.push({ name: event.loads, size: event.size });
    }
    this.onChange();
  }
  #limit(name, ms, message) {
    this.#clear(name);
    this.#timers[name] = setTimeout(() => this.end(TIMEOUT, message), ms);
  }
  #clear(name) {
    clearTimeout(this.#timers[name]);
  }
  /** End the session with an error that the client is told. */
  end(failure, message) {
    if (!this.#isOver) {
      this.worker.terminate(); // what it runs ends with it
      this.link.send(errorFrame(failure, failure === TIMEOUT ? "TimeoutError" : "RPCError", message));
      this.#over(message);
    }
  }
  #over(reason) {
    if (!this.#isOver) {
      this.#isOver = true;
      Object.keys(this.#timers).forEach((name) => this.#clear(name));
      this.worker.terminate();
      this.link.close();
      this.onOver(reason);
    }
  }
}

/**
 * A device with a key, until `stop()`.
 *
 * `url` is the proxy's WebSocket, `program` the C session as a WebAssembly.Module, `about` what this
 * device says of itself; `onChange(state)` is told of everything: {link: "connecting", "waiting",
 * "lost" or "refused", message, session}.
 */
export class Device {
  #control;
  #lease = { text: "", isUsed: false };
  #leaseTimer;
  #wake = () => {};
  #isStopped = false;
  state = { link: "connecting", message: "", session: undefined, sessions: 0 };

  constructor({ url, key, token = "", about, program, onChange = () => {} }) {
    Object.assign(this, { url, key, token, about, program, onChange });
    this.prover = new Prover(program, token);
  }

  /** Register, and again whenever the connection was lost; returns when the proxy refuses, or after stop(). */
  async run() {
    for (let waitMs = FIRST_WAIT_MS; !this.#isStopped;) {
      this.#tell({ link: "connecting" });
      try {
        await this.#register();
        waitMs = FIRST_WAIT_MS;
        this.#tell({ link: "waiting", message: "" });
        await this.#obey();
      } catch (error) {
        if (error.name === "AuthError") {
          this.#tell({ link: "refused", message: error.message });
          this.stop();
        } else if (!this.#isStopped) {
          this.#tell({ link: "lost", message: error.message });
        }
      } finally {
        this.#control?.close();
      }
      if (!this.#isStopped) {
        await new Promise((resolve) => {
          this.#wake = resolve;
          setTimeout(resolve, waitMs);
        });
        waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
      }
    }
  }
  /** Try again now. */
  wake() {
    this.#wake();
  }
  stop() {
    this.#isStopped = true;
    this.leave("the page was stopped");
    this.#wake();
  }
  /** End the session and the connection; `run` connects again, if it still runs. */
  leave(reason) {
    this.served?.end(CANCELLED, reason);
    this.#control?.close();
  }
  #tell(change) {
    Object.assign(this.state, change);
    this.onChange(this.state);
  }

  async #register() {
    this.#control = new Link(this.url);
    await greet(this.#control, Role.DEVICE, this.key, this.about, this.prover);
    if (!this.#lease.isUsed) {
      this.#forget(); // a lease of a connection that is gone
    }
    const { text, isUsed } = this.#lease;
    this.#control.send(frame(Code.REGISTER, 2, packed(
      ["u32", 0], ["u32", isUsed ? 1 : 0], ["u32", text.length], ["u32", 0], ["text", text], ["text", ""])));
    const reply = await this.#control.next(STEP_MS);
    if (reply.code === Code.ERROR) {
      throw refusal(reply.payload);
    }
  }
  async #obey() {
    const control = this.#control;
    const beat = setInterval(() => control.send(frame(Code.HEARTBEAT, 0)), HEARTBEAT_MS);
    try {
      for (;;) {
        const { code, id, payload } = await control.next();
        if (code === Code.ASSIGN) {
          this.#take(control, id, payload);
        } else if (code === Code.OPEN) {
          this.#bring(payload);
        } else if (code === Code.REVOKE) {
          this.#revoke(payload);
        } else if (code === Code.ERROR) {
          throw refusal(payload);
        }
      }
    } finally {
      clearInterval(beat);
    }
  }
  #take(control, id, payload) {
    if (this.#lease.text) {
      const words = "the device is in use";
      control.send(frame(Code.ERROR, id, packed(
        ["u32", 4], ["u32", 8], ["u32", textSize(words)], ["u32", 0], ["text", "RPCError"], ["text", words])));
      return;
    }
    const reader = new Reader(payload);
    const size = reader.u32();
    reader.u32();
    this.#lease = { text: reader.text(size), isUsed: false };
    this.#leaseTimer = setTimeout(() => this.#idle(""), UNUSED_LEASE_MS); // the client never came
    control.send(frame(Code.RETURN, id));
  }
  #forget() {
    clearTimeout(this.#leaseTimer);
    this.#lease = { text: "", isUsed: false };
  }
  #idle(reason) {
    const { text } = this.#lease;
    this.#forget();
    if (text) {
      this.#control.send(frame(Code.IDLE, 0, packed(
        ["u32", text.length], ["u32", textSize(reason)], ["text", text], ["text", reason])));
    }
  }
  async #bring(payload) {
    const reader = new Reader(payload);
    const size = reader.u32();
    reader.u32();
    const link = new Link(this.url);
    try {
      await greet(link, Role.CARRIER, reader.text(size), this.about, this.prover);
    } catch {
      link.close();
      return; // the proxy tells the client that nobody came
    }
    if (this.served) {
      link.send(errorFrame(4, "RPCError", "the device is in use"));
      link.close();
      return;
    }
    const served = new Served(link, {
      program: this.program,
      options: {
        key: this.key,
        lease: `${this.key}:${this.#lease.text}`,
        about: this.about,
        token: this.token,
        needsToken: this.token !== "" || !isLocal(this.url),
      },
      onEnter: () => {
        clearTimeout(this.#leaseTimer);
        this.#lease.isUsed = true;
        this.#tell({ session: served.what, sessions: this.state.sessions + 1 });
      },
      onOver: (reason) => {
        this.served = undefined;
        this.#tell({ session: undefined });
        this.#idle(reason.slice(0, 200));
      },
      onChange: () => this.onChange(this.state),
    });
    this.served = served;
  }
  #revoke(payload) {
    const reader = new Reader(payload);
    const [size, reasonSize] = [reader.u32(), reader.u32()];
    const [lease, reason] = [reader.text(size), reader.text(reasonSize)];
    if (lease !== this.#lease.text) {
      return; // that session is over
    }
    if (this.served) {
      this.served.end(CANCELLED, reason || "the tracker ended the session");
    } else {
      this.#idle("");
    }
  }
}

function isLocal(url) {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}

/** What a client says of itself in its HELLO. */
function clientOf(bytes) {
  try {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [keySize, nameSize] = [view.getUint16(48, true), view.getUint16(50, true)];
    const at = HELLO_KEY_AT + keySize + 1;
    const text = new TextDecoder().decode(bytes.subarray(at, at + Math.min(nameSize, 200)));
    return [...text].filter((c) => /[\p{L}\p{N}\p{P}\p{S} ]/u.test(c)).join("") || "a client";
  } catch {
    return "a client";
  }
}
