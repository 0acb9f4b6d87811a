// What a C++ program's handle on a queue of any kind has: its memory, and the errors of every kind.
#pragma once

#include <sys/mman.h>

#include <memory>

#include "cpp/deadline.hpp"
#include "cpp/process.hpp"
#include "cpp/segment.hpp"
#include "segment/fault_guard.hpp"

namespace queueduct::facade {

// A file as memory. A page that is missing costs the call, never the process: see segment/fault_guard.hpp.
class Mapping {
 public:
  Mapping(const Segment& segment, bool populate) : bytes_(segment.header.total_bytes) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | (populate ? MAP_POPULATE : 0),
                              segment.file.number(), 0);
    if (memory == MAP_FAILED)
      raise_system(errno, "no address space for the " + std::to_string(bytes_) + " bytes of " + segment.label() +
                              "; raise the limit (ulimit -v), or create a smaller queue");
    base_ = static_cast<std::byte*>(memory);
    guard_ = fault_guard::watch(base_, bytes_);
    if (guard_ == nullptr) {
      munmap(base_, bytes_);
      throw std::bad_alloc();
    }
  }
  ~Mapping() {
    fault_guard::forget(guard_);
    munmap(base_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] bool is_broken() const noexcept { return guard_->broken.load(std::memory_order_acquire); }

 private:
  std::byte* base_;
  std::uint64_t bytes_;
  fault_guard::Range* guard_;
};

class Handle {
 public:
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return segment_.name; }
  [[nodiscard]] const Dtype& item() const noexcept { return segment_.item; }

 protected:
  // A small queue whose memory is all needed is populated, so that no put meets a page fault.
  Handle(Segment segment, Kind kind)
      : segment_((check_kind(segment, kind), std::move(segment))),
        memory_(segment_, kind == Kind::bounded && segment_.header.total_bytes <= populate_limit_bytes) {}

  [[nodiscard]] std::string label() const { return segment_.label(); }

  void check_attached(const ParticipantTable& table) const {
    if (const int error = table.open_error(); error != 0)
      raise_system(error, "the queue " + label() +
                              " needs a file descriptor of its own for its locks, opened through "
                              "/proc; close files that are not needed, or raise the limit (ulimit -n)");
  }

  // After every operation: a result that a missing page had part in is not believed.
  void check_sound() const {
    if (memory_.is_broken()) [[unlikely]]
      throw CorruptSegment("the segment of " + label() + " was truncated while it was in use, or its disk failed; " +
                           "recreate the queue");
  }
  void check_held(const ParticipantTable& table) const {
    check_sound();
    if (table.was_lost()) [[unlikely]]
      raise_lost();
  }
  [[noreturn]] void raise_lost() const {
    throw QueueClosed("this handle of the queue " + label() + " has no file descriptor any more: this process has " +
                      "closed it, as daemons do; open the queue again by its name");
  }
  [[noreturn]] void raise_corrupt() const {
    check_sound();
    throw CorruptSegment("the words of " + label() + " contradict each other; recreate the queue");
  }
  [[noreturn]] void raise_shut_down() const {
    check_sound();
    throw ShutDown("the queue " + label() + " is shut down");
  }
  void check_joined(ParticipantTable::Joined joined) const {
    using Joined = ParticipantTable::Joined;
    if (joined == Joined::yes) return;
    check_sound();
    if (joined == Joined::table_full)
      throw TooManyParticipants("all " + std::to_string(segment_.header.participants) + " participants of " + label() +
                                " are in use; end threads or processes that use it, or create the queue with a " +
                                "larger participants=");
    if (joined == Joined::too_many_threads)
      throw TooManyParticipants("more than " + std::to_string(thread_number::limit) +
                                " threads of this process use queueduct at once; end some");
    raise_lost();
  }

  static constexpr std::uint64_t populate_limit_bytes = 256 << 20;

  Segment segment_;
  Mapping memory_;
};

}  // namespace queueduct::facade
