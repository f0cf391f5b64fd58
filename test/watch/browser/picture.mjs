// Takes a picture of the page: node picture.mjs URL CHROMIUM FILE.png RUN
import { chromium } from "playwright-core";

const [, , url, executablePath, path, run] = process.argv;
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];
const browser = await chromium.launch({ executablePath, args });
const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: "light" });
await page.goto(url);
await page.locator("#runs a", { hasText: new RegExp(`^${run}$`) }).click();
await page.locator("[data-points]").nth(1).waitFor({ state: "attached" });
await page.mouse.move(0, 0);
await page.waitForTimeout(1500);
await page.screenshot({ path });
await browser.close();
