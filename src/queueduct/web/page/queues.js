// The table of all queues. Cells are changed in place, so that focus and selection stay where they are.

import { age, bytes, count, depth, drawn, element, exact, tag } from "/format.js";

const KEPT = 60;
const SEVERITY = ["ok", "unknown", "unattended", "behind", "stalled", "dropped"];

// A dropped reader gets nothing more: how far behind it fell says nothing any more.
const mostLag = (queue) =>
  queue.readers.reduce((most, reader) => (reader.status === "dropped" ? most : Math.max(most, reader.lag)), 0);

function readers(queue) {
  if (queue.state === "corrupt" || queue.state === "unreadable") return "";
  if (queue.worst === null)
    return queue.oldest_seconds > 0
      ? element("span", { className: "faint nowrap" },
        `oldest ${age(queue.oldest_seconds, queue.is_oldest_longer)}`) : "";
  const lag = mostLag(queue);
  const late = lag ? `  −${count(lag)}, ${age(queue.oldest_seconds, queue.is_oldest_longer)}` : "";
  return element("span", { className: "nowrap" }, `${queue.readers.length} `, tag(queue.worst), late);
}

function people(queue) {
  const parts = [element("span", {}, `${queue.alive}`)];
  if (queue.dead) parts.push(" ", tag("dead", ` ${queue.dead}`));
  if (queue.gone) parts.push(" ", tag("gone", ` ${queue.gone}`));
  return element("span", { className: "nowrap" }, ...parts);
}

function sum(counts) {
  return Object.values(counts).reduce((all, one) => all + one, 0);
}

function lost(queue) {
  const [recovered, gone] = [sum(queue.recoveries), sum(queue.losses)];
  const text = (counts) => Object.entries(counts).map(([name, number]) => `${name} ${exact(number)}`).join(", ");
  return element("span", { title: `recovered: ${text(queue.recoveries)}; lost: ${text(queue.losses) || "nothing"}` },
    count(recovered), " / ", element("span", { className: gone ? "tag warn" : "" }, count(gone)));
}

const lagOf = (queue) => mostLag(queue) || queue.depth;
const worstOf = (queue) => queue.error ? 9 : SEVERITY.indexOf(queue.worst);

// A file's name may be no text at all; then it is only listed.
function link(name) {
  try { return `/queue/${encodeURIComponent(name)}`; } catch { return "/"; }
}

const COLUMNS = [
  { title: "queue", className: "name", sort: (q) => q.name, draw: (q) =>
    element("a", { href: link(q.name), "data-link": "" }, q.name) },
  { title: "kind", className: "wide", sort: (q) => q.kind, draw: (q) => q.kind },
  { title: "depth", sort: (q) => -(q.fill ?? 0), draw: depth },
  { title: "in/s", number: true, sort: (q) => -q.rates.items_in, draw: (q) => count(q.rates.items_in) },
  { title: "out/s", number: true, sort: (q) => -q.rates.items_out, draw: (q) => count(q.rates.items_out) },
  { title: "lately", className: "wide", draw: (q, past) => spark(past) },
  { title: "MB/s", number: true, className: "wide", sort: (q) => -q.rates.bytes_in,
    draw: (q) => (q.rates.bytes_in / 1e6).toFixed(1) },
  { title: "memory", number: true, sort: (q) => -q.resident_bytes, draw: (q) => bytes(q.resident_bytes) },
  { title: "readers", sort: (q) => [-worstOf(q), -lagOf(q)], draw: readers },
  { title: "alive", sort: (q) => -(q.dead * 1e6 + q.gone * 1e3 + q.alive), draw: people },
  { title: "recovered / lost", number: true, className: "wide", sort: (q) => -sum(q.losses) - sum(q.recoveries),
    draw: lost },
  { title: "state", sort: (q) => q.state, draw: (q) => tag(q.state) },
];

function spark(past) {
  const top = Math.max(1e-9, ...past.map((one) => Math.max(one[0], one[1])));
  const x = (at) => ((at + KEPT - past.length) * 90 / (KEPT - 1)).toFixed(1);
  const y = (rate) => (21 - 20 * rate / top).toFixed(1);
  const path = (which) => past.map((one, at) => `${at ? "L" : "M"}${x(at)} ${y(one[which])}`).join("");
  return drawn("svg", { class: "spark", viewBox: "0 0 90 22", "aria-hidden": "true" },
    drawn("path", { class: "out", d: path(1) }), drawn("path", { class: "in", d: path(0) }));
}

