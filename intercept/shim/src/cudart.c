// The CUDA runtime of a machine without GPUs, as far as programs need it that move
// and time data by NCCL. Streams, events and graphs are the collector's; memory is
// reserved and, without --data, never touched; kernels take no time.
//
// It is built three times: CUDART is 11000, 12000 or 13000, and the symbols have the
// version node of that library.
#define _GNU_SOURCE
#include "shim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef CUDART
#define CUDART 12000
#endif

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_HANDLE = 400, NOT_READY = 600, PEER_ENABLED = 704, LAUNCH_FAILURE = 719, NOT_SUPPORTED = 801 };
typedef int error;
typedef void *handle;

#define current (*simccl_device())
static __thread error sticky;

static error fail(error e) {
  if (e != OK && e != NOT_READY) sticky = e;
  return e;
}

static int start(void) { return simccl_attach(); }

// quiet: streams are not simulated, and all is done at once.
static int quiet(void) { return start() || simccl_get()->time == TIME_RECORD; }

PUBLIC error cudaStreamSynchronize(handle s);

// --- requests ---

static error answer(int type, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, struct reply *out) {
  if (start()) return fail(LAUNCH_FAILURE);
  if (type != REQ_QUERY && type != REQ_EVENT_QUERY && type != REQ_CAPTURING) simccl_worked(); // who only polls has no clock of its own
  for (;;) {
    struct request r = {.type = (uint32_t)type, .a = {a, b, c, d, e}};
    simccl_call(&r, NULL, out, NULL, 0);
    if (out->status != STATUS_FUNCTION) break;
    ((void (*)(void *))(uintptr_t)out->a[0])((void *)(uintptr_t)out->a[1]);
    struct request done = {.type = REQ_FUNCTION_DONE, .a = {out->a[2]}};
    struct reply unused;
    simccl_call(&done, NULL, &unused, NULL, 0);
  }
  if (out->status == STATUS_LOST) return fail(LAUNCH_FAILURE);
  return fail(out->status);
}

static error tell(int type, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) {
  struct reply out;
  return answer(type, a, b, c, d, e, &out);
}

// --- streams: a handle holds its device (15 bits), a flag and a number ---

enum { STREAM_MARK = 0x51, EVENT_MARK = 0x52, GRAPH_MARK = 0x53 };
static atomic_uint streams, events;

static int64_t stream_of(handle s) { return (int64_t)(uintptr_t)s; }
static int device_of(handle s) { return (uintptr_t)s >> 40 == STREAM_MARK ? (int)((uintptr_t)s >> 24 & 0x7fff) : current; }

static error new_stream(handle *out, unsigned flags) {
  if (!out) return fail(INVALID_VALUE);
  uint64_t n = atomic_fetch_add(&streams, 1) + 1;
  *out = (handle)(uintptr_t)((uint64_t)STREAM_MARK << 40 | (uint64_t)(flags & 1) << 39 | (uint64_t)current << 24 | n);
  return OK;
}

PUBLIC error cudaStreamCreate(handle *s) { return new_stream(s, 0); }
PUBLIC error cudaStreamCreateWithFlags(handle *s, unsigned flags) { return new_stream(s, flags); }
PUBLIC error cudaStreamCreateWithPriority(handle *s, unsigned flags, int priority) { (void)priority; return new_stream(s, flags); }
PUBLIC error cudaStreamDestroy(handle s) { return quiet() ? OK : tell(REQ_STREAM_END, device_of(s), stream_of(s), 0, 0, 0); }
PUBLIC error cudaStreamSynchronize(handle s) { return quiet() ? OK : tell(REQ_SYNC, device_of(s), stream_of(s), 0, 0, 0); }
PUBLIC error cudaDeviceSynchronize(void) { return quiet() ? OK : tell(REQ_SYNC, current, -1, 0, 0, 0); }
PUBLIC error cudaStreamQuery(handle s) { return quiet() ? OK : tell(REQ_QUERY, device_of(s), stream_of(s), 0, 0, 0); }
PUBLIC error cudaStreamGetFlags(handle s, unsigned *flags) { if (!flags) return fail(INVALID_VALUE); *flags = (uintptr_t)s >> 40 == STREAM_MARK ? (uintptr_t)s >> 39 & 1 : 0; return OK; }
PUBLIC error cudaStreamGetPriority(handle s, int *p) { (void)s; if (!p) return fail(INVALID_VALUE); *p = 0; return OK; }
PUBLIC error cudaDeviceGetStreamPriorityRange(int *least, int *most) { if (least) *least = 0; if (most) *most = -5; return OK; }

