// A model in a page: pictures in, classes out, and where the time goes.  about.json says which.

const TOP = 5, FEW = 8, LAYERS = 12, PROFILE_RUNS = 5, FRAME_MS = 100;
const at = (id) => document.getElementById(id);

let about; // {title, model, relaxed, bytes, input, others, image, outputs: [{kind, labels, scale, zeroPoint}]}
let worker;
let calls = new Map();
let isBusy = false;
let stream;

function request(task, rest = {}) {
  return new Promise((resolve, reject) => {
    const id = calls.size ? Math.max(...calls.keys()) + 1 : 1;
    calls.set(id, { resolve, reject });
    worker.postMessage({ id, task, ...rest });
  });
}

function start() {
  worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.progress) {
      showProgress(data.progress);
      return;
    }
    const { resolve, reject } = calls.get(data.id);
    calls.delete(data.id);
    if (data.error) {
      reject(new Error(data.error.message));
    } else {
      resolve(data.result);
    }
  };
  worker.onerror = (event) => {
    event.preventDefault();
    const waiting = calls;
    calls = new Map();
    waiting.forEach(({ reject }) => reject(new Error(event.message || "the worker ended")));
  };
}

function sizeText(bytes) {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function showProgress({ loaded, total = about.bytes }) {
  at("progress").value = Math.min(1, loaded / total);
  at("loaded").textContent = `Loading the model: ${sizeText(loaded)} of ${sizeText(total)}`;
}

function show(state) {
  at("state").textContent = state;
  at("state").dataset.state = state;
}

function fail(error) {
  show("failed");
  at("loading").hidden = true;
  at("problem").hidden = false;
  at("words").textContent = error.message;
}

async function begin() {
  at("problem").hidden = true;
  at("loading").hidden = false;
  show("loading");
  try {
    const response = await fetch("about.json", { cache: "no-cache" });
    if (!response.ok) {
      throw new Error(`about.json: the server answered ${response.status}`);
    }
    about = await response.json();
    document.title = about.title;
    at("title").textContent = about.title;
    at("about").textContent = `${about.title} (${sizeText(about.bytes)}), compiled by Slipway ${about.version}. Nothing leaves this browser.`;
    worker?.terminate();
    start();
    const [url, relaxed] = [about.model, about.relaxed].map((name) => name && new URL(name, location.href).href);
    await request("load", { url, relaxed });
    at("loading").hidden = true;
    ["drop", "layers"].forEach((id) => {
      at(id).hidden = false;
    });
    for (const id of ["file", "camera"]) {
      at(id).disabled = !about.image;
    }
    if (!about.image) {
      at("hint").textContent = "This model takes no picture: run it with random numbers.";
      document.querySelectorAll(".seen, .button, #camera").forEach((one) => {
        one.hidden = true;
      });
    }
    show("ready");
  } catch (error) {
    fail(error);
  }
}

/** Draw the middle of a picture as large as the model wants it; returns its pixels. */
function pixelsOf(picture, width, height) {
  const { image } = about;
  const canvas = at("seen");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  const scale = Math.min(width / image.width, height / image.height);
  const [w, h] = [image.width * scale, image.height * scale];
  context.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h, 0, 0, image.width, image.height);
  return context.getImageData(0, 0, image.width, image.height).data;
}

/** The model's input from pixels: channels in its order, scaled as about.json says. */
function inputOf(pixels) {
  const { width, height, channels, layout, scale, mean, std } = about.image;
  const plane = width * height;
  const values = new Float32Array(plane * channels);
  for (let i = 0; i < plane; ++i) {
    for (let c = 0; c < channels; ++c) {
      const grey = 0.299 * pixels[4 * i] + 0.587 * pixels[4 * i + 1] + 0.114 * pixels[4 * i + 2];
      const value = channels === 1 ? grey : pixels[4 * i + c];
      values[layout === "NCHW" ? c * plane + i : i * channels + c] = (value / scale - mean[c]) / std[c];
    }
  }
  return about.input.dtype.startsWith("float") ? values : values.map(Math.round);
}

