// The page: state, calls, sections.
import { chart, type Series } from "./chart";
import { bytes, download, h, micros, percent, replace, table, unbroken } from "./dom";
import { drawMachine, loadTable, ramp } from "./machine";
import { Glossary } from "./glossary";
import { CallError, Simulator } from "./rpc";
import { form, type Form } from "./settings";
import { channelTable, drawRing, drawTree } from "./shapes";
import { decode, encode, type State, tidy } from "./state";
import { explained, matrix, winners } from "./tables";
import { drawTimeline } from "./timeline";
import type { Advised, Bytes, Compared, Congestion, Explained, Hello, Job, Machine, Measured, Model, Progress, Ran, Recognised, Row, Spec, Timeline } from "./types";
import { chunks, walk, type Here } from "./walk";
import { verdict, whatIfSpec } from "./whatif";

const sim = new Simulator();
let state: State = decode(location.hash);
let hello: Hello;
let controls: Form;
let machine: Machine | undefined, model: Model | undefined, ran: Ran | undefined;
let rows = new Map<number, Row>(), other = new Map<number, Row>();
let measured: Measured[] = [];
let moving = true;
let running: AbortController | undefined, looking: AbortController | undefined, comparing: AbortController | undefined;
let generation = 0;

const $ = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const note = h("p", { class: "status", role: "status", id: "status" });
const bar = h("progress", { max: 1, value: 0, "aria-label": "Progress", hidden: true });
/** The other machine that this one is compared with, and what comes of it. */
const versus = h("select", { id: "if-topo", change: () => { state.whatIf.topo = versus.value || undefined; state.whatIf.nodes = undefined; showWhatIf(); void whatIf(); } });
const against = h("div", { id: "against", "aria-live": "polite" });
const stop = h("button", { type: "button", id: "cancel", hidden: true, click: () => cancel() }, "Cancel");
const files = h("div", { id: "files" });

/** A part of the page with a heading. */
function section(id: string, title: string, wide = false): HTMLElement {
  const body = h("div", { class: "body" });
  const el = h("section", { id, "aria-labelledby": id + "-h", class: wide ? "wide-part" : undefined }, h("h2", { id: id + "-h" }, title), body);
  parts.set(id, body);
  return el;
}
const parts = new Map<string, HTMLElement>();
const put = (id: string, ...children: (Node | string | null)[]) => {
  replace(parts.get(id)!, ...children);
  glossary.link(parts.get(id)!);
};
let glossary: Glossary;

function build(): void {
  const theme = h("button", { type: "button", id: "theme", click: () => nextTheme() }, "Theme: auto");
  replace($("head"),
    h("div", {}, h("h1", {}, "simccl"), h("p", {}, "What NCCL decides on a machine, why, and how fast it runs. Simulated in this page; nothing is uploaded.")),
    h("div", { class: "bar" }, h("button", { type: "button", id: "copy", click: () => copy($("command").textContent ?? "", "command") }, "Copy as command line"), h("button", { type: "button", id: "link", click: () => copy(location.href, "address") }, "Copy link"), theme));
  const input = h("input", { type: "file", id: "file", multiple: true, class: "hidden", tabindex: -1, "aria-label": "Files", change: () => { void drop([...(input.files ?? [])]); input.value = ""; } });
  replace($("settings"), h("div", { class: "drop" }, h("button", { type: "button", id: "open", click: () => input.click() }, "Open files …"), input, h("p", { class: "soft" }, "or drop them: topology (XML), NCCL log, scenario, fabric, nccl-tests table, workload, trace. They stay in this browser."), files), h("details", { class: "setup", open: matchMedia("(min-width: 760px)").matches }, h("summary", {}, "Machine, operation, settings"), controls.el));
  const size = h("input", { type: "range", id: "size", min: 0, step: 1, "aria-label": "Size", input: () => select(model!.sizes[Number(size.value)]!) });
  replace($("results"),
    h("div", { class: "top" }, h("p", { class: "answer", id: "answer", "aria-live": "polite" }), h("code", { id: "command", tabindex: 0 }), h("div", { class: "bar" }, h("label", { for: "if-topo" }, "Compare with"), versus, bar, stop, note), against),
    h("div", { class: "sizebar" }, h("label", { for: "size" }, "Size"), size, h("output", { id: "size-text", for: "size" }),
    h("nav", { "aria-label": "Contents" }, ...contents.map(([id, t, , short]) => h("a", { href: "#" + id, click: (e: Event) => { e.preventDefault(); go(id); } }, short ?? t)))),
    h("div", { class: "parts" }, ...contents.map(([id, t, wide]) => { const el = section(id, t, wide); el.tabIndex = -1; return el; })));
  // On a narrow screen the answer comes first, and the settings below it.
  const narrow = matchMedia("(max-width: 759px)"), place = () => (narrow.matches ? $("results").querySelector(".top")!.after($("settings")) : $("page").prepend($("settings")));
  place();
  narrow.addEventListener("change", place);
  document.body.addEventListener("dragover", (e) => { e.preventDefault(); document.body.classList.add("over"); });
  document.body.addEventListener("dragleave", (e) => { if (!e.relatedTarget) document.body.classList.remove("over"); });
  document.body.addEventListener("drop", (e) => { e.preventDefault(); document.body.classList.remove("over"); void drop([...(e.dataTransfer?.files ?? [])]); });
}

