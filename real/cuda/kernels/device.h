// What the kernels need of CUDA, declared by hand: Debian's clang has no CUDA
// headers, and these few lines are all that is used.
#pragma once

#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static inline __attribute__((device, always_inline))

// SLOW keeps rare code out of line.
#define SLOW static __attribute__((device, noinline))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

DEVICE u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 ntid() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE void syncBlock() { __syncthreads(); }
// A 128-byte line moves in one piece only if all lanes of the warp issue it in
// one instruction, so lanes that took different branches must meet first.
DEVICE void syncWarp() { __nvvm_bar_warp_sync(0xffffffffu); }
DEVICE bool anyLane(bool p) { return __nvvm_vote_any_sync(0xffffffffu, p); }

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

// Flags of barriers between GPUs.
DEVICE void storeRelease(u64 p, u32 v) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
DEVICE u32 loadAcquire(u64 p) {
  u32 v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

// Plain memory of the user's buffers; weak loads, since other GPUs write them
// only before the start barrier or after the end barrier of a kernel.
DEVICE u64 load8(u64 p) { return *(const u64*)p; }
DEVICE void store8(u64 p, u64 v) { *(u64*)p = v; }
struct Pack {
  u64 a, b;
};
DEVICE Pack load16(u64 p) {
  Pack v;
  asm volatile("ld.global.v2.u64 {%0,%1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(p) : "memory");
  return v;
}
DEVICE void store16(u64 p, Pack v) { asm volatile("st.global.v2.u64 [%0], {%1,%2};" ::"l"(p), "l"(v.a), "l"(v.b) : "memory"); }
