// The model, in a worker: the page lives while it computes.

import { byFeature, load } from "./slipway.mjs";

let model;

const tasks = {
  async load({ url, relaxed }) { // the latter with fused products, for browsers that have the instruction
    model = await load(relaxed ? byFeature({ "relaxed-simd": relaxed, "": url }) : url, {
      cache: "slipway",
      onProgress: (loaded, total) => self.postMessage({ progress: { loaded, total } }),
    });
    return { inputs: model.inputs, outputs: model.outputs };
  },
  async run({ inputs }) {
    const started = performance.now();
    const found = await model.run(inputs);
    const ms = performance.now() - started;
    const [{ name }] = model.outputs;
    return { ms, values: Array.from(found[name], Number) };
  },
  profile({ repeat }) {
    return model.profile(repeat);
  },
};

self.onmessage = async ({ data: { id, task, ...rest } }) => {
  try {
    self.postMessage({ id, result: await tasks[task](rest) });
  } catch (error) {
    self.postMessage({ id, error: { name: error.name, message: error.message } });
  }
};