async function run(values) {
  isBusy = true;
  try {
    const inputs = [[about.input, values], ...about.others.map((one) => [one, randomFor(one)])];
    const named = inputs.map(([{ name, shape }, given]) => [name, { values: given, shape }]);
    const found = await request("run", { inputs: Object.fromEntries(named) });
    showAnswer(found);
    show(stream ? "camera" : "ready");
  } catch (error) {
    fail(error);
  } finally {
    isBusy = false;
  }
}

function randomFor({ dtype, shape }) {
  const size = shape.reduce((a, b) => a * b, 1);
  const draw = dtype.startsWith("float") ? Math.random : dtype === "bool" ? () => 1 : () => Math.floor(Math.random() * 100);
  return Array.from({ length: size }, draw);
}

/** What each output's numbers stand for: as they are, or those that were quantised. */
function realOf({ values }, { scale, zeroPoint }) {
  return scale ? values.map((v) => scale * (v - zeroPoint)) : values;
}

/** Whether real numbers are shares of classes, exactly one of which is right. */
function areShares(numbers, tolerance = 0.02) {
  const sum = numbers.reduce((a, b) => a + b, 0);
  return numbers.length > 1 && numbers.every((v) => v >= 0 && v <= 1) && Math.abs(sum - 1) < tolerance;
}

/** A quantised softmax whose scale nobody tells: from the smallest number on, in steps of 1/256. */
function sharesOfBytes({ dtype, values }) {
  const minimum = dtype === "int8" ? -128 : 0;
  const steps = values.reduce((a, b) => a + b - minimum, 0);
  return /^u?int8$/.test(dtype) && values.length > 1 && Math.abs(steps - 256) <= 2 + values.length / 2
    ? values.map((v) => (v - minimum) / 256) : undefined;
}

function softmax(numbers) {
  const maximum = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
  const exponentials = numbers.map((v) => Math.exp(v - maximum));
  const all = exponentials.reduce((a, b) => a + b, 0);
  return exponentials.map((p) => p / all);
}

/** Scores of classes as {shares}, of anything else with one number each as {}; undefined where no index is a class.
 * `kind` is what the graph says (inspect/output_kinds.py). */
function scoresOf(output, about) {
  const { kind, labels } = about;
  if (!output.values || output.values.length < 2 || kind === "indices" || (kind === "chosen" && !labels.length)) {
    return undefined;
  }
  const numbers = realOf(output, about);
  const isReal = Boolean(about.scale) || /^b?float/.test(output.dtype);
  if (kind === "log shares") {
    return { shares: isReal ? softmax(numbers) : undefined };
  }
  if (kind === "chances" && isReal) {
    return { shares: numbers };
  }
  const shares = areShares(numbers) ? numbers : about.scale ? undefined : sharesOfBytes(output);
  if (shares) {
    return { shares };
  }
  if (labels.length) {
    return { shares: isReal && kind === "scores" ? softmax(numbers) : undefined };
  }
  return kind === "scores" || kind === "shares" ? {} : undefined;
}

function row(name, text, share) {
  const line = document.createElement("li");
  const [title, amount, bar] = ["b", "span", "meter"].map((tag) => document.createElement(tag));
  title.textContent = name;
  amount.textContent = text;
  bar.value = share;
  line.append(title, amount, bar);
  return line;
}

function scoreRows({ name, values, minimum, maximum }, { shares }, about, isNamed) {
  const isClass = shares || about.labels.length;
  const text = (i) => (shares ? `${(100 * shares[i]).toFixed(1)} %` : numberText(values[i]));
  const bar = (i) => (shares ? shares[i] : maximum > minimum ? (values[i] - minimum) / (maximum - minimum) : 0);
  const order = [...values.keys()].sort((a, b) => values[b] - values[a]).slice(0, TOP);
  const rows = order.map((i) => row(about.labels[i] ?? `${isClass ? "class" : "element"} ${i}`, text(i), bar(i)));
  if (isNamed) {
    const title = document.createElement("li");
    title.className = "of";
    title.textContent = name;
    rows.unshift(title);
  }
  return rows;
}

