// The page: the list of runs, which of them are shown, and the news that the server tells.
import { get, listen } from "./api.js";
import { chip, el, known, number, put, span, spark } from "./pieces.js";
import { RunView } from "./run.js";

const $ = (id) => document.getElementById(id);
const MOST = 8; // runs over each other

const state = { runs: [], chosen: [], view: null, loaded: false };
const lines = { children: (id) => state.runs.filter((r) => r.parent === id) };

// The list

// Whether a lower value of a metric is the better one, by its runs: their best lies at an end of their curve.
function falls(main) {
  let votes = 0;
  for (const r of state.runs.filter((r) => r.main === main && known(r.best))) {
    const list = r.spark.filter(known);
    votes += Math.sign(r.best - Math.min(...list) - (Math.max(...list) - r.best)) || 0;
  }
  return votes < 0;
}

// The best first, metric by metric; runs without a value last.
function byBest() {
  const signs = new Map([...new Set(state.runs.map((r) => r.main))].map((main) => [main, falls(main) ? 1 : -1]));
  return (a, b) => known(b.best) - known(a.best) || (a.main < b.main ? -1 : a.main > b.main ? 1 : (a.best - b.best) * signs.get(a.main)) || 0;
}

function words(r) {
  if (r.trouble) return r.trouble;
  if (!r.known) return "reading…";
  const unit = r.kind === "agent" ? "iteration" : "epoch", best = known(r.best) ? `${r.main.split("/").pop()} ${number(r.best)}` : "";
  const parts = lines.children(r.id).length;
  if (parts && ["walk", "ensemble"].includes(r.kind)) return `${r.kind} of ${number(parts)} ${r.kind === "walk" ? "fold" : "member"}${parts === 1 ? "" : "s"}`;
  const at = r.status === "running" && known(r.progress) ? `${Math.floor(100 * r.progress)} %${known(r.left) ? `, ${span(r.left)} left` : ""}` : r.epochs ? `${number(r.epochs)} ${unit}${r.epochs === 1 ? "" : "s"}` : "";
  return [r.kind === "run" || r.kind === "agent" ? r.model : r.kind, best, at].filter(Boolean).join(" · ");
}

function item(r) {
  const box = el("input", { type: "checkbox", "aria-label": `Lay ${r.name} over others`, "data-id": r.id, onchange: () => choose(r.id, box.checked) });
  box.checked = state.chosen.includes(r.id);
  return el("li", { class: `item${state.chosen.includes(r.id) ? " on" : ""}${r.parent ? " part" : ""}`, "data-id": r.id }, box,
    el("div", {}, el("a", { href: `#/run/${r.id}`, "aria-current": state.chosen.length === 1 && state.chosen[0] === r.id ? "page" : null }, r.parent ? r.name.split("/").pop() : r.name), " ", chip(r.trouble ? "unreadable" : r.status)),
    spark(r.spark), el("div", { class: "what" }, words(r)));
}

function sorted() {
  const by = { new: (a, b) => b.started - a.started, name: () => 0, best: byBest() }[$("order").value];
  const heads = state.runs.filter((r) => !r.parent).sort(by), below = (id) => state.runs.filter((r) => r.parent === id).flatMap((r) => [r, ...below(r.id)]);
  return heads.flatMap((r) => [r, ...below(r.id)]);
}

function showList() {
  const wanted = $("search").value.trim().toLowerCase(), focus = document.activeElement?.closest?.(".item")?.dataset.id, tag = document.activeElement?.localName;
  const shown = sorted().filter((r) => !wanted || `${r.name} ${r.model} ${r.data} ${r.status} ${r.kind}`.toLowerCase().includes(wanted));
  const running = state.runs.filter((r) => r.status === "running").length;
  $("list-note").textContent = !state.loaded ? "" : !state.runs.length ? "No runs here yet. `tradewind train` makes one, and it appears by itself." : `${shown.length === state.runs.length ? number(state.runs.length) : `${number(shown.length)} of ${number(state.runs.length)}`} run${state.runs.length === 1 ? "" : "s"}${running ? `, ${running} running` : ""}. Check several to lay them over each other.`;
  $("runs").replaceChildren(...shown.map(item));
  if (focus) $("runs").querySelector(`[data-id="${focus}"] ${tag === "input" ? "input" : "a"}`)?.focus({ preventScroll: true });
}

async function loadList() {
  if (state.reading) { state.again = true; return; }
  state.reading = true;
  try {
    const doc = await get("api/runs");
    Object.assign(state, { runs: doc.runs, loaded: true });
    $("place").textContent = doc.directory;
    showList();
    state.view?.listed();
    if (!state.chosen.length && matchMedia("(min-width: 1000px)").matches) openNewest();
    if (doc.runs.some((r) => !r.known)) setTimeout(loadList, 400);
  } catch { /* the server is away */ }
  state.reading = false;
  if (state.again) { state.again = false; setTimeout(loadList, 800); }
}

// With room for both, the run that began last is shown beside the list.
function openNewest() {
  const newest = state.runs.filter((r) => !r.parent).sort((a, b) => b.started - a.started)[0];
  if (newest) history.replaceState(null, "", `#/run/${newest.id}`), route();
}

// Which runs are shown

function choose(id, on) {
  const list = on ? [...state.chosen, id].slice(-MOST) : state.chosen.filter((c) => c !== id);
  location.hash = list.length ? `#/run/${list.join(",")}` : "#/";
}

function route() {
  const found = /^#\/run\/([0-9a-f]{16}(?:,[0-9a-f]{16})*)$/.exec(location.hash), ids = found ? found[1].split(",").slice(0, MOST) : [];
  const same = ids.join() === state.chosen.join();
  document.body.classList.toggle("in-run", ids.length > 0);
  if (same && state.view) return;
  state.chosen = ids;
  state.view?.close();
  state.view = ids.length ? new RunView($("main"), ids, lines) : null;
  if (state.view) state.view.load();
  else $("main").replaceChildren(el("p", { class: "empty" }, "Choose a run."));
  showList();
  window.scrollTo(0, 0);
}

// News

let said = 0;
function say(run) {
  const line = state.runs.find((r) => r.id === run.id);
  if (!line || !state.chosen.includes(run.id) || Date.now() - said < 15000) return;
  said = Date.now();
  $("said").textContent = `${line.name}: ${run.status}, epoch ${run.epoch}`;
}

let pending;
function soon() {
  pending ??= setTimeout(() => { pending = null; loadList(); }, 1500);
}

function onEvent(event, data) {
  if (event === "run") {
    state.view?.changed(data.id);
    say(data);
    soon();
  } else {
    loadList();
    if (event === "reset" && state.view) { state.view.load(); state.view.charts.forEach((c) => c.refresh()); }
  }
}

function onLink(is) {
  $("link").dataset.state = is;
  $("link-text").textContent = is === "live" ? "live" : "reconnecting";
}

function start() {
  $("search").addEventListener("input", showList);
  $("order").addEventListener("change", showList);
  addEventListener("hashchange", route);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.view?.charts.forEach((c) => c.uplot && c.draw()));
  document.querySelector(".skip").addEventListener("click", (e) => { e.preventDefault(); $("main").focus(); });
  route();
  loadList();
  listen(onEvent, onLink);
}

start();
