// The memory plan as a picture: where each block of the slab lies, and during which steps of a micro-batch it is alive.
import { bytes, el, number, scroll, table } from "./pieces.js";

const KINDS = [["activation", "--c0"], ["gradient", "--c1"], ["reserve", "--c2"], ["scratch", "--c5"]];
const WIDTH = 1000, HEIGHT = 360, LEFT = 62, BOTTOM = 26;

const color = (kind) => KINDS.find(([name]) => name === kind)?.[1] ?? "--dim";

function rectangle(block, plan, x, y) {
  const low = y(block.offset + block.bytes), r = el("rect", {
    x: x(block.first).toFixed(1), y: low.toFixed(1), rx: 1.5,
    width: Math.max(0.8, x(block.last + 1) - x(block.first) - 0.6).toFixed(1), height: Math.max(0.5, y(block.offset) - low - 0.4).toFixed(1),
  }, el("title", {}, `${block.name}: ${block.kind}, ${bytes(block.bytes)}, instructions ${block.first} to ${block.last}`));
  r.style.fill = `var(${color(block.kind)})`;
  r.style.opacity = 0.82;
  return r;
}

function line(y, text, name) {
  const l = el("line", { x1: LEFT, x2: WIDTH, y1: y, y2: y, "stroke-width": 1.5, "stroke-dasharray": "6 5" }), t = el("text", { x: LEFT + 6, y: y - 5 }, text);
  l.style.stroke = `var(${name})`;
  t.style.fill = `var(${name})`;
  return [l, t];
}

// Figures of the whole of memory, as parts of a bar up to the limit.
function parts(plan, limit) {
  const names = { base: "base", copies: "loader's batches and copies of weights", rest: "for the rest", data: "data", weights: "weights", gradients: "gradients", moments: "moments", states: "states", staging: "staging", activations: "activations", tables: "tables", fallback: "fallback of fp16" };
  const rows = Object.entries(names).filter(([key]) => plan.bytes?.[key] > 0).map(([key, name]) => [name, bytes(plan.bytes[key])]);
  const total = Object.keys(names).reduce((sum, key) => sum + (plan.bytes?.[key] ?? 0), 0);
  rows.push(["in all", bytes(total)]);
  if (limit) rows.push(["limit", bytes(limit)]);
  return table("Memory by purpose", [{ title: "purpose" }, { title: "bytes", number: true }], rows);
}

export function memoryMap(plan, limit) {
  const blocks = plan.blocks ?? [], room = plan.room ?? null, near = room !== null && room < 2.5 * plan.peak;
  const top = (near ? Math.max(room, plan.peak) : plan.peak) * 1.08 || 1;
  const x = (i) => LEFT + ((WIDTH - LEFT) * i) / Math.max(1, plan.instructions), y = (b) => (HEIGHT - BOTTOM) * (1 - b / top);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((s) => el("text", { x: LEFT - 8, y: y(plan.peak * s) + 4, "text-anchor": "end" }, bytes(plan.peak * s, plan.peak)));
  const turn = plan.backward ?? null;
  const svg = el("svg", { class: "map", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Memory plan: ${blocks.length} blocks over ${plan.instructions} instructions, ${bytes(plan.peak)} at the peak` },
    blocks.map((b) => rectangle(b, plan, x, y)), marks, line(y(plan.peak), `peak ${bytes(plan.peak)}`, "--ink"), near ? line(y(room), `limit: room for ${bytes(room)}`, "--poor") : null,
    turn === null ? null : [el("text", { x: (LEFT + x(turn)) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "forward"), el("text", { x: (x(turn) + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "backward")]);
  const legend = el("ul", { class: "legend" }, KINDS.filter(([kind]) => blocks.some((b) => b.kind === kind)).map(([kind, name]) => {
    const dot = el("span", { class: "dot", "aria-hidden": "true" });
    dot.style.background = `var(${name})`;
    return el("li", {}, dot, kind);
  }));
  const largest = [...blocks].sort((a, b) => b.bytes - a.bytes).slice(0, 40);
  return el("section", { "aria-label": "Memory plan" }, el("div", { class: "section-head" }, el("h2", {}, "Memory plan")),
    el("figure", {}, el("div", { class: "head" }, el("h3", {}, "The slab over a micro-batch"), el("span", { class: "now" }, `${number(blocks.length)} blocks`)), scroll("Memory plan, drawn", svg), legend,
      el("p", { class: "note" }, "Each block is as wide as its life and as tall as its bytes. Blocks whose lives do not meet share memory.", room !== null && !near ? ` The limit has room for ${bytes(room)}.` : "", el("span", { class: "narrow" }, " It goes on to the right.")),
      el("details", {}, el("summary", {}, "Table"), scroll("Largest blocks", table("The largest blocks", [{ title: "block" }, { title: "kind" }, { title: "bytes", number: true }, { title: "at", number: true }, { title: "alive", number: true }], largest.map((b) => [b.name, b.kind, bytes(b.bytes), bytes(b.offset), `${b.first} – ${b.last}`]))), parts(plan, limit))));
}
