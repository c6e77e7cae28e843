// Seconds of the page on this machine, where it is quiet: node budget.mjs SIMCCL
import { spawn } from "node:child_process";
import { chromium } from "playwright-core";

const server = spawn(process.argv[2], ["serve"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((ok, no) => { server.stdout.once("data", (d) => ok(String(d).trim())); server.once("exit", no); });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-background-networking"] });
const shown = (page) => page.waitForFunction(() => document.body.dataset.shown);
const print = (what, limit, ms) => console.log(`${what.padEnd(60)} ${String(limit).padStart(8)} ${(ms / 1000).toFixed(3).padStart(8)}`);
const least = async (n, f) => { let best = Infinity; for (let i = 0; i < n; i++) best = Math.min(best, await f()); return best; };

console.log(`${"web page, best of 3".padEnd(60)} ${"limit".padStart(8)} ${"seconds".padStart(8)}`);
const visit = async (context) => {
  const page = await context.newPage();
  page.setDefaultTimeout(300_000);
  await page.goto(address + "#topo=dgx-h100&nodes=2&op=all_reduce");
  await shown(page);
  const ms = await page.evaluate(() => performance.getEntriesByName("first-picture")[0].startTime);
  await page.close();
  return ms;
};
print("first picture, first visit", 2, await least(3, async () => { const c = await browser.newContext(); const ms = await visit(c); await c.close(); return ms; }));
const context = await browser.newContext();
await visit(context);
print("first picture, next visit", 2, await least(3, () => visit(context)));
const page = await context.newPage();
page.setDefaultTimeout(300_000);
await page.goto(address + "#topo=dgx-h100&nodes=128&op=all_reduce");
await shown(page);
let nodes = 120;
for (const [what, change] of [
  ["a setting changes on 1,024 ranks", async () => { nodes++; await page.fill("#env", `NCCL_MAX_NCHANNELS=${nodes % 16 + 1}`); await page.press("#env", "Tab"); }],
  ["the operation changes on 1,024 ranks", async () => page.selectOption("#op", nodes++ % 2 ? "all_gather" : "reduce_scatter")],
  ["the nodes change, to about 1,024 ranks", async () => { await page.fill("#nodes", String(nodes++)); await page.press("#nodes", "Tab"); }],
]) {
  print(what, 0.3, await least(3, async () => {
    const old = await page.evaluate(() => document.body.dataset.shown);
    await page.click("#cancel").catch(() => undefined);
    await change();
    await page.waitForFunction((o) => document.body.dataset.shown !== o, old);
    return Number(await page.evaluate(() => document.body.dataset.shownMs));
  }));
}
await browser.close();
server.kill("SIGINT");
