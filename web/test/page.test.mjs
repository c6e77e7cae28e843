// The page as a user has it: Chromium, served by bin/simccl serve. SIMCCL names the
// program. Without it, Chromium or the page the tests are skipped, and say why.
// All share one page: a visit changes its address, as a user does who follows a link.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");
const simccl = process.env.SIMCCL ?? join(root, "bin", "simccl");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
const skip = (!existsSync(simccl) ? `no program at ${simccl}: make build` : !browserPath ? "no Chromium" : "") || false;
// What is promised in seconds is held by make budget; here a machine may be slow and busy.
const slow = { skip, timeout: 600_000 };
const fixture = (...p) => join(root, "testdata", ...p);

let server, address, browser, context, page, dir;
const wrong = []; // errors of the page, and what it asks of other hosts

before(async () => {
  if (skip) return;
  dir = mkdtempSync(join(tmpdir(), "simccl-page-"));
  server = spawn(simccl, ["serve"], { stdio: ["ignore", "pipe", "inherit"] });
  address = await new Promise((ok, no) => {
    server.stdout.once("data", (d) => ok(String(d).trim()));
    server.once("exit", (code) => no(new Error(`simccl serve ended with ${code}: was the page built? make web build`)));
  });
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update"] });
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, reducedMotion: "reduce", permissions: ["clipboard-read", "clipboard-write"] });
  context.setDefaultTimeout(Number(process.env.PAGE_TIMEOUT ?? 300_000));
  page = await context.newPage();
  page.on("pageerror", (e) => wrong.push("error: " + e.message));
  page.on("console", (m) => { if (m.type() === "error") wrong.push("console: " + m.text()); });
  page.on("request", (r) => { if (!r.url().startsWith(address) && !/^(blob|data):/.test(r.url())) wrong.push("outside request: " + r.url()); });
  page.on("dialog", (d) => { wrong.push("dialog: " + d.message()); void d.dismiss(); });
  await page.goto(address + "#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8");
  await shown();
});

afterEach(() => { assert.deepEqual(wrong.splice(0), []); });

after(async () => {
  await browser?.close();
  server?.kill("SIGINT");
  if (dir) rmSync(dir, { recursive: true });
});

const shown = () => page.waitForFunction(() => document.body.dataset.shown);
const done = () => page.waitForFunction(() => document.body.dataset.done === document.body.dataset.shown);
const compared = () => page.waitForFunction(() => document.body.dataset.compared === document.body.dataset.shown && document.body.dataset.done === document.body.dataset.shown && !document.querySelector("#whatif-result")?.textContent.includes("…"));
const drawn = (id) => page.waitForFunction((i) => document.querySelector(`#${i} .body`).dataset.drawn === document.body.dataset.shown, id);
/** Does what changes the Spec, and waits for the decisions. */
async function settled(act) {
  const old = await page.evaluate(() => document.body.dataset.shown);
  await act();
  await page.waitForFunction((o) => document.body.dataset.shown !== o, old);
}
const visit = (hash) => settled(() => page.evaluate((h) => { location.hash = h; }, hash));
const times = () => page.$$eval("[data-time]", (l) => Object.fromEntries(l.map((x) => [x.dataset.time, x.textContent])));
const column = (id, n) => page.$$eval(`#${id} tbody tr`, (l, i) => l.map((r) => r.children[i].textContent), n);
const cli = (...args) => execFileSync(simccl, [...args, "--no-env"], { encoding: "utf8", maxBuffer: 1 << 26, cwd: dir, stdio: ["ignore", "pipe", "ignore"] });
/** Runs a command line of the page, whose only quotes are those of a shell. */
const line = (text) => execFileSync("/bin/sh", ["-c", `"$0" ${text.trim().replace(/^simccl /, "")} --no-env`, simccl], { encoding: "utf8", maxBuffer: 1 << 26, cwd: dir, stdio: ["ignore", "pipe", "ignore"] });
/** Times out of place of a table, by size. */
const table = (text) => Object.fromEntries(text.split("\n").map((l) => l.trim().split(/\s+/)).filter((l) => /^\d+$/.test(l[0])).map((l) => [l[0], l[5]]));
/** A file of the folder in which command lines of the page run. */
const put = (name, data) => { writeFileSync(join(dir, name), data); return join(dir, name); };
/** Drops files on the page, and waits until they are read. */
async function drop(...files) {
  const before = await page.locator("#files .file").count();
  const data = await page.evaluateHandle((l) => {
    const d = new DataTransfer();
    for (const [name, text] of l) d.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
    return d;
  }, files.map((f) => [basename(f), readFileSync(f).toString("base64")]));
  await page.dispatchEvent("body", "drop", { dataTransfer: data });
  await page.waitForFunction((n) => document.querySelectorAll("#files .file[data-kind]").length === n, before + files.length);
  return page.$$eval("#files .file", (l, n) => l.slice(n).map((x) => x.dataset.kind), before);
}
async function download(id) {
  const [d] = await Promise.all([page.waitForEvent("download"), page.click(id)]);
  const p = join(dir, d.suggestedFilename());
  await d.saveAs(p);
  return p;
}
const opened = async (file) => (file.endsWith(".gz") ? gunzipSync(readFileSync(file)) : readFileSync(file)).toString();

