// The worker: loads the simulator and passes calls on.
export {};
interface Go {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}
interface Answer { name: string; type: string; data: Uint8Array }
interface Program {
  call(id: number, method: string, query: string, emit: (part: string) => void, done: (answer: string | Answer | null, failure: string | null) => void): void;
  cancel(id: number): void;
  put(name: string, data: Uint8Array): string | null;
}
const scope = globalThis as unknown as DedicatedWorkerGlobalScope & { Go: new () => Go; simccl: Program; simcclReady: () => void };

scope.importScripts("wasm_exec.js");

const ready = (async () => {
  const go = new scope.Go();
  const started = new Promise<void>((resolve) => (scope.simcclReady = resolve));
  const response = await fetch("simccl.wasm");
  if (!response.ok) throw new Error(`simccl.wasm: ${response.status} ${response.statusText}`);
  const { instance } = await WebAssembly.instantiateStreaming(response, go.importObject);
  // It ends where memory does, or by a bug: the page starts another.
  go.run(instance).then(() => scope.postMessage({ id: 0, ended: true }), () => scope.postMessage({ id: 0, ended: true }));
  await started;
})();

scope.onmessage = async (e: MessageEvent) => {
  const m = e.data as { id: number; method?: string; query?: string; cancel?: boolean; put?: string; data?: ArrayBuffer };
  try {
    await ready;
  } catch (err) {
    scope.postMessage({ id: m.id, failure: { error: "The simulator did not start: " + String(err) } });
    return;
  }
  if (m.cancel) return scope.simccl.cancel(m.id);
  if (m.put !== undefined) {
    const wrong = scope.simccl.put(m.put, new Uint8Array(m.data!));
    return scope.postMessage(wrong === null ? { id: m.id, answer: null } : { id: m.id, failure: { error: wrong } });
  }
  scope.simccl.call(m.id, m.method!, m.query!, (part) => scope.postMessage({ id: m.id, part: JSON.parse(part) }), (answer, failure) => {
    if (failure !== null) scope.postMessage({ id: m.id, failure: JSON.parse(failure) });
    else if (typeof answer === "string") scope.postMessage({ id: m.id, answer: JSON.parse(answer) });
    else scope.postMessage({ id: m.id, answer }, [answer!.data.buffer as ArrayBuffer]);
  });
};
