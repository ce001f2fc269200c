// The model, in a worker: the page lives while it computes.

import { byFeature, load } from "./slipway.mjs";

let model;

const LISTED = 1 << 20; // numbers of an output that the page gets all of

/** What a page shows of an output: its range, and the numbers themselves of one with one dimension, but for ones. */
function summaryOf(name, values) {
  let [minimum, maximum] = [Infinity, -Infinity];
  for (const value of values) {
    minimum = value < minimum ? Number(value) : minimum;
    maximum = value > maximum ? Number(value) : maximum;
  }
  const { dtype, shape } = values;
  const isList = values.length <= LISTED && shape.filter((extent) => extent !== 1).length <= 1;
  return { name, dtype, shape, minimum, maximum, values: isList ? Array.from(values, Number) : undefined };
}

const tasks = {
  async load({ url, relaxed }) { // the latter with fused products, for browsers that have the instruction
    model = await load(relaxed ? byFeature({ "relaxed-simd": relaxed, "": url }) : url, {
      cache: "slipway",
      onProgress: (loaded, total) => self.postMessage({ progress: { loaded, total } }),
    });
    return { inputs: model.inputs, outputs: model.outputs };
  },
  async run({ inputs }) { // with their shapes, which tell the sizes of open dimensions
    const given = Object.entries(inputs).map(([name, { values, shape }]) => [name, Object.assign(values, { shape })]);
    const started = performance.now();
    const found = await model.run(Object.fromEntries(given));
    const ms = performance.now() - started;
    return { ms, outputs: model.outputs.map(({ name }) => summaryOf(name, found[name])) };
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