/** Parts: id, heading, whether it takes all of the width, and its name in the index. */
const contents: [string, string, boolean, string?][] = [
  ["curves", "Bandwidth and latency", true, "Curves"], ["machine-part", "Machine and load", true, "Machine"], ["wins", "Who wins at which size", false, "Winners"], ["why", "Why", false], ["channels", "Rings and trees", false],
  ["whatif", "What if", false], ["walk", "One operation, from call to wire", true, "Walk"], ["advice", "Advice and log check", true, "Advice"], ["time", "Timeline", true], ["results-table", "Results", true], ["matrix", "Path matrix", false, "Paths"], ["more", "Downloads and settings", false, "Downloads"],
];

/** Shows a part, which takes the focus. */
function go(id: string): void {
  $(id).focus({ preventScroll: true });
  $(id).scrollIntoView();
}

async function copy(text: string, what: string): Promise<void> {
  if (!text) return say(`There is no ${what} yet.`);
  try { await navigator.clipboard.writeText(text); say(`The ${what} is copied.`); }
  catch { say(`Copying is not allowed here; the ${what} is: ${text}`); }
}
const say = (text: string) => { note.textContent = text; };

/** Changes the Spec and shows what follows. */
function change(edit: (s: Spec) => void): void {
  edit(state.spec);
  controls.show(state.spec);
  schedule();
}

let timer = 0;
function schedule(): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => void refresh(), 30);
}

function remember(): void { history.replaceState(null, "", "#" + encode(state)); }

/** What can be cancelled: as long as there is any, the bar and its button are shown. */
const busy = new Set<AbortController>();
function begun(control: AbortController): void {
  busy.add(control);
  bar.hidden = stop.hidden = false;
  bar.removeAttribute("value");
}
function ended(control: AbortController): void {
  if (!busy.delete(control) || busy.size > 0) return;
  bar.hidden = stop.hidden = true;
  if (!control.signal.aborted) say("");
}

function cancel(): void {
  for (const c of [...busy]) { c.abort(); ended(c); }
  say("Cancelled.");
}

/** Says what is wrong where the answer would be, and at the control that it is about. */
function failed(err: unknown): void {
  if (err instanceof CallError && err.cancelled) return;
  const f = err instanceof CallError ? err.failure : { error: String(err), path: "" };
  if (f.path) controls.wrong(f.path, f.error);
  $("answer").replaceChildren(h("span", { class: "error" }, "Error: ", f.error));
  $("command").textContent = "";
  // A machine or an operation that there is not has no results: those before are of another one.
  const other = /^(machine|workload\.op)/.test(f.path ?? "");
  document.body.classList.toggle("nothing", other);
  say(!machine || other ? "" : ran || rows.size ? "What is below is of the settings before." : "Below is what NCCL decides; no size is simulated.");
}

/** Everything that follows from the Spec: decisions at once, times as they come. */
async function refresh(): Promise<void> {
  for (const c of [running, looking, comparing, ...asking.values()]) c?.abort();
  const mine = ++generation, look = (looking = new AbortController()), since = performance.now();
  remember();
  const spec = tidy(state.spec), query = { spec };
  try {
    [machine, model] = await Promise.all([sim.call<Machine>("machine", query, undefined, look.signal), sim.call<Model>("model", query, undefined, look.signal)]);
  } catch (err) { if (mine === generation) failed(err); return; }
  if (mine !== generation) return;
  document.body.classList.remove("nothing");
  rows = new Map();
  other = new Map();
  compared = undefined;
  for (const el of [results, against]) replace(el);
  ran = broken = undefined;
  if (!model.sizes.includes(state.size)) state.size = model.sizes.includes(1 << 26) ? 1 << 26 : model.sizes[Math.floor(model.sizes.length / 2)] ?? 0;
  state.channel = Math.min(state.channel, Math.max(0, machine.kept - 1));
  const size = $<HTMLInputElement>("size");
  size.max = String(model.sizes.length - 1);
  replace($("command"), ...unbroken(machine.command));
  say("");
  showMachine();
  showSize();
  showModel();
  showRest();
  document.body.dataset["shown"] = String(mine);
  document.body.dataset["shownMs"] = String(Math.round(performance.now() - since));
  if (!performance.getEntriesByName("first-picture").length) performance.mark("first-picture");
  void simulate(mine, query);
  if (asked()) void whatIf();
}

async function simulate(mine: number, query: { spec: Spec }): Promise<void> {
  const control = (running = new AbortController());
  begun(control);
  delete document.body.dataset["done"];
  try {
    const end = await sim.call<Ran, Row | Progress>("run", query, (p) => {
      if (mine !== generation || control.signal.aborted) return;
      if ("bytes" in p) { if (!rows.has(p.bytes)) rows.set(p.bytes, p); drawSoon(); }
      else { bar.value = p.share; say(`${p.what}: ${rows.size} of ${model!.sizes.length} sizes`); }
    }, control.signal);
    if (mine !== generation) return;
    ran = end;
    draw();
    document.body.dataset["done"] = String(mine);
  } catch (err) {
    if (mine !== generation) return ended(control);
    if (!(err instanceof CallError && err.cancelled)) broken = err;
    draw();
  }
  ended(control);
}

let drawing = 0;
/** Draws a fifth of a second later, with what arrives until then: the simulator needs the processors that layout takes. */
function drawSoon(): void {
  if (!drawing) drawing = window.setTimeout(() => requestAnimationFrame(draw), 200);
}

function draw(): void {
  clearTimeout(drawing);
  drawing = 0;
  showCurves();
  showResults();
  answer();
  compared?.();
  const r = rows.get(state.size);
  if (r && shownLoad !== r) showLoad();
}

function select(size: number): void {
  state.size = size;
  remember();
  showSize();
  showCurves();
  showLoad();
  put("wins", winners(model!, state.size, select));
}

