// The page: which view is shown, where its events come from, and whether they still come.

import { element } from "/format.js";
import { QueuesView } from "/queues.js";
import { QueueView } from "/queue.js";

const RETRY_MILLISECONDS = 1000;
const [MISSING_TOKEN, BUSY] = [401, 503];
const main = document.getElementById("main");
const connection = document.getElementById("connection");
let view = null;
let stream = null;
let lastNews = 0;
let server = { interval: 0.5, actions: false, items: false, directory: "" };

// The token stands behind the # of the printed address: so no server and no log gets it with a request.
// It is kept for this address, so that a queue opened in another tab is shown, too; a new server has a new one.
function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    localStorage.setItem("token", found[1]);
    history.replaceState(null, "", location.pathname);
  }
  return localStorage.getItem("token") ?? "";
}
const token = takeToken();
addEventListener("hashchange", () => { if (takeToken() !== token) location.reload(); });  // pasted into this tab
const keyed = (headers = {}) => (token ? { Authorization: `Bearer ${token}`, ...headers } : headers);

async function checked(answer) {
  if (answer.ok) return answer;
  const error = new Error((await answer.json()).error ?? `${answer.status}`);
  error.status = answer.status;
  throw error;
}

export async function ask(path, body) {
  const options = body === undefined ? { headers: keyed() }
    : { method: "POST", headers: keyed({ "Content-Type": "application/json" }), body: JSON.stringify(body) };
  return (await checked(await fetch(path, options))).json();
}

// Server-sent events with the token: an EventSource can send no header. Returns when the server ends them.
async function eventsOf(path, signal, take) {
  const answer = await checked(await fetch(path, { headers: keyed(), signal }));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let held = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (held + value).split("\n\n");
    held = parts.pop();
    for (const line of parts.flatMap((part) => part.split("\n")))
      if (line.startsWith("data: ")) take(JSON.parse(line.slice(6)));
  }
}

const pause = (milliseconds) => new Promise((resume) => { setTimeout(resume, milliseconds); });

function show() {
  stream?.abort();
  view?.close?.();
  const found = /^\/queue\/(.+)$/.exec(location.pathname);
  const name = found ? decodeURIComponent(found[1]) : null;
  view = name === null ? new QueuesView(main, ask) : new QueueView(main, server, name, ask);
  document.title = name === null ? "queueduct" : `${name} – queueduct`;
  listen(view, name === null ? "/api/events" : `/api/events?queue=${encodeURIComponent(name)}`);
}

async function listen(mine, path) {
  for (; mine === view; await pause(RETRY_MILLISECONDS)) {
    stream = new AbortController();
    try {
      await mine.open?.();
      if (mine !== view) return;
      document.body.dataset.connected = "";
      await eventsOf(path, stream.signal, (news) => {
        if (mine !== view) return;
        lastNews = performance.now();
        connected();
        try { mine.update(news); } catch (error) { reportError(error); }
      });
    } catch (error) {
      if (mine !== view) return;
      if (error.status && error.status !== BUSY) {
        refused(error);
        return;
      }
    }
    if (mine === view) disconnected();
  }
}

function refused(error) {
  const isForAll = error.status === MISSING_TOKEN;
  connection.replaceChildren(element("span", { className: "tag bad" }, isForAll ? "✕ refused" : "✕ not shown"));
  const others = element("p", {}, element("a", { href: "/", "data-link": "" }, "All queues"));
  main.replaceChildren(element("p", { className: "banner bad" }, error.message), isForAll ? "" : others);
}

function connected() {
  if (document.body.dataset.connected === "yes") return;
  if (document.body.dataset.connected === "no") view?.open?.();  // what was missed meanwhile
  document.body.dataset.connected = "yes";
  document.body.classList.remove("stale");
  connection.replaceChildren(element("span", { className: "tag ok" }, "✓ live"));
}

function disconnected() {
  document.body.dataset.connected = "no";
  document.body.classList.add("stale");
  const since = lastNews ? `, nothing new for ${Math.round((performance.now() - lastNews) / 1000)} s` : "";
  connection.replaceChildren(element("span", { className: "tag bad" }, `✕ disconnected${since}; trying again`));
}

// A server that is stopped by a debugger, or a machine that slept, breaks no connection.
setInterval(() => {
  if (lastNews && performance.now() - lastNews > Math.max(3000, 4000 * server.interval)) disconnected();
}, 1000);

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-link]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  show();
});
addEventListener("popstate", show);

const THEMES = ["system", "light", "dark"];
const themeButton = document.getElementById("theme");
function useTheme(theme) {
  localStorage.setItem("theme", theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.textContent = `theme: ${theme}`;
  dispatchEvent(new Event("theme"));
}
themeButton.addEventListener("click", () => {
  const now = localStorage.getItem("theme") ?? "system";
  useTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("theme")));
useTheme(THEMES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "system");

try {
  server = await ask("/api/server");
  document.getElementById("where").textContent = server.directory;
} catch { disconnected(); }
show();
