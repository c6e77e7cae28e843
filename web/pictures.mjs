// Pictures of README and docs, made from the page and from the report: node pictures.mjs SIMCCL FOLDER
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [simccl, folder] = process.argv.slice(2);
const server = spawn(simccl, ["serve"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((ok, no) => { server.stdout.once("data", (d) => ok(String(d).trim())); server.once("exit", no); });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-background-networking"] });
for (const [width, height] of [[390, 844], [1280, 1180], [2560, 1440]]) {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion: "reduce" });
    const page = await context.newPage();
    page.setDefaultTimeout(300_000);
    await page.goto(address + "#topo=dgx-h100&nodes=4&op=all_reduce&b=1K&e=1G&f=4");
    await page.waitForFunction(() => document.body.dataset.done);
    await page.waitForTimeout(300);
    if (width === 390) await page.evaluate(() => document.querySelector("#results").scrollIntoView());
    await page.screenshot({ path: join(folder, `web-${width}-${colorScheme}.jpg`), type: "jpeg", quality: width > 2000 ? 60 : 78 });
    await context.close();
  }
}

const work = mkdtempSync(join(tmpdir(), "simccl-pictures-"));
// The timeline of four ranks on two nodes, and a trace of rank 0 that is dropped.
{
  const context = await browser.newContext({ viewport: { width: 1240, height: 1200 }, colorScheme: "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(300_000);
  const machine = ["all_reduce", "--topo", "dgx-h100", "--nodes", "2", "-g", "2", "--sizes", "512K", "--env", "NCCL_MAX_NCHANNELS=2"];
  await page.goto(address + "#topo=dgx-h100&nodes=2&gpus=2&op=all_reduce&sizes=512K&env=NCCL_MAX_NCHANNELS%3D2");
  await page.waitForFunction(() => document.body.dataset.done);
  const picture = async (name) => {
    await page.selectOption("#time select", "");
    await page.waitForTimeout(300);
    await page.locator("#time").screenshot({ path: join(folder, name) });
  };
  await page.click("#time-run");
  await page.waitForSelector("#time .body[data-drawn]");
  await picture("trace.png");
  execFileSync(simccl, ["run", ...machine, "--no-env", "--trace", "rank0.json.gz", "--trace-ranks", "0"], { cwd: work, stdio: "ignore" });
  await page.setInputFiles("#file", join(work, "rank0.json.gz"));
  await page.waitForFunction(() => document.querySelector("#time").textContent.includes("rank0"));
  await picture("lanes.png");
  await context.close();
}

// The first parts of the static report, which is opened as a file.
execFileSync(simccl, ["report", "all_reduce", "-b", "1K", "-e", "16M", "-f", "4"], { cwd: work, stdio: "ignore" });
{
  const page = await browser.newPage({ viewport: { width: 1100, height: 1350 } });
  await page.goto("file://" + join(work, "report.html"));
  await page.screenshot({ path: join(folder, "report.png") });
  await page.close();
}
rmSync(work, { recursive: true });
await browser.close();
server.kill("SIGINT");
