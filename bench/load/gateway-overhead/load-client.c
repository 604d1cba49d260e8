// Load client for whole and streamed chat completions: one thread, epoll, keep-alive, loopback only, bounded in count and time.
// Closed loop by default; with -r an open loop, whose latencies count from the moment at which a request was due (no coordinated
// omission). Connections are opened when first needed, so an open loop also opens them gradually. Every frame of every stream is
// checked: count, order and the final [DONE]. Prints one line of JSON.
//
// build: cc -O2 -o load-client load-client.c
// run:   ./load-client -p PORT -c CONNECTIONS -n REQUESTS -t SECONDS [-g GRACE_SECONDS] [-r PER_SECOND]
//                      [-s -k CHUNKS -i INTERVAL_MS] [-a KEY] [-H 'name: value']...
#include "answer.h"
#include "loop.h"
#include <errno.h>

typedef struct {
  double *at;
  size_t len, cap;
} Samples;

typedef struct {
  int fd;  // -1: not connected
  bool busy, connecting, held;
  long long due_at;
  Answer answer;
} Conn;

static struct {
  int port, connections, requests, is_stream, chunks, interval_ms, letters;
  double seconds, grace_seconds, per_second;
  char *key, headers[2048];
} opt = {.port = 9001, .connections = 1, .requests = 1000, .seconds = 5, .grace_seconds = 5, .chunks = 20, .key = "sk-bench-0123456789"};

static char *request;
static size_t request_len;
static int ep, busy, held, held_max;
static Samples latency, first_frame, lag;
static long ok, bad, errors, frames, lost, disordered, undone, unopened, unfinished;
static int bad_status;
static char bad_body[LINE_BYTES_MAX];
static long long last_end_at, received_at;
static Conn **idle;
static int idle_len;

static void add(Samples *s, double us) {
  if (s->len == s->cap) s->at = realloc(s->at, (s->cap = s->cap ? s->cap * 2 : 65536) * sizeof(double));
  s->at[s->len++] = us;
}

static int ascending(const void *a, const void *b) {
  double x = *(double *)a, y = *(double *)b;
  return x < y ? -1 : x > y;
}

static double quantile(Samples *s, double q) { return s->len ? s->at[(size_t)(q * (s->len - 1))] : 0; }

// The connection has nothing in flight any more; what a stream that had been opened still owed is lost. A stream that was refused,
// or whose connection the target never accepted, owed nothing: it counts as unopened.
static void release(Conn *c) {
  if (opt.is_stream && (c->answer.phase == IN_HEAD || c->answer.status != 200)) unopened++;
  else if (opt.is_stream) {
    if (c->answer.frames < opt.chunks) lost += opt.chunks - c->answer.frames;
    disordered += c->answer.disordered + c->answer.unframed;
    if (!c->answer.done) undone++;
  }
  if (c->held) held--;
  c->busy = c->held = c->connecting = false;
  busy--;
  idle[idle_len++] = c;
}

static void hang_up(Conn *c) {
  close(c->fd);
  c->fd = -1;
}

static void fail(Conn *c) {
  errors++;
  hang_up(c);
  release(c);
}

static void finish(Conn *c) {
  Answer *a = &c->answer;
  a->line[a->line_len] = 0;
  // Some gateways answer 200 with an error in the body: a whole answer must look like one.
  bool good = a->status == 200 && (opt.is_stream ? a->done : strstr(a->line, "\"choices\"") != NULL);
  if (good) {
    ok++;
    add(&latency, (received_at - c->due_at) / 1e3); // a quick refusal must not look like a quick answer
  } else if (bad++ == 0) {
    bad_status = a->status;
    strcpy(bad_body, a->line);
  }
  last_end_at = received_at;
  if (a->close_after) hang_up(c);
  release(c);
}

static void on_frame(void *owner, long long stamped_at) {
  Conn *c = owner;
  frames++;
  add(&lag, (received_at - stamped_at) / 1e3);
  if (c->held) return;
  c->held = true;
  if (++held > held_max) held_max = held;
  add(&first_frame, (received_at - c->due_at) / 1e3);
}

