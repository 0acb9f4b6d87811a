// Numbers as a person reads them, and elements made of text: nothing that a queue is called becomes markup.

export function count(number) {
  if (number === null || number === undefined) return "";
  if (number > 0 && number < 10 && number !== Math.floor(number)) return number.toFixed(1);
  for (const [unit, size] of [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]]) {
    const scaled = number / size;
    if (Math.abs(scaled) < 999.5 || unit === "T")
      return scaled.toFixed(!unit || Math.abs(scaled) >= 99.5 ? 0 : Math.abs(scaled) >= 9.95 ? 1 : 2) + unit;
  }
  return "";
}

export const exact = (number) => Math.round(number).toLocaleString("en");

export function bytes(size) {
  for (const [unit, scale] of [["B", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9]])
    if (size < 999.5 * scale || unit === "GB")
      return `${(size / scale).toFixed(unit === "B" || size >= 99.5 * scale ? 0 : 1)} ${unit}`;
  return "";
}

export function age(seconds, isLonger = false) {
  const more = isLonger ? ">" : "";
  if (seconds < 0.9995) return `${more}${(seconds * 1e3).toFixed(0)} ms`;
  if (seconds < 99.5) return `${more}${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  if (seconds < 5970) return `${more}${(seconds / 60).toFixed(0)} min`;
  return seconds < 356400 ? `${more}${(seconds / 3600).toFixed(0)} h` : `${more}${(seconds / 86400).toFixed(0)} d`;
}

// Each status has a word and a sign, so that nobody needs its colour.
const STATUSES = {
  ok: ["ok", "✓"], unknown: ["quiet", "…"], unattended: ["warn", "○"], behind: ["warn", "↗"],
  stalled: ["bad", "■"], dropped: ["bad", "✕"],
  open: ["ok", "✓"], "shut down": ["quiet", "○"], corrupt: ["bad", "✕"], unreadable: ["bad", "✕"],
  alive: ["ok", "✓"], dead: ["bad", "✕"], gone: ["warn", "○"], left: ["quiet", "○"],
  running: ["ok", "✓"], ended: ["quiet", "○"], failed: ["bad", "✕"],
};

export function tag(status, more = "") {
  const [kind, sign] = STATUSES[status] ?? ["quiet", "?"];
  return element("span", { className: `tag ${kind}` }, `${sign} ${status}${more}`);
}

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function bar(fill, isCalm = false) {
  const level = isCalm || fill <= 0.7 ? "" : fill <= 0.9 ? " high" : " full";
  const inner = element("i");
  inner.style.width = `${Math.max(fill > 0 ? 2 : 0, fill * 100)}%`;
  const made = element("span", { className: `bar${level}`, title: `${(fill * 100).toFixed(1)} % full` }, inner);
  made.setAttribute("role", "meter");
  made.setAttribute("aria-valuenow", (fill * 100).toFixed(0));
  made.setAttribute("aria-label", "how full it is, in percent");
  return made;
}

export function depth(queue) {
  const meter = queue.fill === null
    ? element("span", { className: "faint nowrap" }, "no limit")
    : bar(queue.fill, queue.kind === "overwriting");
  return element("span", { className: "depth" },
    element("span", { className: "amount", title: exact(queue.depth) }, count(queue.depth)), meter);
}

export function table(heads, rows, className = "") {
  return element("div", { className: "scroll" }, element("table", { className },
    element("thead", {}, element("tr", {}, heads.map((head) =>
      element("th", { className: head.number ? "number" : "", scope: "col" }, head.title)))),
    element("tbody", {}, rows.map((row) => element("tr", { className: "row" }, row.map((cell, at) =>
      element("td", { className: [heads[at].number ? "number" : "", heads[at].className ?? ""].join(" ") }, cell)))))));
}
