"use strict";
// The page of a tracker. State comes by server-sent events: first "farm" with everything, then
// "change" with what is new. Text of peers reaches the page through textContent only.

const $ = (id) => document.getElementById(id);
const STATES = ["free", "busy", "drained", "offline"];
const WORDS = { free: "free", assigned: "handing out", busy: "in use", drained: "out of service", offline: "offline" };
const KINDS = { offline: "went offline", lost: "session lost", failed: "session failed", kicked: "ended", timeout: "waited too long", refused: "refused a session", peer: "turned away" };
const RESULTS = { ok: "done", failed: "failed", kicked: "ended", lost: "lost", timeout: "took too long" };
const devices = new Map(); // id -> what the tracker says of it
const rows = new Map(); // id -> its row
let farm = { kinds: {}, queue: [], errors: [], jobs: [], totals: {}, waiting: 0, started: 0 };
let points = []; // [Unix time, online, in use, waiting, sessions finished]
let day = []; // the same of the last day, in steps of minutes
let span = 3600; // seconds that the chart shows
let managed = 0; // the device that the dialog is about
let managedUntil = 0; // its reservation's end when the dialog was opened
let skew = 0; // seconds that the tracker's clock is ahead of ours
let shown = "all";
let admin = { can_sign_in: false, is_admin: false, csrf: "", commands: [] };
let cursor = -1;

const person = (holder) => holder.replace(/^slipway \S+ /, "");
const now = () => Date.now() / 1000 + skew;

