/* The published format of an overwriting queue, for C11 and C++: a stranger, which knows only the published part, puts,
 * gets and peeks. See docs/memory-layout.md, "The published part", and docs/cpp.md.
 *
 * Shape      | magic | QUEUE_MAX_LEN | MSG_SIZE | HEADER_LOCK | START_IDX, QUEUE_LEN | messages: MSG_LOCK, data |
 * Roles      any process that may map the file. Calls on one queue may come from several threads.
 * Invariants U1  a lock is taken by a compare-and-swap from 0, or stored under the header's lock where it was 0; no
 *                other value is ever overwritten. Its value here is the pid, so that a person sees who has it.
 *            U2  START_IDX and QUEUE_LEN change by one store, under the header's lock.
 *            U3  a message's data is written only under its lock, and peeked only under the header's.
 * Progress   a stranger waits for every lock. If it is killed with one, nobody else can know: the others wait until
 *            a person calls queueduct_published_release() with its pid. A C++ program that uses queueduct.hpp is a
 *            participant instead, and its locks are taken over by themselves.
 *
 * Every call returns 0, or an error number: ETIMEDOUT if the time is up, EPROTO if the file makes no sense. */
#ifndef QUEUEDUCT_PUBLISHED_H
#define QUEUEDUCT_PUBLISHED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall(), for C with -std=c11 */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the format is little-endian"
#endif

enum {
  QUEUEDUCT_HEADER_LOCK_AT = 16,
  QUEUEDUCT_RING_STATE_AT = 24,
  QUEUEDUCT_MESSAGES_AT = 32,
  QUEUEDUCT_CONTROL_OFFSET_AT = 64, /* in queueduct's own part */
  QUEUEDUCT_PAGE = 4096
};
#define QUEUEDUCT_PUBLISHED_MAGIC "\x57\x6f\x72\x6b\x20\x69\x73\x20"

typedef struct queueduct_published {
  unsigned char* base;
  uint64_t bytes;         /* of the mapping */
  uint32_t queue_max_len; /* messages */
  uint32_t msg_size;      /* words of a message's data */
  uint32_t* items;        /* event word on which queueduct's readers sleep; NULL: not adopted by queueduct */
} queueduct_published;

static inline uint64_t queueduct_published_message_bytes(const queueduct_published* q) {
  return 8 * (uint64_t)q->msg_size;
}

/* Internal. */
static inline uint64_t queueduct_published_end(uint64_t queue_max_len, uint64_t msg_size) {
  return QUEUEDUCT_MESSAGES_AT + queue_max_len * (8 + 8 * msg_size); /* of a file that is as long, so it fits */
}
static inline uint64_t* queueduct_published_word(const queueduct_published* q, uint64_t at) {
  return (uint64_t*)(void*)(q->base + at);
}
static inline uint64_t* queueduct_published_message(const queueduct_published* q, uint64_t index) {
  return queueduct_published_word(q, QUEUEDUCT_MESSAGES_AT + index * (8 + queueduct_published_message_bytes(q)));
}
static inline int64_t queueduct_published_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline int queueduct_published_pause(int64_t end) {
  const struct timespec pause = {0, 20000};
  if (queueduct_published_now() >= end) return ETIMEDOUT;
  nanosleep(&pause, NULL);
  return 0;
}

