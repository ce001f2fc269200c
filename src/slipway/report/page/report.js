/* Draws the report that lies in #data.  All texts are set as text, never as markup. */

const report = JSON.parse(document.getElementById("data").textContent);
const el = (id) => document.getElementById(id);

function make(name, parent, text, classes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  if (parent) parent.append(made);
  return made;
}

/* Numbers for people. */
function bytes(value) {
  if (value === null) return "-";
  const sign = value < 0 ? "-" : "";
  let size = Math.abs(value), unit = "B";
  for (const next of ["KB", "MB", "GB"]) {
    if (size < 1000) break;
    size /= 1000;
    unit = next;
  }
  return `${sign}${unit === "B" ? size : size.toFixed(1)} ${unit}`;
}
function time(value) {
  if (value === null) return "-";
  for (const [unit, scale] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    if (value >= scale) return `${(value / scale).toPrecision(3)} ${unit}`;
  }
  return `${(value * 1e9).toFixed(0)} ns`;
}
const percent = (value) => `${(value * 100).toFixed(value < 0.0995 ? 1 : 0)} %`;
const count = (value) => Math.round(value).toLocaleString("en");
/* A name that a converter made of all that it fused ("a;b;c") by its first part; titles have it whole. */
const short = (name) => name.split(";")[0];
/* The last parts of a path that fit: "activation_1/Relu". */
function tail(name, length) {
  const parts = short(name).split("/");
  while (parts.length > 1 && parts.join("/").length > length) parts.shift();
  const text = parts.join("/");
  return text.length > length ? `…${text.slice(1 - length)}` : text;
}
const few = (value) => (value === 0 ? "0" : typeof value === "string" ? value : value.toExponential(1));
const decibels = (value) => (value === null ? "-" : value === "inf" ? "exact" : `${Number(value).toFixed(1)} dB`);
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const sum = (list, of) => list.reduce((total, item) => total + (of(item) || 0), 0);
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

const measured = report.layers.some((layer) => layer.seconds !== null);
const compared = report.layers.some((layer) => layer.agrees !== null);
const whole = sum(report.layers, (layer) => layer.seconds) || 1;
const cycles = sum(report.layers, (layer) => layer.cycles) || 1;
const share = (layer) => (measured ? layer.seconds / whole : (layer.cycles || 0) / cycles);
const ofLimit = (layer) => (layer.limit_seconds && layer.seconds ? layer.limit_seconds / layer.seconds : null);

function table(id, columns, rows) {
  const holder = el(id);
  const head = make("tr", make("thead", holder));
  for (const [name, kind] of columns) make("th", head, name, kind);
  const body = make("tbody", holder);
  for (const row of rows) {
    const line = make("tr", body);
    row.forEach((cell, i) => {
      const [text, classes] = Array.isArray(cell) ? cell : [cell, ""];
      const short = String(text).length <= 14 ? "short" : ""; // no word of it is broken
      make("td", line, text, `${columns[i][1] || ""} ${classes} ${short}`.trim());
    });
  }
}

function bars(holder, title, rows) {
  if (title) make("h3", holder, title, "quiet");
  const largest = Math.max(1, ...rows.map((row) => row[1]));
  for (const [name, size] of rows) {
    const bar = make("div", holder, undefined, "bar");
    make("span", bar, tail(name, 24)).title = name;
    make("i", make("span", bar)).style.width = `${(100 * size) / largest}%`;
    make("span", bar, bytes(size));
  }
}

function hide(id) { el(id).hidden = true; }

/* Head, tiles, notes. */
function showHead() {
  el("name").textContent = report.name;
  el("subtitle").textContent = [`compiled for ${report.target}`, report.where ? `run on ${report.where}` : "not run", report.made].join(" · ");
  const tile = (label, figure, more) => {
    const box = make("div", el("tiles"), undefined, "tile");
    make("span", box, label, "quiet");
    make("span", box, figure, "figure");
    make("span", box, more, "quiet");
  };
  if (report.run_seconds.length) {
    const runs = report.run_seconds;
    tile("time per run", time(median(runs)), `median of ${runs.length}, ${time(Math.min(...runs))} to ${time(Math.max(...runs))}`);
  } else {
    tile("predicted", `${count(cycles)}`, "cycles of one core");
  }
  const operators = report.before.filter((node) => node.kind === "operator").length;
  tile("layers", String(report.layers.length), `${plural(operators, "operator")} before fusion`);
  tile("weights", bytes(sum(report.layers, (layer) => layer.weights_bytes)), "as kept for the target");
  if (report.memory) tile("tensors", bytes(report.memory.size), `at least ${bytes(report.memory.lower_bound)} by any plan`);
  if (report.sizes.length) tile("file", bytes(report.sizes[0][1]), report.sizes[0][0]);
  if (compared || report.agreement.length) {
    const wrong = report.layers.filter((layer) => layer.agrees === false).length;
    const outputs = report.agreement.filter((output) => !output.agrees).length;
    tile("numbers", wrong || outputs ? "differ" : "agree", wrong ? `${plural(wrong, "layer")} differ` : report.reference || "with NumPy's references");
  }
  for (const note of report.notes) make("li", el("notes"), note);
}

/* Layers. */
const ORDERS = {
  "as they run": () => 0,
  "slowest first": (a, b) => share(b) - share(a),
  "most above its limit": (a, b) => (b.seconds || 0) - (b.limit_seconds || b.seconds || 0) - ((a.seconds || 0) - (a.limit_seconds || a.seconds || 0)),
  "largest error": (a, b) => Number(b.error || 0) - Number(a.error || 0),
  "heaviest weights": (a, b) => b.weights_bytes - a.weights_bytes,
  "most memory alive": (a, b) => b.alive_bytes - a.alive_bytes,
};

