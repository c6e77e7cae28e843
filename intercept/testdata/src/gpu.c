// A GPU of threads: CUDA's driver and runtime as far as real devices of simccl
// intercept need them, on a machine without GPUs. Streams are threads that really run
// one operation after the other; memory can be opened by other processes; the only
// kernels are reductions, known by name, and toySleep.
#define _GNU_SOURCE
#include "values.h"
#include <pthread.h>
#include <stdatomic.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>

typedef int error;
typedef void *handle;
struct record { int done; }; // who waits for an event waits for where it was recorded last, then
struct event { struct record *last; int64_t ns; };
enum { COPY, SET, RECORD, WAIT, WAIT_VALUE, WRITE_VALUE, REDUCE, SLEEP, HOST };
struct work {
  int kind;
  uint64_t to, from, n;
  struct event *e;
  struct record *record;
  handle f;
  void (*run)(void *);
  struct work *next;
};
struct graph { struct work *first, **last; uint64_t id; };
struct stream { pthread_t thread; struct work *first, **last; int busy; unsigned flags; struct graph *capture; };
struct kernel { int type, op; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams[256];
static int count, loading;

static void reduce(const struct work *w) {
  const struct kernel *k = w->f;
  const uint64_t *table = (const uint64_t *)(uintptr_t)w->to;
  int n = (int)(w->from >> 32), m = (int)(uint32_t)w->from;
  uint64_t one[1], acc[1];
  for (uint64_t i = 0; i < w->n; i++) {
    for (int r = 0; r < n; r++) {
      double v = get((void *)(uintptr_t)table[r], k->type, (int)i);
      if (k->op == 5) put(one, k->type, 0, v * get(&table[n + m + r], k->type, 0)), v = get(one, k->type, 0);
      double a = r ? get(acc, k->type, 0) : v;
      double x = r == 0 ? v : k->op == 1 ? a * v : k->op == 2 ? fmax(a, v) : k->op == 3 ? fmin(a, v) : a + v;
      put(acc, k->type, 0, x);
    }
    double a = get(acc, k->type, 0);
    if (k->op == 4) a = k->type <= ncclUint64 ? (double)(int64_t)(a / n) : a / n;
    for (int r = 0; r < m; r++) put((void *)(uintptr_t)table[n + r], k->type, (int)i, a);
  }
}

// compute keeps the GPU busy, a slice at a time: kernels of other processes that want it
// at once take their slices in between.
static void compute(int64_t left) {
  enum { SLICE = 200000 };
  static int gpu = -2;
  if (gpu == -2) gpu = getenv("TOY_GPU") ? open(getenv("TOY_GPU"), O_RDWR | O_CLOEXEC) : -1;
  while (left > 0) {
    struct timespec a, b, t = {0, left < SLICE ? (long)left : SLICE};
    if (gpu >= 0) flock(gpu, LOCK_EX);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &a);
    syscall(SYS_nanosleep, &t, NULL);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &b);
    if (gpu >= 0) flock(gpu, LOCK_UN);
    left -= (int64_t)(b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;
  }
}

// wrote notes what began at a time and ends now.
static void wrote(struct timespec a, const char *what) {
  struct timespec b;
  const char *name = getenv("TOY_LOG");
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &b);
  int log = name ? open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (log < 0) return;
  dprintf(log, "%d %lld.%09ld %lld.%09ld %s\n", (int)getpid(), (long long)a.tv_sec, a.tv_nsec, (long long)b.tv_sec, b.tv_nsec, what);
  close(log);
}

// kernel runs for some microseconds.
static void kernel(int64_t us) {
  struct timespec a;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &a);
  compute(us * 1000);
  wrote(a, "kernel");
}

static atomic_int ending;

// dawdle is what a GPU that others use, too, takes until a stream goes on that has waited:
// TOY_LATE microseconds.
static void dawdle(void) {
  static int us = -1;
  if (us < 0) us = getenv("TOY_LATE") ? atoi(getenv("TOY_LATE")) : 0;
  struct timespec t = {0, us * 1000L};
  if (us > 0) syscall(SYS_nanosleep, &t, NULL);
}

