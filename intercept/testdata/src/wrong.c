// Wrong programs, one process a rank, by the name of the fault.
#include "abi.h"
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

static ncclUniqueId id;
static const char *fault;
static int ranks = 4;

static int is(const char *name) { return !strcmp(fault, name); }

// rank returns what its process ends with: 10 and NCCL's asynchronous error.
static int rank(int r) {
  ncclComm_t c, part = NULL;
  cudaStream_t s;
  void *a, *b;
  int state, res;
  OK(cudaSetDevice(r));
  if (is("absent") && r == 2) return 10;
  res = ncclCommInitRank(&c, is("size") && r == 1 ? ranks + 1 : ranks, id, is("twice") && r == 1 ? 0 : r);
  if (res) return 10 + res;
  OK(cudaStreamCreate(&s));
  OK(cudaMalloc(&a, 1 << 20));
  OK(cudaMalloc(&b, 1 << 20));
  OK(ncclAllReduce(a, b, 1024, ncclFloat32, ncclSum, c, s));
  res = cudaStreamSynchronize(s); // the collector may be gone already
  if (!is("collector")) OK(res);
  if (is("killed") && r == 2) raise(SIGKILL);
  if (is("collector")) poll(NULL, 0, 500); // on the real clock; the test ends the collector
  if (is("destroyed") && r == 2) return 10 + ncclCommDestroy(c);
  if (is("split") && r != 2) res = ncclCommSplit(c, 0, r, &part, NULL); // the other one calls an all_reduce
  else if (is("order") && r == 1) res = ncclAllGather(a, b, 1024, ncclFloat32, c, s);
  else if (is("root")) res = ncclBroadcast(a, b, 1024, ncclFloat32, r == 1, c, s);
  else if (is("group") && r == 1) {
    OK(ncclGroupStart());
    OK(ncclAllReduce(a, b, 1024, ncclFloat32, ncclSum, c, s));
    OK(ncclAllReduce(a, b, 1024, ncclFloat32, ncclSum, c, s));
    res = ncclGroupEnd();
  } else if (is("message")) {
    if (r == 0) res = ncclSend(a, 100, ncclFloat32, 1, c, s);
    else if (r == 1) res = ncclRecv(a, 99, ncclFloat32, 0, c, s);
  } else if (is("alone")) {
    if (r == 0) res = ncclSend(a, 100, ncclFloat32, 1, c, s);
    else if (r == 1) res = ncclSend(a, 100, ncclFloat32, 0, c, s);
  } else
    res = ncclAllReduce(a, b, is("count") && r == 2 ? 1000 : 1024, is("type") && r == 3 ? ncclInt32 : ncclFloat32, is("op") && r == 2 ? ncclMax : ncclSum, c, s);
  if (res) return 10 + res;
  res = cudaStreamSynchronize(s);
  OK(ncclCommGetAsyncError(c, &state));
  if (is("collector")) return 10 + state;
  return 10 + (res && !state ? 99 : state);
}

int main(int argc, char **argv) {
  int status, n = 0, seen[32] = {0};
  fault = argc > 1 ? argv[1] : "none";
  OK(ncclGetUniqueId(&id));
  for (int r = 0; r < ranks; r++)
    if (fork() == 0) _exit(rank(r));
  while (wait(&status) > 0) {
    if (WIFEXITED(status) && WEXITSTATUS(status) >= 10 && WEXITSTATUS(status) < 32) seen[WEXITSTATUS(status) - 10]++;
    else n++;
  }
  printf("%s:", fault);
  for (int i = 0; i < 22; i++)
    if (seen[i]) printf(" %d x %d", seen[i], i);
  printf(" %d other\n", n);
  return 0;
}