PUBLIC error cudaLaunchHostFunc(handle s, void (*run)(void *), void *arg) {
  if (!run) return fail(INVALID_VALUE);
  if (quiet()) { run(arg); return OK; }
  return tell(REQ_FUNCTION, device_of(s), stream_of(s), (int64_t)(uintptr_t)run, (int64_t)(uintptr_t)arg, 0);
}

// --- events ---

// quiet_times has the latest events of record mode, by their number modulo QUIET. An event whose place another one has
// taken has no time any more.
static struct quiet_time { handle event; struct timespec at; } *quiet_times;
enum { QUIET = 4096 };

static struct timespec *quiet_time(handle e) {
  struct quiet_time *q = quiet_times ? &quiet_times[(uintptr_t)e % QUIET] : NULL;
  return q && q->event == e ? &q->at : NULL;
}

PUBLIC error cudaEventCreateWithFlags(handle *e, unsigned flags) {
  (void)flags;
  if (!e) return fail(INVALID_VALUE);
  *e = (handle)(uintptr_t)((uint64_t)EVENT_MARK << 40 | (atomic_fetch_add(&events, 1) + 1));
  return OK;
}
PUBLIC error cudaEventCreate(handle *e) { return cudaEventCreateWithFlags(e, 0); }
PUBLIC error cudaEventDestroy(handle e) { (void)e; return OK; }

PUBLIC error cudaEventRecord(handle e, handle s) {
  if (!e) return fail(INVALID_HANDLE);
  if (!quiet()) return tell(REQ_EVENT_RECORD, device_of(s), stream_of(s), stream_of(e), 0, 0);
  if (!quiet_times) quiet_times = calloc(QUIET, sizeof *quiet_times);
  if (quiet_times) {
    struct quiet_time *q = &quiet_times[(uintptr_t)e % QUIET];
    q->event = e;
    clock_gettime(CLOCK_MONOTONIC, &q->at);
  }
  return OK;
}
PUBLIC error cudaEventRecordWithFlags(handle e, handle s, unsigned flags) { (void)flags; return cudaEventRecord(e, s); }
PUBLIC error cudaStreamWaitEvent(handle s, handle e, unsigned flags) {
  (void)flags;
  return quiet() ? OK : tell(REQ_EVENT_WAIT, device_of(s), stream_of(s), stream_of(e), 0, 0);
}
PUBLIC error cudaEventSynchronize(handle e) { return quiet() ? OK : tell(REQ_EVENT_SYNC, stream_of(e), 0, 0, 0, 0); }
PUBLIC error cudaEventQuery(handle e) { return quiet() ? OK : tell(REQ_EVENT_QUERY, stream_of(e), 0, 0, 0, 0); }

PUBLIC error cudaEventElapsedTime(float *ms, handle a, handle b) {
  struct reply out;
  if (!ms) return fail(INVALID_VALUE);
  if (quiet()) {
    struct timespec *x = quiet_time(a), *y = quiet_time(b);
    if (!x || !y) return fail(INVALID_HANDLE);
    *ms = (float)((double)(y->tv_sec - x->tv_sec) * 1e3 + (double)(y->tv_nsec - x->tv_nsec) * 1e-6);
    return OK;
  }
  error e = answer(REQ_ELAPSED, stream_of(a), stream_of(b), 0, 0, 0, &out);
  if (e == OK) *ms = (float)((double)out.a[0] * 1e-9);
  return e;
}
PUBLIC error cudaEventElapsedTime_v2(float *ms, handle a, handle b) { return cudaEventElapsedTime(ms, a, b); }

