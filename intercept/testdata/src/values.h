// Elements of buffers by type of NCCL's.
#ifndef VALUES_H
#define VALUES_H
#include "abi.h"
#include <math.h>

static const int size[10] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static uint16_t bits16(float f, int type) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if (type == ncclBfloat16) return (uint16_t)(u >> 16);
  int e = (int)(u >> 23 & 255) - 127 + 15;
  return f == 0 ? 0 : (uint16_t)(u >> 16 & 0x8000) | (uint16_t)(e << 10) | (uint16_t)(u >> 13 & 0x3ff);
}

static void put(void *p, int type, int i, double v) {
  switch (type) {
  case ncclInt8: ((int8_t *)p)[i] = (int8_t)v; break;
  case ncclUint8: ((uint8_t *)p)[i] = (uint8_t)v; break;
  case ncclInt32: ((int32_t *)p)[i] = (int32_t)v; break;
  case ncclUint32: ((uint32_t *)p)[i] = (uint32_t)v; break;
  case ncclInt64: ((int64_t *)p)[i] = (int64_t)v; break;
  case ncclUint64: ((uint64_t *)p)[i] = (uint64_t)v; break;
  case ncclFloat32: ((float *)p)[i] = (float)v; break;
  case ncclFloat64: ((double *)p)[i] = v; break;
  default: ((uint16_t *)p)[i] = bits16((float)v, type);
  }
}

static double get(const void *p, int type, int i) {
  uint16_t h;
  uint32_t u;
  float f;
  switch (type) {
  case ncclInt8: return ((const int8_t *)p)[i];
  case ncclUint8: return ((const uint8_t *)p)[i];
  case ncclInt32: return ((const int32_t *)p)[i];
  case ncclUint32: return ((const uint32_t *)p)[i];
  case ncclInt64: return (double)((const int64_t *)p)[i];
  case ncclUint64: return (double)((const uint64_t *)p)[i];
  case ncclFloat32: return ((const float *)p)[i];
  case ncclFloat64: return ((const double *)p)[i];
  }
  h = ((const uint16_t *)p)[i];
  if (type == ncclBfloat16) {
    u = (uint32_t)h << 16;
    memcpy(&f, &u, 4);
    return f;
  }
  return h == 0 ? 0 : ldexp(1 + (h & 0x3ff) / 1024.0, (h >> 10 & 31) - 15);
}
#endif