let why: AbortController | undefined;
function showSize(): void {
  const i = model!.sizes.indexOf(state.size), el = $<HTMLInputElement>("size");
  el.value = String(i);
  el.setAttribute("aria-valuetext", bytes(state.size));
  $("size-text").textContent = bytes(state.size);
  why?.abort();
  why = new AbortController();
  const signal = why.signal;
  sim.call<Explained>("explain", { spec: tidy(state.spec), size: String(state.size) }, undefined, signal).then((e) => { if (!signal.aborted) put("why", explained(e)); }, (err: CallError) => { if (!err.cancelled) put("why", h("p", { class: "soft" }, err.message)); });
}

/** Two parts are side by side on wide screens, unless one needs all of the width. */
function beside(a: string, b: string, narrow: boolean): void {
  for (const id of [a, b]) $(id).classList.toggle("wide-part", !narrow);
}

function showModel(): void {
  beside("wins", "why", model!.sizes.length <= 16);
  put("wins", winners(model!, state.size, select));
  showCurves();
  showResults();
  answer();
}

const plain = (name: string) => name.replace(/^.*\//, "").replace(/\.xml$/, "");
/** The name of what is compared with: the other machine, or a what-if. */
const rival = () => (state.whatIf.topo ? plain(state.whatIf.topo) : "what if");

/** What a run came to, in a sentence. */
function sentence(what: string, list: Row[]): (Node | string)[] {
  const peak = list.reduce((a, b) => (b.busbw > a.busbw ? b : a)), small = list[0]!;
  return [`${what}: `, h("b", {}, `${peak.busText} GB/s`), ` busbw at ${bytes(peak.bytes)}${band(peak)}, limited by ${peak.loads[0]?.name ?? "nothing measured"}; `, h("b", {}, `${small.time} µs`), ` at ${bytes(small.bytes)}.`];
}

/** Why the sizes of what is shown are not simulated. */
let broken: unknown;
function answer(): void {
  if (broken) return failed(broken);
  const m = machine!, what = `${state.spec.workload.op} on ${m.hosts} × ${plain(m.name)}, ${m.ranks} ranks`;
  const list = [...rows.values()];
  if (list.length === 0) {
    const best = model!.busbw.length ? Math.max(...model!.busbw) : 0;
    return replace($("answer"), `${what}: `, (best > 0 ? `NCCL's model expects up to ${best.toFixed(1)} GB/s busbw; ` : "") + (running?.signal.aborted ? "no size is simulated." : "simulating …"));
  }
  replace($("answer"), ...sentence(what, list));
  glossary.link($("answer"));
}

/** From the slowest to the fastest draw of hashed routes, where they differ. */
function band(r: Row): string {
  const d = r.facts.draws;
  return d && d.most_us > 1.01 * d.least_us ? ` (median of ${d.n} draws of hashed routes, ${d.least_busbw_GBs.toFixed(1)} to ${d.most_busbw_GBs.toFixed(1)})` : "";
}

function series(of: (r: Row) => number, ofModel: number[], limit: (r: Row) => number, of2: (p: Measured["Points"][0]) => number, drawn?: [(r: Row) => number, (r: Row) => number]): Series[] {
  const sizes = [...rows.keys()].sort((a, b) => a - b);
  const pts = (from: Map<number, Row>, f: (r: Row) => number) => [...from.values()].sort((a, b) => a.bytes - b.bytes).map((r) => [r.bytes, f(r)] as [number, number]);
  const out: Series[] = [{ name: state.whatIf.topo && other.size ? plain(machine!.name) : "simulated", cls: "sim", points: sizes.map((z) => [z, of(rows.get(z)!)]) }];
  if (other.size) out.push({ name: rival(), cls: "before", points: pts(other, of) });
  else out.push({ name: "NCCL's model", cls: "model", points: model!.sizes.map((z, i) => [z, ofModel[i]!]) });
  out.push({ name: `limit of ${state.whatIf.topo && other.size ? plain(machine!.name) + "'s" : "the"} fullest link`, cls: "limit", bound: true, points: pts(rows, limit) });
  const seeds = new Map([...rows].filter(([, r]) => r.facts.draws)), n = [...seeds.values()][0]?.facts.draws?.n;
  if (drawn && n) out.unshift({ name: `${n} draws of hashed routes, slowest to fastest`, cls: "band", points: pts(seeds, drawn[1]), from: pts(seeds, drawn[0]) });
  const shapes = ["circle", "square", "triangle", "diamond"] as const;
  measured.forEach((m, i) => out.push({ name: `measured: ${m.Name}`, cls: "measured", marks: shapes[i % 4], points: m.Points.map((p) => [p.Size, of2(p)]) }));
  return out;
}

/** Bandwidths of all sizes over a logarithmic axis, in place of those from 1 MiB over a linear one. */
let logarithmic = false;
function showCurves(): void {
  const fmt = (y: number) => (y >= 100 ? y.toFixed(0) : String(+y.toPrecision(3)));
  const body = parts.get("curves")!, all = body.clientWidth || 640, width = matchMedia("(min-width: 1080px)").matches ? (all - 16) / 2 : all;
  drawnWidth = all;
  const scale = h("button", { type: "button", id: "scale", "aria-pressed": String(logarithmic), click: () => { logarithmic = !logarithmic; showCurves(); $("scale").focus(); } }, "Logarithmic");
  const large = model!.sizes.some((z) => z >= 1 << 20), linear = !logarithmic && large;
  put("curves", h("div", { class: "two" },
    chart({ title: linear ? "Bus bandwidth from 1 MiB" : "Bus bandwidth by size", linear, least: linear ? 1 << 20 : undefined, controls: large ? scale : undefined, width, unit: "GB/s", format: fmt, selected: state.size, onSelect: select, series: series((r) => r.busbw, model!.busbw, (r) => r.limitBusbw, (p) => p.BusBW, [(r) => r.facts.draws?.least_busbw_GBs ?? 0, (r) => r.facts.draws?.most_busbw_GBs ?? 0]) }),
    chart({ title: "Time by size", width, unit: "µs", format: fmt, selected: state.size, onSelect: select, series: series((r) => r.us, model!.us, (r) => r.limitUs, (p) => p.TimeUs, [(r) => r.facts.draws?.most_us ?? 0, (r) => r.facts.draws?.least_us ?? 0]) })),
    ran?.notes.length ? h("ul", { class: "notes" }, ...ran.notes.map((n) => h("li", {}, n))) : null);
}

let drawnWidth = 0;
window.addEventListener("resize", () => { const body = parts.get("curves"); if (body && model && Math.abs(body.clientWidth - drawnWidth) > 8) drawSoon(); });

let shownLoad: Row | undefined;
function showMachine(): void {
  shownLoad = undefined;
  showLoad();
  beside("matrix", "more", machine!.paths.ends.length <= 20);
  put("matrix", matrix(machine!));
  showChannels();
}

function showLoad(): void {
  if (!parts.get("walk")!.contains(document.activeElement)) showWalk();
  const r = rows.get(state.size), host = machine!.hosts > 1 ? `One of ${machine!.hosts} hosts` : "The host";
  shownLoad = r;
  put("machine-part", h("p", { class: "soft" }, r ? `${host}; colour and width are the share of the ${r.time} µs of ${r.label} that a link's bytes need.${r.merged ? " Equivalent ranks were simulated once: their links are drawn with the load of the fullest of their kind." : ""}` : `${host}. Load is drawn once ${bytes(state.size)} is simulated.`),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Drawing of the machine" }, drawMachine(machine!, r?.use)), ramp("idle", "always busy"), r ? loadTable(r.loads) : null, r?.network.length ? frames(r) : null);
}

/** What frames met in the network, and what would change it. */
function frames(r: Row): HTMLElement {
  const out = h("div", { id: "congestion-result" });
  const button = h("button", { type: "button", id: "congestion-run", click: () => void tryChanges(r, out) }, "What would change it?");
  return h("div", { id: "frames" }, h("h3", {}, `Network, frame by frame: ${r.label}`), h("ul", { class: "notes" }, ...r.network.map((l) => h("li", {}, l))), button, out);
}

async function tryChanges(r: Row, out: HTMLElement): Promise<void> {
  const control = ask("congestion");
  try {
    const c = await sim.call<Congestion>("congestion", { spec: tidy(state.spec), size: String(r.bytes) }, undefined, control.signal);
    if (!control.signal.aborted) replace(out, c.crowd ? h("p", {}, c.crowd) : null, table("Changes that were simulated", ["change", "time µs", "difference"], c.tried.map((t) => [t.what, t.stalls || t.us.toFixed(2), t.stalls ? "does not end" : `${t.us >= c.us ? "+" : "−"}${Math.abs(100 * (t.us / c.us - 1)).toFixed(1)} %`]), [0]));
  } catch (err) { if (!control.signal.aborted && !(err instanceof CallError && err.cancelled)) replace(out, h("p", { class: "error" }, err instanceof CallError ? err.failure.error : String(err))); }
  ended(control);
}

function showChannels(): void {
  const m = machine!;
  if (m.kept === 0) return put("channels", h("p", { class: "soft" }, "No channels are drawn: there is one rank, or there are too many."));
  const slider = h("input", { type: "range", id: "channel", min: 0, max: m.kept - 1, step: 1, value: state.channel, "aria-label": "Channel", input: () => { state.channel = Number(slider.value); remember(); draw(); } });
  const play = h("button", { type: "button", "aria-pressed": String(!moving), click: () => { moving = !moving; play.setAttribute("aria-pressed", String(!moving)); draw(); } }, "Pause");
  const figures = h("div", { class: "two shapes" }), out = h("output", { for: "channel" });
  const draw = () => {
    slider.setAttribute("aria-valuetext", `channel ${state.channel}`);
    out.textContent = `channel ${state.channel} of ${m.channels}`;
    replace(figures, drawRing(m, state.channel, moving), drawTree(m, state.channel, moving));
  };
  draw();
  put("channels", h("div", { class: "bar" }, h("label", { for: "channel" }, "Channel"), slider, out, play), figures, h("p", { class: "soft" }, "Filled and outlined ranks alternate by node; orange arrows leave the node."), channelTable(m));
}

/** The walk, with what its stations are at the size that is looked at. */
function showWalk(): void {
  const m = machine!, i = model!.sizes.indexOf(state.size), r = rows.get(state.size), ring = (m.rings[0] ?? []).slice(0, 8);
  const part = (kinds: string[]) => r?.loads.find((l) => kinds.some((k) => l.name.includes(k)));
  const busy = (l: { name: string; use: number } | undefined) => (l ? `Here ${l.name} is the fullest: its bytes need ${percent(l.use)} of the time.` : undefined);
  const here = (n: number): Here => [
    { text: `Here: ${state.spec.workload.op} of ${bytes(state.size)} on ${m.ranks} ranks of ${m.hosts} hosts.` },
    { text: model!.choice[i] ? `Here: ${model!.choice[i]}, which the model expects to take ${micros(model!.us[i]!)}.` : undefined },
    { text: `Here: ${model!.channels[i] || m.channels} channels. This is the ring of channel 0.`, drawing: ring.length > 1 ? drawRing(m, 0, moving) : null },
    { text: `Here each channel has ${bytes(state.size / (model!.channels[i] || m.channels))} to move.` },
    { text: m.ranks > 8 ? "Drawn for the first 8 ranks of the ring, as if they were all." : undefined, drawing: ring.length > 1 ? chunks(ring) : null },
    { text: busy(part(["GPU"])), drawing: drawMachine(m, r?.use) },
    { text: m.hosts > 1 ? "The timeline below has the steps of the proxies of this operation." : "Here there is one host: no proxy takes part." },
    { text: m.hosts > 1 ? busy(part(["NIC", ...m.nics])) : "Here there is one host: nothing goes over a wire.", drawing: m.hosts > 1 ? drawMachine(m, r?.use) : null },
    { text: r ? `Here: ${r.time} µs, ${r.busText} GB/s busbw at ${r.label}.` : undefined },
  ][n] ?? {};
  put("walk", walk(hello.walk, here, (el) => glossary.link(el)));
}

function showResults(): void {
  const list = [...rows.values()].sort((a, b) => a.bytes - b.bytes);
  put("results-table", list.length ? table("Results", ["size", "time µs", "algbw GB/s", "busbw GB/s", "in place µs", "choice", "channels", "model µs", "limit GB/s", "limiting link", "how"],
    list.map((r) => [r.label, h("td", { "data-time": r.bytes }, r.time), r.algbw, r.busText, r.inTime, `${r.facts.algo} ${r.facts.proto}`, r.channels, r.facts.model_us ? r.facts.model_us.toFixed(2) : "–", r.limitBusbw ? r.limitBusbw.toFixed(1) : "–", r.facts.limiting_link, r.facts.simulated + (r.facts.margin ? ` ±${percent(r.facts.margin)}` : "")]), [5, 9, 10]) : h("p", { class: "soft" }, "No size is simulated yet."));
}

/** Parts that wait to be asked. */
function showRest(): void {
  showWhatIf();
  const offer = (id: string, label: string, text: string, run: (signal: AbortSignal) => Promise<Node>) => {
    const button = h("button", { type: "button", id: id + "-run", click: () => void begin(id, button, run) }, label);
    $(id).classList.add("offer");
    put(id, h("p", { class: "soft" }, text), button);
  };
  const size = () => String(state.size);
  offer("advice", "Find better settings", "Tries settings that a user may set, at three sizes, and says which gain 3 % or more.", async (signal) => {
    const spec = tidy(state.spec);
    spec.workload.sizes = ["64K", "1M", "64M"];
    delete spec.workload.range;
    return advice(await sim.call<Advised, Progress>("advise", { spec }, progress, signal));
  });
  offer("time", "Draw the timeline of this size", "Critical path, kernels, proxies and steps of the first ranks.", async (signal) => {
    const t = await sim.call<Timeline, Progress>("timeline", { spec: tidy(state.spec), size: size() }, progress, signal);
    return h("div", {}, h("p", { class: "soft" }, `${t.title}: ${t.note}.`), drawTimeline(t));
  });
  const m = machine!;
  const file = (label: string, id: string, method: string, with_: () => object) => h("button", { type: "button", id, click: () => void save(method, with_()) }, label);
  put("more",
    h("div", { class: "bar" }, file("Trace of this size", "get-trace", "trace", () => ({ size: size() })), file("Report (HTML)", "get-report", "report", () => ({})), file("Scenario (JSON)", "get-scenario", "scenario", () => ({})), file("Topology (XML)", "get-topology", "topology", () => ({})),
      h("button", { type: "button", id: "get-table", click: () => (ran ? download("table.txt", "text/plain", ran.table) : say("The table is complete once all sizes are simulated.")) }, "Table of nccl-tests")),
    h("dl", {}, ...facts(m).flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])),
    m.settings.length ? table("Settings in force", ["variable", "value", "from", "effect"], m.settings.map((x) => [x.name, x.value, x.origin, x.effect]), [0, 1, 2, 3]) : null,
    [...m.warnings, ...m.findings].length ? h("ul", { class: "notes" }, ...[...m.warnings, ...m.findings].slice(0, 20).map((w) => h("li", { class: "warn" }, w))) : null);
}