// --- capture and graphs ---

PUBLIC error cudaStreamBeginCapture(handle s, int mode) { (void)mode; return quiet() ? fail(NOT_SUPPORTED) : tell(REQ_CAPTURE, device_of(s), stream_of(s), 0, 0, 0); }

PUBLIC error cudaStreamEndCapture(handle s, handle *graph) {
  struct reply out;
  if (!graph) return fail(INVALID_VALUE);
  error e = answer(REQ_CAPTURE_END, device_of(s), stream_of(s), 0, 0, 0, &out);
  *graph = e == OK ? (handle)(uintptr_t)((uint64_t)GRAPH_MARK << 40 | (uint64_t)out.a[0]) : NULL;
  return e;
}

PUBLIC error cudaStreamIsCapturing(handle s, int *status) {
  struct reply out;
  if (!status) return fail(INVALID_VALUE);
  *status = 0;
  if (quiet()) return OK;
  error e = answer(REQ_CAPTURING, device_of(s), stream_of(s), 0, 0, 0, &out);
  *status = (int)out.a[0];
  return e;
}

PUBLIC error cudaGraphInstantiateWithFlags(handle *exec, handle graph, unsigned long long flags) { (void)flags; if (!exec) return fail(INVALID_VALUE); *exec = graph; return OK; }
#if CUDART >= 12000
PUBLIC error cudaGraphInstantiate(handle *exec, handle graph, unsigned long long flags) { (void)flags; if (!exec) return fail(INVALID_VALUE); *exec = graph; return OK; }
#else
PUBLIC error cudaGraphInstantiate(handle *exec, handle graph, handle *node, char *log, size_t size) { (void)node, (void)log, (void)size; if (!exec) return fail(INVALID_VALUE); *exec = graph; return OK; }
#endif
PUBLIC error cudaGraphLaunch(handle exec, handle s) { return tell(REQ_GRAPH, device_of(s), stream_of(s), stream_of(exec) & 0xffffffff, 0, 0); }
PUBLIC error cudaGraphDestroy(handle g) { (void)g; return OK; }
PUBLIC error cudaGraphExecDestroy(handle g) { (void)g; return OK; }
PUBLIC error cudaGraphUpload(handle g, handle s) { (void)g, (void)s; return OK; }
PUBLIC error cudaThreadExchangeStreamCaptureMode(int *mode) { (void)mode; return OK; }

// --- memory ---

struct block { char *at; size_t size; int dev, type; struct block *next; };
static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { TYPE_UNKNOWN, TYPE_HOST, TYPE_DEVICE, TYPE_MANAGED };

// used_of is what a device's allocations take. Under lock.
static size_t *used_of(int dev) {
  static size_t used[1 << 15];
  return &used[dev & 0x7fff];
}

