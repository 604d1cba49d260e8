// What the fake upstream and the load client share: the clock, the descriptor limit, a socket on the loopback address.
#ifndef LOOP_H
#define LOOP_H
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// CLOCK_MONOTONIC is one clock for all processes of a machine: a stamp written by the upstream can be compared by the client.
static inline long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// Returns how many descriptors this process may hold, after raising the soft limit to the hard one.
static inline int raise_descriptor_limit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > 1048576 ? 1048576 : (int)limit.rlim_cur;
}

// A benchmark that is killed outright must not leave its programs behind.
static inline void die_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGTERM); }

static inline struct sockaddr_in loopback(int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return a;
}

static inline void set_no_delay(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}
#endif
