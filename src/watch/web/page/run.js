// One run, or several over each other: what they are, their curves, answers, memory, settings and events.
import { get } from "./api.js";
import { Chart, Look } from "./chart.js";
import { memoryMap } from "./memory.js";
import { bytes, chip, el, known, matrix, moment, number, outline, put, scroll, share, span, table, unit } from "./pieces.js";

const COLORS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];
const FIRST = ["loss", "mcc", "accuracy", "macro_f1", "smape", "mase", "mae"];
const AGENT_FIRST = ["rollout/ep_rew_mean", "eval/mean_reward", "rollout/ep_len_mean", "train/value_loss", "train/entropy_loss", "train/approx_kl", "train/explained_variance"];
const SHOWN = 6;

const PARTS = /^(train|validation|test)\/([^/]+)$/;

// Charts of training: a metric's parts share one. Gives {title, names: [{name, part}], over}.
function plan(curves, agent) {
  const charts = new Map();
  for (const c of curves) {
    if (c.name.startsWith("device/") || c.name === "epoch/seconds" || /^steps\/loss_/.test(c.name)) continue;
    const part = agent ? null : PARTS.exec(c.name);
    const title = part ? part[2] : c.name === "epoch/samples_per_s" ? "samples a second" : c.name.startsWith("steps/") ? `${c.name.slice(6)} by step` : c.name;
    if (!charts.has(title)) charts.set(title, { title, names: [], over: c.over });
    charts.get(title).names.push({ name: c.name, part: part?.[1] ?? "" });
    if (c.name === "steps/loss") charts.get(title).names.push({ name: "steps/loss_min", part: "least", quiet: true }, { name: "steps/loss_max", part: "most", quiet: true });
  }
  for (const c of charts.values()) c.names.sort((a, b) => (b.part === "validation") - (a.part === "validation"));
  return [...charts.values()];
}

function rank(chart, main) {
  const names = chart.names.map((n) => n.name);
  if (names.includes(main)) return 0;
  if (chart.title === "loss") return 1;
  if (chart.title === "loss by step") return 2;
  const k = AGENT_FIRST.findIndex((n) => names.includes(n));
  if (k >= 0) return 3 + k;
  const f = FIRST.indexOf(chart.title);
  return f >= 0 ? 3 + f : chart.title === "samples a second" ? 12 : 20;
}

// Names of curves as they are read: an agent's as words.
const NAMES = { "eval/mean_reward": "reward of evaluations", "eval/mean_ep_length": "length of evaluations", "eval/std_reward": "spread of evaluations", "rollout/ep_rew_mean": "reward of episodes", "rollout/ep_len_mean": "length of episodes" };
const nameOf = (name) => NAMES[name] ?? name.replace("/", " ");

// Figures of an evaluation that are shares.
const SHARES = new Set(["return", "hold_return", "drawdown", "hold_drawdown", "exposure"]);

// Columns of a session that are money.
const MONEY = new Set(["equity", "cash", "result"]);

const valueOf = (name, v) => (SHARES.has(name) ? share(v) : number(v));

export class RunView {
  constructor(main, ids, known) {
    this.ids = ids;
    this.known = known; // of an id: its line of the list
    this.look = new Look();
    this.docs = new Map();
    this.charts = [];
    this.all = false;
    this.documents = new Map();
    this.main = main;
    this.make();
  }

  get several() { return this.ids.length > 1; }
  get doc() { return this.docs.get(this.ids[0]); }
  get list() { return this.ids.map((id) => this.docs.get(id)).filter(Boolean); }

  make() {
    const part = (name) => (this[name] = el("div"));
    this.main.replaceChildren(
      el("a", { class: "back", href: "#/" }, "← All runs"), part("head"), part("facts"), part("words"), part("live"),
      this.curveSection(), part("answers"), part("trading"), part("folds"), part("machine"), part("memory"), part("settings"), part("events"), part("files"));
    this.machine.append(el("section", { "aria-label": "Device", hidden: true }, el("div", { class: "section-head" }, el("h2", {}, "Device")), el("div", { class: "figures" })));
  }

