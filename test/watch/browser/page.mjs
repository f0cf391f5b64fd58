// The page of `tradewind watch --web` in a real browser: a live run's curve grows, zoom and pan, runs over each other,
// the server goes and comes back, no message on the console, no serious fault that axe finds, at 390 and 1,400 pixels.
//
//   node page.mjs TRADEWIND CHROMIUM DIRECTORY [PICTURES]
//
// DIRECTORY has the runs "quick" and "other", trained, "walk" and "traded" with trades, "agent", "limited" under a limit of
// memory, and "million", whose steps/loss has a million values with peaks.
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [, , tradewind, executablePath, directory, pictures] = process.argv;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = 60000;
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

let failures = 0;
const check = (ok, what) => { if (!ok) { failures++; console.error(`page: ${what}`); } };

// Waits until something is true in the page. Playwright's waitForFunction evaluates text, which the page's policy forbids.
async function becomes(page, what, isTrue, argument) {
  for (const end = Date.now() + PATIENCE; Date.now() < end;) {
    if (await page.evaluate(isTrue, argument).catch(() => false)) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  check(false, `never: ${what}`);
}

function serve(port) {
  const child = spawn(tradewind, ["watch", "--web", String(port), "--json", directory], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((done) => child.stdout.once("data", (line) => done({ child, url: JSON.parse(line).url })));
}

const stop = (child) => new Promise((done) => { child.once("exit", done); child.kill("SIGTERM"); });

// Messages of the console; those of the network alone while the server is away are meant.
function listen(page) {
  const said = { away: false };
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !(said.away && /net::|Failed to load/.test(m.text()))) check(false, `the console says: ${m.text()}`); });
  page.on("pageerror", (e) => check(false, `the page fails: ${e.message}`));
  return said;
}

async function sound(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const v of violations.filter((v) => ["serious", "critical"].includes(v.impact)))
    check(false, `${where}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" ")}`);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(over <= 0, `${where}: wider than the window by ${over} pixels`);
}

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
}

const open = async (page, name) => {
  await page.locator("#runs a", { hasText: new RegExp(`^${name}$`) }).click();
  await page.locator("h1", { hasText: name }).waitFor({ timeout: PATIENCE });
};
const pointsOf = (title) => Number(document.querySelector(`[data-chart="${title}"]`)?.dataset.points ?? 0);

async function zooms(page) {
  const plot = page.locator('[data-chart="loss by step"] .plot');
  await becomes(page, "loss by step is drawn", pointsOf, "loss by step");
  const range = () => page.evaluate(() => document.querySelector('[data-chart="loss by step"] .now').textContent);
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const before = await page.locator('[data-chart="loss by step"]').getAttribute("data-points");
  await page.mouse.move(box.x + box.width * 0.4, box.y + 80);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 90, { steps: 6 });
  await page.mouse.up();
  await becomes(page, "a zoomed chart has fewer points", (n) => Number(document.querySelector('[data-chart="loss by step"]').dataset.points) < n, Number(before));
  await plot.focus();
  for (const key of ["ArrowRight", "+", "-", "ArrowLeft"]) await page.keyboard.press(key);
  await page.keyboard.press("0");
  await becomes(page, "0 shows all again", (n) => Number(document.querySelector('[data-chart="loss by step"]').dataset.points) >= n, Number(before));
  await page.locator("#smooth").fill("0.8");
  await page.getByRole("button", { name: "Log scale" }).click();
  await page.locator('[data-chart="loss by step"] summary').click();
  await becomes(page, "a chart has its table", () => document.querySelectorAll('[data-chart="loss by step"] tbody tr').length > 3);
  await page.getByRole("button", { name: "Log scale" }).click();
  await page.locator("#smooth").fill("0");
  check((await range()) !== "", "a chart tells its newest value");
}

