// A process that dies at a step: preloaded, it kills the process before or after its n-th call that changes a file in
// one directory, or writes it to the disk.
//   STEPS_IN    the directory
//   STEPS_KILL  which step, from 1 on; each call has two, before it and after it
//   STEPS_LOG   a file that gets a line for each step: its number, before or after, the call, the file
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int steps;

static int is_watched(const char* path) {
  const char* const folder = getenv("STEPS_IN");
  return folder != 0 && strncmp(path, folder, strlen(folder)) == 0;
}

static void step(const char* when, const char* call, const char* path) {
  const int number = atomic_fetch_add(&steps, 1) + 1;
  const char* const log = getenv("STEPS_LOG");
  const char* const kill_at = getenv("STEPS_KILL");
  if (log != 0) {
    char line[PATH_MAX + 64];
    const char* const name = strrchr(path, '/');
    const int length = snprintf(line, sizeof line, "%d %s %s %s\n", number, when, call, name == 0 ? path : name + 1);
    const int to = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (syscall(SYS_write, to, line, length) != length) abort();
    syscall(SYS_close, to);
  }
  if (kill_at != 0 && atoi(kill_at) == number) kill(getpid(), SIGKILL);
}

static const char* path_of(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
  return path;
}

#define NEXT(name, result, ...)                                    \
  static result (*next)(__VA_ARGS__);                              \
  if (next == 0) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define STEPS(call, path, type, what)   \
  do {                                  \
    if (!is_watched(path)) return what; \
    step("before", call, path);         \
    const type result = what;           \
    step("after", call, path);          \
    return result;                      \
  } while (0)

ssize_t write(int fd, const void* data, size_t bytes) {
  char path[PATH_MAX];
  NEXT("write", ssize_t, int, const void*, size_t);
  STEPS("write", path_of(fd, path), ssize_t, next(fd, data, bytes));
}

int fsync(int fd) {
  char path[PATH_MAX];
  NEXT("fsync", int, int);
  STEPS("fsync", path_of(fd, path), int, next(fd));
}

int rename(const char* from, const char* to) {
  NEXT("rename", int, const char*, const char*);
  STEPS("rename", from, int, next(from, to));
}

int unlink(const char* path) {
  NEXT("unlink", int, const char*);
  STEPS("unlink", path, int, next(path));
}

static int opened(const char* path, int flags, unsigned mode) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                                                   \
  int name(const char* path, int flags, ...) {                       \
    va_list rest;                                                    \
    va_start(rest, flags);                                           \
    const unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0; \
    va_end(rest);                                                    \
    if (!(flags & O_CREAT)) return opened(path, flags, mode);        \
    STEPS("open", path, int, opened(path, flags, mode));             \
  }
OPEN(open)
OPEN(open64)
