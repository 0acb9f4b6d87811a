// The page of one queue.

import { age, bar, bytes, count, element, exact, table, tag } from "/format.js";
import { structure } from "/drawing.js";
import { Plot } from "/plots.js";

// columns of the history, and the totals that they are the rates of
const RATED = { items_in: "items_put", bytes_in: "bytes_put", items_out: "items_got", bytes_out: "bytes_got",
  waits_for_room: "waits_for_room", waits_for_items: "waits_for_items" };
const KEPT_SECONDS = 300;

export class QueueView {
  constructor(main, server, name, ask) {
    Object.assign(this, { main, server, name, ask });
    this.head = element("div");
    this.cards = element("div", { className: "cards" });
    this.plots = element("div", { className: "plots" });
    this.below = element("div");
    this.controls = element("div");
    this.rates = new Plot("Items a second", ["in", "out"]);
    this.bytes = new Plot("Bytes a second", ["in", "out"], { word: (value) => bytes(value) });
    this.depth = new Plot("Items kept", ["depth"]);
    this.waits = new Plot("Waits a second", ["for room", "for items"]);
    this.lags = null;
    this.history = null;
  }

  async open() {
    const detail = await this.ask(`/api/queue/${encodeURIComponent(this.name)}`);
    this.history = detail.history ?? null;
    this.main.replaceChildren(this.head, this.cards, this.plots, this.controls, this.below);
    const isLog = detail.queue.kind === "events";
    if (isLog && !this.lags) {
      this.lags = new Plot("Lag of each reader, in items", []);
      this.late = new Plot("Lag of each reader, in time", [], { word: (value) => age(value) });
    }
    this.plots.replaceChildren(...this.all().map((plot) => plot.box));
    this.showControls(detail.queue);
    this.update({ at: detail.history?.at.at(-1) ?? 0, ...detail }, true);
  }

  all() {
    return [this.rates, ...(this.lags ? [this.lags, this.late] : []), this.depth, this.bytes, this.waits];
  }

  close() {
    this.all().forEach((plot) => plot.close());
  }

  update(detail, isFirst = false) {
    const queue = detail.queue;
    if (!queue) {
      this.head.replaceChildren(element("h1", {}, this.name), element("p", { className: "banner warn" },
        "This queue is gone: its name was removed. ", element("a", { href: "/", "data-link": "" }, "All queues")));
      return;
    }
    this.queue = queue;
    this.head.replaceChildren(...this.heading(queue));
    this.cards.replaceChildren(...cards(queue));
    if (this.history && !isFirst && detail.stats) this.append(detail.at, queue);
    this.totals = queue.totals;
    if (this.history) this.draw();
    if (detail.stats) this.below.replaceChildren(...below(detail));
    else this.below.replaceChildren();
  }

  heading(queue) {
    const made = queue.created
      ? `, made ${queue.created.slice(0, 19).replace("T", " ")} UTC by process ${queue.creator}` : "";
    return [element("h1", {}, queue.name, " ", tag(queue.state)),
      element("div", { className: "faint" }, `${queue.kind} of ${queue.item}${made}`),
      queue.error ? element("p", { className: "banner bad" }, queue.error) : null].filter(Boolean);
  }

  append(at, queue) {
    const past = this.history;
    if (at <= (past.at.at(-1) ?? 0)) return;
    past.at.push(at);
    const seconds = at - past.at.at(-2);
    for (const [name, total] of Object.entries(RATED))
      past[name].push(seconds > 0 ? Math.max(0, queue.totals[total] - this.totals[total]) / seconds : 0);
    past.depth.push(queue.depth);
    const followedBy = [[past.lag, (reader) => reader.lag], [past.lag_seconds, (reader) => reader.lag_seconds]];
    for (const [table_, value] of followedBy) {
      const followed = queue.readers.filter((reader) => reader.status !== "dropped");
      const labels = new Set(followed.map((reader) => reader.label));
      Object.keys(table_).filter((label) => !labels.has(label)).forEach((label) => delete table_[label]);
      followed.forEach((reader) => {
        table_[reader.label] ??= Array(past.at.length - 1).fill(null);
        table_[reader.label].push(value(reader));
      });
    }
    while (past.at.length > 2 && past.at[1] < at - KEPT_SECONDS) {
      past.at.shift();
      const rates = Object.keys(RATED).map((name) => past[name]);
      [...rates, past.depth, ...Object.values(past.lag), ...Object.values(past.lag_seconds)]
        .forEach((column) => column.shift());
    }
  }