async function compares(page) {
  for (const name of ["quick", "other"]) {
    const box = page.getByRole("checkbox", { name: `Lay ${name} over others` });
    if (!(await box.isChecked())) await box.check();
  }
  for (const name of ["million", "live"]) {
    const box = page.getByRole("checkbox", { name: `Lay ${name} over others` });
    if ((await box.count()) && (await box.isChecked())) await box.uncheck();
  }
  await page.locator("h1", { hasText: "2 runs over each other" }).waitFor({ timeout: PATIENCE });
  await page.getByText(/settings? differs?/).first().waitFor({ timeout: PATIENCE });
  await becomes(page, "settings that differ are shown", () => [...document.querySelectorAll("main .panel table")].some((t) => t.textContent.includes("train.seed")));
  await becomes(page, "both runs are drawn", pointsOf, "mcc");
  await becomes(page, "the legend has both runs, each with two parts", () => document.querySelectorAll('[data-chart="mcc"] .legend li').length === 4);
}

async function lives(page, said, port) {
  const run = spawn(tradewind, ["train", `${directory}/../run.yaml`, `run.dir=${directory}/live`, "train.epochs=2000", "train.patience=2000", "-q"], { stdio: "ignore" });
  try {
    await page.locator("#runs a", { hasText: /^live$/ }).waitFor({ timeout: PATIENCE });
    await open(page, "live");
    await becomes(page, "a live run's curve has points", (n) => Number(document.querySelector('[data-chart="loss"]')?.dataset.points ?? 0) > n, 2);
    const then = await page.evaluate(pointsOf, "loss");
    await becomes(page, "a live run's curve grows", (n) => Number(document.querySelector('[data-chart="loss"]')?.dataset.points ?? 0) > n, then);
    said.away = true;
    await stop(port.server.child);
    await becomes(page, "the page says that it has lost the server", () => document.getElementById("link").dataset.state === "lost");
    port.server = await serve(port.number);
    await becomes(page, "the page comes back", () => document.getElementById("link").dataset.state === "live");
    said.away = false;
    const again = await page.evaluate(pointsOf, "loss");
    await becomes(page, "the curve goes on after the server has started anew", (n) => Number(document.querySelector('[data-chart="loss"]')?.dataset.points ?? 0) > n, again);
    await sound(page, "a live run");
    await picture(page, "live");
  } finally {
    run.kill("SIGKILL");
  }
}

// A walk's page follows its folds, which are runs of their own.
async function walks(page) {
  const walk = spawn(tradewind, ["walk", `${directory}/../walk.yaml`, `run.dir=${directory}/walking`, "train.epochs=100000", "train.patience=100000", "--device=cpu", "-q"], { stdio: "ignore", cwd: `${directory}/..` });
  const epochsOf = (least) => { const most = Math.max(0, ...[...document.querySelectorAll(".folds tbody td:nth-child(2)")].map((e) => Number(e.textContent.replaceAll(",", "")) || 0)); return most > least ? most : 0; };
  try {
    await page.locator("#runs a", { hasText: /^walking$/ }).waitFor({ timeout: PATIENCE });
    await open(page, "walking");
    await becomes(page, "a fold of a walk has begun", epochsOf, 0);
    const then = await page.evaluate(epochsOf, 0);
    await becomes(page, "a fold of a walk goes on", epochsOf, then);
  } finally {
    walk.kill("SIGKILL");
  }
}

async function shows(browser, url, width, scheme) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  const where = `${width} pixels, ${scheme}`;
  listen(page);
  await page.goto(url);
  await page.locator("#runs .item").first().waitFor({ timeout: PATIENCE });
  await sound(page, `the list at ${where}`);
  await picture(page, `list_${width}_${scheme}`);
  await open(page, "quick");
  await page.locator('[data-chart="loss"]').scrollIntoViewIfNeeded();
  await becomes(page, "curves are drawn", pointsOf, "loss");
  await page.locator('section[aria-label="Memory plan"]').waitFor({ timeout: PATIENCE });
  for (const summary of await page.locator("main summary").all()) await summary.click();
  await sound(page, `a run at ${where}`);
  for (const summary of await page.locator("main summary").all()) await summary.click();
  for (const figure of await page.locator("figure").all()) await figure.scrollIntoViewIfNeeded();
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, `run_${width}_${scheme}`);
  await page.close();
}

