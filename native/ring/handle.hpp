// A handle on a queue of rings in shared memory, of either kind: what bindings, leases and stress runs hold.
//
// Shape      RingHandle                          this: participants, producers, sleepers, and the interface
//              └─ RingOperations<Queue, Rings>   put, find, take, recover, wake (ring/operations.hpp)
//                   ├─ BoundedQueueHandle        one ring (bounded/queue.hpp)
//                   └─ GrowingQueue              a ring a level (growing/queue.hpp)
// Roles      a thread joins and is a participant from then on; it passes its Participant to every operation.
// Progress   one virtual call for a put, two for a get. The protocol is written once, in operations.hpp.
#pragma once

#include <utility>

#include "ring/recovery.hpp"
#include "segment/idle.hpp"
#include "segment/rest.hpp"

namespace queueduct {

class RingHandle;
class RingLease;

// Runs a step that may last. A caller that holds an interpreter's lock releases it meanwhile.
using Aside = void (*)(void (*step)(void*), void* argument);
inline void run_here(void (*step)(void*), void* argument) { step(argument); }
template <class Step>
void run_aside(Aside aside, Step step) noexcept {
  aside([](void* argument) { (*static_cast<Step*>(argument))(); }, &step);
}

// The caller's memory into which an item is copied.
struct Target {
  void* to;
  std::uint64_t bytes;
};

// What find() has found: one item, or with widen() several. Nothing is claimed before take(). An item that is dropped
// stays in the queue.
class Item : public Peeked {
 public:
  Item() noexcept = default;
  ~Item() { let_go(); }
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;

  bool is_redelivered = false;  // a dead consumer had claimed it
  bool has_waited = false;      // the caller has slept: it wakes the next sleeper if items are left (W4)
  std::uint64_t seen;           // of a redelivered one: the generation that was judged
  std::uint64_t level_range;    // of a growing queue: when it was found

 private:
  template <class, class>
  friend class RingOperations;
  void let_go() noexcept;

  RingHandle* found_by_ = nullptr;  // of a redelivered one
};

class RingHandle {
 public:
  virtual ~RingHandle() = default;
  RingHandle(const RingHandle&) = delete;
  RingHandle& operator=(const RingHandle&) = delete;

  [[nodiscard]] ParticipantTable& participant_table() noexcept { return participant_table_; }
  [[nodiscard]] const ParticipantTable& participant_table() const noexcept { return participant_table_; }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }
  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  [[nodiscard]] Event items() const noexcept { return Event(words_.items); }
  [[nodiscard]] Event room() const noexcept { return Event(words_.room); }
  [[nodiscard]] std::uint64_t slots_for(std::uint64_t bytes) const noexcept {
    return bytes <= slot_bytes_ ? 1 : (bytes + slot_bytes_ - 1) / slot_bytes_;
  }

  // Finds the calling thread's line. Returns false if it has none yet: call join().
  [[nodiscard]] bool find_participant(Participant& ledger) const noexcept {
    return queueduct::find_participant(participant_table_, ledger);
  }
  // Returns the owner word by which this participant owns things in the segment.
  [[nodiscard]] std::uint64_t owner_word(Participant ledger) const noexcept {
    return owner::word_of(participant_table_, ledger.number());
  }
  [[nodiscard]] std::uint32_t count_alive() const noexcept { return participant_table_.count_alive(); }

  void note_long_items() noexcept {
    if (words_.has_long_items->load(std::memory_order_relaxed) == 0)
      words_.has_long_items->store(1, std::memory_order_relaxed);  // a hint for qsize
  }
  // Returns true if there may be slots between the positions that hold no item of their own.
  [[nodiscard]] bool may_hold_gaps() const noexcept {
    return words_.has_long_items->load(std::memory_order_relaxed) != 0 ||
           words_.tombstones->load(std::memory_order_relaxed) != 0;
  }

  [[nodiscard]] virtual ParticipantTable::Joined join() noexcept = 0;
  // Returns the most slots that one item can ever take.
  [[nodiscard]] virtual std::uint64_t item_slots_limit() const noexcept = 0;

  // Puts as many items as fit now. `put`: where they are and how many slots or items; if full, where there was no room.
  // Only a growing queue returns busy or unbacked. The caller has checked the length of every item.
  [[nodiscard]] virtual Outcome put_bytes(Participant me, const void* data, std::uint64_t bytes,
                                          Aside aside) noexcept = 0;
  [[nodiscard]] virtual Outcome put_buffers(Participant me, const Buffer* items, std::uint64_t count,
                                            std::uint64_t& put, Aside aside) noexcept = 0;
  [[nodiscard]] virtual Outcome put_records(Participant me, const void* data, std::uint64_t count, Span& put,
                                            Aside aside) noexcept = 0;
  [[nodiscard]] virtual Outcome put_bytes_once(Participant me, ProducerLine& line, const Buffer* items,
                                               std::uint64_t count, std::uint64_t& put, Aside aside) noexcept = 0;
  [[nodiscard]] virtual Outcome put_records_once(Participant me, ProducerLine& line, const void* data,
                                                 std::uint64_t count, std::uint64_t& put, Aside aside) noexcept = 0;
  // After each put that is done: wakes a consumer, and the next producer if this one has slept.
  void after_put(bool has_waited) noexcept {
    items().notify();
    if (has_waited && may_be_puttable()) room().notify();
  }
  // For a named producer whose predecessor was killed: finds out which items of its last put are in. busy: not yet
  // known, since a live participant is in the way.
  [[nodiscard]] virtual Outcome settle_producer(ProducerLine& line) noexcept = 0;

