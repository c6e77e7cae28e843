// Streams that programs destroy by CUDA's driver, and not by its runtime: JAX and other programs of
// XLA call the driver alone, whose functions they find by dlsym and cuGetProcAddress. Streams are
// followed by their handles, and to ask the driver about one that is destroyed ends the process.
#define _GNU_SOURCE
#include "live.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

typedef error (*destroy_t)(handle);
typedef error (*get_t)(const char *, void **, int, uint64_t);
typedef error (*get_v2_t)(const char *, void **, int, uint64_t, int *);
typedef error (*context_t)(handle);
typedef error (*device_t)(int);

static _Atomic(destroy_t) real_destroy;
static _Atomic(get_t) real_get;
static _Atomic(get_v2_t) real_get_v2;
static _Atomic(context_t) real_context;
static _Atomic(device_t) real_reset;

static error destroy(handle s) {
  simccl_stream_gone(s);
  return atomic_load(&real_destroy)(s);
}

static error destroy_context(handle c) {
  simccl_context_gone(c);
  return atomic_load(&real_context)(c);
}

static error reset(int dev) {
  simccl_context_gone(NULL);
  return atomic_load(&real_reset)(dev);
}

static void *ours(const char *name, void *real);

static error get(const char *name, void **out, int version, uint64_t flags) {
  error e = atomic_load(&real_get)(name, out, version, flags);
  if (!e && name && out && *out) *out = ours(name, *out);
  return e;
}

static error get_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
  enum { WITH_STATUS = 12000 }; // the version from which cuGetProcAddress is that with a status
  error e = atomic_load(&real_get_v2)(name, out, version, flags, status);
  if (!e && name && out && *out) *out = !strcmp(name, "cuGetProcAddress") && version >= WITH_STATUS ? (void *)get_v2 : ours(name, *out);
  return e;
}

// ours is what stands before a function of the driver, by its name with or without a version.
static void *ours(const char *name, void *real) {
  if (!strcmp(name, "cuStreamDestroy_v2") || !strcmp(name, "cuStreamDestroy")) return atomic_store(&real_destroy, (destroy_t)real), (void *)destroy;
  if (!strcmp(name, "cuCtxDestroy_v2") || !strcmp(name, "cuCtxDestroy")) return atomic_store(&real_context, (context_t)real), (void *)destroy_context;
  if (!strcmp(name, "cuDevicePrimaryCtxReset_v2") || !strcmp(name, "cuDevicePrimaryCtxReset")) return atomic_store(&real_reset, (device_t)real), (void *)reset;
  return real;
}

static void *getter(const char *name, void *real) {
  if (!strcmp(name, "cuGetProcAddress_v2")) return atomic_store(&real_get_v2, (get_v2_t)real), (void *)get_v2;
  if (!strcmp(name, "cuGetProcAddress")) return atomic_store(&real_get, (get_t)real), (void *)get;
  return ours(name, real);
}

// dlsym is the C library's but for those names. It is entered as if it were called by who calls this
// one (a call in the tail's place keeps the return address, which RTLD_NEXT goes by). A sanitizer calls it before
// it is ready itself.
PUBLIC __attribute__((optimize("optimize-sibling-calls"), no_sanitize_address, no_sanitize_undefined)) void *dlsym(void *restrict lib, const char *restrict name) {
  static void *(*real)(void *restrict, const char *restrict);
  if (!real) {
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}; // of x86-64 and of aarch64
    for (size_t i = 0; i < sizeof versions / sizeof *versions && !real; i++) real = (void *(*)(void *restrict, const char *restrict))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!real) return NULL;
  }
  if (name && name[0] == 'c' && name[1] == 'u' && lib != RTLD_NEXT && lib != RTLD_DEFAULT) {
    void *f = real(lib, name);
    return f ? getter(name, f) : NULL;
  }
  return real(lib, name);
}
