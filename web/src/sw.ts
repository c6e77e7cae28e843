// The service worker: keeps the page's files, so that it starts without a network.
declare const FILES: string[];
declare const VERSION: string;
export {};
const self = globalThis as unknown as ServiceWorkerGlobalScope;
const name = "simccl-" + VERSION;

self.addEventListener("install", (e) => {
  e.waitUntil(
    (async () => {
      const cache = await caches.open(name);
      await cache.addAll(FILES.map((f) => new Request(f === "index.html" ? "./" : f, { cache: "no-cache" })));
      await self.skipWaiting();
    })(),
  );
});

self.addEventListener("activate", (e) => {
  e.waitUntil(
    (async () => {
      for (const key of await caches.keys()) if (key.startsWith("simccl-") && key !== name) await caches.delete(key);
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("fetch", (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== "GET" || url.origin !== self.location.origin) return;
  e.respondWith(
    (async () => {
      const cache = await caches.open(name);
      const kept = await cache.match(url.pathname.endsWith("/index.html") ? "./" : url.origin + url.pathname);
      return kept ?? fetch(e.request);
    })(),
  );
});