static error reserve(void **out, size_t size, int type) {
  if (!out) return fail(INVALID_VALUE);
  *out = NULL;
  if (start()) return fail(LAUNCH_FAILURE);
  if (size == 0) return OK;
  if (size > SIZE_MAX / 2) return fail(OUT_OF_MEMORY);
  size_t whole = (size + 4095) & ~(size_t)4095;
  int touched = type != TYPE_DEVICE || simccl_get()->data;
  void *m = mmap(NULL, whole, touched ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  struct block *b = m == MAP_FAILED ? NULL : malloc(sizeof *b);
  if (!b) return fail(OUT_OF_MEMORY);
  *b = (struct block){m, whole, current, type, NULL};
  pthread_mutex_lock(&lock);
  int fits = type != TYPE_DEVICE || *used_of(current) + whole <= (size_t)simccl_get()->memory;
  if (fits) b->next = blocks, blocks = b;
  if (fits && type == TYPE_DEVICE) *used_of(current) += whole;
  pthread_mutex_unlock(&lock);
  if (fits) {
    *out = m;
    return OK;
  }
  munmap(m, whole);
  free(b);
  return fail(OUT_OF_MEMORY);
}

static error release(void *at) {
  if (!at) return OK;
  pthread_mutex_lock(&lock);
  struct block **p = &blocks;
  while (*p && (*p)->at != at) p = &(*p)->next;
  struct block *b = *p;
  if (b) *p = b->next;
  if (b && b->type == TYPE_DEVICE) *used_of(b->dev) -= b->size;
  pthread_mutex_unlock(&lock);
  if (!b) return fail(INVALID_VALUE);
  munmap(b->at, b->size);
  free(b);
  return OK;
}

static error freed(void *at) { // frees wait for the device
  error e = cudaDeviceSynchronize();
  error r = release(at);
  return r != OK ? r : e;
}

PUBLIC error cudaMalloc(void **p, size_t n) { return reserve(p, n, TYPE_DEVICE); }
PUBLIC error cudaMallocAsync(void **p, size_t n, handle s) { (void)s; return reserve(p, n, TYPE_DEVICE); }
PUBLIC error cudaMallocManaged(void **p, size_t n, unsigned flags) { (void)flags; return reserve(p, n, TYPE_MANAGED); }
PUBLIC error cudaMallocHost(void **p, size_t n) { return reserve(p, n, TYPE_HOST); }
PUBLIC error cudaHostAlloc(void **p, size_t n, unsigned flags) { (void)flags; return reserve(p, n, TYPE_HOST); }
PUBLIC error cudaFree(void *p) { return freed(p); }
PUBLIC error cudaFreeAsync(void *p, handle s) { error e = cudaStreamSynchronize(s); error r = release(p); return r != OK ? r : e; }
PUBLIC error cudaFreeHost(void *p) { return freed(p); }
PUBLIC error cudaHostRegister(void *p, size_t n, unsigned flags) { (void)p, (void)n, (void)flags; return OK; }
PUBLIC error cudaHostUnregister(void *p) { (void)p; return OK; }
PUBLIC error cudaHostGetDevicePointer(void **d, void *h, unsigned flags) { (void)flags; if (!d) return fail(INVALID_VALUE); *d = h; return OK; }

PUBLIC error cudaMemGetInfo(size_t *left, size_t *all) {
  if (start()) return fail(LAUNCH_FAILURE);
  size_t total = (size_t)simccl_get()->memory;
  pthread_mutex_lock(&lock);
  size_t used = *used_of(current);
  pthread_mutex_unlock(&lock);
  if (left) *left = used > total ? 0 : total - used;
  if (all) *all = total;
  return OK;
}

struct attributes { int type, device; void *on_device, *on_host; };
PUBLIC error cudaPointerGetAttributes(struct attributes *out, const void *p) {
  if (!out) return fail(INVALID_VALUE);
  *out = (struct attributes){TYPE_UNKNOWN, current, NULL, (void *)(uintptr_t)p};
  pthread_mutex_lock(&lock);
  for (struct block *b = blocks; b; b = b->next) {
    if ((const char *)p < b->at || (const char *)p >= b->at + b->size) continue;
    *out = (struct attributes){b->type, b->dev, (void *)(uintptr_t)p, b->type == TYPE_DEVICE ? NULL : (void *)(uintptr_t)p};
  }
  pthread_mutex_unlock(&lock);
  return OK;
}

static int on_host(const void *p) {
  struct attributes a;
  cudaPointerGetAttributes(&a, p);
  return a.type != TYPE_DEVICE;
}

static int pageable(const void *p) {
  struct attributes a;
  cudaPointerGetAttributes(&a, p);
  return a.type == TYPE_UNKNOWN;
}

// Copies are carried out where memory has contents, in the order of their stream.
// What the host gives or takes without a stream's order waits.
static error copy(void *to, const void *from, size_t n, handle s, int waits) {
  if (n == 0) return OK;
  if ((start() || !simccl_get()->data) && on_host(to) && on_host(from)) memmove(to, from, n);
  if (quiet()) return OK;
  error e = tell(REQ_COPY, device_of(s), stream_of(s), (int64_t)(uintptr_t)to, (int64_t)(uintptr_t)from, (int64_t)n);
  return e == OK && waits ? cudaStreamSynchronize(s) : e;
}

static error set(void *to, int value, size_t n, handle s, int waits) {
  if (n == 0 || quiet()) return OK;
  error e = tell(REQ_SET, device_of(s), stream_of(s), (int64_t)(uintptr_t)to, value & 255, (int64_t)n);
  return e == OK && waits ? cudaStreamSynchronize(s) : e;
}

PUBLIC error cudaMemcpy(void *to, const void *from, size_t n, int kind) { (void)kind; return copy(to, from, n, NULL, 1); }
PUBLIC error cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, handle s) {
  (void)kind;
  return copy(to, from, n, s, !quiet() && simccl_get()->data && (pageable(to) || pageable(from)));
}
PUBLIC error cudaMemcpyPeer(void *to, int a, const void *from, int b, size_t n) { (void)a, (void)b; return copy(to, from, n, NULL, 1); }
PUBLIC error cudaMemcpyPeerAsync(void *to, int a, const void *from, int b, size_t n, handle s) { (void)a, (void)b; return copy(to, from, n, s, 0); }
PUBLIC error cudaMemset(void *to, int v, size_t n) { return set(to, v, n, NULL, 0); }
PUBLIC error cudaMemsetAsync(void *to, int v, size_t n, handle s) { return set(to, v, n, s, 0); }

