// A CUDA driver for tests without a GPU: devices are this computer's memory,
// streams are threads, and kernels are the same sources compiled for the CPU
// (kernels/host.h). It knows what real/internal/cuda calls, and can be told to fail.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../internal/cuda/kernels/device.h"
#include "memory.h"

enum { YIELDS = 3 };
void hostWait(u32 round);

namespace {

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_CONTEXT = 201, NO_PEER = 217, NOT_FOUND = 500, NOT_READY = 600 };
enum { REGISTERED = 712, NOT_REGISTERED = 713, LAUNCH_FAILED = 719, ISOLATION = 905 };

std::atomic<int> devices{4};
std::atomic<bool> peers{true};
std::atomic<int> apart{-1};  // a device that reaches no other
std::atomic<int64_t> room{int64_t(4) << 30};  // of each device

std::mutex big;  // guards what follows
std::map<void*, Block> owned, opened;  // own memory, and that of other processes
std::map<void*, size_t> registered;
int64_t used[64];
std::string failing;
int failCode, failAfter;

thread_local int current = 0;

// fails tells whether this call was told to fail.
int fails(const char* call) {
  std::lock_guard<std::mutex> l(big);
  if (failing != call || failAfter-- > 0) return OK;
  failing.clear();
  return failCode;
}

typedef std::function<void()> Task;

// Capture collects what is queued on a stream and on those that join it, in
// the order of the calls: run one after another they respect every event.
struct Stream;
struct Capture {
  std::vector<Task> tasks;
  std::vector<Stream*> streams;
  bool open = true;
};
struct Graph {
  std::vector<Task> tasks;
};

// An event counts how often it was recorded and how far the streams came. Who
// waits waits for the last record before its call, as with the real driver. A
// moment outlives its handle while a stream has still to tell it.
struct Moment {
  std::mutex m;
  std::condition_variable c;
  uint64_t asked = 0, done = 0;
  double at = 0;
  std::shared_ptr<Capture> capture;  // where it was recorded last
  void wait(uint64_t turn) {
    std::unique_lock<std::mutex> l(m);
    c.wait(l, [&] { return done >= turn; });
  }
};
typedef std::shared_ptr<Moment> Event;

struct Stream {
  std::mutex m;
  std::condition_variable c;
  std::deque<Task> queue;
  bool busy = false, ending = false;
  std::shared_ptr<Capture> capture;
  Stream() { std::thread([this] { loop(); }).detach(); }
  // loop ends, and the stream with it, once it was given up and has done all.
  void loop() {
    std::unique_lock<std::mutex> l(m);
    for (;;) {
      c.wait(l, [this] { return ending || !queue.empty(); });
      if (queue.empty()) break;
      Task t = std::move(queue.front());
      queue.pop_front();
      busy = true;
      l.unlock();
      t();
      t = nullptr;
      l.lock();
      busy = false;
      c.notify_all();
    }
    l.unlock();
    delete this;
  }
  void put(Task t) {
    std::lock_guard<std::mutex> l(m);
    if (capture) {
      capture->tasks.push_back(std::move(t));
      return;
    }
    queue.push_back(std::move(t));
    c.notify_all();
  }
  bool idle() {
    std::lock_guard<std::mutex> l(m);
    return queue.empty() && !busy;
  }
  void drain() {
    std::unique_lock<std::mutex> l(m);
    c.wait(l, [this] { return queue.empty() && !busy; });
  }
};

// defaultOf is a device's default stream.
Stream* defaultOf(int dev) {
  static std::map<int, Stream*> defaults;
  std::lock_guard<std::mutex> l(big);
  Stream*& d = defaults[dev];
  if (!d) d = new Stream;
  return d;
}

// streamOf ends the program where the stream was destroyed: a driver may do
// anything then.
std::map<uintptr_t, Stream*> streams;
Stream* streamOf(uintptr_t s) {
  if (!s) return defaultOf(current);
  std::lock_guard<std::mutex> l(big);
  const auto known = streams.find(s);
  if (known != streams.end()) return known->second;
  fprintf(stderr, "made-up CUDA driver: a stream is used after it was destroyed\n");
  abort();
}

