// The participant table: which line of the participant table is whose, and who is dead.
//
// Shape      a line a thread, or for what outlives a call, such as a lease. Its process holds a lock on the line's byte
//            (lock_file.hpp).
// Roles      a process joins lines for its threads through one participant table a handle; anybody asks is_alive().
// Invariants R1  a line is written only under its lock: by its owner, who holds the write lock for life, or, to
//                clear it after its owner's death, under a read lock, which keeps the next owner out and does
//                not look like life.
//            R2  a line is taken over only when nothing that its dead owner declared is outstanding, or what
//                is has been inherited by the line's next owner.
//            R3  the kernel drops the lock when the process dies, however it dies, and not before.
//            R4  a thread's line is let go when the thread ends: by its process, in the thread's last moments. What it was
//                in the midst of is then a dead one's. Where a line names what its threads may go on using (keep_while), it
//                is kept until nothing does.
// Progress   joining, and the end of a thread, take a mutex of this process; a queue operation takes none.
//
// fork: parent and child share the open file description, and with it the locks. So the child opens the
// file anew in a pthread_atfork handler and starts with no lines: what it inherited stays its parent's. Whatever opens,
// locks or closes a lock file holds a mutex that a fork waits for: no child has one that its handler does not know (F1).
//
// Mutexes, in the order in which they are taken: the registry's, each participant table's, the thread numbers'.
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "segment/lock_file.hpp"
#include "core/thread_slots.hpp"

namespace queueduct {

struct Identity {
  std::uint64_t boot_id[2] = {};
  std::uint64_t start_ticks = 0;
};

class ParticipantTable {
 public:
  enum class Joined : std::uint8_t {
    yes,
    table_full,
    too_many_threads,
    lost,       // the lock file could not be opened, or was closed behind our back
    forked_off  // lives in one process, which is not this one
  };

  // Where a file's descriptor would be: the queue lives in one process, and nobody else can hold anything.
  static constexpr int one_process = -2;

  // Of the descriptor only the file is wanted; the participant table closes it.
  ParticipantTable(int fd, ParticipantLine* lines, std::uint32_t count, std::atomic<std::uint32_t>* used,
         Identity identity) noexcept
      : is_one_process_(fd == one_process), lines_(lines), count_(count), used_(used), identity_(identity) {
    enlist(fd);
    if (fd >= 0) close(fd);
  }

  ~ParticipantTable() {
    leave();  // first: a fork in between finds it in the registry, and its file closed
    delist();
  }

  ParticipantTable(const ParticipantTable&) = delete;
  ParticipantTable& operator=(const ParticipantTable&) = delete;

  // The calling thread's line number plus one; 0: it has none yet, call join().
  [[nodiscard]] std::uint32_t mine_plus_one() const noexcept {
    const std::uint32_t thread = thread_number::mine();
    return thread < thread_number::limit ? line_of_thread_[thread].load(std::memory_order_relaxed) : 0;
  }

  // is_settled(line): nothing that the line's dead owner declared is outstanding. Called with its lock held.
  template <class IsSettled>
  [[nodiscard]] Joined join(IsSettled is_settled) noexcept {
    const std::uint32_t thread = thread_number::mine();
    if (thread == thread_number::limit) return Joined::too_many_threads;
    std::uint32_t line = 0;
    const std::lock_guard lock(mutex_);
    const Joined joined = take_line(is_settled, line);
    if (joined == Joined::table_full && take_from_ended(thread)) return Joined::yes;
    if (joined == Joined::yes) line_of_thread_[thread].store(line + 1, std::memory_order_relaxed);
    return joined;
  }

  // The same for a line that is no thread's. let_go(line) ends it, and what it names is then a dead one's.
  template <class IsSettled>
  [[nodiscard]] Joined join_apart(IsSettled is_settled, std::uint32_t& line) noexcept {
    const std::lock_guard lock(mutex_);
    return take_line(is_settled, line);
  }