const facts = (m: Machine): [string, string][] => [
  ["Rules", "NCCL " + m.nccl], ["Ranks", `${m.ranks} on ${m.hosts} hosts; nodes by NCCL ${m.nodes}`], ["Channels", `${m.channels}; NVLS ${m.nvlsChannels}; send/recv ${m.p2pChannels}`],
  ["Multicast", m.multicast ? "on" : "off"], ["Graphs", (m.graphs ?? []).map((g) => `${g.name}: ${g.channels} × ${+g.bwIntra.toFixed(1)}/${+g.bwInter.toFixed(1)} GB/s, ${g.typeIntra}/${g.typeInter}`).join("; ")], ["Times", m.times], ["simccl", hello.program],
];

const progress = (p: Progress) => { bar.value = p.share; say(p.what + " …"); };

/** What is asked for a part of the page: the next that is asked for it ends it. */
const asking = new Map<string, AbortController>();
function ask(part: string): AbortController {
  asking.get(part)?.abort();
  const control = new AbortController();
  asking.set(part, control);
  begun(control);
  return control;
}

/** Runs what a button asks for; the sweep goes on meanwhile. */
async function begin(id: string, button: HTMLButtonElement, run: (signal: AbortSignal) => Promise<Node>): Promise<void> {
  $(id).classList.remove("offer");
  const control = ask(id), mine = generation;
  button.disabled = true;
  delete parts.get(id)!.dataset["drawn"];
  try {
    const node = await run(control.signal);
    if (mine === generation) { put(id, node); parts.get(id)!.append(h("p", {}, button)); parts.get(id)!.dataset["drawn"] = String(mine); }
  } catch (err) {
    if (!(err instanceof CallError && err.cancelled)) put(id, h("p", { class: "error" }, "Error: ", String((err as Error).message)), button);
  }
  button.disabled = false;
  ended(control);
}

