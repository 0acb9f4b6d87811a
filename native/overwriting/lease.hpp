// A lease on an overwriting queue: messages that are out of the queue and on the shelf, until their holder says so.
//
// Shape      claim ─► copy to the shelf ─► … the holder works …─┬─► release all, let the line go
//            or take over what the gone have left               ├─► release some, let the line go
//                                                               └─► killed
//            A lease has a line of the participant table to itself, so its holder's threads may use the queue meanwhile.
// Roles      one holder, one call at a time. The memory for the list of what is held is the caller's.
// Invariants H1  a message that a lease has is on the shelf, whole: no put can overwrite it, and its holder's death
//                takes nothing with it. What its holder was just copying there is lost, and counted (S4): at most one.
//            H2  a line that is let go is a dead one's: what is not released is delivered to the next, at the same
//                position. To give back is to die of one's own will, and needs no other mechanism.
//            H3  messages are released in order: what was released never comes again, what was not always does.
//            H4  after a fork a lease is the parent's: the child has none of its locks.
//            H5  a get whose messages are converted by somebody else's code is a lease for as long as that takes. It
//                claims with its thread's line, which is then set apart: that code may use the queue, with another line.
// Progress   as a get, and one place on the shelf for each message: leases wait for others' if there is none.
// Source     ours. Why not as with a dead reader, whose message is gone? A holder lives long between claim and release,
//            it syncs a disk; and what it has appended elsewhere before it was killed must not be counted as lost.
//            Killed at every step in tests/native/crash_overwriting.cpp.
#pragma once

#include "segment/file_size.hpp"
#include "overwriting/queue.hpp"

namespace queueduct {

class OverwritingLease {
 public:
  explicit OverwritingLease(OverwritingShared& queue) noexcept : queue_(&queue) {}
  OverwritingLease(const OverwritingLease&) = delete;
  OverwritingLease& operator=(const OverwritingLease&) = delete;
  ~OverwritingLease() { let_go(); }

  // Before anything else, and again after a fork.
  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    generation_ = queue_->participant_table().generation();
    const ParticipantTable::Joined joined = queue_->join_apart(line_);
    is_joined_ = joined == ParticipantTable::Joined::yes;
    is_buried_ = false;
    return joined;
  }
  // For a get (H5): claim with the calling thread's line instead. Again after whatever may have forked.
  void borrow(std::uint32_t line) noexcept {
    line_ = line;
    is_joined_ = false;
    generation_ = queue_->participant_table().generation();
    is_buried_ = false;
  }
  // After such a claim: from here on it is a lease.
  void set_apart() noexcept {
    QUEUEDUCT_FAILPOINT("lease.before_set_apart");
    std::uint32_t line = 0;
    generation_ = queue_->participant_table().generation();
    is_joined_ = queue_->participant_table().set_apart(line) && line == line_;
    QUEUEDUCT_FAILPOINT("lease.set_apart");
  }
  // Release all of it: the line is the thread's again.
  void finish(const LeasedMessage* kept, std::uint64_t count) noexcept {
    release(kept, count);
    QUEUEDUCT_FAILPOINT("lease.before_take_back");
    queue_->participant_table().take_back(line_);
    is_joined_ = false;
    forget_holder();
  }

  // H4
  [[nodiscard]] bool is_ours() const noexcept { return is_joined_ && generation_ == queue_->participant_table().generation(); }

  // Memory for the shelf: 0, or what errno would say. Once it has some it costs a system call.
  [[nodiscard]] int allocate() noexcept {
    const LeasedMessages& leased_messages = queue_->leased_messages();
    const std::uint64_t bytes = round_up(leased_messages.data_bytes(), page_bytes);  // a touched page needs all of its blocks
    int error = check_length(queue_->participant_table().descriptor(), leased_messages.data_offset() + bytes);
    if (error != 0) return error;
    do {
      error = posix_fallocate(queue_->participant_table().descriptor(), static_cast<off_t>(leased_messages.data_offset()),
                              static_cast<off_t>(bytes));
    } while (error == EINTR);
    return error;
  }

  // What is at the front, up to `limit` messages; `count` of them are had, also if the next one was refused.
  // full: there is no place on the shelf. Else as a get.
  [[nodiscard]] Claim try_claim(LeasedMessage* kept, std::uint64_t limit, std::int64_t limit_ns,
                                std::uint64_t& count) noexcept {
    Claim claim = Claim::done;
    std::uint64_t place = 0;
    for (count = 0; count < limit; ++count) {
      if ((claim = claim_one(kept[count], place, limit_ns)) != Claim::done) break;
      place = kept[count].place + 1;
    }
    if (count != 0) is_redelivered_ = false;
    if (count != 0) note_holder();
    return claim;
  }