  curveSection() {
    const toggle = (text, on) => el("button", { type: "button", "aria-pressed": "false", onclick: (e) => { const b = e.currentTarget, now = b.getAttribute("aria-pressed") !== "true"; b.setAttribute("aria-pressed", String(now)); on(now); } }, text);
    const redraw = () => this.charts.forEach((c) => c.uplot && c.draw());
    this.slider = el("input", { type: "range", id: "smooth", min: 0, max: 0.98, step: 0.02, value: 0, oninput: (e) => { this.look.smooth = Number(e.target.value); redraw(); } });
    this.figures = el("div", { class: "figures" });
    this.more = el("button", { type: "button", hidden: true, onclick: () => { this.all = !this.all; this.layCharts(); } });
    return el("section", { "aria-label": "Curves" },
      el("div", { class: "section-head" }, el("h2", {}, "Curves"),
        el("div", { class: "tools" }, el("label", { for: "smooth" }, "Smoothing", this.slider),
          toggle("Log scale", (on) => { this.look.log = on; redraw(); }),
          el("button", { type: "button", id: "whole", onclick: () => this.look.windows.clear() }, "Show all"))),
      this.figures, el("p", { class: "note" }, this.more));
  }

  close() { this.charts.forEach((c) => c.close()); this.closed = true; }

  // Reading

  async load() {
    if (this.loading) { this.again = true; return; }
    this.loading = true;
    try {
      await Promise.all(this.ids.map(async (id) => {
        try { this.docs.set(id, await get(`api/runs/${id}`)); }
        catch (error) { if (error.status === 404) this.docs.delete(id); else throw error; }
      }));
      if (!this.closed) this.show();
    } catch { /* the server is away: events tell when it is back */ }
    this.loading = false;
    if (this.again) { this.again = false; await this.load(); }
  }

  // Something has happened to a run; many things in a second are one.
  changed(id) {
    if (!this.ids.includes(id) || this.timer) return;
    this.timer = setTimeout(async () => { this.timer = null; if (!this.closed) { await this.load(); this.charts.forEach((c) => c.refresh()); } }, 700);
  }

  show() {
    if (!this.list.length) {
      this.main.replaceChildren(el("a", { class: "back", href: "#/" }, "← All runs"), el("p", { class: "empty" }, "This run is not there any more."));
      return;
    }
    this.showHead();
    this.showFacts();
    this.showWords();
    this.showLive();
    this.layCharts();
    this.layDevice();
    this.showAnswers();
    this.showDocuments();
    this.showSettings();
    this.showEvents();
    this.showFiles();
  }

  // The head

  showHead() {
    const d = this.doc;
    if (this.several) {
      put(this.head, el("h1", {}, `${this.list.length} runs over each other`),
        el("ul", { class: "legend" }, this.list.map((doc, i) => { const dot = el("span", { class: "dot", "aria-hidden": "true" }); dot.style.background = `var(${COLORS[i % COLORS.length]})`; return el("li", {}, dot, el("a", { href: `#/run/${doc.id}` }, doc.name), chip(doc.status)); })));
      return;
    }
    const unit = d.kind === "agent" ? "iteration" : "epoch";
    const what = [d.kind === "run" ? null : d.kind, d.model, d.data, d.device].filter(Boolean).join(" · ");
    put(this.head, el("div", { class: "title" }, el("h1", {}, d.name), chip(d.trouble ? "unreadable" : d.status)),
      el("p", { class: "sub" }, what),
      d.started > 0 && el("p", { class: "sub" }, `began ${moment(d.started)}${d.status === "running" ? "" : `, ended ${moment(d.changed)}`}${d.note ? `: ${d.note}` : ""}`),
      d.trouble ? el("p", { class: "trouble" }, d.trouble) : null,
      known(d.progress) && !d.trouble && d.kind !== "walk" && d.kind !== "ensemble" ? this.progress(d, unit) : null);
  }