async function save(method: string, more: object): Promise<void> {
  const control = ask("file");
  let text = "";
  try {
    const f = await sim.call<Bytes, Progress>(method, { spec: tidy(state.spec), ...more }, progress, control.signal);
    download(f.name, f.type, f.data as BlobPart);
    text = `${f.name}, ${bytes(f.data.length)}`;
  } catch (err) { if (!(err as CallError).cancelled) text = "Error: " + (err as Error).message; }
  ended(control);
  if (text) say(text);
}

function advice(a: Advised): Node {
  const line = (text: string) => h("button", { type: "button", class: "copy", click: () => void copy(text, "setting") }, text);
  return h("div", {}, h("p", {}, a.advice.length ? `${a.advice.length} of ${a.tried} settings gain 3 % or more.` : `None of ${a.tried} settings gains 3 % or more: NCCL's own choice is right here.`),
    a.advice.length ? table("Advice", ["setting", "sizes", "gain", "uncertain by", "what NCCL does then, and the risk"], a.advice.map((x) => [line(x.line.replace(/^export /, "")), [...new Set(x.sizes)].map(bytes).join(" – "), `${((x.gain - 1) * 100).toFixed(1)} %`, percent(x.uncertainty), [x.changes, x.risk].filter(Boolean).join("; ")]), [0, 1, 4]) : null,
    a.refused.length ? h("p", { class: "soft" }, `Not possible here: ${a.refused.map((r) => r.setting).join(", ")}.`) : null);
}

