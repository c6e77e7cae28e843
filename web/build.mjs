// Builds the page: node build.mjs SITE PACKED WASM WASM_EXEC
// SITE gets the files as any web server takes them, PACKED the same as NAME.gz, which
// the program embeds. WASM is the simulator, WASM_EXEC Go's own loader of it.
import { build } from "esbuild";
import { runInThisContext } from "node:vm";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const [site, packed, wasm, wasmExec] = process.argv.slice(2);
for (const dir of [site, packed]) {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
}
const common = { bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning", charset: "utf8" };
await build({ ...common, entryPoints: ["src/main.ts"], format: "esm", outfile: join(site, "main.js") });
await build({ ...common, entryPoints: ["src/worker.ts"], format: "iife", outfile: join(site, "worker.js") });
await build({ ...common, entryPoints: ["src/style.css"], outfile: join(site, "style.css") });
for (const name of readdirSync("static")) copyFileSync(join("static", name), join(site, name));
copyFileSync(wasm, join(site, "simccl.wasm"));
copyFileSync(wasmExec, join(site, "wasm_exec.js"));

// What a first visit asks is answered here, by the simulator that the page has: first.json (src/rpc.ts).
const calls = await build({ ...common, entryPoints: ["src/state.ts"], format: "esm", write: false });
const { firstCalls } = await import(`data:text/javascript,${encodeURIComponent(calls.outputFiles[0].text)}`);
runInThisContext(readFileSync(wasmExec, "utf8"));
const go = new Go();
const started = new Promise((resolve) => (globalThis.simcclReady = resolve));
go.run((await WebAssembly.instantiate(readFileSync(wasm), go.importObject)).instance);
await started;
const ask = (method, query) => new Promise((resolve, reject) => {
  const parts = [];
  simccl.call(1, method, query, (part) => parts.push(JSON.parse(part)), (answer, failure) => (failure === null ? resolve({ parts, answer: JSON.parse(answer) }) : reject(new Error(`${method}: ${failure}`))));
});
const recorded = {};
for (const [method, query] of firstCalls()) recorded[`${method} ${JSON.stringify(query)}`] = await ask(method, JSON.stringify(query));
writeFileSync(join(site, "first.json"), JSON.stringify(recorded));

// The service worker keeps exactly these files, under a name that changes with them.
const files = readdirSync(site).sort();
const hash = createHash("sha256");
for (const name of files) hash.update(name).update(readFileSync(join(site, name)));
const define = { FILES: JSON.stringify(files), VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)) };
await build({ ...common, entryPoints: ["src/sw.ts"], format: "iife", define, outfile: join(site, "sw.js") });

let total = 0;
for (const name of readdirSync(site)) {
  const data = gzipSync(readFileSync(join(site, name)), { level: 9 });
  writeFileSync(join(packed, name + ".gz"), data);
  total += data.length;
}
console.log(`${site}: ${readdirSync(site).length} files, ${(total / 1e6).toFixed(2)} MB compressed`);
process.exit(0); // the simulator waits for calls
