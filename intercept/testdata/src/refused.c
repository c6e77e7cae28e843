// Every call that NCCL refuses has its code, and a text for ncclGetLastError that is its own; the
// program goes on behind each. Arguments are names of functions of later versions.
#define _GNU_SOURCE
#include "abi.h"
#include <dlfcn.h>

int ncclDevCommCreate(ncclComm_t, const void *, void *);
int ncclDevCommDestroy(ncclComm_t, const void *);
int ncclLsaBarrierCreateRequirement(void);
int ncclGinBarrierCreateRequirement(void);
int ncclLLA2ACreateRequirement(void);
int ncclLLA2ACalcSlots(int, int);

// REFUSED ends the program unless a call returns a code and leaves a text that says something.
#define REFUSED(code, says, call)                                                                                       \
  do {                                                                                                                  \
    (void)ncclGroupEnd();                                                                                               \
    int is_ = (call);                                                                                                   \
    const char *text_ = ncclGetLastError(NULL);                                                                         \
    if (is_ != (code) || !strstr(text_, says) || strstr(text_, "ncclGroupEnd: there is no")) {                          \
      fprintf(stderr, "%s:%d: %s returned %d and not %d, and says %s\n", __FILE__, __LINE__, #call, is_, (code), text_); \
      exit(1);                                                                                                          \
    }                                                                                                                   \
  } while (0)

static ncclComm_t c[2], none;
static ncclUniqueId id;
static char *buf[2];
static cudaStream_t st[2];

static void making(void) {
  int same[2] = {1, 1}, far[1] = {4096};
  ncclComm_t x;
  REFUSED(ncclInvalidArgument, "NULL", ncclGetVersion(NULL));
  REFUSED(ncclInvalidArgument, "NULL", ncclGetUniqueId(NULL));
  REFUSED(ncclInvalidArgument, "rank 2 of 2", ncclCommInitRank(&x, 2, id, 2));
  REFUSED(ncclInvalidArgument, "rank -1 of 2", ncclCommInitRank(&x, 2, id, -1));
  REFUSED(ncclInvalidArgument, "0 ranks", ncclCommInitRank(&x, 0, id, 0));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommInitRank(NULL, 1, id, 0));
  REFUSED(ncclInvalidUsage, "take more nodes", ncclCommInitRank(&x, 100000, id, 0));
  REFUSED(ncclInvalidArgument, "0 ids", ncclCommInitRankScalable(&x, 2, 0, 0, &id, NULL));
  REFUSED(ncclInvalidArgument, "3 ids", ncclCommInitRankScalable(&x, 2, 0, 3, &id, NULL));
  REFUSED(ncclInvalidArgument, "1 ids", ncclCommInitRankScalable(&x, 2, 0, 1, NULL, NULL));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommInitAll(NULL, 1, same));
  REFUSED(ncclInvalidArgument, "-1 devices", ncclCommInitAll(&x, -1, NULL));
  REFUSED(ncclInvalidUsage, "twice", ncclCommInitAll(&x, 2, same));
  REFUSED(ncclInvalidArgument, "4096", ncclCommInitAll(&x, 1, far));
  REFUSED(ncclUnhandledCudaError, "more nodes", ncclCommInitAll(&x, 5000, NULL));
}