test("times are those of the command, to the last digit, also after the nodes change", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&b=1K&e=4M&f=8");
  await done();
  assert.deepEqual(await times(), table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "2", "-b", "1K", "-e", "4M", "-f", "8")));
  await settled(async () => { await page.fill("#nodes", "3"); await page.press("#nodes", "Tab"); });
  await done();
  const three = table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "3", "-b", "1K", "-e", "4M", "-f", "8"));
  assert.deepEqual(await times(), three);
  await settled(async () => { await page.fill("#env", "NCCL_ALGO=Ring\nNCCL_PROTO=Simple"); await page.press("#env", "Tab"); });
  await done();
  const ring = await times();
  assert.deepEqual(ring, table(cli("run", "all_reduce", "--topo", "dgx-h100", "--nodes", "3", "-b", "1K", "-e", "4M", "-f", "8", "--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple")));
  // The command line that the page copies says the same, and so does its address.
  await page.click("#copy");
  await page.waitForFunction(() => /copied/.test(document.querySelector("#status").textContent));
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.deepEqual(table(line(copied)), ring);
  const here = await page.evaluate(() => location.hash);
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8");
  await visit(here);
  await done();
  assert.deepEqual(await times(), ring);
  assert.equal(await page.textContent("#command"), copied);
  assert.deepEqual(await page.evaluate(() => ["nodes", "min", "max", "factor", "env"].map((id) => document.getElementById(id).value)), ["3", "1K", "4M", "8", "NCCL_ALGO=Ring\nNCCL_PROTO=Simple"]);
});

test("what a first visit shows before the simulator has loaded is what the simulator answers", slow, async () => {
  const recorded = await page.evaluate(() => fetch("first.json").then((r) => r.json()));
  const answers = await page.evaluate((keys) => new Promise((resolve) => {
    const worker = new Worker("worker.js"), all = {};
    worker.onmessage = ({ data: m }) => {
      const at = (all[keys[m.id - 1]] ??= { parts: [] });
      if ("part" in m) at.parts.push(m.part); else at.answer = m.answer ?? m.failure;
      if (Object.values(all).filter((a) => "answer" in a).length === keys.length) { worker.terminate(); resolve(all); }
    };
    keys.forEach((key, i) => worker.postMessage({ id: i + 1, method: key.slice(0, key.indexOf(" ")), query: key.slice(key.indexOf(" ") + 1) }));
  }), Object.keys(recorded));
  // Progress is told by time; rows, which have bytes, are not.
  const rows = (all) => Object.fromEntries(Object.entries(all).map(([key, a]) => [key, { parts: a.parts.filter((p) => "bytes" in p), answer: a.answer }]));
  assert.deepEqual(rows(answers), rows(recorded));
  assert.deepEqual(Object.keys(recorded).map((key) => key.split(" ")[0]), ["hello", "machine", "model", "explain", "run"]);
  const asked = await context.newPage(); // and a first visit asks nothing else
  await asked.addInitScript(() => { const post = Worker.prototype.postMessage; globalThis.posted = []; Worker.prototype.postMessage = function (m, ...more) { globalThis.posted.push(m.method); post.call(this, m, ...more); }; });
  await asked.goto(address);
  await asked.waitForFunction(() => document.body.dataset.done);
  assert.deepEqual(await asked.evaluate(() => globalThis.posted.filter((m) => m && !["congestion"].includes(m))), []);
  await asked.close();
});

