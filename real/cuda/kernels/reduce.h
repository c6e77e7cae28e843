// Element types and reductions on 8-byte words.
#pragma once
#include "device.h"

struct F32 { float v; };
struct F16 { u16 v; };
struct BF16 { u16 v; };
struct I8 { signed char v; };
struct I32 { int v; };
struct I64 { long long v; };

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
DEVICE float bf16ToFloat(u16 b) {
  u32 u = (u32)b << 16;
  return *(float*)&u;
}
// Round to nearest even; a NaN keeps its top bits and stays a NaN.
DEVICE u16 floatToBF16(float f) {
  u32 u = *(u32*)&f;
  if ((u & 0x7fffffffu) > 0x7f800000u) return (u16)(u >> 16) | 0x40;
  return (u16)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

// Wide<T> is the type in which elements of T are combined.
template <typename T> struct Wide;
template <> struct Wide<F32> { typedef float W; static __attribute__((device,always_inline)) inline float get(F32 x) { return x.v; } static __attribute__((device,always_inline)) inline F32 put(float w) { return F32{w}; } };
template <> struct Wide<F16> { typedef float W; static __attribute__((device,always_inline)) inline float get(F16 x) { return halfToFloat(x.v); } static __attribute__((device,always_inline)) inline F16 put(float w) { return F16{floatToHalf(w)}; } };
template <> struct Wide<BF16> { typedef float W; static __attribute__((device,always_inline)) inline float get(BF16 x) { return bf16ToFloat(x.v); } static __attribute__((device,always_inline)) inline BF16 put(float w) { return BF16{floatToBF16(w)}; } };
template <> struct Wide<I8> { typedef int W; static __attribute__((device,always_inline)) inline int get(I8 x) { return x.v; } static __attribute__((device,always_inline)) inline I8 put(int w) { return I8{(signed char)w}; } };
template <> struct Wide<I32> { typedef int W; static __attribute__((device,always_inline)) inline int get(I32 x) { return x.v; } static __attribute__((device,always_inline)) inline I32 put(int w) { return I32{w}; } };
template <> struct Wide<I64> { typedef long long W; static __attribute__((device,always_inline)) inline long long get(I64 x) { return x.v; } static __attribute__((device,always_inline)) inline I64 put(long long w) { return I64{w}; } };

// Op numbers are ncclRedOp_t's; avg is sum here and is scaled at the end.
enum { SUM = 0, PROD = 1, MAX = 2, MIN = 3, AVG = 4 };

template <int OP, typename W> DEVICE W combine(W a, W b) {
  if (OP == PROD) return a * b;
  if (OP == MAX) return a > b ? a : b;
  if (OP == MIN) return a < b ? a : b;
  return a + b;
}

template <typename T> union Word {
  u64 u;
  T e[8 / sizeof(T)];
};

// red8 combines two words element by element.
template <typename T, int OP> DEVICE u64 red8(u64 a, u64 b) {
  Word<T> x, y;
  x.u = a;
  y.u = b;
#pragma unroll
  for (int i = 0; i < (int)(8 / sizeof(T)); i++)
    x.e[i] = Wide<T>::put(combine<OP>(Wide<T>::get(x.e[i]), Wide<T>::get(y.e[i])));
  return x.u;
}

// fin8 is what avg does to the sum: divide by the number of ranks.
template <typename T, int OP> DEVICE u64 fin8(u64 a, int n) {
  if (OP != AVG) return a;
  Word<T> x;
  x.u = a;
#pragma unroll
  for (int i = 0; i < (int)(8 / sizeof(T)); i++)
    x.e[i] = Wide<T>::put(Wide<T>::get(x.e[i]) / (typename Wide<T>::W)n);
  return x.u;
}
