// The model, in a worker: the page lives while it computes.

import { byFeature, load } from "./slipway.mjs";

let model;

/** What a page shows of an output that is no list of scores. */
function summaryOf(name, values) {
  let [minimum, maximum] = [Infinity, -Infinity];
  for (const value of values) {
    minimum = value < minimum ? Number(value) : minimum;
    maximum = value > maximum ? Number(value) : maximum;
  }
  return { name, dtype: values.dtype, shape: values.shape, minimum, maximum };
}

/** A number for each class: one dimension, but for ones. */
function isScores({ dtype, shape }) {
  return /^(b?float|u?int8$)/.test(dtype) && shape.filter((extent) => extent !== 1).length === 1;
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
    const outputs = model.outputs.map(({ name }) => summaryOf(name, found[name]));
    const scores = outputs.find(isScores);
    return { ms, outputs, scores: scores && { ...scores, values: Array.from(found[scores.name], Number) } };
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
