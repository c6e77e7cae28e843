// A program of CUDA 11, 12 or 13 (the argument, CUDART): the runtime with its version's symbols,
// which differ, a stream, an event, a graph and a call of NCCL. Prints the version.
#include "abi.h"

int cudaRuntimeGetVersion(int *);

// peak is the most memory that this program had, in kB; ru_maxrss has that of its parent before exec as well.
static long peak(void) {
  long kb = 0;
  char line[256];
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %ld kB", &kb) == 1) break;
  if (f) fclose(f);
  return kb;
}
int cudaGetDevice(int *);
int cudaStreamGetFlags(cudaStream_t, unsigned *);
int cudaGetDeviceProperties(void *, int);
int cudaGetDeviceProperties_v2(void *, int);
int cudaMemGetInfo(size_t *, size_t *);
int cudaStreamIsCapturing(cudaStream_t, int *);
const char *cudaGetErrorName(int);
int cudaGetLastError(void);
#if CUDART == 11
#define instantiate(x, g) ((int (*)(cudaGraphExec_t *, cudaGraph_t, void *, char *, size_t))(void *)cudaGraphInstantiate)(x, g, NULL, NULL, 0)
#else
#define instantiate(x, g) cudaGraphInstantiate(x, g, 0)
#endif

int main(void) {
  int v, n, dev, status;
  unsigned flags;
  size_t left, all;
  char prop[4096];
  void *p, *q;
  ncclComm_t c;
  cudaStream_t s;
  cudaEvent_t a, b;
  cudaGraph_t g;
  cudaGraphExec_t x;
  float ms;
  OK(cudaRuntimeGetVersion(&v));
  TRUE(v / 1000 == CUDART);
  OK(cudaGetDeviceCount(&n));
  OK(cudaSetDevice(n - 1));
  OK(cudaGetDevice(&dev));
  TRUE(dev == n - 1);
  memset(prop, 0x77, sizeof prop);
#if CUDART == 12
  OK(cudaGetDeviceProperties_v2(prop, 0));
#else
  OK(cudaGetDeviceProperties(prop, 0));
#endif
  TRUE(strstr(prop, "simccl") && prop[712] == 0x77); // the shortest structure of the three ends there
  IS(101, cudaSetDevice(n));
  TRUE(!strcmp(cudaGetErrorName(cudaGetLastError()), "cudaErrorInvalidDevice") && cudaGetLastError() == 0);
  OK(cudaMemGetInfo(&left, &all));
  OK(cudaMalloc(&p, all / 2));
  IS(2, cudaMalloc(&q, all / 2 + 4096));
  OK(cudaMemGetInfo(&left, &all));
  TRUE(left == all / 2);
  OK(ncclCommInitAll(&c, 1, &dev));
  OK(cudaMemset(p, 1, all / 2));
  OK(ncclAllReduce(p, p, all / 8, ncclFloat32, ncclSum, c, NULL));
  OK(cudaDeviceSynchronize());
  TRUE(peak() > 0 && peak() < 100 << 10); // a GPU's memory is never touched
  OK(ncclCommDestroy(c));
  OK(cudaFree(p));
  OK(ncclCommInitAll(&c, 1, &dev));
  OK(cudaStreamCreateWithFlags(&s, 1));
  OK(cudaStreamGetFlags(s, &flags));
  TRUE(flags == 1);
  OK(cudaEventCreate(&a));
  OK(cudaEventCreate(&b));
  OK(cudaStreamBeginCapture(s, 1));
  OK(cudaStreamIsCapturing(s, &status));
  TRUE(status == 1);
  OK(ncclAllReduce((void *)4096, (void *)8192, 1 << 20, ncclFloat32, ncclSum, c, s));
  OK(cudaStreamEndCapture(s, &g));
  OK(instantiate(&x, g));
  OK(cudaEventRecord(a, s));
  OK(cudaGraphLaunch(x, s));
  OK(cudaEventRecord(b, s));
  OK(cudaEventSynchronize(b));
  OK(cudaEventElapsedTime(&ms, a, b));
  TRUE(ms > 0);
  OK(cudaStreamDestroy(s));
  OK(ncclCommDestroy(c));
  puts("right");
  return 0;
}
