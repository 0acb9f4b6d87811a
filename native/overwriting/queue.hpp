// An overwriting queue as a process has it: the ring, the header's lock, who sleeps on it, who is dead.
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
  [[nodiscard]] Event shelved() const noexcept { return Event(&control_->shelved.word); }

  [[nodiscard]] bool find_line(std::uint32_t& line) const noexcept {
    const std::uint32_t mine = participant_table_.mine_plus_one();
    line = mine - 1;
    return mine != 0;
  }

  // A line's new owner abandons what the last one was reading. If the header cannot be had, its first get does.
  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    std::uint32_t line;
    const ParticipantTable::Joined joined = participant_table_.patiently(
        [&] { return participant_table_.join([](std::uint32_t) { return true; }); });
    if (joined != ParticipantTable::Joined::yes || !find_line(line)) return joined;
    if (enter(line, join_limit_ns) != Claim::done) return joined;
    ring_.bury_reading(line);
    lock_.unlock();
    lock_word::rest(participant_table_, line);
    return joined;
  }

  // A line that is no thread's.
  [[nodiscard]] ParticipantTable::Joined join_apart(std::uint32_t& line) noexcept {
    return participant_table_.patiently(
        [&] { return participant_table_.join_apart([](std::uint32_t) { return true; }, line); });
  }

  // done: the header is ours, and whatever its last owner had begun is made. Then the line is at work until rest().
  [[nodiscard]] Claim enter(std::uint32_t line, std::int64_t limit_ns) noexcept {
    lock_word::begin(participant_table_, line);
    const std::uint64_t me = lock_word::of(participant_table_, line, LockRole::header);
    const HeaderLock::Locked locked = lock_.lock(me, participant_table_, limit_ns);
    if (locked == HeaderLock::Locked::yes) [[likely]] {
      if (ring_.settle()) [[likely]] return Claim::done;
      lock_.unlock();
    }
    lock_word::rest(participant_table_, line);
    return locked == HeaderLock::Locked::no ? Claim::locked : Claim::corrupt;
  }
  void leave() noexcept { lock_.unlock(); }
  // After leave(), and after what was claimed is let go.
  void rest(std::uint32_t line) noexcept { lock_word::rest(participant_table_, line); }

  // What a call saw, and at which position: told to those who want to know.
  enum class Saw : std::uint8_t { put, taken, lost, nothing };
  struct NobodyIsTold {
    void operator()(Saw, std::uint64_t) const noexcept {}
  };

  // The five steps of the traces: lock the header; change it and lock the message; unlock it; copy; unlock the message.
  template <class Tell = NobodyIsTold>
  [[nodiscard]] Claim try_put(std::uint32_t line, const void* data, std::uint64_t bytes, bool may_overwrite,
                              std::int64_t limit_ns, Tell tell = {}) noexcept {
    const Claim claim = put_silently(line, data, bytes, may_overwrite, limit_ns, tell);
    if (claim == Claim::done) notify_put();
    return claim;
  }

  // Several, one after the other; `put` are in, also if the next one was refused.
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

  // The same the other way; what was overwritten while it was read is counted, and the next one tried. busy also when
  // that has happened again and again: the caller looks whether it is to go on. Where there is nothing, what leases have
  // left behind.
  template <class Tell = NobodyIsTold>
  [[nodiscard]] Claim try_get(std::uint32_t line, void* to, std::uint64_t bytes, std::int64_t limit_ns,
                              Tell tell = {}) noexcept {
    for (int tries = 0; tries < get_tries; ++tries) {
      if (ring_.looks_empty()) return get_left(line, to, bytes) ? Claim::done : Claim::empty;
      Claimed claimed;
      if (const Claim entered = enter(line, limit_ns); entered != Claim::done) return entered;
      const Claim claim = ring_.claim_get(line, claimed);
      lock_.unlock();
      if (claim != Claim::done) {
        rest(line);
        if (claimed.skipped != 0) room().notify();
        if (claim != Claim::corrupt && get_left(line, to, bytes)) return Claim::done;
        if (claim == Claim::empty || claim == Claim::busy) tell(Saw::nothing, claimed.position);
        return claim;
      }
      tell(Saw::taken, claimed.position);
      ring_.copy_out(claimed, to, bytes);
      const bool is_mine = ring_.finish_get(line, claimed);
      rest(line);
      room().notify();
      if (is_mine) return claim;
      tell(Saw::lost, claimed.position);
    }
    return Claim::busy;
  }

  // At most so many, one after the other, for as long as there are some; `got` of them are had.
  [[nodiscard]] Claim try_get_records(std::uint32_t line, char* to, std::uint64_t bytes, std::uint64_t count,
                                      std::int64_t limit_ns, std::uint64_t& got) noexcept {
    Claim claim = Claim::done;
    for (got = 0; got < count; ++got)
      if ((claim = try_get(line, to + got * bytes, bytes, limit_ns)) != Claim::done) break;
    return claim;
  }

  // Without a lock: there is nothing at this moment, and it is not shut down.
  [[nodiscard]] bool looks_empty() const noexcept { return ring_.looks_empty() && leased_messages_.used() == 0; }

  void shut_down(bool immediate) noexcept {
    QUEUEDUCT_FAILPOINT("shutdown.before");
    control_->closed.fetch_or(immediate ? closed_to_puts | closed_to_gets : closed_to_puts,
                              std::memory_order_relaxed);  // who claims looks at it under the header's lock
    QUEUEDUCT_FAILPOINT("shutdown.closed");
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    wake_everybody();
  }

  // Of a queue that is shut down and empty: is anything on lease that may come back, and that the caller may wait for?
  // A message is in the queue or on the shelf (S1), and stays in its place there until it is released (O1, O2).
  [[nodiscard]] bool may_come_again() noexcept {
    return !ring_.is_discarded() && !rest_.has_this_thread_any() && leased_messages_.count_kept(1) != 0;  // O3
  }
  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  void wake_the_rest() noexcept {
    Rest::wake(items(), [this] { return control_->closed.load(std::memory_order_relaxed) != 0; });
  }

  void wake_everybody() noexcept {
    items().wake_all();
    room().wake_all();
    copied().wake_all();
    shelved().wake_all();
  }

  void wait_for_items(std::int64_t limit_ns) noexcept {
    const auto near = [this] { return ring_.looks_gettable(); };
    if (ring_.looks_ended()) [[unlikely]]
      return rest_.wait(items(), [this] { return !may_come_again(); }, limit_ns);
    wait_until(items(), item_patience_, near, near, limit_ns);
  }
  void wait_for_room(std::int64_t limit_ns) noexcept {
    const auto near = [this] { return ring_.looks_free(); };
    wait_until(room(), room_patience_, near, near, limit_ns);
  }
  void wait_for_copy(std::int64_t limit_ns) noexcept {
    const auto near = [this] {
      return control_->closed.load(std::memory_order_relaxed) != 0 ||
             !ring_.is_being_written(ring_.index_of_next_put());
    };
    if (copy_patience_.wait(near, near, limit_ns)) return;
    const std::uint32_t ticket = copied().announce();
    if (near()) return;  // W1
    copied().park_for_all(ticket, limit_ns < park_limit_ns ? limit_ns : park_limit_ns);
  }

  // For a lease that found no place, until one is released.
  void wait_for_shelf(std::int64_t limit_ns) noexcept {
    const std::uint32_t ticket = shelved().announce();
    std::uint64_t place = 0;
    if (leased_messages_.find_free(place) || control_->closed.load(std::memory_order_relaxed) & closed_to_gets) return;  // W1
    shelved().park_for_all(ticket, limit_ns < park_limit_ns ? limit_ns : park_limit_ns);
  }

 private:
  static constexpr std::int64_t join_limit_ns = 1'000'000;
  static constexpr int get_tries = 16;
  static constexpr std::uint64_t notify_after = 64;  // messages of a batch: getters need not wait for its end

  template <class Tell = NobodyIsTold>
  [[nodiscard, gnu::always_inline]] Claim put_silently(std::uint32_t line, const void* data, std::uint64_t bytes,
                                                       bool may_overwrite, std::int64_t limit_ns,
                                                       Tell tell = {}) noexcept {
    Claimed claimed;
    if (const Claim entered = enter(line, limit_ns); entered != Claim::done) return entered;
    const Claim claim = ring_.claim_put(line, may_overwrite, claimed);
    lock_.unlock();
    if (claim == Claim::done) [[likely]] {
      tell(Saw::put, claimed.position);
      ring_.copy_in(claimed, data, bytes);
      ring_.publish(claimed);
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

  [[nodiscard, gnu::noinline]] bool get_left(std::uint32_t line, void* to, std::uint64_t bytes) noexcept {
    LeasedMessage left;
    if (leased_messages_.used() == 0 || ring_.is_discarded() || leased_messages_.take_over(line, &left, 1) == 0) return false;
    std::memcpy(to, leased_messages_.data(left.place), bytes);
    leased_messages_.release_place(left.place);
    shelved().notify_all();
    wake_the_rest();
    return true;
  }

  OverwritingControl* control_;
  ParticipantTable participant_table_;
  LeasedMessages leased_messages_;
  OverwritingRing ring_;
  HeaderLock lock_;
  IdleStrategy item_patience_;
  IdleStrategy room_patience_;
  IdleStrategy copy_patience_;
  Rest rest_;
};

}  // namespace queueduct
