// A chart: curves of one or several runs over one axis, with smoothing, a logarithmic scale, zoom and pan.
//
// Points come from the server window by window, the lowest and the highest of each stretch, so that no peak is
// lost at any zoom. Charts over the same axis share their window. Behind each chart is a table of what it shows.
import { series } from "./api.js";
import { bytes, el, known, moment, number, put, scroll, table } from "./pieces.js";

const HEIGHT = 220;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const WHOLE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].flatMap((k) => [1, 2, 5].map((n) => n * 10 ** k)); // steps of an axis of counts
const GIGA = WHOLE.map((n) => (n * 2 ** 30) / 1000); // of bytes, where the highest are gigabytes
const DASHES = [[], [6, 4], [2, 3], [9, 3, 2, 3]];

// The window of all charts over an axis: null shows all.
export class Windows {
  constructor() { this.at = new Map(); this.listeners = new Set(); }
  get(over) { return this.at.get(over) ?? null; }
  set(over, range) {
    if (range) this.at.set(over, range); else this.at.delete(over);
    for (const listener of this.listeners) listener(over);
  }
  get any() { return this.at.size > 0; }
  clear() { for (const over of [...this.at.keys()]) this.set(over, null); }
}

const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, ...[1, 2, 3, 5, 10, 30, 60, 90, 180, 365, 730, 1825, 3650].map((days) => 86400 * days)];

// Digits that tell marks from each other which are `step` apart.
const digits = (list, step) => Math.max(4, Math.ceil(Math.log10(Math.max(...list.map((v) => Math.abs(v ?? 0))) / step)) + 1);

// A moment on an axis whose marks are `step` seconds apart.
const tick = (v, step, utc) => (step >= 86400 ? moment(v, false, utc).slice(0, 10) : step >= 60 ? moment(v, false, utc).slice(11) : moment(v, true, utc).slice(11));

// Settings that all charts of a view share.
export class Look {
  constructor() { this.smooth = 0; this.log = false; this.windows = new Windows(); }
}

// Values that forget the past by a factor a point.
function smoothed(y, by) {
  if (!by) return y;
  let mean = null;
  return y.map((v) => {
    if (!known(v)) return v;
    mean = mean === null ? v : by * mean + (1 - by) * v;
    return mean;
  });
}

// Points of one curve with x that rises.
function clean(s) {
  const x = [], y = [];
  for (let i = 0; i < s.x.length; i++) {
    if (x.length && s.x[i] <= x[x.length - 1]) { if (s.x[i] < x[x.length - 1]) continue; y[y.length - 1] = s.y[i]; continue; }
    x.push(s.x[i]);
    y.push(s.y[i]);
  }
  return [x, y];
}

export class Chart {
  // curves: {run, name, label, color, dash} or {data: [x, y], label, color, dash}; `over`: "epoch", "step", "time" (of the
  // run, on the reader's clock) or "bars" (times of bars, in UTC); `limit`: a line that is drawn across, {value, label}; `format`: of values; `factor`: that values are divided by.
  constructor(options, look) {
    Object.assign(this, { format: number, factor: 1, limit: null, note: null }, options);
    this.look = look;
    this.data = this.curves.map(() => [[], []]);
    this.missing = 0;
    this.seen = false;
    this.dirty = true;
    this.turn = 0;
    this.utc = this.over === "bars";
    this.timed = this.utc || this.over === "time";
    this.make();
    this.onWindow = (over) => { if (over === this.over) this.moved(); };
    look.windows.listeners.add(this.onWindow);
    this.resizing = new ResizeObserver(() => this.resize());
    this.resizing.observe(this.plot);
    this.watching = new IntersectionObserver(([e]) => { this.seen = e.isIntersecting; if (this.seen && this.dirty) this.load(); }, { rootMargin: "200px" });
    this.watching.observe(this.element);
  }

