// A process that has the collector write into another one's memory, if it may: steal MODE, where
// MODE is claim (it says that it is its parent), show (it shows its parent's memory as its own),
// none (it shows no memory), own (what programs do) or orphan (the same, of a process whose parent has
// ended). It prints what it was told, and whether its
// parent's memory has changed; own writes its own.
#define _GNU_SOURCE
#include "../../shim/src/shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char mine[16] = "untouched";

static int dial(void) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", getenv("SIMCCL_INTERCEPT"));
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return connect(fd, (struct sockaddr *)&at, sizeof at) ? -1 : fd;
}

static void get(int fd, void *to, size_t n) {
  for (char *p = to; n;) {
    ssize_t k = read(fd, p, n);
    if (k <= 0) exit(0); // closed by the collector
    p += k, n -= (size_t)k;
  }
}

static int ask(int fd, struct request *r, int shown) {
  char room[CMSG_SPACE(sizeof(int))] = {0}, text[512] = "";
  struct iovec part = {r, sizeof *r};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
  struct reply out;
  if (shown >= 0) {
    m.msg_control = room, m.msg_controllen = sizeof room;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &shown, sizeof shown);
  }
  sendmsg(fd, &m, MSG_NOSIGNAL);
  get(fd, &out, sizeof out);
  if (out.size < sizeof text) get(fd, text, out.size);
  if (out.status) printf("%d %s\n", out.status, text), fflush(stdout);
  return out.status;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "claim";
  int claims = !strcmp(mode, "claim"), shows = !strcmp(mode, "show"), none = !strcmp(mode, "none");
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  unsetenv("LD_PRELOAD");
  int orphan = !strcmp(mode, "orphan"), done[2];
  if (pipe(done)) return 1;
  pid_t child = fork();
  if (child == 0) {
    if (orphan) {
      pid_t parent = getpid();
      if (fork()) _exit(0);
      while (getppid() == parent) usleep(1000);
    }
    char name[64];
    snprintf(name, sizeof name, shows ? "/proc/%d/mem" : "/proc/self/mem", getppid());
    int fd = dial(), memory = none ? -1 : open(name, O_RDWR);
    struct request hello = {.type = REQ_HELLO, .a = {claims ? getppid() : getpid(), 0, -1, 0}};
    struct request set = {.type = REQ_SET, .a = {0, 0, (int64_t)(uintptr_t)mine, 'A', 6}}, sync = {.type = REQ_SYNC};
    if (fd < 0 || (!none && memory < 0)) _exit(2);
    ask(fd, &hello, memory);
    ask(fd, &set, -1);
    ask(fd, &sync, -1);
    if (!claims && !shows && !none) printf("own: %s\n", mine), fflush(stdout);
    _exit(0);
  }
  int status;
  char end;
  close(done[1]);
  waitpid(child, &status, 0);
  while (read(done[0], &end, 1) > 0) { // until all that hold the other end have ended
  }
  printf("parent: %s\n", mine);
  return 0;
}
