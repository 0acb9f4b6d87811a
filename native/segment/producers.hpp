// Producers: what each named producer has put, so that a call that was cut short can be repeated.
//
// Shape      a head line, and a line a producer. All that changes in a call is in one word, progress:
//              | used : 1 | phase : 2 | which : 1 | total : 30 | done : 30 |      0: a free line
//                       begin              intend             confirm            complete(k)
//              idle, done ----> idle, done 0 ----> intended, done ----> claimed, done ----> idle, done + k
//            `which` names the valid one of the two sequence words.
// Roles      one participant at a time owns a line and writes it, for the length of a call; any participant reads.
// Invariants N1  a line is written only by its owner (segment/owner.hpp), except for `kept`, which is the queue's.
//            N2  each step is one store of progress, after all that it speaks of: a kill leaves the line before
//                the step or after it.
//            N3  a name is in the table once: only the owner of the registrar word makes names. A line has a name as
//                long as it is used.
//            N4  done rises only by what is in the queue for certain, and nothing is put twice if a line that is
//                found intended or claimed is settled before its next intend. How it is settled is the queue's own
//                rule: see ring/put_once.hpp, slots/put_once.hpp, events/put_once.hpp.
// Progress   finding and owning a line take no lock; making one waits for other participants that make one.
// Source     the idempotent producer of Kafka; write-ahead intents of databases.
//
// Memory orders come in pairs:
//   N2  release store of progress  with acquire in progress_of(): what the step speaks of
//   O2  of the owner word          the line as its last owner left it
#pragma once

#include <cstring>

#include "segment/owner.hpp"

namespace queueduct {

enum class Phase : std::uint64_t {
  idle = 0,
  intended = 1,  // about to claim position and extent, or just claimed
  claimed = 2,   // publishing what was claimed
};

struct Progress {
  bool is_used = false;
  Phase phase = Phase::idle;
  std::uint32_t which = 0;
  std::uint64_t total = 0;
  std::uint64_t done = 0;

  static constexpr int count_bits = 30;
  static constexpr std::uint64_t count_limit = (std::uint64_t{1} << count_bits) - 1;

  [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
    return std::uint64_t{is_used} << 63 | static_cast<std::uint64_t>(phase) << 61 | std::uint64_t{which} << 60 |
           total << count_bits | done;
  }
  [[nodiscard]] static constexpr Progress unpack(std::uint64_t word) noexcept {
    return {(word >> 63) != 0, static_cast<Phase>(word >> 61 & 3), static_cast<std::uint32_t>(word >> 60 & 1),
            word >> count_bits & count_limit, word & count_limit};
  }
  [[nodiscard]] constexpr bool is_complete() const noexcept { return phase == Phase::idle && done >= total; }
};
static_assert(Progress::unpack(Progress{true, Phase::claimed, 1, 7, 5}.packed()).phase == Phase::claimed);

// What a claim covers.
struct Extent {
  std::uint64_t slots = 0;
  std::uint64_t items = 0;

