// A handle on a slot queue: slots, waiting, participants, recovery.
#pragma once

#include "segment/idle.hpp"
#include "segment/rest.hpp"
#include "slots/recovery.hpp"

namespace queueduct {

struct SlotCounts {
  std::uint64_t free = 0;
  std::uint64_t loaned = 0;
  std::uint64_t queued = 0;
  std::uint64_t taken = 0;
};

class SlotsQueue {
 public:
  SlotsQueue(std::byte* base, const SlotsOffsets& at, std::uint64_t count, std::uint64_t slot_bytes,
             std::uint32_t participants, std::uint32_t producers, int lock_fd, Identity identity) noexcept
      : control_(reinterpret_cast<SlotsControl*>(base + at.control)),
        slots_(control_, IndexQueue(&control_->free, reinterpret_cast<IndexQueue::Cells>(base + at.free_cells), count),
               IndexQueue(&control_->used, reinterpret_cast<IndexQueue::Cells>(base + at.used_cells), count),
               reinterpret_cast<SlotLine*>(base + at.lines), base + at.payload, count, slot_bytes, at.stride),
        participant_table_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), participants,
                &control_->participants_used, identity),
        producers_(at.producers == 0 ? nullptr : reinterpret_cast<ProducersHead*>(base + at.producers), producers,
                   participant_table_),
        recovery_(slots_, participant_table_, {producers_.lines(), producers_.count()}) {
    participant_table_.keep_while(
        [](void* queue, std::uint32_t line) { return static_cast<SlotsQueue*>(queue)->has_nothing(line); }, this);
  }

  [[nodiscard]] Slots& slots() noexcept { return slots_; }
  [[nodiscard]] SlotsControl& control() const noexcept { return *control_; }
  [[nodiscard]] ParticipantTable& participant_table() noexcept { return participant_table_; }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }
  [[nodiscard]] SlotsRecovery& recovery() noexcept { return recovery_; }
  [[nodiscard]] Event items() const noexcept { return Event(&control_->items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control_->room.word); }

  // The calling thread's name in the words: its line plus one. 0: it has none yet, call join().
  [[nodiscard]] std::uint32_t me() const noexcept { return participant_table_.mine_plus_one(); }

  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    const auto recover = [this](std::uint32_t line) {
      (void)recovery_.recover_line(line);
      return true;
    };
    const ParticipantTable::Joined joined =
        participant_table_.patiently([&] { return participant_table_.join(recover); });
    if (joined != ParticipantTable::Joined::yes) return joined;
    // release: a recoverer that sees the mark of the dead sees its slots; before the first claim, so keeps V5
    participant_table_.lines()[me() - 1].intent.store(SlotsRecovery::present, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("slots.joined");
    return joined;
  }

  // After a publish, or a release for good, by the thread whose name the slot had (its line plus one).
  void count_put(std::uint32_t me, std::uint64_t bytes) noexcept {
    queueduct::count_put(participant_table_.lines()[me - 1].counters, 1, bytes);
  }
  void count_got(std::uint32_t me, std::uint64_t bytes, std::uint64_t items = 1) noexcept {
    queueduct::count_got(participant_table_.lines()[me - 1].counters, items, bytes);
  }
  // The same by any thread: it counts in its own line (N1), and if it has none, in a word that all of them add to.
  void count_put_by_any(std::uint64_t bytes) noexcept {
    if (const std::uint32_t mine = me(); mine != 0) return count_put(mine, bytes);
    control_->items_put.fetch_add(1, std::memory_order_relaxed);
    control_->bytes_put.fetch_add(bytes, std::memory_order_relaxed);
  }
  void count_got_by_any(std::uint64_t bytes, std::uint64_t items = 1) noexcept {
    if (const std::uint32_t mine = me(); mine != 0) return count_got(mine, bytes, items);
    control_->items_got.fetch_add(items, std::memory_order_relaxed);
    control_->bytes_got.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] Counted counted() const noexcept {
    Counted sum = queueduct::counted(participant_table_);
    sum.items_put += control_->items_put.load(std::memory_order_relaxed);
    sum.bytes_put += control_->bytes_put.load(std::memory_order_relaxed);
    sum.items_got += control_->items_got.load(std::memory_order_relaxed);
    sum.bytes_got += control_->bytes_got.load(std::memory_order_relaxed);
    return sum;
  }

  // The owner word of the calling thread, which has joined.
  [[nodiscard]] std::uint64_t owner_word() const noexcept { return owner::word_of(participant_table_, me() - 1); }

  // What a killed call of a producer has put. The caller owns the line. False: it contradicts the slots.
  [[nodiscard]] bool settle_producer(ProducerLine& line) noexcept {
    for (int attempt = 0;; ++attempt) {
      const Settled settled = settle(slots_, line);
      if (settled != Settled::undecided || attempt == settle_attempts) return settled == Settled::yes;
      if (recovery_.run()) {
        items().notify_all();  // the dead may have had items for consumers, and slots for producers
        room().notify_all();
        continue;
      }
      pause_between_attempts();
    }
  }

  // After a call that found nothing: searches for dead participants, but not each time: it is a pass over the table.
  // The clock only says when to search; it declares no participant dead. Returns true if another try is worth it.
  [[nodiscard]] bool recover_if_due(std::uint32_t me, bool now) noexcept {
    if (control_->may_be_stray.load(std::memory_order_relaxed) != 0 && gather(me)) return true;
    const std::int64_t time = monotonic_ns();
    if (!now && time - last_recovery_ns_.load(std::memory_order_relaxed) < recovery_interval_ns) return false;
    last_recovery_ns_.store(time, std::memory_order_relaxed);
    bool changed = recovery_.run();
    changed |= gather(me);
    // a recoverer that was killed may have left one without a hint
    if (is_any(slot_word::State::orphaned)) {
      control_->may_be_orphaned.store(1, std::memory_order_release);
      items().notify();
      changed = true;
    }
    return changed;
  }

  // After the last put, and a take by `me` that found nothing: returns true if nothing more can come. An item stays in
  // its slot, so one load of each word is enough (O2): an item put back meanwhile is seen as TAKEN or as ORPHANED.
  // A participant that has taken an item does not wait for what others have (O3).
  [[nodiscard]] bool is_drained(std::uint32_t me = 0) noexcept {
    bool is_taken = false;
    bool is_taken_by_me = false;
    for (std::uint64_t slot = 0; slot < slots_.count(); ++slot) {
      const std::uint64_t word = slots_.word_of(slot);
      switch (slot_word::state_of(word)) {
        case slot_word::State::arriving:  // P2: a publish that was not refused is ARRIVING by now, or done
        case slot_word::State::queued:
        case slot_word::State::orphaned: return false;
        case slot_word::State::taken:
          is_taken = true;
          is_taken_by_me |= slot_word::owner_of(word) == me;
          break;
        default: break;
      }
    }
    is_taken_by_me |= is_taken && me != 0 && rest_.has_this_thread_any();  // by another handle; keeps O3
    return (!is_taken || is_taken_by_me) && !slots_.may_be_takeable();
  }
  // Returns true if every item that was published is released, or the queue was shut down at once. An item is in one
  // slot from its publish to its release, so one load of each word is enough. If nothing was published meanwhile, then
  // at the second look at the tail nothing is left: a put that a consumer makes before its release is seen there (P1).
  [[nodiscard]] bool is_all_done(std::uint32_t me) noexcept {
    if (slots_.closed() & Slots::gets_closed) return true;
    (void)recover_if_due(me, false);
    const std::uint64_t published = slots_.published();
    return slots_.count_words([](std::uint64_t word) {
      switch (slot_word::state_of(word)) {
        case slot_word::State::arriving:
        case slot_word::State::queued:
        case slot_word::State::taken:
        case slot_word::State::orphaned: return true;
        default: return false;
      }
    }) == 0 && slots_.published() == published;
  }
  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  void wake_the_rest() noexcept {
    Rest::wake(items(), [this] { return slots_.closed() != 0; });
  }

  void shut_down(bool immediate) noexcept {
    QUEUEDUCT_FAILPOINT("shutdown.before");
    control_->closed.fetch_or(Slots::puts_closed | (immediate ? Slots::gets_closed : 0),
                              std::memory_order_seq_cst);  // P2
    QUEUEDUCT_FAILPOINT("shutdown.closed");
    wake_everybody();
  }

  // How many slots may be out from now on. More of them out than that: the caller evicts (try_evict_surplus).
  void set_capacity(std::uint64_t capacity) noexcept {
    QUEUEDUCT_FAILPOINT("capacity.before");
    control_->capacity.store(capacity, std::memory_order_seq_cst);  // P2
    QUEUEDUCT_FAILPOINT("capacity.set");
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    room().wake_all();
  }

  void wake_everybody() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    items().wake_all();
    room().wake_all();
  }

  void wait_for_items(std::int64_t limit_ns) noexcept {
    if (slots_.closed() == Slots::puts_closed) [[unlikely]]
      return rest_.wait(items(), [this] { return slots_.may_be_takeable() || is_drained(me()); }, limit_ns);
    const auto near = [this] { return slots_.may_be_takeable() || slots_.closed() != 0; };
    wait_until(items(), item_idle_, near, near, limit_ns);
  }
  void wait_for_room(std::int64_t limit_ns) noexcept {
    const auto near = [this] { return slots_.may_be_holdable() || slots_.closed() != 0; };
    wait_until(room(), room_idle_, near, near, limit_ns);
  }

  // What can be taken: after shutdown(immediate) nothing.
  [[nodiscard]] std::uint64_t size() noexcept {
    if (slots_.closed() & Slots::gets_closed) return 0;
    const bool may_be_orphaned = control_->may_be_orphaned.load(std::memory_order_relaxed) != 0;
    return slots_.used().size() + (may_be_orphaned ? count_in(slot_word::State::orphaned) : 0);
  }

  [[nodiscard]] std::uint64_t count_in(slot_word::State state) const noexcept {
    return slots_.count_words([state](std::uint64_t word) { return slot_word::state_of(word) == state; });
  }

  // Counts each slot once, so that the four add up to all of them, whatever moves meanwhile.
  [[nodiscard]] SlotCounts count_slots() const noexcept {
    using slot_word::State;
    SlotCounts counts;
    std::uint32_t living = 0;  // the owner that was asked about last
    (void)slots_.count_words([&](std::uint64_t word) {
      const std::uint32_t owner = slot_word::owner_of(word);
      switch (slot_word::state_of(word)) {
        case State::held:
        case State::arriving: ++counts.loaned; break;
        case State::queued:
        case State::orphaned: ++counts.queued; break;
        case State::taken:
          if (owner != living && owner - 1 < participant_table_.used() && participant_table_.is_alive(owner - 1))
            living = owner;
          ++(owner == living ? counts.taken : counts.queued);  // a recoverer will deliver it again
          break;
        case State::free:
        case State::leaving:
        case State::stray: ++counts.free; break;
      }
      return false;
    });
    return counts;
  }

  // Returns true if a slot names this line: its owner holds it or has died with it. Changes nothing: for watchers.
  [[nodiscard]] bool is_named(std::uint32_t line) const noexcept {
    for (std::uint64_t slot = 0; slot < slots_.count(); ++slot)
      if (slot_word::owner_of(slots_.word_of(slot)) == line + 1) return true;
    return false;
  }

 private:
  // Returns true if no slot names this line: another thread may leave a slot after its taker has ended. The question
  // comes again and again for the same line, so the scan begins at the slot that was the answer last time.
  [[nodiscard]] bool has_nothing(std::uint32_t line) noexcept {
    std::atomic<std::uint32_t>& last = last_named_[line % last_named_count];
    const std::uint64_t begin = last.load(std::memory_order_relaxed) % slots_.count();
    for (std::uint64_t i = 0; i < slots_.count(); ++i) {
      const std::uint64_t slot = begin + i < slots_.count() ? begin + i : begin + i - slots_.count();
      if (slot_word::owner_of(slots_.word_of(slot)) != line + 1) continue;
      last.store(static_cast<std::uint32_t>(slot), std::memory_order_relaxed);
      return false;
    }
    participant_table_.lines()[line].intent.store(0, std::memory_order_release);  // keeps V5
    return true;
  }

  static constexpr std::uint32_t last_named_count = 64;
  static constexpr std::int64_t recovery_interval_ns = 10'000'000;
  static constexpr int settle_attempts = 500;  // one is enough, unless what the line says was never so

  [[nodiscard]] bool is_any(slot_word::State state) const noexcept { return count_in(state) != 0; }

  [[nodiscard]] bool gather(std::uint32_t me) noexcept {
    const std::uint64_t gathered = slots_.gather_strays(me);
    if (gathered > 1) room().notify_all();
    return gathered != 0;
  }

  SlotsControl* control_;
  Slots slots_;
  ParticipantTable participant_table_;
  Producers producers_;
  SlotsRecovery recovery_;
  IdleStrategy item_idle_;
  IdleStrategy room_idle_;
  Rest rest_;
  std::atomic<std::int64_t> last_recovery_ns_{0};
  std::atomic<std::uint32_t> last_named_[last_named_count] = {};
};

}  // namespace queueduct