test("a network of packets: times are the command's, the address keeps it, frames are named, and what would help", slow, async () => {
  await visit("#topo=dgx-h100&nodes=4&op=alltoall&sizes=1M");
  assert.equal(await page.isDisabled("#cc"), true);
  await settled(() => page.selectOption("#fabric", "spectrum-x"));
  await settled(() => page.selectOption("#network", "packet"));
  await settled(() => page.selectOption("#cc", "none"));
  await settled(() => page.selectOption("#balance", "flowlet"));
  await settled(async () => { await page.fill("#faults", "nic=node0/2:slow=4"); await page.press("#faults", "Tab"); });
  await done();
  const args = ["--fabric", "spectrum-x", "--network", "packet", "--cc", "none", "--balance", "flowlet", "--fault", "nic=node0/2:slow=4"], framed = await times();
  assert.deepEqual(framed, table(cli("run", "alltoall", "--topo", "dgx-h100", "--nodes", "4", ...args, "--sizes", "1M")));
  assert.deepEqual(table(line(await page.textContent("#command"))), framed);
  assert.match(await page.textContent("#frames"), /frames marked.*pause frames/);
  await page.click("#congestion-run");
  await page.waitForFunction(() => /--network flow/.test(document.querySelector("#congestion-result").textContent));
  const here = await page.evaluate(() => location.hash);
  assert.match(here, /network=packet/);
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8");
  assert.deepEqual(await page.evaluate(() => ["network", "fabric", "cc", "balance", "faults"].map((id) => document.getElementById(id).value)), ["", "", "", "", ""]);
  await visit(here);
  await done();
  assert.deepEqual(await times(), framed);
  assert.deepEqual(await page.evaluate(() => ["network", "fabric", "cc", "balance", "faults"].map((id) => document.getElementById(id).value)), ["packet", "spectrum-x", "none", "flowlet", "nic=node0/2:slow=4"]);
  // Back to flows there is no congestion control; a fault that is none is said where it is.
  await settled(() => page.selectOption("#network", ""));
  await done();
  assert.equal(await page.inputValue("#cc"), "");
  assert.equal(await page.inputValue("#balance"), "");
  assert.equal(await page.locator("#frames").count(), 0);
  await page.fill("#faults", "nic=node0/99:slow=4");
  await page.press("#faults", "Tab");
  await page.waitForFunction(() => !document.querySelector("#faults-error").hidden);
});

test("the address has what readable keys cannot say, and a cut one is no harm", slow, async () => {
  const spec = { machine: { nodes: [{ topo: "dgx-h100", count: 1 }, { topo: "dgx-a100", count: 1 }] }, workload: { op: "all_gather", sizes: ["64K"] } };
  await visit("#spec=" + encodeURIComponent(JSON.stringify(spec)) + "&channel=1");
  await done();
  assert.match(await page.evaluate(() => decodeURIComponent(location.hash)), /"topo":"dgx-a100"/);
  assert.match(await page.textContent("#channels output"), /channel 1 of/);
  assert.deepEqual(await times(), table(line(await page.textContent("#command"))));
  await visit("#spec=%7B%22workl");
  assert.match(await page.textContent("#command"), /simccl run all_reduce --topo dgx-h100 --nodes 2$/);
});

test("why, path matrix, advice: as the commands have them", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&gpus=2&op=all_reduce&sizes=64K");
  const machine = ["--topo", "dgx-h100", "--nodes", "2", "-g", "2"];
  const e = JSON.parse(cli("explain", "all_reduce", "64K", ...machine, "--json"));
  await page.waitForFunction(() => /NCCL takes/.test(document.querySelector("#why").textContent));
  const choices = [e.choice, ...e.rivals.filter((r) => r.available)];
  const why = await page.$$eval('#why [aria-label="Why this choice"] tbody tr', (l) => l.map((r) => [...r.children].map((c) => c.textContent)));
  assert.deepEqual(why.map((r) => r.slice(0, 3)), choices.map((c) => [c.algo, c.proto, c.timeUs.toFixed(2)]));
  const off = await page.$$eval('#why [aria-label="Why not"] tbody tr', (l) => l.flatMap((r) => r.children[1].textContent.split(", ").map((p) => `${r.children[0].textContent} ${p}`)));
  assert.deepEqual(off.sort(), e.rivals.filter((r) => !r.available).map((r) => `${r.algo} ${r.proto}`).sort());
  const matrix = await page.$$eval("#matrix tbody tr", (l) => l.map((r) => [...r.querySelectorAll("td")].map((c) => c.title.replace(/^.*?: /, ""))));
  const wide = cli("topo", "show", "dgx-h100", "-g", "2", "--wide").split("\n");
  assert.equal(matrix.length, await page.$$eval("#matrix thead th", (l) => l.length - 1));
  assert.ok(wide.some((l) => /^GPU0/.test(l) && l.includes("NVL")) && matrix[0][1].startsWith("NVL, 370.8 GB/s"), `${matrix[0]}`);
  await page.click("#advice-run");
  await drawn("advice");
  const advice = JSON.parse(cli("advise", "all_reduce", ...machine, "--sizes", "64K,1M,64M", "--json"));
  assert.ok(advice.length > 0);
  assert.deepEqual(await column("advice", 0), advice.map((a) => a.line.replace(/^export /, "")));
  assert.deepEqual(await column("advice", 2), advice.map((a) => `${((a.gain - 1) * 100).toFixed(1)} %`));
});