// Barriers of a block, as the kernels' syncSome and arriveSome use them.
struct Barrier {
  std::mutex m;
  std::condition_variable c;
  uint32_t here = 0;
  uint64_t turn = 0;
};
struct Team {
  Barrier barrier[16];
  char shared[64 << 10];
};

struct Blob {  // a kernel's arguments by value: one structure in memory
  char bytes[1024];
};
typedef void (*KernelFn)(Blob);

struct Function {
  KernelFn fn;
  size_t args;
  bool apart;  // its threads never meet: one of ours runs them all
};

struct Warp {  // one thread of ours
  HostThread at;
  KernelFn fn;
  const Blob* args;
  pthread_t thread;
};
void* runWarp(void* p) {
  const Warp* w = (const Warp*)p;
  hostThread = w->at;
  w->fn(*w->args);
  return nullptr;
}

void launch(Function* f, uint32_t blocks, uint32_t threads, const Blob& b) {
  threads /= 32;  // a warp is one thread
  if (f->apart) {
    for (uint32_t i = 0; i < blocks; i++)
      for (uint32_t t = 0; t < threads; t++) {
        hostThread = HostThread{t, threads, i, blocks, nullptr, nullptr};
        f->fn(b);
      }
    return;
  }
  // Small stacks stay in the C library's cache from launch to launch. Those of std::thread,
  // of 8 MiB, would be mapped and their pages cleared for each.
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  std::vector<Warp> warps;
  std::vector<Team*> teams;
  for (uint32_t i = 0; i < blocks; i++) {
    teams.push_back(new Team);
    for (uint32_t t = 0; t < threads; t++) warps.push_back({HostThread{t, threads, i, blocks, teams[i]->shared, teams[i]}, f->fn, &b, {}});
  }
  for (auto& w : warps)
    if (int e = pthread_create(&w.thread, &small, runWarp, &w)) {
      fprintf(stderr, "made-up CUDA driver: no thread for a warp: %s\n", strerror(e));
      abort();
    }
  pthread_attr_destroy(&small);
  for (auto& w : warps) pthread_join(w.thread, nullptr);
  for (auto* t : teams) delete t;
}

double seconds() { return clockNow() * 1e-9; }

}  // namespace

thread_local HostThread hostThread;

// hostWait is a round of a waiting loop: yield first, then sleep, the longer the
// more rounds there were. Dozens of threads wait for one that works, and each that wakes
// too early takes its processor for a moment.
void hostWait(u32 round) {
  if (round < YIELDS) sched_yield();
  else std::this_thread::sleep_for(std::chrono::microseconds(std::min<u32>(100 + 10 * (round - YIELDS), 500)));
}

void hostBarrier(u32 id, u32 threads, bool stay) {
  Barrier& b = ((Team*)hostThread.team)->barrier[id];
  std::unique_lock<std::mutex> l(b.m);
  const uint64_t turn = b.turn;
  if (++b.here == threads) {
    b.here = 0;
    b.turn++;
    b.c.notify_all();
    return;
  }
  if (stay) b.c.wait(l, [&] { return b.turn != turn; });
}

#define CALL extern "C" __attribute__((visibility("default"))) int
#define MAY_FAIL(name) \
  if (int e = fails(name)) return e

// What tests set.
CALL fakeReset() {
  std::lock_guard<std::mutex> l(big);
  devices = 4, peers = true, apart = -1, room = int64_t(4) << 30;
  failing.clear();
  return OK;
}
CALL fakeDevices(int n) { return devices = n, OK; }
CALL fakePeers(int can) { return peers = can, OK; }
CALL fakeApart(int dev) { return apart = dev, OK; }
CALL fakeRoom(int64_t n) { return room = n, OK; }
CALL fakeFail(const char* call, int code, int after) {
  std::lock_guard<std::mutex> l(big);
  failing = call, failCode = code, failAfter = after;
  return OK;
}
CALL fakeUsed(int dev, int64_t* n) {
  std::lock_guard<std::mutex> l(big);
  return *n = used[dev], OK;
}