// --- devices ---

PUBLIC error cudaGetDeviceCount(int *n) {
  if (!n) return fail(INVALID_VALUE);
  if (start()) { *n = 0; return fail(100); }
  *n = simccl_get()->count;
  return OK;
}
PUBLIC error cudaSetDevice(int d) {
  if (start()) return fail(100);
  if (d < 0 || d >= simccl_get()->count) return fail(INVALID_DEVICE);
  current = d;
  return OK;
}
PUBLIC error cudaGetDevice(int *d) { if (!d) return fail(INVALID_VALUE); *d = current; return OK; }
PUBLIC error cudaDeviceReset(void) { return cudaDeviceSynchronize(); }
PUBLIC error cudaSetDeviceFlags(unsigned f) { (void)f; return OK; }
PUBLIC error cudaDeviceCanAccessPeer(int *can, int a, int b) { if (!can) return fail(INVALID_VALUE); *can = a != b; return OK; }
PUBLIC error cudaDeviceEnablePeerAccess(int d, unsigned f) { (void)d, (void)f; return OK; }
PUBLIC error cudaDeviceDisablePeerAccess(int d) { (void)d; return OK; }
PUBLIC error cudaDriverGetVersion(int *v) { if (!v) return fail(INVALID_VALUE); *v = CUDART == 11000 ? 11080 : CUDART == 12000 ? 12080 : 13000; return OK; }
PUBLIC error cudaRuntimeGetVersion(int *v) { return cudaDriverGetVersion(v); }

PUBLIC error cudaDeviceGetPCIBusId(char *out, int n, int d) { if (!out || n < 1) return fail(INVALID_VALUE); snprintf(out, (size_t)n, "%04x:%02x:00.0", d / 8, 0x10 + d % 8 * 0x10); return OK; }
PUBLIC error cudaDeviceGetByPCIBusId(int *d, const char *id) {
  for (int i = 0; d && id && !start() && i < simccl_get()->count; i++) {
    char name[32];
    cudaDeviceGetPCIBusId(name, sizeof name, i);
    if (!strcasecmp(name, id)) { *d = i; return OK; }
  }
  return fail(INVALID_VALUE);
}