function numberText(value) {
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}

/** All numbers of an output with few, as what they are called where they are indices; the range of one with many. */
function outputRow({ name, dtype, shape, minimum, maximum, values }, { kind, labels }) {
  const word = (value) => (kind === "indices" ? labels[value] ?? String(value) : numberText(value));
  const range = minimum < maximum ? `${numberText(minimum)} to ${numberText(maximum)}` : minimum === maximum ? numberText(minimum) : "no numbers";
  const line = row(name, values?.length && values.length <= FEW ? values.map(word).join(", ") : range, 0);
  const what = document.createElement("small");
  what.textContent = `${dtype}, ${shape.length ? shape.join(" × ") : "one number"}`;
  line.lastChild.replaceWith(what);
  return line;
}

function showAnswer({ ms, outputs }) {
  const unknown = { kind: "unknown", labels: [] };
  const known = outputs.map((_, i) => (about.outputs.length === outputs.length ? about.outputs[i] : unknown));
  const scores = outputs.map((output, i) => scoresOf(output, known[i]));
  const lists = scores.filter(Boolean).length;
  const rows = outputs.flatMap((output, i) => (scores[i] ? scoreRows(output, scores[i], known[i], lists > 1) : []));
  at("classes").replaceChildren(...rows);
  const isPlain = outputs.length === 1 && scores[0] && (scores[0].shares || known[0].labels.length);
  at("outputs").replaceChildren(...(isPlain ? [] : outputs.map((output, i) => outputRow(output, known[i]))));
  at("time").textContent = `${ms.toFixed(ms < 10 ? 2 : 1)} ms in this browser, one thread`;
  at("answer").hidden = false;
}

async function measure() {
  at("measure").disabled = true;
  try {
    const layers = await request("profile", { repeat: PROFILE_RUNS });
    const total = layers.reduce((sum, { ms }) => sum + ms, 0);
    const slowest = [...layers].sort((a, b) => b.ms - a.ms).slice(0, LAYERS);
    at("rows").replaceChildren(...slowest.map(({ layer, ms }) => row(layer, ms.toFixed(3), total ? ms / total : 0)));
    const others = layers.length - slowest.length;
    at("sum").textContent = `${total.toFixed(2)} ms in all${others > 0 ? `, ${others} other layers included` : ""}`;
  } catch (error) {
    fail(error);
  } finally {
    at("measure").disabled = false;
  }
}

async function takePicture(file) {
  stopCamera();
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    at("hint").textContent = "That file is no picture which this browser can read.";
    return;
  }
  at("hint").textContent = "";
  await run(inputOf(pixelsOf(picture, picture.width, picture.height)));
}

function stopCamera() {
  stream?.getTracks().forEach((track) => track.stop());
  stream = undefined;
  at("camera").textContent = "Camera";
}

async function startCamera() {
  if (!navigator.mediaDevices) {
    at("hint").textContent = "Browsers give the camera to pages from https or this machine only.";
    return;
  }
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  } catch (error) {
    at("hint").textContent = `There is no camera: ${error.message}.`;
    return;
  }
  const video = at("video");
  video.srcObject = stream;
  await video.play();
  at("camera").textContent = "Stop";
  at("hint").textContent = "";
  while (stream) {
    const next = new Promise((resolve) => {
      setTimeout(resolve, FRAME_MS);
    });
    if (!document.hidden && !isBusy && video.videoWidth) {
      await run(inputOf(pixelsOf(video, video.videoWidth, video.videoHeight)));
    }
    await next;
  }
}

at("again").onclick = begin;
at("measure").onclick = measure;
at("file").onchange = ({ target }) => target.files[0] && takePicture(target.files[0]);
at("camera").onclick = () => (stream ? stopCamera() : startCamera());
at("random").onclick = () => {
  stopCamera();
  run(randomFor(about.input));
};
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (file && about?.image && !at("drop").hidden) {
    takePicture(file);
  }
});
begin();
