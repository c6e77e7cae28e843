// Test data: fill writes elements that every rank can compute, check compares
// a result with what the operation must give, to the last element. Values are
// small integers, exact in every element type, so one kernel serves all types:
// the host says how an integer is written in the type.
#include "device.h"

// Args is mirrored by checkArgs in check.go.
struct Args {
  u64 at, n;       // buffer and its elements
  u64 off;         // the input element of element 0
  u64 block;       // elements of one rank's part, where source is -1
  u64 wrong;       // two words: how many were wrong, and the first of them
  u32 size;        // bytes of an element
  u32 mantissa;    // bits of the mantissa, 0 for integers
  int bias;        // of the exponent
  u32 mod;         // inputs are below it
  int red;         // reduction, -1 for a copy
  int source;      // copy: the rank whose input it is; -1: rank i / block
  int ranks;
  u32 seed;
  u32 slack;       // units in the last place that an average may be off
};

ARGS(check);

// input is element i of rank r.
DEVICE u64 input(const Args& a, int r, u64 i) {
  u32 x = (u32)(i ^ (i >> 32)) + a.seed;
  if (a.red == 1) return 1 + ((x + (u32)r) & 1);
  if (a.red == 4) return (u64)a.ranks * ((x + (u32)r) % a.mod);
  return (x * 7 + (u32)r * 3) % a.mod;
}

// written is the integer v as bits of the type.
DEVICE u64 written(const Args& a, u64 v) {
  if (a.mantissa == 0 || v == 0) return a.size == 8 ? v : v & ((1ull << (8 * a.size)) - 1);
  u32 e = 0;
  while (v >> (e + 1)) e++;
  u64 m = e <= a.mantissa ? v << (a.mantissa - e) : v >> (e - a.mantissa);
  return ((u64)((int)e + a.bias) << a.mantissa) | (m & ((1ull << a.mantissa) - 1));
}

DEVICE void put(u64 p, u32 size, u64 v) {
  if (size == 1) *(u8*)p = (u8)v;
  else if (size == 2) *(u16*)p = (u16)v;
  else if (size == 4) *(u32*)p = (u32)v;
  else *(u64*)p = v;
}
DEVICE u64 get(u64 p, u32 size) {
  if (size == 1) return *(u8*)p;
  if (size == 2) return *(u16*)p;
  if (size == 4) return *(u32*)p;
  return *(u64*)p;
}

DEVICE u64 reduced(const Args& a, u64 i) {
  u64 acc = input(a, 0, i);
  for (int r = 1; r < a.ranks; r++) {
    u64 v = input(a, r, i);
    if (a.red == 1) acc *= v;
    else if (a.red == 2) acc = v > acc ? v : acc;
    else if (a.red == 3) acc = v < acc ? v : acc;
    else acc += v;
  }
  return a.red == 4 ? acc / (u64)a.ranks : acc;
}

DEVICE u64 first(void) { return (u64)block() * ntid() + tid(); }
DEVICE u64 stride(void) { return (u64)blocks() * ntid(); }

GLOBAL void fill(Args a) {
  for (u64 i = first(); i < a.n; i += stride()) put(a.at + i * a.size, a.size, written(a, input(a, a.source, a.off + i)));
}

GLOBAL void check(Args a) {
  u64 bad = 0, at = ~0ull;
  for (u64 i = first(); i < a.n; i += stride()) {
    u64 v;
    if (a.red >= 0 && a.source == -2) v = reduced(a, a.off + i);
    else if (a.source == -1) v = input(a, (int)(i / a.block), a.off + i % a.block);
    else v = input(a, a.source, a.off + i);
    u64 want = written(a, v), got = get(a.at + i * a.size, a.size);
    u64 far = want > got ? want - got : got - want;
    if (far > a.slack) {
      bad++;
      if (i < at) at = i;
    }
  }
  if (bad) {
    addNow(a.wrong, bad);
    minNow(a.wrong + 8, at);
  }
}
