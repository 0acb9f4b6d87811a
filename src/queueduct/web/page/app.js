// The page: which view is shown, where its events come from, and whether they still come.

import { element } from "/format.js";
import { QueuesView } from "/queues.js";
import { QueueView } from "/queue.js";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
let view = null;
let source = null;
let lastNews = 0;
let server = { interval: 0.5, actions: false, items: false, directory: "" };

// The token stands behind the # of the printed address: so no server and no log gets it with a request.
function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("token", found[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") ?? "";
}
const token = takeToken();

export async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, {
    method: body === undefined ? "GET" : "POST", headers, body: body === undefined ? undefined : JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error ?? `${answer.status}`);
  return told;
}

function show() {
  source?.close();
  view?.close?.();
  const found = /^\/queue\/(.+)$/.exec(location.pathname);
  const name = found ? decodeURIComponent(found[1]) : null;
  view = name === null ? new QueuesView(main, ask) : new QueueView(main, server, name, ask);
  document.title = name === null ? "queueduct" : `${name} – queueduct`;
  listen(view, name === null ? "/api/events" : `/api/events?queue=${encodeURIComponent(name)}`);
}

async function listen(mine, path) {
  try {
    await mine.open?.();
  } catch (error) {
    if (mine === view) main.replaceChildren(element("p", { className: "banner bad" }, error.message),
      element("p", {}, element("a", { href: "/", "data-link": "" }, "All queues")));
    return;
  }
  if (mine !== view) return;
  source = new EventSource(path);
  source.onmessage = (event) => {
    lastNews = performance.now();
    connected();
    if (mine === view) mine.update(JSON.parse(event.data));
  };
  source.onerror = () => disconnected();
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
  if (source?.readyState === EventSource.CLOSED && document.body.dataset.connected === "no") show();
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
