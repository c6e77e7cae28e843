// Seconds of the page on this machine, where it is quiet: node budget.mjs SIMCCL
// node budget.mjs SIMCCL cpu prints what a first visit takes of processors alone, which other work falsifies less.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const server = spawn(process.argv[2], ["serve"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((ok, no) => { server.stdout.once("data", (d) => ok(String(d).trim())); server.once("exit", no); });
const program = await chromium.launchServer({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-background-networking"] });
const browser = await chromium.connect(program.wsEndpoint());
/** Seconds of processors that the browser's processes have used since an earlier call, by the fields of /proc/PID/stat; threads that ended count. */
function used(before) {
  const all = new Map();
  for (const pid of readdirSync("/proc").filter((n) => /^\d+$/.test(n))) {
    try {
      const f = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
      all.set(Number(pid), { parent: Number(f[1]), seconds: (Number(f[11]) + Number(f[12])) / 100 });
    } catch { /* it ended */ }
  }
  const ours = (pid) => pid === program.process().pid || all.has(pid) && all.get(pid).parent > 1 && ours(all.get(pid).parent);
  const since = before && [...all].reduce((sum, [pid, p]) => sum + (ours(pid) ? p.seconds - (before.get(pid)?.seconds ?? 0) : 0), 0);
  return since ?? all;
}
const shown = (page) => page.waitForFunction(() => document.body.dataset.shown);
const done = (page) => page.waitForFunction(() => document.body.dataset.done === document.body.dataset.shown);
const print = (what, limit, ms) => console.log(`${what.padEnd(60)} ${String(limit).padStart(8)} ${(ms / 1000).toFixed(3).padStart(8)}`);
const least = async (n, f) => { let best = Infinity; for (let i = 0; i < n; i++) best = Math.min(best, await f()); return best; };

if (process.argv[3] === "cpu") {
  console.log(`${"first visit, processor seconds of all of the browser, best of 3".padEnd(60)} ${"decided".padStart(8)} ${"all sizes".padStart(9)}`);
  for (const [topo, nodes] of [["dgx-h100", 2], ["dgx-b200", 4]]) {
    const best = [Infinity, Infinity];
    for (let i = 0; i < 3; i++) {
      const c = await browser.newContext(), page = await c.newPage();
      page.setDefaultTimeout(300_000);
      await page.goto("about:blank");
      const before = used();
      await page.goto(address + `#topo=${topo}&nodes=${nodes}&op=all_reduce`);
      await shown(page);
      best[0] = Math.min(best[0], used(before));
      await done(page);
      best[1] = Math.min(best[1], used(before));
      await c.close();
    }
    console.log(`${`${nodes} nodes of ${topo}, all_reduce, 8 B to 1 GiB`.padEnd(60)} ${best[0].toFixed(2).padStart(8)} ${best[1].toFixed(2).padStart(9)}`);
  }
  await browser.close();
  await program.close();
  server.kill("SIGINT");
  process.exit();
}
console.log(`${"web page, best of 3".padEnd(60)} ${"limit".padStart(8)} ${"seconds".padStart(8)}`);
/** When the decisions are shown, or all sizes, from the start of the visit. */
const visit = async (context, topo = "dgx-h100", nodes = 2, all = false) => {
  const page = await context.newPage();
  page.setDefaultTimeout(300_000);
  await page.goto(address + `#topo=${topo}&nodes=${nodes}&op=all_reduce`);
  await shown(page);
  if (all) await done(page);
  const ms = await page.evaluate((a) => (a ? performance.now() : performance.getEntriesByName("first-picture")[0].startTime), all);
  await page.close();
  return ms;
};
const first = (...of) => least(3, async () => { const c = await browser.newContext(); const ms = await visit(c, ...of); await c.close(); return ms; });
print("first picture, first visit", 1.5, await first());
print("first picture, first visit of four DGX B200", 1.5, await first("dgx-b200", 4));
print("all sizes, first visit", 3, await first("dgx-h100", 2, true));
print("all sizes, first visit of four DGX B200", 3, await first("dgx-b200", 4, true));
const context = await browser.newContext();
await visit(context);
print("first picture, next visit", 1.5, await least(3, () => visit(context)));
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
await program.close();
server.kill("SIGINT");