CALL cuInit(unsigned) { return OK; }
CALL cuDriverGetVersion(int* v) { return *v = 13000, OK; }
CALL cuDeviceGetCount(int* n) { return *n = devices, OK; }
CALL cuDeviceGet(int* d, int i) { return i < devices ? (*d = i, OK) : 101; }
CALL cuDeviceGetName(char* s, int n, int) { return strncpy(s, "made up", n), OK; }
CALL cuDeviceGetPCIBusId(char* s, int n, int d) { return snprintf(s, n, "0000:%02x:00.0", d + 1), OK; }
CALL cuDeviceGetByPCIBusId(int* d, const char* s) {
  unsigned bus;
  return sscanf(s, "0000:%x:00.0", &bus) == 1 && bus >= 1 && (int)bus <= devices ? (*d = bus - 1, OK) : 101;
}
CALL cuDeviceGetAttribute(int* v, int a, int) { return *v = a == 75 ? 9 : a == 76 ? 0 : 132, OK; }
CALL cuDevicePrimaryCtxRetain(uintptr_t* c, int d) { return *c = d + 1, OK; }
CALL cuDevicePrimaryCtxRelease_v2(int) { return OK; }
CALL cuCtxSetCurrent(uintptr_t c) { return current = (int)c - 1, OK; }
CALL cuCtxSynchronize() { return OK; }
static bool reach(int a, int b) { return a == b || (peers && a != apart && b != apart); }
CALL cuDeviceCanAccessPeer(int* can, int a, int b) { return *can = reach(a, b), OK; }
CALL cuCtxEnablePeerAccess(uintptr_t peer, unsigned) {
  MAY_FAIL("cuCtxEnablePeerAccess");
  return reach(current, (int)peer - 1) ? OK : NO_PEER;
}

// give takes a block out of a list and ends access to it.
int give(std::map<void*, Block>& list, void* p) {
  std::lock_guard<std::mutex> l(big);
  auto b = list.find(p);
  if (b == list.end()) return INVALID;
  if (b->second.dev >= 0 && &list == &owned) used[b->second.dev] -= b->second.bytes;
  const bool whole = dropBlock(b->second);
  list.erase(b);
  return whole ? OK : LAUNCH_FAILED;  // somebody wrote beyond its end
}

CALL cuMemAlloc_v2(void** p, size_t n) {
  MAY_FAIL("cuMemAlloc");
  std::lock_guard<std::mutex> l(big);
  Block b;
  if (used[current] + (int64_t)n > room || !newBlock(b, n, current)) return NO_MEMORY;
  memset(*p = b.at, UNUSED, std::min<size_t>(n, 64 << 10));
  owned[*p] = b;
  used[current] += n;
  return OK;
}
// As with the driver, what is queued on the default stream is done first. Other
// streams the caller must have waited for.
CALL cuMemFree_v2(void* p) {
  defaultOf(current)->drain();
  return give(owned, p);
}
CALL cuMemGetInfo_v2(size_t* f, size_t* t) {
  std::lock_guard<std::mutex> l(big);
  return *f = room - used[current], *t = room, OK;
}
CALL cuMemHostAlloc(void** p, size_t n, unsigned) {
  MAY_FAIL("cuMemHostAlloc");
  std::lock_guard<std::mutex> l(big);
  Block b;
  if (!newBlock(b, n, -1)) return NO_MEMORY;
  owned[*p = b.at] = b;
  return OK;
}
CALL cuMemFreeHost(void* p) { return cuMemFree_v2(p); }
CALL cuMemHostRegister_v2(void* p, size_t n, unsigned) {
  MAY_FAIL("cuMemHostRegister");
  std::lock_guard<std::mutex> l(big);
  return registered.emplace(p, n).second ? OK : REGISTERED;
}
CALL cuMemHostUnregister(void* p) {
  std::lock_guard<std::mutex> l(big);
  return registered.erase(p) ? OK : NOT_REGISTERED;
}
CALL cuMemHostGetDevicePointer_v2(void** d, void* h, unsigned) { return *d = h, OK; }
CALL cuMemcpyHtoD_v2(void* d, const void* h, size_t n) { return memcpy(d, h, n), OK; }
CALL cuMemcpyDtoH_v2(void* h, const void* d, size_t n) { return memcpy(h, d, n), OK; }
CALL cuMemcpyAsync(void* d, const void* s, size_t n, uintptr_t stream) {
  streamOf(stream)->put([=] { memmove(d, s, n); });
  return OK;
}
CALL cuMemsetD8Async(char* p, unsigned char v, size_t n, uintptr_t stream) {
  streamOf(stream)->put([=] { v ? (void)memset(p, v, n) : zero(p, n); });
  return OK;
}
CALL cuMemsetD32Async(void* p, unsigned v, size_t n, uintptr_t stream) {
  streamOf(stream)->put([=] { std::fill_n((unsigned*)p, n, v); });
  return OK;
}

