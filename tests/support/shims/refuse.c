// A system that refuses: preloaded, it makes single calls fail as a file system, a disk or a container may.
//   REFUSE_FALLOCATE, REFUSE_PUNCH, REFUSE_FTRUNCATE, REFUSE_FDATASYNC, REFUSE_FSYNC, REFUSE_MADVISE, REFUSE_MEMBARRIER
//                 each the number of the error that the call ends with, as in REFUSE_PUNCH=95
//   REFUSE_WHEN   the path of a file: they are refused only while it exists
//   REFUSE_NTH    of the calls that would be refused only each n-th is
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refusal(const char* name) {
  const char* const number = getenv(name);
  const char* const when = getenv("REFUSE_WHEN");
  if (number == 0 || (when != 0 && access(when, F_OK) != 0)) return 0;
  static int calls;
  const char* const nth = getenv("REFUSE_NTH");
  return nth != 0 && ++calls % atoi(nth) != 0 ? 0 : atoi(number);
}

#define NEXT(name, result, ...)                                    \
  static result (*next)(__VA_ARGS__);                              \
  if (next == 0) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define REFUSE(name)                   \
  do {                                 \
    const int error = refusal(name);   \
    if (error != 0) {                  \
      errno = error;                   \
      return -1;                       \
    }                                  \
  } while (0)

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  NEXT("fallocate", int, int, int, off_t, off_t);
  if (mode & FALLOC_FL_PUNCH_HOLE)
    REFUSE("REFUSE_PUNCH");
  else
    REFUSE("REFUSE_FALLOCATE");
  return next(fd, mode, offset, bytes);
}
int fallocate64(int fd, int mode, off_t offset, off_t bytes) { return fallocate(fd, mode, offset, bytes); }

int posix_fallocate(int fd, off_t offset, off_t bytes) {
  NEXT("posix_fallocate", int, int, off_t, off_t);
  const int error = refusal("REFUSE_FALLOCATE");
  return error != 0 ? error : next(fd, offset, bytes);
}
int posix_fallocate64(int fd, off_t offset, off_t bytes) { return posix_fallocate(fd, offset, bytes); }

int ftruncate(int fd, off_t bytes) {
  NEXT("ftruncate", int, int, off_t);
  REFUSE("REFUSE_FTRUNCATE");
  return next(fd, bytes);
}
int ftruncate64(int fd, off_t bytes) { return ftruncate(fd, bytes); }

int fdatasync(int fd) {
  NEXT("fdatasync", int, int);
  REFUSE("REFUSE_FDATASYNC");
  return next(fd);
}

int fsync(int fd) {
  NEXT("fsync", int, int);
  REFUSE("REFUSE_FSYNC");
  return next(fd);
}

int madvise(void* at, size_t bytes, int advice) {
  NEXT("madvise", int, void*, size_t, int);
  REFUSE("REFUSE_MADVISE");
  return next(at, bytes, advice);
}

long syscall(long number, ...) {
  NEXT("syscall", long, long, ...);
  va_list given;
  long to[6];
  va_start(given, number);
  for (int i = 0; i < 6; ++i) to[i] = va_arg(given, long);
  va_end(given);
  if (number == SYS_membarrier) REFUSE("REFUSE_MEMBARRIER");
  return next(number, to[0], to[1], to[2], to[3], to[4], to[5]);
}
