"use strict";
/* Layout and view of a directed graph: rows by depth, each node near the middle of its inputs. */

const NODE_WIDTH = 190, NODE_HEIGHT = 46, GAP_X = 22, GAP_Y = 30;
const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

/* Return {x, y, width, height}: the top left corners of all nodes, and the extent of the whole. */
function layout(nodes) {
  const depth = nodes.map(() => 0);
  nodes.forEach((node, i) => { for (const from of node.inputs) depth[i] = Math.max(depth[i], depth[from] + 1); });
  // An input stands right above its first reader.
  const first = nodes.map(() => Infinity);
  nodes.forEach((node, i) => { for (const from of node.inputs) first[from] = Math.min(first[from], depth[i]); });
  nodes.forEach((node, i) => { if (!node.inputs.length && first[i] < Infinity) depth[i] = Math.max(0, first[i] - 1); });
  const rows = [];
  nodes.forEach((_, i) => (rows[depth[i]] ||= []).push(i));
  const middle = nodes.map(() => 0), step = NODE_WIDTH + GAP_X;
  for (const row of rows) {
    if (!row) continue;
    const wish = new Map(row.map((i, position) => {
      const from = nodes[i].inputs;
      return [i, from.length ? from.reduce((sum, k) => sum + middle[k], 0) / from.length : (position - (row.length - 1) / 2) * step];
    }));
    row.sort((a, b) => wish.get(a) - wish.get(b));
    let last = -Infinity, moved = 0;
    for (const i of row) {
      middle[i] = Math.max(wish.get(i), last + step);
      moved += middle[i] - wish.get(i);
      last = middle[i];
    }
    for (const i of row) middle[i] -= moved / row.length;
  }
  const left = Math.min(0, ...middle) - NODE_WIDTH / 2;
  const x = middle.map((value) => value - NODE_WIDTH / 2 - left + GAP_X);
  const y = depth.map((row) => row * (NODE_HEIGHT + GAP_Y) + GAP_Y);
  return { x, y, width: Math.max(0, ...x) + NODE_WIDTH + GAP_X, height: Math.max(0, ...y) + NODE_HEIGHT + GAP_Y };
}