CALL cuStreamCreate(uintptr_t* h, unsigned) {
  static uintptr_t last = 0x1000;  // no handle comes twice
  std::lock_guard<std::mutex> l(big);
  streams[*h = ++last] = new Stream;
  return OK;
}
// The stream ends when its work has; who destroys it does not wait.
CALL cuStreamDestroy_v2(uintptr_t h) {
  Stream* s = streamOf(h);
  {
    std::lock_guard<std::mutex> l(big);
    streams.erase(h);
  }
  std::lock_guard<std::mutex> l(s->m);
  s->ending = true;
  s->c.notify_all();
  return OK;
}
CALL cuStreamSynchronize(uintptr_t s) {
  MAY_FAIL("cuStreamSynchronize");
  return streamOf(s)->drain(), OK;
}
CALL cuStreamQuery(uintptr_t s) {
  MAY_FAIL("cuStreamQuery");
  if (streamOf(s)->idle()) return OK;
  hostWait(YIELDS);  // who asks gives way to who works
  return NOT_READY;
}

// A stream that waits for an event of a captured one is captured with it.
CALL cuStreamWaitEvent(uintptr_t h, Event* e, unsigned) {
  Stream* s = streamOf(h);
  const Event at = *e;
  std::unique_lock<std::mutex> l(at->m);
  const uint64_t turn = at->asked;
  if (auto c = at->capture; c && c->open) {
    std::lock_guard<std::mutex> ls(s->m);
    if (s->capture == c) return OK;
    if (s->capture) return ISOLATION;
    s->capture = c;
    c->streams.push_back(s);
    return OK;
  }
  l.unlock();
  if (s->capture) return ISOLATION;
  s->put([=] { at->wait(turn); });
  return OK;
}
CALL cuStreamBeginCapture_v2(uintptr_t h, int) {
  Stream* s = streamOf(h);
  std::lock_guard<std::mutex> l(s->m);
  s->capture = std::make_shared<Capture>();
  s->capture->streams.push_back(s);
  return OK;
}
CALL cuStreamEndCapture(uintptr_t h, Graph** g) {
  const auto c = streamOf(h)->capture;
  for (Stream* s : c->streams) {
    std::lock_guard<std::mutex> l(s->m);
    s->capture = nullptr;
  }
  c->open = false;
  *g = new Graph{std::move(c->tasks)};
  return OK;
}
CALL cuGraphInstantiateWithFlags(Graph** x, Graph* g, unsigned long long) { return *x = new Graph(*g), OK; }
CALL cuGraphLaunch(Graph* g, uintptr_t s) {
  for (auto& t : g->tasks) streamOf(s)->put(t);
  return OK;
}
CALL cuGraphExecDestroy(Graph* g) { return delete g, OK; }
CALL cuGraphDestroy(Graph* g) { return delete g, OK; }

