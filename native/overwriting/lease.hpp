// A lease on an overwriting queue: messages in cells of their own, until their holder releases them.
//
// Shape      claim ─► copy to a cell ─► … the holder works …─┬─► release all, let the line go
//            or take over from a holder that is gone         ├─► release some, let the line go
//                                                            └─► killed
//            A lease has a participant line of its own, so its holder's threads may use the queue meanwhile.
// Roles      one holder, one call at a time. The memory for the list of leased messages is the caller's.
// Invariants H1  a leased message is whole in its cell: no put can overwrite it, and it survives its holder. Only the
//                message that a holder is copying when it dies is lost, and counted (S4).
//            H2  a line that is let go counts as dead: messages not released are delivered to the next consumer, at the
//                same position. So to give back needs no mechanism of its own.
//            H3  messages are released in order: a released one is never delivered again, any other always is.
//            H4  after a fork a lease is the parent's: the child has none of its locks.
//            H5  a get whose messages are converted by user code is a lease for that long. It claims with its thread's
//                line, which is then set apart: the user code may use the queue, with another line.
// Progress   as a get, and one cell for each message: without a free cell a lease waits for others to release.
// Source     ours; killed at every step in tests/native/crash/overwriting. A dead reader's message is lost, a lease's
//            must not be: what its holder has appended elsewhere before it died must not be counted as lost.
#pragma once

#include "overwriting/queue.hpp"
#include "segment/file_size.hpp"
#include "segment/lease_line.hpp"

namespace queueduct {

class OverwritingLease {
 public:
  explicit OverwritingLease(OverwritingShared& queue) noexcept : queue_(&queue), mine_(queue) {}
  OverwritingLease(const OverwritingLease&) = delete;
  OverwritingLease& operator=(const OverwritingLease&) = delete;
  ~OverwritingLease() { let_go(); }

  // Before anything else, and again after a fork.
  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    has_abandoned_ = false;
    return mine_.join(line_);
  }
  // For a get (H5): claims with the calling thread's line instead. Again after a call that may have forked.
  void borrow(std::uint32_t line) noexcept {
    line_ = line;
    has_abandoned_ = false;
    mine_.borrow();
  }
  // After such a claim: from here on the line is the lease's.
  void set_apart() noexcept { mine_.set_apart(line_); }
  // Releases all of it: the line is the thread's again.
  void finish(const LeasedMessage* leased, std::uint64_t count) noexcept {
    release(leased, count);
    mine_.take_back(line_);
    mine_.forget_holder();
  }

  // H4
  [[nodiscard]] bool is_ours() const noexcept { return mine_.is_ours(); }

  // Memory for the cells' data. Returns 0 or an error number. Costs a system call once there is memory.
  [[nodiscard]] int allocate() noexcept {
    const LeasedMessages& messages = queue_->leased_messages();
    const std::uint64_t begin = messages.data_offset();
    const std::uint64_t bytes = round_up(messages.data_bytes(), page_bytes);  // a touched page needs all of its blocks
    const int fd = queue_->participant_table().descriptor();
    int error = check_length(fd, begin + bytes);
    if (error != 0) return error;
    do error = posix_fallocate(fd, static_cast<off_t>(begin), static_cast<off_t>(bytes));
    while (error == EINTR);
    return error;
  }

  // Claims up to `limit` messages from the front. Sets `count`, also if the next one was refused. full: there is no
  // free cell. Otherwise as a get.
  [[nodiscard]] Claim try_claim(LeasedMessage* leased, std::uint64_t limit, std::int64_t limit_ns,
                                std::uint64_t& count) noexcept {
    Claim claim = Claim::done;
    std::uint64_t cell = 0;
    for (count = 0; count < limit; ++count) {
      if ((claim = claim_one(leased[count], cell, limit_ns)) != Claim::done) break;
      cell = leased[count].cell + 1;
    }
    if (count != 0) note_holder(false);
    return claim;
  }

  // Takes over messages whose holder is gone, the oldest first. Returns how many.
  [[nodiscard]] std::uint64_t take_over(LeasedMessage* leased, std::uint64_t limit) noexcept {
    free_half_cells();
    const std::uint64_t count = queue_->leased_messages().take_over(line_, leased, limit);
    if (count != 0) note_holder(true);
    return count;
  }

  // Releases the first `count`; let_go() gives the rest back. keeps H3
  void release(const LeasedMessage* leased, std::uint64_t count) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) queue_->leased_messages().release_cell(leased[i].cell);
    queueduct::count(queue_->counters(line_).items_got, count);
    if (count != 0) queue_->cell_freed().notify_all();
  }

  // keeps H2
  void let_go() noexcept { mine_.let_go(line_); }

  [[nodiscard]] bool is_redelivered() const noexcept { return is_redelivered_; }
  [[nodiscard]] std::uint32_t line() const noexcept { return line_; }

 private:
  static constexpr int claim_tries = 16;
  static constexpr std::int64_t free_limit_ns = 1'000'000;

  void note_holder(bool is_redelivered) noexcept {
    is_redelivered_ = is_redelivered;
    mine_.note_holder();
  }

  // Cells below `cell` are not free.
  [[nodiscard]] Claim claim_one(LeasedMessage& leased, std::uint64_t cell, std::int64_t limit_ns) noexcept {
    OverwritingRing& ring = queue_->ring();
    LeasedMessages& messages = queue_->leased_messages();
    for (int tries = 0; tries < claim_tries; ++tries) {
      if (ring.may_be_empty()) return Claim::empty;
      leased.cell = cell;
      if (!messages.find_free(leased.cell)) return Claim::full;
      if (const Claim entered = enter(limit_ns); entered != Claim::done) return entered;
      Claimed claimed;
      const Claim claim = ring.claim_to_lease(line_, leased, claimed);
      queue_->leave();
      if (claim != Claim::done) queue_->rest(line_);
      if (claim == Claim::full) continue;
      if (claim != Claim::done) {
        if (claimed.skipped != 0) queue_->room().notify();
        return claim;
      }
      ring.copy_out(claimed, messages.data(leased.cell), ring.message_bytes());
      const bool is_mine = ring.finish_lease_copy(line_, claimed, leased);
      queue_->rest(line_);
      queue_->room().notify();
      if (is_mine) return claim;
      end(leased);
    }
    return Claim::busy;
  }

  // A line's new owner abandons what the last one was reading.
  [[nodiscard]] Claim enter(std::int64_t limit_ns) noexcept {
    const Claim entered = queue_->enter(line_, limit_ns);
    if (entered == Claim::done && !has_abandoned_) {
      queue_->ring().abandon_reading(line_);
      has_abandoned_ = true;
    }
    return entered;
  }

  // If the header's lock is held too long, the next free_half_cells() does it.
  void end(const LeasedMessage& leased) noexcept {
    if (enter(free_limit_ns) != Claim::done) return;
    queue_->ring().free_half_cell(leased);
    queue_->leave();
    queue_->rest(line_);
  }

  // keeps S4
  void free_half_cells() noexcept {
    LeasedMessage half{};
    for (; queue_->leased_messages().find_half(half.cell, half.owner); ++half.cell) end(half);
  }

  OverwritingShared* queue_;
  LeaseLine<OverwritingShared> mine_;
  std::uint32_t line_ = 0;
  bool has_abandoned_ = false;
  bool is_redelivered_ = false;
};

}  // namespace queueduct
