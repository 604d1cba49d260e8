// A fake OpenAI-compatible engine: one thread, epoll, HTTP/1.1 keep-alive, loopback only. It answers at once, so that all time
// and CPU seen by the client beyond "direct" belong to the proxy in between.
//
// POST: the prompt says the shape of a stream, "chunks=<n> interval_ms=<m>" (gateways rewrite model names, but not prompts);
// "stream":true picks server-sent events. Each content frame carries "@<number>:<monotonic ns>@", so the client can check
// count and order and compute the lag of each frame. "include_usage":true adds the usage frame, as OpenAI does.
// GET: a model list for /v1/models, 404 for /metrics, {} otherwise (gateways probe their upstreams).
//
// build: cc -O2 -o fake-upstream fake-upstream.c      run: ./fake-upstream <port>
#define _GNU_SOURCE
#include "loop.h"
#include <errno.h>
#include <stdbool.h>
#include <strings.h>

#define REQUEST_BYTES_MAX (1 << 20)

typedef struct {
  int fd;
  unsigned generation;  // tells a timer of an earlier connection on the same descriptor from one of this
  bool streaming, waits_to_write, wants_usage;
  int sent, total;
  long long interval_ns, due_at;
  size_t in_len, in_cap, out_off, out_len;
  char *in, out[2048];
} Conn;

typedef struct {
  long long due_at;
  int fd;
  unsigned generation;
} Timer;

static Conn **conns;
static int descriptors_max, ep;
static unsigned generations;
static Timer *heap;  // binary heap by due_at; a stream waiting for its next frame has exactly one entry
static int heap_len, heap_cap;

