// The page as a user has it: Chromium, served by bin/simccl serve. SIMCCL names the
// program. Without it, Chromium or the page the tests are skipped, and say why.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");
const simccl = process.env.SIMCCL ?? join(root, "bin", "simccl");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
const missing = !existsSync(simccl) ? `no program at ${simccl}: make build` : !browserPath ? "no Chromium" : "";
const skip = missing || false;
// What is promised in seconds is held by make budget; here a machine may be slow and busy.
const slow = { timeout: 600_000 };
const fixture = (...p) => join(root, "testdata", ...p);

let server, address, browser;

before(async () => {
  if (skip) return;
  server = spawn(simccl, ["serve"], { stdio: ["ignore", "pipe", "inherit"] });
  address = await new Promise((ok, no) => {
    server.stdout.once("data", (d) => ok(String(d).trim()));
    server.once("exit", (code) => no(new Error(`simccl serve ended with ${code}: was the page built? make web build`)));
  });
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update"] });
});

after(async () => {
  await browser?.close();
  server?.kill("SIGINT");
});

/** A new page at an address; what it asks of other hosts, and errors, fail the test. */
async function open(hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(Number(process.env.PAGE_TIMEOUT ?? 300_000));
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (e) => wrong.push("error: " + e.message));
  page.on("console", (m) => { if (m.type() === "error") wrong.push("console: " + m.text()); });
  page.on("request", (r) => { if (!r.url().startsWith(address) && !/^(blob|data):/.test(r.url())) wrong.push("outside request: " + r.url()); });
  page.on("dialog", (d) => { wrong.push("dialog: " + d.message()); void d.dismiss(); });
  await page.goto(address + hash);
  await shown(page);
  return { page, context, wrong, close: async () => { await context.close(); assert.deepEqual(wrong, []); } };
}
const shown = (page) => page.waitForFunction(() => document.body.dataset.shown);
const done = (page) => page.waitForFunction(() => document.body.dataset.done === document.body.dataset.shown);
const settled = async (page, act) => { const old = await page.evaluate(() => document.body.dataset.shown); await act(); await page.waitForFunction((o) => document.body.dataset.shown !== o, old); };
const times = (page) => page.$$eval("[data-time]", (l) => Object.fromEntries(l.map((x) => [x.dataset.time, x.textContent])));
const cli = (...args) => execFileSync(simccl, [...args, "--no-env"], { encoding: "utf8", maxBuffer: 1 << 26 });
/** Times out of place of a table, by size. */
const table = (text) => Object.fromEntries(text.split("\n").map((l) => l.trim().split(/\s+/)).filter((l) => /^\d+$/.test(l[0])).map((l) => [l[0], l[5]]));
const few = "b=1M&e=16M&f=4&";

test("times are those of the command, to the last digit, also after the nodes change", { skip, ...slow }, async () => {
  const { page, close } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&b=1K&e=4M&f=8");
  await done(page);
  assert.deepEqual(await times(page), table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "2", "-b", "1K", "-e", "4M", "-f", "8")));
  await settled(page, async () => { await page.fill("#nodes", "3"); await page.press("#nodes", "Tab"); });
  await done(page);
  const three = table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "3", "-b", "1K", "-e", "4M", "-f", "8"));
  assert.deepEqual(await times(page), three);
  // The command line that the page offers says the same, and so does its address.
  const line = await page.textContent("#command");
  assert.deepEqual(table(cli(...line.trim().split(" ").slice(1))), three);
  const again = await open(await page.evaluate(() => location.hash));
  await done(again.page);
  assert.deepEqual(await times(again.page), three);
  await again.close();
  await settled(page, async () => { await page.fill("#env", "NCCL_ALGO=Ring\nNCCL_PROTO=Simple"); await page.press("#env", "Tab"); });
  await done(page);
  assert.deepEqual(await times(page), table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "3", "-b", "1K", "-e", "4M", "-f", "8", "--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple")));
  await close();
});