static void carry_out(struct work *w) {
  enum { MOST_NS = 1000000 };
  struct timespec t = {0, 20000};
  int waited = 0;
  switch (w->kind) {
  case COPY: memmove((void *)(uintptr_t)w->to, (void *)(uintptr_t)w->from, w->n); break;
  case SET: memset((void *)(uintptr_t)w->to, (int)w->from, w->n); break;
  case REDUCE: reduce(w); break;
  case HOST: w->run((void *)(uintptr_t)w->to); break;
  case SLEEP: kernel((int64_t)w->n); break;
  case WRITE_VALUE: __atomic_store_n((uint32_t *)(uintptr_t)w->to, (uint32_t)w->n, __ATOMIC_RELEASE); break;
  case WAIT_VALUE:
    while (!ending) {
      uint32_t v = __atomic_load_n((uint32_t *)(uintptr_t)w->to, __ATOMIC_ACQUIRE);
      if (w->from ? v == (uint32_t)w->n : (int32_t)(v - (uint32_t)w->n) >= 0) break;
      nanosleep(&t, NULL);
      if (t.tv_nsec < MOST_NS) t.tv_nsec += t.tv_nsec / 8; // many processes may wait so
      waited = 1;
    }
    if (waited && !ending) dawdle();
  }
}

static void *serve(void *p) {
  struct stream *s = p;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!s->first) pthread_cond_wait(&changed, &lock);
    struct work *w = s->first;
    s->busy = 1;
    if (w->kind == WAIT) {
      int waited = w->record && !w->record->done;
      struct timespec begun;
      syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begun);
      while (w->record && !w->record->done) pthread_cond_wait(&changed, &lock);
      pthread_mutex_unlock(&lock);
      if (waited) wrote(begun, "wait"), dawdle();
      pthread_mutex_lock(&lock);
    } else if (w->kind == RECORD) {
      struct timespec t;
      syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); // the GPU's clock is not the program's
      w->record->done = 1;
      if (w->record == w->e->last) w->e->ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    } else {
      pthread_mutex_unlock(&lock);
      carry_out(w);
      pthread_mutex_lock(&lock);
    }
    if (!(s->first = w->next)) s->last = &s->first;
    s->busy = 0;
    free(w);
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

static struct stream *new_stream(unsigned flags) { // under lock
  struct stream *s = calloc(1, sizeof *s);
  s->last = &s->first;
  s->flags = flags;
  streams[count++] = s;
  pthread_create(&s->thread, NULL, serve, s);
  return s;
}

static struct stream *stream_of(handle s) { // under lock
  static struct stream *null;
  if (s) return s;
  if (!null) null = new_stream(0);
  return null;
}

static error enqueue(handle on, struct work w) {
  struct work *p = malloc(sizeof *p);
  pthread_mutex_lock(&lock);
  struct stream *s = stream_of(on);
  if (s->capture) {
    *p = w;
    p->next = NULL;
    *s->capture->last = p;
    s->capture->last = &p->next;
    pthread_mutex_unlock(&lock);
    return 0;
  }
  if (w.kind == RECORD) w.record = w.e->last = calloc(1, sizeof(struct record));
  if (w.kind == WAIT) w.record = w.e->last;
  *p = w;
  p->next = NULL;
  *s->last = p;
  s->last = &p->next;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}

// --- the driver ---

// A thread has a context once it has called the runtime, or said which.
static __thread handle context;
enum { NO_CONTEXT = 201 };

error cuInit(unsigned f) { (void)f; return 0; }
error cuDevicePrimaryCtxRetain(handle *c, int d) { (void)d; *c = (handle)1; return 0; }
error cuCtxGetCurrent(handle *c) { *c = context; return 0; }
error cuCtxSetCurrent(handle c) { context = c; return 0; }
error cuCtxGetDevice(int *d) { *d = 0; return context ? 0 : NO_CONTEXT; }
error cuDeviceGetPCIBusId(char *s, int n, int d) { snprintf(s, (size_t)n, "0000:0%d:00.0", d); return 0; }
error cuThreadExchangeStreamCaptureMode(int *m) { *m = 0; return 0; }
error cuEventCreate(handle *e, unsigned f) {
  (void)f;
  if (!context) return NO_CONTEXT;
  return *e = calloc(1, sizeof(struct event)), 0;
}
error cuEventRecord(handle e, handle s) { return !context ? NO_CONTEXT : enqueue(s, (struct work){.kind = RECORD, .e = e}); }
error cuEventRecordWithFlags(handle e, handle s, unsigned f) { (void)f; return cuEventRecord(e, s); }
error cuEventQuery(handle p) {
  struct event *e = p;
  pthread_mutex_lock(&lock);
  while (loading) pthread_cond_wait(&changed, &lock);
  int r = e->last && !e->last->done ? 600 : 0;
  pthread_mutex_unlock(&lock);
  return r;
}
error cuEventElapsedTime(float *ms, handle a, handle b) {
  if (cuEventQuery(a) || cuEventQuery(b)) return 600;
  *ms = (float)((double)(((struct event *)b)->ns - ((struct event *)a)->ns) * 1e-6);
  return 0;
}
error cuStreamWaitEvent(handle s, handle e, unsigned f) { (void)f; return enqueue(s, (struct work){.kind = WAIT, .e = e}); }
error cuStreamQuery(handle on) {
  pthread_mutex_lock(&lock);
  while (loading) pthread_cond_wait(&changed, &lock);
  int r = stream_of(on)->first ? 600 : 0;
  pthread_mutex_unlock(&lock);
  return r;
}
error cuStreamIsCapturing(handle s, int *c) { *c = s && ((struct stream *)s)->capture; return 0; }
error cuStreamGetCaptureInfo(handle s, int *status, uint64_t *id) {
  struct graph *g = s ? ((struct stream *)s)->capture : NULL;
  *status = g != NULL;
  *id = g ? g->id : 0;
  return 0;
}
error cuStreamGetFlags(handle s, unsigned *f) { *f = s ? ((struct stream *)s)->flags : 0; return 0; }
error cuStreamCreate(handle *s, unsigned f) {
  pthread_mutex_lock(&lock);
  *s = new_stream(f);
  pthread_mutex_unlock(&lock);
  return 0;
}
error cuStreamSynchronize(handle on) {
  pthread_mutex_lock(&lock);
  struct stream *s = stream_of(on);
  while (s->first) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return 0;
}
error cuStreamWaitValue32_v2(handle s, uint64_t at, uint32_t v, unsigned f) { return !context ? NO_CONTEXT : enqueue(s, (struct work){.kind = WAIT_VALUE, .to = at, .n = v, .from = f}); }
error cuStreamWriteValue32_v2(handle s, uint64_t at, uint32_t v, unsigned f) { (void)f; return enqueue(s, (struct work){.kind = WRITE_VALUE, .to = at, .n = v}); }