static void heap_push(Timer t) {
  if (heap_len == heap_cap) heap = realloc(heap, (heap_cap = heap_cap ? heap_cap * 2 : 1024) * sizeof *heap);
  int i = heap_len++;
  for (; i > 0 && heap[(i - 1) / 2].due_at > t.due_at; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = t;
}

static Timer heap_pop(void) {
  Timer top = heap[0], last = heap[--heap_len];
  int i = 0;
  for (;;) {
    int child = 2 * i + 1;
    if (child >= heap_len) break;
    if (child + 1 < heap_len && heap[child + 1].due_at < heap[child].due_at) child++;
    if (heap[child].due_at >= last.due_at) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return top;
}

static void drop(Conn *c) {
  close(c->fd);
  conns[c->fd] = NULL;
  free(c->in);
  free(c);
}

static void watch(Conn *c, bool also_write) {
  if (c->waits_to_write == also_write) return;
  struct epoll_event e = {.events = EPOLLIN | (also_write ? EPOLLOUT : 0), .data.fd = c->fd};
  epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
  c->waits_to_write = also_write;
}

// Returns false when the connection died. A full socket is not an error: the rest goes out when the reader has caught up.
static bool flush_out(Conn *c) {
  while (c->out_off < c->out_len) {
    ssize_t n = send(c->fd, c->out + c->out_off, c->out_len - c->out_off, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno != EAGAIN) return false;
      watch(c, true);
      return true;
    }
    c->out_off += n;
  }
  c->out_off = c->out_len = 0;
  watch(c, false);
  return true;
}

#define FRAME_HEAD "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",\"choices\":"

static size_t put_http_chunk(char *out, const char *data, int len) { return sprintf(out, "%x\r\n%.*s\r\n", len, len, data); }

static size_t put_content_frame(Conn *c) {
  char data[512];
  const char *role = c->sent == 0 ? "\"role\":\"assistant\"," : "";
  int len = snprintf(data, sizeof data, FRAME_HEAD "[{\"index\":0,\"delta\":{%s\"content\":\" @%d:%lld@\"},\"finish_reason\":null}]}\n\n",
                     role, c->sent, now_ns());
  return put_http_chunk(c->out, data, len);
}

static size_t put_tail(Conn *c) {
  char data[1024];
  int len = snprintf(data, sizeof data, FRAME_HEAD "[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
  if (c->wants_usage)
    len += snprintf(data + len, sizeof data - len,
                    FRAME_HEAD "[],\"usage\":{\"prompt_tokens\":57,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", c->total, 57 + c->total);
  len += snprintf(data + len, sizeof data - len, "data: [DONE]\n\n");
  size_t n = put_http_chunk(c->out, data, len);
  return n + sprintf(c->out + n, "0\r\n\r\n");
}

// Sends every frame that is due. One send per frame: an engine emits a token at a time.
static bool pump(Conn *c, long long now) {
  while (c->streaming && c->out_len == 0) {
    if (c->sent < c->total && now < c->due_at) {
      heap_push((Timer){c->due_at, c->fd, c->generation});
      return true;
    }
    if (c->sent < c->total) {
      c->out_len = put_content_frame(c);
      c->sent++;
      c->due_at += c->interval_ns;
    } else {
      c->out_len = put_tail(c);
      c->streaming = false;
    }
    if (!flush_out(c)) return false;
  }
  return true;
}

static bool answer_whole(Conn *c, const char *status, const char *body) {
  c->out_len = snprintf(c->out, sizeof c->out,
                        "HTTP/1.1 %s\r\nContent-Type: application/json\r\nx-request-id: req_bench\r\nContent-Length: %zu\r\n\r\n%s", status,
                        strlen(body), body);
  return flush_out(c);
}

static bool answer_stream(Conn *c, const char *body, size_t len) {
  const char *shape = memmem(body, len, "chunks=", 7), *interval = memmem(body, len, "interval_ms=", 12);
  c->total = shape ? atoi(shape + 7) : 20;
  c->interval_ns = interval ? atol(interval + 12) * 1000000LL : 0;
  c->wants_usage = memmem(body, len, "\"include_usage\":true", 20) != NULL;
  c->sent = 0;
  c->streaming = true;
  c->due_at = now_ns();
  c->out_len = snprintf(c->out, sizeof c->out,
                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nx-request-id: req_bench\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n");
  return flush_out(c) && pump(c, now_ns());
}

static bool answer_get(Conn *c) {
  if (memmem(c->in, 64, "/models ", 8))
    return answer_whole(c, "200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\",\"created\":1700000000,\"owned_by\":\"bench\"}]}");
  if (memmem(c->in, 64, "/metrics ", 9)) return answer_whole(c, "404 Not Found", "{}");
  return answer_whole(c, "200 OK", "{}");
}

static const char *whole_answer =
    "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"message\":{"
    "\"role\":\"assistant\",\"content\":\"The spillway opens when the reservoir is full, so the dam never has to hold more than it was built to "
    "hold. Requests above the line are turned away at once, and those below it keep their deadlines.\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":57,\"completion_tokens\":43,\"total_tokens\":100}}";

// Bytes of the first request in the buffer, 0 while it is incomplete. Sets where its body starts.
static size_t request_length(Conn *c, size_t *head_len) {
  char *head_end = memmem(c->in, c->in_len, "\r\n\r\n", 4);
  if (!head_end) return 0;
  *head_len = head_end - c->in + 4;
  size_t body_len = 0;
  bool chunked = false;
  for (char *line = c->in; line && line < head_end; line = memmem(line, head_end + 2 - line, "\r\n", 2)) {
    if (*line == '\r') line += 2;
    if (!strncasecmp(line, "content-length:", 15)) body_len = strtoul(line + 15, NULL, 10);
    if (!strncasecmp(line, "transfer-encoding:", 18)) chunked = true;
  }
  if (chunked) {
    char *end = memmem(head_end + 2, c->in + c->in_len - head_end - 2, "\r\n0\r\n\r\n", 7);
    return end ? (size_t)(end + 7 - c->in) : 0;
  }
  return c->in_len >= *head_len + body_len ? *head_len + body_len : 0;
}

// Answers the requests in the buffer, one after the other. Returns false when the connection died.
static bool handle(Conn *c) {
  while (!c->streaming && c->out_len == 0) {
    size_t head_len, len = request_length(c, &head_len);
    if (len == 0) return c->in_len < REQUEST_BYTES_MAX;
    const char *body = c->in + head_len;
    bool alive;
    if (!strncmp(c->in, "GET ", 4)) alive = answer_get(c);
    else if (memmem(body, len - head_len, "\"stream\":true", 13)) alive = answer_stream(c, body, len - head_len);
    else alive = answer_whole(c, "200 OK", whole_answer);
    memmove(c->in, c->in + len, c->in_len - len);
    c->in_len -= len;
    if (!alive) return false;
  }
  return true;
}

static bool read_in(Conn *c) {
  for (;;) {
    if (c->in_cap - c->in_len < 2048) c->in = realloc(c->in, c->in_cap *= 2);
    ssize_t n = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, 0);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN;
    c->in_len += n;
    if (c->in_len >= REQUEST_BYTES_MAX) return false;
  }
}

static void accept_all(int listener) {
  int fd;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    if (fd >= descriptors_max) {
      close(fd);
      continue;
    }
    set_no_delay(fd);
    Conn *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->generation = ++generations;
    c->in = calloc(1, c->in_cap = 4096);
    conns[fd] = c;
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
  }
}

static void on_event(Conn *c, unsigned events) {
  bool alive = !(events & (EPOLLERR | EPOLLHUP));
  if (alive && events & EPOLLIN) alive = read_in(c);
  if (alive && events & EPOLLOUT) alive = flush_out(c) && pump(c, now_ns());
  if (alive) alive = handle(c);
  if (!alive) drop(c);
}

static void run_timers(void) {
  long long now = now_ns();
  while (heap_len && heap[0].due_at <= now) {
    Timer t = heap_pop();
    Conn *c = conns[t.fd];
    if (!c || c->generation != t.generation || !c->streaming) continue;
    if (!pump(c, now) || !handle(c)) drop(c);
  }
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  die_with_parent();
  descriptors_max = raise_descriptor_limit();
  conns = calloc(descriptors_max, sizeof *conns);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in at = loopback(atoi(argc > 1 ? argv[1] : "9001"));
  if (bind(listener, (void *)&at, sizeof at) || listen(listener, 4096)) {
    perror("fake-upstream: cannot listen");
    return 1;
  }
  ep = epoll_create1(0);
  struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, ready[512];
  epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e);
  for (;;) {
    long long wait_ns = heap_len ? heap[0].due_at - now_ns() : 1000000000LL;
    if (wait_ns < 0) wait_ns = 0;
    struct timespec wait = {wait_ns / 1000000000LL, wait_ns % 1000000000LL};
    int n = epoll_pwait2(ep, ready, 512, &wait, NULL);
    for (int i = 0; i < n; i++) {
      int fd = ready[i].data.fd;
      if (fd == listener) accept_all(listener);
      else if (conns[fd]) on_event(conns[fd], ready[i].events);
    }
    run_timers();
  }
}
