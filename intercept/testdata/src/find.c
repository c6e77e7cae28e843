// NCCL is opened at run time, twice, by its name or by the path that is the argument.
#include "abi.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "libnccl.so.2";
  void *a = dlopen(path, RTLD_NOW | RTLD_LOCAL), *b = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  TRUE(a && b && a == b);
  int (*version)(int *) = (int (*)(int *))dlsym(a, "ncclGetVersion");
  int (*init)(ncclComm_t *, int, const int *) = (int (*)(ncclComm_t *, int, const int *))dlsym(a, "ncclCommInitAll");
  int (*destroy)(ncclComm_t) = (int (*)(ncclComm_t))dlsym(b, "ncclCommDestroy");
  ncclComm_t c[2];
  int v = 0;
  TRUE(version && init && destroy);
  TRUE(version(&v) == 0 && v == 22809);
  TRUE(init(c, 2, NULL) == 0);
  TRUE(dlclose(a) == 0);
  for (int i = 0; i < 2; i++) TRUE(destroy(c[i]) == 0);
  TRUE(dlclose(b) == 0);
  // A second NCCL of another file keeps its own functions.
  if (argc > 2) {
    void *other = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    int (*theirs)(int *) = (int (*)(int *))dlsym(other, "ncclGetVersion");
    TRUE(theirs && theirs(&v) == 0 && v == 12345);
    TRUE(version != theirs);
  }
  puts("right");
  return 0;
}