function compare(a, b) {
  const [left, right] = [[a].flat(), [b].flat()];
  for (let at = 0; at < left.length; at += 1)
    if (left[at] !== right[at]) return left[at] < right[at] ? -1 : 1;
  return 0;
}

export class QueuesView {
  constructor(main, ask) {
    this.main = main;
    this.ask = ask;
    this.sorted = COLUMNS[0];
    this.rows = new Map();
    this.past = new Map();
    this.body = element("tbody");
    this.note = element("div");
    this.heads = COLUMNS.map((column) => {
      const button = column.sort
        ? element("button", { type: "button", onclick: () => this.sortBy(column) }, column.title) : column.title;
      const className = [column.number ? "number" : "", column.className ?? ""].join(" ");
      return element("th", { className, scope: "col" }, button);
    });
    this.table = element("table", { className: "queues" },
      element("thead", {}, element("tr", {}, this.heads)), this.body);
    this.sortBy(this.sorted);
  }

  async open() {
    for (const [name, [ins, outs]] of Object.entries(await this.ask("/api/lately")))
      this.past.set(name, ins.map((rate, at) => [rate, outs[at]]));
  }

  sortBy(column) {
    this.sorted = column;
    COLUMNS.forEach((each, at) => {
      if (each === column) this.heads[at].setAttribute("aria-sort", "ascending");
      else this.heads[at].removeAttribute("aria-sort");
    });
    if (this.snapshot) this.update(this.snapshot);
  }

  update(snapshot) {
    const isNew = snapshot !== this.snapshot;
    this.snapshot = snapshot;
    if (snapshot.error || snapshot.queues.length === 0) {
      this.rows.clear();
      this.main.replaceChildren(snapshot.error ? unreadable(snapshot) : this.empty(snapshot));
      return;
    }
    const order = [...snapshot.queues].sort((a, b) =>
      compare(this.sorted.sort(a), this.sorted.sort(b)) || compare(a.name, b.name));
    const names = new Set();
    order.forEach((queue, at) => {
      names.add(queue.name);
      const past = this.past.get(queue.name) ?? [];
      if (isNew) this.past.set(queue.name, [...past, [queue.rates.items_in, queue.rates.items_out]].slice(-2 * KEPT));
      const row = this.rows.get(queue.name) ?? this.newRow(queue.name);
      const shown = this.past.get(queue.name).filter((_, number, all) => (all.length - number) % 2).slice(-KEPT);
      this.fill(row, queue, shown);
      if (this.body.children[at] !== row) this.body.insertBefore(row, this.body.children[at] ?? null);
    });
    for (const [name, row] of this.rows)
      if (!names.has(name)) { row.remove(); this.rows.delete(name); this.past.delete(name); }
    this.note.replaceChildren(...snapshot.queues.filter((queue) => queue.error).map((queue) =>
      element("p", { className: "banner bad" }, `${queue.name}: ${queue.error}`)));
    if (!this.table.isConnected)
      this.main.replaceChildren(this.note, element("div", { className: "scroll" }, this.table));
  }

  newRow(name) {
    const row = element("tr", { className: "row" }, COLUMNS.map((column) => element("td", {
      className: [column.number ? "number" : "", column.className ?? ""].join(" "), "data-title": column.title })));
    row.dataset.queue = name;
    this.rows.set(name, row);
    return row;
  }

  fill(row, queue, past) {
    COLUMNS.forEach((column, at) => {
      const cell = row.children[at];
      const made = column.draw(queue, past);
      const text = typeof made === "string" ? made : made.outerHTML;
      if (cell.dataset.drawn === text) return;
      cell.dataset.drawn = text;
      cell.replaceChildren(made);
    });
  }

  empty(snapshot) {
    return element("div", { className: "empty" },
      element("h1", {}, "No queues yet"),
      element("p", {}, `Make one in ${snapshot.directory}, and it appears here:`),
      element("pre", {}, "import queueduct\n\nq = queueduct.BoundedQueue.create(\"jobs\", 1024)\nq.put(b\"hello\")\n"),
      element("p", {}, "Queues of another directory: queueduct web --directory, or QUEUEDUCT_DIR."));
  }
}

function unreadable(snapshot) {
  return element("p", { className: "banner bad" }, `${snapshot.directory} cannot be read: ${snapshot.error}`);
}
