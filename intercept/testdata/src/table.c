// An all_reduce of each size is timed as nccl-tests does: 20 in a row, on all
// devices, by a process for each where the argument is "fork", else by a thread
// for each; "group" has four at a time, in a group. Prints bytes and nanoseconds of one,
// or is one process that a launcher started.
#include "abi.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { LOOPS = 20 };
static const size_t sizes[] = {8, 65536, 1 << 20, 33554432};
static ncclUniqueId id;
static int devices, several = 1; // calls of a group

static void calls(ncclComm_t comm, cudaStream_t s, void *in, void *out, size_t n) {
  if (several > 1) OK(ncclGroupStart());
  for (int k = 0; k < several; k++) OK(ncclAllReduce(in, out, n, ncclFloat32, ncclSum, comm, s));
  if (several > 1) OK(ncclGroupEnd());
}

static void rank(int r, int say) {
  ncclComm_t comm;
  cudaStream_t s;
  void *in, *out;
  cudaEvent_t a, b;
  OK(cudaSetDevice(r));
  OK(ncclCommInitRank(&comm, devices, id, r));
  OK(cudaStreamCreateWithFlags(&s, 1));
  OK(cudaMalloc(&in, 33554432));
  OK(cudaMalloc(&out, 33554432));
  OK(cudaEventCreate(&a));
  OK(cudaEventCreate(&b));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t n = sizes[i] / 4;
    for (int k = 0; k < 5; k++) calls(comm, s, in, out, n);
    OK(cudaStreamSynchronize(s));
    int64_t from = nanos();
    OK(cudaEventRecord(a, s));
    for (int k = 0; k < LOOPS; k++) calls(comm, s, in, out, n);
    OK(cudaEventRecord(b, s));
    OK(cudaStreamSynchronize(s));
    int64_t ns = nanos() - from;
    float ms;
    OK(cudaEventElapsedTime(&ms, a, b));
    if (say) printf("%zu %.2f\n", sizes[i], (double)ns / LOOPS / several);
    TRUE(ms > 0 && ms * 1e6 <= (double)ns + 64);
  }
  OK(ncclCommFinalize(comm));
  OK(ncclCommDestroy(comm));
  fflush(stdout);
}

static void *thread(void *p) {
  rank((int)(intptr_t)p, p == NULL);
  return NULL;
}

int main(int argc, char **argv) {
  const char *launched = getenv("OMPI_COMM_WORLD_RANK");
  pthread_t t[64];
  int status;
  if (argc > 1 && !strcmp(argv[1], "fork")) {
    // The library has been used before fork, as launchers do that make the id.
    OK(ncclGetUniqueId(&id));
    OK(cudaGetDeviceCount(&devices));
    for (int r = 0; r < devices; r++)
      if (fork() == 0) {
        rank(r, r == 0);
        exit(0);
      }
    while (wait(&status) > 0) TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
  }
  if (argc > 1) several = 4;
  OK(ncclGetUniqueId(&id));
  OK(cudaGetDeviceCount(&devices));
  if (launched) { // a process of a launcher; NCCL_COMM_ID is the id of all
    rank(atoi(launched), !strcmp(launched, "0"));
    return 0;
  }
  for (int r = 0; r < devices; r++) TRUE(pthread_create(&t[r], NULL, thread, (void *)(intptr_t)r) == 0);
  for (int r = 0; r < devices; r++) pthread_join(t[r], NULL);
  return 0;
}
