// Processes of a communicator of as many ranks as the first argument says: as many as the second
// one says, or two, which are refused some things then and make communicators by the hundred.
#include "abi.h"
#include <sys/wait.h>

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 2, procs = argc > 2 ? atoi(argv[2]) : 2, status;
  ncclUniqueId id, other;
  OK(ncclGetUniqueId(&id));
  OK(ncclGetUniqueId(&other));
  for (int p = 0; p < procs; p++) {
    if (fork()) continue;
    ncclComm_t c, part, again;
    cudaStream_t s;
    int count, state, rank = (int)((long)p * n / procs);
    OK(cudaSetDevice(rank));
    OK(ncclCommInitRank(&c, n, id, rank));
    OK(ncclCommCount(c, &count));
    TRUE(count == n);
    OK(cudaStreamCreate(&s));
    int64_t from = nanos();
    for (int i = 0; i < 3; i++) OK(ncclAllReduce((void *)4096, (void *)8192, 1 << 20, ncclFloat32, ncclSum, c, s));
    OK(cudaStreamSynchronize(s));
    if (p == 0) printf("%lld\n", (long long)(nanos() - from));
    // A second communicator of all and one that is split from the first, with calls in turn.
    OK(ncclCommInitRank(&again, n, other, rank));
    OK(ncclCommSplit(c, 3, rank, &part, NULL));
    OK(ncclCommCount(part, &count));
    TRUE(count == n);
    for (int i = 0; i < 2; i++) {
      OK(ncclAllGather((void *)4096, (void *)8192, 100, ncclInt8, again, s));
      OK(ncclBroadcast((void *)4096, (void *)8192, 1000, ncclFloat16, n - 1, part, s));
      OK(ncclAllReduce((void *)4096, (void *)8192, 10, ncclFloat32, ncclMax, c, s));
    }
    OK(cudaStreamSynchronize(s));
    OK(ncclCommDestroy(part));
    OK(ncclCommDestroy(again));
    if (argc <= 2 && n > procs) {
      int none[1] = {1};
      IS(ncclInvalidUsage, ncclCommSplit(c, p, 0, &part, NULL));
      TRUE(strstr(ncclGetLastError(c), "several colors"));
      IS(ncclInvalidUsage, ncclCommShrink(c, none, 1, &part, NULL, 0));
    }
    OK(ncclCommGetAsyncError(c, &state));
    TRUE(state == 0);
    OK(ncclCommDestroy(c));
    for (int i = 0; i < 500 && argc <= 2; i++) {
      OK(ncclCommInitAll(&c, 1, &p));
      OK(ncclCommDestroy(c));
    }
    exit(0);
  }
  while (wait(&status) > 0) TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
