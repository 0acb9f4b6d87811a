// What a queue is made of, drawn: a ring, levels, slots, or the chunks of a log with its readers.

import { bytes, count, drawn, element, exact } from "/format.js";

const WIDTH = 640;

function picture(height, ...children) {
  return drawn("svg", { class: "drawing", viewBox: `0 0 ${WIDTH} ${height}`, role: "img" }, ...children);
}

const box = (x, y, width, height, kind, title) =>
  drawn("rect", { x, y, width: Math.max(0.5, width), height, rx: 2, class: `box ${kind}` },
    drawn("title", {}, title));
const words = (x, y, text, anchor = "start") => drawn("text", { x, y, "text-anchor": anchor }, text);

const key = (kind, text) => [element("span", { className: `key ${kind}` }), text];

function share(stats) {
  const slots = stats.capacity;
  const used = Math.min(slots,
    stats.push_position !== undefined ? stats.push_position - stats.pop_position : stats.size);
  const first = stats.pop_position !== undefined ? stats.pop_position % slots : 0;
  const scale = WIDTH / slots;
  const parts = [box(0, 6, WIDTH, 26, "", "free")];
  const ahead = Math.min(used, slots - first);
  if (ahead > 0) parts.push(box(first * scale, 6, ahead * scale, 26, "used", `${exact(used)} slots with items`));
  if (used > ahead) parts.push(box(0, 6, (used - ahead) * scale, 26, "used", `${exact(used)} slots with items`));
  return [picture(48, ...parts, words(0, 46, "slot 0"), words(WIDTH, 46, `${exact(slots)} slots`, "end")),
    [...key("used", "items"), ...key("", "free")]];
}

function slots(stats) {
  const perRow = Math.min(stats.slots, 64);
  const shown = Math.min(stats.slots, 512);
  const size = Math.min(28, WIDTH / perRow);
  const counts = [["leased", stats.leased], ["used", stats.queued], ["loaned", stats.loaned], ["", stats.free]];
  const kinds = counts.flatMap(([kind, number]) => Array(Math.ceil(number * shown / stats.slots)).fill(kind));
  const rows = Math.ceil(shown / perRow);
  return [picture(rows * size + 4, ...kinds.slice(0, shown).map((kind, at) =>
    box((at % perRow) * size, 2 + Math.floor(at / perRow) * size, size - 2, size - 2, kind, kind || "free"))),
    [...key("loaned", `being filled ${stats.loaned}`), ...key("used", `queued ${stats.queued}`),
      ...key("leased", `taken ${stats.leased}`), ...key("", `free ${stats.free}`)]];
}

function levels(stats) {
  const widths = stats.level_slots.map((slots) => Math.log2(slots + 1));
  const all = widths.reduce((sum, one) => sum + one, 0);
  let x = 0;
  const parts = stats.level_slots.flatMap((slots, at) => {
    const width = widths[at] / all * WIDTH;
    const isUsed = at >= stats.read_level && at <= stats.written_level;
    const made = [box(x + 1, 6, width - 2, 26, isUsed ? "used" : "", `level ${at}: ${exact(slots)} slots`),
      words(x + width / 2, 46, count(slots), "middle")];
    if (at === stats.read_level) made.push(words(x + width / 2, 60, "read", "middle"));
    if (at === stats.written_level)
      made.push(words(x + width / 2, at === stats.read_level ? 74 : 60, "written", "middle"));
    x += width;
    return made;
  });
  return [picture(78, ...parts),
    [...key("used", "levels in use"),
      `, slots below; grown ${exact(stats.grown)} times, shrunk ${exact(stats.shrunk)} times`]];
}

function chunks(stats, queue) {
  const [first, end] = [stats.earliest, Math.max(stats.end, stats.earliest + 1)];
  const scale = WIDTH / (end - first);
  let left = Math.max(0, stats.chunk_items.reduce((sum, one) => sum + one, 0) - (end - first));
  let at = first;
  const parts = [box(0, 22, WIDTH, 24, "", "positions")];
  stats.chunk_items.forEach((items, number) => {
    const isLast = number === stats.chunk_items.length - 1;
    const kept = isLast ? end - at : Math.max(0, Math.min(items, end - at));
    if (kept > 0)
      parts.push(box((at - first) * scale, 22, kept * scale - 0.6, 24, "used", `chunk for ${exact(items)} items`));
    at += kept;
    left = 0;
  });
  queue.readers.slice(0, 8).forEach((reader) => {
    const x = Math.min(WIDTH - 1, Math.max(1, (reader.committed - first) * scale));
    parts.push(drawn("line", { x1: x, x2: x, y1: 15, y2: 52, class: "mark" }, drawn("title", {}, reader.label)),
      words(Math.min(WIDTH - 2, Math.max(2, x)), 11, reader.label, x > WIDTH / 2 ? "end" : "start"));
  });
  return [picture(68, ...parts, words(0, 64, exact(first)), words(WIDTH, 64, `end ${exact(stats.end)}`, "end")),
    [`${stats.chunk_items.length} chunks, ${bytes(stats.used_bytes)} of ${bytes(stats.max_bytes)}; lines are readers`]];
}

export function structure(detail) {
  const { stats, queue } = detail;
  const [title, [image, legend]] = stats.chunk_items ? ["Chunks", chunks(stats, queue)]
    : stats.level_slots ? ["Levels", levels(stats)]
      : stats.slots !== undefined ? ["Slots", slots(stats)]
        : ["Ring", share(stats)];
  image.setAttribute("aria-label", title);
  return element("section", {}, element("h2", {}, title), image, element("p", { className: "faint" }, ...legend));
}
