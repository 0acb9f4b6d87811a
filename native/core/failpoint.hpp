// Named points at which a test can kill or stop a process: before and after each shared access that matters.
//
// In a release build QUEUEDUCT_FAILPOINT compiles to nothing. In the crash-test build (-DQUEUEDUCT_FAILPOINTS) every
// point that is reached calls the armed function with its name.
#pragma once

#ifndef QUEUEDUCT_FAILPOINTS

#define QUEUEDUCT_FAILPOINT(name) ((void)0)

#else

namespace queueduct::failpoint {

inline void (*armed)(const char* name) = nullptr;

inline void disarm() noexcept { armed = nullptr; }

inline void reached(const char* name) noexcept {
  if (armed != nullptr) armed(name);
}

}  // namespace queueduct::failpoint

#define QUEUEDUCT_FAILPOINT(name) ::queueduct::failpoint::reached(name)

#endif
