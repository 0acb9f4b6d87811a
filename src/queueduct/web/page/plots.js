// Plots of one queue's last minutes, by uPlot. Colours come from the page's own, and change with its theme.

import { count, element } from "/format.js";

const COLORS = ["--in", "--out", "--third", "--fourth", "--warn", "--ok", "--bad", "--quiet"];
const HEIGHT = 190;

const clock = (seconds) => new Date(seconds * 1e3).toLocaleTimeString("en-GB");

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Plot {
  constructor(title, labels, options = {}) {
    this.title = title;
    this.options = options;
    this.labels = labels;
    this.box = element("div", { className: "plot" }, element("h2", {}, title));
    this.data = [[], ...labels.map(() => [])];
    this.plot = null;
    this.redraw = () => this.draw();
    addEventListener("theme", this.redraw);
    this.observer = new ResizeObserver(() => this.plot?.setSize({ width: this.width(), height: HEIGHT }));
    this.observer.observe(this.box);
  }

  close() {
    removeEventListener("theme", this.redraw);
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  width() {
    return Math.max(200, this.box.clientWidth);
  }

  set(data, labels = this.labels) {
    this.data = data;
    const isNew = labels.join("\0") !== this.labels.join("\0");
    this.labels = labels;
    if (this.plot && !isNew) {
      this.plot.setData(data);
      this.showLast();
    } else this.draw();
  }

  draw() {
    this.plot?.destroy();
    this.plot = null;
    if (!this.box.isConnected) return;
    const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line"), width: 1 } };
    this.plot = new uPlot({
      width: this.width(), height: HEIGHT, cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map(clock), space: 80 },
        { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => this.word(tick)) },
      ],
      series: [{ value: (_, at) => (at === null ? "–" : clock(at)) }, ...this.labels.map((label, at) => ({
        label, stroke: color(COLORS[at % COLORS.length]), width: 1.5, dash: at >= COLORS.length ? [4, 3] : undefined,
        points: { show: false }, value: (_, value) => value === null ? "–" : this.word(value),
      }))],
    }, this.data, this.box);
    this.showLast();
  }

  // Without a pointer over it, the legend has the newest values.
  showLast() {
    if (this.plot.cursor.idx === null || this.plot.cursor.idx === undefined || this.plot.cursor.left < 0)
      this.plot.setLegend({ idx: this.data[0].length - 1 }, false);
  }

  word(value) {
    return this.options.word ? this.options.word(value) : count(value);
  }
}
