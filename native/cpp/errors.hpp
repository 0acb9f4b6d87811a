// What can go wrong in a C++ program, one class for each decision that a caller can make: Python's names and meanings.
//
//   std::runtime_error
//   └─ Error
//      ├─ QueueNotFound         no queue of that name
//      ├─ CorruptSegment        the file is no segment, or contradicts itself: recreate the queue
//      ├─ WrongType             the queue is of another kind, or has other items, than the program was written for
//      ├─ ShutDown              the queue was shut down: no item goes in, or none will come any more
//      ├─ TooManyParticipants   every line of the participant table is taken
//      └─ QueueClosed           the handle has lost its descriptor: open the queue again
//   std::system_error           what the system refused: memory, a disk, a descriptor
//   std::invalid_argument       an argument that no queue can accept
//
// A full or an empty queue is no error: put returns false, or how many are in, and get returns nothing.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace queueduct {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct QueueNotFound : Error {
  using Error::Error;
};
struct CorruptSegment : Error {
  using Error::Error;
};
struct WrongType : Error {
  using Error::Error;
};
struct ShutDown : Error {
  using Error::Error;
};
struct TooManyParticipants : Error {
  using Error::Error;
};
struct QueueClosed : Error {
  using Error::Error;
};

namespace facade {

[[noreturn]] inline void raise_system(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

[[nodiscard]] inline std::string quoted(const std::string& name) { return "'" + name + "'"; }

}  // namespace facade
}  // namespace queueduct
