// Pieces of the page that know nothing of runs: elements, numbers and times in words, tables, small pictures.

// An element with attributes and children; texts are texts, never markup.
export function el(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "rect", "line", "text", "g", "title"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// Replaces the children of an element where they have changed, so that a reader's place is not lost.
export function put(e, ...children) {
  const fresh = el(e.localName, {}, ...children);
  if (fresh.innerHTML !== e.innerHTML) e.replaceChildren(...fresh.childNodes);
}

export const known = (v) => v !== null && v !== undefined && Number.isFinite(v);

export function number(v, digits = 4) {
  if (!known(v)) return "–";
  const size = Math.abs(v);
  if (v === 0) return "0";
  if (Number.isInteger(v) && size < 1e15) return v.toLocaleString("en");
  if (size >= 1e5) return v.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size < 1e-4) return v.toExponential(2);
  const rounded = Number(v.toPrecision(digits));
  return size >= 1000 ? rounded.toLocaleString("en") : String(rounded);
}

// A value with its unit, and a share as a percentage.
export const unit = (v, of) => (known(v) && of ? `${number(v)} ${of}` : number(v));
export const share = (v) => unit(known(v) ? 100 * v : null, "%");

// Bytes as the commands tell them: a GB is 2^30 bytes, as memory limits are given, an MB 10^6. Marks of one axis have the
// unit of the highest.
const UNITS = [[2 ** 30, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]];
export function bytes(v, highest = v) {
  if (!known(v)) return "–";
  const [of, name] = UNITS.find(([least]) => Math.abs(highest) >= least) ?? UNITS[3], n = v / of;
  return `${n >= 100 || n === 0 || of === 1 ? n.toFixed(0) : n.toFixed(n >= 10 ? 1 : 2)} ${name}`;
}

export function span(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// A moment on the reader's clock, or in UTC, as bars have it.
export function moment(seconds, withSeconds = false, utc = false) {
  if (!known(seconds) || seconds <= 0) return "–";
  const at = new Date(1000 * seconds), d = utc ? new Date(at.getTime() + 60000 * at.getTimezoneOffset()) : at, two = (n) => String(n).padStart(2, "0");
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return `${day} ${two(d.getHours())}:${two(d.getMinutes())}${withSeconds ? ":" + two(d.getSeconds()) : ""}`;
}

export const chip = (status) =>
  el("span", { class: "chip", "data-is": status }, el("span", { class: "dot", "aria-hidden": "true" }), status || "…");

// A line in little: the shape of a curve without its numbers.
export function spark(values) {
  const svg = el("svg", { viewBox: "0 0 92 34", preserveAspectRatio: "none", "aria-hidden": "true" });
  const list = values.filter(known);
  if (list.length < 2) return svg;
  const low = Math.min(...list), high = Math.max(...list), room = high - low || 1;
  const at = list.map((v, i) => `${((i / (list.length - 1)) * 90 + 1).toFixed(1)} ${(31 - ((v - low) / room) * 28).toFixed(1)}`);
  svg.append(el("path", { class: "spark", d: "M" + at.join("L") }));
  return svg;
}

// A table from a list of columns {title, number} and rows of texts or elements; the first column heads its row.
export function table(caption, columns, rows, attributes = {}) {
  const kind = (i) => (columns[i].number ? { class: "n" } : {});
  return el("table", attributes,
    caption && el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map((c, i) => el("th", { scope: "col", ...kind(i) }, c.title)))),
    el("tbody", {}, rows.map((row) => el("tr", row.differs ? { class: "differs" } : {},
      (row.cells ?? row).map((cell, i) => i === 0 ? el("th", { scope: "row" }, cell) : el("td", kind(i), cell))))));
}

// A table that may be wider or longer than its place: it scrolls, by keyboard too.
export const scroll = (label, inner) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, inner);

// A confusion matrix: rows are true classes, columns answers; shades by the share of the row.
export function matrix(counts, names) {
  const of = (k) => names?.[k] ?? String(k);
  const cell = (n, row, k, i) => {
    const sum = row.reduce((a, b) => a + b, 0), share = sum ? n / sum : 0;
    const td = el("td", {}, number(n), el("small", {}, `${(100 * share).toFixed(0)} %`));
    td.style.background = `rgba(var(--shade), ${(0.06 + 0.32 * share).toFixed(3)})`;
    if (k === i) td.style.fontWeight = "650";
    return td;
  };
  return el("table", { class: "matrix" },
    el("caption", {}, "Rows are what was true, columns what was answered; shares are of the row"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "true \\ answered"), counts.map((_, k) => el("th", { scope: "col" }, of(k))))),
    el("tbody", {}, counts.map((row, i) => el("tr", {}, el("th", { scope: "row" }, of(i)), row.map((n, k) => cell(n, row, k, i))))));
}

// Paths and values of a description: sections by indent, a line a value.
export function outline(text) {
  const values = new Map(), at = [];
  for (const line of (text ?? "").split("\n")) {
    const found = /^( *)([^:#\s][^:]*):(?: (.*))?$/.exec(line);
    if (!found) continue;
    at.length = found[1].length / 2;
    at.push(found[2]);
    if (found[3] !== undefined && found[3] !== "") values.set(at.join("."), found[3]);
  }
  return values;
}
