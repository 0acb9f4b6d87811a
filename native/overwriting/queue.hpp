// An overwriting queue as a process has it: the ring, the header's lock, the event words, the participant table.
#pragma once

#include "core/platform.hpp"
#include "overwriting/ring.hpp"
#include "segment/idle.hpp"
#include "segment/rest.hpp"

namespace queueduct {

class OverwritingShared {
 public:
  OverwritingShared(std::byte* base, const OverwritingOffsets& at, std::uint64_t capacity, std::uint64_t words,
                    std::uint32_t participants, int lock_fd, Identity identity) noexcept
      : control_(reinterpret_cast<OverwritingControl*>(base + at.control)),
        participant_table_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), participants,
                           &control_->participants_used, identity),
        leased_messages_(base, at, OverwritingMemory(base, at, capacity, words, participants), &participant_table_),
        ring_(OverwritingMemory(base, at, capacity, words, participants), leased_messages_, &participant_table_),
        lock_(&ring_.header_lock()) {}

  OverwritingShared(const OverwritingShared&) = delete;
  OverwritingShared& operator=(const OverwritingShared&) = delete;

  [[nodiscard]] OverwritingRing& ring() noexcept { return ring_; }
  [[nodiscard]] LeasedMessages& leased_messages() noexcept { return leased_messages_; }
  [[nodiscard]] OverwritingControl& control() const noexcept { return *control_; }
  [[nodiscard]] ParticipantTable& participant_table() noexcept { return participant_table_; }
  [[nodiscard]] Event items() const noexcept { return Event(&control_->items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control_->room.word); }
  [[nodiscard]] Event copied() const noexcept { return Event(&control_->copied.word); }
  [[nodiscard]] Event cell_freed() const noexcept { return Event(&control_->cell_freed.word); }

  // Of the line's owner.
  [[nodiscard]] Counters& counters(std::uint32_t line) const noexcept {
    return participant_table_.lines()[line].counters;
  }

  [[nodiscard]] bool find_line(std::uint32_t& line) const noexcept {
    const std::uint32_t mine = participant_table_.mine_plus_one();
    line = mine - 1;
    return mine != 0;
  }

  // A line's new owner abandons what the last one was reading; its first get does it if the header's lock is held.
  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    std::uint32_t line;
    const ParticipantTable::Joined joined =
        participant_table_.patiently([&] { return participant_table_.join([](std::uint32_t) { return true; }); });
    if (joined != ParticipantTable::Joined::yes || !find_line(line)) return joined;
    if (enter(line, join_limit_ns) != Claim::done) return joined;
    ring_.abandon_reading(line);
    leave();
    rest(line);
    return joined;
  }

  // A line that belongs to no thread.
  [[nodiscard]] ParticipantTable::Joined join_apart(std::uint32_t& line) noexcept {
    return participant_table_.patiently(
        [&] { return participant_table_.join_apart([](std::uint32_t) { return true; }, line); });
  }

  // done: the header is locked, and the change that its last owner had begun is made. The line is at work until rest().
  [[nodiscard]] Claim enter(std::uint32_t line, std::int64_t limit_ns) noexcept {
    lock_word::begin(participant_table_, line);
    const std::uint64_t me = lock_word::of(participant_table_, line, LockRole::header);
    const HeaderLock::Locked locked = lock_.lock(me, participant_table_, limit_ns);
    if (locked == HeaderLock::Locked::yes) [[likely]] {
      if (ring_.settle()) [[likely]]
        return Claim::done;
      leave();
    }
    rest(line);
    return locked == HeaderLock::Locked::no ? Claim::locked : Claim::corrupt;
  }
  void leave() noexcept { lock_.unlock(); }
  // After leave(), and after the claimed message is unlocked.
  void rest(std::uint32_t line) noexcept { lock_word::rest(participant_table_, line); }

  // What a call saw, and at which position, for a caller that records it.
  enum class Saw : std::uint8_t { put, taken, lost, nothing };
  struct NotRecorded {
    void operator()(Saw, std::uint64_t) const noexcept {}
  };

  // Five steps: lock the header; change it and lock the message; unlock the header; copy; unlock the message.
  template <class Tell = NotRecorded>
  [[nodiscard]] Claim try_put(std::uint32_t line, const void* data, std::uint64_t bytes, bool may_overwrite,
                              std::int64_t limit_ns, Tell tell = {}) noexcept {
    const Claim claim = put_silently(line, data, bytes, may_overwrite, limit_ns, tell);
    if (claim == Claim::done) notify_put();
    return claim;
  }

  // Several, one after the other. Sets `put` to how many are in the queue, also if the next one was refused.
  [[nodiscard]] Claim try_put_many(std::uint32_t line, const Buffer* messages, std::uint64_t count, bool may_overwrite,
                                   std::int64_t limit_ns, std::uint64_t& put) noexcept {
    return put_each(count, put, [&](std::uint64_t i) {
      return put_silently(line, messages[i].data, messages[i].bytes, may_overwrite, limit_ns);
    });
  }
  [[nodiscard]] Claim try_put_records(std::uint32_t line, const char* records, std::uint64_t bytes, std::uint64_t count,
                                      bool may_overwrite, std::int64_t limit_ns, std::uint64_t& put) noexcept {
    return put_each(count, put, [&](std::uint64_t i) {
      return put_silently(line, records + i * bytes, bytes, may_overwrite, limit_ns);
    });
  }

  // The same five steps for a get. A message that is overwritten during the copy is counted, and the next one tried;
  // busy also after get_tries such messages. From an empty ring it delivers a leased message whose holder is gone.
  template <class Tell = NotRecorded>
  [[nodiscard]] Claim try_get(std::uint32_t line, void* to, std::uint64_t bytes, std::int64_t limit_ns,
                              Tell tell = {}) noexcept {
    for (int tries = 0; tries < get_tries; ++tries) {
      if (ring_.may_be_empty()) return get_orphan(line, to, bytes) ? Claim::done : Claim::empty;
      Claimed claimed;
      if (const Claim entered = enter(line, limit_ns); entered != Claim::done) return entered;
      const Claim claim = ring_.claim_get(line, claimed);
      leave();
      if (claim != Claim::done) {
        rest(line);
        if (claimed.skipped != 0) room().notify();
        if (claim != Claim::corrupt && get_orphan(line, to, bytes)) return Claim::done;
        if (claim == Claim::empty || claim == Claim::busy) tell(Saw::nothing, claimed.position);
        return claim;
      }
      tell(Saw::taken, claimed.position);
      ring_.copy_out(claimed, to, bytes);
      const bool is_mine = ring_.finish_get(line, claimed);
      count(counters(line).items_got, is_mine);
      rest(line);
      room().notify();
      if (is_mine) return claim;
      tell(Saw::lost, claimed.position);
    }
    return Claim::busy;
  }

  // Copies the newest message whose position is at least `wanted`, and leaves it in the queue.
  [[nodiscard]] Claim try_read_newest(std::uint32_t line, std::uint64_t wanted, void* to, std::uint64_t bytes,
                                      std::int64_t limit_ns, std::uint64_t& position) noexcept {
    for (int tries = 0; tries < get_tries; ++tries) {
      if (!ring_.may_be_newer(wanted)) return Claim::empty;
      Claimed found;
      if (const Claim entered = enter(line, limit_ns); entered != Claim::done) return entered;
      const Claim claim = ring_.find_newest(wanted, found);
      const bool is_short = bytes <= short_copy;
      if (claim == Claim::done && is_short) ring_.copy_out(found, to, bytes);
      leave();
      rest(line);
      if (claim != Claim::done) return claim;
      if (!is_short) ring_.copy_out(found, to, bytes);
      position = found.position;
      if (is_short || ring_.is_still_whole(found)) return claim;
    }
    return Claim::busy;
  }
  // Sleeps until there may be such a message. A put wakes one sleeper, which wakes the others; a get that was woken
  // instead does not, so the sleep is short.
  void wait_for_newer(std::uint64_t wanted, std::int64_t limit_ns) noexcept {
    const std::uint32_t ticket = items().announce();
    if (ring_.may_be_newer(wanted)) return;  // W1
    items().park_and_relay(ticket, limit_ns < newer_limit_ns ? limit_ns : newer_limit_ns);
  }

  // At most `count`, one after the other, as long as there are some. Sets `got` to how many it delivered.
  [[nodiscard]] Claim try_get_records(std::uint32_t line, char* to, std::uint64_t bytes, std::uint64_t count,
                                      std::int64_t limit_ns, std::uint64_t& got) noexcept {
    Claim claim = Claim::done;
    for (got = 0; got < count; ++got)
      if ((claim = try_get(line, to + got * bytes, bytes, limit_ns)) != Claim::done) break;
    return claim;
  }

  // Without a lock: returns true if there is nothing to get at this moment, and the queue is not shut down.
  [[nodiscard]] bool may_be_empty() const noexcept { return ring_.may_be_empty() && leased_messages_.used() == 0; }

  void shut_down(bool immediate) noexcept {
    QUEUEDUCT_FAILPOINT("shutdown.before");
    control_->closed.fetch_or(immediate ? closed_to_puts | closed_to_gets : closed_to_puts,
                              std::memory_order_relaxed);  // a claim reads it under the header's lock
    QUEUEDUCT_FAILPOINT("shutdown.closed");
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    wake_everybody();
  }

  // Of a queue that is shut down and empty: returns true if a message is on lease that may be given back, and the
  // caller may wait for it. A message is in the queue or in a cell (S1), and stays there until its release (O1, O2).
  [[nodiscard]] bool may_come_again() noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);  // acquire P8: the caller has read that the ring is empty
    return !ring_.is_discarded() && !rest_.has_this_thread_any() && leased_messages_.count_out(1) != 0;  // O3
  }
  // Returns true if every message that was put is got, lost or released, or the queue was shut down at once. A message
  // is in a cell before it leaves the ring (J3), and stays there until its release (S1): so the ring is read first. If
  // nothing was put meanwhile, then at the second look nothing is left.
  [[nodiscard]] bool is_all_done() noexcept {
    if (ring_.is_discarded()) return true;
    const std::uint64_t puts = ring_.fates().puts;
    const RingState state = ring_.state();
    std::atomic_thread_fence(std::memory_order_acquire);  // acquire P8
    if (state.length != 0 || leased_messages_.count_out(1) != 0) return false;
    const RingState after = ring_.state();  // strangers' puts are not counted
    return after.start == state.start && after.length == 0 && ring_.fates().puts == puts;
  }
  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  void wake_the_rest() noexcept {
    Rest::wake(items(), [this] { return is_shut(); });
  }

  void wake_everybody() noexcept {
    items().wake_all();
    room().wake_all();
    copied().wake_all();
    cell_freed().wake_all();
  }

  void wait_for_items(std::int64_t limit_ns) noexcept {
    if (ring_.may_be_ended()) [[unlikely]]
      return rest_.wait(
          items(), [this] { return !may_come_again(); }, limit_ns);
    const auto near = [this] { return ring_.may_be_gettable(); };
    wait_until(items(), items_idle_, near, near, limit_ns);
  }
  void wait_for_room(std::int64_t limit_ns) noexcept {
    const auto near = [this] { return ring_.may_be_free(); };
    wait_until(room(), room_idle_, near, near, limit_ns);
  }
  void wait_for_copy(std::int64_t limit_ns) noexcept {
    const auto near = [this] { return is_shut() || !ring_.is_being_written(ring_.index_of_next_put()); };
    if (copy_idle_.wait(near, near, limit_ns)) return;
    const std::uint32_t ticket = copied().announce();
    if (near()) return;  // W1
    copied().park_for_all(ticket, limit_ns < park_limit_ns ? limit_ns : park_limit_ns);
  }

  // For a lease that found no free cell, until one is released.
  void wait_for_cell(std::int64_t limit_ns) noexcept {
    const std::uint32_t ticket = cell_freed().announce();
    std::uint64_t cell = 0;
    if (leased_messages_.find_free(cell) || ring_.is_discarded()) return;  // W1
    cell_freed().park_for_all(ticket, limit_ns < park_limit_ns ? limit_ns : park_limit_ns);
  }

 private:
  static constexpr std::int64_t join_limit_ns = 1'000'000;
  static constexpr int get_tries = 16;
  static constexpr std::uint64_t short_copy = 1024;  // bytes that are copied under the header's lock
  static constexpr std::int64_t newer_limit_ns = 20'000'000;
  static constexpr std::uint64_t notify_after = 64;  // messages of a batch: consumers need not wait for its end

  [[nodiscard]] bool is_shut() const noexcept { return control_->closed.load(std::memory_order_relaxed) != 0; }

  template <class Tell = NotRecorded>
  [[nodiscard, gnu::always_inline]] Claim put_silently(std::uint32_t line, const void* data, std::uint64_t bytes,
                                                       bool may_overwrite, std::int64_t limit_ns,
                                                       Tell tell = {}) noexcept {
    Claimed claimed;
    if (const Claim entered = enter(line, limit_ns); entered != Claim::done) return entered;
    const Claim claim = ring_.claim_put(line, may_overwrite, claimed);
    leave();
    if (claim == Claim::done) [[likely]] {
      tell(Saw::put, claimed.position);
      ring_.copy_in(claimed, data, bytes);
      ring_.publish(claimed);
      count(counters(line).items_put, 1);
    }
    rest(line);
    return claim;
  }

  void notify_put() noexcept {
    items().notify();
    // after the fence in notify()
    if (control_->copied.word.load(std::memory_order_relaxed) & 1) copied().notify_all();
  }

  template <class Put>
  [[nodiscard]] Claim put_each(std::uint64_t count, std::uint64_t& put, Put put_one) noexcept {
    Claim claim = Claim::done;
    for (put = 0; put < count; ++put) {
      if ((claim = put_one(put)) != Claim::done) break;
      if (put % notify_after == notify_after - 1) notify_put();
    }
    if (put % notify_after != 0) notify_put();
    return claim;
  }

  [[nodiscard, gnu::noinline]] bool get_orphan(std::uint32_t line, void* to, std::uint64_t bytes) noexcept {
    LeasedMessage orphan;
    if (leased_messages_.used() == 0 || ring_.is_discarded()) return false;
    if (leased_messages_.take_over(line, &orphan, 1) == 0) return false;
    std::memcpy(to, leased_messages_.data(orphan.cell), bytes);
    leased_messages_.release_cell(orphan.cell);
    count(counters(line).items_got, 1);
    cell_freed().notify_all();
    wake_the_rest();
    return true;
  }

  OverwritingControl* control_;
  ParticipantTable participant_table_;
  LeasedMessages leased_messages_;
  OverwritingRing ring_;
  HeaderLock lock_;
  IdleStrategy items_idle_;
  IdleStrategy room_idle_;
  IdleStrategy copy_idle_;
  Rest rest_;
};

}  // namespace queueduct