test("rings and trees by channel: as the command has them, and they move", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=1K&channel=1");
  const ring = () => page.getAttribute("#channels svg.shape >> nth=0", "aria-label");
  const rings = JSON.parse(cli("graph", "--topo", "dgx-h100", "--nodes", "2", "--format", "json"));
  const text = JSON.stringify(rings), order = (label) => label.replace(/^.*: /, "").split(" → ").map(Number);
  assert.match(await ring(), /channel 1:/);
  assert.ok(text.replace(/\s/g, "").includes(JSON.stringify(order(await ring()))), `${await ring()} is not in ${text.slice(0, 600)}`);
  const before = await ring();
  await page.focus("#channel");
  await page.keyboard.press("ArrowRight");
  assert.match(await ring(), /channel 2:/);
  assert.notEqual(before, await ring());
  assert.equal(await page.locator("#channels animateMotion").count(), 0, "motion is reduced here");
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await page.keyboard.press("ArrowLeft");
  const dot = () => page.$eval("#channels circle.dot", (c) => { const m = c.getScreenCTM(); return `${m.e.toFixed(1)} ${m.f.toFixed(1)}`; });
  const at = await dot();
  await page.waitForFunction((a) => { const m = document.querySelector("#channels circle.dot").getScreenCTM(); return `${m.e.toFixed(1)} ${m.f.toFixed(1)}` !== a; }, at);
  await page.click("#channels button");
  assert.equal(await page.locator("#channels animateMotion").count(), 0, "Pause stops them");
  await page.click("#channels button");
  await page.emulateMedia({ reducedMotion: "reduce" });
});

test("each kind of file is recognised by content when it is dropped, and counts as in the command", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=1M");
  const same = async (what) => { await done(); assert.deepEqual(await times(), table(line(await page.textContent("#command"))), what); };
  for (const [kind, file] of [
    ["topology", put("a.bin", readFileSync(fixture("topos", "hgx-a100-4.xml")))],
    ["graphs", put("g.bin", cli("graph", "--topo", "a.bin", "--nodes", "2", "--format", "xml", "--env", "NCCL_MAX_NCHANNELS=2"))],
    ["fabric", put("f.bin", cli("topo", "fabric", "leaf-spine", "--hosts", "2", "--nets", "4", "--per-leaf", "1", "--oversub", "4"))],
    ["class", put("k.bin", readFileSync(join(root, "sim", "gpu", "classes", "mesh-sm80.json")))],
    ["scenario", put("b.bin", JSON.stringify({ scenario: 1, machine: { nodes: [{ topo: "dgx-a100", count: 2 }] }, workload: { op: "all_gather", sizes: ["1M"] } }))],
  ]) {
    let kinds;
    await settled(async () => { kinds = await drop(file); });
    assert.deepEqual(kinds, [kind]);
    await same(kind);
  }
  assert.deepEqual(await times(), table(cli("run", "--scenario", "b.bin")));
  const perf = put("m.bin", readFileSync(fixture("measured", "h200x4", "nccl-tests", "perf_all_gather_4.txt")));
  assert.deepEqual(await drop(perf), ["measured"]);
  const marks = () => page.locator("#curves .two > figure:first-child .plot .mark.measured").count();
  const given = (await opened(perf)).split("\n").map((l) => l.trim().split(/\s+/)).filter((l) => /^\d+$/.test(l[0]) && Number(l[7]) > 0);
  assert.equal(await marks(), given.filter((l) => Number(l[0]) >= 1 << 20).length, "from 1 MiB, over a linear axis");
  await page.click("#scale");
  assert.equal(await marks(), given.length, "all sizes, over a logarithmic axis");
  await page.click("#scale");
  await page.evaluate(() => document.querySelector("#curves .plot").dispatchEvent(new PointerEvent("pointermove", { clientX: 700, clientY: 400 })));
  assert.match(await page.textContent("#curves .tip >> nth=0"), /simulated/);
  const log = put("l.bin", readFileSync(fixture("measured", "h200x4", "logs", "info_2.log.gz")));
  assert.deepEqual(await drop(log), ["log"]);
  assert.match(await page.textContent("#advice"), /what NCCL .* logged is what simccl decides/);
  assert.equal((await page.textContent("#advice pre")).trim(), cli("check", "--log", "l.bin").trim());
  assert.deepEqual(await drop(put("junk.xml", "\x00\x01nothing of ours")), ["error"]);
  await page.evaluate(() => { const d = new DataTransfer(); d.items.add(new File(["\x00\x02"], "junk2.xml")); document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: d, bubbles: true })); });
  await page.waitForFunction(() => /junk2/.test(document.querySelector("#files").textContent) && document.querySelectorAll('#files .file[data-kind="error"]').length === 1, null);
  await page.click('#files .file[data-kind="error"] .close');
  assert.equal(await page.locator('#files .file[data-kind="error"]').count(), 0, "the message is closed");
});

