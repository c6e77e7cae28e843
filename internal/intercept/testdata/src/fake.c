// Two processes of a communicator of as many ranks as the argument says, and what they
// are refused; then communicators by the hundred.
#include "abi.h"
#include <sys/wait.h>

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 2, status;
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  for (int p = 0; p < 2; p++) {
    if (fork()) continue;
    ncclComm_t c, part;
    cudaStream_t s;
    int count, state;
    OK(cudaSetDevice(p));
    OK(ncclCommInitRank(&c, n, id, p * n / 2));
    OK(ncclCommCount(c, &count));
    TRUE(count == n);
    OK(cudaStreamCreate(&s));
    int64_t from = nanos();
    for (int i = 0; i < 3; i++) OK(ncclAllReduce((void *)4096, (void *)8192, 1 << 20, ncclFloat32, ncclSum, c, s));
    OK(cudaStreamSynchronize(s));
    if (p == 0) printf("%lld\n", (long long)(nanos() - from));
    IS(ncclInvalidUsage, ncclCommSplit(c, 0, 0, &part, NULL));
    OK(ncclCommGetAsyncError(c, &state));
    TRUE(state == 0);
    OK(ncclCommDestroy(c));
    for (int i = 0; i < 500; i++) {
      OK(ncclCommInitAll(&c, 1, &p));
      OK(ncclCommDestroy(c));
    }
    exit(0);
  }
  while (wait(&status) > 0) TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
