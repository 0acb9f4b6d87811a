// A lease on a queue of rings: items that are claimed and copied, and released only when their holder says so.
//
// Shape      claim or redeliver -> copy -> … the holder works …─┬-> release all -> clear the line, let it go
//                                                           ├-> release some, let the line go as it is
//                                                           └-> killed
//            All items of one lease are in one ring.
//            A lease has its own line of the participant table, so its holder's threads may use the queue meanwhile.
// Roles      one holder, one call at a time. The memory for the items is the caller's.
// Invariants H1  the line names what is held from before its claim until its last slot is released (I5, B5).
//            H2  a line that is let go while it names something counts as dead: recovery delivers what is not released
//                to another consumer, at the same position. So giving back needs no mechanism of its own.
//            H3  items are released in order, and a long one head first (I3): a released item never comes again, an
//                unreleased one always does.
//            H4  after a fork a lease is the parent's: the child has none of its locks.
//            H5  a get whose items foreign code converts is a lease for that time. It claims with its thread's line,
//                which is then set apart: that code may use the queue, and has another line.
// Progress   as a get. A lease delays only the participant that needs its slots next.
// Source     ours; killed at every step in tests/native/crash/rings.
#pragma once

#include "ring/operations.hpp"
#include "segment/lease_line.hpp"

namespace queueduct {

// A lease on a queue of either kind.
class RingLease {
 public:
  virtual ~RingLease() = default;

  // To be called first, and again after a fork.
  [[nodiscard]] virtual ParticipantTable::Joined join() noexcept = 0;
  [[nodiscard]] virtual bool is_ours() const noexcept = 0;  // H4

  // For a get (H5): claims use the calling thread's line instead. To be called again after code that may have forked.
  virtual void borrow(Participant ledger) noexcept = 0;
  // After such a claim: it is a lease from here on.
  virtual void set_apart() noexcept = 0;
  // Releases all of it: the line is the thread's again.
  virtual void finish(const Redelivered* items, std::uint64_t count) noexcept = 0;

  // Claims one to `limit` items by the loop of every get (ring/operations.hpp). `dead_first`: items of dead consumers
  // come before the front.
  [[nodiscard]] virtual Outcome claim(Redelivered* items, std::uint64_t limit, std::uint64_t& count, bool dead_first,
                                      Aside aside) noexcept = 0;
  // Its steps. Claims at the front; done with a count of 0: another consumer was faster, try again.
  [[nodiscard]] virtual Outcome try_claim(Redelivered* items, std::uint64_t limit, std::uint64_t& count,
                                          std::uint64_t& skipped) noexcept = 0;
  struct Inherited {
    bool changed = false;    // as of a Recovery::RecoveryScan
    bool unclaimed = false;
    std::uint64_t count = 0;  // items that are ours now
  };
  // Takes over items of dead consumers.
  [[nodiscard]] virtual Inherited try_inherit(Redelivered* items, std::uint64_t limit) noexcept = 0;

  virtual void copy_out(const Redelivered& item, void* to, std::uint64_t bytes) const noexcept = 0;

  // Releases the first `count` items; let_go() gives back the others. keeps H3
  virtual void release(const Redelivered* items, std::uint64_t count, bool is_all) noexcept = 0;
  // keeps H1, H2: after this any participant may own the line, with the claims that it names
  virtual void let_go() noexcept = 0;

  [[nodiscard]] bool is_redelivered() const noexcept { return is_redelivered_; }
  [[nodiscard]] std::uint32_t line() const noexcept { return ledger_.number(); }

 protected:
  RingLease() = default;
  RingLease(const RingLease&) = delete;
  RingLease& operator=(const RingLease&) = delete;

  Participant ledger_;
  bool is_redelivered_ = false;
};

template <class Queue>
class BasicLease final : public RingLease {
 public:
  using Ring = typename Queue::Ring;
  using Recovery = typename Queue::Recovery;
  using RecoveryScan = typename Queue::RecoveryScan;

  explicit BasicLease(Queue& queue) noexcept : queue_(&queue), mine_(queue) {}
  ~BasicLease() override { mine_.let_go(ledger_.number()); }

  [[nodiscard]] ParticipantTable::Joined join() noexcept override { return mine_.join(ledger_); }
  [[nodiscard]] bool is_ours() const noexcept override { return mine_.is_ours(); }

  void borrow(Participant ledger) noexcept override {
    ledger_ = ledger;
    mine_.borrow();
  }
  void set_apart() noexcept override { mine_.set_apart(ledger_.number()); }
  void finish(const Redelivered* items, std::uint64_t count) noexcept override {
    release_items(items, count);
    ledger_.clear();
    mine_.take_back(ledger_.number());
    queue_->after_release(ring_);
    mine_.forget_holder();
  }