test("an address with names that do not exist shows no other machine's results", slow, async () => {
  await visit("#topo=dgx-h100&nodes=1&op=all_reduce&sizes=1M");
  await done();
  await page.evaluate(() => { location.hash = "#topo=nosuch&op=all_reduce&sizes=1M"; });
  await page.waitForFunction(() => /nosuch/.test(document.querySelector("#answer .error")?.textContent ?? ""));
  assert.equal(await page.locator("#results .parts").isVisible(), false);
  await page.selectOption("#machine", "dgx-a100");
  await page.waitForFunction(() => document.querySelector(".parts").checkVisibility());
  // Where the run alone fails, the error stays where the times would be; what is decided is below.
  await page.evaluate(() => { location.hash = "#topo=dgx-h100&nodes=2&op=all_reduce&sizes=1M&fault=nic%3Dnode0%2F99%3Aslow%3D4"; });
  await page.waitForFunction(() => /net 99 of node 0/.test(document.querySelector("#answer .error")?.textContent ?? ""));
  await page.setViewportSize({ width: 1000, height: 900 }); // it is drawn anew
  await page.waitForTimeout(500);
  await page.setViewportSize({ width: 1280, height: 900 });
  assert.match(await page.textContent("#answer"), /net 99 of node 0/);
  assert.match(await page.textContent("#status"), /no size is simulated/);
});

test("a word of the glossary says what it means, as simccl explain does", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=1M");
  await page.waitForFunction(() => document.querySelector("#why .word"));
  const word = await page.locator("#why .word").filter({ hasText: /^LL128$/ }).first();
  await word.click();
  const said = cli("explain", "LL128").split("\n\n")[1].replaceAll("\n", " ");
  assert.equal((await page.textContent("#word p >> nth=0")).replaceAll("\u00a0", " "), said);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#word").isVisible(), false);
});

test("a walk from call to wire has the words of simccl explain walk, this machine's numbers, and sums that end whole", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&gpus=2&op=all_reduce&sizes=1M");
  await done();
  const said = cli("explain", "walk").replaceAll(/\s+/g, " ");
  const seen = [];
  for (let i = 0; i < 9; i++) {
    const at = await page.textContent("#walk h3");
    assert.match(at, new RegExp(`^${i + 1} of 9: `));
    seen.push(at);
    assert.ok(said.includes((await page.textContent("#walk .text")).replaceAll(/\s+/g, " ")), at);
    if (i === 0) assert.match(await page.textContent("#walk .now"), /1\sMiB on 4 ranks of 2 hosts/);
    if (i === 4) {
      const cells = () => page.$$eval("#walk .chunks text[class^=ink]", (l) => l.map((e) => Number(e.textContent)));
      await page.locator("#walk-step").fill("0");
      assert.deepEqual(await cells(), new Array(16).fill(1));
      await page.locator("#walk-step").fill("3"); // a reduce_scatter: each chunk is whole at one rank
      assert.equal((await cells()).filter((n) => n === 4).length, 4);
      await page.locator("#walk-step").fill("6");
      assert.deepEqual(await cells(), new Array(16).fill(4));
    }
    if (i < 8) await page.click("#walk-next");
  }
  assert.equal(new Set(seen).size, 9);
  assert.equal(await page.isDisabled("#walk-next"), true);
});

test("the machine is drawn as in the report, and draws of hashed routes are a band around the curve", slow, async () => {
  await visit("#topo=dgx-h100&nodes=4&gpus=2&op=all_reduce&sizes=16M%2C64M&fabric=meta");
  await done();
  const svg = cli("topo", "show", "dgx-h100", "-g", "2", "--format", "svg");
  const drawn = await page.$$eval("#machine-part svg.machine path.link", (l) => l.map((e) => e.getAttribute("d")));
  assert.ok(drawn.length > 4);
  for (const d of drawn) assert.ok(svg.includes(`d="${d}"`), d);
  assert.equal(await page.locator("#curves .plot path.band").count(), 2);
  assert.match(await page.textContent("#curves .key"), /21 draws of hashed routes/);
});

test("on a narrow screen the answer comes before the settings", slow, async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await visit("#topo=dgx-h100&nodes=1&op=all_reduce&sizes=1M");
  const top = (id) => page.evaluate((s) => document.querySelector(s).getBoundingClientRect().top, id);
  assert.ok(await top("#answer") < await top("#open"));
  await page.setViewportSize({ width: 1280, height: 900 });
  assert.ok(await page.evaluate(() => document.querySelector("#settings").parentElement.id === "page"));
});