// What if.
const results = h("div", { id: "whatif-result" });
function showWhatIf(): void {
  versus.replaceChildren(h("option", { value: "" }, "another machine …"), ...[...$("machine").children].map((o) => o.cloneNode(true)));
  for (const o of versus.options) if (o.title) o.text = `${o.value} — ${o.title}`;
  if (state.whatIf.topo && ![...versus.options].some((o) => o.value === state.whatIf.topo)) versus.append(h("option", {}, state.whatIf.topo));
  versus.value = state.whatIf.topo ?? "";
  const m = machine!, w = state.whatIf, node = state.spec.machine?.nodes?.[0], now = node?.count || (node?.topo ? 1 : 2);
  const slider = (id: string, label: string, values: number[], current: number, unit: string, set: (v: number | undefined) => void) => {
    const chosen = (w as Record<string, number | undefined>)[id] ?? current, list = [...new Set([...values, current, chosen])].sort((a, b) => a - b);
    const at = list.indexOf(chosen);
    const out = h("output", { for: "if-" + id }, `${list[at]}${unit}`);
    const el = h("input", { type: "range", id: "if-" + id, min: 0, max: list.length - 1, step: 1, value: at, "aria-valuetext": `${list[at]}${unit}`, input: () => { const v = list[Number(el.value)]!; out.textContent = `${v}${unit}`; el.setAttribute("aria-valuetext", `${v}${unit}`); set(v === current ? undefined : v); later(); } });
    return h("div", { class: "field" }, h("label", { for: "if-" + id }, label), el, out);
  };
  const lost = h("select", { id: "if-lost", change: () => { w.lost = lost.value || undefined; later(); } }, h("option", { value: "" }, "none"), ...[...new Set(m.nics)].slice(0, 64).map((n) => h("option", { value: n }, n)));
  lost.value = w.lost ?? "";
  const where = h("select", { id: "if-lost-on", "aria-label": "Nodes that lose it", change: () => { w.lostOn = where.value === "one" ? "one" : undefined; if (w.lost) later(); } }, h("option", { value: "" }, "on all nodes"), h("option", { value: "one" }, "on node 0"));
  where.value = w.lostOn ?? "";
  const speed = Math.round(m.nicGbps);
  put("whatif", h("div", { class: "row" },
    m.nics.length ? slider("nic", "NIC speed", [25, 50, 100, 200, 400, 800, 1600], speed, " Gb/s", (v) => { w.nic = v; }) : null,
    slider("nodes", "Nodes", [1, 2, 4, 8, 16, 32, 64, 128], now, "", (v) => { w.nodes = v; }),
    slider("channels", "Channels at most", [1, 2, 4, 8, 16, 32], m.channels, "", (v) => { w.channels = v; }),
    m.nics.length ? h("div", { class: "field" }, h("label", { for: "if-lost" }, "Lost NIC"), lost, where) : null),
    h("button", { type: "button", click: () => { state.whatIf = {}; void whatIf(); showWhatIf(); } }, "Reset"), results);
}

let laterTimer = 0;
function later(): void { clearTimeout(laterTimer); laterTimer = window.setTimeout(() => void whatIf(), 150); }

/** Whether something is changed: where a NIC is lost changes nothing without the NIC. */
const asked = () => Object.entries(state.whatIf).some(([k, v]) => k !== "lostOn" && v);