function layerRow(layer, largest) {
  const row = make("div", null, undefined, "row");
  row.tabIndex = 0;
  row.setAttribute("role", "row");
  row.setAttribute("aria-expanded", "false");
  const who = make("span", row, short(layer.name), "who");
  who.title = layer.name;
  make("small", who, `${layer.operators} · ${layer.strategy}`);
  const track = make("span", row, undefined, "track");
  make("i", track).style.width = `${(72 * share(layer)) / largest}%`;
  if (layer.limit_seconds) make("b", track).style.left = `${Math.min(99, (72 * layer.limit_seconds) / whole / largest)}%`;
  make("span", track, measured ? `${time(layer.seconds)} · ${percent(share(layer))}` : layer.cycles === null ? "-" : count(layer.cycles));
  const cell = (name, text, classes) => { make("span", row, text, `cell ${classes || ""}`).dataset.name = name; };
  if (measured) {
    const reached = ofLimit(layer);
    cell("of limit", reached === null ? "-" : percent(reached), reached !== null && reached < 0.5 && share(layer) > 0.01 ? "far" : "");
    cell("bound by", reached === null ? "-" : layer.bound_by);
  } else {
    cell("alive", bytes(layer.alive_bytes));
  }
  cell("error", layer.agrees === null ? "-" : few(layer.error), layer.agrees === false ? "differs" : "");
  cell("weights", bytes(layer.weights_bytes));
  const open = () => {
    const isOpen = row.getAttribute("aria-expanded") === "true";
    row.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) row.nextElementSibling.remove();
    else row.after(layerMore(layer));
  };
  row.addEventListener("click", open);
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  return row;
}

function layerMore(layer) {
  const more = make("dl", null, undefined, "more");
  const say = (name, text) => { if (text) { make("dt", more, name); make("dd", more, text); } };
  say("nodes", layer.nodes.join(", "));
  say("result", layer.type);
  say("strategy", layer.strategy);
  say("knobs", layer.knobs);
  say("predicted", layer.cycles === null ? "" : `${count(layer.cycles)} cycles`);
  if (layer.flops !== null) say("arithmetic", `${count(layer.flops)} operations${layer.seconds ? `, ${(layer.flops / layer.seconds / 1e9).toPrecision(3)} G/s` : ""}`);
  if (layer.bytes !== null) say("bytes", `${bytes(layer.bytes)} read and written${layer.seconds ? `, ${(layer.bytes / layer.seconds / 1e9).toPrecision(3)} GB/s` : ""}`);
  if (layer.limit_seconds) say("limit", `${time(layer.limit_seconds)} (${layer.bound_by})`);
  say("alive", `${bytes(layer.alive_bytes)} of tensors while it runs`);
  if (layer.agrees !== null) say("numbers", `${layer.agrees ? "agree" : "DIFFER"}, largest error ${few(layer.error)}, ${decibels(layer.sqnr_db)}`);
  say("kernel", layer.kernel);
  const link = make("button", make("dd", more), "show in the graph");
  more.insertBefore(make("dt", null, ""), link.parentNode);
  link.type = "button";
  link.addEventListener("click", () => {
    showGraph("after");
    view.choose(report.after.findIndex((node) => node.layer === report.layers.indexOf(layer)));
    el("graph").scrollIntoView();
  });
  return more;
}

function showLayers() {
  const holder = el("layer-rows");
  holder.classList.toggle("still", !measured);
  const names = ["layer", measured ? "time, its share" : "predicted cycles", ...(measured ? ["of limit", "bound by"] : ["memory alive"]), "error", "weights"];
  const words = el("layer-find").value.trim().toLowerCase();
  const order = ORDERS[el("layer-order").value];
  const shown = report.layers.filter((layer) => [layer.name, layer.operators, layer.strategy, ...layer.nodes].some((text) => text.toLowerCase().includes(words)));
  shown.sort(order);
  const head = make("div", null, undefined, "row names");
  names.forEach((name, i) => make("span", head, name, i > 1 ? "cell" : ""));
  const largest = Math.max(1e-30, ...report.layers.map(share));
  holder.replaceChildren(head, ...shown.map((layer) => layerRow(layer, largest)));
  el("layers-rest").textContent = shown.length < report.layers.length ? `${shown.length} of ${plural(report.layers.length, "layer")}` : "";
}

function startLayers() {
  for (const name of Object.keys(ORDERS)) make("option", el("layer-order"), name);
  el("layer-order").addEventListener("change", showLayers);
  el("layer-find").addEventListener("input", showLayers);
  const far = report.layers.filter((layer) => ofLimit(layer) !== null && ofLimit(layer) < 0.5 && share(layer) > 0.01);
  const parts = [measured ? "A bar is the layer's time" : "A bar is what the cost model predicts; layers without a prediction have none"];
  if (report.limits.length) parts.push("the mark in it is the least that the device's limits allow", `${plural(far.length, "layer")} with more than 1 % of the time ${far.length === 1 ? "is" : "are"} below half of that`);
  if (compared) parts.push("errors are shares of the largest value beside NumPy's references on the same inputs");
  el("layers-note").textContent = `${parts.join("; ")}. Choose a layer for more.`;
  if (report.limits.length) {
    const details = make("details", el("limits"));
    make("summary", details, "Limits of the device, measured between the runs");
    const list = make("dl", details, undefined, "more");
    for (const [name, text] of report.limits) { make("dt", list, name); make("dd", list, text); }
  }
  showLayers();
}
