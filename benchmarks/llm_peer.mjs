// llama.cpp through node-llama-cpp: each line of stdin is a request, each of stdout an answer.
// node llm_peer.mjs MODEL THREADS CONTEXT
import readline from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , path, threads, contextSize] = process.argv;
const require = createRequire(`${process.cwd()}/`);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(require.resolve("node-llama-cpp")));
const llama = await getLlama({
  gpu: false,
  build: "never",
  logLevel: LlamaLogLevel.error,
  maxThreads: +threads,
});
const model = await llama.loadModel({ modelPath: path, gpuLayers: 0 });
const context = await model.createContext({
  contextSize: +contextSize,
  batchSize: 512,
  threads: +threads,
  sequences: 1,
});
const sequence = context.getSequence();

function clock() {
  const { user, system } = process.cpuUsage();
  return { wall: Number(process.hrtime.bigint()) / 1e9, processor: (user + system) / 1e6 };
}

function since(start, count) {
  const now = clock();
  return {
    wall: (now.wall - start.wall) / count,
    processor: (now.processor - start.processor) / count,
  };
}

console.log(JSON.stringify({ ready: llama.systemInfo }));
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { tokens, decode } = JSON.parse(line);
  await sequence.clearHistory();
  let start = clock();
  await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(0, -1));
  const prompt = since(start, tokens.length - 1);
  const made = [];
  start = clock();
  const options = { temperature: 0, yieldEogToken: true };
  for await (const token of sequence.evaluate(tokens.slice(-1), options)) {
    made.push(token);
    if (made.length >= decode) break;
  }
  const step = since(start, made.length);
  console.log(JSON.stringify({ prompt, step, made, memory: process.memoryUsage().rss }));
}
process.exit(0);
