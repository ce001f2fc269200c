/* The parts below the layers: memory, flash and RAM, graph, numbers, nodes, sizes, how to repeat. */

const COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#b6992d", "#499894", "#e15759", "#8f7f79", "#d37295"];

function showMemory() {
  const memory = report.memory;
  if (!memory || !memory.tensors.length) return hide("memory");
  const over = memory.size - memory.lower_bound;
  el("memory-note").textContent = `${bytes(memory.size)}, ${over ? `${bytes(over)} above what any plan needs (dashed)` : "which no plan can undercut"}; layers to the right, addresses upwards`;
  const draw = () => {
    el("memory-charts").replaceChildren();
    for (const [pool, size] of memory.pools) drawPool(memory, pool, size);
  };
  draw();
  new ResizeObserver(draw).observe(el("memory-charts"));
  table("memory-table", [["tensor"], ["pool"], ["offset", "n"], ["bytes", "n"], ["layers", "n"]],
    memory.tensors.map((t) => [t.name, t.pool, count(t.offset), count(t.size), `${t.first} to ${t.last}`]));
  return undefined;
}

function drawPool(memory, pool, size) {
  const tensors = memory.tensors.filter((tensor) => tensor.pool === pool);
  const width = Math.max(260, el("memory-charts").clientWidth), height = width < 500 ? 260 : 340, left = 62, top = 8;
  const start = Math.min(...memory.tensors.map((t) => t.first));
  const steps = Math.max(...memory.tensors.map((t) => t.last)) + 1 - start;
  const across = (width - left - 6) / steps, up = height / Math.max(1, size);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height + 34}`, role: "img", "aria-label": `Memory ${pool}: ${bytes(size)}` }, el("memory-charts"));
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const y = top + height * (1 - part);
    svg("line", { x1: left, x2: width - 6, y1: y, y2: y, class: "axis" }, root);
    svg("text", { x: left - 6, y: y + 4, "text-anchor": "end", class: "soft" }, root, bytes(Math.round(size * part)));
  }
  tensors.forEach((t, i) => {
    const box = svg("rect", {
      class: "tensor", x: left + (t.first - start) * across, width: Math.max(0.5, (t.last - t.first + 1) * across),
      y: top + height - (t.offset + t.size) * up, height: Math.max(0.5, t.size * up), fill: COLOURS[i % COLOURS.length],
    }, root);
    const text = `${short(t.name)}: ${bytes(t.size)} at ${count(t.offset)}, alive in layers ${t.first} to ${t.last}`;
    svg("title", {}, box, text);
    box.addEventListener("pointerenter", () => { el("memory-reading").textContent = text; });
    box.addEventListener("click", () => { el("memory-reading").textContent = text; });
  });
  if (memory.pools.length === 1 && memory.lower_bound < size) {
    const y = top + height - memory.lower_bound * up;
    svg("line", { x1: left, x2: width - 6, y1: y, y2: y, class: "bound" }, root);
  }
  const every = Math.max(1, Math.ceil(steps / Math.max(3, Math.floor((width - left) / 70))));
  for (let step = 0; step < steps; step += every) {
    svg("text", { x: left + step * across, y: top + height + 16, class: "soft" }, root, String(start + step));
  }
}

function showBoards() {
  if (!report.flash.length) return hide("boards");
  bars(el("flash"), `Flash: ${bytes(sum(report.flash, (row) => row[1]))}`, report.flash);
  bars(el("ram"), `RAM: ${bytes(sum(report.ram, (row) => row[1]))}`, report.ram);
  const heavy = [...report.layers].sort((a, b) => b.weights_bytes - a.weights_bytes).slice(0, 12).filter((layer) => layer.weights_bytes);
  bars(el("flash"), "Heaviest layers in flash", heavy.map((layer) => [layer.name, layer.weights_bytes]));
  const alive = [...report.layers].sort((a, b) => b.alive_bytes - a.alive_bytes).slice(0, 12);
  bars(el("ram"), "Most RAM alive while they run", alive.map((layer) => [layer.name, layer.alive_bytes]));
  const left = (value) => [bytes(value), value < 0 ? "differs" : "right"];
  table("board-table", [["board with this core"], ["flash", "n"], ["flash left", "n"], ["RAM", "n"], ["RAM left", "n"], [""]],
    report.boards.map((b) => [b.name, bytes(b.flash), left(b.flash_left), bytes(b.ram), left(b.ram_left), b.flash_left < 0 || b.ram_left < 0 ? "does not fit" : "fits"]));
  return undefined;
}

/* Graph. */
let view, shownGraph;
const largestShare = Math.max(1e-30, ...report.layers.map(share));

function describe(node) {
  const layer = node.layer === null ? null : report.layers[node.layer];
  if (!layer) return { line: node.layers.map(short).join(", ") || node.type, share: 0 };
  const number = measured ? time(layer.seconds) : layer.cycles === null ? "" : `${count(layer.cycles)} cycles`;
  return { line: [number, tail(layer.name, 22)].filter(Boolean).join(" · "), share: share(layer) / largestShare };
}

function chosen(node) {
  const holder = el("graph-reading");
  holder.replaceChildren();
  if (!node) return;
  make("strong", holder, node.label);
  const weights = node.weights_bytes ? `, weights ${bytes(node.weights_bytes)}` : "";
  make("span", holder, ` gives ${node.type}${weights}. ${node.layers.length ? `Of the model's ${node.layers.map(short).join(", ")}. ` : ""}`);
  const other = shownGraph === "after" ? "before" : "after";
  const partner = report[other].findIndex((one) => one.layers.some((layer) => node.layers.includes(layer)));
  if (partner >= 0) {
    const link = make("button", holder, other === "after" ? "show what it became" : "show where it came from");
    link.type = "button";
    link.addEventListener("click", () => { showGraph(other); view.choose(partner); });
  }
}

function showGraph(which) {
  shownGraph = which;
  el("graph-before").setAttribute("aria-pressed", String(which === "before"));
  el("graph-after").setAttribute("aria-pressed", String(which === "after"));
  view.show(report[which]);
  chosen(null);
  find();
}

function find() {
  const words = el("graph-find").value;
  const found = words.trim() ? view.find(words) : (view.find(""), null);
  el("graph-count").textContent = found === null ? "" : `${found} found`;
}

function startGraph() {
  view = new GraphView(el("graph-view"), describe, chosen);
  showGraph("after");
  el("graph-before").addEventListener("click", () => showGraph("before"));
  el("graph-after").addEventListener("click", () => showGraph("after"));
  el("graph-find").addEventListener("input", find);
  el("graph-find").addEventListener("keydown", (event) => { if (event.key === "Enter") view.toNext(); });
  el("graph-next").addEventListener("click", () => view.toNext());
  el("graph-in").addEventListener("click", () => view.zoom(1.3));
  el("graph-out").addEventListener("click", () => view.zoom(1 / 1.3));
  el("graph-all").addEventListener("click", () => view.whole());
  window.addEventListener("beforeprint", () => view.whole());
}

function showNumbers() {
  if (!report.agreement.length && !compared) return hide("numbers");
  const wrong = report.layers.filter((layer) => layer.agrees === false);
  const parts = [];
  if (report.reference) parts.push(`The whole model beside ${report.reference}, tolerance ${report.tolerance} of the largest value.`);
  if (compared) parts.push(wrong.length ? `Layers that differ from their reference: ${wrong.map((layer) => layer.name).join(", ")}.` : `Each of the ${plural(report.layers.length, "layer")} agrees with its NumPy reference on the inputs that it has in this run.`);
  el("numbers-note").textContent = parts.join(" ");
  if (report.agreement.length) {
    table("agreement", [["output"], ["largest error", "n"], ["SQNR", "n"], ["cosine", "n"], [""]],
      report.agreement.map((o) => [o.name, few(o.error), decibels(o.sqnr_db), o.cosine === null ? "-" : Number(o.cosine).toFixed(6), [o.agrees ? "agrees" : "differs", o.agrees ? "right" : "differs"]]));
  }
  return undefined;
}

function showNodes() {
  if (!report.rewritten.length) return hide("nodes");
  const counts = {};
  for (const node of report.rewritten) counts[node.status] = (counts[node.status] || 0) + 1;
  el("nodes-note").textContent = Object.entries(counts).map(([status, number]) => `${count(number)} ${status}`).join(", ");
  table("node-table", [["node"], ["operator"], ["status"], ["becomes"]], report.rewritten.map((n) => [n.name, n.operator, n.status, n.detail]));
  return undefined;
}

function showRest() {
  if (report.sizes.length) bars(el("size-bars"), "", report.sizes);
  else hide("sizes");
  el("commands").textContent = report.repeat.join("\n");
  el("commands").hidden = !report.repeat.length;
  table("versions", [["what"], ["version"]], Object.entries(report.versions));
  table("versions", [["port"], ["type"]], [...report.inputs.map((text) => ["input", text]), ...report.outputs.map((text) => ["output", text])]);
  for (const card of document.querySelectorAll("main > .card:not([hidden])")) {
    make("a", make("li", el("parts")), card.querySelector("h2").textContent).href = `#${card.id}`;
  }
}

showHead();
startLayers();
showMemory();
showBoards();
startGraph();
showNumbers();
showNodes();
showRest();