test("a workload and a trace that are dropped are drawn; the timeline zooms by keys", slow, async () => {
  await visit("#topo=h200x4&nodes=1&multicast=off&op=all_reduce&sizes=64K");
  await done();
  assert.equal(await page.locator("#curves .plot circle.one.sim").count(), 2, "curves of one size are points");
  const jobs = ["trace_rank0.json.gz", "trace_rank1.json.gz"].map((f) => put(f.replace("json", "bin"), readFileSync(fixture("measured", "h200x2", "jobs", "infer", f))));
  const micros = (us) => (us >= 1e6 ? `${(us / 1e6).toPrecision(3)} s` : us >= 1e3 ? `${(us / 1e3).toPrecision(3)} ms` : `${+us.toPrecision(3)} µs`);
  assert.deepEqual(await drop(...jobs), ["workload", "workload"]);
  await page.waitForFunction(() => /an iteration/.test(document.querySelector("#time").textContent));
  const r = JSON.parse(cli("replay", ...jobs, "--topo", "h200x4", "--multicast", "off", "--json"));
  assert.match(await page.textContent("#time"), new RegExp(`: ${micros(r.iterationUs)} an iteration`.replaceAll(".", "\\.").replaceAll(" ", "\\s")));
  // A trace has as many rows as it has lanes that are not idle.
  cli("run", "all_reduce", "--topo", "dgx-h100", "-g", "2", "--sizes", "64K", "--trace", "t.json.gz");
  const events = JSON.parse(await opened(join(dir, "t.json.gz"))).traceEvents.filter((e) => e.ph === "X" && !["Idle", "Sleep"].includes(e.name));
  assert.deepEqual(await drop(join(dir, "t.json.gz")), ["trace"]);
  await page.waitForFunction(() => /tracks/.test(document.querySelector("#time p")?.textContent));
  assert.match(await page.textContent("#time p"), new RegExp(`: ${new Set(events.map((e) => `${e.pid} ${e.tid}`)).size} tracks`));
  await page.focus("#timeline");
  const picture = () => page.$eval("#timeline", (c) => c.toDataURL());
  await page.waitForFunction(() => document.querySelector("#timeline").height > 60);
  const whole = await picture(), seen = [whole];
  for (const key of ["+", "+", "ArrowRight", "-"]) {
    await page.keyboard.press(key);
    await page.waitForFunction((l) => !l.includes(document.querySelector("#timeline").toDataURL()), seen);
    seen.push(await picture());
  }
  await page.keyboard.press("0");
  await page.waitForFunction((p) => document.querySelector("#timeline").toDataURL() === p, whole);
});

test("what-ifs, alone and together: before and after, with what NCCL decides differently", slow, async () => {
  for (const [state, ...args] of [
    ["if-lost=mlx5_3&if-channels=8", "--nodes", "2", "--fault", "nic=mlx5_3:absent", "--env", "NCCL_MAX_NCHANNELS=8"],
    ["if-lost=mlx5_3&if-lost-on=one", "--nodes", "2", "--fault", "nic=node0/mlx5_3:absent"],
    ["if-lost=mlx5_0&if-nodes=3", "--nodes", "3", "--fault", "nic=mlx5_0:absent"],
    ["if-channels=4&if-nodes=1", "--nodes", "1", "--env", "NCCL_MAX_NCHANNELS=4"],
  ]) {
    await visit(`#topo=dgx-h100&nodes=2&op=all_reduce&sizes=64K,4M&${state}`);
    await compared();
    const want = table(cli("run", "all_reduce", "--topo", "dgx-h100", "--sizes", "64K,4M", ...args));
    assert.deepEqual(await column("whatif-result", 2), Object.values(want), state);
    assert.deepEqual(await column("whatif-result", 1), Object.values(await times()), state);
    await page.click("#copy-whatif");
    await page.waitForFunction(() => /copied/.test(document.querySelector("#status").textContent));
    assert.deepEqual(table(line(await page.evaluate(() => navigator.clipboard.readText()))), want, state);
  }
  // By keys, on top of the last: slower NICs. The slider tells its value, and the topology can be had.
  await page.focus("#if-nic");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await page.getAttribute("#if-nic", "aria-valuetext"), "200 Gb/s");
  await page.waitForFunction(() => /NICs of 200\sGb\/s/.test(document.querySelector("#whatif-result").textContent));
  await page.click("#whatif .row + button"); // Reset
  assert.equal(await page.textContent("#whatif-result"), "");
  // A NIC that is lost no more leaves nothing to compare, though a node is chosen for it.
  await visit("#topo=dgx-h100&nodes=2&op=all_gather&sizes=64K&if-lost=mlx5_3&if-lost-on=one");
  await compared();
  assert.match(await page.textContent("#whatif-result"), /mlx5_3 lost on node 0.*A: now; B: what if/s);
  await page.selectOption("#if-lost", "");
  await page.waitForFunction(() => document.querySelector("#whatif-result").textContent === "");
  await page.waitForTimeout(400);
  assert.equal(await page.textContent("#whatif-result"), "");
  await visit("#topo=dgx-h100&nodes=2&op=all_gather&sizes=1M&if-nic=100&if-lost=mlx5_4");
  await compared();
  const slower = put("slow.xml", readFileSync(fixture("topos", "dgx-h100.xml"), "utf8").replaceAll('speed="400000"', 'speed="100000"'));
  assert.deepEqual(await column("whatif-result", 2), Object.values(table(cli("run", "all_gather", "--topo", slower, "--nodes", "2", "--sizes", "1M", "--fault", "nic=mlx5_4:absent"))));
  await visit("#topo=dgx-h100&nodes=2&op=all_gather&sizes=2M&if-lost=mlx5_99");
  await page.waitForFunction(() => /Error.*there is none such/.test(document.querySelector("#whatif-result").textContent));
});

