// Memory of the driver of tests. A block ends at a page that nobody may touch,
// and what is freed stays reserved without access: whoever writes beyond a
// block, or to one that is gone, is stopped there and then, and spoils nothing
// of others. Blocks of devices are files, so that other processes can map them.
#pragma once
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(p, n) (void)0
#endif

struct Block {
  char* base;    // what is mapped: the guard before, whole pages, the guard behind
  size_t pages;  // bytes between the guards
  char* at;      // what the user sees
  size_t bytes;
  int dev;       // -1: host memory
  int fd;        // -1: nobody else can map it
};

enum { PAGE = 4096, GRAIN = 256, UNUSED = 0x5a };

inline size_t upTo(size_t n, size_t of) { return (n + of - 1) / of * of; }

// mapBlock lays a file, or fresh memory for fd -1, between two guards.
inline bool mapBlock(Block& b, size_t bytes, int fd) {
  const size_t room = upTo(bytes, GRAIN);
  b.bytes = bytes, b.fd = fd, b.pages = upTo(room, PAGE);
  b.base = (char*)mmap(nullptr, b.pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b.base == MAP_FAILED) return false;
  const int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  if (mmap(b.base + PAGE, b.pages, PROT_READ | PROT_WRITE, kind | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED) {
    munmap(b.base, b.pages + 2 * PAGE);
    return false;
  }
  b.at = b.base + PAGE + b.pages - room;
  return true;
}

// newBlock takes memory; what lies between its end and the guard is marked, and
// under the address sanitizer nobody may read it either.
inline bool newBlock(Block& b, size_t bytes, int dev) {
  int fd = -1;
  if (dev >= 0) {
    fd = memfd_create("device", MFD_CLOEXEC);
    if (fd < 0) return false;
    if (ftruncate(fd, upTo(upTo(bytes, GRAIN), PAGE))) return close(fd), false;
  }
  if (!mapBlock(b, bytes, fd)) {
    if (fd >= 0) close(fd);
    return false;
  }
  b.dev = dev;
  memset(b.at + bytes, UNUSED, upTo(bytes, GRAIN) - bytes);
  ASAN_POISON_MEMORY_REGION(b.at + bytes, upTo(bytes, GRAIN) - bytes);
  return true;
}

// dropBlock ends access and tells whether the marks still stand.
inline bool dropBlock(Block& b) {
  bool whole = true;
  ASAN_UNPOISON_MEMORY_REGION(b.at + b.bytes, upTo(b.bytes, GRAIN) - b.bytes);
  for (size_t i = b.bytes; i < upTo(b.bytes, GRAIN); i++) whole = whole && (unsigned char)b.at[i] == UNUSED;
  mmap(b.base, b.pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (b.fd >= 0) close(b.fd);
  return whole;
}

// zero clears memory; whole pages of a device go back to the system, so that
// large arenas are not backed by memory.
inline void zero(char* p, size_t n) {
  char *lo = (char*)upTo((uintptr_t)p, PAGE), *hi = (char*)((uintptr_t)(p + n) / PAGE * PAGE);
  if (lo >= hi || madvise(lo, hi - lo, MADV_REMOVE)) {
    memset(p, 0, n);
    return;
  }
  memset(p, 0, lo - p);
  memset(hi, 0, p + n - hi);
}

// A handle names a file of another process.
struct Handle {
  int pid, fd, dev, unused;
  uint64_t bytes;
  char rest[40];
};
static_assert(sizeof(Handle) == 64, "as the driver's");

// openHandle maps another process's block.
inline bool openHandle(const Handle& h, Block& b) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  if (!mapBlock(b, h.bytes, fd)) return close(fd), false;
  b.dev = h.dev;
  return true;
}