async function whatIf(): Promise<void> {
  remember();
  comparing?.abort();
  const control = (comparing = new AbortController()), signal = control.signal;
  other = new Map();
  compared = undefined;
  delete document.body.dataset["compared"];
  if (results.querySelector(".error")) replace(results);
  replace(against);
  if (!asked()) { replace(results); showCurves(); return; }
  begun(control);
  try {
    const spec = tidy(await whatIfSpec(sim, tidy(state.spec), state.whatIf));
    const [c, b] = await Promise.all([sim.call<Compared>("compare", { spec: tidy(state.spec), other: spec }, undefined, signal), sim.call<Model>("model", { spec }, undefined, signal)]);
    if (signal.aborted) return;
    compared = showCompared(c, b, spec, () => !signal.aborted);
    await sim.call<Ran, Row | Progress>("run", { spec }, (p) => {
      if (signal.aborted) return;
      if (!("bytes" in p)) return progress({ ...p, what: "what if" });
      if (!other.has(p.bytes)) other.set(p.bytes, p);
      drawSoon();
    }, signal);
    document.body.dataset["compared"] = String(generation);
  } catch (err) {
    if (!(err as CallError).cancelled) compared = undefined;
    if (!(err as CallError).cancelled) for (const el of state.whatIf.topo ? [results, against] : [results]) replace(el, h("p", { class: "error" }, "Error: ", (err as Error).message));
    else if (comparing === control && !compared) replace(results, h("p", { class: "soft" }, "Cancelled."));
    drawSoon();
  } finally { ended(control); }
}

/** What the what-if changes, in words. */
function changes(): string[] {
  const w = state.whatIf, m = machine!;
  return [w.topo ? `${rival()} for ${plain(m.name)}` : "", w.nic ? `NICs of ${w.nic} Gb/s for ${Math.round(m.nicGbps)}` : "", w.nodes ? `${w.nodes} nodes for ${state.spec.machine?.nodes?.[0]?.count || m.hosts}` : "", w.channels ? `at most ${w.channels} channels for ${m.channels}` : "", w.lost ? `${w.lost} lost on ${w.lostOn ? "node 0" : "all nodes"}` : ""].filter(Boolean);
}

/** What the other machine comes to, where it is faster or slower, and how to see why. */
function showAgainst(c: Compared, waits: () => boolean): void {
  if (!state.whatIf.topo) return;
  const list = [...other.values()], what = `${c.hosts} × ${rival()}, ${c.ranks} ranks`, per = c.ranks / c.hosts, m = machine!, words = verdict(rows, other), left = model!.sizes.length - list.length;
  replace(against, h("p", { class: "answer" }, ...(list.length ? sentence(what, list) : [`${what}: ${waits() ? "simulating …" : "not simulated"}`])),
    words.length ? h("p", {}, `${rival()} is `, h("b", {}, words.join("; ")), `${left && waits() ? `; ${left} sizes to come` : ""}. `, h("a", { href: "#whatif", click: (e: Event) => { e.preventDefault(); go("whatif"); } }, "Each size, and what NCCL decides differently")) : null,
    c.ranks !== m.ranks && m.ranks % per === 0 ? h("button", { type: "button", id: "equal-gpus", click: () => { state.whatIf.nodes = m.ranks / per; showWhatIf(); void whatIf(); } }, `With ${m.ranks} GPUs as here: ${m.ranks / per} nodes`) : null);
}

/** Draws anew the times that came since. */
let compared: (() => void) | undefined;
function showCompared(c: Compared, b: Model, spec: Spec, waits: () => boolean): () => void {
  const sizes = model!.sizes.filter((z) => b.sizes.includes(z));
  const label = (m: Model, z: number) => m.choice[m.sizes.indexOf(z)] || "–";
  const times = h("div"), [now, then] = state.whatIf.topo ? [plain(machine!.name), rival()] : ["now", "what if"];
  const draw = () => { showAgainst(c, waits); replace(times, table("Before and after", ["size", `${now} µs`, `${then} µs`, "time ×", `${now} GB/s`, `${then} GB/s`, now, then], sizes.map((z) => { const x = rows.get(z), y = other.get(z); return [bytes(z), x?.time ?? (running?.signal.aborted ? "–" : "…"), y?.time ?? (waits() ? "…" : "–"), x && y ? (y.us / x.us).toFixed(2) : "", x?.busText ?? "", y?.busText ?? "", label(model!, z), label(b, z)]; }), [0, 6, 7])); };
  draw();
  replace(results,
    h("p", {}, h("span", { class: "b4" }, "what if"), ` against now: ${changes().join("; ")}.`), state.whatIf.topo ? h("p", { class: "soft" }, `Times of ${then}: ${c.times}. Times of ${now}: ${machine!.times}.`) : null, times,
    h("div", { class: "bar" }, h("button", { type: "button", id: "copy-whatif", click: () => void copy(c.command, "command of the what-if") }, "Copy what-if as command line"),
      state.whatIf.nic ? h("button", { type: "button", click: () => void save("topology", { spec }) }, "Its topology (XML)") : null),
    c.figures.length || c.choices.length ? h("details", {}, h("summary", {}, "What NCCL decides differently, and why"), h("p", { class: "soft" }, `A: ${now}; B: ${then}.`), h("pre", { tabindex: 0 }, c.text)) : h("p", { class: "soft" }, "NCCL decides the same."));
  return draw;
}