  [[nodiscard]] constexpr std::uint64_t packed() const noexcept { return slots << 32 | items; }
  [[nodiscard]] static constexpr Extent unpack(std::uint64_t word) noexcept { return {word >> 32, word & 0xffff'ffff}; }
};

class ProducerName {
 public:
  ProducerName() noexcept = default;

  // Returns false unless the text has 1 to 64 bytes, and no zero among them.
  [[nodiscard]] static bool of(const char* text, std::size_t bytes, ProducerName& name) noexcept {
    if (bytes == 0 || bytes > producer_name_bytes || std::memchr(text, 0, bytes) != nullptr) return false;
    name = {};
    std::memcpy(name.words_, text, bytes);
    return true;
  }

  // relaxed, all three: a name is believed only by the line's owner (N1), or after two equal reads
  [[nodiscard]] bool is_of(const ProducerLine& line) const noexcept {
    for (std::size_t i = 0; i < words; ++i)
      if (line.name[i].load(std::memory_order_relaxed) != words_[i]) return false;
    return true;
  }
  void write_to(ProducerLine& line) const noexcept {
    for (std::size_t i = 0; i < words; ++i) line.name[i].store(words_[i], std::memory_order_relaxed);
  }
  void read_from(const ProducerLine& line) noexcept {
    for (std::size_t i = 0; i < words; ++i) words_[i] = line.name[i].load(std::memory_order_relaxed);
  }

  [[nodiscard]] const char* text() const noexcept { return reinterpret_cast<const char*>(words_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return strnlen(text(), producer_name_bytes); }

 private:
  static constexpr std::size_t words = producer_name_bytes / 8;
  std::uint64_t words_[words] = {};
};

[[nodiscard]] inline Progress progress_of(const ProducerLine& line) noexcept {
  return Progress::unpack(line.progress.load(std::memory_order_acquire));  // acquire N2
}

[[nodiscard]] inline std::uint64_t sequence_of(const ProducerLine& line) noexcept {
  return line.sequence[progress_of(line).which].load(std::memory_order_relaxed);  // published by N2
}

// What follows are the steps of a line's owner, in order.

inline void store_progress(ProducerLine& line, Progress next, [[maybe_unused]] const char* before,
                           [[maybe_unused]] const char* after) noexcept {
  QUEUEDUCT_FAILPOINT(before);
  line.progress.store(next.packed(), std::memory_order_release);  // release N2
  QUEUEDUCT_FAILPOINT(after);
}

enum class Begun : std::uint8_t {
  yes,          // new, or to be continued: items from `done` on are missing
  complete,     // this sequence or a later one is complete: nothing to do
  other_total,  // it was begun with another number of items
  unfinished,   // an earlier sequence is not complete
};

// Starts or continues a sequence of `total` items. The line is settled: its phase is idle.
[[nodiscard]] inline Begun begin(ProducerLine& line, std::uint64_t sequence, std::uint64_t total) noexcept {
  Progress now = progress_of(line);
  const std::uint64_t current = sequence_of(line);
  if (sequence < current) return Begun::complete;
  if (sequence == current) {
    if (now.total != total) return Begun::other_total;
    return now.is_complete() ? Begun::complete : Begun::yes;
  }
  if (!now.is_complete()) return Begun::unfinished;
  line.sequence[1 - now.which].store(sequence, std::memory_order_relaxed);  // not read before the next step
  store_progress(line, {true, Phase::idle, 1 - now.which, total, 0}, "once.before_begin", "once.begun");
  return total == 0 ? Begun::complete : Begun::yes;
}

// Declares the next claim. Called again if the claim was lost: an intent that was not confirmed says nothing.
inline void intend(ProducerLine& line, std::uint64_t position, Extent extent) noexcept {
  Progress now = progress_of(line);
  QUEUEDUCT_FAILPOINT("once.before_intent");
  line.position.store(position, std::memory_order_relaxed);  // published by N2, as extent
  line.extent.store(extent.packed(), std::memory_order_relaxed);
  now.phase = Phase::intended;
  store_progress(line, now, "once.written", "once.intended");
}

// After the claim, before any of it is published.
inline void confirm(ProducerLine& line) noexcept {
  Progress now = progress_of(line);
  now.phase = Phase::claimed;
  store_progress(line, now, "once.before_confirm", "once.confirmed");
}

// `items` of the claim are in the queue, and no more will be.
inline void complete(ProducerLine& line, std::uint64_t items) noexcept {
  Progress now = progress_of(line);
  now.phase = Phase::idle;
  now.done += items;
  store_progress(line, now, "once.before_complete", "once.completed");
}

// The table, as one process sees it.
class Producers {
 public:
  // head == nullptr: there is no table.
  Producers(ProducersHead* head, std::uint32_t count, ParticipantTable& participant_table) noexcept
      : head_(head),
        lines_(head == nullptr ? nullptr : reinterpret_cast<ProducerLine*>(head + 1)),
        count_(head == nullptr ? 0 : count),
        participant_table_(participant_table) {}

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] ProducerLine* lines() const noexcept { return lines_; }

  enum class Taken : std::uint8_t {
    yes,
    in_use,      // by a live participant
    table_full,  // and the name is not in it
    table_busy,  // a live participant was making a producer at every attempt
    unknown,     // no such name: find() only
  };

  // Owns the line of that name; `me` is an owner word of the participant table. A new name begins with this sequence.
  // A line found intended or claimed must be settled next; then comes begin(), and leave() at the end.
  [[nodiscard]] Taken take(const ProducerName& name, std::uint64_t me, std::uint64_t sequence, std::uint64_t total,
                           ProducerLine*& line) noexcept {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      Taken taken = find(name, me, line);
      if (taken != Taken::unknown) return taken;
      taken = make(name, me, sequence, total, line);
      if (taken != Taken::table_busy) return taken;
      pause_between_attempts();
    }
    return Taken::table_busy;
  }

  // The same for a name that is in the table.
  [[nodiscard]] Taken find(const ProducerName& name, std::uint64_t me, ProducerLine*& line) noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) {
      line = lines_ + i;
      if (!is_named(*line, name)) continue;
      if (!owner::try_own(line->owner, me, participant_table_)) return Taken::in_use;
      if (is_named(*line, name)) return Taken::yes;
      leave(*line);  // forgotten just now, and perhaps given another name: ours may be in a later line
    }
    return Taken::unknown;
  }

