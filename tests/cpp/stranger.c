/* What the tests let a C program do that knows the published format only: stranger COMMAND PATH ARGUMENT ...
 * A message is its number, in every word. */
#include <queueduct/overwriting/published.h>

#include <stdlib.h>

enum { WORDS_LIMIT = 1 << 16 };
static const int64_t second = 1000000000;
static uint64_t words[WORDS_LIMIT];

static void check(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "%s: %s\n", what, strerror(error));
  exit(1);
}

static void put(const queueduct_published* q, uint64_t number, int64_t timeout_ns) {
  uint32_t i;
  for (i = 0; i < q->msg_size; ++i) words[i] = number;
  check(queueduct_published_put(q, words, timeout_ns), "put");
}

static void print(const queueduct_published* q) {
  uint32_t i;
  for (i = 1; i < q->msg_size; ++i)
    if (words[i] != words[0]) check(EILSEQ, "torn");
  printf("%llu\n", (unsigned long long)words[0]);
}

int main(int count, char** given) {
  queueduct_published q;
  const char* const command = given[1];
  const uint64_t first = count > 3 ? strtoull(given[3], NULL, 10) : 0;
  const uint64_t second_argument = count > 4 ? strtoull(given[4], NULL, 10) : 0;
  uint64_t i;
  if (strcmp(command, "create") == 0) {
    check(queueduct_published_create(given[2], (uint32_t)first, (uint32_t)second_argument), "create");
    return 0;
  }
  check(queueduct_published_open(&q, given[2]), "open");
  if (q.msg_size > WORDS_LIMIT) check(EMSGSIZE, "open");
  if (strcmp(command, "put") == 0) {
    for (i = 0; i < second_argument; ++i) put(&q, first + i, 30 * second);
  } else if (strcmp(command, "put_acknowledged") == 0) {
    for (i = first;; ++i) {
      put(&q, i, 30 * second);
      if (write(STDOUT_FILENO, &i, sizeof i) != (ssize_t)sizeof i) abort();
    }
  } else if (strcmp(command, "get") == 0) {
    for (i = 0; i < first; ++i) {
      check(queueduct_published_get(&q, words, (int64_t)second_argument * 1000000), "get");
      print(&q);
    }
  } else if (strcmp(command, "peek") == 0) {
    check(queueduct_published_peek(&q, words, second), "peek");
    print(&q);
    printf("%u\n", queueduct_published_length(&q));
  } else if (strcmp(command, "hold") == 0) { /* the header's lock, until it is killed */
    check(queueduct_published_lock(&q, queueduct_published_now() + second), "lock");
    printf("held\n");
    fflush(stdout);
    pause();
  } else if (strcmp(command, "tear") == 0) { /* half of a message, until it is killed */
    uint64_t* message;
    check(queueduct_published_claim(&q, 1, queueduct_published_now() + second, &message), "claim");
    memset(message + 1, 0xff, queueduct_published_message_bytes(&q) / 2);
    printf("torn\n");
    fflush(stdout);
    pause();
  } else if (strcmp(command, "release") == 0) {
    printf("%u\n", queueduct_published_release(&q, first));
  } else {
    return 2;
  }
  queueduct_published_close(&q);
  return 0;
}
