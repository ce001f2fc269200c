// The device in node: one session over standard input and output, for `rpc.PopenSession`.
//
//     node stdio.mjs slipway_device.wasm

import { readFileSync, writeSync } from "node:fs";

import { Session } from "./session.mjs";

const program = new WebAssembly.Module(readFileSync(process.argv[2]));
const options = { key: "web", about: `slipway in node ${process.versions.node}` };
const session = new Session(program, options, {
  write(bytes) {
    for (let done = 0; done < bytes.length;) {
      try {
        done += writeSync(1, bytes, done);
      } catch (error) {
        if (error.code !== "EAGAIN") {
          process.exit(1); // nobody reads any more
        }
      }
    }
  },
  note(event) {
    if (event.over) {
      process.exit(0);
    }
  },
});
process.stdin.on("data", (bytes) => session.push(bytes));
process.stdin.on("end", () => process.exit(0));