  make() {
    const keys = "Arrow keys move, plus and minus zoom, 0 shows all.";
    this.now = el("span", { class: "now" });
    this.plot = el("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `Chart of ${this.title}. ${keys} The table below has its values.`, onkeydown: (e) => this.key(e), onwheel: (e) => this.wheel(e) });
    this.foot = el("p", { class: "note" });
    this.rows = el("div");
    this.details = el("details", { ontoggle: () => this.tell() }, el("summary", {}, "Table"), this.rows);
    this.element = el("figure", { class: this.wide ? "wide" : null, "data-chart": this.title },
      el("div", { class: "head" }, el("h3", {}, this.title), this.now), this.plot, this.legend(), this.foot, this.details);
  }

  legend() {
    if (this.curves.length < 2) return null;
    return el("ul", { class: "legend" }, this.curves.filter((c) => c.label && !c.quiet).map((c) => {
      const line = el("line", { x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": 2.5, "stroke-dasharray": DASHES[c.dash ?? 0].join(" ") || null });
      line.style.stroke = `var(${c.color})`;
      return el("li", {}, el("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, line), c.label);
    }));
  }

  close() {
    this.look.windows.listeners.delete(this.onWindow);
    this.resizing.disconnect();
    this.watching.disconnect();
    this.uplot?.destroy();
    this.uplot = null;
    this.closed = true;
  }

  // Data

  // Something has changed: it is read when it is seen.
  refresh() {
    this.dirty = true;
    if (this.seen) this.load();
  }

  async load() {
    const turn = ++this.turn, window = this.look.windows.get(this.over);
    this.dirty = false;
    const points = Math.max(100, Math.min(1600, Math.round(this.plot.clientWidth) || 600));
    const [from, to] = window ?? [null, null];
    try {
      const found = await Promise.all(this.curves.map((c) => c.data ? { x: c.data[0], y: c.data[1], missing: 0 } : series(c.run, c.name, from, to, points)));
      if (this.closed || turn !== this.turn) return;
      this.data = found.map((s) => (s ? clean(s) : [[], []]));
      if (this.factor !== 1) this.data = this.data.map(([x, y]) => [x, y.map((v) => v / this.factor)]);
      this.missing = found.reduce((n, s) => n + (s?.missing ?? 0), 0);
      this.draw();
    } catch { this.dirty = true; }
  }

  // The table that uPlot draws: curves, and where they are smoothed the values themselves behind them, faintly.
  tables() {
    const value = (v) => (this.look.log && !(v > 0) ? null : v);
    const fine = this.data.map(([x, y]) => [x, smoothed(y, this.look.smooth).map(value)]);
    const raw = this.look.smooth ? this.data.map(([x, y]) => [x, y.map(value)]) : [];
    const all = [...raw, ...fine].map(([x, y]) => (x.length ? [x, y] : [[0], [null]]));
    if (this.data.every(([x]) => !x.length)) return [[0, 1], ...all.map(() => [null, null])];
    return uPlot.join(all.map(([x, y]) => (x.length === 1 && y[0] === null ? [this.first(), [null]] : [x, y])));
  }

  first() { return [this.data.find(([x]) => x.length)[0][0]]; }

  // The whole range of x of what was read.
  extent() {
    const ends = this.data.filter(([x]) => x.length).map(([x]) => [x[0], x[x.length - 1]]);
    if (!ends.length) return [0, 1];
    const low = Math.min(...ends.map((e) => e[0])), high = Math.max(...ends.map((e) => e[1]));
    return low < high ? [low, high] : [low - 1, high + 1];
  }

  // Drawing

  options() {
    const ink = css("--dim"), grid = { stroke: css("--grid"), width: 1 }, font = "12px system-ui, sans-serif";
    const styled = (c, faint) => ({
      label: c.label, stroke: faint ? css(c.color) + "55" : css(c.color), width: faint ? 1 : c.quiet ? 0.75 : 1.75, dash: faint ? [] : DASHES[c.dash ?? 0],
      spanGaps: true, points: { show: (u, i) => u.data[i].length <= 40 && !faint && u.data[i].filter(known).length < 30, size: 5 },
    });
    const lists = [...(this.look.smooth ? this.curves.map((c) => styled(c, true)) : []), ...this.curves.map((c) => styled(c, false))];
    const axis = { stroke: ink, font, grid, ticks: { show: false } };
    const time = this.timed;
    return {
      ...(this.utc ? { tzDate: (t) => uPlot.tzDate(new Date(1000 * t), "Etc/UTC") } : {}),
      width: Math.max(this.plot.clientWidth, 120), height: HEIGHT, series: [{ label: this.over }, ...lists], legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, y: false },
      scales: { x: { time, range: () => this.look.windows.get(this.over) ?? this.extent() }, y: { distr: this.look.log ? 3 : 1, range: (u, low, high) => this.range(low, high) } },
      axes: [{ ...axis, size: 30, space: time ? 92 : 64, ...(time ? { incrs: TIMES, values: (u, list, axis, space, step) => list.map((v) => tick(v, step, this.utc)) } : { incrs: WHOLE, values: (u, list) => list.map((v) => number(v, 6)) }) }, { ...axis, size: 58, ...(this.format === bytes ? { incrs: (u, axis, low, high) => (high >= 2 ** 30 ? GIGA : WHOLE) } : {}), values: (u, list, axis, space, step) => list.map((v) => (v === null ? "" : this.format === number ? number(v, digits(list, step)) : this.format(v, Math.max(...list)))) }],
      hooks: { setSelect: [(u) => this.selected(u)], setCursor: [(u) => this.point(u)], draw: [(u) => this.drawLimit(u)], ready: [(u) => u.over.addEventListener("dblclick", () => this.look.windows.set(this.over, null))] },
    };
  }

  range(low, high) {
    if (!known(low) || !known(high)) return [0, 1];
    if (this.limit) { high = Math.max(high, this.limit.value); low = Math.min(low, 0); }
    if (this.look.log) return [low > 0 ? low * 0.9 : 1e-6, high > 0 ? high * 1.1 : 1];
    const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
  }

  drawLimit(u) {
    if (!this.limit) return;
    const y = u.valToPos(this.limit.value, "y", true), { left, width } = u.bbox, c = u.ctx;
    c.save();
    c.strokeStyle = c.fillStyle = css("--poor");
    c.setLineDash([6, 5]);
    c.lineWidth = devicePixelRatio;
    c.beginPath(); c.moveTo(left, y); c.lineTo(left + width, y); c.stroke();
    c.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    c.textAlign = "left";
    c.fillText(this.limit.label, left + 6 * devicePixelRatio, y + 14 * devicePixelRatio);
    c.restore();
  }

  draw() {
    if (this.closed || !this.plot.clientWidth) return;
    const form = JSON.stringify([this.look.log, this.look.smooth > 0, matchMedia("(prefers-color-scheme: dark)").matches]);
    const tables = this.tables();
    if (this.uplot && this.form === form) this.uplot.setData(tables);
    else {
      this.uplot?.destroy();
      this.uplot = new uPlot(this.options(), tables, this.plot);
      this.form = form;
    }
    put(this.foot, this.missing ? `${number(this.missing)} values are not finite and not drawn. ` : "", this.note ?? "");
    this.element.dataset.points = Math.max(...this.data.map(([x]) => x.length));
    this.point(this.uplot);
    this.tell();
  }

  resize() {
    if (this.uplot && this.plot.clientWidth && Math.abs(this.plot.clientWidth - this.uplot.width) > 1)
      this.uplot.setSize({ width: this.plot.clientWidth, height: HEIGHT });
  }

  // The values under the pointer, or the newest.
  point(u) {
    if (!u) return;
    const i = u.cursor.idx, offset = this.look.smooth ? this.curves.length : 0, texts = [];
    for (let k = 0; k < this.curves.length; k++) {
      const c = this.curves[k], list = u.data[1 + offset + k] ?? [];
      if (c.quiet || c.silent) continue;
      let at = i ?? list.length - 1;
      while (at > 0 && !known(list[at])) at--;
      if (known(list[at])) texts.push(this.curves.length > 1 ? `${c.short ?? c.label} ${this.format(list[at])}` : this.format(list[at]));
    }
    const where = i === null || i === undefined ? "" : `${this.at(u.data[0][i])}: `;
    this.now.textContent = texts.length > 4 ? where.slice(0, -2) : where + texts.join(" · ");
  }

  // A place on the axis in words.
  at(x) { return this.utc ? `${moment(x, false, true)} UTC` : this.timed ? moment(x, true) : `${this.over} ${number(x)}`; }

  // The table of what is drawn, at most 60 rows of it.
  tell() {
    if (!this.details.open || !this.uplot) return;
    const offset = this.look.smooth ? this.curves.length : 0, data = this.uplot.data, n = data[0].length, step = Math.max(1, Math.ceil(n / 60));
    const rows = [];
    for (let i = 0; i < n; i += step)
      rows.push([this.timed ? this.at(data[0][i]) : number(data[0][i]), ...this.curves.map((_, k) => this.format(data[1 + offset + k][i]))]);
    const columns = [{ title: this.utc ? "time" : this.over }, ...this.curves.map((c) => ({ title: c.label, number: true }))];
    this.rows.replaceChildren(scroll(`Values of ${this.title}`, table(step > 1 ? `Every ${number(step)}th of ${number(n)} points` : null, columns, rows)));
  }

  // Zoom and pan

  moved() {
    if (this.uplot) this.uplot.setData(this.uplot.data);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), 60);
  }

  selected(u) {
    const { left, width } = u.select;
    if (width < 4) return;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.look.windows.set(this.over, [u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
  }

  zoom(by, about = 0.5) {
    if (!this.uplot) return;
    const { min, max } = this.uplot.scales.x, middle = min + (max - min) * about;
    this.look.windows.set(this.over, [middle - (middle - min) * by, middle + (max - middle) * by]);
  }

  pan(share) {
    if (!this.uplot) return;
    const { min, max } = this.uplot.scales.x, by = (max - min) * share;
    this.look.windows.set(this.over, [min + by, max + by]);
  }

  key(e) {
    const keys = { ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), "-": () => this.zoom(1 / 0.7), 0: () => this.look.windows.set(this.over, null) };
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  }

  // The wheel scrolls the page; with Ctrl, as pinching gives it, it zooms; sideways or with Shift it pans.
  wheel(e) {
    if (!this.uplot) return;
    const side = e.shiftKey ? e.deltaY : e.deltaX;
    if (e.ctrlKey) {
      const box = this.uplot.over.getBoundingClientRect();
      e.preventDefault();
      this.zoom(Math.exp(e.deltaY * 0.004), Math.min(1, Math.max(0, (e.clientX - box.left) / box.width)));
    } else if (Math.abs(side) > 2 && this.look.windows.get(this.over)) {
      e.preventDefault();
      this.pan(side / 1200);
    }
  }
}
