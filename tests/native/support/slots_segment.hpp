// A slots segment in a file, as these tests make it: no header, just what the queue itself uses.
#pragma once

#include <cstring>

#include "support/mapping.hpp"
#include "slots/queue.hpp"

namespace queueduct::testing {

struct SlotsSizes {
  std::uint64_t count = 4;
  std::uint64_t slot_bytes = 16;
  std::uint32_t participants = 8;
  std::uint32_t producers = 0;

  [[nodiscard]] SlotsOffsets offsets() const noexcept {
    return slots_offsets(count, slot_bytes, participants, producers, 0);
  }
};

// The file, and a view of it that belongs to no participant: for raw looks, and to start afresh.
class SlotsSegment {
 public:
  explicit SlotsSegment(const SlotsSizes& sizes)
      : sizes_(sizes), at_(sizes.offsets()), fd_(open_nameless_file(at_.total)), base_(map_file(fd_, at_.total)) {
    reset();
  }
  ~SlotsSegment() {
    munmap(base_, at_.total);
    close(fd_);
  }
  SlotsSegment(const SlotsSegment&) = delete;
  SlotsSegment& operator=(const SlotsSegment&) = delete;

  // As created, except that the cycles start at `cycle`: as if so many rounds had come and gone.
  void reset(std::uint64_t cycle = 0) noexcept {
    std::memset(base_, 0, at_.payload);
    queue(control().free, at_.free_cells).construct_full(cycle);
    queue(control().used, at_.used_cells).construct_empty(cycle);
    control().capacity.store(sizes_.count, std::memory_order_release);
  }

  [[nodiscard]] const SlotsSizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] const SlotsOffsets& offsets() const noexcept { return at_; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] SlotsControl& control() const noexcept { return *reinterpret_cast<SlotsControl*>(base_ + at_.control); }
  [[nodiscard]] ParticipantLine* lines() const noexcept {
    return reinterpret_cast<ParticipantLine*>(base_ + at_.participants);
  }

 private:
  [[nodiscard]] IndexQueue queue(IndexEnds& ends, std::uint64_t cells) const noexcept {
    return IndexQueue(&ends, reinterpret_cast<IndexQueue::Cells>(base_ + cells), sizes_.count);
  }

  SlotsSizes sizes_;
  SlotsOffsets at_;
  int fd_;
  std::byte* base_;
};

// A mapping of one's own and an open file description of one's own, as another process has them.
class SlotsAttachment {
 public:
  explicit SlotsAttachment(const SlotsSegment& segment)
      : mapping_(segment.fd(), segment.base(), segment.offsets().total),
        queue_(mapping_.base(), seen_offsets(segment), segment.sizes().count, segment.sizes().slot_bytes,
               segment.sizes().participants, segment.sizes().producers, open_again(segment.fd()), Identity{}),
        producers_(segment.offsets().producers == 0
                       ? nullptr
                       : reinterpret_cast<ProducersHead*>(mapping_.base() + segment.offsets().producers),
                   segment.sizes().producers, queue_.participant_table()) {}
  ~SlotsAttachment() { queue_.participant_table().leave(); }
  SlotsAttachment(const SlotsAttachment&) = delete;
  SlotsAttachment& operator=(const SlotsAttachment&) = delete;

  [[nodiscard]] SlotsQueue& queue() noexcept { return queue_; }
  [[nodiscard]] Slots& slots() noexcept { return queue_.slots(); }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }

  // The calling thread's name, joined at the first call.
  [[nodiscard]] std::uint32_t me() {
    if (queue_.me() != 0) return queue_.me();
    if (queue_.join() != ParticipantTable::Joined::yes)
      throw std::runtime_error("cannot join: the participant table is full");
    return queue_.me();
  }

  // To others this looks like a process that was killed: the kernel has dropped its locks.
  void die() noexcept { queue_.participant_table().leave(); }

  [[nodiscard]] SlotOutcome hold(Lease& lease) { return slots().try_hold(me(), lease); }
  [[nodiscard]] SlotOutcome take(Lease& lease) { return slots().try_take(me(), lease); }

  [[nodiscard]] SlotOutcome put(std::uint64_t number) {
    Lease lease;
    const SlotOutcome outcome = hold(lease);
    if (outcome != SlotOutcome::done) return outcome;
    std::memcpy(lease.data, &number, sizeof number);
    return slots().publish(lease, sizeof number);
  }

  // Puts out the oldest when it is full.
  [[nodiscard]] SlotOutcome overwrite(std::uint64_t number, Lease& evicted) {
    Lease lease;
    evicted = Lease{};
    SlotOutcome outcome = hold(lease);
    if (outcome == SlotOutcome::full) {
      outcome = slots().try_evict(me(), lease);
      if (outcome == SlotOutcome::done) evicted = lease;
    }
    if (outcome != SlotOutcome::done) return outcome;
    std::memcpy(lease.data, &number, sizeof number);
    return slots().publish(lease, sizeof number);
  }

  [[nodiscard]] SlotOutcome get(std::uint64_t& number) {
    Lease lease;
    const SlotOutcome outcome = take(lease);
    if (outcome != SlotOutcome::done) return outcome;
    std::memcpy(&number, lease.data, sizeof number);
    return slots().leave(lease) ? SlotOutcome::done : SlotOutcome::corrupt;
  }

 private:
  [[nodiscard]] static SlotsOffsets seen_offsets(const SlotsSegment& segment) noexcept {
    SlotsOffsets at = segment.offsets();
    if (hides_producers) at.producers = 0;
    return at;
  }

  OwnMapping mapping_;
  SlotsQueue queue_;
  Producers producers_;  // also where the queue does not see them
};

}  // namespace queueduct::testing
