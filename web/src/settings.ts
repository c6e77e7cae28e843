// The form: machine, operation, settings. It writes into a Spec and reads from it.
import { h } from "./dom";
import type { Hello, Spec } from "./types";

export interface Form { el: HTMLElement; show(spec: Spec): void; addMachine(name: string): void; wrong(path: string, text: string): void }

const sizes = ["8", "64", "512", "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M", "1G", "4G", "8G"];

export function form(hello: Hello, change: (edit: (s: Spec) => void) => void): Form {
  const opt = (v: string, text = v, title?: string) => h("option", { value: v, title }, text);
  // What is chosen in words, below a list whose names alone fit beside the results.
  const hints = new Map<HTMLSelectElement, HTMLElement>();
  const hint = (el: HTMLSelectElement) => hints.set(el, h("p", { class: "soft" })).get(el)!;
  const machine = h("select", { id: "machine" }, ...groups(hello));
  const dropped = h("optgroup", { label: "Your files" });
  const nodes = h("input", { id: "nodes", type: "number", min: 1, max: 100000, step: 1 });
  const range = h("input", { id: "nodes-range", type: "range", min: 0, max: 10, step: 1, "aria-label": "Nodes, by powers of two" });
  const gpus = h("input", { id: "gpus", type: "number", min: 1, max: 576, placeholder: "all" });
  const op = h("select", { id: "op" }, ...hello.operations.map((o) => opt(o)));
  const version = h("select", { id: "nccl" }, ...hello.releases.map((v) => opt(v === hello.release ? "" : v, v === hello.release ? `${v} (default)` : v)));
  const type = h("select", { id: "type" }, ...hello.types.map((t) => opt(t === "float" ? "" : t, t)));
  const red = h("select", { id: "redop" }, ...hello.reductions.map((t) => opt(t === "sum" ? "" : t, t)));
  const least = h("select", { id: "min" }, ...sizes.map((v) => opt(v))), most = h("select", { id: "max" }, ...sizes.map((v) => opt(v)));
  const factor = h("select", { id: "factor" }, ...[2, 4, 8, 16].map((v) => opt(String(v))));
  const multicast = h("select", { id: "multicast" }, opt("", "auto"), opt("on"), opt("off"));
  const launch = h("select", { id: "launch" }, opt("", "eager"), opt("graph", "CUDA graph"));
  const env = h("textarea", { id: "env", rows: 3, spellcheck: "false", placeholder: "NCCL_ALGO=Ring\nNCCL_NVLS_ENABLE=0", autocapitalize: "off", autocomplete: "off" });
  const known = h("select", { id: "known", "aria-label": "Add a variable" }, opt("", "Add a variable …"), ...hello.settings.filter((v) => v.name.startsWith("NCCL_")).map((v) => opt(v.name, `${v.name} — ${v.meaning}`)));
  const models: Record<string, string> = { flow: "links are shared", packet: "frame by frame", hybrid: "frames where queues form" };
  const model = h("select", { id: "network" }, ...hello.networks.models.map((v, i) => opt(i ? v : "", `${v}: ${models[v] ?? ""}`)));
  const fabric = h("select", { id: "fabric" }, opt("", "ideal"), ...hello.networks.fabrics.map((f) => opt(f.name, f.name, f.what)));
  const cc = h("select", { id: "cc" }, opt("", "default"), ...hello.networks.controls.map((v) => opt(v)));
  const balance = h("select", { id: "balance" }, opt("", "default"), ...hello.networks.balances.map((v) => opt(v, `by ${v.replace("-", " ")}`)));
  const nics = h("select", { id: "network-class" }, opt("", "by the NICs"), ...hello.networks.classes.map((v) => opt(v)));
  const faults = h("textarea", { id: "faults", rows: 2, spellcheck: "false", placeholder: "nic=node0/2:slow=4\nlink=spine0~leaf0:down", autocapitalize: "off", autocomplete: "off" });
  const errors = new Map<string, HTMLElement>();

  const field = (label: string, el: HTMLElement, path: string, ...more: HTMLElement[]) => {
    const err = h("p", { class: "error", id: `${el.id}-error`, role: "alert", hidden: true });
    el.setAttribute("aria-describedby", err.id);
    errors.set(path, err);
    return h("div", { class: "field" }, h("label", { for: el.id }, label), el, ...more, err);
  };
  const on = (el: HTMLElement, edit: (s: Spec) => void, event = "change") => el.addEventListener(event, () => change(edit));
  const node = (s: Spec) => { s.machine ??= {}; s.machine.nodes ??= [{}]; return (s.machine.nodes[0] ??= {}); };

  on(machine, (s) => { const n = node(s); n.topo = machine.value; s.machine!.nodes = [n]; });
  const setNodes = (v: number) => { if (Number.isInteger(v) && v >= 1) change((s) => { node(s).count = v; }); };
  nodes.addEventListener("change", () => setNodes(Number(nodes.value)));
  range.addEventListener("input", () => { nodes.value = String(2 ** Number(range.value)); setNodes(2 ** Number(range.value)); });
  on(gpus, (s) => { s.machine ??= {}; s.machine.gpus = Math.max(0, Math.floor(Number(gpus.value) || 0)); });
  on(op, (s) => { s.workload.op = op.value; });
  on(version, (s) => { s.nccl ??= {}; s.nccl.version = version.value; });
  on(type, (s) => { s.workload.types = type.value ? [type.value] : []; });
  on(red, (s) => { s.workload.reductions = red.value ? [red.value] : []; });
  const sweep = (s: Spec) => {
    s.workload.sizes = [];
    s.workload.range = least.value === "8" && most.value === "1G" && factor.value === "2" ? {} : { min: least.value, max: most.value, factor: Number(factor.value) };
  };
  for (const el of [least, most, factor]) on(el, sweep);
  on(multicast, (s) => { s.machine ??= {}; s.machine.multicast = multicast.value; });
  on(launch, (s) => { s.engine ??= {}; s.engine.launch = launch.value; });
  on(model, (s) => { s.network = { ...s.network, model: model.value }; if (!model.value) { delete s.network.cc; delete s.network.balance; } });
  on(fabric, (s) => { s.network = { ...s.network, fabric: fabric.value }; });
  on(cc, (s) => { s.network = { ...s.network, cc: cc.value }; });
  on(balance, (s) => { s.network = { ...s.network, balance: balance.value }; });
  on(nics, (s) => { s.network = { ...s.network, class: nics.value }; });
  on(faults, (s) => { s.network = { ...s.network, faults: faults.value.split("\n").map((l) => l.trim()).filter(Boolean) }; });
  on(env, (s) => { s.nccl ??= {}; s.nccl.env = lines(env.value); });
  known.addEventListener("change", () => {
    if (!known.value) return;
    env.value = (env.value.trim() ? env.value.trim() + "\n" : "") + known.value + "=";
    known.value = "";
    env.focus();
  });

  const el = h("form", { submit: (e: Event) => e.preventDefault(), autocomplete: "off" },
    h("h2", {}, "Machine"), field("Machine", machine, "machine", hint(machine)), field("Nodes", nodes, "machine.nodes", range), field("GPUs per node", gpus, "machine.gpus"), field("NVLink multicast", multicast, "machine.multicast"),
    h("h2", {}, "Operation"), field("Operation", op, "workload.op"), h("div", { class: "row" }, field("From", least, "workload.range.min"), field("to", most, "workload.range.max"), field("factor", factor, "workload.range.factor")),
    h("div", { class: "row" }, field("Type", type, "workload.types"), field("Reduction", red, "workload.reductions")),
    h("h2", {}, "Network"), field("Between nodes", fabric, "network.fabric", hint(fabric)), field("Simulated as", model, "network.model"), h("div", { class: "row" }, field("Congestion", cc, "network.cc"), field("Routes of frames", balance, "network.balance")), field("Class of NICs", nics, "network.class"), field("Faults, one per line", faults, "network.faults"),
    h("h2", {}, "NCCL"), field("Version", version, "nccl.version"), field("Launch", launch, "engine.launch"), field("Settings, one per line", env, "nccl.env", known));

  return {
    el,
    addMachine(name) {
      if (![...dropped.children].some((o) => (o as HTMLOptionElement).value === name)) dropped.append(opt(name));
      if (!dropped.parentElement) machine.prepend(dropped);
    },
    show(spec) {
      for (const e of errors.values()) e.hidden = true;
      const n = spec.machine?.nodes?.[0] ?? {}, topo = n.topo || "dgx-h100";
      if (![...machine.options].some((o) => o.value === topo)) this.addMachine(topo);
      machine.value = topo;
      const count = n.count || (n.topo ? 1 : 2);
      nodes.value = String(count);
      range.value = String(Math.min(10, Math.round(Math.log2(count))));
      gpus.value = spec.machine?.gpus ? String(spec.machine.gpus) : "";
      pick(op, spec.workload.op);
      version.value = spec.nccl?.version === hello.release ? "" : spec.nccl?.version ?? "";
      type.value = spec.workload.types?.[0] ?? "";
      red.value = spec.workload.reductions?.[0] ?? "";
      const r = spec.workload.range, list = spec.workload.sizes ?? [];
      pick(least, list[0] || r?.min || "8");
      pick(most, list[list.length - 1] || r?.max || "1G");
      pick(factor, String(r?.factor || 2));
      multicast.value = spec.machine?.multicast ?? "";
      launch.value = spec.engine?.launch ?? "";
      const net = spec.network ?? {};
      pick(model, net.model === "flow" ? "" : net.model ?? "");
      pick(fabric, net.fabric ?? "");
      pick(cc, net.cc ?? "");
      pick(balance, net.balance ?? "");
      cc.disabled = balance.disabled = !model.value;
      pick(nics, net.class ?? "");
      if (document.activeElement !== faults) faults.value = (net.faults ?? []).join("\n");
      const text = Object.entries(spec.nccl?.env ?? {}).map(([k, v]) => `${k}=${v}`).join("\n");
      if (document.activeElement !== env) env.value = text;
      for (const [el, line] of hints) line.textContent = el.selectedOptions[0]?.title ?? "";
    },
    wrong(path, text) {
      const key = [...errors.keys()].filter((k) => path.startsWith(k)).sort((a, b) => b.length - a.length)[0] ?? "machine";
      const e = errors.get(key)!;
      e.textContent = "Error: " + text;
      e.hidden = false;
    },
  };
}