test("files are recognised by content, whatever their names", { skip, ...slow }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "simccl-page-"));
  const put = (name, data) => { const p = join(dir, name); writeFileSync(p, data); return p; };
  const trace = join(dir, "t.json.gz");
  cli("run", "all_reduce", "--topo", "dgx-h100", "-g", "2", "--sizes", "64K", "--trace", trace);
  const four = table(cli("run", "all_reduce", "--topo", fixture("topos", "hgx-a100-4.xml"), "--nodes", "2", "--sizes", "1M"));
  const scenario = { scenario: 1, machine: { nodes: [{ topo: "dgx-a100", count: 2 }] }, workload: { op: "all_gather", sizes: ["1M"] } };
  const { page, close } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=1M");
  const input = page.locator("#file"), kind = (n) => page.waitForFunction((k) => document.querySelectorAll("#files .file[data-kind]").length === k, n);
  await settled(page, () => input.setInputFiles(put("a.bin", readFileSync(fixture("topos", "hgx-a100-4.xml")))));
  await done(page);
  assert.deepEqual(await times(page), four);
  await input.setInputFiles([put("c.bin", readFileSync(trace)), put("d.bin", "workload 1\nranks 2\ncomm w *\nlist a 0-1\n  call 0 w all_reduce float sum 1048576\n")]);
  await kind(3);
  await page.waitForSelector("#time canvas");
  await settled(page, () => input.setInputFiles(put("b.bin", JSON.stringify(scenario))));
  await done(page);
  assert.deepEqual(await times(page), table(cli("run", "all_gather", "--topo", "dgx-a100", "--nodes", "2", "--sizes", "1M")));
  const measured = fixture("measured", "h200x4", "nccl-tests");
  const perf = existsSync(measured) ? readdirSync(measured).find((f) => /all_gather/.test(f)) : undefined;
  if (perf) await input.setInputFiles(put("m.bin", readFileSync(join(measured, perf))));
  else await input.setInputFiles(put("m.bin", cli("run", "all_gather", "--topo", "dgx-a100", "--nodes", "2", "--sizes", "1M")));
  await page.waitForSelector("#curves .mark.measured");
  await input.setInputFiles(put("junk.xml", "\x00\x01nothing of ours"));
  await page.waitForSelector('#files .file[data-kind="error"]');
  assert.deepEqual(await page.$$eval("#files .file", (l) => l.map((x) => x.dataset.kind)), ["topology", "trace", "workload", "scenario", "measured", "error"]);
  const log = fixture("measured", "h200x4", "logs");
  const logs = existsSync(log) ? readdirSync(log).filter((f) => statSync(join(log, f)).isFile() && /^info/.test(f)) : [];
  if (logs.length) {
    await input.setInputFiles(put("l.bin", readFileSync(join(log, logs[0]))));
    await page.waitForSelector('#files .file[data-kind="log"]');
    assert.match(await page.textContent("#advice"), /what NCCL .* logged is what simccl decides/);
  }
  await close();
  rmSync(dir, { recursive: true });
});

test("names in files are text: nothing of them runs", { skip, ...slow }, async () => {
  const evil = `<img src=x onerror=alert(1)>`, quoted = evil.replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const xml = readFileSync(fixture("topos", "dgx-h100.xml"), "utf8").replace(/name="mlx5_0"/, `name="${quoted}"`);
  assert.ok(xml.includes(quoted));
  const { page, close } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=1M");
  await settled(page, () => page.locator("#file").setInputFiles({ name: `${evil}.xml`, mimeType: "text/xml", buffer: Buffer.from(xml) }));
  await page.waitForTimeout(500);
  assert.equal(await page.$$eval("main img, aside img, [onerror]", (l) => l.length), 0);
  assert.match(await page.textContent("#files"), /<img src=x onerror/);
  await page.evaluate((h) => { location.hash = h; }, `topo=${encodeURIComponent(evil)}&nodes=2&op=${encodeURIComponent(evil)}&env=${encodeURIComponent("NCCL_" + evil + "=1")}`);
  await page.waitForSelector("#answer .error");
  assert.equal(await page.$$eval("main img, aside img", (l) => l.length), 0);
  await close();
});

test("a long run is cancelled, and the page goes on", { skip, ...slow }, async () => {
  const { page, close } = await open("#topo=dgx-h100&nodes=64&op=alltoall&sizes=1M,64M,256M");
  await page.waitForSelector("#cancel:not([hidden])");
  const begun = Date.now();
  await page.click("#cancel");
  await page.waitForSelector("#cancel", { state: "hidden" });
  assert.match(await page.textContent("#status"), /Cancelled/);
  await settled(page, () => page.evaluate(() => { location.hash = "topo=dgx-h100&nodes=2&op=all_reduce&sizes=8"; }));
  await done(page);
  assert.equal(Object.keys(await times(page)).length, 1);
  assert.ok(Date.now() - begun < 200_000, "cancelling and a small run took minutes");
  await close();
});

test("it starts without a network after the first visit", { skip, ...slow }, async () => {
  const { page, context, wrong } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8");
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await context.setOffline(true);
  await page.reload();
  await shown(page);
  await done(page);
  assert.equal(Object.keys(await times(page)).length, 1);
  await context.close();
  assert.deepEqual(wrong, []);
});