  // What the dead have left, and those who gave back; the oldest first.
  [[nodiscard]] std::uint64_t take_over(LeasedMessage* kept, std::uint64_t limit) noexcept {
    bury_half();
    const std::uint64_t count = queue_->leased_messages().take_over(line_, kept, limit);
    if (count != 0) is_redelivered_ = true;
    if (count != 0) note_holder();
    return count;
  }

  // The first `count` of what is held; the rest, if there is one, is given back by let_go(). keeps H3
  void release(const LeasedMessage* kept, std::uint64_t count) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) queue_->leased_messages().release_place(kept[i].place);
    if (count != 0) queue_->shelved().notify_all();
  }

  // keeps H2
  void let_go() noexcept {
    if (!is_ours()) return;
    QUEUEDUCT_FAILPOINT("lease.before_let_go");
    queue_->participant_table().let_go(line_);
    QUEUEDUCT_FAILPOINT("lease.let_go");
    is_joined_ = false;
    forget_holder();
  }

  [[nodiscard]] bool is_redelivered() const noexcept { return is_redelivered_; }
  [[nodiscard]] std::uint32_t line() const noexcept { return line_; }

 private:
  static constexpr int claim_tries = 16;
  static constexpr std::int64_t bury_limit_ns = 1'000'000;

  void note_holder() noexcept {
    noted_at_ = queue_->rest().note();
    is_noted_ = true;
  }
  void forget_holder() noexcept {
    if (!is_noted_) return;
    is_noted_ = false;
    queue_->rest().forget(noted_at_);
    queue_->wake_the_rest();
  }

  // `place`: where to look for a free one from.
  [[nodiscard]] Claim claim_one(LeasedMessage& kept, std::uint64_t place, std::int64_t limit_ns) noexcept {
    OverwritingRing& ring = queue_->ring();
    LeasedMessages& leased_messages = queue_->leased_messages();
    for (int tries = 0; tries < claim_tries; ++tries) {
      if (ring.looks_empty()) return Claim::empty;
      kept.place = place;
      if (!leased_messages.find_free(kept.place)) return Claim::full;
      if (const Claim entered = enter(limit_ns); entered != Claim::done) return entered;
      Claimed claimed;
      const Claim claim = ring.claim_kept(line_, kept, claimed);
      queue_->leave();
      if (claim != Claim::done) queue_->rest(line_);
      if (claim == Claim::full) continue;
      if (claim != Claim::done) {
        if (claimed.skipped != 0) queue_->room().notify();
        return claim;
      }
      ring.copy_out(claimed, leased_messages.data(kept.place), ring.message_bytes());
      const bool is_mine = ring.finish_kept(line_, claimed, kept);
      queue_->rest(line_);
      queue_->room().notify();
      if (is_mine) return claim;
      end(kept);
    }
    return Claim::busy;
  }

  // A line's new owner abandons what the last one was reading.
  [[nodiscard]] Claim enter(std::int64_t limit_ns) noexcept {
    const Claim entered = queue_->enter(line_, limit_ns);
    if (entered == Claim::done && !is_buried_) {
      queue_->ring().bury_reading(line_);
      is_buried_ = true;
    }
    return entered;
  }

  // If the header cannot be had, the next one who comes to abandon does it.
  void end(const LeasedMessage& kept) noexcept {
    if (enter(bury_limit_ns) != Claim::done) return;
    queue_->ring().end_place(kept);
    queue_->leave();
    queue_->rest(line_);
  }

  // RingState whose filler is gone, or was overtaken, become free. keeps S4
  void bury_half() noexcept {
    LeasedMessage half{};
    for (; queue_->leased_messages().find_half(half.place, half.owner); ++half.place) end(half);
  }

  OverwritingShared* queue_;
  std::uint32_t line_ = 0;
  std::uint32_t generation_ = 0;
  std::uint32_t noted_at_ = Rest::no_place;  // in the list of those who have leases
  bool is_noted_ = false;
  bool is_joined_ = false;
  bool is_buried_ = false;
  bool is_redelivered_ = false;
};

}  // namespace queueduct
