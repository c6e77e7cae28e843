// An auditor of the dynamic linker (rtld-audit(7)) that has libraries opened by their
// path found where ours are: SIMCCL_SHIM names that folder.
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) unsigned la_version(unsigned v) { return v < LAV_CURRENT ? v : LAV_CURRENT; }

__attribute__((visibility("default"))) char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
  static char ours[4096];
  const char *dir = getenv("SIMCCL_SHIM"), *base = strrchr(name, '/');
  (void)cookie, (void)flag;
  base = base ? base + 1 : name;
  if (!dir || (strncmp(base, "libnccl.so", 10) && strncmp(base, "libcudart.so.", 13))) return (char *)(uintptr_t)name;
  if (!strncmp(base, "libnccl.so", 10)) base = "libnccl.so.2";
  else if (getenv("SIMCCL_SHIM_NCCL_ONLY")) return (char *)(uintptr_t)name; // CUDA is this machine's own
  else if (!strncmp(base, "libcudart.so.11", 15)) base = "libcudart.so.11.0";
  else if (!strncmp(base, "libcudart.so.12", 15)) base = "libcudart.so.12";
  else if (!strncmp(base, "libcudart.so.13", 15)) base = "libcudart.so.13";
  if (snprintf(ours, sizeof ours, "%s/%s", dir, base) >= (int)sizeof ours || access(ours, R_OK)) return (char *)(uintptr_t)name;
  return ours;
}
