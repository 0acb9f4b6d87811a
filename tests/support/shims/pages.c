// A kernel with larger pages: preloaded, it answers as one of PAGE bytes a page does (arm64 has 16 and 64 kB).
//   it says so             sysconf, getpagesize, getauxval
//   it begins with a page  mmap, which also refuses other addresses and offsets; mremap, which always moves
//   it takes whole pages   munmap and madvise refuse to begin elsewhere; a length that ends within one means all of
//                          it; fallocate gives whole pages, and a hole frees whole ones and zeroes the rest
// The C library's own calls are not seen: its stacks and heaps lie where they like.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/auxvec.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t page_bytes(void) {
  static uint64_t page;
  if (page == 0) page = getenv("PAGE") != 0 ? strtoull(getenv("PAGE"), 0, 0) : 65536;
  return page;
}
static uint64_t up(uint64_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }
static uint64_t down(uint64_t bytes) { return bytes / page_bytes() * page_bytes(); }
static int refuse(void) {
  errno = EINVAL;
  return -1;
}

#define NEXT(name, result, ...)                                    \
  static result (*next)(__VA_ARGS__);                              \
  if (next == 0) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

long sysconf(int name) {
  NEXT("sysconf", long, int);
  return name == _SC_PAGESIZE ? (long)page_bytes() : next(name);
}
int getpagesize(void) { return (int)page_bytes(); }
unsigned long getauxval(unsigned long type) {
  NEXT("getauxval", unsigned long, unsigned long);
  return type == AT_PAGESZ ? page_bytes() : next(type);
}

static int next_munmap(void* at, size_t bytes) {
  NEXT("munmap", int, void*, size_t);
  return next(at, bytes);
}

static void* next_mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  NEXT("mmap", void*, void*, size_t, int, int, int, off_t);
  return next(at, bytes, protection, flags, fd, offset);
}

// Whole pages for so many bytes. What is left of the last one stays reserved, so that nothing else lies there.
static char* reserved(size_t bytes) {
  const size_t wide_bytes = up(bytes) + page_bytes();
  char* const wide = next_mmap(0, wide_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED) return wide;
  char* const begin = (char*)up((uintptr_t)wide);
  char* const end = begin + up(bytes);
  if (begin > wide) next_munmap(wide, (size_t)(begin - wide));
  if (wide + wide_bytes > end) next_munmap(end, (size_t)(wide + wide_bytes - end));
  return begin;
}
// What lies in a reservation now; if that failed, the reservation goes.
static void* kept(char* begin, size_t bytes, void* mapped) {
  if (mapped == MAP_FAILED) {
    const int error = errno;
    next_munmap(begin, up(bytes));
    errno = error;
  }
  return mapped;
}

void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if ((uint64_t)offset % page_bytes() != 0 || ((flags & MAP_FIXED) && (uintptr_t)at % page_bytes() != 0)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  if ((flags & (MAP_FIXED | MAP_STACK | MAP_GROWSDOWN)) || bytes == 0)
    return next_mmap(at, bytes, protection, flags, fd, offset);
  char* const begin = reserved(bytes);
  if (begin == MAP_FAILED) return MAP_FAILED;
  return kept(begin, bytes, next_mmap(begin, bytes, protection, flags | MAP_FIXED, fd, offset));
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return mmap(at, bytes, protection, flags, fd, offset);
}

void* mremap(void* at, size_t bytes, size_t wanted, int flags, ...) {
  NEXT("mremap", void*, void*, size_t, size_t, int, ...);
  if ((uintptr_t)at % page_bytes() != 0 || flags != MREMAP_MAYMOVE || wanted == 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  char* const begin = reserved(wanted);
  if (begin == MAP_FAILED) return MAP_FAILED;
  void* const mapped = kept(begin, wanted, next(at, bytes, wanted, MREMAP_MAYMOVE | MREMAP_FIXED, begin));
  const uint64_t moved = (bytes + 4095) / 4096 * 4096;
  if (mapped != MAP_FAILED && up(bytes) > moved) next_munmap((char*)at + moved, up(bytes) - moved);
  return mapped;
}

int munmap(void* at, size_t bytes) {
  if ((uintptr_t)at % page_bytes() != 0) return refuse();
  return next_munmap(at, up(bytes));
}

int madvise(void* at, size_t bytes, int advice) {
  NEXT("madvise", int, void*, size_t, int);
  if ((uintptr_t)at % page_bytes() != 0) return refuse();
  return next(at, advice == MADV_DONTNEED ? up(bytes) : bytes, advice);
}

// A part of a page: zeroed if there is something in it, and no memory comes or goes.
static int zero(int fd, uint64_t begin, uint64_t end) {
  static const char zeros[4096];
  char seen[sizeof zeros];
  while (begin < end) {
    const size_t bytes = end - begin < sizeof zeros ? end - begin : sizeof zeros;
    const ssize_t got = pread(fd, seen, bytes, (off_t)begin);
    if (got < 0) return -1;
    if (memcmp(seen, zeros, (size_t)got) != 0 && pwrite(fd, zeros, (size_t)got, (off_t)begin) != got) return -1;
    begin += bytes;
  }
  return 0;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  NEXT("fallocate", int, int, int, off_t, off_t);
  const uint64_t begin = (uint64_t)offset;
  const uint64_t end = begin + (uint64_t)bytes;
  if (!(mode & FALLOC_FL_PUNCH_HOLE)) {
    if (next(fd, mode, offset, bytes) != 0) return -1;
    return next(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)down(begin), (off_t)(up(end) - down(begin)));
  }
  if (up(begin) >= down(end)) return zero(fd, begin, end);
  if (zero(fd, begin, up(begin)) != 0 || zero(fd, down(end), end) != 0) return -1;
  return next(fd, mode, (off_t)up(begin), (off_t)(down(end) - up(begin)));
}
int fallocate64(int fd, int mode, off_t offset, off_t bytes) { return fallocate(fd, mode, offset, bytes); }

int posix_fallocate(int fd, off_t offset, off_t bytes) {
  return fallocate(fd, 0, offset, bytes) == 0 ? 0 : errno;
}
int posix_fallocate64(int fd, off_t offset, off_t bytes) { return posix_fallocate(fd, offset, bytes); }
