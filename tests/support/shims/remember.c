// A disk that remembers: preloaded, it copies a file's first REMEMBER_BYTES to REMEMBER after each fdatasync of it.
// That is what the disk has of them for certain.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int fdatasync(int fd) {
  static int (*next)(int);
  if (next == 0) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  const int result = next(fd);
  const char* const path = getenv("REMEMBER");
  const char* const number = getenv("REMEMBER_BYTES");
  if (result != 0 || path == 0 || number == 0) return result;
  const size_t bytes = (size_t)atol(number);
  char* const copy = malloc(bytes);
  const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (copy == 0 || pread(fd, copy, bytes, 0) != (ssize_t)bytes || write(to, copy, bytes) != (ssize_t)bytes) abort();
  close(to);
  free(copy);
  return result;
}