  progress(d, unit) {
    const percent = Math.floor(100 * d.progress);
    const left = d.status !== "running" ? "" : known(d.left) ? `, at most ${span(d.left)} left` : "";
    const words = d.kind === "agent" ? (d.step > d.planned ? `${number(d.step)} steps, in whole rollouts; ${number(d.planned)} were asked for` : `${number(d.step)} of ${number(d.planned)} steps`) : `${unit} ${number(d.begun || d.epochs)} of ${number(d.planned)}`;
    const bar = el("div");
    bar.style.width = `${(100 * d.progress).toFixed(1)}%`;
    return [el("div", { class: "progress", role: "progressbar", "aria-label": "Progress", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent, "aria-valuetext": words }, bar), el("p", { class: "sub num" }, `${words}${left}`)];
  }

  showFacts() {
    if (this.several) { this.showComparison(); return; }
    const d = this.doc, last = (name) => d.curves.find((c) => c.name === name), agent = d.kind === "agent";
    const card = (value, label) => (value === "–" ? null : el("div", { class: "card" }, el("b", {}, value), el("span", {}, label)));
    const memory = last("device/memory_process"), use = last("device/utilisation");
    put(this.facts, el("div", { class: "cards" },
      d.main ? card(number(known(d.best) ? d.best : last(d.main)?.last ?? null), `${known(d.best) ? "best " : ""}${nameOf(d.main)}`) : null,
      card(d.best_epoch ? number(d.best_epoch) : "–", agent ? "best iteration" : "best epoch"),
      card(number(last("validation/loss")?.last ?? last("steps/loss")?.last), last("validation/loss") ? "validation loss, last" : "loss of the last steps"),
      card(number(last("epoch/samples_per_s")?.last, 3), agent ? "steps a second" : "samples a second"),
      card(bytes(memory?.last), known(d.limit) ? `memory, of ${bytes(d.limit)} allowed` : "memory of the run"),
      card(use ? `${number(use.last, 3)} %` : "–", "utilisation, last"),
      card(d.seconds ? span(d.seconds) : "–", "of training")));
  }

