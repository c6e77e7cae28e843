// The connection to the collector, the virtual clock and the record.
//
// Each thread that calls has a connection of its own, and each request one reply, so
// no thread of ours runs in the program and none of its signals reaches us. A
// connection more, of the process, shows the collector when the process ends.
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct simccl_settings settings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int attached, lost, generation;
static int life = -1; // the process's connection
static char refusal[512]; // why the collector has nothing to do with this process
static atomic_uint groups, threads;
static _Atomic int64_t latest; // the latest clock of any thread, ps

struct thread {
  int fd, generation, id;
  int worked;       // it has a clock of its own
  int64_t now;      // ps
  int64_t cpu;      // ns of the thread's processor time when its clock was advanced last
};
static __thread struct thread self = {.fd = -1, .id = -1};

// --- clocks ---

static int (*real_gettime)(clockid_t, struct timespec *);
static int64_t base[16]; // ns, by clock, when the process attached

static int64_t real_ns(clockid_t c) {
  struct timespec t;
  if (!real_gettime) real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  if (real_gettime) real_gettime(c, &t);
  else syscall(SYS_clock_gettime, c, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

PUBLIC int64_t simccl_wall(void) { return real_ns(CLOCK_MONOTONIC) / 1000; }

// A thread that sleeps finds its caches and its processor cold, and what it does next takes
// longer than it would where it runs on: where host time is measured and processors are
// many, threads that wait keep theirs for a while.
PUBLIC int simccl_spare(void) {
  static int spare = -1;
  if (spare < 0) spare = settings.live && settings.time == TIME_MEASURED && sysconf(_SC_NPROCESSORS_ONLN) >= 2 * settings.count;
  return spare;
}

// About two microseconds, in which the other thread of the processor's core has it.
PUBLIC void simccl_relax(void) {
#if defined __x86_64__
  for (int i = 0; i < 40; i++) __builtin_ia32_pause();
#elif defined __aarch64__
  for (int i = 0; i < 40; i++) __asm__ volatile("isb");
#endif
}

static double factor = 1;

// The clock of a process on real devices under --time measured: it goes on with the machine's, but
// not while one of its threads is in the shim or waits for the cluster (frozen counts these threads).
static struct { pthread_mutex_t lock; int64_t now, wall; int frozen; } process = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0};

static int live_clock(void) { return settings.live && settings.time == TIME_MEASURED; }

static int64_t process_now(int64_t at_least, int freeze) {
  pthread_mutex_lock(&process.lock);
  int64_t wall = real_ns(CLOCK_MONOTONIC);
  if (!process.frozen && process.wall) process.now += (int64_t)((double)(wall - process.wall) * 1000 * factor);
  process.wall = wall;
  process.frozen += freeze;
  if (at_least > process.now) process.now = at_least;
  int64_t now = process.now;
  pthread_mutex_unlock(&process.lock);
  return now;
}

PUBLIC void simccl_freeze(void) {
  if (live_clock()) process_now(0, 1);
}
PUBLIC void simccl_thaw(int64_t now) {
  if (live_clock()) process_now(now, -1);
}

// advance adds the host's time since the last call to the thread's clock: processor time under --time measured,
// the machine's under paced, none under virtual.
static void advance(void) {
  if (live_clock()) {
    if (self.worked) self.now = process_now(0, 0);
  } else if (settings.time == TIME_MEASURED && self.worked) {
    int64_t cpu = real_ns(CLOCK_THREAD_CPUTIME_ID);
    if (self.cpu) self.now += (int64_t)((double)(cpu - self.cpu) * 1000 * factor);
    self.cpu = cpu;
  } else if (settings.time == TIME_PACED) {
    int64_t t = (real_ns(CLOCK_MONOTONIC) - base[CLOCK_MONOTONIC]) * 1000;
    if (t > self.now) self.now = t;
  }
}

static void raise_latest(int64_t now) {
  int64_t old = atomic_load(&latest);
  while (old < now && !atomic_compare_exchange_weak(&latest, &old, now)) {
  }
}

static void reach(int64_t now) {
  if (now > self.now) self.now = now;
  raise_latest(self.now);
  if (live_clock()) self.now = process_now(now, 0);
  else if (settings.time == TIME_MEASURED) self.cpu = real_ns(CLOCK_THREAD_CPUTIME_ID);
  if (settings.time == TIME_PACED) {
    int64_t ahead = now / 1000 - (real_ns(CLOCK_MONOTONIC) - base[CLOCK_MONOTONIC]);
    if (ahead > 0) {
      struct timespec t = {ahead / 1000000000, ahead % 1000000000};
      syscall(SYS_nanosleep, &t, NULL);
    }
  }
}

PUBLIC int64_t simccl_now(void) {
  if (live_clock()) return process_now(0, 0);
  advance();
  return self.worked ? self.now : atomic_load(&latest);
}

PUBLIC void simccl_worked(void) {
  if (self.worked) return;
  self.worked = 1;
  self.cpu = settings.time == TIME_MEASURED ? real_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
}

// virtual_clock reports whether programs see the virtual clock in place of this one.
static int virtual_clock(clockid_t c) {
  return atomic_load(&attached) && !atomic_load(&lost) && (settings.time == TIME_VIRTUAL || settings.time == TIME_MEASURED) &&
         (c == CLOCK_REALTIME || c == CLOCK_MONOTONIC || c == CLOCK_MONOTONIC_RAW || c == CLOCK_BOOTTIME || c == CLOCK_REALTIME_COARSE || c == CLOCK_MONOTONIC_COARSE);
}

static int64_t shown_ns(clockid_t c) {
  if (!virtual_clock(c)) return real_ns(c);
  return base[c] + simccl_now() / 1000;
}

PUBLIC int clock_gettime(clockid_t c, struct timespec *t) {
  if (!virtual_clock(c)) {
    if (!real_gettime) real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real_gettime ? real_gettime(c, t) : (int)syscall(SYS_clock_gettime, c, t);
  }
  int64_t ns = shown_ns(c);
  t->tv_sec = ns / 1000000000;
  t->tv_nsec = ns % 1000000000;
  return 0;
}

PUBLIC int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  (void)zone;
  int64_t ns = shown_ns(CLOCK_REALTIME);
  t->tv_sec = ns / 1000000000;
  t->tv_usec = ns % 1000000000 / 1000;
  return 0;
}

