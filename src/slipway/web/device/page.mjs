// What the page shows: who uses this browser, and what runs in it.

import { Device } from "./device.mjs";

const REFRESH_MS = 500;
const KEPT = "slipway-device"; // of this tab: after a reload it is a device again
const at = (id) => document.getElementById(id);
const NAMES = { off: "off", connecting: "connecting", waiting: "connected", lost: "reconnecting", refused: "refused" };

let device;
let drawn; // a redraw that is due
let lock;
let trouble = ""; // why this is no device

/** What this browser is called: "slipway 0.1.0 in Chrome 131 on Android". */
function about(version) {
  const agent = navigator.userAgent;
  const browsers = [["Edg", "Edge"], ["Firefox", "Firefox"], ["Chrome", "Chrome"], ["Version", "Safari"]];
  const [mark, browser] = browsers.find(([one]) => agent.includes(`${one}/`)) ?? ["", "a browser"];
  const [, number = ""] = agent.match(new RegExp(`${mark}/(\\d+)`)) ?? [];
  const systems = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "CrOS", "Linux"];
  const system = systems.find((one) => agent.includes(one)) ?? "some system";
  return `slipway ${version} in ${browser} ${number} on ${system}`;
}

function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1e3));
  return seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function bytesText(count) {
  return count < 1e3 ? `${count} bytes` : count < 1e6 ? `${(count / 1e3).toFixed(0)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}

function set(id, text) {
  if (at(id).textContent !== text) {
    at(id).textContent = text;
  }
}

function draw() {
  drawn = undefined;
  const state = device?.state ?? { link: "off", message: trouble };
  const { session } = state;
  at("link").dataset.state = session ? "used" : state.link;
  set("link", session ? "in use" : NAMES[state.link]);
  at("form").hidden = Boolean(device);
  at("now").hidden = !device;
  at("message").hidden = !state.message;
  set("message", state.message === "" ? "" : sentence(state.message));
  if (!device) {
    return;
  }
  set("title", session ? "In use" : state.link === "waiting" ? "Waiting for somebody" : "Looking for the proxy");
  set("kind", device.key);
  set("client", session?.client ?? "nobody");
  set("since", session ? duration(Date.now() - session.since) : "–");
  const ran = session?.running ? Date.now() - session.runningSince : 0;
  set("running", session?.running ? `${session.running}${ran > 900 ? `, ${duration(ran)}` : ""}` : "–");
  set("calls", session ? String(session.calls) : "–");
  set("sessions", String(state.sessions));
  const modules = session?.modules ?? [];
  at("none").hidden = modules.length > 0;
  at("modules").replaceChildren(...modules.slice(-8).map(({ name, size }) => {
    const row = document.createElement("li");
    const [title, amount] = [document.createElement("b"), document.createElement("span")];
    title.textContent = name;
    amount.textContent = bytesText(size);
    row.append(title, amount);
    return row;
  }));
}

function sentence(text) {
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

function change() {
  drawn ??= setTimeout(draw, 50);
}

async function stayAwake() {
  try {
    lock = await navigator.wakeLock?.request("screen");
  } catch {
    lock = undefined; // the system decides
  }
}

let loading;
async function load() {
  loading ??= (async () => {
    const response = await fetch("device/session.wasm");
    if (!response.ok) {
      throw new Error(`the server answered ${response.status}`);
    }
    const program = await WebAssembly.compile(await response.arrayBuffer());
    return { program, version: response.headers.get("X-Slipway-Version") ?? "" };
  })();
  return loading;
}

async function begin({ key, token }) {
  at("go").disabled = true;
  trouble = "";
  try {
    const { program, version } = await load();
    const url = new URL("device/proxy", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    device = new Device({ url: url.href, key, token, about: about(version), program, onChange: change });
    set("about", device.about);
    sessionStorage.setItem(KEPT, JSON.stringify({ key, token }));
    stayAwake();
    const running = device;
    draw();
    await running.run();
    if (running.state.link === "refused") {
      sessionStorage.removeItem(KEPT);
      fail(running.state.message);
      at("token").focus();
    }
  } catch (error) {
    fail(`the page cannot become a device: ${error.message}`);
  } finally {
    at("go").disabled = false;
  }
}

function fail(text) {
  device = undefined;
  trouble = text;
  draw();
}

at("form").onsubmit = (event) => {
  event.preventDefault();
  begin({ key: at("key").value.trim(), token: at("token").value.trim() });
};
at("stop").onclick = () => {
  sessionStorage.removeItem(KEPT);
  device?.stop();
  device = undefined;
  lock?.release();
  draw();
};
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && device) {
    device.wake();
    stayAwake();
  }
});
window.addEventListener("online", () => device?.wake());
// A page that is left may be kept whole, in case somebody comes back: its session would hang.
window.addEventListener("pagehide", () => device?.leave("the page was closed"));
window.addEventListener("pageshow", ({ persisted }) => persisted && device?.wake());
setInterval(() => device && draw(), REFRESH_MS);

at("go").disabled = false;
const wanted = new URLSearchParams(location.hash.slice(1));
if (wanted.get("key")) {
  at("key").value = wanted.get("key");
}
const kept = sessionStorage.getItem(KEPT);
if (kept) {
  const values = JSON.parse(kept);
  at("key").value = values.key;
  begin(values);
} else if (wanted.has("start")) {
  begin({ key: at("key").value, token: "" });
}