function pick(el: HTMLSelectElement, v: string): void {
  if (![...el.options].some((o) => o.value === v)) el.append(h("option", { value: v }, v));
  el.value = v;
}

export function lines(text: string): Record<string, string> {
  const out: Record<string, string> = {};
  for (const l of text.split("\n")) { const i = l.indexOf("="); if (i > 0) out[l.slice(0, i).trim()] = l.slice(i + 1).trim(); }
  return out;
}

function groups(hello: Hello): HTMLElement[] {
  const of = (n: string): string => ({ aws: "AWS", azure: "Azure", gcp: "Google Cloud", oci: "Oracle Cloud", dgx: "NVIDIA DGX", hgx: "NVIDIA HGX", gb200: "NVIDIA NVL72", gb300: "NVIDIA NVL72" })[n.split("-")[0]!] ?? "Others";
  const by = new Map<string, HTMLElement[]>();
  for (const m of hello.machines) (by.get(of(m.name)) ?? by.set(of(m.name), []).get(of(m.name))!).push(h("option", { value: m.name, title: m.title }, m.name));
  const order = ["NVIDIA DGX", "NVIDIA HGX", "NVIDIA NVL72", "AWS", "Azure", "Google Cloud", "Oracle Cloud", "Others"];
  return order.filter((g) => by.has(g)).map((g) => h("optgroup", { label: g }, ...by.get(g)!));
}