PUBLIC time_t time(time_t *t) {
  time_t s = shown_ns(CLOCK_REALTIME) / 1000000000;
  if (t) *t = s;
  return s;
}

// sleep_virtual moves the thread's clock on by a sleep, without sleeping; it yields the processor, so that
// other threads come to what this one sleeps for. It returns 0 where the sleep has to be real.
static int sleep_virtual(int64_t ns) {
  if (!virtual_clock(CLOCK_MONOTONIC) || !self.worked) return 0;
  if (live_clock()) return 0; // it passes as it does
  advance();
  reach(self.now + ns * 1000);
  syscall(SYS_sched_yield);
  return 1;
}

PUBLIC int nanosleep(const struct timespec *t, struct timespec *left) {
  if (t && sleep_virtual((int64_t)t->tv_sec * 1000000000 + t->tv_nsec)) return 0;
  return (int)syscall(SYS_nanosleep, t, left);
}

// Python sleeps until a time of the clock that it sees.
PUBLIC int clock_nanosleep(clockid_t c, int flags, const struct timespec *t, struct timespec *left) {
  if (!t || !virtual_clock(c)) return syscall(SYS_clock_nanosleep, c, flags, t, left) ? errno : 0;
  int64_t ns = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec - (flags & TIMER_ABSTIME ? shown_ns(c) : 0);
  if (ns <= 0 || sleep_virtual(ns)) return 0;
  struct timespec rest = {ns / 1000000000, ns % 1000000000};
  return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &rest, flags & TIMER_ABSTIME ? NULL : left) ? errno : 0;
}

PUBLIC int usleep(useconds_t us) {
  struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
  return nanosleep(&t, NULL);
}

// Deadlines of the virtual clock are waited for on the real one. A condition may have
// either clock: the time since the machine's start is never that since 1970.
static struct timespec real_deadline(clockid_t c, const struct timespec *t) {
  int64_t ns = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
  if (virtual_clock(c)) ns += real_ns(c) - shown_ns(c);
  return (struct timespec){ns / 1000000000, ns % 1000000000};
}

PUBLIC int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *m, const struct timespec *t) {
  static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!next) next = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!next) next = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  if (!next) return ENOSYS;
  struct timespec real = real_deadline(t->tv_sec < 1000000000 ? CLOCK_MONOTONIC : CLOCK_REALTIME, t);
  return next(cond, m, &real);
}

