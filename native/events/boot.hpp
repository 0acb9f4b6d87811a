// Has the machine restarted since the log was last used? And the record of the cuts that restarts made.
//
// Shape      three witnesses of a boot, each of which may be unknown:
//              boot_id     the kernel's own name of the boot; not a replacement that a container was given
//              booted_ns   when it began: the real-time clock less the uptime. Only a step of that clock changes it
//              uptime_ns   how long it had lasted when a process last noted it. Within a boot it only rises
//            cuts          0 --> 1 --> 2 …     the epoch. Cut n removed everything from cut_positions[n % 256] on
// Roles      a process that opens a log on a disk, before it reads anything else.
// Invariants V1  another boot is concluded from two witnesses, never from one, and never from an unknown one.
//            V2  the log is cut only under the exclusive settling lock, while no line of it is held: so no living
//                participant has seen what the cut removes.
//            V3  a position of epoch e names the same item as long as no later cut was before it.
//            V4  a cut can be repeated: it is counted after all its steps, and the witnesses are stored last.
// Progress   a process that opens the log waits for one that settles; the kernel releases the lock of a dead process.
#pragma once

#include <time.h>

#include "events/chunks.hpp"
#include "segment/participants.hpp"

namespace queueduct {

// What this process knows of the boot that it runs in.
struct BootWitnesses {
  std::uint64_t boot_id[2] = {};     // 0: unknown
  bool has_clock = false;            // false: CLOCK_BOOTTIME is not the machine's here
  std::int64_t clock_offset_ns = 0;  // by how much that clock is ahead of the machine's
  bool is_on_disk = false;           // a log in memory is always of this boot

  [[nodiscard]] bool has_id() const noexcept { return boot_id[0] != 0 || boot_id[1] != 0; }
  [[nodiscard]] std::uint64_t uptime_ns() const noexcept {
    return has_clock ? at_least_0(clock_ns(CLOCK_BOOTTIME) - clock_offset_ns) : 0;
  }
  [[nodiscard]] std::uint64_t booted_ns() const noexcept {
    return has_clock ? at_least_0(clock_ns(CLOCK_REALTIME) - static_cast<std::int64_t>(uptime_ns())) : 0;
  }

 private:
  [[nodiscard]] static std::int64_t clock_ns(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }
  [[nodiscard]] static std::uint64_t at_least_0(std::int64_t value) noexcept {
    return value < 0 ? 0 : static_cast<std::uint64_t>(value);
  }
};

// Returns how many witnesses say that this is another boot than the one in which the log was last used.
[[nodiscard]] inline int count_other_boot(const EventsControl& control, const BootWitnesses& now) noexcept {
  constexpr std::uint64_t tolerance_ns = 10'000'000'000;  // leap seconds, and small steps of the clock
  const std::uint64_t id[2] = {control.boot_id[0].load(std::memory_order_relaxed),
                               control.boot_id[1].load(std::memory_order_relaxed)};
  int others = 0;
  if ((id[0] != 0 || id[1] != 0) && now.has_id()) {
    if (id[0] == now.boot_id[0] && id[1] == now.boot_id[1]) return 0;  // the kernel's name is enough
    ++others;
  }
  const std::uint64_t booted = control.booted_ns.load(std::memory_order_relaxed);
  const std::uint64_t booted_now = now.booted_ns();
  if (booted != 0 && booted_now != 0)
    others += std::max(booted, booted_now) - std::min(booted, booted_now) > tolerance_ns;
  others += now.has_clock && control.uptime_ns.load(std::memory_order_relaxed) > now.uptime_ns();
  return others;
}

// Stores the known witnesses. An unknown one keeps its old value, unless that is another boot's.
inline void note_boot(EventsControl& control, const BootWitnesses& now, bool is_another) noexcept {
  if (now.has_id() || is_another) {
    control.boot_id[0].store(now.boot_id[0], std::memory_order_relaxed);
    control.boot_id[1].store(now.boot_id[1], std::memory_order_relaxed);
  }
  QUEUEDUCT_FAILPOINT("boot.half_noted");
  if (now.has_clock || is_another) {
    control.booted_ns.store(now.booted_ns(), std::memory_order_relaxed);
    control.uptime_ns.store(now.uptime_ns(), std::memory_order_relaxed);
  }
}

// Under the lock, after all other steps of the cut: keeps V4, since a kill before the last store leaves it uncounted.
inline void count_cut(EventsControl& control, std::uint64_t position) noexcept {
  const std::uint64_t number = control.cuts.load(std::memory_order_relaxed) + 1;
  std::atomic<std::uint64_t>& entry = control.cut_positions[number % cuts_kept];
  if (number > cuts_kept) {
    const std::uint64_t leaving = entry.load(std::memory_order_relaxed) + 1;
    const std::uint64_t lowest = control.lowest_cut.load(std::memory_order_relaxed);
    if (lowest == 0 || leaving < lowest) control.lowest_cut.store(leaving, std::memory_order_relaxed);
  }
  QUEUEDUCT_FAILPOINT("boot.before_position");
  entry.store(position, std::memory_order_relaxed);
  QUEUEDUCT_FAILPOINT("boot.before_count");
  control.cuts.store(number, std::memory_order_release);
  QUEUEDUCT_FAILPOINT("boot.counted");
}

// Returns up to where positions of that epoch name the same items (V3); all ones if every one does. Of the cuts that
// have left the table only the lowest is known, and it stands for all of them.
[[nodiscard]] inline std::uint64_t valid_until(const EventsControl& control, std::uint64_t epoch) noexcept {
  const std::uint64_t cuts = control.cuts.load(std::memory_order_acquire);
  std::uint64_t least = ~std::uint64_t{0};
  if (epoch >= cuts) return least;
  const std::uint64_t oldest = cuts > cuts_kept ? cuts - cuts_kept : 0;  // the last cut that has left the table
  // counts down, since a corrupt count of cuts may be the largest number
  for (std::uint64_t left = cuts - std::max(epoch, oldest); left > 0; --left)
    least = std::min(least, control.cut_positions[(cuts - left + 1) % cuts_kept].load(std::memory_order_relaxed));
  const std::uint64_t lowest = control.lowest_cut.load(std::memory_order_relaxed);
  return epoch < oldest && lowest != 0 ? std::min(least, lowest - 1) : least;
}

}  // namespace queueduct