// Files.
async function drop(list: File[]): Promise<void> {
  const jobs: string[] = [];
  for (const f of list) {
    const close = h("button", { type: "button", class: "close", "aria-label": `Close the message about ${f.name}`, click: () => item.remove() }, "×");
    const item = h("div", { class: "file" }, h("b", {}, f.name), h("span", {}, "reading …"), close);
    for (const old of [...files.children]) if ((old as HTMLElement).dataset["kind"] === "error" || (old as HTMLElement).dataset["name"] === f.name) old.remove();
    item.dataset["name"] = f.name;
    files.append(item);
    try {
      const data = new Uint8Array(await f.arrayBuffer());
      await sim.put(f.name, data);
      const r = await sim.call<Recognised>("recognise", { name: f.name, spec: tidy(state.spec) });
      item.dataset["kind"] = r.kind;
      item.children[1]!.textContent = r.text;
      for (const w of r.warnings.slice(0, 5)) item.append(h("p", { class: "warn" }, w));
      if (r.kind === "workload") jobs.push(f.name);
      await take(r);
    } catch (err) { item.dataset["kind"] = "error"; item.children[1]!.replaceWith(h("span", { class: "error" }, "Error: ", (err as Error).message)); }
  }
  if (jobs.length) await runJob(jobs);
}

async function take(r: Recognised): Promise<void> {
  switch (r.kind) {
    case "topology":
      controls.addMachine(r.topo!);
      return change((s) => { s.machine = { ...s.machine, nodes: [{ topo: r.topo!, count: s.machine?.nodes?.[0]?.count || 2 }] }; });
    case "scenario": return change((s) => { for (const k of Object.keys(s)) delete (s as unknown as Record<string, unknown>)[k]; Object.assign(s, r.spec); });
    case "fabric": return change((s) => { s.network = { ...s.network, fabric: r.name }; });
    case "class": return change((s) => { s.machine = { ...s.machine, class: "./" + r.name }; });
    case "graphs": return change((s) => { s.nccl = { ...s.nccl, env: { ...s.nccl?.env, NCCL_GRAPH_FILE: r.name } }; });
    case "measured": measured = [...measured.filter((m) => m.Name !== r.measured!.Name), r.measured!]; return showCurves();
    case "log": return showLog(r);
    case "trace": {
      const t = await sim.call<Timeline>("open", { name: r.name, spec: tidy(state.spec) });
      put("time", h("p", { class: "soft" }, `${t.title}: ${t.tracks.length} tracks`), drawTimeline(t));
      $("time").scrollIntoView();
    }
  }
}

function showLog(r: Recognised): void {
  const rep = r.report!;
  put("advice", h("p", {}, rep.equal ? `${r.name}: what NCCL ${rep.logged} logged is what simccl decides, line by line.` : `${r.name}: simccl decides otherwise than NCCL ${rep.logged} logged.`),
    table("The log against simccl", ["section", "lines", "equal", "first difference"], Object.entries(rep.sections).map(([k, x]) => [k, x.compared, x.equal, x.first]), [0, 3]), h("details", {}, h("summary", {}, "As simccl check prints it"), h("pre", { tabindex: 0 }, r.detail ?? "")));
  $("advice").scrollIntoView();
}

async function runJob(names: string[]): Promise<void> {
  const control = ask("time");
  try {
    const spec = tidy(state.spec);
    const j = await sim.call<Job, Progress>("job", { spec, names }, progress, control.signal), r = j.report;
    put("time", h("p", {}, `${names.join(", ")} on ${j.machine}: `, h("b", {}, micros(r.iterationUs)), ` an iteration${r.recordedUs ? ` (recorded: ${micros(r.recordedUs)})` : ""}; computing ${micros(r.computeUs)}, exposed communication ${micros(r.exposedUs)}, host ${micros(r.hostUs)}.`),
      r.groups?.length ? table("Groups", ["group", "kind", "ranks", "calls", "bytes a rank", "busy", "exposed"], r.groups.map((g) => [g.name, g.kind, g.ranks, g.calls.toFixed(1), bytes(g.bytesPerRank), micros(g.busyUs), micros(g.exposedUs)]), [0, 1]) : null,
      ...[j.note, ...(r.notes ?? [])].filter(Boolean).slice(0, 12).map((n) => h("p", { class: "soft" }, n)), drawTimeline(j.timeline));
    $("time").scrollIntoView();
  } catch (err) { if (!(err as CallError).cancelled) { put("time", h("p", { class: "error" }, "Error: ", (err as Error).message)); $("time").scrollIntoView(); } }
  ended(control);
}

// Themes.
const themes = ["auto", "light", "dark"];
function theme(name: string): void {
  if (name === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = name;
  const b = document.getElementById("theme");
  if (b) b.textContent = `Theme: ${name}`;
  document.dispatchEvent(new Event("themechange"));
}
function nextTheme(): void {
  const now = themes.indexOf(localStorage.getItem("theme") ?? "auto"), name = themes[(now + 1) % 3]!;
  localStorage.setItem("theme", name);
  theme(name);
}
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", () => document.dispatchEvent(new Event("themechange")));

async function main(): Promise<void> {
  hello = await sim.call<Hello>("hello", {}); // of any machine: recorded
  controls = form(hello, change);
  glossary = new Glossary(hello.words);
  build();
  theme(localStorage.getItem("theme") ?? "auto");
  controls.show(state.spec);
  await refresh();
  window.addEventListener("hashchange", () => { if (location.hash.slice(1) !== encode(state)) { state = decode(location.hash); controls.show(state.spec); schedule(); } });
  if ("serviceWorker" in navigator) navigator.serviceWorker.register("sw.js").catch(() => undefined); // a page from a file has none
}
main().catch((err) => { $("answer").textContent = "Error: " + (err as Error).message; });