  draw() {
    const past = this.history;
    this.rates.set([past.at, past.items_in, past.items_out]);
    this.bytes.set([past.at, past.bytes_in, past.bytes_out]);
    this.depth.set([past.at, past.depth]);
    this.waits.set([past.at, past.waits_for_room, past.waits_for_items]);
    this.lags?.set([past.at, ...Object.values(past.lag)], Object.keys(past.lag));
    this.late?.set([past.at, ...Object.values(past.lag_seconds)], Object.keys(past.lag_seconds));
  }

  showControls(queue) {
    const parts = [];
    if (this.server.actions) parts.push(element("h2", {}, "Actions"), this.actions(queue));
    if (this.server.items && ["events", "overwriting"].includes(queue.kind)) parts.push(this.items());
    this.controls.replaceChildren(...parts);
  }

  actions(queue) {
    const told = element("span", { role: "status" });
    const act = async (action, question, more = {}) => {
      if (!confirm(question)) return;
      try {
        const done = await this.ask(`/api/queue/${encodeURIComponent(this.name)}/${action}`,
          { segment: this.queue.segment, ...more });
        told.className = "tag ok";
        told.textContent = done.done;
      } catch (error) {
        told.className = "tag bad";
        told.textContent = error.message;
      }
    };
    const button = (text, action, question, more) => element("button",
      { type: "button", className: "danger", onclick: () => act(action, question, more?.()) }, text);
    const parts = [button("shut down", "shutdown", `Shut ${this.name} down? Every put raises ShutDown from then on.`)];
    if (queue.kind === "events") {
      const last = element("input",
        { type: "number", min: "0", value: "1000", "aria-label": "how many items to keep" });
      const reader = element("input", { type: "text", placeholder: "reader", "aria-label": "the reader to drop" });
      parts.push(button("clear", "clear", `Forget all items of ${this.name}?`),
        button("keep last", "keep-last", "Forget what is older?", () => ({ n: Number(last.value) })), last,
        button("drop reader", "drop-reader", "Drop this reader? It loses its place.",
          () => ({ reader: reader.value })), reader);
    }
    parts.push(button("remove", "rm", `Remove the name ${this.name}? Those who have it open go on with it.`), told);
    return element("div", { className: "actions" }, parts);
  }

  items() {
    const list = element("div", { className: "items" });
    const load = async () => {
      try {
        const told = await this.ask(`/api/queue/${encodeURIComponent(this.name)}/items`);
        list.replaceChildren(...told.items.map((text, at) => element("div", {},
          told.start === null ? text : `${exact(told.start + at)}  ${text}`)));
        if (!told.items.length) list.replaceChildren("no item yet");
      } catch (error) {
        list.replaceChildren(element("p", { className: "banner bad" }, error.message));
      }
    };
    return element("section", {}, element("h2", {}, "Last items ",
      element("button", { type: "button", onclick: load }, "show")), list);
  }
}

function card(title, value, more = "") {
  const parts = [element("span", {}, title), element("b", {}, value)];
  if (more) parts.push(typeof more === "string" ? element("span", {}, more) : more);
  return element("div", { className: "card" }, parts);
}

function cards(queue) {
  const { rates, totals } = queue;
  const made = [
    card("in", `${count(rates.items_in)}/s`, `${bytes(rates.bytes_in)}/s, ${exact(totals.items_put)} items`),
    card("out", `${count(rates.items_out)}/s`, `${bytes(rates.bytes_out)}/s, ${exact(totals.items_got)} items`),
    card("depth", exact(queue.depth), queue.fill === null ? "no limit" : bar(queue.fill, queue.kind === "overwriting")),
    card("memory", bytes(queue.resident_bytes), queue.fill === null ? "" : `${(queue.fill * 100).toFixed(1)} % full`),
    card("waits", `${count(rates.waits_for_room + rates.waits_for_items)}/s`,
      `${count(rates.waits_for_room)} for room, ${count(rates.waits_for_items)} for items`),
  ];
  if (queue.oldest_seconds) made.push(card("oldest item", age(queue.oldest_seconds, queue.is_oldest_longer),
    "that somebody still has to get"));
  if (queue.leased) made.push(card("on lease", exact(queue.leased), "held by consumers"));
  if (queue.worst) made.push(card("worst reader", tag(queue.worst), `${queue.readers.length} readers`));
  return made;
}