// The first members of cudaDeviceProp have the same places in CUDA 11, 12 and 13.
struct properties {
  char name[256], uuid[16], luid[8];
  unsigned mask;
  size_t memory, shared;
  int registers, warp;
  size_t pitch;
  int block_threads, block[3], grid[3], clock;
  size_t constant;
  int major, minor;
};

static error properties(struct properties *p, int d) {
  if (start()) return fail(100);
  if (!p || d < 0 || d >= simccl_get()->count) return fail(INVALID_DEVICE);
  memset(p, 0, 712); // the shortest of the three
  snprintf(p->name, sizeof p->name, "simccl virtual GPU (sm_%d)", simccl_get()->sm);
  p->memory = (size_t)simccl_get()->memory;
  p->shared = 49152;
  p->registers = 65536;
  p->warp = 32;
  p->block_threads = 1024;
  for (int i = 0; i < 3; i++) { p->block[i] = i < 2 ? 1024 : 64; p->grid[i] = i ? 65535 : 2147483647; }
  p->major = simccl_get()->sm / 10;
  p->minor = simccl_get()->sm % 10;
  return OK;
}
PUBLIC error cudaGetDeviceProperties(struct properties *p, int d) { return properties(p, d); }
PUBLIC error cudaGetDeviceProperties_v2(struct properties *p, int d) { return properties(p, d); }

PUBLIC error cudaDeviceGetAttribute(int *v, int what, int d) {
  if (start()) return fail(100);
  if (!v || d < 0 || d >= simccl_get()->count) return fail(INVALID_DEVICE);
  switch (what) {
  case 1: *v = 1024; break;                     // threads of a block
  case 10: *v = 32; break;                      // of a warp
  case 16: *v = 132; break;                     // multiprocessors
  case 33: *v = 0x10 + d % 8 * 0x10; break;     // PCI bus
  case 50: *v = d / 8; break;                   // PCI domain
  case 75: *v = simccl_get()->sm / 10; break;   // compute capability
  case 76: *v = simccl_get()->sm % 10; break;
  case 41: case 31: case 79: *v = 1; break;     // unified addresses, concurrent kernels, stream priorities
  default: *v = 0;
  }
  return OK;
}

// --- kernels: they are known by name only, and do nothing ---

struct dim { unsigned x, y, z; };
static __thread struct { struct dim grid, block; size_t shared; handle stream; } pushed[16];
static __thread int pushes;

PUBLIC error cudaLaunchKernel(const void *f, struct dim g, struct dim b, void **args, size_t shared, handle s) {
  (void)f, (void)g, (void)b, (void)args, (void)shared;
  return quiet() ? OK : tell(REQ_KERNEL, device_of(s), stream_of(s), 0, 0, 0);
}
PUBLIC error cudaLaunchCooperativeKernel(const void *f, struct dim g, struct dim b, void **args, size_t shared, handle s) { return cudaLaunchKernel(f, g, b, args, shared, s); }
PUBLIC error cudaFuncGetAttributes(void *a, const void *f) { (void)f; if (!a) return fail(INVALID_VALUE); memset(a, 0, 64); return OK; }
PUBLIC error cudaFuncSetAttribute(const void *f, int a, int v) { (void)f, (void)a, (void)v; return OK; }
PUBLIC error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int b, size_t s) { (void)f, (void)b, (void)s; if (!n) return fail(INVALID_VALUE); *n = 1; return OK; }
PUBLIC error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int b, size_t s, unsigned x) { (void)f, (void)b, (void)s, (void)x; if (!n) return fail(INVALID_VALUE); *n = 1; return OK; }
PUBLIC void **__cudaRegisterFatBinary(void *b) { static void *h; (void)b; return &h; }
PUBLIC void __cudaRegisterFatBinaryEnd(void **h) { (void)h; }
PUBLIC void __cudaUnregisterFatBinary(void **h) { (void)h; }
PUBLIC void __cudaRegisterFunction(void **h, const char *f, char *d, const char *n, int l, void *a, void *b, void *c, void *e, int *w) { (void)h, (void)f, (void)d, (void)n, (void)l, (void)a, (void)b, (void)c, (void)e, (void)w; }
PUBLIC void __cudaRegisterVar(void **h, char *v, char *d, const char *n, int e, size_t s, int c, int g) { (void)h, (void)v, (void)d, (void)n, (void)e, (void)s, (void)c, (void)g; }
PUBLIC char __cudaInitModule(void **h) { (void)h; return 1; }