  static void leave(ProducerLine& line) noexcept { owner::disown(line.owner); }

  // Called when no other participant lives: a word of the machine's last boot might name a participant of this one.
  void disown_all() const noexcept {
    if (count_ != 0) owner::disown(head_->registrar);
    for (std::uint32_t i = 0; i < count_; ++i) owner::disown(lines_[i].owner);
  }

  // Frees the line of that name. Its items stay; a sequence that is repeated later is put again.
  [[nodiscard]] Taken forget(const ProducerName& name, std::uint64_t me) noexcept {
    ProducerLine* line = nullptr;
    const Taken taken = find(name, me, line);
    if (taken != Taken::yes) return taken;
    store_progress(*line, {}, "once.before_forget", "once.forgotten");
    leave(*line);
    return taken;
  }

  struct Listed {
    ProducerName name;
    std::uint64_t sequence = 0;
    std::uint64_t total = 0;
    std::uint64_t done = 0;
  };

  // A consistent snapshot of line i. Returns false if it is free, or changes faster than it can be read.
  [[nodiscard]] bool snapshot(std::uint32_t i, Listed& listed) const noexcept {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      const Progress now = progress_of(lines_[i]);
      if (!now.is_used) return false;
      listed.name.read_from(lines_[i]);
      listed = {listed.name, lines_[i].sequence[now.which].load(std::memory_order_acquire), now.total, now.done};
      if (lines_[i].progress.load(std::memory_order_acquire) == now.packed() && listed.name.is_of(lines_[i]))
        return true;
    }
    return false;
  }

 private:
  static constexpr int attempts = 500;

  [[nodiscard]] static bool is_named(const ProducerLine& line, const ProducerName& name) noexcept {
    return progress_of(line).is_used && name.is_of(line);
  }

  // Makes a line for a new name. table_busy also if the name was made meanwhile: find it again.
  [[nodiscard]] Taken make(const ProducerName& name, std::uint64_t me, std::uint64_t sequence, std::uint64_t total,
                           ProducerLine*& line) noexcept {
    if (count_ == 0) return Taken::table_full;
    if (!owner::try_own(head_->registrar, me, participant_table_)) return Taken::table_busy;
    bool is_new = true;
    for (std::uint32_t i = 0; i < count_; ++i) is_new &= !is_named(lines_[i], name);
    Taken taken = is_new ? Taken::table_full : Taken::table_busy;
    for (std::uint32_t i = 0; is_new && taken != Taken::yes && i < count_; ++i) {
      if (progress_of(lines_[i]).is_used) continue;
      if (!owner::try_own(lines_[i].owner, me, participant_table_)) {
        taken = Taken::table_busy;  // just being forgotten
        continue;
      }
      line = lines_ + i;
      name.write_to(*line);
      line->sequence[0].store(sequence, std::memory_order_relaxed);  // published by N2, as the name
      store_progress(*line, {true, Phase::idle, 0, total, 0}, "once.before_register", "once.registered");
      taken = Taken::yes;
    }
    owner::disown(head_->registrar);
    return taken;
  }

  ProducersHead* head_;
  ProducerLine* lines_;
  std::uint32_t count_;
  ParticipantTable& participant_table_;
};

}  // namespace queueduct