function shortened(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

class GraphView {
  /* `describe(node)` gives the second line and the share (0 to 1) that a node is filled with;
     `onChoose(node or null)` is told of the node that was chosen. */
  constructor(holder, describe, onChoose) {
    this.holder = holder;
    this.describe = describe;
    this.onChoose = onChoose;
    this.pointers = new Map();
    holder.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !this.focused()) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), this.at(event));
    }, { passive: false });
    holder.addEventListener("pointerdown", (event) => { this.pointers.set(event.pointerId, event); this.moved = 0; });
    holder.addEventListener("pointermove", (event) => this.drag(event));
    for (const kind of ["pointerup", "pointercancel", "pointerleave"]) {
      holder.addEventListener(kind, (event) => this.pointers.delete(event.pointerId));
    }
    holder.addEventListener("keydown", (event) => this.key(event));
  }

  focused() { return document.activeElement === this.holder; }

  show(nodes) {
    this.nodes = nodes;
    this.layout = layout(nodes);
    this.holder.replaceChildren();
    this.root = svg("svg", {}, this.holder);
    const { x, y } = this.layout;
    this.edges = [];
    nodes.forEach((node, i) => {
      for (const from of node.inputs) {
        const x0 = x[from] + NODE_WIDTH / 2, y0 = y[from] + NODE_HEIGHT, x1 = x[i] + NODE_WIDTH / 2, y1 = y[i];
        const bend = Math.max(GAP_Y / 2, Math.min(90, (y1 - y0) / 2));
        const d = `M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`;
        this.edges.push({ from, to: i, path: svg("path", { d, class: "edge" }, this.root) });
      }
    });
    this.boxes = nodes.map((node, i) => {
      const group = svg("g", { class: `node ${node.kind}`, transform: `translate(${x[i]} ${y[i]})` }, this.root);
      const { line, share } = this.describe(node);
      svg("rect", { width: NODE_WIDTH, height: NODE_HEIGHT, rx: 7 }, group);
      if (share) svg("rect", { class: "heat", x: 1.5, y: NODE_HEIGHT - 6, width: Math.max(2, share * (NODE_WIDTH - 3)), height: 4.5, rx: 2 }, group);
      svg("text", { x: 9, y: 18 }, group, shortened(node.label, 27));
      svg("text", { x: 9, y: 34, class: "soft" }, group, shortened(line, 30));
      svg("title", {}, group, `${node.label}\n${node.layers.join(", ")}\n${node.type}`);
      group.addEventListener("click", () => { if (this.moved < 6) this.choose(i); });
      return group;
    });
    this.start();
  }

  start() {
    const { clientWidth, clientHeight } = this.holder;
    const scale = Math.max(1, this.layout.width / Math.max(1, clientWidth) > 3 ? 1 : this.layout.width / Math.max(1, clientWidth));
    const width = clientWidth * scale;
    this.set(Math.min(0, (this.layout.width - width) / 2), 0, width, clientHeight * scale);
  }

  whole() { this.set(0, 0, this.layout.width, this.layout.height); }

  set(x, y, width, height) {
    this.view = { x, y, width, height };
    this.root.setAttribute("viewBox", `${x} ${y} ${Math.max(1, width)} ${Math.max(1, height)}`);
  }

  /* The point of the graph under an event. */
  at(event) {
    const matrix = this.root.getScreenCTM();
    return matrix ? new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse()) : { x: 0, y: 0 };
  }

  zoom(factor, around) {
    const { x, y, width, height } = this.view;
    const point = around || { x: x + width / 2, y: y + height / 2 };
    const scale = Math.min(Math.max(1 / factor, 60 / width), Math.max(1, (4 * Math.max(this.layout.width, this.layout.height)) / width));
    this.set(point.x - (point.x - x) * scale, point.y - (point.y - y) * scale, width * scale, height * scale);
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const others = [...this.pointers.values()].filter((other) => other.pointerId !== event.pointerId);
    if (others.length) {
      const length = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      this.zoom(length(event, others[0]) / Math.max(1, length(before, others[0])), this.at(others[0]));
    } else {
      const a = this.at(before), b = this.at(event);
      this.set(this.view.x + a.x - b.x, this.view.y + a.y - b.y, this.view.width, this.view.height);
    }
    this.moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
    this.pointers.set(event.pointerId, event);
  }

  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step) {
      const { x, y, width, height } = this.view;
      this.set(x + step[0] * width * 0.15, y + step[1] * height * 0.15, width, height);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else return;
    event.preventDefault();
  }

  find(words) {
    const wanted = words.trim().toLowerCase();
    this.found = [];
    this.nodes.forEach((node, i) => {
      const hit = wanted && [node.label, ...node.layers].some((text) => text.toLowerCase().includes(wanted));
      this.boxes[i].classList.toggle("found", Boolean(hit));
      if (hit) this.found.push(i);
    });
    this.next = 0;
    if (this.found.length) this.centre(this.found[0]);
    return this.found.length;
  }

  toNext() {
    if (!this.found?.length) return;
    this.next = (this.next + 1) % this.found.length;
    this.choose(this.found[this.next]);
  }

  centre(i) {
    const { width, height } = this.view;
    const x = this.layout.x[i] + NODE_WIDTH / 2, y = this.layout.y[i] + NODE_HEIGHT / 2;
    this.set(x - width / 2, y - height / 2, width, height);
  }

  choose(i, centred = true) {
    this.boxes.forEach((box, k) => box.classList.toggle("chosen", k === i));
    for (const edge of this.edges) edge.path.classList.toggle("chosen", edge.from === i || edge.to === i);
    if (centred && i >= 0) this.centre(i);
    this.onChoose(i < 0 ? null : this.nodes[i]);
  }
}
