// Included before everything else in each extension module, so that one built with a newer C library is loaded by glibc
// 2.28 too: the platform manylinux_2_28 of the wheels. `make wheels` checks that nothing newer is asked for.
#pragma once

#include <features.h>  // tells whether it is glibc

#ifdef __GLIBC__
#if defined(__x86_64__)
#define QUEUEDUCT_BASE "GLIBC_2.2.5"
#define QUEUEDUCT_ROBUST "GLIBC_2.12"
#elif defined(__aarch64__)
#define QUEUEDUCT_BASE "GLIBC_2.17"
#define QUEUEDUCT_ROBUST "GLIBC_2.17"
#endif
#ifdef QUEUEDUCT_BASE
// glibc 2.34 moved these from libpthread to libc under a new version, and has them under the old one as well. Python
// has loaded either library.
__asm__(".symver pthread_mutex_trylock, pthread_mutex_trylock@" QUEUEDUCT_BASE);
__asm__(".symver pthread_mutex_timedlock, pthread_mutex_timedlock@" QUEUEDUCT_BASE);
__asm__(".symver pthread_mutexattr_init, pthread_mutexattr_init@" QUEUEDUCT_BASE);
__asm__(".symver pthread_mutexattr_destroy, pthread_mutexattr_destroy@" QUEUEDUCT_BASE);
__asm__(".symver pthread_mutexattr_setpshared, pthread_mutexattr_setpshared@" QUEUEDUCT_BASE);
__asm__(".symver pthread_mutexattr_setrobust, pthread_mutexattr_setrobust@" QUEUEDUCT_ROBUST);
__asm__(".symver pthread_mutex_consistent, pthread_mutex_consistent@" QUEUEDUCT_ROBUST);
#undef QUEUEDUCT_BASE
#undef QUEUEDUCT_ROBUST
#endif
#endif

#ifdef __cplusplus
#include <bits/c++config.h>

#ifdef __GLIBCXX__
// What std::vector calls when it is asked for more than there are addresses. libstdc++ 11 and later have it, and a
// module that has its own does not ask for theirs.
namespace std {
[[noreturn]] void __throw_bad_alloc();
[[noreturn, gnu::visibility("hidden")]] inline void __throw_bad_array_new_length() { __throw_bad_alloc(); }
}  // namespace std
#endif
#endif