  // The calling thread's line becomes one that is no thread's, as after join_apart(): what it names stays named,
  // whatever the thread does here meanwhile, with another line. False: it has none.
  [[nodiscard]] bool set_apart(std::uint32_t& line) noexcept {
    const std::uint32_t thread = thread_number::mine();
    if (thread == thread_number::limit) return false;
    // relaxed: a thread's place in here is its own as long as it lives
    const std::uint32_t mine = line_of_thread_[thread].exchange(0, std::memory_order_relaxed);
    line = mine - 1;
    return mine != 0;
  }
  // Such a line, which names nothing any more, is the thread's again, or nobody's if it has another one by now.
  void take_back(std::uint32_t line) noexcept {
    const std::uint32_t thread = thread_number::mine();
    std::uint32_t none = 0;
    if (thread == thread_number::limit ||
        !line_of_thread_[thread].compare_exchange_strong(none, line + 1, std::memory_order_relaxed))
      let_go(line);
  }

  [[nodiscard]] bool is_alive(std::uint32_t line) const noexcept {
    if (is_owned(line)) return true;  // the kernel hides our own locks from us
    return !is_one_process_ && file_.is_owned_elsewhere(line);
  }

  // The calling thread's line, if it has one: it joins again when it needs one.
  void leave_line() noexcept {
    if (const std::uint32_t thread = thread_number::mine(); thread != thread_number::limit) end_thread(thread);
  }

  // Clear a dead owner's line once nothing of it is outstanding, so that later scans are short.
  template <class IsSettled>
  void tidy(std::uint32_t line, IsSettled is_settled) noexcept {
    const std::lock_guard lock(mutex_);
    if (!is_lost() && look_if_settled(line, is_settled)) lock_byte_of(line, F_UNLCK);
  }

  // The same for all lines of the dead that are marked, with one look for all of them: recover(has_died) is called with
  // their locks held, after which nothing of them is outstanding.
  template <class Recover>
  void tidy_all(Recover recover) noexcept {
    std::uint64_t dead[participants_limit / 64] = {};
    const auto has_died = [&dead](std::uint32_t line) { return line < participants_limit && (dead[line / 64] >> line % 64 & 1); };
    bool is_any = false;
    const std::lock_guard lock(mutex_);
    if (is_lost()) return;
    for (std::uint32_t line = 0, end = used(); line < end; ++line) {
      if (lines_[line].intent.load(std::memory_order_acquire) == 0 || is_owned(line) || !lock_byte_of(line, F_RDLCK)) continue;
      if (lines_[line].intent.load(std::memory_order_acquire) == 0) {  // somebody else was faster
        lock_byte_of(line, F_UNLCK);
        continue;
      }
      QUEUEDUCT_FAILPOINT("recover.found_dead");
      dead[line / 64] |= std::uint64_t{1} << line % 64;
      is_any = true;
    }
    if (!is_any) return;
    recover(has_died);
    for (std::uint32_t line = 0; line < count_; ++line) {
      if (!has_died(line)) continue;
      QUEUEDUCT_FAILPOINT("roster.before_tidy");
      lines_[line].intent.store(0, std::memory_order_release);  // keeps R1
      QUEUEDUCT_FAILPOINT("roster.tidied");
      lock_byte_of(line, F_UNLCK);
    }
  }