function below(detail) {
  const { queue } = detail;
  const parts = [];
  if (queue.readers.length) parts.push(element("h2", {}, "Readers"), readers(queue));
  parts.push(element("h2", {}, "Participants"), participants(queue));
  if (queue.pipelines.length) parts.push(element("h2", {}, "Spark queries"), pipelines(queue));
  if (detail.producers.length) parts.push(element("h2", {}, "Producers of put_once"), producers(detail));
  parts.push(element("div", { className: "two" }, structure(detail), element("section", {},
    element("h2", {}, "Recoveries and losses since it was made"), counts(queue))));
  return parts;
}

const number = (title) => ({ title, number: true });

function readers(queue) {
  return table([{ title: "reader", className: "name" }, { title: "status" }, number("lag"), number("lag in time"),
    number("out/s"), number("position")], queue.readers.map((reader) => [reader.label, tag(reader.status),
    exact(reader.lag), reader.lag ? age(reader.lag_seconds, reader.is_lag_longer) : "", count(reader.items_out),
    exact(reader.committed)]));
}

function participants(queue) {
  if (!queue.participants.length) return element("p", { className: "faint" }, "Nobody takes part just now.");
  // what the readers of a log got is in the table of readers
  const gets = (...cells) => (queue.kind === "events" ? [] : cells);
  return table([number("process"), { title: "state" }, number("in/s"), ...gets(number("out/s")), number("put"),
    ...gets(number("got")), number("waited"), { title: "command", className: "command" }],
  queue.participants.map((each) => [`${each.pid}`,
    tag(each.state, each.left_seconds === null ? "" : ` ${age(each.left_seconds)} ago`), count(each.items_in),
    ...gets(count(each.items_out)), count(each.items_put), ...gets(count(each.items_got)), age(each.waited_seconds),
    element("span", { title: each.command ?? "" }, each.command ?? "in another container, or gone")]));
}

function pipelines(queue) {
  return table([{ title: "query", className: "name" }, { title: "state" }, number("rows"), number("rows/s"),
    number("to go"), { title: "why it ended" }], [...queue.pipelines].reverse().map((each) => [each.title,
    tag(each.state), exact(each.rows), count(each.rows_per_second), exact(each.lag), each.ended ?? ""]));
}

function producers(detail) {
  return table([{ title: "producer", className: "name" }, number("last sequence"), number("items in")],
    detail.producers.map((each) => [each.name, exact(each.sequence), `${exact(each.done)} of ${exact(each.total)}`]));
}

const MEANINGS = {
  redelivered: "delivered again, after their consumer was killed or gave them back",
  tombstones: "slots whose producer was killed before it published",
  recovered: "slots whose holder was killed, and that came back",
  repairs: "times that a writer died with the lock, and another put things right",
  epoch: "times that the log was cut after a crash of the machine",
  overwritten: "items that later ones replaced before anybody got them",
  torn: "items whose writer was killed in the middle",
  lost_with_consumer: "items whose consumer was killed before it had them",
  discarded: "items that a shutdown at once has thrown away",
  evicted: "items that put(overwrite=True) or set_capacity pushed out",
  readers_dropped: "readers that a full queue has dropped",
};

function counts(queue) {
  const row = (what) => ([name, value]) => [name, what,
    element("span", { className: value ? "tag warn" : "" }, exact(value)),
    element("span", { className: "faint" }, MEANINGS[name] ?? "")];
  return table([{ title: "" }, { title: "" }, number("count"), { title: "", className: "wide" }],
    [...Object.entries(queue.recoveries).map(row("recovered")), ...Object.entries(queue.losses).map(row("lost"))]);
}