  // Gets: find, allocate memory for the item, take.
  // empty, busy: nothing now, wait_for_items(); closed: shut down, and nothing will come any more.
  [[nodiscard]] virtual Outcome find(Participant me, Item& item, Aside aside) noexcept = 0;
  // After find(): adds the items that follow, up to `limit`; targets[i].bytes is the i-th's, records have one target.
  // Returns how many targets.
  [[nodiscard]] virtual std::uint64_t widen(Participant me, Item& item, std::uint64_t limit,
                                            Target* targets) noexcept = 0;
  // Returns false if another consumer was faster: find again. It wakes participants that wait for the room, or for
  // items that are left.
  [[nodiscard]] virtual bool take(Participant me, Item& item, const Target* targets, std::uint64_t count) noexcept = 0;

  // Waits until there may be an item, or so many free slots; the caller tries again. `outcome`: what the put returned.
  virtual void wait_for_items(std::int64_t limit_ns) noexcept = 0;
  virtual void wait_for_room(Outcome outcome, std::uint64_t slots, std::int64_t limit_ns) noexcept = 0;
  // After a put that may not wait: returns true if it will be known in a moment whether there is room.
  [[nodiscard]] virtual bool is_worth_a_try(Outcome outcome) noexcept = 0;
  [[nodiscard]] virtual bool may_be_gettable() const noexcept = 0;
  [[nodiscard]] virtual bool may_be_puttable() const noexcept = 0;

  // For a consumer that finds nothing: a growing queue reclaims memory, briefly and now and then.
  virtual void upkeep_while_empty() noexcept = 0;

  virtual void shut_down(bool immediate) noexcept = 0;
  // Returns true if the queue was shut down at once: gets end, even if items are left.
  [[nodiscard]] virtual bool is_discarded() const noexcept = 0;
  // Of a queue that is shut down and empty: returns true if an item is out that may come back and that the caller may
  // wait for.
  [[nodiscard]] virtual bool may_come_again() noexcept = 0;
  [[nodiscard]] virtual bool recovery_is_due(Outcome outcome) noexcept = 0;
  [[nodiscard]] virtual bool has_more_to_recover() const noexcept = 0;

  // Snapshots. left: items of dead consumers, which will be delivered again; leased: those that a live consumer has.
  [[nodiscard]] virtual std::uint64_t count_items() noexcept = 0;
  [[nodiscard]] virtual std::uint64_t count_left() noexcept = 0;
  [[nodiscard]] virtual std::uint64_t count_leased() noexcept = 0;
  // Returns true if a consumer has claimed this position and it is not released.
  [[nodiscard]] virtual bool is_unreleased(std::uint64_t position) noexcept = 0;
  // Of a dead owner's line, without a lock: returns true if nothing that it names is outstanding.
  [[nodiscard]] virtual bool seems_settled(std::uint32_t line) const noexcept = 0;
  // Returns true if every item that was put is released, or the queue was shut down at once. It recovers when due: a
  // dead producer's slots are skipped, and a consumer is woken for a dead one's items.
  [[nodiscard]] virtual bool is_all_done(Participant me) noexcept = 0;
  // Makes a lease on this queue in the caller's memory.
  [[nodiscard]] virtual std::size_t lease_bytes() const noexcept = 0;
  [[nodiscard]] virtual RingLease* lease_at(void* memory) noexcept = 0;

  // Ends the guard of a redelivered item that was found and is not taken.
  virtual void drop_guard() noexcept = 0;

 protected:
  // The words that the control block of every kind has.
  struct Words {
    std::atomic<std::uint32_t>* items;
    std::atomic<std::uint32_t>* room;
    std::atomic<std::uint32_t>* participants_used;
    std::atomic<std::uint32_t>* has_long_items;
    std::atomic<std::uint64_t>* tombstones;
    std::atomic<std::uint64_t>* redelivered;
  };
  [[nodiscard]] static Words words_of(auto& control) noexcept {
    return {&control.items.word,     &control.room.word,  &control.participants_used,
            &control.has_long_items, &control.tombstones, &control.redelivered};
  }
  // How many lines the tables have.
  struct Tables {
    std::uint32_t participants;
    std::uint32_t producers;
  };

  RingHandle(Words words, std::byte* base, const auto& at, std::uint64_t slot_bytes, Tables tables, int lock_fd,
             Identity identity) noexcept
      : words_(words),
        slot_bytes_(slot_bytes),
        participant_table_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), tables.participants,
                           words.participants_used, identity),
        producers_(at.producers == 0 ? nullptr : reinterpret_cast<ProducersHead*>(base + at.producers),
                   tables.producers, participant_table_) {}

  [[nodiscard]] RecoveryCounters counters() const noexcept { return {words_.tombstones, words_.redelivered}; }
  void wake_everybody() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    items().wake_all();
    room().wake_all();
  }

 private:
  Words words_;
  std::uint64_t slot_bytes_;

 protected:
  ParticipantTable participant_table_;
  Producers producers_;
  IdleStrategy item_idle_;
  IdleStrategy room_idle_;
  Rest rest_;
};

inline void Item::let_go() noexcept {
  if (found_by_ != nullptr) [[unlikely]]
    std::exchange(found_by_, nullptr)->drop_guard();
  is_redelivered = false;
}

}  // namespace queueduct