test("axe finds nothing serious, in light and dark", { skip, ...slow }, async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const colorScheme of ["light", "dark"]) {
    // The checker is put into the page past its policy, which forbids any script but its own.
    const { page, close } = await open(`#topo=dgx-h100&nodes=2&op=all_reduce&${few}`, { colorScheme, bypassCSP: true });
    await done(page);
    if (colorScheme === "light") {
      await page.click("#advice-run");
      await page.waitForSelector("#advice p:has-text('3 %')");
      await page.click("#time-run");
      await page.waitForSelector("#time canvas");
      await page.$$eval("details", (l) => l.forEach((d) => { d.open = true; }));
    }
    await page.addScriptTag({ content: axe });
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const bad = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.failureSummary}`).join(" | ")}`);
    assert.deepEqual(bad, [], colorScheme);
    await close();
  }
});

test("everything is reached by keyboard", { skip, ...slow }, async () => {
  const { page, close } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=64K,1M");
  await done(page);
  const seen = new Set();
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press("Tab");
    const id = await page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute("aria-label") || document.activeElement?.tagName);
    seen.add(id);
    if (id === "size") { await page.keyboard.press("ArrowLeft"); }
  }
  for (const id of ["copy", "theme", "open", "machine", "nodes", "op", "nccl", "env", "size", "channel", "if-nic", "if-lost", "advice-run", "time-run", "get-trace", "get-report"]) assert.ok(seen.has(id), `${id} is not reached by Tab: ${[...seen]}`);
  assert.equal(await page.textContent("#size-text"), "64 KiB");
  await close();
});

test("what-if: before and after, with what NCCL decides differently", { skip, ...slow }, async () => {
  const { page, close } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=64K,4M&if-lost=mlx5_3");
  await done(page);
  await page.waitForFunction(() => /\d/.test(document.querySelector("#whatif-result tbody tr:last-child td:nth-child(3)")?.textContent ?? ""));
  const want = table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "2", "--sizes", "64K,4M", "--fault", "nic=mlx5_3:absent"));
  assert.deepEqual(await page.$$eval("#whatif-result tbody tr", (l) => l.map((r) => r.children[2].textContent)), Object.values(want));
  await close();
});

test("what-if: a lost NIC and fewer channels at once", { skip, ...slow }, async () => {
  const { page, close } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=64K,4M&if-lost=mlx5_3&if-channels=8");
  await done(page);
  await page.waitForFunction(() => /\d/.test(document.querySelector("#whatif-result tbody tr:last-child td:nth-child(3)")?.textContent ?? ""));
  const want = table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "2", "--sizes", "64K,4M", "--fault", "nic=mlx5_3:absent", "--env", "NCCL_MAX_NCHANNELS=8"));
  assert.deepEqual(await page.$$eval("#whatif-result tbody tr", (l) => l.map((r) => r.children[2].textContent)), Object.values(want));
  await close();
});

test("downloads: trace, report, scenario, topology", { skip, ...slow }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "simccl-page-"));
  const { page, close } = await open("#topo=dgx-h100&nodes=2&gpus=2&op=all_reduce&sizes=64K");
  await done(page);
  const get = async (id) => { const [d] = await Promise.all([page.waitForEvent("download"), page.click(id)]); const p = join(dir, d.suggestedFilename()); await d.saveAs(p); return p; };
  cli("trace", "validate", await get("#get-trace"));
  assert.match(readFileSync(await get("#get-report"), "utf8"), /<!doctype html>/i);
  const scenario = await get("#get-scenario");
  assert.deepEqual(table(cli("run", "--scenario", scenario)), await times(page));
  assert.equal(cli("run", "all_reduce", "--topo", await get("#get-topology"), "--nodes", "2", "-g", "2", "--sizes", "64K").split("\n").filter((l) => /^ +65536/.test(l))[0].trim().split(/\s+/)[5], (await times(page))[65536]);
  await close();
  rmSync(dir, { recursive: true });
});

test("the page stays in its width, and small", { skip, ...slow }, async () => {
  const dist = join(root, "internal", "webpage", "site", "dist");
  const total = readdirSync(dist).reduce((n, f) => n + statSync(join(dist, f)).size, 0);
  assert.ok(total < 6e6, `the page has ${total} bytes compressed, more than 6,000,000`);
  for (const width of [390, 1280, 2560]) {
    const { page, close } = await open("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=1M", { viewport: { width, height: 900 } });
    await done(page);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${width} px`);
    await close();
  }
});