test("two machines compared: which is faster, by how much, at which sizes; times are the command's", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8,1M,1G");
  await done();
  await page.selectOption("#if-topo", "hgx-h100-4");
  await compared();
  const said = async () => (await page.textContent("#against")).replaceAll("\u00a0", " ");
  const want = table(cli("run", "all_reduce", "--topo", "hgx-h100-4", "--nodes", "2", "--sizes", "8,1M,1G")), here = await times();
  assert.deepEqual(await column("whatif-result", 2), Object.values(want));
  assert.match(await said(), /^2 × hgx-h100-4, 8 ranks: [\d.]+ GB\/s busbw at 1 GiB, limited by .+; [\d.]+ µs at 8 B\./);
  for (const z of ["8", "1048576", "1073741824"]) { // each factor that is named lies between those of the tables
    const by = here[z] / want[z], name = { 8: "8 B", 1048576: "1 MiB", 1073741824: "1 GiB" }[z];
    if (by > 1.04 || by < 0.96) assert.match(await said(), new RegExp(`× as ${by > 1 ? "fast" : "slow"} (from [^;.]*)?(at |to |from )${name}`), `${z}: ${by}`);
  }
  await page.click("#equal-gpus"); // 4 nodes of 4 GPUs
  await page.waitForFunction(() => /^4 × hgx-h100-4, 16 ranks: \d/.test(document.querySelector("#against").textContent.replaceAll("\u00a0", " ")));
  await compared();
  assert.deepEqual(await column("whatif-result", 2), Object.values(table(cli("run", "all_reduce", "--topo", "hgx-h100-4", "--nodes", "4", "--sizes", "8,1M,1G"))));
  const address = await page.evaluate(() => location.hash);
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8");
  assert.equal(await page.textContent("#against"), "");
  await visit(address);
  await compared();
  assert.match(await said(), /^4 × hgx-h100-4, 16 ranks/);
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8&if-topo=nosuch");
  await page.waitForFunction(() => /Error.*nosuch/.test(document.querySelector("#against").textContent));
});

test("downloads, each opened and compared", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&gpus=2&op=all_reduce&sizes=64K");
  await done();
  const machine = ["--topo", "dgx-h100", "--nodes", "2", "-g", "2", "--sizes", "64K"], here = await times();
  const trace = await download("#get-trace");
  cli("trace", "validate", trace);
  cli("run", "all_reduce", ...machine, "--trace", "cli.json.gz");
  assert.match(cli("trace", "diff", trace, "cli.json.gz"), /no slice departs/);
  const report = await opened(await download("#get-report"));
  assert.match(report, /<!doctype html>/i);
  assert.ok(report.includes(here[65536]), "the report has the time");
  assert.deepEqual(table(cli("run", "--scenario", await download("#get-scenario"))), here);
  assert.deepEqual(table(cli("run", "all_reduce", "--topo", await download("#get-topology"), "--nodes", "2", "-g", "2", "--sizes", "64K")), here);
  assert.deepEqual(table(await opened(await download("#get-table"))), here);
});

test("names in files and addresses are text: nothing of them runs", slow, async () => {
  const evil = `<img src=x onerror=alert(1)>`, quoted = evil.replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const xml = readFileSync(fixture("topos", "dgx-h100.xml"), "utf8").replace(/name="mlx5_0"/, `name="${quoted}"`);
  assert.ok(xml.includes(quoted));
  await settled(() => page.locator("#file").setInputFiles({ name: `${evil}.xml`, mimeType: "text/xml", buffer: Buffer.from(xml) }));
  await done();
  assert.match(await page.textContent("#files"), /<img src=x onerror/);
  await page.evaluate((h) => { location.hash = h; }, `topo=${encodeURIComponent(evil)}&nodes=2&op=${encodeURIComponent(evil)}&env=${encodeURIComponent("NCCL_" + evil + "=1")}`);
  await page.waitForSelector("#answer .error");
  assert.equal(await page.$$eval("main img, aside img, [onerror]", (l) => l.length), 0);
});

test("an error stands at its control, and goes with it", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=64");
  await page.fill("#env", "NCCL_ALGO=Rign");
  await page.press("#env", "Tab");
  await page.waitForSelector("#env-error:not([hidden])");
  assert.match(await page.textContent("#env-error"), /Error: NCCL_ALGO=Rign.*write one of/);
  assert.match(await page.textContent("#answer"), /Error: /);
  await settled(async () => { await page.fill("#env", "NCCL_ALGO=Ring"); await page.press("#env", "Tab"); });
  assert.ok(await page.isHidden("#env-error"));
  assert.ok(!(await page.textContent("#answer")).includes("Error"));
});