/* Locks the header. keeps U1 */
static inline int queueduct_published_lock(const queueduct_published* q, int64_t end) {
  uint64_t* const lock = queueduct_published_word(q, QUEUEDUCT_HEADER_LOCK_AT);
  for (;;) {
    uint64_t none = 0;
    if (__atomic_compare_exchange_n(lock, &none, (uint64_t)getpid(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 0;
    if (queueduct_published_pause(end) != 0) return ETIMEDOUT;
  }
}
static inline void queueduct_published_unlock(uint64_t* lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

/* Locks the header and the message, and changes the ring. `which`: 1 put, -1 get, 0 peek. Sets *message. Afterwards the
 * message is locked or, for a peek, the header. */
static inline int queueduct_published_claim(const queueduct_published* q, int which, int64_t end, uint64_t** message) {
  uint64_t* const header = queueduct_published_word(q, QUEUEDUCT_HEADER_LOCK_AT);
  uint64_t* const state = queueduct_published_word(q, QUEUEDUCT_RING_STATE_AT);
  const uint64_t most = q->queue_max_len;
  for (;;) {
    uint64_t start, length, index;
    if (which != 1 && (__atomic_load_n(state, __ATOMIC_RELAXED) >> 32) == 0) {
      if (queueduct_published_pause(end) != 0) return ETIMEDOUT;
      continue;
    }
    if (queueduct_published_lock(q, end) != 0) return ETIMEDOUT;
    start = __atomic_load_n(state, __ATOMIC_RELAXED) & 0xffffffff;
    length = __atomic_load_n(state, __ATOMIC_RELAXED) >> 32;
    if (start >= most || length > most) {
      queueduct_published_unlock(header);
      return EPROTO;
    }
    index = which == 1 ? (start + length) % most : which == -1 ? start : (start + length + most - 1) % most;
    *message = queueduct_published_message(q, index);
    if ((which == 1 || length != 0) && __atomic_load_n(*message, __ATOMIC_ACQUIRE) == 0) {
      if (which == 0) return 0; /* U3 */
      __atomic_store_n(*message, (uint64_t)getpid(), __ATOMIC_RELAXED);
      if (which == -1 || length == most) start = (start + 1) % most;
      if (which == -1)
        --length;
      else if (length < most)
        ++length;
      __atomic_store_n(state, length << 32 | start, __ATOMIC_RELAXED); /* keeps U2; published by the unlock */
      queueduct_published_unlock(header);
      return 0;
    }
    queueduct_published_unlock(header);
    if (queueduct_published_pause(end) != 0) return ETIMEDOUT;
  }
}

/* Makes a file with an empty queue, its magic last. It must not be there yet. */
static inline int queueduct_published_create(const char* path, uint32_t queue_max_len, uint32_t msg_size) {
  const uint32_t sizes[2] = {queue_max_len, msg_size};
  int fd, error = 0;
  if (queue_max_len == 0 || msg_size == 0 ||
      (uint64_t)queue_max_len > ((uint64_t)1 << 46) / (8 + 8 * (uint64_t)msg_size))
    return EINVAL;
  fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  error = posix_fallocate(fd, 0, (off_t)queueduct_published_end(queue_max_len, msg_size));
  if (error == 0 && pwrite(fd, sizes, sizeof sizes, 8) != (ssize_t)sizeof sizes) error = EIO;
  if (error == 0 && pwrite(fd, QUEUEDUCT_PUBLISHED_MAGIC, 8, 0) != 8) error = EIO;
  close(fd);
  if (error != 0) unlink(path);
  return error;
}

/* Opens a queue that this header, Python or another program made. */
static inline int queueduct_published_open(queueduct_published* q, const char* path) {
  struct stat status;
  uint64_t own, control;
  const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  memset(q, 0, sizeof *q);
  if (fd < 0) return errno;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < QUEUEDUCT_MESSAGES_AT) {
    close(fd);
    return EPROTO;
  }
  q->bytes = (uint64_t)status.st_size;
  q->base = (unsigned char*)mmap(NULL, q->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (q->base == MAP_FAILED) return errno;
  memcpy(&q->queue_max_len, q->base + 8, 4);
  memcpy(&q->msg_size, q->base + 12, 4);
  if (memcmp(q->base, QUEUEDUCT_PUBLISHED_MAGIC, 8) != 0 || q->queue_max_len == 0 || q->msg_size == 0 ||
      q->queue_max_len > (q->bytes - QUEUEDUCT_MESSAGES_AT) / (8 + 8 * (uint64_t)q->msg_size)) {
    munmap(q->base, q->bytes);
    return EPROTO;
  }
  own = (queueduct_published_end(q->queue_max_len, q->msg_size) + QUEUEDUCT_PAGE - 1) / QUEUEDUCT_PAGE * QUEUEDUCT_PAGE;
  if (own + QUEUEDUCT_PAGE <= q->bytes && memcmp(q->base + own, "QUEUDUCT", 8) == 0) {
    memcpy(&control, q->base + own + QUEUEDUCT_CONTROL_OFFSET_AT, 8);
    if (control % QUEUEDUCT_PAGE == 0 && control > own && control < q->bytes)
      q->items = (uint32_t*)(void*)(q->base + control);
  }
  return 0;
}

static inline void queueduct_published_close(queueduct_published* q) {
  munmap(q->base, q->bytes);
  q->base = NULL;
}

/* How many messages are in the queue at this moment. */
static inline uint32_t queueduct_published_length(const queueduct_published* q) {
  return (uint32_t)(__atomic_load_n(queueduct_published_word(q, QUEUEDUCT_RING_STATE_AT), __ATOMIC_RELAXED) >> 32);
}

/* Puts a message of queueduct_published_message_bytes(); if the queue is full, the oldest goes. */
static inline int queueduct_published_put(const queueduct_published* q, const void* data, int64_t timeout_ns) {
  uint64_t* message;
  const int error = queueduct_published_claim(q, 1, queueduct_published_now() + timeout_ns, &message);
  if (error != 0) return error;
  memcpy(message + 1, data, queueduct_published_message_bytes(q));
  queueduct_published_unlock(message);
  if (q->items != NULL) { /* a reader of queueduct that sleeps would look again within 100 ms: this is sooner */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(q->items, __ATOMIC_RELAXED) & 1) {
      uint32_t seen = __atomic_load_n(q->items, __ATOMIC_RELAXED);
      while (!__atomic_compare_exchange_n(q->items, &seen, (seen + 2) & ~1u, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      }
      syscall(SYS_futex, q->items, 1 /* FUTEX_WAKE */, INT32_MAX, NULL, NULL, 0);
    }
  }
  return 0;
}

/* Gets the oldest message. */
static inline int queueduct_published_get(const queueduct_published* q, void* data, int64_t timeout_ns) {
  uint64_t* message;
  const int error = queueduct_published_claim(q, -1, queueduct_published_now() + timeout_ns, &message);
  if (error != 0) return error;
  memcpy(data, message + 1, queueduct_published_message_bytes(q));
  queueduct_published_unlock(message);
  return 0;
}

/* Copies the newest message, and leaves it in the queue. Others wait meanwhile. */
static inline int queueduct_published_peek(const queueduct_published* q, void* data, int64_t timeout_ns) {
  uint64_t* message;
  const int error = queueduct_published_claim(q, 0, queueduct_published_now() + timeout_ns, &message);
  if (error != 0) return error;
  memcpy(data, message + 1, queueduct_published_message_bytes(q));
  queueduct_published_unlock(queueduct_published_word(q, QUEUEDUCT_HEADER_LOCK_AT));
  return 0;
}

/* For a person who knows that the process `pid`, a stranger that used this header, is dead: opens its locks. A message
 * that it may have written in part, or was about to get, becomes zeros. Returns how many such messages there are. */
static inline uint32_t queueduct_published_release(const queueduct_published* q, uint64_t pid) {
  uint64_t* const header = queueduct_published_word(q, QUEUEDUCT_HEADER_LOCK_AT);
  const uint64_t state = __atomic_load_n(queueduct_published_word(q, QUEUEDUCT_RING_STATE_AT), __ATOMIC_ACQUIRE);
  const uint64_t start = state & 0xffffffff, length = state >> 32;
  uint32_t zeroed = 0;
  uint64_t i;
  for (i = 0; i < q->queue_max_len; ++i) {
    uint64_t* const message = queueduct_published_message(q, i);
    if (__atomic_load_n(message, __ATOMIC_ACQUIRE) != pid) continue;
    if ((i + q->queue_max_len - start) % q->queue_max_len < length) {
      memset(message + 1, 0, queueduct_published_message_bytes(q));
      ++zeroed;
    }
    queueduct_published_unlock(message);
  }
  if (__atomic_load_n(header, __ATOMIC_ACQUIRE) == pid)
    queueduct_published_unlock(header); /* last: it guards the rest */
  return zeroed;
}

#ifdef __cplusplus
}
#endif

#endif