static void configured(void) {
  ncclComm_t x;
  const ncclConfig_t good = NCCL_CONFIG_INITIALIZER;
  ncclConfig_t bad = good;
#define BAD(field, value)                                                            \
  bad = good, bad.field = value;                                                     \
  REFUSED(ncclInvalidArgument, #field, ncclCommInitRankConfig(&x, 1, id, 0, &bad))
  BAD(blocking, 2);
  BAD(cgaClusterSize, -1);
  BAD(minCTAs, 0);
  BAD(maxCTAs, -3);
  BAD(splitShare, 2);
  BAD(collnetEnable, 5);
  BAD(CTAPolicy, 3);
  BAD(shrinkShare, -1);
  BAD(nvlsCTAs, 0);
  BAD(nChannelsPerNetPeer, 65);
  BAD(nvlinkCentricSched, 2);
  bad = good, bad.minCTAs = 8, bad.maxCTAs = 4;
  REFUSED(ncclInvalidArgument, "minCTAs", ncclCommInitRankConfig(&x, 1, id, 0, &bad));
  bad = good, bad.magic = 1;
  REFUSED(ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER", ncclCommInitRankConfig(&x, 1, id, 0, &bad));
  bad = good, bad.version = 21300, bad.splitShare = UNDEF, bad.blocking = 77; // not known to that version
  OK(ncclCommInitRankConfig(&x, 1, id, 0, &bad));
  OK(ncclCommDestroy(x));
}

static void lives(void) {
  ncclComm_t x, gone;
  int self[1] = {0}, far[1] = {9}, n;
  OK(ncclCommInitAll(&gone, 1, NULL));
  OK(ncclCommDestroy(gone));
  REFUSED(ncclInvalidArgument, "destroyed", ncclCommDestroy(gone));
  REFUSED(ncclInvalidArgument, "destroyed", ncclCommAbort(gone));
  REFUSED(ncclInvalidArgument, "destroyed", ncclCommFinalize(gone));
  REFUSED(ncclInvalidArgument, "destroyed", ncclCommRevoke(gone, 0));
  REFUSED(ncclInvalidArgument, "destroyed", ncclCommCount(gone, &n));
  REFUSED(ncclInvalidArgument, "destroyed", ncclCommSplit(gone, 0, 0, &x, NULL));
  REFUSED(ncclInvalidArgument, "destroyed", ncclAllReduce(buf[0], buf[0], 1, ncclInt32, ncclSum, gone, st[0]));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommCount(none, &n));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommCount(c[0], NULL));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommCuDevice(none, &n));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommCuDevice(c[0], NULL));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommUserRank(none, &n));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommUserRank(c[0], NULL));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommGetAsyncError(none, &n));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommGetAsyncError(c[0], NULL));
  REFUSED(ncclInvalidArgument, "color -2", ncclCommSplit(c[0], -2, 0, &x, NULL));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommSplit(c[0], 0, 0, NULL, NULL));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommSplit(none, 0, 0, &x, NULL));
  REFUSED(ncclInvalidArgument, "at least one", ncclCommShrink(c[0], self, 0, &x, NULL, 0));
  REFUSED(ncclInvalidArgument, "excludes itself", ncclCommShrink(c[0], self, 1, &x, NULL, 0));
  REFUSED(ncclInvalidArgument, "rank 9", ncclCommShrink(c[0], far, 1, &x, NULL, 0));
  REFUSED(ncclInvalidArgument, "flags 3", ncclCommRevoke(c[0], 3));
  OK(ncclCommDestroy(NULL));
  OK(ncclCommAbort(NULL));
  OK(ncclCommFinalize(NULL));
}