// By best value: runs of one metric follow each other, the best first.
async function sorts(page) {
  await page.locator("#order").selectOption("best");
  const list = await page.evaluate(() => [...document.querySelectorAll(".item:not(.part) .what")].map((e) => /\b(mcc|loss) (-?[0-9.]+)/.exec(e.textContent)).filter(Boolean).map(([, name, v]) => [name, Number(v)]));
  for (const [name, sign] of [["mcc", -1], ["loss", 1]]) {
    const at = list.flatMap(([n], i) => (n === name ? [i] : [])), values = at.map((i) => sign * list[i][1]);
    check(at.length > 1 && at[at.length - 1] - at[0] === at.length - 1 && values.every((v, i) => !i || values[i - 1] <= v), `by best value: ${JSON.stringify(list)}`);
  }
  await page.locator("#order").selectOption("new");
}

const chartOf = (page, title) => page.locator(`[data-chart="${title}"]`);

// What a walk, an agent and a run under a limit have beside others.
async function showsKinds(browser, url, width, scheme) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme }), where = `${width} pixels, ${scheme}`;
  listen(page);
  for (const [name, what] of [["walk", "Folds"], ["traded", "Backtest"], ["agent", "Memory plan"], ["limited", "Memory plan"]]) {
    await page.goto(url);
    await page.locator("#runs .item").first().waitFor({ timeout: PATIENCE });
    await open(page, name);
    await page.locator(`section[aria-label="${what}"]`).waitFor({ timeout: PATIENCE });
    for (const figure of await page.locator("figure").all()) await figure.scrollIntoViewIfNeeded();
    if (["walk", "traded"].includes(name)) await becomes(page, `the equity of ${name} is drawn`, pointsOf, "equity");
    if (name === "limited") {
      await becomes(page, "the limit is drawn in the memory plan", () => /limit: room for [0-9.]+ MB/.test(document.querySelector(".map").textContent));
      await page.getByText(/memory, of 26\.8 MB allowed/).waitFor({ timeout: PATIENCE });
    }
    await sound(page, `${name} at ${where}`);
    await page.evaluate(() => scrollTo(0, 0));
    await picture(page, `${name}_${width}_${scheme}`);
  }
  await page.close();
}

// Times of bars are in UTC for every reader, and a zoom into them leaves the charts of the machine alone.
async function tellsBars(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, timezoneId: "America/New_York" });
  listen(page);
  await page.goto(url);
  await open(page, "traded");
  const equity = chartOf(page, "equity"), memory = chartOf(page, "memory");
  await memory.scrollIntoViewIfNeeded();
  await becomes(page, "memory is drawn", pointsOf, "memory");
  const before = Number(await memory.getAttribute("data-points"));
  await equity.scrollIntoViewIfNeeded();
  await becomes(page, "the equity is drawn", pointsOf, "equity");
  await equity.locator("summary").click();
  const [, id] = /run\/([0-9a-f]{16})/.exec(page.url());
  const first = (await (await fetch(`${url}api/runs/${id}/document/backtest.json`)).json()).equity.time[0];
  const wanted = `${new Date(1000 * first).toISOString().slice(0, 16).replace("T", " ")} UTC`, told = await equity.locator("tbody th").first().textContent();
  check(told === wanted, `the first bar is told as ${told}, and is of ${wanted}`);
  await equity.locator(".plot").focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press("+");
  await page.waitForTimeout(500);
  check(Number(await memory.getAttribute("data-points")) >= before, "a zoom into bars empties the chart of memory");
  await page.close();
}

// A backtest that is made while the page is open takes the place of the one that it shows.
async function followsBacktests(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  listen(page);
  await page.goto(url);
  await open(page, "traded");
  const panel = page.locator('section[aria-label="Backtest"]');
  await panel.waitFor({ timeout: PATIENCE });
  const before = await panel.locator("table.statistics").textContent();
  execFileSync(tradewind, ["backtest", "runs/traded", "-q", "account.cash=54321"], { cwd: `${directory}/..`, stdio: "ignore" });
  await becomes(page, "a later backtest is shown", (was) => document.querySelector('section[aria-label="Backtest"] table.statistics').textContent !== was, before);
  check((await chartOf(page, "equity").count()) === 1, "a later backtest has two charts of the equity");
  await chartOf(page, "equity").scrollIntoViewIfNeeded();
  await becomes(page, "the equity of the later backtest is drawn", pointsOf, "equity");
  await page.close();
}