  [[nodiscard]] Outcome claim(Redelivered* items, std::uint64_t limit, std::uint64_t& count, bool dead_first,
                              Aside aside) noexcept override {
    count = 0;
    if (dead_first && !queue_->is_discarded()) {
      Inherited inherited;
      run_aside(aside, [&] { inherited = try_inherit(items, limit); });
      if (inherited.changed) queue_->room().notify();
      count = inherited.count;
      if (inherited.unclaimed || count != 0) return inherited.unclaimed ? Outcome::corrupt : Outcome::done;
    }
    std::uint64_t skipped = 0;
    const auto attempt = [&](std::uint64_t& skipped_now) {
      for (;;) {
        const Outcome outcome = try_claim(items, limit, count, skipped_now);
        if (outcome != Outcome::done || count != 0) return outcome;
      }
    };
    const Outcome outcome = attempt(skipped);
    if (outcome == Outcome::done) return outcome;
    return queue_->recover_and_find(ledger_, outcome, skipped, aside, attempt, [&](const RecoveryScan& found) {
      return (count = try_redeliver(found, items, limit)) != 0;
    });
  }

  [[nodiscard]] Outcome try_claim(Redelivered* items, std::uint64_t limit, std::uint64_t& count,
                                  std::uint64_t& skipped) noexcept override {
    count = 0;
    Item front;
    const Outcome outcome = queue_->peek(ledger_, front);
    skipped = front.skipped;
    if (outcome != Outcome::done) return outcome;
    ring_ = *queue_->ring_of(ledger_, front);
    items[0] = {front.span, front.bytes, 0};
    std::uint64_t found = 1;
    (void)queue_->with_guard(ledger_, ring_, [&] { found = list_front(items, limit, front); });
    if (!claim_pop(ring_, ledger_, front.span)) return Outcome::done;
    is_redelivered_ = false;
    count = found;
    mine_.note_holder();
    return outcome;
  }

  [[nodiscard]] Inherited try_inherit(Redelivered* items, std::uint64_t limit) noexcept override {
    const RecoveryScan found = queue_->recover();
    return {found.changed, found.unclaimed, found.redeliverable ? try_redeliver(found, items, limit) : 0};
  }

  // Takes over what a recovery found and the dead consumers' items behind it.
  [[nodiscard]] std::uint64_t try_redeliver(const RecoveryScan& found, Redelivered* items,
                                        std::uint64_t limit) noexcept {
    is_redelivered_ = true;
    ring_ = found.ring;
    const std::uint64_t count = queue_->try_redeliver_many(ledger_, found, items, limit);
    if (count != 0) mine_.note_holder();
    return count;
  }

  void copy_out(const Redelivered& item, void* to, std::uint64_t bytes) const noexcept override {
    queueduct::copy_out(ring_, item.span.position, to, bytes);
  }

  void release(const Redelivered* items, std::uint64_t count, bool is_all) noexcept override {
    release_items(items, count);
    if (is_all) ledger_.clear();
    if (count != 0) queue_->after_release(ring_);
  }

  void let_go() noexcept override { mine_.let_go(ledger_.number()); }

 private:
  void release_items(const Redelivered* items, std::uint64_t count) noexcept {
    QUEUEDUCT_FAILPOINT("lease.before_release");
    if (is_redelivered_) {
      queue_->with_full_guard(ledger_, [&] {
        for (std::uint64_t i = 0; i < count; ++i) Recovery::release_one(ring_, items[i].span);
      });
    } else if (count != 0) {
      const Span last = items[count - 1].span;
      queueduct::release(ring_, {items[0].span.position, last.position + last.slots - items[0].span.position});
    }
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < count; ++i) bytes += items[i].bytes;
    ledger_.count_got(count, bytes);
    QUEUEDUCT_FAILPOINT("lease.released");
  }

  // After peek(): lists the whole items that are published; they are ours if the claim of `front` succeeds.
  [[nodiscard]] std::uint64_t list_front(Redelivered* items, std::uint64_t limit, Peeked& front) const noexcept {
    if (ring_.lengths != nullptr)
      return widen_items(ring_, limit, front,
                         [items](std::uint64_t i, const Peeked& each) { items[i] = {each.span, each.bytes, 0}; });
    widen_records(ring_, limit, front);
    for (std::uint64_t i = 0; i < front.span.slots; ++i) items[i] = {{front.span.position + i, 1}, ring_.slot_bytes, 0};
    return front.span.slots;
  }

  Queue* queue_;
  LeaseLine<Queue> mine_;
  Ring ring_;  // of all items
};

}  // namespace queueduct