// Memory of the host goes with the driver when the program ends.
static struct { void *at; size_t size; } pinned[16];
static int pinned_count;
error cuMemHostAlloc(void **p, size_t n, unsigned f) {
  (void)f;
  *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*p == MAP_FAILED || pinned_count == 16) return 2;
  pinned[pinned_count].at = *p;
  pinned[pinned_count++].size = n;
  return 0;
}
__attribute__((destructor)) static void end(void) {
  struct timespec t = {0, 3000000}; // streams end before
  atomic_store(&ending, 1);
  if (pinned_count > 0) syscall(SYS_nanosleep, &t, NULL);
  for (int i = 0; i < pinned_count; i++) munmap(pinned[i].at, pinned[i].size);
  if (pinned_count > 0) syscall(SYS_nanosleep, &t, NULL); // who looks at it now has no luck
}
error cuMemHostGetDevicePointer_v2(uint64_t *d, void *h, unsigned f) { (void)f; *d = (uintptr_t)h; return 0; }

struct block { uint64_t at; size_t size; int fd; } ;
static struct block blocks[512];
static int block_count;
error cuMemAlloc_v2(uint64_t *out, size_t n) {
  size_t whole = (n + 4095) & ~(size_t)4095;
  int fd = memfd_create("gpu", 0);
  if (fd < 0 || ftruncate(fd, (off_t)whole)) return 2;
  void *m = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pthread_mutex_lock(&lock);
  blocks[block_count++] = (struct block){(uintptr_t)m, whole, fd};
  pthread_mutex_unlock(&lock);
  *out = (uintptr_t)m;
  return 0;
}
error cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t at) {
  for (int i = 0; i < block_count; i++)
    if (at >= blocks[i].at && at < blocks[i].at + blocks[i].size) return *base = blocks[i].at, *size = blocks[i].size, 0;
  return 1;
}
error cuPointerGetAttribute(void *out, int what, uint64_t at) {
  for (int i = 0; i < block_count && what == 7; i++)
    if (at >= blocks[i].at && at < blocks[i].at + blocks[i].size) return *(uint64_t *)out = (uint64_t)i + 1, 0;
  return 1;
}
struct ipc { int pid, fd; size_t size; char rest[48]; };
error cuIpcGetMemHandle(void *h, uint64_t at) {
  for (int i = 0; i < block_count; i++)
    if (blocks[i].at == at) return memcpy(h, &(struct ipc){.pid = getpid(), .fd = blocks[i].fd, .size = blocks[i].size}, sizeof(struct ipc)), 0;
  return 1;
}
error cuIpcOpenMemHandle_v2(uint64_t *out, struct ipc h, unsigned f) {
  char name[64];
  (void)f;
  snprintf(name, sizeof name, "/proc/%d/fd/%d", h.pid, h.fd);
  FILE *file = h.pid == getpid() ? NULL : fopen(name, "r+");
  if (!file) return 201;
  void *m = mmap(NULL, h.size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  fclose(file);
  *out = (uintptr_t)m;
  return m == MAP_FAILED ? 2 : 0;
}
error cuIpcCloseMemHandle(uint64_t at) { (void)at; return 0; }
error cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, handle s) { return enqueue(s, (struct work){.kind = COPY, .to = to, .from = from, .n = n}); }
error cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, handle s) { // pageable memory is read at once
  void *copy = memcpy(malloc(n), from, n);
  return cuMemcpyAsync(to, (uintptr_t)copy, n, s);
}
error cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { memcpy(to, (void *)(uintptr_t)from, n); return 0; }
error cuModuleLoadData(handle *m, const void *text) { return (*m = strdup(strstr(text, ".entry reduce_"))) ? 0 : 1; }
error cuModuleGetFunction(handle *f, handle m, const char *name) {
  static const char *const types[10] = {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16"};
  char type[8];
  struct kernel *k = malloc(sizeof *k);
  if (strncmp((char *)m + 7, name, strlen(name)) || sscanf(name, "reduce_%7[a-z0-9]_%d", type, &k->op) != 2) return 500;
  for (k->type = 0; k->type < 10 && strcmp(types[k->type], type); k->type++) {}
  *f = k;
  return 0;
}
error cuLaunchKernel(handle f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned shared, handle s, void **args, void **extra) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)g, (void)shared, (void)extra;
  return enqueue(s, (struct work){.kind = REDUCE, .f = f, .to = *(uint64_t *)args[0], .from = (uint64_t) * (uint32_t *)args[1] << 32 | *(uint32_t *)args[2], .n = *(uint64_t *)args[3]});
}