// The time from the click on the run of a million steps to its first curve; the best of three, as others use the machine.
async function firstCurve(page) {
  let best = Infinity;
  for (let i = 0; i < 3; i++) {
    await open(page, "quick");
    await becomes(page, "another run is drawn", pointsOf, "loss");
    const start = Date.now();
    await open(page, "million");
    await becomes(page, "a million values are drawn", pointsOf, "loss by step");
    best = Math.min(best, Date.now() - start);
  }
  return best;
}

// Milliseconds between the frames of a window that moves over a million values: the median and the longest.
async function panned(page) {
  const plot = chartOf(page, "loss by step").locator(".plot");
  await plot.scrollIntoViewIfNeeded();
  await plot.focus();
  for (const key of ["+", "+", "+", "+"]) await page.keyboard.press(key);
  await page.waitForTimeout(300);
  await page.evaluate(() => {
    const frames = (window.frames_ = []);
    const count = (t) => { frames.push(t); if (!window.enough_) requestAnimationFrame(count); };
    requestAnimationFrame(count);
  });
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press(i < 20 ? "ArrowRight" : "ArrowLeft");
    await page.waitForTimeout(25);
  }
  const list = await page.evaluate(() => { window.enough_ = true; return window.frames_.slice(1).map((t, i) => t - window.frames_[i]); });
  await page.keyboard.press("0");
  list.sort((a, b) => a - b);
  return { median: list[list.length >> 1], longest: list[list.length - 1], frames: list.length };
}

// A million values: every peak is there at every zoom, and the server stays small.
async function millions(page, port) {
  const first = await firstCurve(page), frames = await panned(page);
  console.log(`page: first curve of a million values after ${first} ms; moved, a frame in ${frames.median.toFixed(0)} ms (${frames.longest.toFixed(0)} at most, of ${frames.frames})`);
  check(first < 1000, "the first curve takes a second or more");
  check(frames.median < 100, "a window moves over a million values with fewer than ten frames a second");
  const [, id] = /run\/([0-9a-f]{16})/.exec(page.url());
  for (const [from, to] of [["", ""], [600000, 700000], [654000, 655000], [654300, 654340]]) {
    const begun = Date.now(), window = from === "" ? "" : `&from=${from}&to=${to}`;
    const { series } = await (await fetch(`${port.server.url}api/runs/${id}/series?name=steps/loss&points=800${window}`)).json();
    const at = series[0].x.indexOf(654321);
    check(at >= 0 && series[0].y[at] === 1000, `the peak at step 654,321 is missing in the window ${from} to ${to}`);
    check(series[0].x.length <= 1604, "more points than were asked for");
    console.log(`page: window ${from}-${to}: ${series[0].x.length} points in ${Date.now() - begun} ms`);
  }
  const status = readFileSync(`/proc/${port.server.child.pid}/status`, "utf8"), kb = Number(/VmHWM:\s+(\d+)/.exec(status)[1]);
  console.log(`page: the server has taken ${(kb / 1024).toFixed(1)} MB at most`);
  check(kb < 50 * 1024, `the server takes ${kb} KB, more than 50 MB`);
}

const port = { server: await serve(0) };
port.number = Number(new URL(port.server.url).port);
const browser = await chromium.launch({ executablePath, args });
try {
  for (const [width, scheme] of [[390, "light"], [1400, "light"], [1400, "dark"], [390, "dark"]]) {
    await shows(browser, port.server.url, width, scheme);
    await showsKinds(browser, port.server.url, width, scheme);
  }
  await tellsBars(browser, port.server.url);
  await followsBacktests(browser, port.server.url);
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } }), said = listen(page);
  await page.goto(port.server.url);
  await open(page, "quick");
  await sorts(page);
  await zooms(page);
  await compares(page);
  await sound(page, "two runs");
  await picture(page, "two");
  await millions(page, port);
  await lives(page, said, port);
  await walks(page);
} finally {
  await browser.close();
  await stop(port.server.child);
}
if (!failures) console.log("page: all is well");
process.exit(failures ? 1 : 0);