  // Best values beside each other.
  showComparison() {
    const agents = this.list.every((d) => d.kind === "agent"), mains = this.list.map((d) => d.main);
    const tells = (c) => mains.includes(c.name) || (agents ? /^(eval|rollout)\//.test(c.name) : c.over === "epoch" && PARTS.test(c.name));
    const names = [...new Set(this.list.flatMap((d) => d.curves.filter(tells).map((c) => c.name)))];
    const order = (n) => (mains.includes(n) ? 0 : /^(validation|eval)\//.test(n) ? 1 : n.startsWith("test/") ? 2 : 3);
    names.sort((a, b) => order(a) - order(b));
    const value = (d, n) => { const c = d.curves.find((c) => c.name === n); return number(c ? (known(c.best) ? c.best : c.last) : null); };
    const rows = [["status", ...this.list.map((d) => d.status)], [agents ? "best iteration" : "best epoch", ...this.list.map((d) => number(d.best_epoch || null))], ...names.slice(0, 14).map((n) => [nameOf(n), ...this.list.map((d) => value(d, n))]),
      [agents ? "steps a second" : "samples a second", ...this.list.map((d) => value(d, "epoch/samples_per_s"))], ["seconds of training", ...this.list.map((d) => number(d.seconds, 3))]];
    put(this.facts, el("section", { class: "panel wide" }, scroll("Comparison", table(agents ? "At each agent's best evaluation" : "At each run's best epoch", [{ title: "figure" }, ...this.list.map((d) => ({ title: d.name, number: true }))], rows))));
  }

  showWords() {
    const d = this.doc;
    put(this.words, this.several || !d.verdicts.length ? "" : el("ul", { class: "verdicts", "aria-label": "Verdicts" }, d.verdicts.map((v) => el("li", {}, el("span", { class: "grade", "data-is": v.grade }, v.grade), el("span", {}, el("strong", {}, v.about), `: ${v.text}.`)))));
  }

  // The session that trades the run. Numbers have all that matters of a price; a column that is empty is left out.
  showLive() {
    const live = this.several ? null : this.doc.live;
    if (!live) { put(this.live, ""); return; }
    const text = (k, v) => (typeof v !== "number" ? String(v ?? "") : MONEY.has(k) ? v.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : number(v, 8));
    const panel = (name, title, all) => {
      const rows = live[name] ?? [], keys = all.filter((k) => rows.some((r) => r[k] !== null && r[k] !== ""));
      const columns = keys.map((k) => ({ title: k.replace("_", " "), number: rows.some((r) => typeof r[k] === "number") }));
      return rows.length ? el("div", { class: "panel wide" }, el("h3", {}, title), scroll(title, table(null, columns, rows.map((r) => keys.map((k) => text(k, r[k])))))) : null;
    };
    const words = { true: "a session runs", false: "no session runs" }[live.running] ?? "";
    put(this.live, el("section", { "aria-label": "Live" }, el("div", { class: "section-head" }, el("h2", {}, "Live"), el("span", {}, words)),
      live.why ? el("p", { class: "trouble" }, live.why) : null,
      el("div", { class: "figures" },
        panel("books", "Positions and books", ["symbol", "position", "entry_price", "stop", "target", "equity", "cash", "trades", "bar"]),
        panel("events", "Newest events of the session", ["at", "symbol", "kind", "answer", "text"]),
        panel("intents", "Newest intents", ["decided", "symbol", "position", "stop", "target", "status"]),
        panel("trades", "Newest trades", ["entry", "exit", "symbol", "units", "entry_price", "exit_price", "result", "reason"]))));
  }

  // Charts

  chart(options, into) {
    const key = `${options.title}|${options.curves.map((c) => `${c.run}/${c.name}`).join()}|${options.limit?.value ?? ""}`;
    const there = this.charts.find((c) => c.id === key);
    if (there) { if (there.element.parentNode !== into) into.append(there.element); there.wanted = true; return; }
    const made = Object.assign(new Chart(options, this.look), { id: key, wanted: true });
    this.charts.push(made);
    into.append(made.element);
  }

  sweep(into) {
    for (const c of this.charts.filter((c) => c.element.parentNode === into && !c.wanted)) { c.close(); c.element.remove(); }
    this.charts = this.charts.filter((c) => !c.closed);
  }

  layCharts() {
    const agent = this.doc.kind === "agent", charts = new Map();
    this.list.forEach((d, i) => {
      for (const c of plan(d.curves, agent)) {
        if (!charts.has(c.title)) charts.set(c.title, { ...c, names: [], curves: [], rank: rank(c, d.main) });
        for (const n of c.names) {
          if (this.several && n.quiet) continue;
          const part = n.quiet || this.several ? (n.part === "train" ? 1 : 0) : 0;
          const color = this.several ? COLORS[i % COLORS.length] : n.part === "train" ? "--c1" : "--c0";
          charts.get(c.title).curves.push({ run: d.id, name: n.name, label: [this.several ? d.name : null, n.part || (this.several ? null : c.title)].filter(Boolean).join(" "), short: this.several ? d.name : n.part, color, dash: n.part === "train" ? 1 : part, quiet: n.quiet, silent: this.several && n.part === "train" });
        }
      }
    });
    const sorted = [...charts.values()].sort((a, b) => a.rank - b.rank);
    const some = this.all ? sorted : sorted.slice(0, SHOWN);
    this.charts.forEach((c) => { if (c.element.parentNode === this.figures) c.wanted = false; });
    for (const c of some) this.chart({ title: c.title, over: c.over, curves: c.curves, note: c.title === "loss by step" && !this.several ? "Thin lines: the least and the most of the steps between two rows." : null }, this.figures);
    this.sweep(this.figures);
    if (!sorted.length && !this.figures.childElementCount) this.figures.append(el("p", { class: "empty" }, "No curves yet."));
    else if (sorted.length) this.figures.querySelector(".empty")?.remove();
    this.figures.closest("section").hidden = !sorted.length && ["walk", "ensemble"].includes(this.doc.kind); // their parts have curves
    this.more.hidden = sorted.length <= SHOWN;
    this.more.textContent = this.all ? "Show fewer" : `Show ${sorted.length - SHOWN} more`;
  }

  layDevice() {
    const place = this.machine.querySelector(".figures"), has = (n) => this.list.some((d) => d.curves.some((c) => c.name === `device/${n}`));
    const lines = (names) => this.list.flatMap((d, i) => names.filter(([n]) => d.curves.some((c) => c.name === `device/${n}`)).map(([n, label], k) => ({ run: d.id, name: `device/${n}`, label: this.several ? `${d.name} ${label}` : label, short: this.several ? d.name : label, color: this.several ? COLORS[i % COLORS.length] : COLORS[k], dash: k })));
    this.charts.forEach((c) => { if (c.element.parentNode === place) c.wanted = false; });
    const limit = known(this.doc.limit) && !this.several ? { value: this.doc.limit, label: `limit ${bytes(this.doc.limit)}` } : null;
    const charts = [
      { title: "memory", format: bytes, limit, names: [["memory_process", "this run"], ...(this.several || this.doc.device?.startsWith("cpu") ? [] : [["memory_others", "others"]])] },
      { title: "utilisation", format: (v) => `${number(v, 3)} %`, names: [["utilisation", "utilisation"]] },
      { title: "temperature", format: (v) => `${number(v, 3)} °C`, names: [["temperature", "temperature"]] },
      { title: "power", format: (v) => `${number(v, 3)} W`, names: [["power", "power"]] },
      { title: "clocks", format: (v) => `${number(v, 4)} MHz`, names: [["clock", "processors"], ["memory_clock", "memory"]] }];
    for (const c of charts) if (c.names.some(([n]) => has(n))) this.chart({ ...c, over: "time", curves: lines(c.names) }, place);
    this.sweep(place);
    this.machine.firstElementChild.hidden = !place.childElementCount;
  }

  // Answers, trading, folds

  async document(doc, name) {
    const key = `${doc.id}/${name}`, stamp = doc.stamps[name];
    if (!doc.documents.includes(name)) return null;
    const kept = this.documents.get(key);
    if (kept && kept.stamp === stamp) return kept.body;
    let body = null;
    try { body = await get(`api/runs/${doc.id}/document/${name}`); } catch (error) { body = { error: error.message }; }
    this.documents.set(key, { stamp, body });
    return body;
  }

  async showAnswers() {
    if (this.several) return;
    const d = this.doc, evaluation = await this.document(d, "evaluation.json"), walk = await this.document(d, "walk.json");
    const part = evaluation?.parts?.test ?? evaluation?.parts?.validation ?? evaluation?.parts?.all;
    const counts = walk?.confusion ?? part?.confusion ?? d.confusion, names = walk?.classes ?? part?.classes;
    const of = walk?.confusion ? "all tests of the walk" : part?.confusion ? `the ${part === evaluation.parts.test ? "test" : "evaluated"} part` : `validation, best epoch ${d.best_epoch}`;
    const square = Array.isArray(counts) && counts.length > 0 && counts.every((r) => Array.isArray(r) && r.length === counts.length);
    const figures = !square && !part?.scores ? Object.entries(part?.metrics ?? {}) : [];
    if (!square && !part?.scores && !figures.length) return this.answers.replaceChildren();
    put(this.answers, el("section", { "aria-label": "Answers" }, el("div", { class: "section-head" }, el("h2", {}, "Answers")),
      el("div", { class: "figures" },
        square ? el("div", { class: "panel" }, el("h3", {}, `Confusion on ${of}`), scroll("Confusion matrix", matrix(counts, names))) : null,
        part?.scores ? el("div", { class: "panel" }, el("h3", {}, "Scores beside trivial answers"), scroll("Scores", table(null, [{ title: "metric" }, { title: "score", number: true }, { title: "trivial", number: true }, { title: "verdict" }], part.scores.map((s) => [s.metric, number(s.score), number(s.trivial_score), s.verdict ?? ""])))) : null,
        figures.length ? el("div", { class: "panel" }, el("h3", {}, `Evaluation of the ${part === evaluation.parts.test ? "test" : "evaluated"} part`), scroll("Evaluation", table(null, [{ title: "figure" }, { title: "value", number: true }], figures.map(([name, v]) => [name.replaceAll("_", " "), valueOf(name, v)])))) : null)));
  }

  async showDocuments() {
    if (this.several) return;
    const d = this.doc, backtest = await this.document(d, "backtest.json"), walk = await this.document(d, "walk.json"), memory = await this.document(d, "memory.json");
    if (this.closed) return;
    if (backtest && !backtest.error && backtest !== this.backtest) this.showTrading(backtest);
    this.walk = walk;
    this.showFolds();
    if (memory && !memory.error && memory !== this.mapped) this.memory.replaceChildren(memoryMap(memory, d.limit));
    if (memory && !memory.error) this.mapped = memory;
  }

  // A later backtest takes the place of the one that is shown.
  showTrading(b) {
    const before = this.trading.querySelector(".figures");
    this.charts.forEach((c) => { if (before && c.element.parentNode === before) c.wanted = false; });
    if (before) this.sweep(before);
    const times = b.equity?.time ?? [], line = (key, label, color, dash) => b.equity?.[key] ? { data: [times, b.equity[key]], label, color, dash, short: label } : null;
    const figures = el("div", { class: "figures" });
    this.backtest = b;
    this.trading.replaceChildren(el("section", { "aria-label": "Backtest" }, el("div", { class: "section-head" }, el("h2", {}, "Backtest")), figures));
    const curves = [line("equity", "equity", "--c0", 0), line("hold", "buy and hold", "--c1", 1)].filter(Boolean);
    if (times.length) this.chart({ title: "equity", over: "bars", curves, wide: true }, figures);
    if (b.statistics) figures.append(el("div", { class: "panel wide" }, el("h3", {}, "Statistics"), scroll("Statistics", table(null, [{ title: "statistic" }, { title: "value", number: true }, { title: "buy and hold", number: true }, { title: "definition" }], b.statistics.map((s) => [s.label ?? s.key, unit(s.value, s.unit), unit(s.hold, s.unit), s.definition ?? ""]), { class: "statistics" }))));
  }

  // The list has been read anew: the parts of a walk or an ensemble go on without it.
  listed() { if (!this.several && this.doc && !this.closed) this.showFolds(); }

  showFolds() {
    const children = this.known.children(this.doc.id), walk = this.walk, folds = walk?.folds;
    if (!children.length && !folds) return;
    const names = [...new Set((folds ?? []).flatMap((f) => Object.keys(f.metrics ?? {})))].slice(0, 5);
    const link = (dir) => { const child = children.find((c) => c.name.endsWith(dir)); return child ? el("a", { href: `#/run/${child.id}` }, dir) : dir; };
    const rows = folds ? folds.map((f) => [link(f.directory), (f.train ?? []).join(" to "), (f.test ?? []).join(" to "), ...names.map((n) => valueOf(n, f.metrics?.[n])), f.status ?? ""])
      : children.map((c) => [el("a", { href: `#/run/${c.id}` }, c.name.split("/").pop()), number(c.epochs), number(c.best), c.status]);
    if (folds?.length > 1 && walk.metrics) rows.push(["all", "", "", ...names.map((n) => valueOf(n, walk.metrics[n])), `${number(walk.done)} of ${number(folds.length)} done`]);
    const columns = folds ? [{ title: "fold" }, { title: "trained on" }, { title: "tested on" }, ...names.map((n) => ({ title: n.replaceAll("_", " "), number: true })), { title: "status" }]
      : [{ title: "part" }, { title: "epochs", number: true }, { title: "best", number: true }, { title: "status" }];
    const all = children.map((c) => c.id).slice(0, 8).join(",");
    const title = folds || this.doc.kind === "walk" ? "Folds" : "Members";
    put(this.folds, el("section", { "aria-label": title }, el("div", { class: "section-head" }, el("h2", {}, title), children.length > 1 ? el("a", { href: `#/run/${all}` }, "Curves over each other") : null), el("div", { class: "panel" }, scroll(`Table of ${title.toLowerCase()}`, table(null, columns, rows, { class: "folds" })))));
  }

  // Settings, events, files

  showSettings() {
    const maps = this.list.map((d) => outline(d.config)), plans = this.list.map((d) => outline(d.plan));
    const keys = [...new Set(maps.flatMap((m) => [...m.keys()]))], planned = [...new Set(plans.flatMap((m) => [...m.keys()]))];
    if (!keys.length) return;
    const rowsOf = (from, list) => list.map((k) => ({ cells: [k, ...from.map((m) => m.get(k) ?? "–")], differs: this.several && new Set(from.map((m) => m.get(k))).size > 1 }));
    const columns = [{ title: "key" }, ...this.list.map((d) => ({ title: this.several ? d.name : "value" }))];
    const rows = rowsOf(maps, keys), different = [...rowsOf(maps, keys), ...rowsOf(plans, planned)].filter((r) => r.differs && r.cells[0] !== "run.dir");
    if (this.settings.childElementCount && this.shown === JSON.stringify(rows)) return;
    this.shown = JSON.stringify(rows);
    const text = JSON.stringify(rows).length;
    put(this.settings, el("section", { "aria-label": "Settings" }, el("div", { class: "section-head" }, el("h2", {}, "Settings")),
      this.several ? el("div", { class: "panel wide" }, el("h3", {}, different.length ? `${different.length} ${different.length === 1 ? "setting differs" : "settings differ"}` : "All settings are the same"), different.length ? scroll("Settings that differ", table(null, columns, different.map((r) => r.cells))) : null) : null,
      el("details", { "data-size": text }, el("summary", {}, `Description, ${keys.length} keys`), scroll("Description", table(null, columns, rows))),
      el("details", {}, el("summary", {}, "Plan"), scroll("Plan", table(null, columns, rowsOf(plans, planned))))));
  }

  showEvents() {
    if (this.several) return;
    const rows = [...this.doc.events].reverse().map((e) => [moment(e.time, true), e.kind, e.text || "", number(e.step)]);
    put(this.events, rows.length ? el("section", { "aria-label": "Events" }, el("div", { class: "section-head" }, el("h2", {}, "Events")), el("div", { class: "panel events" }, scroll("Table of events", table(null, [{ title: "time" }, { title: "what" }, { title: "about" }, { title: "step", number: true }], rows)))) : "");
  }

  showFiles() {
    if (this.several) return;
    const d = this.doc, base = `api/runs/${d.id}`;
    put(this.files, el("section", { "aria-label": "Files" }, el("div", { class: "section-head" }, el("h2", {}, "Take it with you")),
      el("p", { class: "downloads" }, ["epochs", "metrics", "steps", "samples", "events"].map((t) => el("a", { href: `${base}/table/${t}.csv`, download: true }, `${t}.csv`)), d.report ? el("a", { href: `${base}/report`, target: "_blank", rel: "noopener" }, "report") : null),
      el("p", { class: "note" }, d.directory)));
  }
}