function make(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function ageText(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
const when = (at) => (at - now() < 20 * 3600 ? clock(at) : `${new Date(at * 1000).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" })}, ${clock(at)}`);
const inUse = (state) => state === "busy" || state === "assigned";

// --- Figures -------------------------------------------------------------------------------------

function showTiles() {
  if (!farm.started) return; // nothing has come yet: no figure, and no 0 either
  let online = 0, used = 0, offline = 0, drained = 0;
  for (const device of devices.values()) {
    if (device.state === "offline") offline++; else online++;
    if (inUse(device.state)) used++;
    if (device.state === "drained") drained++;
  }
  setText($("online"), String(online));
  setText($("online-more"), offline ? `${offline} offline` : drained ? `${drained} out of service` : "all of them");
  setText($("used"), String(used));
  setText($("used-more"), online ? `${Math.round((100 * used) / online)} % of those online` : "no devices");
  setText($("waiting"), String(farm.waiting));
  const longest = Math.min(...farm.queue.map((request) => request.since));
  setText($("waiting-more"), farm.waiting ? `the first for ${ageText(now() - longest)}` : "nobody");
  const recent = points.filter((point) => point[0] > now() - 65);
  const minutes = recent.length > 1 ? (recent.at(-1)[0] - recent[0][0]) / 60 : 0;
  const finished = recent.slice(1).reduce((sum, point) => sum + point[4], 0);
  setText($("rate"), minutes > 0.05 ? (finished / minutes).toFixed(finished / minutes < 10 ? 1 : 0) : "–");
  const sessions = farm.totals.sessions || {};
  const bad = (sessions.failed || 0) + (sessions.lost || 0);
  const all = Object.values(sessions).reduce((a, b) => a + b, 0);
  setText($("rate-more"), all ? `${all} in all, ${bad} failed` : "none yet");
  setText($("uptime"), farm.started ? `up for ${ageText(now() - farm.started)}` : " ");
  document.title = farm.waiting ? `(${farm.waiting}) Slipway farm` : "Slipway farm";
}

function showKinds() {
  const list = $("kinds");
  const made = [];
  for (const [key, kind] of Object.entries(farm.kinds)) {
    const used = kind.busy + kind.assigned;
    const online = used + kind.free + kind.drained;
    const item = make("li");
    const row = make("div", "row");
    row.append(make("b", "", key || "any"), make("span", "quiet", `${used} of ${online} in use${kind.waiting ? `, ${kind.waiting} waiting` : ""}`));
    const bar = make("div", "bar");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", `${used} in use, ${kind.free} free, ${kind.drained} out of service, ${kind.offline} offline`);
    for (const [name, count] of [["busy", used], ["free", kind.free], ["drained", kind.drained], ["offline", kind.offline]]) {
      if (!count) continue;
      const part = make("i", name);
      part.style.flexGrow = count;
      bar.append(part);
    }
    item.append(row, bar);
    made.push(item);
  }
  if (!made.length) made.push(make("li", "empty", "No device has registered yet."));
  list.replaceChildren(...made);
}

// --- The chart -----------------------------------------------------------------------------------

const SPACE = "http://www.w3.org/2000/svg";

function draw(tag, attributes, text) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function niceTop(value) {
  for (let step = 1; ; step *= 10) for (const m of [4, 8, 12, 20]) if (value <= m * step) return m * step;
}

function showChart() {
  const box = $("chart");
  const width = box.clientWidth, height = box.clientHeight;
  if (!width || !farm.started) return;
  const left = 34, right = 6, top = 8, bottom = 22;
  const end = now();
  const whole = span > 3600 ? [...day, ...points.filter((point) => point[0] > (day.at(-1)?.[0] ?? 0))] : points;
  const seen = whole.filter((point) => point[0] > end - span);
  const ceiling = niceTop(Math.max(1, ...seen.map((p) => Math.max(p[1], p[3]))));
  const x = (at) => left + (width - left - right) * (1 - (end - at) / span);
  const y = (value) => top + (height - top - bottom) * (1 - value / ceiling);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (let part = 0; part <= 4; part += 2) {
    const at = y((ceiling * part) / 4);
    svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }));
    svg.append(draw("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, String((ceiling * part) / 4)));
  }
  for (const part of width < 500 ? [4, 2, 0] : [4, 3, 2, 1, 0]) {
    const anchor = part === 4 ? "start" : part ? "middle" : "end";
    const ago = span > 3600 ? `${part * 6} h ago` : `${part * 15} min ago`;
    svg.append(draw("text", { x: x(end - (part * span) / 4), y: height - 4, "text-anchor": anchor }, part ? ago : "now"));
  }
  const path = (column) => seen.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[column]).toFixed(1)}`).join("");
  if (seen.length > 1) {
    const base = y(0).toFixed(1);
    svg.append(draw("path", { class: "area", d: `${path(2)}L${x(seen.at(-1)[0]).toFixed(1)} ${base}L${x(seen[0][0]).toFixed(1)} ${base}Z` }));
    svg.append(draw("path", { class: "total", d: path(1) }), draw("path", { class: "wait", d: path(3) }), draw("path", { class: "busy", d: path(2) }));
  }
  const last = seen.at(-1);
  box.setAttribute("aria-label", last
    ? `Devices over the last ${span > 3600 ? "day" : "hour"}. Now ${last[1]} online, ${last[2]} in use, ${last[3]} waiting. At most ${Math.max(...seen.map((p) => p[2]))} in use and ${Math.max(...seen.map((p) => p[3]))} waiting.`
    : "No history yet");
  const point = cursor >= 0 ? seen[Math.min(cursor, seen.length - 1)] : undefined;
  if (point) svg.append(draw("line", { class: "cursor", x1: x(point[0]), x2: x(point[0]), y1: top, y2: height - bottom }));
  setText($("reading"), point ? `${clock(point[0])}: ${point[1]} online, ${point[2]} in use, ${point[3]} waiting` : "");
  box.replaceChildren(svg);
  box.pick = (pixel) => {
    const at = end - span * (1 - (pixel - left) / (width - left - right));
    let best = -1;
    seen.forEach((p, i) => { if (best < 0 || Math.abs(p[0] - at) < Math.abs(seen[best][0] - at)) best = i; });
    cursor = best;
    showChart();
  };
  box.count = seen.length;
}

$("chart").addEventListener("pointermove", (event) => $("chart").pick?.(event.clientX - $("chart").getBoundingClientRect().left));
for (const leave of ["pointerleave", "blur"]) $("chart").addEventListener(leave, () => { cursor = -1; showChart(); });
$("chart").addEventListener("keydown", (event) => {
  const count = $("chart").count || 0;
  const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -60, PageDown: 60, Home: -count, End: count }[event.key];
  if (!step || !count) return;
  event.preventDefault();
  cursor = Math.max(0, Math.min(count - 1, (cursor < 0 ? count - 1 : cursor) + step));
  showChart();
});
new ResizeObserver(() => showChart()).observe($("chart"));

async function loadDay() {
  if (span <= 3600) return;
  const answer = await fetch("api/day").then((response) => response.json()).catch(() => undefined);
  if (answer) { day = answer.history; showChart(); }
}

for (const button of $("spans").children) {
  button.addEventListener("click", () => {
    span = Number(button.dataset.span);
    cursor = -1;
    for (const other of $("spans").children) other.setAttribute("aria-pressed", String(other === button));
    setText($("chart-title"), span > 3600 ? "Last day" : "Last hour");
    showChart();
    loadDay();
  });
}
setInterval(loadDay, 60000);

// --- Devices -------------------------------------------------------------------------------------

function matches(device) {
  const words = $("find").value.trim().toLowerCase();
  const state = inUse(device.state) ? "busy" : device.state;
  if (shown !== "all" && shown !== state) return false;
  return !words || `${device.key} ${device.address}:${device.port} ${device.holder} ${device.session} ${device.description} ${device.note} ${device.tags.join(" ")} ${device.reserved_for}`.toLowerCase().includes(words);
}

function newRow(device) {
  const row = make("tr");
  row.setAttribute("role", "row");
  const cell = (kind) => {
    const made = make("td", kind);
    made.setAttribute("role", "cell");
    row.append(made);
    return made;
  };
  const parts = { row, device: cell("device"), state: cell("state"), session: cell("session"), age: cell("age"), count: cell("number"), acts: cell("acts") };
  rows.set(device.id, parts);
  return parts;
}

function fillRow(device) {
  const parts = rows.get(device.id) || newRow(device);
  const name = make("span", "name", device.key);
  const address = make("span", "place", `${device.address}:${device.port}`);
  address.title = device.description;
  parts.device.replaceChildren(name, address);
  if (device.tags.length) {
    const tags = make("span", "tags");
    tags.append(...device.tags.map((tag) => make("span", "tag", tag)));
    parts.device.append(tags);
  }
  if (device.description) parts.device.append(make("span", "place", device.description));
  if (device.note) parts.device.append(make("span", "note", device.note));
  parts.state.replaceChildren(make("span", `badge ${device.state}`, WORDS[device.state] || device.state));
  if (device.drained && inUse(device.state)) parts.state.append(make("span", "place", "then out of service"));
  if (device.reserved_for && device.reserved_until > now()) {
    parts.state.append(make("span", "place reserved", `for ${device.reserved_for} until ${when(device.reserved_until)}`));
  }
  const session = [];
  if (device.session) session.push(make("code", "", device.session), make("span", "holder", person(device.holder)));
  if (device.last_error && device.state !== "busy") session.push(make("span", "fault", device.last_error));
  parts.session.replaceChildren(...session);
  setText(parts.count, String(device.sessions));
  const acts = [];
  if (admin.is_admin) {
    const act = (word, verb) => {
      const button = make("button", "", word);
      button.type = "button";
      button.setAttribute("aria-label", `${word}: ${device.key} at ${device.address}:${device.port}`);
      button.addEventListener("click", () => perform(device, verb));
      acts.push(button);
    };
    if (device.session) act("End session", "kick");
    if (device.drained) act("Resume", "resume"); else act("Drain", "drain");
    act("Manage", "manage");
  }
  parts.acts.replaceChildren(...acts);
  parts.row.hidden = !matches(device);
  return parts.row;
}

function placeRows() {
  const order = [...devices.values()].sort((a, b) => a.key.localeCompare(b.key, undefined, { numeric: true }) || a.id - b.id);
  $("rows").replaceChildren(...order.map((device) => rows.get(device.id).row));
}

function showCount() {
  if (!farm.started) return;
  let visible = 0;
  for (const [id, parts] of rows) {
    parts.row.hidden = !matches(devices.get(id));
    if (!parts.row.hidden) visible++;
  }
  setText($("no-devices"), visible ? "" : devices.size ? "No device matches." : "No device has registered yet. Start one with: slipway rpc-server --tracker HOST:PORT --key NAME");
  const counts = { all: devices.size, free: 0, busy: 0, drained: 0, offline: 0 };
  for (const device of devices.values()) counts[inUse(device.state) ? "busy" : device.state]++;
  for (const button of $("chips").children) {
    setText(button.lastChild, String(counts[button.dataset.state]));
    button.setAttribute("aria-pressed", String(button.dataset.state === shown));
  }
}

for (const state of ["all", ...STATES]) {
  const button = make("button", "", state === "all" ? "All" : WORDS[state][0].toUpperCase() + WORDS[state].slice(1));
  button.type = "button";
  button.dataset.state = state;
  button.append(make("span"));
  button.addEventListener("click", () => { shown = state; showCount(); });
  $("chips").append(button);
}
$("find").addEventListener("input", showCount);

function showAges() {
  for (const [id, parts] of rows) {
    if (parts.row.hidden) continue;
    const device = devices.get(id);
    setText(parts.age, ageText(now() - device.since));
  }
  for (const item of document.querySelectorAll("[data-since]")) setText(item, ageText(now() - Number(item.dataset.since)) + item.dataset.after);
}

// --- Lists ---------------------------------------------------------------------------------------

function since(at, after) {
  const made = make("span", "quiet");
  made.dataset.since = at;
  made.dataset.after = after;
  return made;
}

function showQueue() {
  $("queue").replaceChildren(...farm.queue.map((request) => {
    const item = make("li");
    const row = make("div", "row");
    row.append(make("b", "", request.key), make("span", "quiet", `priority ${request.priority}`), since(request.since, ""));
    item.append(row, make("span", "holder", person(request.holder)));
    return item;
  }));
  if (farm.waiting > farm.queue.length) $("queue").append(make("li", "quiet", `and ${farm.waiting - farm.queue.length} more`));
  $("no-queue").hidden = farm.waiting > 0;
}

function showErrors() {
  $("errors").replaceChildren(...farm.errors.map((error) => {
    const item = make("li");
    const row = make("div", "row");
    row.append(make("span", `badge ${error.kind}`, KINDS[error.kind] || error.kind));
    row.append(since(error.at, " ago"));
    item.append(row);
    const where = make("div", "row");
    if (error.device) where.append(make("b", "", error.device));
    if (error.session) where.append(make("code", "", error.session));
    if (where.childNodes.length) item.append(where);
    item.append(make("span", "holder", error.text));
    return item;
  }));
  $("no-errors").hidden = farm.errors.length > 0;
}

function showJobs() {
  $("jobs").replaceChildren(...farm.jobs.map((job) => {
    const item = make("li");
    const row = make("div", "row");
    row.append(make("span", `badge ${job.result === "ok" ? "free" : job.result}`, RESULTS[job.result] || job.result));
    if (job.kind !== "session") row.append(make("b", "", job.kind));
    row.append(make("span", "", job.device));
    if (job.session) row.append(make("code", "", job.session));
    row.append(make("span", "quiet", `${ageText(job.length_s)} long`), since(job.at, " ago"));
    item.append(row, make("span", "holder", person(job.who)));
    if (job.text) item.append(make("span", job.result === "ok" ? "holder" : "fault", job.text));
    return item;
  }));
  $("no-jobs").hidden = farm.jobs.length > 0;
}

// --- What the tracker sends ----------------------------------------------------------------------

function show() {
  showKinds();
  showQueue();
  showErrors();
  showJobs();
  showCount();
  showTiles();
  showAges();
  showChart();
}

function takeAll(message) {
  skew = message.now - Date.now() / 1000;
  farm = message;
  points = message.history;
  devices.clear();
  rows.clear();
  for (const device of message.devices) { devices.set(device.id, device); fillRow(device); }
  placeRows();
  show();
}

function takeChange(message) {
  skew = message.now - Date.now() / 1000;
  Object.assign(farm, message);
  let moved = false;
  for (const id of message.removed) { devices.delete(id); rows.delete(id); moved = true; }
  for (const device of message.devices) {
    moved ||= !devices.has(device.id);
    devices.set(device.id, device);
    fillRow(device);
  }
  if (moved) placeRows();
  if (message.sample) {
    points.push(message.sample);
    points = points.filter((point) => point[0] > now() - 3700);
  }
  show();
}

function setLink(state, words) {
  $("link").dataset.state = state;
  setText($("link"), words);
}

function listen() {
  const source = new EventSource("api/events");
  source.addEventListener("farm", (event) => { setLink("live", "live"); takeAll(JSON.parse(event.data)); });
  source.addEventListener("change", (event) => takeChange(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    setLink("lost", "reconnecting");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

setInterval(() => { showAges(); showTiles(); }, 1000);

// --- The administrator ---------------------------------------------------------------------------

let toastTimer = 0;

function toast(words) {
  setText($("toast"), words);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => setText($("toast"), ""), 5000);
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": admin.csrf },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) showAdmin({ ...admin, is_admin: false, csrf: "" });
  if (!response.ok) throw new Error(answer.error || `the tracker answered ${response.status}`);
  return answer;
}

function showAdmin(state) {
  admin = { commands: [], ...state };
  $("admin").hidden = !admin.can_sign_in;
  setText($("admin"), admin.is_admin ? "Sign out" : "Sign in");
  document.body.classList.toggle("admin", admin.is_admin);
  for (const device of devices.values()) fillRow(device);
  $("farm-commands").replaceChildren(...admin.commands.filter((one) => one.farm).map((one) => commandButton(one.name, async (button) => {
    button.disabled = true;
    toast(`${one.name}: started.`);
    const answer = await post("api/command", { name: one.name }).catch((error) => ({ result: "failed", text: error.message }));
    button.disabled = false;
    toast(commandText(one.name, answer));
  })));
}

function commandButton(name, run) {
  const button = make("button", "plain", name);
  button.type = "button";
  button.addEventListener("click", () => run(button));
  return button;
}

const commandText = (name, answer) => `${name}: ${RESULTS[answer.result] || answer.result}${answer.text ? `. ${answer.text}` : "."}`;

function manage(device) {
  managed = device.id;
  setText($("manage-title"), device.key);
  setText($("manage-place"), `${device.address}:${device.port}${device.description ? ` · ${device.description}` : ""}`);
  const reserved = device.reserved_for && device.reserved_until > now();
  $("note").value = device.note;
  $("tags").value = device.tags.join(", ");
  $("who").value = reserved ? device.reserved_for : "";
  for (const option of $("until").querySelectorAll(".kept")) option.remove();
  managedUntil = reserved ? device.reserved_until : 0;
  if (reserved) {
    const kept = make("option", "kept", `at ${when(device.reserved_until)}`);
    kept.value = "kept";
    $("until").prepend(kept);
  }
  $("until").selectedIndex = reserved ? 0 : 1;
  setText($("manage-said"), "");
  $("manage-commands").replaceChildren(...admin.commands
    .filter((one) => !one.farm && (!one.kinds.length || one.kinds.includes(device.key)))
    .map((one) => commandButton(one.name, async (button) => {
      button.disabled = true;
      setText($("manage-said"), `${one.name} …`);
      const answer = await post(`api/devices/${device.id}/command`, { name: one.name }).catch((error) => ({ result: "failed", text: error.message }));
      button.disabled = false;
      setText($("manage-said"), commandText(one.name, answer));
    })));
  $("manage").showModal();
}

$("manage-cancel").addEventListener("click", () => $("manage").close());
$("manage-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const device = devices.get(managed);
  const kept = $("until").value === "kept";
  const who = $("who").value.trim();
  const minutes = !who ? 0 : kept ? Math.max(0, (managedUntil - now()) / 60) : Number($("until").value);
  try {
    await post(`api/devices/${managed}/describe`, { note: $("note").value, tags: $("tags").value });
    if (!kept || !device || who !== device.reserved_for) await post(`api/devices/${managed}/reserve`, { who, minutes });
    $("manage").close();
  } catch (error) {
    setText($("manage-said"), error.message);
  }
});

async function perform(device, verb) {
  const name = `${device.key} at ${device.address}:${device.port}`;
  if (verb === "manage") return manage(devices.get(device.id) || device);
  if (verb === "kick") {
    setText($("confirm-title"), `End the session on ${device.key}?`);
    setText($("confirm-text"), `${person(device.holder)} has ${name} and loses what runs there.`);
    $("confirm").returnValue = "no";
    $("confirm").showModal();
    await new Promise((done) => $("confirm").addEventListener("close", done, { once: true }));
    if ($("confirm").returnValue !== "yes") return;
  }
  try {
    await post(`api/devices/${device.id}/${verb}`, { session: device.session });
    toast({ kick: `The session on ${name} is being ended.`, drain: `${name} gets no further sessions.`, resume: `${name} is in service again.` }[verb]);
  } catch (error) {
    toast(error.message);
  }
}

$("admin").addEventListener("click", async () => {
  if (!admin.is_admin) {
    setText($("sign-in-error"), "");
    $("sign-in").showModal();
    return;
  }
  await post("api/logout", {}).catch(() => undefined);
  showAdmin({ ...admin, is_admin: false, csrf: "" });
});
$("sign-in-cancel").addEventListener("click", () => $("sign-in").close());
$("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    showAdmin(await post("api/login", { token: $("token").value }));
    $("sign-in").close();
  } catch (error) {
    setText($("sign-in-error"), error.message);
  }
  $("token").value = "";
});

fetch("api/me").then((response) => response.json()).then(showAdmin).catch(() => undefined);
listen();