test("a long run is cancelled, and so is a what-if; the page goes on", slow, async () => {
  await visit("#topo=dgx-h100&nodes=64&op=alltoall&sizes=1M,64M,256M");
  await page.waitForSelector("#cancel:not([hidden])");
  await page.waitForFunction(() => document.querySelector("progress").getAttribute("value") !== null);
  const begun = Date.now();
  await page.click("#cancel");
  await page.waitForSelector("#cancel", { state: "hidden" });
  assert.match(await page.textContent("#status"), /Cancelled/);
  await visit("#topo=dgx-h100&nodes=2&op=alltoall&sizes=8,64M&if-nodes=64&if-channels=32");
  await done();
  await page.waitForSelector("#cancel:not([hidden])");
  await page.click("#cancel");
  await page.waitForSelector("#cancel", { state: "hidden" });
  await page.waitForFunction(() => !document.querySelector("#whatif-result").textContent.includes("…"));
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=16");
  await done();
  assert.equal(Object.keys(await times()).length, 1);
  assert.ok(Date.now() - begun < 200_000, "cancelling and a small run took minutes");
});

test("a simulator that ended is replaced, with the files that the page holds", slow, async () => {
  await settled(() => drop(put("again.xml", readFileSync(fixture("topos", "hgx-a100-4.xml")))));
  await done();
  const mine = await times();
  const [worker] = page.workers();
  await worker.evaluate(() => simccl.cancel("no number")).catch(() => undefined); // ends the program, as running out of memory does
  wrong.splice(0);
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=32");
  await done();
  await visit("#topo=again.xml&nodes=2&op=all_reduce&sizes=" + Object.keys(mine).join(","));
  await done();
  assert.deepEqual(await times(), mine);
  wrong.splice(0);
});

test("it starts without a network after the first visit", slow, async () => {
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await context.setOffline(true);
  await page.goto(address + "#topo=dgx-h100&nodes=2&op=all_reduce&sizes=8");
  await page.reload();
  await shown();
  await done();
  assert.equal(Object.keys(await times()).length, 1);
  await context.setOffline(false);
});

test("everything is reached by keyboard", slow, async () => {
  await visit("#topo=dgx-h100&nodes=2&op=all_reduce&sizes=64K,1M");
  await done();
  await page.click("#time-run");
  await drawn("time");
  await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); getSelection().removeAllRanges(); });
  await page.focus(".skip");
  const seen = new Set();
  for (let i = 0; i < 150; i++) {
    const id = await page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute("aria-label") || document.activeElement?.tagName);
    seen.add(id);
    if (id === "size") await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Tab");
  }
  for (const id of ["copy", "link", "theme", "open", "machine", "nodes", "op", "nccl", "env", "command", "size", "Drawing of the machine", "Who wins at which size", "Why this choice", "channel", "if-nic", "if-nodes", "if-channels", "if-lost", "if-lost-on", "advice-run", "time-run", "Zoom in", "timeline", "Results", "Path matrix", "get-trace", "get-report", "get-scenario", "get-topology", "get-table"]) assert.ok(seen.has(id), `${id} is not reached by Tab: ${[...seen]}`);
  assert.equal(await page.textContent("#size-text"), "64 KiB");
});

test("axe finds nothing serious, and the page stays in its width, with every part open", slow, async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await visit("#topo=dgx-h100&nodes=2&gpus=2&op=all_reduce&b=1M&e=16M&f=4&if-lost=mlx5_3");
  await compared();
  await page.click("#advice-run");
  await page.click("#time-run");
  await drawn("advice");
  await drawn("time");
  await page.$$eval("details", (l) => l.forEach((d) => { d.open = true; }));
  await page.evaluate(axe);
  for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["dark", 390], ["light", 2560]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(100);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${width} px`);
    if (width === 2560) continue;
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], rules: innerWidth < 500 ? { "color-contrast": { enabled: false } } : {} })); // colours are those of 1280
    const bad = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.failureSummary}`).join(" | ")}`);
    assert.deepEqual(bad, [], `${colorScheme} ${width}`);
  }
  // On paper there are no controls, and nothing is cut off.
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 703, height: 1032 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 703, "printed");
  assert.deepEqual(await page.$$eval("button, select, input", (l) => l.filter((e) => e.checkVisibility() && !e.matches("thead button, .copy, .word, #file")).map((e) => e.id || e.textContent)), []);
  await page.emulateMedia({ media: null, colorScheme: null });
});

test("the page is small", slow, () => {
  const dist = join(root, "app", "web", "page", "site", "dist");
  const total = readdirSync(dist).reduce((n, f) => n + statSync(join(dist, f)).size, 0);
  assert.ok(total < 6e6, `the page has ${total} bytes compressed, more than 6,000,000`);
});
