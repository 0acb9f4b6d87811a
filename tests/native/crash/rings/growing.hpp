// The users of a growing queue, what they note of what they do, and the scenes that lead to each of its moves.
#pragma once

#include <sys/mman.h>

#include <string>
#include <vector>

#include "support/growing_segment.hpp"
#include "crash/harness/plan.hpp"
#include "crash/harness/process.hpp"

namespace queueduct::crash {

using testing::GrowingAttachment;
using testing::GrowingSegment;
using testing::GrowingSizes;

inline constexpr std::uint32_t number_limit = 4096;
inline constexpr std::uint64_t long_bytes = 1000;  // 63 slots: two levels up from the first
inline constexpr std::uint64_t lease_limit = 16;
inline constexpr std::uint32_t growing_trace_limit = 512;

// Ways to be wrong that the campaign has to notice; used by its own test only.
enum class Sabotage : std::uint8_t {
  none,
  silent,     // claims without a word in the ledger
  blind,      // never recovers anything
  early_end,  // ends a lease before it releases it
  fresh,      // takes what a dead producer of its name has claimed for never having happened
};
inline Sabotage sabotage = Sabotage::none;

// What happened, in memory that no kill can take away.
struct Account {
  std::atomic<std::uint32_t> next{0};               // numbers that were begun to be put
  std::atomic<std::uint8_t> is_in[number_limit];    // its put returned
  std::atomic<std::uint8_t> putter[number_limit];   // who put it
  std::atomic<std::uint8_t> users{0};
  std::atomic<std::uint8_t> times[number_limit];    // it was got so often
  std::atomic<std::uint32_t> releases_begun{0};     // of items that were got
  std::atomic<std::uint32_t> releases_noted{0};
  std::atomic<std::uint32_t> steps{0};              // of the one who is armed
  std::atomic<const char*> trace[growing_trace_limit];  // and where: literals of this image
  std::uint32_t planned = 0;                        // the first number of the named producer's plan
  std::atomic<const char*> last_point{nullptr};
  std::atomic<std::uint32_t> torn{0};
  std::atomic<std::uint32_t> disordered{0};

