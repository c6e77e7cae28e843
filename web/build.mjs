// Builds the page: node build.mjs SITE PACKED WASM WASM_EXEC
// SITE gets the files as any web server takes them, PACKED the same as NAME.gz, which
// the program embeds. WASM is the simulator, WASM_EXEC Go's own loader of it.
import { build } from "esbuild";
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
