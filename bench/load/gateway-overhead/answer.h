// Reading one HTTP/1.1 answer as it arrives in pieces: head, then a body by length or in chunks; bodies of streams are split
// into lines and every frame is checked. Pure state, no sockets: the load client feeds it bytes.
#ifndef ANSWER_H
#define ANSWER_H
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES_MAX 4096
#define LINE_BYTES_MAX 1024

typedef enum { IN_HEAD, IN_SIZE, IN_DATA, IN_DATA_END, IN_TRAILER, COMPLETE } Phase;

typedef struct {
  Phase phase;
  int status;
  bool chunked, close_after, is_stream;
  long left;                // bytes left of the body, or of the current HTTP chunk
  int trailer_line;         // bytes of the current trailer line; an empty one ends the answer
  int frames, next;         // content frames seen; the least number that the next one may have
  int disordered, unframed; // frames out of order or twice; data lines after [DONE]
  bool done;                // [DONE] was seen
  int head_len, line_len;
  char head[HEAD_BYTES_MAX], line[LINE_BYTES_MAX]; // line: the unfinished line of a stream, or the start of a whole body
} Answer;

// Called for each content frame, with the upstream's stamp.
typedef void (*OnFrame)(void *owner, long long stamped_at);

static void answer_begin(Answer *a, bool is_stream) {
  memset(a, 0, offsetof(Answer, head));
  a->is_stream = is_stream;
}

static void check_line(Answer *a, OnFrame on_frame, void *owner) {
  a->line[a->line_len] = 0;
  if (strncmp(a->line, "data:", 5)) return; // blank lines, comments (keep-alives) and event names
  if (a->done) a->unframed++;
  if (strstr(a->line, "[DONE]")) {
    a->done = true;
    return;
  }
  char *mark = strchr(a->line, '@'), *colon = mark ? strchr(mark, ':') : NULL;
  if (!colon) return; // the frames with the finish reason and the usage carry no mark
  // After a gap the frames that follow are in order again: the gap itself shows in the count.
  int number = atoi(mark + 1);
  if (number < a->next) a->disordered++;
  else a->next = number + 1;
  a->frames++;
  on_frame(owner, atoll(colon + 1));
}

static void take_stream(Answer *a, const char *p, size_t n, OnFrame on_frame, void *owner) {
  while (n) {
    const char *newline = memchr(p, '\n', n);
    size_t part = newline ? (size_t)(newline - p) : n, room = LINE_BYTES_MAX - 1 - a->line_len;
    memcpy(a->line + a->line_len, p, part < room ? part : room);
    a->line_len += part < room ? part : room;
    if (!newline) return;
    check_line(a, on_frame, owner);
    a->line_len = 0;
    n -= part + 1;
    p += part + 1;
  }
}

static void take_body(Answer *a, const char *p, size_t n, OnFrame on_frame, void *owner) {
  if (a->is_stream && a->status == 200) {
    take_stream(a, p, n, on_frame, owner);
    return;
  }
  size_t room = LINE_BYTES_MAX - 1 - a->line_len;
  memcpy(a->line + a->line_len, p, n < room ? n : room);
  a->line_len += n < room ? n : room;
}

// Returns how many of the bytes belonged to the head.
static size_t take_head(Answer *a, const char *p, size_t n) {
  size_t room = HEAD_BYTES_MAX - 1 - a->head_len, part = n < room ? n : room;
  int had = a->head_len;
  memcpy(a->head + had, p, part);
  a->head_len += part;
  a->head[a->head_len] = 0;
  char *end = strstr(a->head, "\r\n\r\n");
  if (!end) return part; // with a full buffer and no end this returns 0, which the caller takes for a broken answer
  *end = 0;
  a->status = atoi(a->head + 9);
  char *length = strcasestr(a->head, "\r\ncontent-length:");
  a->chunked = strcasestr(a->head, "\r\ntransfer-encoding: chunked") != NULL;
  a->close_after = strcasestr(a->head, "\r\nconnection: close") != NULL;
  a->left = length && !a->chunked ? atol(length + 17) : 0;
  a->phase = a->chunked ? IN_SIZE : a->left ? IN_DATA : COMPLETE;
  return end + 4 - a->head - had;
}

static int hex_digit(char ch) {
  if (ch >= '0' && ch <= '9') return ch - '0';
  ch |= 32;
  return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

// One step through the framing of a chunked body; returns the bytes used.
static size_t take_framing(Answer *a, char ch) {
  if (a->phase == IN_SIZE) {
    if (ch == '\n') {
      a->phase = a->left ? IN_DATA : IN_TRAILER;
      a->trailer_line = 0;
    } else if (hex_digit(ch) >= 0) a->left = a->left * 16 + hex_digit(ch);
  } else if (a->phase == IN_DATA_END) {
    if (ch == '\n') a->phase = IN_SIZE;
  } else if (ch == '\n') {
    if (a->trailer_line == 0) a->phase = COMPLETE;
    a->trailer_line = 0;
  } else if (ch != '\r') a->trailer_line++;
  return 1;
}

// Feeds bytes; returns false when they cannot be an answer.
static bool answer_feed(Answer *a, const char *p, size_t n, OnFrame on_frame, void *owner) {
  while (n && a->phase != COMPLETE) {
    size_t used;
    if (a->phase == IN_HEAD) {
      used = take_head(a, p, n);
      if (used == 0) return false;
    } else if (a->phase == IN_DATA) {
      used = n < (size_t)a->left ? n : (size_t)a->left;
      take_body(a, p, used, on_frame, owner);
      a->left -= used;
      if (a->left == 0) a->phase = a->chunked ? IN_DATA_END : COMPLETE;
    } else used = take_framing(a, *p);
    p += used;
    n -= used;
  }
  return n == 0; // bytes after the end of an answer: nothing was asked for
}
#endif