  static Account& create() {
    void* memory = mmap(nullptr, sizeof(Account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for the account");
    return *new (memory) Account{};
  }
  void reset() noexcept { new (this) Account{}; }
};

struct Trigger {
  Account* account = nullptr;
  Fire fire = Fire::never;
  std::uint32_t at = 0;
};
inline Trigger trigger;

inline void on_point(const char* name) noexcept {
  Account& account = *trigger.account;
  const std::uint32_t step = account.steps.fetch_add(1) + 1;
  if (step <= growing_trace_limit) account.trace[step - 1].store(name);
  if (trigger.fire == Fire::never || step != trigger.at) return;
  account.last_point.store(name);
  kill(getpid(), trigger.fire == Fire::kill ? SIGKILL : SIGSTOP);
}

inline void arm(Account& account, Fire fire, std::uint32_t at) noexcept {
  account.steps.store(0);
  account.last_point.store(nullptr);
  trigger = {&account, fire, at};
  failpoint::armed = on_point;
}

// What a named producer puts: so many sequences of so many items, one of each longer than a slot.
inline constexpr std::uint32_t plan_sequences = 2;
inline constexpr std::uint32_t plan_items = 6;
inline constexpr std::uint64_t plan_bytes = 40;
inline constexpr std::uint8_t planned_putter = 255;

inline void make_plan(Account& account) {
  account.planned = account.next.fetch_add(plan_sequences * plan_items);
  for (std::uint32_t i = 0; i < plan_sequences * plan_items; ++i)
    account.putter[account.planned + i].store(planned_putter);
}

// One user of the queue, and what it does to the account.
class User {
 public:
  User(const GrowingSegment& segment, Account& account) : account_(account), attached_(segment) {
    (void)attached_.ledger();
    if (sabotage != Sabotage::blind) attached_.queue().recover_at_once();  // failpoints do not depend on a clock
  }

  [[nodiscard]] GrowingAttachment& attached() noexcept { return attached_; }
  [[nodiscard]] Account& account() noexcept { return account_; }

  // True: it is in.
  bool put(std::uint64_t bytes) {
    const std::uint32_t number = account_.next.fetch_add(1);
    account_.putter[number].store(me_);
    unsigned char item[long_bytes];
    write(number, item, sizeof item);
    for (int tries = 0; tries < 50; ++tries) {
      const Outcome outcome = try_put(item, bytes);
      if (outcome == Outcome::done) {
        account_.is_in[number].store(1);
        return true;
      }
      if (outcome == Outcome::closed) return false;
    }
    return false;
  }

  // An item, at the front or of a dead consumer. An item that is claimed and not released yet is never lost.
  Outcome get() {
    GrowingQueue& queue = attached_.queue();
    const Participant mine = attached_.ledger();
    for (;;) {
      Item item;
      const Outcome outcome =
          sabotage == Sabotage::blind ? queue.peek(mine, item) : queue.find(mine, item, run_here);
      if (outcome != Outcome::done) return outcome;
      const bool is_from_the_front = !item.is_redelivered;
      std::vector<unsigned char> bytes(item.bytes);
      const Target target{bytes.data(), item.bytes};
      if (!queue.take(mine, item, &target, 1, [this] { account_.releases_begun.fetch_add(1); })) continue;
      note(bytes.data(), bytes.size(), is_from_the_front);
      account_.releases_noted.fetch_add(1);
      return outcome;
    }
  }

  // Up to `limit` items, of which so many are released; the rest is given back. False: there is no line for it.
  bool lease(std::uint64_t limit, std::uint64_t released) {
    GrowingLease lease(attached_.queue());
    if (lease.join() != ParticipantTable::Joined::yes) return false;
    Redelivered items[lease_limit];
    std::uint64_t skipped = 0;
    std::uint64_t count = lease.try_inherit(items, limit).count;
    if (count == 0) (void)lease.try_claim(items, limit, count, skipped);
    if (count == 0) return true;
    std::vector<std::vector<unsigned char>> copies(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      copies[i].resize(items[i].bytes);
      lease.copy_out(items[i], copies[i].data(), items[i].bytes);
    }
    QUEUEDUCT_FAILPOINT("lease.held");
    const std::uint64_t kept = released < count ? released : count;
    if (sabotage == Sabotage::early_end) lease.let_go();
    account_.releases_begun.fetch_add(static_cast<std::uint32_t>(kept));
    lease.release(items, kept, kept == count);
    for (std::uint64_t i = 0; i < kept; ++i) note(copies[i].data(), copies[i].size(), !lease.is_redelivered());
    account_.releases_noted.fetch_add(static_cast<std::uint32_t>(kept));
    lease.let_go();
    return true;
  }

  // The same as a get whose items somebody else's code converts: with the thread's line.
  void convert(std::uint64_t limit, std::uint64_t released) {
    GrowingLease lease(attached_.queue());
    lease.borrow(attached_.ledger());
    Redelivered items[lease_limit];
    std::uint64_t skipped = 0;
    std::uint64_t count = lease.try_inherit(items, limit).count;
    if (count == 0) (void)lease.try_claim(items, limit, count, skipped);
    if (count == 0) return;
    lease.set_apart();
    std::vector<std::vector<unsigned char>> copies(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      copies[i].resize(items[i].bytes);
      lease.copy_out(items[i], copies[i].data(), items[i].bytes);
    }
    QUEUEDUCT_FAILPOINT("lease.held");
    const std::uint64_t kept = released < count ? released : count;
    account_.releases_begun.fetch_add(static_cast<std::uint32_t>(kept));
    if (kept == count)
      lease.finish(items, count);
    else
      lease.release(items, kept, false);
    for (std::uint64_t i = 0; i < kept; ++i) note(copies[i].data(), copies[i].size(), !lease.is_redelivered());
    account_.releases_noted.fetch_add(static_cast<std::uint32_t>(kept));
    if (kept != count) lease.let_go();
  }

  // The plan of a named producer from its beginning, as a process does that was started again and knows nothing.
  // busy: somebody alive is at it.
  Outcome put_planned() {
    for (std::uint32_t sequence = 0; sequence < plan_sequences; ++sequence) {
      ProducerLine* line = nullptr;
      const std::uint64_t me = attached_.queue().owner_word(attached_.ledger());
      const Producers::Taken taken =
          attached_.queue().producers().take(name_of_producer("planned"), me, sequence, plan_items, line);
      if (taken == Producers::Taken::in_use || taken == Producers::Taken::table_busy) return Outcome::busy;
      if (taken != Producers::Taken::yes) return Outcome::corrupt;
      const Outcome outcome = put_missing(*line, sequence);
      Producers::leave(*line);
      if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
  }

  // One item of a dead consumer, before those at the front, so that a kill comes to the recovery in few steps. Returns
  // true if something was done.
  bool recover() {
    const Participant mine = attached_.ledger();
    const GrowingQueue::RecoveryScan found = attached_.queue().recover();
    if (!found.redeliverable) return found.changed;
    if (!attached_.queue().try_redeliver(mine, found)) return true;
    std::vector<unsigned char> item(found.peeked.bytes);
    account_.releases_begun.fetch_add(1);
    finish_redelivered(attached_.queue(), mine, found, item.data());
    note(item.data(), item.size(), false);
    account_.releases_noted.fetch_add(1);
    return true;
  }

 private:
  // The line is ours.
  [[nodiscard]] Outcome put_missing(ProducerLine& line, std::uint32_t sequence) {
    if (sabotage == Sabotage::fresh) complete(line, 0);
    const Outcome settled = attached_.queue().settle_producer(line);
    if (settled != Outcome::done) return settled;
    const Begun begun = begin(line, sequence, plan_items);
    if (begun == Begun::complete) return Outcome::done;
    if (begun != Begun::yes) return Outcome::corrupt;
    unsigned char bytes[plan_items][plan_bytes];
    Buffer items[plan_items];
    for (std::uint32_t i = 0; i < plan_items; ++i) {
      const std::uint32_t number = account_.planned + sequence * plan_items + i;
      write(number, bytes[i], plan_bytes);
      items[i] = {bytes[i], i == 3 ? plan_bytes : 8};  // one of several slots among them
    }
    for (int tries = 0; tries < 50;) {
      const std::uint64_t done = progress_of(line).done;
      if (done == plan_items) return Outcome::done;
      std::uint64_t put = 0;
      const Participant mine = attached_.ledger();
      const Outcome outcome =
          attached_.queue().put_bytes_once(mine, line, items + done, plan_items - done, put, run_here);
      if (outcome == Outcome::closed || outcome == Outcome::corrupt) return outcome;
      if (outcome == Outcome::done) continue;
      ++tries;
    }
    return Outcome::full;
  }

  static void write(std::uint32_t number, unsigned char* item, std::uint64_t bytes) {
    std::memset(item, static_cast<int>(number & 0xff), bytes);
    std::memcpy(item, &number, sizeof number);
  }

  [[nodiscard]] Outcome try_put(const void* item, std::uint64_t bytes) {
    if (sabotage != Sabotage::silent) return attached_.put(item, bytes);
    const Participant mine = attached_.ledger();
    (void)mine;
    return attached_.flow().put(unledgered_, NoGuard{}, attached_.queue().slots_for(bytes),
                                [&](const GrowingRing& ring) { return try_put_bytes(ring, NoLedger{}, item, bytes); });
  }

  void note(const unsigned char* item, std::uint64_t bytes, bool is_from_the_front) {
    std::uint32_t number = number_limit;
    if (bytes >= sizeof number) std::memcpy(&number, item, sizeof number);
    bool is_whole = number < account_.next.load() && number < number_limit;
    for (std::uint64_t i = sizeof number; i < bytes; ++i) is_whole &= item[i] == (number & 0xff);
    if (!is_whole) {
      account_.torn.fetch_add(1);
      return;
    }
    std::uint32_t& last = last_[account_.putter[number].load()];
    if (is_from_the_front && number + 1 <= last) account_.disordered.fetch_add(1);
    if (is_from_the_front) last = number + 1;
    account_.times[number].fetch_add(1);
  }

  Account& account_;
  GrowingAttachment attached_;
  LastRings unledgered_;
  std::uint8_t me_ = account_.users.fetch_add(1);
  std::uint32_t last_[256] = {};  // of each who puts: what one got of it last, and one more
};

// How a case begins, and what the victim does.
struct Scene {
  const char* name;
  void (*prepare)(User&, GrowingSegment&);
  void (*act)(User&);
};

inline void put_many(User& user, int count) {
  for (int i = 0; i < count; ++i) (void)user.put(8);
}
inline void get_many(User& user, int count) {
  for (int i = 0; i < count; ++i) (void)user.get();
}
// As if thousands of items had passed.
inline void calm(GrowingSegment& segment, std::uint64_t position) {
  segment.control().last_high.store(position - 5000);
}

inline const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = {
      {"put", [](User& user, GrowingSegment&) { put_many(user, 2); }, [](User& user) { put_many(user, 1); }},
      {"plan", [](User& user, GrowingSegment&) { put_many(user, 5); }, [](User& user) { put_many(user, 3); }},
      {"grow", [](User& user, GrowingSegment&) { put_many(user, 8); }, [](User& user) { put_many(user, 2); }},
      {"grow twice", [](User& user, GrowingSegment&) { put_many(user, 39); }, [](User& user) { put_many(user, 2); }},
      {"climb", [](User& user, GrowingSegment&) { put_many(user, 3); }, [](User& user) { (void)user.put(long_bytes); }},
      {"get", [](User& user, GrowingSegment&) { put_many(user, 3); }, [](User& user) { get_many(user, 2); }},
      {"read on",
       [](User& user, GrowingSegment&) {
         put_many(user, 20);
         get_many(user, 7);
       },
       [](User& user) { get_many(user, 3); }},
      {"long get",
       [](User& user, GrowingSegment&) {
         put_many(user, 1);
         (void)user.put(long_bytes);
         get_many(user, 1);
       },
       [](User& user) { get_many(user, 2); }},
      {"shrink",
       [](User& user, GrowingSegment& segment) {
         put_many(user, 60);
         get_many(user, 60);
         calm(segment, 62);
       },
       [](User& user) {
         (void)user.put(8);
         get_many(user, 1);
         put_many(user, 1);
       }},
      {"withdraw",  // the level after the last one was planned, and is never used
       [](User& user, GrowingSegment& segment) {
         put_many(user, 8 + 32 + 120);
         get_many(user, 8 + 32 + 120);
         calm(segment, 8 + 32 + 120 + 2);
       },
       [](User& user) {
         (void)user.put(8);
         get_many(user, 1);
         while (user.attached().flow().reclaim_some()) {
         }
       }},
      {"shut down", [](User& user, GrowingSegment&) { put_many(user, 20); },
       [](User& user) { user.attached().queue().shut_down(false); }},
      {"lease", [](User& user, GrowingSegment&) { put_many(user, 6); }, [](User& user) { (void)user.lease(4, 4); }},
      {"lease in part",
       [](User& user, GrowingSegment&) {
         put_many(user, 20);
         get_many(user, 5);
       },
       [](User& user) {
         (void)user.lease(2, 1);
         (void)user.lease(3, 3);
       }},
      {"lease again",
       [](User& user, GrowingSegment&) {
         put_many(user, 12);
         (void)user.put(long_bytes);
         (void)user.lease(5, 0);
         get_many(user, 7);
         (void)user.lease(9, 0);
       },
       [](User& user) {
         (void)user.lease(4, 2);
         (void)user.lease(9, 9);
       }},
      {"convert", [](User& user, GrowingSegment&) { put_many(user, 6); }, [](User& user) { user.convert(4, 4); }},
      {"convert again",
       [](User& user, GrowingSegment&) {
         put_many(user, 12);
         (void)user.put(long_bytes);
         user.convert(5, 0);
       },
       [](User& user) {
         user.convert(4, 2);
         user.convert(9, 9);
         (void)user.put(8);
       }},
      {"lease and shrink",
       [](User& user, GrowingSegment& segment) {
         put_many(user, 60);
         get_many(user, 60);
         (void)user.put(8);
         calm(segment, 63);
       },
       [](User& user) {
         (void)user.lease(1, 1);
         put_many(user, 1);
       }},
      {"put once",
       [](User& user, GrowingSegment&) {
         put_many(user, 5);
         make_plan(user.account());
       },
       [](User& user) { (void)user.put_planned(); }},
      {"heal", [](User& user, GrowingSegment&) { put_many(user, 20); },
       [](User& user) {
         for (int i = 0; i < 3 && user.recover(); ++i) {
         }
         get_many(user, 10);
         put_many(user, 2);
       }},
  };
  return all;
}

// Armed before it joins.
inline const Scene joining = {"join", [](User&, GrowingSegment&) {}, [](User& user) { get_many(user, 1); }};

}  // namespace queueduct::crash
