// The kernels on a CPU, for tests: a warp is one thread, a block some threads
// that meet at barriers, and memory is coherent. Only device.h includes it;
// the fake driver (../fake/driver.cu) starts the threads.
#pragma once
#include <string.h>
#include <time.h>

enum { WARP = 1, LOOK = 64 };

// Where is this thread in its grid; the driver sets it.
struct HostThread {
  u32 tid, ntid, block, blocks;
  void* shared;
  void* team;
};
extern thread_local HostThread hostThread;
void hostBarrier(u32 id, u32 threads, bool stay);
void hostWait(u32 round);

#define GLOBAL extern "C"
#define DEVICE static inline __attribute__((unused))
#define METHOD inline
#define SLOW static __attribute__((unused))
#define BOUNDS(threads)
#define SHARED(T, name) static_assert(sizeof(T) <= 64 << 10, "shared memory"); T& name = *(T*)hostThread.shared

// ARGS_OF tells the driver how long a kernel's arguments are.
#define ARGS_OF(file, T) extern "C" __attribute__((weak, visibility("default"))) const unsigned file##_args = sizeof(T)
#define ARGS(file) ARGS_OF(file, Args)

DEVICE u32 tid() { return hostThread.tid; }
DEVICE u32 ntid() { return hostThread.ntid; }
DEVICE u32 block() { return hostThread.block; }
DEVICE u32 blocks() { return hostThread.blocks; }
DEVICE void syncBlock() { hostBarrier(0, hostThread.ntid, true); }
DEVICE void syncWarp() {}
DEVICE bool anyLane(bool p) { return p; }
DEVICE void syncSome(u32 id, u32 threads) { hostBarrier(id, threads, true); }
DEVICE void arriveSome(u32 id, u32 threads) { hostBarrier(id, threads, false); }

DEVICE u64 loadAcquire8(u64 p) { return __atomic_load_n((u64*)p, __ATOMIC_ACQUIRE); }
DEVICE u64 loadRelaxed8(u64 p) { return __atomic_load_n((u64*)p, __ATOMIC_RELAXED); }
DEVICE void storeRelease8(u64 p, u64 v) { __atomic_store_n((u64*)p, v, __ATOMIC_RELEASE); }
DEVICE void storeRelaxed8(u64 p, u64 v) { storeRelease8(p, v); }
DEVICE u32 loadAcquire(u64 p) { return __atomic_load_n((u32*)p, __ATOMIC_ACQUIRE); }
DEVICE void storeRelease(u64 p, u32 v) { __atomic_store_n((u32*)p, v, __ATOMIC_RELEASE); }
DEVICE u32 loadNow(u64 p) { return loadAcquire(p); }
DEVICE void addNow(u64 p, u64 v) { __atomic_fetch_add((u64*)p, v, __ATOMIC_RELAXED); }
DEVICE void minNow(u64 p, u64 v) {
  u64 old = __atomic_load_n((u64*)p, __ATOMIC_RELAXED);
  while (v < old && !__atomic_compare_exchange_n((u64*)p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// Halves of a line become visible in order, each with its own flag.
DEVICE void storeLine2(u64 p, u64 a, u64 b) {
  storeRelease8(p, a);
  storeRelease8(p + 8, b);
}
DEVICE void loadLine2(u64 p, u64& a, u64& b) {
  b = loadAcquire8(p + 8);
  a = loadAcquire8(p);
}
DEVICE void storeLine(u64 p, u32 a, u32 b, u32 c, u32 d) { storeLine2(p, (u64)b << 32 | a, (u64)d << 32 | c); }
DEVICE void loadLine(u64 p, u32& a, u32& b, u32& c, u32& d) {
  u64 x, y;
  loadLine2(p, x, y);
  a = (u32)x, b = (u32)(x >> 32), c = (u32)y, d = (u32)(y >> 32);
}

DEVICE u64 load8(u64 p) { return *(const u64*)p; }
DEVICE void store8(u64 p, u64 v) { *(u64*)p = v; }
DEVICE Pack load16(u64 p) { return *(const Pack*)p; }
DEVICE void store16(u64 p, Pack v) { *(Pack*)p = v; }

DEVICE u64 clockNow() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}
DEVICE void pause(u32 round) { hostWait(round); }

// Half precision by hand: not every compiler has it on every CPU.
DEVICE float halfToFloat(u16 h) {
  const u32 exp = h >> 10 & 31, man = h & 1023;
  float v = exp == 0 ? man * 0x1p-24f : exp == 31 ? (man ? __builtin_nanf("") : __builtin_inff()) : __builtin_ldexpf((float)(man | 1024), (int)exp - 25);
  return h >> 15 ? -v : v;
}
DEVICE u16 floatToHalf(float f) {
  const u16 sign = __builtin_signbit(f) ? 0x8000 : 0;
  const float a = __builtin_fabsf(f);
  if (a != a) return sign | 0x7fff;
  if (a >= 65520.f) return sign | 0x7c00;
  int e;
  __builtin_frexpf(a, &e);
  const int exp = e - 1 < -14 ? -14 : e - 1;
  const u32 man = (u32)__builtin_nearbyintf(__builtin_ldexpf(a, 10 - exp));
  return sign | (u16)(man < 1024 ? man : ((u32)(exp + 15) << 10) + man - 1024);
}

#define EACH_LANE(l) for (u32 l = 0; l < 8; l++)
