// What libnccl.so.2 asks of libsimccl-live.so, which has the real GPUs of a process
// take part in a virtual cluster.
#ifndef SIMCCL_LIVE_H
#define SIMCCL_LIVE_H

#include "shim.h"

// Requests beyond those of shim.h.
enum { REQ_SEGMENT = 40, REQ_SEGMENT_DONE, REQ_ATTEND, REQ_MOVED, REQ_PARKED, REQ_TURN, REQ_BACKLOG, REQ_ASTRAY };

// A buffer as another process finds it: an allocation that CUDA shares, and a place
// in it. 96 bytes.
struct shared {
  char handle[64];
  uint64_t base, offset, size;
  uint32_t known, pid;
};

// Kinds of what a thread that attends is asked to do.
enum { ACTION_RELEASE = 1, ACTION_MOVE };

// A step of a move: n sources are reduced into m places; a copy has one of each.
struct step {
  int32_t kind, type, op, n, m;
  int32_t pad;
  uint64_t count; // bytes of a copy, elements of a reduction
  // then n + m places, and n scalars of 8 bytes where op is SCALED
};
enum { STEP_COPY, STEP_REDUCE };
struct place {
  uint32_t buffer, pad;
  uint64_t offset;
};
enum { OP_SUM, OP_PROD, OP_MAX, OP_MIN, OP_AVG, OP_SCALED };

struct live {
  // tell has the collector know of the calls that hosts went on at, before it is asked for anything.
  void (*tell)(void);
  int (*start)(char *text, size_t room);
  int (*group)(struct op *ops, int n, struct reply *out, char *text, size_t room);
};
PUBLIC const struct live *simccl_live(void);

typedef int error;
typedef void *handle;
// The functions of CUDA's driver that are used: by ranks, and by who moves data. Streams
// and events are the runtime's.
#define DRIVER(X)                                                    \
  X(cuCtxGetCurrent, (handle *))                                     \
  X(cuCtxSetCurrent, (handle))                                       \
  X(cuEventCreate, (handle *, unsigned))                             \
  X(cuEventRecord, (handle, handle))                                 \
  X(cuEventQuery, (handle))                                          \
  X(cuEventElapsedTime, (float *, handle, handle))                   \
  X(cuStreamWaitEvent, (handle, handle, unsigned))                   \
  X(cuStreamQuery, (handle))                                         \
  X(cuStreamIsCapturing, (handle, int *))                            \
  X(cuStreamGetFlags, (handle, unsigned *))                          \
  X(cuStreamWaitValue32_v2, (handle, uint64_t, uint32_t, unsigned))  \
  X(cuStreamWriteValue32_v2, (handle, uint64_t, uint32_t, unsigned)) \
  X(cuStreamGetCaptureInfo, (handle, int *, uint64_t *))             \
  X(cuEventRecordWithFlags, (handle, handle, unsigned))              \
  X(cuMemHostAlloc, (void **, size_t, unsigned))                     \
  X(cuMemHostGetDevicePointer_v2, (uint64_t *, void *, unsigned))    \
  X(cuMemGetAddressRange_v2, (uint64_t *, size_t *, uint64_t))       \
  X(cuPointerGetAttribute, (void *, int, uint64_t))                  \
  X(cuIpcGetMemHandle, (void *, uint64_t))                           \
  X(cuDeviceGetPCIBusId, (char *, int, int))                         \
  X(cuCtxGetDevice, (int *))                                         \
  X(cuThreadExchangeStreamCaptureMode, (int *))
#define MOVER(X)                                                     \
  X(cuInit, (unsigned))                                              \
  X(cuDevicePrimaryCtxRetain, (handle *, int))                       \
  X(cuCtxSetCurrent, (handle))                                       \
  X(cuStreamCreate, (handle *, unsigned))                            \
  X(cuStreamSynchronize, (handle))                                   \
  X(cuMemAlloc_v2, (uint64_t *, size_t))                             \
  X(cuIpcCloseMemHandle, (uint64_t))                                 \
  X(cuMemcpyAsync, (uint64_t, uint64_t, size_t, handle))             \
  X(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, handle))  \
  X(cuModuleLoadData, (handle *, const void *))                      \
  X(cuModuleGetFunction, (handle *, handle, const char *))           \
  X(cuLaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))
struct ipc { char bytes[64]; };

#endif