PUBLIC unsigned __cudaPushCallConfiguration(struct dim g, struct dim b, size_t shared, handle s) {
  if (pushes == 16) return 1;
  pushed[pushes].grid = g;
  pushed[pushes].block = b;
  pushed[pushes].shared = shared;
  pushed[pushes++].stream = s;
  return 0;
}
PUBLIC error __cudaPopCallConfiguration(struct dim *g, struct dim *b, size_t *shared, void *s) {
  if (pushes == 0) return fail(INVALID_VALUE);
  *g = pushed[--pushes].grid;
  *b = pushed[pushes].block;
  *shared = pushed[pushes].shared;
  *(handle *)s = pushed[pushes].stream;
  return OK;
}

// --- errors, and what is not there ---

PUBLIC error cudaGetLastError(void) { error e = sticky; sticky = OK; return e; }
PUBLIC error cudaPeekAtLastError(void) { return sticky; }

static const char *const *words(error e) {
  static const struct { error e; const char *w[2]; } all[] = {
      {OK, {"cudaSuccess", "no error"}}, {INVALID_VALUE, {"cudaErrorInvalidValue", "invalid argument"}}, {OUT_OF_MEMORY, {"cudaErrorMemoryAllocation", "out of memory"}},
      {100, {"cudaErrorNoDevice", "no device: the collector of simccl intercept is not there"}}, {INVALID_DEVICE, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
      {INVALID_HANDLE, {"cudaErrorInvalidResourceHandle", "invalid resource handle"}}, {NOT_READY, {"cudaErrorNotReady", "not ready"}},
      {LAUNCH_FAILURE, {"cudaErrorLaunchFailure", "work on the device has failed; see simccl intercept"}}, {NOT_SUPPORTED, {"cudaErrorNotSupported", "not supported by simccl intercept"}},
      {901, {"cudaErrorStreamCaptureInvalidated", "the capture was invalidated"}}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].e == e) return all[i].w;
  static const char *const unknown[2] = {"cudaErrorUnknown", "unknown error"};
  return unknown;
}
PUBLIC const char *cudaGetErrorName(error e) { return words(e)[0]; }
PUBLIC const char *cudaGetErrorString(error e) { return words(e)[1]; }

PUBLIC error cudaIpcGetMemHandle(void *h, void *p) { (void)h, (void)p; return fail(NOT_SUPPORTED); }
PUBLIC error cudaIpcOpenMemHandle(void **p, void *h, unsigned f) { (void)p, (void)h, (void)f; return fail(NOT_SUPPORTED); }
PUBLIC error cudaIpcCloseMemHandle(void *p) { (void)p; return fail(NOT_SUPPORTED); }
PUBLIC error cudaGetDriverEntryPoint(const char *n, void **p, unsigned long long f, int *s) { (void)n, (void)f; if (p) *p = NULL; if (s) *s = 1; return fail(NOT_SUPPORTED); }
PUBLIC error cudaGetDriverEntryPointByVersion(const char *n, void **p, unsigned v, unsigned long long f, int *s) { (void)v; return cudaGetDriverEntryPoint(n, p, f, s); }
PUBLIC error cudaProfilerStart(void) { return OK; }
PUBLIC error cudaProfilerStop(void) { return OK; }
