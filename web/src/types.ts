// What the simulator answers (app/web).
import type { Word } from "./glossary";

export interface Spec {
  scenario?: number;
  name?: string;
  machine?: { nodes?: { topo?: string; count?: number }[]; gpus?: number; multicast?: string; nvlinkDomain?: number; class?: string };
  nccl?: { version?: string; env?: Record<string, string> };
  network?: { fabric?: string; class?: string; model?: string; cc?: string; balance?: string; faults?: string[] };
  workload: { op: string; sizes?: string[]; range?: { min?: string; max?: string; factor?: number; step?: string }; types?: string[]; reductions?: string[]; root?: number; [k: string]: unknown };
  engine?: { launch?: string; fidelity?: string; [k: string]: unknown };
  seed?: number;
  outputs?: unknown;
  grid?: unknown;
}

export interface Hello {
  program: string; releases: string[]; release: string; operations: string[]; types: string[]; reductions: string[];
  machines: { name: string; title: string; domain?: number }[];
  settings: { name: string; default: string; meaning: string }[];
  words: Word[]; walk: Word[];
  networks: { models: string[]; fabrics: { name: string; what: string }[]; controls: string[]; balances: string[]; classes: string[] };
}

export interface Device { kind: string; label: string; title: string; rank: number; boxes: { x: number; y: number; w: number; h: number }[]; name: string }
export interface Link { from: number; to: number; kind: string; gbps: number }
export interface Machine {
  name: string; nccl: string; ranks: number; nodes: number; hosts: number; channels: number; nvlsChannels: number; p2pChannels: number; multicast: boolean;
  times: string; command: string; devices: Device[]; links: Link[]; width: number; height: number; lines: { path: string; links: number[] }[]; paths: { ends: string[]; kinds: string[][]; gbps: number[][] };
  nodeOf: number[]; rings: number[][]; trees: number[][]; kept: number;
  graphs: { name: string; channels: number; bwIntra: number; bwInter: number; typeIntra: string; typeInter: string }[] | null;
  settings: { name: string; value: string; origin: string; effect: string }[];
  warnings: string[]; nics: string[]; nicGbps: number; findings: string[];
}

export interface Model {
  sizes: number[]; labels: string[]; choice: string[]; channels: number[]; us: number[]; busbw: number[];
  rivals: { algo: string; proto: string; us: number[] }[]; notes: string[];
}

export interface Load { name: string; equal: number; gbps: number; bytes: number; use: number }
export interface Row {
  bytes: number; label: string; count: number; us: number; busbw: number; time: string; algbw: string; busText: string; inTime: string; inBus: string;
  limitBusbw: number; limitUs: number; channels: number; use: number[]; merged: boolean; loads: Load[]; network: string[]; draws: string[];
  facts: { algo: string; proto: string; limiting_link: string; simulated: string; margin?: number; near?: string; model_us: number; draws?: { n: number; median_us: number; least_us: number; most_us: number; least_busbw_GBs: number; most_busbw_GBs: number } };
}
export interface Ran { avgBusBW: string; notes: string[]; table: string }
export interface Progress { share: number; what: string }

export interface Cell { algo: string; proto: string; available: boolean; timeUs?: number; latencyUs?: number; bandwidthGBps?: number; slower?: number; off?: { why?: string; [k: string]: unknown }[] }
export interface Explained {
  op: string; size: number; choice?: Cell; note?: string; warnings?: string[];
  launch?: { maxChannels: number; channels: number; threads: number; buffer: number };
  derivation?: Record<string, unknown>[]; rivals?: Cell[];
  crossovers?: { from: number; to: number; algo: string; proto: string; mixed?: boolean; here?: boolean }[];
  refused?: { what: string; rule: string; setting?: string; source?: string; pairs: string[] }[];
  graph?: { name: string; channels: number; bwIntra: number; bwInter: number; links?: { name: string; kind: string; capacityGBps: number; loadGBps: number; share: number; alike: number }[] };
  text: string;
}
export interface Congestion { us: number; crowd?: string; tried: { what: string; us: number; stalls?: string }[]; text: string }
export interface Figure { what: string; a: string; b: string; why?: string[] }
export interface Compared {
  inputs: Figure[]; figures: Figure[]; choices: { op: string; from: number; to: number; a: string; b: string; why: string[] }[]; text: string;
  command: string; ranks: number; hosts: number; times: string; // of the second Spec
}
export interface Advised {
  tried: number; rows: { bytes: number; us: number; choice: string; best?: string; bestUs: number }[];
  advice: { setting: string; value: string; sizes: [number, number]; gain: number; uncertainty: number; line: string; changes?: string; risk?: string }[];
  refused: { setting: string; why: string }[]; text: string;
}
export interface Timeline {
  title: string; tracks: { process: string; thread: string }[]; track: number[]; start: number[]; dur: number[]; name: number[]; kind: number[] | string;
  names: string[]; kinds: string[]; endNs: number; left: number; note: string;
}
export interface Measured { Name: string; Points: { Size: number; TimeUs: number; BusBW: number }[] }
export interface Recognised {
  kind: string; name: string; text: string; topo?: string; spec?: Spec; detail?: string; measured?: Measured; warnings: string[];
  report?: { equal: boolean; version: string; logged: string; sections: Record<string, { compared: number; equal: number; first: string }> };
}
export interface Job {
  machine: string; note: string; ranks: number; timeline: Timeline;
  report: { iterationUs: number; recordedUs: number | null; computeUs: number; exposedUs: number; hostUs: number; groups?: { name: string; kind: string; ranks: number; calls: number; bytesPerRank: number; busyUs: number; exposedUs: number }[]; notes?: string[] };
}
export interface Bytes { name: string; type: string; data: Uint8Array }
