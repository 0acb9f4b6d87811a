// Was the machine started anew since the log was last in use? And what the log tells of the times that it was.
//
// Shape      three witnesses of a boot, each of which may be unknown:
//              boot_id     the kernel's own name for it; not what a container was given in its place
//              booted_ns   when it began: the clock of the day less the time since. Only a step of the clock moves it
//              uptime_ns   how long it had lasted when somebody last looked. Within a boot it only rises
//            cuts          0 ──► 1 ──► 2 …     the epoch. Cut n took away everything from cut_positions[n % 256] on
// Roles      whoever opens a log on a disk, before it looks at anything else.
// Invariants V1  another boot is told by two witnesses, never by one, and never by one that is unknown.
//            V2  the log is cut only by who holds the settling lock alone, while no line of it is held: so nobody lives
//                who has seen what is taken away.
//            V3  a position of epoch e stands for the same item as long as no cut after e was before it.
//            V4  a cut can be made twice: it is counted after all that it does, and the witnesses are stored last.
// Progress   who opens waits for who settles; the kernel lets the lock of a dead one go.
#pragma once

#include <time.h>

#include "events/chunks.hpp"
#include "segment/participants.hpp"

namespace queueduct {

// What this process knows of the boot that it runs in.
struct BootWitnesses {
  std::uint64_t boot_id[2] = {};     // 0: unknown
  bool has_clock = false;            // false: its clock of the time since the boot is not the machine's
  std::int64_t clock_offset_ns = 0;  // by which that clock is ahead of the machine's
  bool is_on_disk = false;           // what is in memory alone is of this boot, since it is there

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

// How many witnesses say that it is another boot than the one that the log was last used in.
[[nodiscard]] inline int count_other_boot(const EventsControl& control, const BootWitnesses& now) noexcept {
  constexpr std::uint64_t tolerance_ns = 10'000'000'000;  // leap seconds, and small steps of the clock
  const std::uint64_t id[2] = {control.boot_id[0].load(std::memory_order_relaxed),
                               control.boot_id[1].load(std::memory_order_relaxed)};
  const std::uint64_t booted = control.booted_ns.load(std::memory_order_relaxed);
  const std::uint64_t uptime = control.uptime_ns.load(std::memory_order_relaxed);
  const auto is_known = [](const std::uint64_t* value) { return value[0] != 0 || value[1] != 0; };
  int others = 0;
  if (is_known(id) && is_known(now.boot_id)) {
    if (id[0] == now.boot_id[0] && id[1] == now.boot_id[1]) return 0;  // the kernel's own word is enough
    ++others;
  }
  const std::uint64_t booted_now = now.booted_ns();
  if (booted != 0 && booted_now != 0)
    others += (booted > booted_now ? booted - booted_now : booted_now - booted) > tolerance_ns;
  others += now.has_clock && uptime > now.uptime_ns();
  return others;
}

// What is known is noted; what is not stays, unless it is another boot's.
inline void note_boot(EventsControl& control, const BootWitnesses& now, bool is_another) noexcept {
  if (now.boot_id[0] != 0 || now.boot_id[1] != 0 || is_another) {
    control.boot_id[0].store(now.boot_id[0], std::memory_order_relaxed);
    control.boot_id[1].store(now.boot_id[1], std::memory_order_relaxed);
  }
  QUEUEDUCT_FAILPOINT("boot.half_noted");
  if (now.has_clock || is_another) {
    control.booted_ns.store(now.booted_ns(), std::memory_order_relaxed);
    control.uptime_ns.store(now.uptime_ns(), std::memory_order_relaxed);
  }
}

// Under the lock, after all that the cut does: keeps V4, since a kill before the last store leaves it uncounted.
inline void count_cut(EventsControl& control, std::uint64_t position) noexcept {
  const std::uint64_t number = control.cuts.load(std::memory_order_relaxed) + 1;
  std::atomic<std::uint64_t>& place = control.cut_positions[number % cuts_kept];
  if (number > cuts_kept) {
    const std::uint64_t left = place.load(std::memory_order_relaxed) + 1;
    const std::uint64_t lowest = control.lowest_cut.load(std::memory_order_relaxed);
    if (lowest == 0 || left < lowest) control.lowest_cut.store(left, std::memory_order_relaxed);
  }
  QUEUEDUCT_FAILPOINT("boot.before_position");
  place.store(position, std::memory_order_relaxed);
  QUEUEDUCT_FAILPOINT("boot.before_count");
  control.cuts.store(number, std::memory_order_release);
  QUEUEDUCT_FAILPOINT("boot.counted");
}

// Positions of that epoch stand for the same items up to here (V3); all ones: every one of them. Of cuts that are not
// in the table any more only the lowest is known, and taken for all of them.
[[nodiscard]] inline std::uint64_t valid_until(const EventsControl& control, std::uint64_t epoch) noexcept {
  const std::uint64_t cuts = control.cuts.load(std::memory_order_acquire);
  std::uint64_t least = ~std::uint64_t{0};
  if (epoch >= cuts) return least;
  const std::uint64_t oldest = cuts > cuts_kept ? cuts - cuts_kept : 0;  // the last one that is not in the table
  // counted by what is left: a count of cuts that somebody else has written may be the last of all numbers
  for (std::uint64_t left = cuts - (epoch > oldest ? epoch : oldest); left > 0; --left) {
    const std::uint64_t position = control.cut_positions[(cuts - left + 1) % cuts_kept].load(std::memory_order_relaxed);
    if (position < least) least = position;
  }
  const std::uint64_t lowest = control.lowest_cut.load(std::memory_order_relaxed);
  if (epoch < oldest && lowest != 0 && lowest - 1 < least) least = lowest - 1;
  return least;
}

}  // namespace queueduct
