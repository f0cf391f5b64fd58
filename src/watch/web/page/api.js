// The server's documents and events. Windows of curves that are asked for in one moment travel in one request.

export async function get(path) {
  const response = await fetch(path, { headers: { Accept: "application/json" } });
  const body = response.headers.get("Content-Type")?.startsWith("application/json") ? await response.json() : {};
  if (!response.ok) throw Object.assign(new Error(body.error ?? `HTTP ${response.status}`), { status: response.status });
  return body;
}

const NAMES_AT_ONCE = 16;
let waiting = new Map();

function send() {
  const groups = [...waiting.values()];
  waiting = new Map();
  for (const group of groups)
    for (let i = 0; i < group.asked.length; i += NAMES_AT_ONCE) fetchPart(group, group.asked.slice(i, i + NAMES_AT_ONCE));
}

async function fetchPart(group, asked) {
  const query = new URLSearchParams(group.query);
  for (const name of new Set(asked.map((a) => a.name))) query.append("name", name);
  try {
    const found = new Map((await get(`api/runs/${group.id}/series?${query}`)).series.map((s) => [s.name, s]));
    for (const a of asked) a.done(found.get(a.name) ?? null);
  } catch (error) {
    for (const a of asked) a.failed(error);
  }
}

// A window of a curve: {x, y, count, missing}, null where the run has no such curve.
export function series(id, name, from, to, points) {
  return new Promise((done, failed) => {
    const query = { points };
    if (from !== null) Object.assign(query, { from, to });
    const key = JSON.stringify([id, query]);
    if (waiting.size === 0) queueMicrotask(send);
    if (!waiting.has(key)) waiting.set(key, { id, query, asked: [] });
    waiting.get(key).asked.push({ name, done, failed });
  });
}

// Events: `on` gets "run" with its data, "runs", and "reset" after which all is to be read again; `state` gets
// "live" or "lost". The browser comes back by itself with the id of the last event, and the server tells what was missed.
export function listen(on, state) {
  let source, timer;
  const open = () => {
    source = new EventSource("events");
    source.onopen = () => state("live");
    source.onerror = () => {
      state("lost");
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      timer = setTimeout(open, 2000);
    };
    for (const event of ["run", "runs", "reset"])
      source.addEventListener(event, (e) => on(event, JSON.parse(e.data)));
  };
  open();
}