static void operations(void) {
  int op, n;
  float by = 2;
  for (int t = -1; t <= 12; t += 13) {
    REFUSED(ncclInvalidArgument, "type", ncclAllReduce(buf[0], buf[0], 1, t, ncclSum, c[0], st[0]));
    REFUSED(ncclInvalidArgument, "type", ncclAlltoAll(buf[0], buf[0], 1, t, c[0], st[0]));
    REFUSED(ncclInvalidArgument, "type", ncclRedOpCreatePreMulSum(&op, &by, t, 1, c[0]));
  }
  REFUSED(ncclInvalidArgument, "reduction", ncclAllReduce(buf[0], buf[0], 1, ncclInt32, -1, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "reduction", ncclReduce(buf[0], buf[0], 1, ncclInt32, 99, 0, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "reduction", ncclReduceScatter(buf[0], buf[0], 1, ncclInt32, 5, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "root 2", ncclReduce(buf[0], buf[0], 1, ncclInt32, ncclSum, 2, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "root -1", ncclBroadcast(buf[0], buf[0], 1, ncclInt32, -1, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "root 2", ncclBcast(buf[0], 1, ncclInt32, 2, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "root 7", ncclGather(buf[0], buf[0], 1, ncclInt32, 7, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "root 7", ncclScatter(buf[0], buf[0], 1, ncclInt32, 7, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "peer 2", ncclSend(buf[0], 1, ncclInt32, 2, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "peer -1", ncclRecv(buf[0], 1, ncclInt32, -1, c[0], st[0]));
  REFUSED(ncclInvalidUsage, "without receiving", ncclSend(buf[0], 1, ncclInt32, 0, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "NULL", ncclAllGather(buf[0], buf[0], 1, ncclInt32, none, st[0]));
  // An operator is of one communicator and type.
  OK(ncclRedOpCreatePreMulSum(&op, &by, ncclFloat32, 1, c[0]));
  REFUSED(ncclInvalidArgument, "no reduction", ncclAllReduce(buf[1], buf[1], 1, ncclFloat32, op, c[1], st[1]));
  REFUSED(ncclInvalidArgument, "type 7", ncclAllReduce(buf[0], buf[0], 1, ncclInt32, op, c[0], st[0]));
  REFUSED(ncclInvalidArgument, "no operator", ncclRedOpDestroy(op, c[1]));
  OK(ncclRedOpDestroy(op, c[0]));
  REFUSED(ncclInvalidArgument, "no operator", ncclRedOpDestroy(op, c[0]));
  REFUSED(ncclInvalidArgument, "NCCL's own", ncclRedOpDestroy(ncclMax, c[0]));
  REFUSED(ncclInvalidArgument, "-5", ncclRedOpDestroy(-5, c[0]));
  REFUSED(ncclInvalidArgument, "NULL", ncclRedOpCreatePreMulSum(&op, &by, ncclFloat32, 1, none));
  // An error inside a group ends all of it, and is the outermost End's.
  OK(ncclGroupStart());
  OK(ncclGroupStart());
  OK(ncclAllReduce(buf[0], buf[0], 1, ncclInt32, ncclSum, c[0], st[0]));
  IS(ncclInvalidArgument, ncclAllReduce(buf[1], buf[1], 1, 12, ncclSum, c[1], st[1]));
  OK(ncclGroupEnd());
  IS(ncclInvalidArgument, ncclGroupEnd());
  ncclSimInfo_t info = {sizeof info, 1, 22809, -1};
  REFUSED(ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER", ncclGroupSimulateEnd(&info));
  OK(ncclCommGetAsyncError(c[0], &n));
  OK(n); // refusals do not fail a communicator
}

static void memory(void) {
  void *handle, *win;
  char *p;
  REFUSED(ncclUnhandledCudaError, "ncclMemAlloc", ncclMemAlloc(NULL, 8));
  REFUSED(ncclUnhandledCudaError, "ncclMemAlloc", ncclMemAlloc((void **)&p, (size_t)1 << 50)); // more than a GPU has
  OK(ncclMemAlloc((void **)&p, 0));
  TRUE(p == NULL);
  OK(ncclMemFree(NULL));
  OK(ncclMemAlloc((void **)&p, 1 << 16));
  REFUSED(ncclUnhandledCudaError, "ncclMemFree", ncclMemFree(p + 1));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommRegister(none, p, 8, &handle));
  OK(ncclCommRegister(c[0], p, 1 << 16, &handle));
  REFUSED(ncclInvalidArgument, "not registered", ncclCommDeregister(c[1], handle));
  OK(ncclCommDeregister(c[0], handle));
  REFUSED(ncclInvalidArgument, "not registered", ncclCommDeregister(c[0], handle));
  REFUSED(ncclInvalidArgument, "aligned", ncclCommWindowRegister(c[0], p + 8, 100, &win, 1));
  REFUSED(ncclInvalidArgument, "NULL", ncclCommWindowRegister(none, p, 100, &win, 1));
  REFUSED(ncclInvalidArgument, "not registered", ncclCommWindowDeregister(c[0], p));
  OK(ncclMemFree(p));
}

static void absent(int n, char **names) {
  REFUSED(ncclInvalidUsage, "kernels", ncclDevCommCreate(c[0], NULL, NULL));
  REFUSED(ncclInvalidUsage, "kernels", ncclDevCommDestroy(c[0], NULL));
  REFUSED(ncclInvalidUsage, "kernels", ncclLsaBarrierCreateRequirement());
  REFUSED(ncclInvalidUsage, "kernels", ncclGinBarrierCreateRequirement());
  REFUSED(ncclInvalidUsage, "kernels", ncclLLA2ACreateRequirement());
  REFUSED(0, "kernels", ncclLLA2ACalcSlots(4, 4));
  for (int i = 0; i < n; i++) {
    int (*f)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, names[i]);
    TRUE(f);
    REFUSED(ncclInvalidUsage, names[i][0] == 'p' ? names[i] + 1 : names[i], f());
  }
}

int main(int argc, char **argv) {
  OK(ncclGetUniqueId(&id));
  REFUSED(ncclInvalidArgument, "NULL", ncclGetVersion(NULL));
  IS(ncclInvalidUsage, ncclGroupEnd());
  TRUE(strstr(ncclGetLastError(NULL), "ncclGroupStart"));
  OK(ncclCommInitAll(c, 2, NULL));
  for (int d = 0; d < 2; d++) {
    OK(cudaSetDevice(d));
    OK(cudaStreamCreate(&st[d]));
    OK(cudaMalloc((void **)&buf[d], 4096));
  }
  OK(cudaSetDevice(0));
  for (int code = 0; code < 10; code++) TRUE(strlen(ncclGetErrorString(code)) > 7);
  making();
  configured();
  lives();
  operations();
  memory();
  absent(argc - 1, argv + 1);
  // It goes on as if nothing had been.
  OK(ncclGroupStart());
  for (int d = 0; d < 2; d++) OK(ncclAllReduce(buf[d], buf[d], 1, ncclInt32, ncclSum, c[d], st[d]));
  OK(ncclGroupEnd());
  for (int d = 0; d < 2; d++) OK(cudaStreamSynchronize(st[d]));
  for (int d = 0; d < 2; d++) OK(ncclCommDestroy(c[d]));
  puts("right");
  return 0;
}
