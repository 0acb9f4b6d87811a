// A growing segment in a file, as these tests make it: no header, just what the queue itself uses.
#pragma once

#include <sys/stat.h>

#include <vector>

#include "growing/queue.hpp"
#include "support/mapping.hpp"
#include "support/ring_steps.hpp"

namespace queueduct::testing {

struct GrowingSizes {
  std::uint64_t first_bytes = 128;
  std::uint32_t steps = 4;
  std::uint64_t slot_bytes = 16;
  std::uint32_t participants = 8;
  bool varying = true;  // bytes; else records
  std::uint32_t producers = 0;
  std::uint64_t max_bytes = 0;

  [[nodiscard]] GrowingOffsets offsets() const noexcept {
    return growing_offsets(first_bytes, steps, slot_bytes, participants, producers, 0, varying);
  }
};

// What must have memory from the start: all up to the end of level 0.
[[nodiscard]] inline std::uint64_t first_region_end(const GrowingSizes& sizes) {
  const GrowingOffsets at = sizes.offsets();
  return region_offsets(at.regions, level_capacity(sizes.first_bytes, 0, sizes.slot_bytes), sizes.slot_bytes,
                        sizes.varying)
      .end;
}

inline void prepare_first_level(std::byte* base, const GrowingOffsets& at, const GrowingSizes& sizes) noexcept {
  auto* level = reinterpret_cast<LevelControl*>(base + at.levels);
  level->prepared.store(level_capacity(sizes.first_bytes, 0, sizes.slot_bytes));
}

class GrowingSegment {
 public:
  explicit GrowingSegment(const GrowingSizes& sizes)
      : sizes_(sizes), at_(sizes.offsets()), fd_(open_nameless_file(at_.total)), base_(map_file(fd_, at_.total)) {
    reset();
  }
  ~GrowingSegment() {
    munmap(base_, at_.total);
    close(fd_);
  }
  GrowingSegment(const GrowingSegment&) = delete;
  GrowingSegment& operator=(const GrowingSegment&) = delete;

  // As created.
  void reset() {
    const auto all = static_cast<off_t>(at_.total);
    const auto first = static_cast<off_t>(first_region_end(sizes_));
    if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, all) != 0 || fallocate(fd_, 0, 0, first) != 0)
      throw std::runtime_error("cannot clear the segment");
    prepare_first_level(base_, at_, sizes_);
  }

  [[nodiscard]] const GrowingSizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] const GrowingOffsets& offsets() const noexcept { return at_; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] GrowingControl& control() const noexcept {
    return *reinterpret_cast<GrowingControl*>(base_ + at_.control);
  }
  [[nodiscard]] ParticipantLine* lines() const noexcept {
    return reinterpret_cast<ParticipantLine*>(base_ + at_.participants);
  }
  [[nodiscard]] Levels levels() const noexcept {
    return Levels(base_, at_, sizes_.first_bytes, sizes_.steps, sizes_.slot_bytes, sizes_.varying, false);
  }
  [[nodiscard]] std::uint64_t resident_bytes() const {
    struct stat status {};
    if (fstat(fd_, &status) != 0) throw std::runtime_error("fstat failed");
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }

 private:
  GrowingSizes sizes_;
  GrowingOffsets at_;
  int fd_;
  std::byte* base_;
};

// A mapping of one's own and an open file description of one's own, as another process has them.
class GrowingAttachment {
 public:
  explicit GrowingAttachment(const GrowingSegment& segment)
      : mapping_(segment.fd(), segment.base(), segment.offsets().total),
        last_(segment.sizes().participants),
        queue_(mapping_.base(), segment.offsets(), segment.sizes().first_bytes, segment.sizes().steps,
               segment.sizes().slot_bytes, segment.sizes().varying, segment.sizes().max_bytes,
               segment.sizes().participants, segment.sizes().producers, open_again(segment.fd()), Identity{},
               last_.data()) {}
  ~GrowingAttachment() { queue_.participant_table().leave(); }
  GrowingAttachment(const GrowingAttachment&) = delete;
  GrowingAttachment& operator=(const GrowingAttachment&) = delete;

  [[nodiscard]] GrowingQueue& queue() noexcept { return queue_; }
  [[nodiscard]] GrowingFlow& flow() noexcept { return queue_.flow(); }

  [[nodiscard]] Participant ledger() {
    Participant ledger;
    if (queue_.find_participant(ledger)) return ledger;
    if (queue_.join() != ParticipantTable::Joined::yes || !queue_.find_participant(ledger))
      throw std::runtime_error("cannot join: the participant table is full");
    return ledger;
  }

  // One item of `bytes` bytes.
  [[nodiscard]] Outcome put(const void* data, std::uint64_t bytes) {
    const Participant mine = ledger();
    return queue_.put_into_ring(mine, queue_.slots_for(bytes), [=](const GrowingRing& ring) {
      return try_put_bytes(ring, mine, data, bytes);
    });
  }
  [[nodiscard]] Outcome put_number(std::uint64_t number) { return put(&number, sizeof number); }

  // The item at the front, and a copy of the ring that it is in.
  [[nodiscard]] Outcome peek(Participant me, Peeked& peeked, GrowingRing& ring) {
    Item item;
    const Outcome outcome = queue_.peek(me, item);
    peeked = item;
    ring = *queue_.ring_of(me, item);
    return outcome;
  }

  [[nodiscard]] Outcome get(void* to, std::uint64_t room, std::uint64_t& bytes) {
    const Participant mine = ledger();
    for (;;) {
      Peeked peeked;
      GrowingRing ring;
      const Outcome outcome = peek(mine, peeked, ring);
      if (outcome != Outcome::done) return outcome;
      if (peeked.bytes > room) throw std::runtime_error("an item is longer than any that was put");
      if (!claim_pop(ring, mine, peeked.span)) continue;
      finish_pop(ring, mine, peeked, to);
      bytes = peeked.bytes;
      flow().after_get(ring);
      return outcome;
    }
  }
  [[nodiscard]] Outcome get_number(std::uint64_t& number) {
    std::uint64_t bytes = 0;
    return get(&number, sizeof number, bytes);
  }

  // To others this looks like a process that was killed: the kernel has dropped its locks.
  void die() noexcept { queue_.participant_table().leave(); }

 private:
  OwnMapping mapping_;
  std::vector<LastRings> last_;
  GrowingQueue queue_;
};

}  // namespace queueduct::testing
