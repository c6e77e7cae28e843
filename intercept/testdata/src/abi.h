// What the examples need of NCCL's and CUDA's interfaces, by their manuals.
#ifndef ABI_H
#define ABI_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef void *cudaStream_t, *cudaEvent_t, *cudaGraph_t, *cudaGraphExec_t;
typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char *netName;
  int splitShare, trafficClass;
  const char *commName;
  int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
} ncclConfig_t;
#define UNDEF (-2147483647 - 1)
#define NCCL_CONFIG_INITIALIZER {sizeof(ncclConfig_t), 0xcafebeef, 22809, UNDEF, UNDEF, UNDEF, UNDEF, NULL, UNDEF, UNDEF, NULL, UNDEF, UNDEF, UNDEF, UNDEF, UNDEF, UNDEF}
enum { ncclSuccess, ncclUnhandledCudaError, ncclSystemError, ncclInternalError, ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError, ncclInProgress };
enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg };
enum { ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64, ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2 };

int ncclGetVersion(int *);
int ncclGetUniqueId(ncclUniqueId *);
int ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
int ncclCommInitRankConfig(ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);
int ncclCommInitRankScalable(ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *);
int ncclCommInitAll(ncclComm_t *, int, const int *);
int ncclCommFinalize(ncclComm_t);
int ncclCommDestroy(ncclComm_t);
int ncclCommAbort(ncclComm_t);
int ncclCommRevoke(ncclComm_t, int);
int ncclCommSplit(ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *);
int ncclCommShrink(ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int);
const char *ncclGetErrorString(int);
const char *ncclGetLastError(ncclComm_t);
int ncclCommGetAsyncError(ncclComm_t, int *);
int ncclCommCount(ncclComm_t, int *);
int ncclCommCuDevice(ncclComm_t, int *);
int ncclCommUserRank(ncclComm_t, int *);
int ncclCommRegister(ncclComm_t, void *, size_t, void **);
int ncclCommDeregister(ncclComm_t, void *);
int ncclCommWindowRegister(ncclComm_t, void *, size_t, void **, int);
int ncclCommWindowDeregister(ncclComm_t, void *);
int ncclMemAlloc(void **, size_t);
int ncclMemFree(void *);
int ncclRedOpCreatePreMulSum(int *, void *, int, int, ncclComm_t);
int ncclRedOpDestroy(int, ncclComm_t);
int ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclReduce(const void *, void *, size_t, int, int, int, ncclComm_t, cudaStream_t);
int ncclBroadcast(const void *, void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclAllGather(const void *, void *, size_t, int, ncclComm_t, cudaStream_t);
int ncclReduceScatter(const void *, void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclAlltoAll(const void *, void *, size_t, int, ncclComm_t, cudaStream_t);
int ncclGather(const void *, void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclScatter(const void *, void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclSend(const void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclRecv(void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclGroupStart(void);
int ncclGroupEnd(void);
typedef struct { size_t size; unsigned magic, version; float estimatedTime; } ncclSimInfo_t;
int ncclGroupSimulateEnd(ncclSimInfo_t *);
int ncclCommGrow(void);

int cudaGetDeviceCount(int *);
int cudaSetDevice(int);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpyAsync(void *, const void *, size_t, int, cudaStream_t);
int cudaMemset(void *, int, size_t);
int cudaStreamCreate(cudaStream_t *);
int cudaStreamCreateWithFlags(cudaStream_t *, unsigned);
int cudaStreamDestroy(cudaStream_t);
int cudaStreamSynchronize(cudaStream_t);
int cudaStreamQuery(cudaStream_t);
int cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
int cudaDeviceSynchronize(void);
int cudaEventCreate(cudaEvent_t *);
int cudaEventRecord(cudaEvent_t, cudaStream_t);
int cudaEventSynchronize(cudaEvent_t);
int cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t);
int cudaStreamBeginCapture(cudaStream_t, int);
int cudaStreamEndCapture(cudaStream_t, cudaGraph_t *);
int cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t, unsigned long long);
int cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
int cudaLaunchHostFunc(cudaStream_t, void (*)(void *), void *);

// OK ends the program unless a call returns what it should.
#define IS(want, call) do { int is_ = (call); if (is_ != (want)) { fprintf(stderr, "%s:%d: %s returned %d and not %d: %s\n", __FILE__, __LINE__, #call, is_, (want), ncclGetLastError(NULL)); exit(1); } } while (0)
#define OK(call) IS(0, call)
#define TRUE(cond) do { if (!(cond)) { fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); exit(1); } } while (0)

static inline int64_t nanos(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
#endif