static void send_request(Conn *c) {
  if (send(c->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len) fail(c);
}

static void start(Conn *c, long long due_at) {
  c->busy = true;
  c->due_at = due_at;
  busy++;
  answer_begin(&c->answer, opt.is_stream);
  if (c->fd >= 0) {
    send_request(c);
    return;
  }
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in to = loopback(opt.port);
  if (c->fd < 0 || (connect(c->fd, (void *)&to, sizeof to) && errno != EINPROGRESS)) {
    fail(c);
    return;
  }
  set_no_delay(c->fd);
  c->connecting = true;
  struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
  epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
}

static void connected(Conn *c) {
  int error = 0;
  socklen_t len = sizeof error;
  getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
  if (error) {
    fail(c);
    return;
  }
  c->connecting = false;
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
  send_request(c);
}

static void readable(Conn *c) {
  static char bytes[1 << 16];
  ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
  if (n < 0 && errno == EAGAIN) return;
  received_at = now_ns();
  if (!c->busy) hang_up(c); // an idle connection that the server closed
  else if (n <= 0 || !answer_feed(&c->answer, bytes, n, on_frame, c)) fail(c);
  else if (c->answer.phase == COMPLETE) finish(c);
}

/** Ordinary prose of this many letters, to make a prompt as long as wanted. */
static char *prose(int letters) {
  static const char words[] = "The gates are opened step by step while the water rises, and the people below are told in time. ";
  char *text = malloc(letters + 1);
  for (int i = 0; i < letters; i++) text[i] = words[i % (sizeof words - 1)];
  text[letters] = 0;
  return text;
}

static void make_request(void) {
  char *body;
  int len = asprintf(&body,
                     "{\"model\":\"bench\",\"stream\":%s,\"max_tokens\":4096,\"messages\":[{\"role\":\"system\",\"content\":\"You are a terse "
                     "assistant that answers in one sentence.\"},{\"role\":\"user\",\"content\":\"%sWhat does a spillway do when the "
                     "reservoir is full? chunks=%d interval_ms=%d\"}]}",
                     opt.is_stream ? "true" : "false", prose(opt.letters), opt.chunks, opt.interval_ms);
  request_len = asprintf(&request,
                         "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                         "Authorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s",
                         opt.port, opt.key, opt.headers, len, body);
}

static void read_options(int argc, char **argv) {
  int o;
  while ((o = getopt(argc, argv, "p:c:n:t:g:r:sk:i:a:l:H:")) != -1) switch (o) {
      case 'p': opt.port = atoi(optarg); break;
      case 'c': opt.connections = atoi(optarg); break;
      case 'n': opt.requests = atoi(optarg); break;
      case 't': opt.seconds = atof(optarg); break;
      case 'g': opt.grace_seconds = atof(optarg); break;
      case 'r': opt.per_second = atof(optarg); break;
      case 's': opt.is_stream = 1; break;
      case 'k': opt.chunks = atoi(optarg); break;
      case 'i': opt.interval_ms = atoi(optarg); break;
      case 'a': opt.key = optarg; break;
      case 'l': opt.letters = atoi(optarg); break;
      case 'H':
        if (strlen(opt.headers) + strlen(optarg) + 3 > sizeof opt.headers) exit(2);
        strcat(strcat(opt.headers, optarg), "\r\n");
        break;
      default: exit(2);
    }
}

// Sends until the count or the time is reached, then waits for what is in flight, for a bounded time.
static void drive(long long begun_at) {
  long long stop_at = begun_at + (long long)(opt.seconds * 1e9), end_at = stop_at + (long long)(opt.grace_seconds * 1e9);
  long sent = 0;
  struct epoll_event ready[256];
  for (;;) {
    long long now = now_ns(), due_at = now, wait_ns = 20000000;
    bool sending = sent < opt.requests && now < stop_at && !(errors > 1000 && ok == 0);
    if (now > end_at || (!sending && busy == 0)) return;
    while (sending && idle_len > 0) {
      if (opt.per_second > 0) due_at = begun_at + (long long)(sent * 1e9 / opt.per_second);
      if (due_at > now) break;
      start(idle[--idle_len], due_at);
      sending = ++sent < opt.requests;
    }
    if (sending && idle_len > 0 && due_at - now < wait_ns) wait_ns = due_at > now ? due_at - now : 0;
    struct timespec wait = {0, wait_ns};
    int n = epoll_pwait2(ep, ready, 256, &wait, NULL);
    for (int i = 0; i < n; i++) {
      Conn *c = ready[i].data.ptr;
      if (c->connecting) connected(c);
      else if (c->fd >= 0) readable(c);
    }
  }
}

static void print_quantiles(const char *name, Samples *s) {
  if (s->len) qsort(s->at, s->len, sizeof(double), ascending);
  printf(",\"%s\":{\"count\":%zu,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"max\":%.1f}", name, s->len, quantile(s, .5), quantile(s, .9),
         quantile(s, .99), quantile(s, 1));
}

static void print_text(const char *text) {
  putchar('"');
  for (; *text; text++)
    if (*text == '"' || *text == '\\') printf("\\%c", *text);
    else if ((unsigned char)*text >= 32 && (unsigned char)*text < 127) putchar(*text);
  putchar('"');
}

int main(int argc, char **argv) {
  read_options(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  die_with_parent();
  if (raise_descriptor_limit() < opt.connections + 16) {
    fprintf(stderr, "load-client: the limit on open files is too low for %d connections\n", opt.connections);
    return 1;
  }
  make_request();
  ep = epoll_create1(0);
  Conn *conns = calloc(opt.connections, sizeof *conns);
  idle = calloc(opt.connections, sizeof *idle);
  for (int i = opt.connections - 1; i >= 0; i--) {
    conns[i].fd = -1;
    idle[idle_len++] = &conns[i];
  }
  long long begun_at = last_end_at = now_ns();
  drive(begun_at);
  for (int i = 0; i < opt.connections; i++) unfinished += conns[i].busy; // late, which is not lost
  printf("{\"seconds\":%.4f,\"ok\":%ld,\"bad\":%ld,\"errors\":%ld,\"unfinished\":%ld,\"frames\":%ld,\"lost\":%ld,\"disordered\":%ld,"
         "\"undone\":%ld,\"unopened\":%ld,\"heldMax\":%d,\"badStatus\":%d,\"badBody\":",
         (last_end_at - begun_at) / 1e9, ok, bad, errors, unfinished, frames, lost, disordered, undone, unopened, held_max, bad_status);
  print_text(bad_body);
  print_quantiles("latencyUs", &latency);
  print_quantiles("firstFrameUs", &first_frame);
  print_quantiles("lagUs", &lag);
  puts("}");
  return 0;
}