// --- the runtime ---

error cudaGetDeviceCount(int *n) { *n = 1; return 0; }
static void used(void) {
  if (!context) context = (handle)1;
}
error cudaSetDevice(int d) { return used(), d ? 101 : 0; }
error cudaGetDevice(int *d) { *d = 0; return 0; }
error cudaMalloc(void **p, size_t n) { uint64_t at = 0; error e = cuMemAlloc_v2(&at, n); *p = (void *)(uintptr_t)at; return e; }
error cudaFree(void *p) { (void)p; return 0; }
error cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f) { return cuStreamCreate(s, f); }
error cudaStreamSynchronize(cudaStream_t s) { return cuStreamSynchronize(s); }
error cudaStreamQuery(cudaStream_t s) { return cuStreamQuery(s); }
error cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f) { return cuStreamWaitEvent(s, e, f); }
error cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, cudaStream_t s) {
  (void)kind;
  return cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, n, s);
}
error cudaMemcpy(void *to, const void *from, size_t n, int kind) {
  error e = cudaMemcpyAsync(to, from, n, kind, NULL);
  return e ? e : cuStreamSynchronize(NULL);
}
error cudaDeviceSynchronize(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count; i++)
    while (streams[i]->first) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return 0;
}
error cudaEventCreate(cudaEvent_t *e) { return used(), cuEventCreate(e, 0); }
error cudaEventRecord(cudaEvent_t e, cudaStream_t s) { return used(), cuEventRecord(e, s); }
error cudaEventSynchronize(cudaEvent_t e) {
  struct timespec t = {0, 20000};
  while (cuEventQuery(e)) nanosleep(&t, NULL);
  return 0;
}
error cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) { return cuEventElapsedTime(ms, a, b); }
error cudaStreamBeginCapture(cudaStream_t s, int mode) {
  static uint64_t ids;
  struct graph *g = calloc(1, sizeof *g);
  (void)mode;
  g->last = &g->first;
  g->id = ++ids;
  ((struct stream *)s)->capture = g;
  return 0;
}
error cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) { *g = ((struct stream *)s)->capture; ((struct stream *)s)->capture = NULL; return 0; }
error cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f) { (void)f; *x = g; return 0; }
error cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
  for (struct work *w = ((struct graph *)x)->first; w; w = w->next) enqueue(s, *w);
  return 0;
}
struct dim3 { unsigned x, y, z; };
// A kernel is loaded when it is launched first: that waits for all streams, and other threads
// cannot ask for anything meanwhile.
static void load(const void *f) {
  static const void *loaded[64];
  int i = 0;
  pthread_mutex_lock(&lock);
  while (f && i < 64 && loaded[i] && loaded[i] != f) i++;
  if (f && i < 64 && !loaded[i]) {
    loaded[i] = f;
    loading = 1;
    for (int k = 0; k < count; k++)
      while (streams[k]->first) pthread_cond_wait(&changed, &lock);
    loading = 0;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
}
error cudaLaunchKernel(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared, cudaStream_t s) {
  (void)block, (void)args, (void)shared;
  load(f);
  return enqueue(s, (struct work){.kind = SLEEP, .n = grid.x});
}
error toySleep(cudaStream_t s, int us) { return enqueue(s, (struct work){.kind = SLEEP, .n = (uint64_t)us}); }