  // Else a table in which nobody could join may have room in a moment. So it may if the living have only just ended: a
  // thread gives its line back in its last moments, and whoever waited for its end may be here before.
  [[nodiscard]] bool is_full_for_good(int look) const noexcept { return look >= looks_at_the_living && is_full_of_the_living(); }
  [[nodiscard]] bool is_full_of_the_living() const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i)
      if (!is_alive(i)) return false;
    return true;
  }

  // Join again while that may help: a table is full of the living or not at all. Another participant may just look at a
  // dead one's line, and keep us out for that moment.
  template <class Join>
  [[nodiscard]] Joined patiently(Join join) const noexcept {
    for (int look = 0;; ++look) {
      const Joined joined = join();
      if (joined != Joined::table_full || look == join_looks || is_full_for_good(look)) return joined;
      const timespec moment{.tv_sec = 0, .tv_nsec = 200'000};
      nanosleep(&moment, nullptr);
    }
  }

  [[nodiscard]] std::uint32_t count_alive() const noexcept {
    std::uint32_t alive = 0;
    for (std::uint32_t line = 0; line < used(); ++line) alive += is_alive(line);
    return alive;
  }

  // Lines in use, dead ones not yet recovered included. The shared word is only believed within the table.
  [[nodiscard]] std::uint32_t used() const noexcept {
    const std::uint32_t used = used_->load(std::memory_order_acquire);
    return used < count_ ? used : count_;
  }

  [[nodiscard]] ParticipantLine* lines() const noexcept { return lines_; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  // Locks beyond the participants', for whatever else of a queue lives as long as its process holds it.
  // False: somebody has it, perhaps we.
  [[nodiscard]] bool hold(std::uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    if (is_lost() || is_owned(number) || !lock_byte_of(number, F_WRLCK)) return false;
    owned_[number].store(Owned::yes, std::memory_order_release);
    return true;
  }
  [[nodiscard]] bool holds(std::uint32_t number) const noexcept { return is_owned(number); }
  void let_go(std::uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    if (is_owned(number)) disown(number);
  }

  // Lines may name what their threads leave to others of the process. has_nothing(context, line) is asked when the thread
  // has ended, and by let_go_of_ended(); once it is true nothing names the line any more. Set before anybody joins.
  void keep_while(bool (*has_nothing)(void* context, std::uint32_t line), void* context) noexcept {
    has_nothing_ = has_nothing;
    context_ = context;
  }
  // After something was given up that a line may have been kept for. keeps R4
  void let_go_of_ended() noexcept {
    if (ended_.load(std::memory_order_relaxed) == 0) [[likely]] return;
    const std::lock_guard lock(mutex_);
    for (std::uint32_t line = 0; line < count_ && ended_.load(std::memory_order_relaxed) != 0; ++line)
      if (is_of_an_ended_thread(line) && has_nothing_(context_, line)) {
        ended_.fetch_sub(1, std::memory_order_relaxed);
        disown(line);
      }
  }

  // Counts forks: what was held before one is the parent's.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  // The segment's file; -1 where there is none, or none any more.
  [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
  [[nodiscard]] const LockFile& file() const noexcept { return file_; }
  // Why it has none from the beginning, if so.
  [[nodiscard]] int open_error() const noexcept { return file_.error(); }

  // Was the descriptor closed behind our back, or never to be had? What is held stays so (F2), and nothing more can be.
  [[nodiscard]] bool is_lost() const noexcept { return !is_one_process_ && file_.descriptor() < 0; }
  // The same if somebody has noticed: free of charge. Whoever asks who is alive, or for a lock, notices.
  [[nodiscard]] bool was_lost() const noexcept { return !is_one_process_ && file_.number() < 0; }
  [[nodiscard]] bool is_one_process() const noexcept { return is_one_process_; }
  // Is this the child of the process in which the queue lives?
  [[nodiscard]] bool is_forked_off() const noexcept { return is_one_process_ && generation() != 0; }

  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    QUEUEDUCT_FAILPOINT("roster.before_leave");
    file_.close();  // drops every lock of this description
    QUEUEDUCT_FAILPOINT("roster.left");
    forget_lines();
  }

 private:
#ifdef QUEUEDUCT_FAILPOINTS
  static constexpr int looks_at_the_living = 2;  // every case of a kill campaign ends with a look at a full table
#else
  static constexpr int looks_at_the_living = 50;  // 200 us each
#endif
  static constexpr int join_looks = 500;

  enum class Owned : std::uint8_t { no, yes, by_an_ended_thread };

  [[nodiscard]] bool is_owned(std::uint32_t number) const noexcept {
    return owned_[number].load(std::memory_order_acquire) != Owned::no;
  }

  [[nodiscard]] bool is_of_an_ended_thread(std::uint32_t line) const noexcept {
    return owned_[line].load(std::memory_order_relaxed) == Owned::by_an_ended_thread;
  }

  bool lock_byte_of(std::uint32_t number, short type) const noexcept {
    return is_one_process_ || file_.lock(number, type);
  }

  // A lock that is held beyond its descriptor (F2) can only be dropped with all the others: it stays, and is ours.
  void disown(std::uint32_t number) noexcept {
    if (is_lost()) return;
    QUEUEDUCT_FAILPOINT("roster.before_let_go");
    owned_[number].store(Owned::no, std::memory_order_relaxed);
    lock_byte_of(number, F_UNLCK);
    QUEUEDUCT_FAILPOINT("roster.let_go");
  }

  template <class IsSettled>
  [[nodiscard]] Joined take_line(IsSettled is_settled, std::uint32_t& line) noexcept {
    if (is_forked_off()) return Joined::forked_off;
    if (is_lost()) return Joined::lost;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!look_if_settled(i, is_settled)) continue;
      if (!lock_byte_of(i, F_WRLCK)) {  // somebody else looks as well
        lock_byte_of(i, F_UNLCK);
        continue;
      }
      QUEUEDUCT_FAILPOINT("roster.locked");
      write_identity(lines_[i]);
      QUEUEDUCT_FAILPOINT("roster.identified");
      raise_used(i + 1);
      QUEUEDUCT_FAILPOINT("roster.joined");
      owned_[i].store(Owned::yes, std::memory_order_release);
      line = i;
      return Joined::yes;
    }
    return is_lost() ? Joined::lost : Joined::table_full;
  }

  // The line of a thread of ours that has ended, and is kept for what it names.
  [[nodiscard]] bool take_from_ended(std::uint32_t thread) noexcept {
    for (std::uint32_t line = 0; line < count_; ++line) {
      if (!is_of_an_ended_thread(line)) continue;
      ended_.fetch_sub(1, std::memory_order_relaxed);
      // for people; to the others the line is still ours, and of the same tenure
      lines_[line].thread.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
      owned_[line].store(Owned::yes, std::memory_order_relaxed);
      line_of_thread_[thread].store(line + 1, std::memory_order_relaxed);
      return true;
    }
    return false;
  }

  // keeps R4
  void end_thread(std::uint32_t thread) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint32_t line_plus_one = line_of_thread_[thread].exchange(0, std::memory_order_relaxed);
    if (line_plus_one == 0) return;
    const std::uint32_t line = line_plus_one - 1;
    if (has_nothing_ == nullptr || has_nothing_(context_, line)) return disown(line);
    owned_[line].store(Owned::by_an_ended_thread, std::memory_order_relaxed);
    ended_.fetch_add(1, std::memory_order_relaxed);
  }

  // R2: take the line's read lock, and keep it only if its last owner left nothing behind.
  template <class IsSettled>
  [[nodiscard]] bool look_if_settled(std::uint32_t i, IsSettled is_settled) noexcept {
    if (is_owned(i) || !lock_byte_of(i, F_RDLCK)) return false;
    QUEUEDUCT_FAILPOINT("roster.looking");
    if (lines_[i].intent.load(std::memory_order_acquire) != 0) {
      if (!is_settled(i)) {
        lock_byte_of(i, F_UNLCK);
        return false;
      }
      QUEUEDUCT_FAILPOINT("roster.before_tidy");
      lines_[i].intent.store(0, std::memory_order_release);  // keeps R1
      QUEUEDUCT_FAILPOINT("roster.tidied");
    }
    return true;
  }

  void write_identity(ParticipantLine& line) noexcept {
    // release: who sees the new tenure knows that the last owner has ended, and all that it did
    line.tenure.fetch_add(1, std::memory_order_release);
    line.pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
    line.thread.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
    line.start_ticks.store(identity_.start_ticks, std::memory_order_relaxed);
    line.boot_id[0].store(identity_.boot_id[0], std::memory_order_relaxed);
    line.boot_id[1].store(identity_.boot_id[1], std::memory_order_relaxed);
    line.guarded.store(0, std::memory_order_relaxed);  // its last owner may have died in a look
  }

  void raise_used(std::uint32_t least) noexcept {
    std::uint32_t used = used_->load(std::memory_order_relaxed);
    // release: a claim by this line comes later, and a scan that sees the claim must look this far
    while (used < least &&
           !used_->compare_exchange_weak(used, least, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
  }

  void forget_lines() noexcept {
    for (auto& line : line_of_thread_) line.store(0, std::memory_order_relaxed);
    ended_.store(0, std::memory_order_relaxed);
    for (auto& owned : owned_) owned.store(Owned::no, std::memory_order_relaxed);
  }

  // Every participant table of this process, whichever module made it, for the fork handlers: see thread_number.
  [[gnu::visibility("default")]] static inline std::mutex registry_mutex_;
  [[gnu::visibility("default")]] static inline ParticipantTable* registry_ = nullptr;
  [[gnu::visibility("default")]] static inline bool has_fork_handlers_ = false;
  ParticipantTable* next_ = nullptr;

  void enlist(int fd) noexcept {
    const std::lock_guard lock(registry_mutex_);
    if (!has_fork_handlers_) has_fork_handlers_ = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    thread_number::at_end.store(end_of_a_thread, std::memory_order_release);
    if (fd >= 0) (void)file_.open(fd);  // F1
    next_ = registry_;
    registry_ = this;
  }

  void delist() noexcept {
    const std::lock_guard lock(registry_mutex_);
    for (ParticipantTable** at = &registry_; *at != nullptr; at = &(*at)->next_) {
      if (*at == this) {
        *at = next_;
        return;
      }
    }
  }

  static void end_of_a_thread(std::uint32_t thread) noexcept {
    const std::lock_guard lock(registry_mutex_);
    for (ParticipantTable* participant_table = registry_; participant_table != nullptr; participant_table = participant_table->next_) participant_table->end_thread(thread);
  }

  static void before_fork() noexcept {
    registry_mutex_.lock();
    for (ParticipantTable* participant_table = registry_; participant_table != nullptr; participant_table = participant_table->next_) participant_table->mutex_.lock();
    thread_number::mutex.lock();
  }

  static void after_fork_in_parent() noexcept {
    thread_number::mutex.unlock();
    for (ParticipantTable* participant_table = registry_; participant_table != nullptr; participant_table = participant_table->next_) participant_table->mutex_.unlock();
    registry_mutex_.unlock();
  }

  // Only async-signal-safe calls: other threads of the parent may have held any lock of the C library.
  static void after_fork_in_child() noexcept {
    for (thread_number::Taken& taken : thread_number::taken)
      if (!pthread_equal(taken.thread, pthread_self())) taken.users = 0;
    new (&thread_number::mutex) std::mutex;
    for (ParticipantTable* participant_table = registry_; participant_table != nullptr; participant_table = participant_table->next_) {
      participant_table->start_anew();
      new (&participant_table->mutex_) std::mutex;
    }
    new (&registry_mutex_) std::mutex;
  }

  void start_anew() noexcept {
    forget_lines();
    generation_.fetch_add(1, std::memory_order_relaxed);
    thread_number::forks.fetch_add(1, std::memory_order_relaxed);
    file_.start_anew();
  }

  LockFile file_;
  bool is_one_process_;
  ParticipantLine* lines_;
  std::uint32_t count_;
  std::atomic<std::uint32_t>* used_;
  Identity identity_;
  std::mutex mutex_;
  std::atomic<std::uint32_t> line_of_thread_[thread_number::limit] = {};
  std::atomic<Owned> owned_[lock_numbers] = {};
  std::atomic<std::uint32_t> ended_{0};  // lines that are kept though their threads have ended
  bool (*has_nothing_)(void* context, std::uint32_t line) = nullptr;
  void* context_ = nullptr;
  std::atomic<std::uint32_t> generation_{0};
};

}  // namespace queueduct