PUBLIC int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *m, clockid_t c, const struct timespec *t) {
  static int (*next)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
  if (!next) next = (int (*)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  if (!next) return ENOSYS;
  struct timespec real = real_deadline(c, t);
  return next(cond, m, c, &real);
}

// A thread begins at the clock of the one that made it, and who joins it continues
// at the later of both clocks.
struct beginning {
  void *(*run)(void *);
  void *arg;
  int64_t now;
};

struct ending {
  pthread_t thread;
  int64_t now;
  struct ending *next;
};
static struct ending *endings;

static void ended(void *unused) {
  (void)unused;
  if (self.fd >= 0) close(self.fd);
  self.fd = -1;
  if (!self.worked) return;
  struct ending *e = malloc(sizeof *e);
  if (!e) return;
  *e = (struct ending){pthread_self(), self.now, NULL};
  pthread_mutex_lock(&lock);
  e->next = endings;
  endings = e;
  pthread_mutex_unlock(&lock);
}

static void *begin(void *p) {
  struct beginning b = *(struct beginning *)p;
  free(p);
  self.now = b.now; // until it works the thread sees the process's latest clock
  void *out;
  pthread_cleanup_push(ended, NULL);
  out = b.run(b.arg);
  pthread_cleanup_pop(1);
  return out;
}

PUBLIC int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!next) next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  if (!next) return ENOSYS;
  struct beginning *b = malloc(sizeof *b);
  if (!b) return EAGAIN;
  *b = (struct beginning){run, arg, self.worked ? self.now : 0};
  int err = next(t, attr, begin, b);
  if (err) free(b);
  return err;
}

