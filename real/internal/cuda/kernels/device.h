// What the kernels need of CUDA, declared by hand: Debian's clang has no CUDA
// headers, and these few lines are all that is used. With HOST defined the same
// kernels are C++ for the CPU (host.h), where tests run them.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct Pack {
  u64 a, b;
};

#ifdef HOST
#include "host.h"
#else

enum { WARP = 32, LOOK = 1024 };

#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static inline __attribute__((device, always_inline))

// METHOD marks members of structs.
#define METHOD inline __attribute__((device, always_inline))

// SLOW keeps rare code out of line.
#define SLOW static __attribute__((device, noinline))

// BOUNDS tells the compiler the largest block, so that registers suffice.
#define BOUNDS(threads) __attribute__((launch_bounds(threads, 1)))

// SHARED declares the block's shared memory, once in a kernel.
#define SHARED(T, name) static __attribute__((shared)) T name

// ARGS_OF tells the driver of tests how long a kernel's arguments are.
#define ARGS_OF(file, T)
#define ARGS(file) ARGS_OF(file, Args)

DEVICE u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 ntid() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE void syncBlock() { __syncthreads(); }
// A 128-byte line moves in one piece only if all lanes of the warp issue it in
// one instruction, so lanes that took different branches must meet first.
DEVICE void syncWarp() { __nvvm_bar_warp_sync(0xffffffffu); }
DEVICE bool anyLane(bool p) { return __nvvm_vote_any_sync(0xffffffffu, p); }

// Barriers 1 to 15 of a block join some of its warps. Who arrives goes on.
DEVICE void syncSome(u32 id, u32 threads) { asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void arriveSome(u32 id, u32 threads) { asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// A line of 16 bytes moves between GPUs in one piece: two words and two flags
// (LL), or two 8-byte words (LL128, where eight lanes make a 128-byte line).
DEVICE void storeLine(u64 p, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEVICE void loadLine(u64 p, u32& a, u32& b, u32& c, u32& d) {
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(p) : "memory");
}
DEVICE void storeLine2(u64 p, u64 a, u64 b) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
DEVICE void loadLine2(u64 p, u64& a, u64& b) {
  asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}

// Flags and counters between GPUs.
DEVICE void storeRelease(u64 p, u32 v) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
DEVICE u32 loadAcquire(u64 p) {
  u32 v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEVICE void storeRelease8(u64 p, u64 v) { asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
DEVICE void storeRelaxed8(u64 p, u64 v) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
DEVICE u64 loadAcquire8(u64 p) {
  u64 v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
// Who waits looks with loads that order nothing, and acquires once: an acquiring
// load empties the cache of its multiprocessor each time.
DEVICE u64 loadRelaxed8(u64 p) {
  u64 v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
DEVICE u32 loadNow(u64 p) {
  u32 v;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEVICE void addNow(u64 p, u64 v) { asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
DEVICE void minNow(u64 p, u64 v) { asm volatile("red.relaxed.sys.global.min.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }

// Plain memory of the user's buffers; weak loads, since other GPUs write them
// only before the start barrier or after the end barrier of a kernel.
DEVICE u64 load8(u64 p) { return *(const u64*)p; }
DEVICE void store8(u64 p, u64 v) { *(u64*)p = v; }
DEVICE Pack load16(u64 p) {
  Pack v;
  asm volatile("ld.global.v2.u64 {%0,%1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(p) : "memory");
  return v;
}
DEVICE void store16(u64 p, Pack v) { asm volatile("st.global.v2.u64 [%0], {%1,%2};" ::"l"(p), "l"(v.a), "l"(v.b) : "memory"); }

// clockNow is the GPU's clock in nanoseconds.
DEVICE u64 clockNow() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

DEVICE void pause(u32) {}

DEVICE float halfToFloat(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
DEVICE u16 floatToHalf(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

// EACH_LANE runs what follows for this thread's lane of eight; on a CPU, where
// a warp is one thread, for all eight in turn.
#define EACH_LANE(l) for (u32 l = tid() & 7, once = 1; once; once = 0)

#endif

// Patience ends waits when the host has set the stop flag: a peer is gone, and
// nobody will come. It looks every LOOK rounds.
struct Patience {
  u64 flag;
  u32 rounds;
  bool gone;
  METHOD bool over() {
    pause(rounds);
    if (!gone && ++rounds % LOOK == 0) gone = loadNow(flag) != 0;
    return gone;
  }
};
DEVICE Patience patience(u64 flag) { return Patience{flag, 0, false}; }
