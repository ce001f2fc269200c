// A session in a worker of its own, so that the page lives on whatever uploaded code does, and can end it.

import { Session } from "./session.mjs";

let session;

self.onmessage = ({ data }) => {
  if (data.program) {
    const later = (delayMs, action) => (delayMs ? setTimeout(action, delayMs) : action());
    session = new Session(data.program, data.options, {
      write: (bytes, delayMs) => later(delayMs, () => self.postMessage({ bytes }, [bytes.buffer])),
      note: (event, delayMs) => later(delayMs, () => self.postMessage(event)),
    });
  } else {
    session.push(data.bytes);
    self.postMessage({ took: data.bytes.length });
  }
};
