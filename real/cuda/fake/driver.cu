// A CUDA driver for tests without a GPU: devices are this computer's memory,
// streams are threads, and kernels are the same sources compiled for the CPU
// (kernels/host.h). It knows what real/cuda calls, and can be told to fail.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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

#include "../kernels/device.h"

void hostWait(u32 round);

namespace {

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, PEER_ENABLED = 704 };

std::mutex big;  // guards what follows
int devices = 4;
bool peers = true;
int64_t room = int64_t(4) << 30;  // of each device
std::map<void*, std::pair<int, int64_t>> blocks_;
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

struct Moment {
  std::mutex m;
  std::condition_variable c;
  bool done = true;
  double at = 0;
};
// An event's moment outlives its handle while a stream has still to tell it.
typedef std::shared_ptr<Moment> Event;

struct Graph {
  std::vector<Task> tasks;
};

struct Stream {
  std::mutex m;
  std::condition_variable c;
  std::deque<Task> queue;
  bool busy = false, ending = false;
  Graph* capture = nullptr;
  std::thread thread;
  Stream() : thread([this] { loop(); }) {}
  void loop() {
    std::unique_lock<std::mutex> l(m);
    for (;;) {
      c.wait(l, [this] { return ending || !queue.empty(); });
      if (queue.empty()) return;
      Task t = std::move(queue.front());
      queue.pop_front();
      busy = true;
      l.unlock();
      t();
      l.lock();
      busy = false;
      c.notify_all();
    }
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
  void drain() {
    std::unique_lock<std::mutex> l(m);
    c.wait(l, [this] { return queue.empty() && !busy; });
  }
};

Stream* streamOf(uintptr_t s) {
  static std::map<int, Stream*> defaults;
  if (s) return (Stream*)s;
  std::lock_guard<std::mutex> l(big);
  Stream*& d = defaults[current];
  if (!d) d = new Stream;
  return d;
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
  char bytes[512];
};
typedef void (*KernelFn)(Blob);

struct Function {
  KernelFn fn;
  size_t args;
  bool apart;  // its threads never meet: one of ours runs them all
};

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
  std::vector<std::thread> all;
  std::vector<Team*> teams;
  for (uint32_t i = 0; i < blocks; i++) {
    teams.push_back(new Team);
    for (uint32_t t = 0; t < threads; t++)
      all.emplace_back([=] {
        hostThread = HostThread{t, threads, i, blocks, teams[i]->shared, teams[i]};
        f->fn(b);
      });
  }
  for (auto& t : all) t.join();
  for (auto* t : teams) delete t;
}

double seconds() { return clockNow() * 1e-9; }

}  // namespace

thread_local HostThread hostThread;

// hostWait is a round of a waiting loop: yield first, then sleep.
void hostWait(u32 round) {
  if (round < 64) sched_yield();
  else std::this_thread::sleep_for(std::chrono::microseconds(20));
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
  devices = 4, peers = true, room = int64_t(4) << 30;
  failing.clear();
  return OK;
}
CALL fakeDevices(int n) { return devices = n, OK; }
CALL fakePeers(int can) { return peers = can, OK; }
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
CALL cuDeviceGetAttribute(int* v, int a, int) { return *v = a == 75 ? 9 : a == 76 ? 0 : 132, OK; }
CALL cuDevicePrimaryCtxRetain(uintptr_t* c, int d) { return *c = d + 1, OK; }
CALL cuDevicePrimaryCtxRelease_v2(int) { return OK; }
CALL cuCtxSetCurrent(uintptr_t c) { return current = (int)c - 1, OK; }
CALL cuCtxSynchronize() { return OK; }
CALL cuDeviceCanAccessPeer(int* can, int, int) { return *can = peers, OK; }
CALL cuCtxEnablePeerAccess(uintptr_t, unsigned) {
  MAY_FAIL("cuCtxEnablePeerAccess");
  return peers ? OK : 217;
}

