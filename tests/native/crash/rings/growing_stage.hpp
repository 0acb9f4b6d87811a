// Where the cases of a growing queue are played: victims that are killed or stopped at one step of a scene, helpers
// that may be killed too, and a survivor that closes the case.
#pragma once

#include "crash/harness/campaign.hpp"
#include "crash/rings/growing.hpp"

namespace queueduct::crash {

inline constexpr std::int64_t survive_limit_ns = 250 * millisecond;

// One who acts a scene up to one of its steps.
struct Victim {
  const Scene* scene;
  Fire fire = Fire::never;
  std::uint32_t step = 0;
};

struct GrowingPlay {
  using Shape = GrowingSizes;
  using Scene = crash::Scene;
  using Op = const Scene*;
  static std::string key(const Shape&) { return "the only one"; }
};

// After all: everything that is in comes out, the queue works through all its levels, and nothing is left behind.
// nullptr: as it must be.
[[nodiscard]] inline const char* survive(User& user, const GrowingSegment& segment, Account& account) {
  GrowingQueue& queue = user.attached().queue();
  const std::int64_t start_ns = monotonic_ns();
  const bool is_shut = queue.levels().level_range().is_shut();
  if (account.planned != 0) {
    if (user.put_planned() != Outcome::done) return "a plan cannot be ended";
    for (std::uint32_t i = 0; i < plan_sequences * plan_items; ++i) account.is_in[account.planned + i].store(1);
  }
  for (int idle = 0; idle < 3;) {
    const Outcome outcome = user.get();
    if (outcome == Outcome::corrupt) return "the queue calls itself corrupt";
    if (outcome == Outcome::done)
      idle = 0;
    else if (++idle < 3 && outcome == Outcome::busy)
      sched_yield();
  }
  if (user.get() == Outcome::busy) return "the front is stuck";
  if (monotonic_ns() - start_ns > survive_limit_ns) return "slow";
  if (count_items(queue.levels(), true) != 0) return "something is left";
  for (std::uint64_t p = 0; p < 400; ++p)
    if (queue.is_unreleased(p)) return "a position is still claimed";
  const std::uint32_t first = account.next.load();
  for (int i = 0; i < 200 && !is_shut; ++i)
    if (!user.put(i % 50 == 7 ? long_bytes : 8)) return "a put does not go in";
  for (std::uint32_t i = first; i < account.next.load() && !is_shut; ++i)
    if (user.get() != Outcome::done) return "a get finds nothing";
  while (user.attached().flow().reclaim_some()) {
  }
  const LevelRange now = queue.levels().unchecked_level_range();
  if (!queue.levels().is_sound(now)) return "the read level has passed the written one";
  for (std::uint32_t i = 0; i < queue.levels().steps(); ++i)
    if ((i < now.read_level() || i > now.written_level()) && !queue.levels().is_clean(i))
      return "a level is not given back";
  if (segment.resident_bytes() > queue.upkeep().reserved_bytes()) return "memory is not accounted for";
  return nullptr;
}

// Allowed: what is in comes out once, or went with a consumer that was killed when it released it.
[[nodiscard]] inline const char* judge(const Account& account) {
  if (account.torn.load() != 0) return "an item is torn";
  if (account.disordered.load() != 0) return "items changed their order";
  std::uint32_t missing = 0;
  for (std::uint32_t n = 0; n < account.next.load() && n < number_limit; ++n) {
    if (account.times[n].load() > 1) return "an item was delivered twice";
    missing += account.is_in[n].load() == 1 && account.times[n].load() == 0;
  }
  return missing > account.releases_begun.load() - account.releases_noted.load() ? "an item is lost" : nullptr;
}

template <>
class StageOf<GrowingPlay> {
 public:
  using Step = Victim;
  struct Case {};

  explicit StageOf(const GrowingSizes& sizes) : segment_(sizes) {}
  StageOf(const StageOf&) = delete;
  StageOf& operator=(const StageOf&) = delete;

  // Where a scene comes past, in order; nothing: it does not come to its end.
  [[nodiscard]] std::vector<const char*> record(const Scene& scene) {
    std::vector<const char*> points;
    if (prepare(scene) != Ended::exited) return points;
    const pid_t pid = start([&] {
      User user(segment_, account_);
      arm(account_, Fire::never, 0);
      scene.act(user);
    });
    if (finish(pid) != Ended::exited) return points;
    for (std::uint32_t i = 0; i < account_.steps.load() && i < growing_trace_limit; ++i)
      points.push_back(account_.trace[i].load());
    return points;
  }