CALL cuEventCreate(Event** e, unsigned) { return *e = new Event(std::make_shared<Moment>()), OK; }
CALL cuEventDestroy_v2(Event* e) { return delete e, OK; }
CALL cuEventRecord(Event* h, uintptr_t st) {
  Stream* s = streamOf(st);
  const Event e = *h;
  std::unique_lock<std::mutex> l(e->m);
  if ((e->capture = s->capture)) return OK;
  const uint64_t turn = ++e->asked;
  l.unlock();
  s->put([=] {
    std::lock_guard<std::mutex> l(e->m);
    e->at = seconds();
    e->done = std::max(e->done, turn);
    e->c.notify_all();
  });
  return OK;
}
CALL cuEventSynchronize(Event* h) {
  const Event e = *h;
  std::unique_lock<std::mutex> l(e->m);
  const uint64_t turn = e->asked;
  l.unlock();
  return e->wait(turn), OK;
}
CALL cuEventQuery(Event* e) {
  std::lock_guard<std::mutex> l((*e)->m);
  return (*e)->done >= (*e)->asked ? OK : NOT_READY;
}
CALL cuEventElapsedTime(float* ms, Event* a, Event* b) {
  const auto at = [](Moment& m) {
    std::lock_guard<std::mutex> l(m.m);
    return m.at;
  };
  return *ms = (float)((at(**b) - at(**a)) * 1e3), OK;
}

CALL cuModuleLoadData(uintptr_t* m, const void*) {
  MAY_FAIL("cuModuleLoadData");
  return *m = 1, OK;
}
CALL cuModuleUnload(uintptr_t) { return OK; }
CALL cuModuleGetFunction(Function** f, uintptr_t, const char* name) {
  void* fn = dlsym(RTLD_DEFAULT, name);
  if (!fn) return NOT_FOUND;
  const bool apart = !strcmp(name, "fill") || !strcmp(name, "check");
  const bool ofPlan = !strncmp(name, "plan_", 5) || !strncmp(name, "words_", 6) || !strncmp(name, "lines_", 6);
  const char* file = ofPlan ? "plan_args" : apart ? "check_args" : !strcmp(name, "tell_clock") ? "clock_args" : !strcmp(name, "add_ones") || !strcmp(name, "hold_stream") ? "compute_args" : !strncmp(name, "part_", 5) ? "parts_args" : "free_args";
  const unsigned* args = (const unsigned*)dlsym(RTLD_DEFAULT, file);
  if (!args) return NOT_FOUND;
  *f = new Function{(KernelFn)fn, *args, apart};
  return OK;
}
CALL cuLaunchKernel(Function* f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned, uintptr_t s, void** params, void**) {
  MAY_FAIL("cuLaunchKernel");
  Blob b = {};
  memcpy(&b, params[0], f->args);
  streamOf(s)->put([=] { launch(f, gx, bx, b); });
  return OK;
}
// Clusters say where blocks run, which is all the same here.
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  uintptr_t stream;
  void* attributes;
  unsigned count;
};
CALL cuLaunchKernelEx(LaunchConfig* c, Function* f, void** params, void**) {
  return cuLaunchKernel(f, c->grid[0], 1, 1, c->block[0], 1, 1, c->shared, c->stream, params, nullptr);
}

CALL cuIpcGetMemHandle(Handle* h, void* p) {
  std::lock_guard<std::mutex> l(big);
  auto b = owned.find(p);
  if (b == owned.end() || b->second.fd < 0) return INVALID;
  *h = Handle{getpid(), b->second.fd, b->second.dev, 0, b->second.bytes, {}};
  return OK;
}
CALL cuIpcOpenMemHandle_v2(void** p, Handle h, unsigned) {
  MAY_FAIL("cuIpcOpenMemHandle");
  if (h.pid == getpid()) return NO_CONTEXT;  // as the driver: for other processes only
  if (!reach(current, h.dev)) return NO_PEER;
  std::lock_guard<std::mutex> l(big);
  Block b;
  if (!openHandle(h, b)) return INVALID;
  opened[*p = b.at] = b;
  return OK;
}
CALL cuIpcCloseMemHandle(void* p) { return give(opened, p); }
CALL cuGetErrorName(int code, const char** s) {
  *s = code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == NO_PEER ? "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED" : "CUDA_ERROR";
  return OK;
}