CALL cuMemAlloc_v2(void** p, size_t n) {
  MAY_FAIL("cuMemAlloc");
  std::lock_guard<std::mutex> l(big);
  if (used[current] + (int64_t)n > room) return NO_MEMORY;
  *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*p == MAP_FAILED) return NO_MEMORY;
  memset(*p, 0x5a, n < (64 << 10) ? n : 64 << 10);
  blocks_[*p] = {current, (int64_t)n};
  used[current] += n;
  return OK;
}
CALL cuMemFree_v2(void* p) {
  streamOf(0)->drain();  // as the driver does: nothing is filled that is gone
  std::lock_guard<std::mutex> l(big);
  auto b = blocks_.find(p);
  if (b == blocks_.end()) return INVALID;
  used[b->second.first] -= b->second.second;
  munmap(p, b->second.second);
  blocks_.erase(b);
  return OK;
}
CALL cuMemGetInfo_v2(size_t* f, size_t* t) { return *f = room - used[current], *t = room, OK; }
CALL cuMemHostAlloc(void** p, size_t n, unsigned) {
  MAY_FAIL("cuMemHostAlloc");
  return posix_memalign(p, 4096, n) ? (int)NO_MEMORY : (memset(*p, 0, n), (int)OK);
}
CALL cuMemFreeHost(void* p) { return streamOf(0)->drain(), free(p), OK; }
CALL cuMemHostRegister_v2(void*, size_t, unsigned) { return OK; }
CALL cuMemHostUnregister(void*) { return OK; }
CALL cuMemHostGetDevicePointer_v2(void** d, void* h, unsigned) { return *d = h, OK; }
CALL cuMemcpyHtoD_v2(void* d, const void* h, size_t n) { return memcpy(d, h, n), OK; }
CALL cuMemcpyDtoH_v2(void* h, const void* d, size_t n) { return memcpy(h, d, n), OK; }
CALL cuMemcpyAsync(void* d, const void* s, size_t n, uintptr_t stream) {
  streamOf(stream)->put([=] { memmove(d, s, n); });
  return OK;
}
CALL cuMemsetD8Async(void* p, unsigned char v, size_t n, uintptr_t stream) {
  streamOf(stream)->put([=] {
    const uintptr_t page = 4096, lo = ((uintptr_t)p + page - 1) / page * page, hi = ((uintptr_t)p + n) / page * page;
    if (v == 0 && lo < hi) madvise((void*)lo, hi - lo, MADV_DONTNEED);  // large arenas stay unbacked
    else memset(p, v, n);
    if (v == 0 && lo < hi) memset(p, v, lo - (uintptr_t)p), memset((void*)hi, v, (uintptr_t)p + n - hi);
  });
  return OK;
}
CALL cuMemsetD32Async(void* p, unsigned v, size_t n, uintptr_t stream) {
  streamOf(stream)->put([=] { std::fill_n((unsigned*)p, n, v); });
  return OK;
}

CALL cuStreamCreate(uintptr_t* s, unsigned) { return *s = (uintptr_t) new Stream, OK; }
CALL cuStreamDestroy_v2(uintptr_t h) {
  Stream* s = (Stream*)h;
  {
    std::lock_guard<std::mutex> l(s->m);
    s->ending = true;
    s->c.notify_all();
  }
  s->thread.join();
  delete s;
  return OK;
}
CALL cuStreamSynchronize(uintptr_t s) {
  MAY_FAIL("cuStreamSynchronize");
  return streamOf(s)->drain(), OK;
}
CALL cuStreamQuery(uintptr_t h) {
  MAY_FAIL("cuStreamQuery");
  Stream* s = streamOf(h);
  {
    std::lock_guard<std::mutex> l(s->m);
    if (s->queue.empty() && !s->busy) return OK;
  }
  hostWait(1 << 10);  // who asks gives way to who works
  return NOT_READY;
}
CALL cuStreamWaitEvent(uintptr_t s, Event* e, unsigned) {
  streamOf(s)->put([e = *e] {
    std::unique_lock<std::mutex> l(e->m);
    e->c.wait(l, [&] { return e->done; });
  });
  return OK;
}
CALL cuStreamBeginCapture_v2(uintptr_t s, int) { return streamOf(s)->capture = new Graph, OK; }
CALL cuStreamEndCapture(uintptr_t s, Graph** g) {
  *g = streamOf(s)->capture;
  streamOf(s)->capture = nullptr;
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
CALL cuEventRecord(Event* e, uintptr_t s) {
  {
    std::lock_guard<std::mutex> l((*e)->m);
    (*e)->done = false;
  }
  streamOf(s)->put([e = *e] {
    std::lock_guard<std::mutex> l(e->m);
    e->at = seconds();
    e->done = true;
    e->c.notify_all();
  });
  return OK;
}
CALL cuEventSynchronize(Event* h) {
  const Event e = *h;
  std::unique_lock<std::mutex> l(e->m);
  e->c.wait(l, [&] { return e->done; });
  return OK;
}
CALL cuEventQuery(Event* e) {
  std::lock_guard<std::mutex> l((*e)->m);
  return (*e)->done ? OK : NOT_READY;
}
CALL cuEventElapsedTime(float* ms, Event* a, Event* b) { return *ms = (float)(((*b)->at - (*a)->at) * 1e3), OK; }

CALL cuModuleLoadData(uintptr_t* m, const void*) {
  MAY_FAIL("cuModuleLoadData");
  return *m = 1, OK;
}
CALL cuModuleUnload(uintptr_t) { return OK; }
CALL cuModuleGetFunction(Function** f, uintptr_t, const char* name) {
  void* fn = dlsym(RTLD_DEFAULT, name);
  if (!fn) return NOT_FOUND;
  const bool apart = !strcmp(name, "fill") || !strcmp(name, "check");
  const char* file = !strncmp(name, "plan_", 5) ? "plan_args" : apart ? "check_args" : !strcmp(name, "tell_clock") ? "clock_args" : "free_args";
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

// A handle is the address: only this process can open it.
CALL cuIpcGetMemHandle(void** h, void* p) {
  memset(h, 0, 64);
  return *h = p, OK;
}
struct Handle {
  void* p;
  char rest[56];
};
CALL cuIpcOpenMemHandle_v2(void** p, Handle h, unsigned) { return *p = h.p, OK; }
CALL cuIpcCloseMemHandle(void*) { return OK; }
CALL cuGetErrorName(int code, const char** s) {
  *s = code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 217 ? "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED" : "CUDA_ERROR";
  return OK;
}