PUBLIC int pthread_join(pthread_t t, void **value) {
  static int (*next)(pthread_t, void **);
  if (!next) next = (int (*)(pthread_t, void **))dlsym(RTLD_NEXT, "pthread_join");
  if (!next) return ENOSYS;
  int err = next(t, value);
  if (err) return err;
  pthread_mutex_lock(&lock);
  for (struct ending **p = &endings; *p; p = &(*p)->next) {
    if (!pthread_equal((*p)->thread, t)) continue;
    struct ending *e = *p;
    *p = e->next;
    if (self.worked || e->now > self.now) {
      self.worked = 1;
      if (e->now > self.now) self.now = e->now;
    }
    free(e);
    break;
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

// --- the connection ---

static int dial(void) {
  const char *dir = getenv("SIMCCL_INTERCEPT");
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (!dir || (size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", dir) >= sizeof at.sun_path) return -1;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int err;
  while ((err = connect(fd, (struct sockaddr *)&at, sizeof at)) != 0 && errno == EINTR) {
  }
  if (err) {
    close(fd);
    return -1;
  }
  // Programs close low descriptors that they think are theirs.
  int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
  if (high >= 0) {
    close(fd);
    fd = high;
  }
  return fd;
}

static int send_all(int fd, const void *data, size_t n) {
  for (const char *p = data; n;) {
    ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return -1;
    p += k;
    n -= (size_t)k;
  }
  return 0;
}

static int recv_all(int fd, void *data, size_t n) {
  int64_t begun = atomic_load(&attached) && simccl_spare() ? simccl_wall() : 0;
  for (char *p = data; n;) {
    int soon = begun && simccl_wall() - begun < 500;
    ssize_t k = recv(fd, p, n, soon ? MSG_DONTWAIT : 0);
    if (k < 0 && soon && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      for (int i = 0; i < 4; i++) simccl_relax(); // each look at the socket evicts some of what the program has in caches
      continue;
    }
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return -1;
    p += k;
    n -= (size_t)k;
  }
  return 0;
}

static int send_request(int fd, const struct request *r, const void *payload) {
  char both[1024];
  size_t size = r->size;
  if (size > sizeof both - sizeof *r) return send_all(fd, r, sizeof *r) || send_all(fd, payload, size) ? -1 : 0;
  memcpy(both, r, sizeof *r); // one write
  if (size) memcpy(both + sizeof *r, payload, size);
  return send_all(fd, both, sizeof *r + size);
}

static int recv_reply(int fd, struct reply *out, char *text, size_t room) {
  if (recv_all(fd, out, sizeof *out)) return -1;
  if (text && room) text[0] = 0;
  for (uint32_t left = out->size; left;) {
    char skip[256];
    char *to = text && room > out->size ? text + (out->size - left) : skip;
    uint32_t n = to == skip && left > sizeof skip ? sizeof skip : left;
    if (recv_all(fd, to, n)) return -1;
    left -= n;
  }
  if (text && room > out->size) text[out->size] = 0;
  return 0;
}

static int exchange(int fd, const struct request *r, const void *payload, struct reply *out, char *text, size_t room) {
  return send_request(fd, r, payload) || recv_reply(fd, out, text, room) ? -1 : 0;
}

static int launcher_rank(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *v = getenv(names[i]);
    if (v && *v) return atoi(v);
  }
  return -1;
}

// greet sends a greeting. That of a process goes with its memory, which the collector moves data in
// (--data): the program opens it itself, and shows no other.
static int greet(int fd, const struct request *r, int shows) {
  int mem = shows ? open("/proc/self/mem", O_RDWR | O_CLOEXEC) : -1;
  if (mem < 0) return send_all(fd, r, sizeof *r);
  union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control = {0};
  struct iovec part = {(void *)(uintptr_t)r, sizeof *r};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(c), &mem, sizeof mem);
  ssize_t n;
  while ((n = sendmsg(fd, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  close(mem);
  return n < 0 ? -1 : send_all(fd, (const char *)r + n, sizeof *r - (size_t)n);
}

PUBLIC const char *simccl_refusal(void) { return *refusal ? refusal : NULL; }

// hello makes a connection known: kind 0 is the process's, 1 a thread's.
static int hello(int kind, struct reply *out) {
  int fd = dial();
  if (fd < 0) return -1;
  struct request r = {.type = REQ_HELLO, .a = {getpid(), kind, launcher_rank(), simccl_thread()}};
  char text[sizeof refusal] = "";
  if (greet(fd, &r, kind == 0 && getenv("SIMCCL_INTERCEPT_DATA")) || recv_reply(fd, out, text, sizeof text) || out->status) {
    memcpy(refusal, text, sizeof text);
    close(fd);
    return -1;
  }
  return fd;
}

static void child(void) {
  // Only the thread that forked is here, and the lock may have been another's.
  pthread_mutex_init(&lock, NULL);
  if (life >= 0) close(life);
  if (self.fd >= 0) close(self.fd);
  life = self.fd = -1;
  atomic_store(&attached, 0);
  atomic_store(&lost, 0);
  atomic_store(&latest, 0);
  *refusal = 0;
  self.now = 0;
  self.worked = 0;
  pthread_mutex_init(&process.lock, NULL);
  process.now = process.wall = process.frozen = 0;
  atomic_fetch_add(&generation, 1);
}

static void goodbye(void) {
  if (!atomic_load(&attached) || life < 0) return;
  struct request r = {.type = REQ_BYE, .now = self.now};
  send_all(life, &r, sizeof r);
}

static int attach_locked(void) {
  struct reply rep;
  static int once;
  int fd = *refusal ? -1 : hello(0, &rep);
  if (fd < 0) return *refusal ? EACCES : ENOTCONN;
  settings = (struct simccl_settings){(int)(rep.a[0] & 15), (int)(rep.a[0] >> 4 & 15), (int)(rep.a[0] >> 8 & 1), (int)rep.a[1], (int)rep.a[2], rep.a[3], (int)(rep.a[0] >> 9 & 1)};
  const char *f = getenv("SIMCCL_HOST_FACTOR");
  if (f && atof(f) > 0) factor = atof(f);
  static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE};
  for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) base[clocks[i]] = real_ns(clocks[i]);
  life = fd;
  if (!once) {
    once = 1;
    pthread_atfork(NULL, NULL, child);
    atexit(goodbye);
  }
  atomic_store(&attached, 1);
  return 0;
}

PUBLIC int simccl_attach(void) {
  if (atomic_load(&attached)) return 0;
  pthread_mutex_lock(&lock);
  int err = atomic_load(&attached) ? 0 : attach_locked();
  pthread_mutex_unlock(&lock);
  return err;
}

PUBLIC const struct simccl_settings *simccl_get(void) { return &settings; }
PUBLIC int simccl_forked(void) { return atomic_load(&generation); }
PUBLIC int *simccl_device(void) {
  static __thread int device;
  return &device;
}

PUBLIC int simccl_lost(void) { return atomic_load(&lost); }
PUBLIC uint32_t simccl_group(void) { return atomic_fetch_add(&groups, 1) + 1; }

PUBLIC uint32_t simccl_thread(void) {
  if (self.id < 0) self.id = (int)atomic_fetch_add(&threads, 1);
  return (uint32_t)self.id;
}

// connected gives the thread its connection.
static int connected(void) {
  struct reply rep;
  if (simccl_attach() || atomic_load(&lost)) return 0;
  if (self.fd >= 0 && self.generation != atomic_load(&generation)) {
    close(self.fd);
    self.fd = -1;
  }
  if (self.fd < 0) {
    if ((self.fd = hello(1, &rep)) < 0) return 0;
    self.generation = atomic_load(&generation);
  }
  return 1;
}

PUBLIC int simccl_connected(void) { return connected(); }

static int gone(struct reply *out, char *text, size_t room) {
  atomic_store(&lost, 1);
  out->status = STATUS_LOST;
  if (text && room) snprintf(text, room, "the collector of simccl intercept has ended");
  return -1;
}

static int answered(const struct reply *out) {
  if (self.worked) reach(out->now);
  else raise_latest(out->now);
  return 0;
}

PUBLIC int simccl_call(struct request *r, const void *payload, struct reply *out, char *text, size_t room) {
  memset(out, 0, sizeof *out);
  if (!connected()) return gone(out, text, room);
  advance();
  r->now = self.now;
  return exchange(self.fd, r, payload, out, text, room) ? gone(out, text, room) : answered(out);
}

PUBLIC int simccl_call_both(struct request *first, const void *before, void (*done)(void), struct request *r, const void *payload, struct reply *out, char *text, size_t room) {
  memset(out, 0, sizeof *out);
  int here = connected(), err = !here;
  if (here) {
    advance();
    first->now = r->now = self.now;
    err = send_request(self.fd, first, before) || send_request(self.fd, r, payload) || recv_reply(self.fd, out, NULL, 0);
  }
  done();
  return err || recv_reply(self.fd, out, text, room) ? gone(out, text, room) : answered(out);
}

// --- the record ---

// The record of a process is a file that is mapped piece by piece: what is written
// is kept however the process ends. Its head of 4096 bytes begins with the number of operations (8 bytes);
// pieces of PIECE bytes follow, each of as many whole operations as fit.
enum { PIECE = 1 << 20 };
static char *piece;
static uint64_t piece_at, written;
static int record_fd = -1, record_generation = -1;
static _Atomic uint64_t *record_count;

static int record_open(void) {
  char name[256];
  const char *dir = getenv("SIMCCL_INTERCEPT");
  if (record_fd >= 0) close(record_fd);
  record_fd = -1;
  snprintf(name, sizeof name, "%s/record.%d", dir ? dir : ".", getpid());
  int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  if (ftruncate(fd, 4096)) {
    close(fd);
    return -1;
  }
  void *head = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (head == MAP_FAILED) {
    close(fd);
    return -1;
  }
  record_fd = fd;
  record_count = head;
  record_generation = atomic_load(&generation);
  piece = NULL;
  piece_at = written = 0;
  return 0;
}

// room_for returns where the next operation goes.
static struct op *room_for(void) {
  enum { EACH = PIECE / sizeof(struct op) };
  if (!piece || written - piece_at >= EACH) {
    uint64_t at = 4096 + written / EACH * (uint64_t)PIECE;
    if (piece) munmap(piece, PIECE);
    piece = NULL;
    if (ftruncate(record_fd, (off_t)(at + PIECE))) return NULL;
    void *m = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, record_fd, (off_t)at);
    if (m == MAP_FAILED) return NULL;
    piece = m;
    piece_at = written;
  }
  return (struct op *)piece + (written - piece_at);
}

PUBLIC void simccl_record(const struct op *ops, int n) {
  pthread_mutex_lock(&lock);
  if (record_generation != atomic_load(&generation) && record_open()) n = 0;
  for (int i = 0; i < n; i++) {
    struct op *to = room_for();
    if (!to) break;
    *to = ops[i];
    atomic_store_explicit(record_count, ++written, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}
