// Element types and reductions, element by element and on 8-byte words.
#pragma once
#include "device.h"

DEVICE float bf16ToFloat(u16 b) {
  u32 u = (u32)b << 16;
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
// Round to nearest even; a NaN keeps its top bits and stays a NaN.
DEVICE u16 floatToBF16(float f) {
  u32 u;
  __builtin_memcpy(&u, &f, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (u16)(u >> 16) | 0x40;
  return (u16)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

// An element type: S is how it is stored, W the type in which it is combined.
#define ELEMENT(Name, S, Wide, toWide, fromWide)            \
  struct Name {                                             \
    typedef Wide W;                                         \
    S v;                                                    \
    METHOD static W get(Name x) { return toWide(x.v); }     \
    METHOD static Name put(W w) { return Name{(S)fromWide(w)}; } \
    METHOD static Name now(u64 p) { return Name{*(volatile const S*)p}; } \
  };
ELEMENT(F64, double, double, , )
ELEMENT(F32, float, float, , )
ELEMENT(F16, u16, float, halfToFloat, floatToHalf)
ELEMENT(BF16, u16, float, bf16ToFloat, floatToBF16)
ELEMENT(I8, signed char, int, , )
ELEMENT(U8, u8, u32, , )
ELEMENT(I32, int, int, , )
ELEMENT(U32, u32, u32, , )
ELEMENT(I64, long long, long long, , )
ELEMENT(U64, u64, u64, , )

// Op numbers are ncclRedOp_t's; avg is sum here and is scaled at the end.
enum { SUM = 0, PROD = 1, MAX = 2, MIN = 3, AVG = 4 };

template <int OP, typename W> DEVICE W combine(W a, W b) {
  if (OP == PROD) return a * b;
  if (OP == MAX) return a > b ? a : b;
  if (OP == MIN) return a < b ? a : b;
  return a + b;
}

template <typename T, int OP> DEVICE T red1(T a, T b) { return T::put(combine<OP>(T::get(a), T::get(b))); }

// fin1 is what avg does to the sum: divide by the number of ranks.
template <typename T, int OP> DEVICE T fin1(T a, int n) { return OP == AVG ? T::put(T::get(a) / (typename T::W)n) : a; }

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
  for (int i = 0; i < (int)(8 / sizeof(T)); i++) x.e[i] = red1<T, OP>(x.e[i], y.e[i]);
  return x.u;
}

template <typename T, int OP> DEVICE u64 fin8(u64 a, int n) {
  if (OP != AVG) return a;
  Word<T> x;
  x.u = a;
#pragma unroll
  for (int i = 0; i < (int)(8 / sizeof(T)); i++) x.e[i] = fin1<T, OP>(x.e[i], n);
  return x.u;
}

template <typename T, int OP> DEVICE Pack red16(Pack a, Pack b) { return Pack{red8<T, OP>(a.a, b.a), red8<T, OP>(a.b, b.b)}; }
template <typename T, int OP> DEVICE Pack fin16(Pack a, int n) { return Pack{fin8<T, OP>(a.a, n), fin8<T, OP>(a.b, n)}; }