  // `killed_at` is told where somebody was killed.
  template <class KilledAt>
  [[nodiscard]] Result run(const std::vector<Victim>& victims, KilledAt killed_at) {
    Result result;
    if (const Ended prepared = prepare(*victims[0].scene); prepared != Ended::exited) {
      result.fail(prepared == Ended::hung ? "slow" : "the scene cannot be prepared");
      return result;
    }
    said_[0] = 0;
    const bool joins_before = ++cases_ % 2 == 0;  // else it may get the dead victim's line
    const pid_t survivor = joins_before ? start([&] { survive_and_judge(true); }) : 0;
    if (joins_before && wait_for(survivor) != Ended::stopped) result.fail("the survivor cannot join");
    const bool second_is_there = cases_ % 4 < 2 && victims.size() == 2 && victims[1].scene != &joining;
    const pid_t second = second_is_there ? start([&] { act(victims[1], true); }) : 0;
    if (second_is_there && wait_for(second) != Ended::stopped) result.fail("the second victim cannot join");
    pid_t stopped = 0;
    for (const Victim& victim : victims) {
      const bool is_there = second_is_there && &victim != &victims[0];
      const pid_t pid = is_there ? second : start([&] { act(victim, false); });
      if (is_there) kill(pid, SIGCONT);
      const Ended how = wait_for(pid);
      if (how == Ended::hung) put_down(pid);
      if (how == Ended::hung || how == Ended::failed) result.fail("a victim hangs or fails");
      if (how == Ended::killed) {
        ++result.kills;
        killed_at(account_.last_point.load());
      }
      if (how == Ended::stopped) stopped = pid;
    }
    if (stopped != 0) {
      ++result.stops;
      work_beside(stopped, result);
    }
    close(joins_before ? survivor : start([&] { survive_and_judge(false); }), result);
    return result;
  }

 private:
  [[nodiscard]] Ended prepare(const Scene& scene) {
    segment_.reset();
    account_.reset();
    const pid_t pid = start([&] {
      User user(segment_, account_);
      scene.prepare(user, segment_);
    });
    return finish(pid);
  }

  void act(const Victim& victim, bool joins_before) {
    const bool is_joining = victim.scene == &joining;
    if (is_joining) arm(account_, victim.fire, victim.step);
    User user(segment_, account_);
    if (joins_before) raise(SIGSTOP);  // until the one before is dead
    if (!is_joining) arm(account_, victim.fire, victim.step);
    victim.scene->act(user);
  }

  // Somebody works while the victim is stopped; nothing of the victim's is taken from it.
  void work_beside(pid_t stopped, Result& result) {
    const pid_t pid = start([&] {
      failpoint::disarm();
      User user(segment_, account_);
      if (account_.planned != 0) (void)user.put_planned();
      get_many(user, 3);
      (void)user.lease(1, 1);
      if (!user.attached().queue().levels().level_range().is_shut()) (void)user.put(8);
    });
    const Ended how = finish(pid);
    kill(stopped, SIGCONT);
    const Ended end = finish(stopped);
    if (how != Ended::exited) result.fail("whoever works beside a stopped one hangs or fails");
    if (end != Ended::exited) result.fail("the stopped one does not end well");
  }

  void survive_and_judge(bool joins_before) {
    failpoint::disarm();
    {
      User user(segment_, account_);
      if (joins_before) raise(SIGSTOP);  // until the case has happened
      const char* problem = survive(user, segment_, account_);
      if (problem == nullptr) problem = judge(account_);
      if (problem != nullptr) std::strncpy(said_, problem, said_bytes - 1);
    }
    std::vector<std::unique_ptr<User>> users;  // throws if a line of the table is lost
    for (std::uint32_t i = 0; i < segment_.sizes().participants; ++i)
      users.push_back(std::make_unique<User>(segment_, account_));
  }

  void close(pid_t survivor, Result& result) {
    kill(survivor, SIGCONT);
    const Ended how = finish(survivor);
    if (said_[0] != 0) result.fail(said_);
    if (how != Ended::exited) result.fail("the survivor hangs or fails, or a line of the participant table is lost");
  }

  static constexpr std::size_t said_bytes = 256;

  GrowingSegment segment_;
  Account& account_ = Account::create();
  std::uint64_t cases_ = 0;
  char* const said_ =
      static_cast<char*>(mmap(nullptr, said_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
};

}  // namespace queueduct::crash
