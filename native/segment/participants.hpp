// The participant table: which participant has which line, and which participants are dead.
//
// Shape      a line for each thread, and for what outlives a call, such as a lease. The line's process holds a lock on
//            the line's byte (segment/lock_file.hpp).
// Roles      a process joins lines for its threads, by one table a handle; any participant asks is_alive().
// Invariants R1  a line is written only under its lock: by its owner, which holds the write lock for life, or, to
//                clear it after its owner's death, under a read lock, which keeps the next owner out and does not
//                count as life.
//            R2  a line gets a new owner only when nothing that its dead owner declared is outstanding, or the new
//                owner inherits it.
//            R3  the kernel drops the lock when the process dies, however it dies, and not before.
//            R4  a thread's process lets go of its line when the thread ends. A call that the thread was in is then a
//                dead participant's. A line that names what other threads still use (keep_while) is kept until nothing
//                is used any more.
// Progress   joining, and the end of a thread, take a mutex of this process; a queue operation takes none.
//
// fork: parent and child share the open file description, and with it the locks. So the child reopens the file in a
// pthread_atfork handler and starts without lines. A fork waits for the mutexes of all calls that open, lock or close a
// lock file (F1). They are taken in this order: the registry's, each participant table's, the thread numbers'.
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "core/thread_slots.hpp"
#include "segment/counters.hpp"
#include "segment/lock_file.hpp"

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
    lost,       // the lock file could not be opened, or other code has closed it
    forked_off  // the queue lives in one process, which is not this one
  };

  // In place of a descriptor: the queue lives in one process, so no other process can hold a line.
  static constexpr int one_process = -2;

  // The table reopens the descriptor's file, and closes the descriptor.
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

  // is_settled(line) returns true if nothing that the line's dead owner declared is outstanding. Called with its lock.
  template <class IsSettled>
  [[nodiscard]] Joined join(IsSettled is_settled) noexcept {
    const std::uint32_t thread = thread_number::mine();
    if (thread == thread_number::limit) return Joined::too_many_threads;
    std::uint32_t line = 0;
    const std::lock_guard lock(mutex_);
    Joined joined = take_line(is_settled, line);
    if (joined == Joined::table_full && take_from_ended(line)) joined = Joined::yes;
    if (joined == Joined::yes) line_of_thread_[thread].store(line + 1, std::memory_order_relaxed);
    return joined;
  }

  // The same for a line that belongs to no thread. let_go(line) ends it; what it names is then a dead participant's.
  template <class IsSettled>
  [[nodiscard]] Joined join_apart(IsSettled is_settled, std::uint32_t& line) noexcept {
    const std::lock_guard lock(mutex_);
    return take_line(is_settled, line);
  }

  // Makes the calling thread's line one that belongs to no thread, as after join_apart(): it keeps what it names while
  // the thread uses the queue with another line. Returns false if the thread has none.
  [[nodiscard]] bool set_apart(std::uint32_t& line) noexcept {
    const std::uint32_t thread = thread_number::mine();
    if (thread == thread_number::limit) return false;
    // relaxed: only the thread itself uses its entry as long as it lives
    line = line_of_thread_[thread].exchange(0, std::memory_order_relaxed) - 1;
    return line != no_line;
  }
  // Gives such a line, which names nothing any more, back to the thread, or lets it go if the thread has another.
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

  // Lets go of the calling thread's line, if it has one. The thread joins again when it needs a line.
  void leave_line() noexcept {
    if (const std::uint32_t thread = thread_number::mine(); thread != thread_number::limit) end_thread(thread);
  }

  // Clears a dead owner's line once nothing of it is outstanding, so that later scans are short.
  template <class IsSettled>
  void clear_settled(std::uint32_t line, IsSettled is_settled) noexcept {
    const std::lock_guard lock(mutex_);
    if (!is_lost() && read_lock_if_settled(line, is_settled)) lock_byte_of(line, F_UNLCK);
  }

  // The same for all dead owners' lines with an intent, with one scan: recover(has_died) is called with their locks
  // held, and leaves nothing of them outstanding.
  template <class Recover>
  void clear_all_settled(Recover recover) noexcept {
    std::uint64_t dead[participants_limit / 64] = {};
    const auto has_died = [&dead](std::uint32_t line) {
      return line < participants_limit && (dead[line / 64] >> line % 64 & 1);
    };
    bool is_any = false;
    const std::lock_guard lock(mutex_);
    if (is_lost()) return;
    for (std::uint32_t line = 0, end = used(); line < end; ++line) {
      const std::atomic<std::uint64_t>& intent = lines_[line].intent;
      if (intent.load(std::memory_order_acquire) == 0 || is_owned(line) || !lock_byte_of(line, F_RDLCK)) continue;
      if (intent.load(std::memory_order_acquire) == 0) {  // another recoverer was faster
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
      clear_intent(line);
      lock_byte_of(line, F_UNLCK);
    }
  }

  // A full table is only believed after some attempts: a thread lets go of its line in its last moments, and the thread
  // that waited for its end may be here before.
  [[nodiscard]] bool is_full_for_good(int attempt) const noexcept {
    return attempt >= attempts_before_full && is_full_of_the_living();
  }
  [[nodiscard]] bool is_full_of_the_living() const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i)
      if (!is_alive(i)) return false;
    return true;
  }

  // Joins again while that may help: another participant may hold a dead one's line for a moment, to check it.
  template <class Join>
  [[nodiscard]] Joined patiently(Join join) const noexcept {
    for (int attempt = 0;; ++attempt) {
      const Joined joined = join();
      if (joined != Joined::table_full || attempt == join_attempts || is_full_for_good(attempt)) return joined;
      pause_between_attempts();
    }
  }
  [[nodiscard]] std::uint32_t count_alive() const noexcept {
    std::uint32_t alive = 0;
    for (std::uint32_t line = 0; line < used(); ++line) alive += is_alive(line);
    return alive;
  }

  // Lines that were ever used. The shared word is only believed within the table.
  [[nodiscard]] std::uint32_t used() const noexcept {
    const std::uint32_t used = used_->load(std::memory_order_acquire);
    return used < count_ ? used : count_;
  }

  [[nodiscard]] ParticipantLine* lines() const noexcept { return lines_; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  // Locks beyond the participants', for parts of a queue that live as long as a process holds them.
  // Returns false if a process has it, perhaps this one.
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

  // Lines may name what their threads leave to other threads. has_nothing(context, line) is asked when the thread has
  // ended, and by let_go_of_ended(); it returns true once nothing names the line. Call it before any thread joins.
  void keep_while(bool (*has_nothing)(void* context, std::uint32_t line), void* context) noexcept {
    has_nothing_ = has_nothing;
    context_ = context;
  }
  // After the release of something that a line may have been kept for. keeps R4
  void let_go_of_ended() noexcept {
    if (ended_.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    const std::lock_guard lock(mutex_);
    for (std::uint32_t line = 0; line < count_ && ended_.load(std::memory_order_relaxed) != 0; ++line)
      if (is_of_an_ended_thread(line) && has_nothing_(context_, line)) {
        ended_.fetch_sub(1, std::memory_order_relaxed);
        disown(line);
      }
  }

  // Counts forks: lines joined before a fork are the parent's.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  // The segment's file; -1 if there is none, or none any more.
  [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
  [[nodiscard]] const LockFile& file() const noexcept { return file_; }
  [[nodiscard]] int open_error() const noexcept { return file_.error(); }

  // Returns true if other code closed the descriptor, or it could never be opened. Held locks stay (F2), new ones fail.
  [[nodiscard]] bool is_lost() const noexcept { return !is_one_process_ && file_.descriptor() < 0; }
  // The same without a system call, if is_alive() or a lock has noticed it.
  [[nodiscard]] bool was_lost() const noexcept { return !is_one_process_ && file_.number() < 0; }
  [[nodiscard]] bool is_one_process() const noexcept { return is_one_process_; }

  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    QUEUEDUCT_FAILPOINT("participants.before_leave");
    file_.close();  // drops every lock of this description
    QUEUEDUCT_FAILPOINT("participants.left");
    forget_lines();
  }

 private:
#ifdef QUEUEDUCT_FAILPOINTS
  static constexpr int attempts_before_full = 2;  // every case of a kill campaign ends with a full table
#else
  static constexpr int attempts_before_full = 50;  // 200 us each
#endif
  static constexpr int join_attempts = 500;
  static constexpr std::uint32_t no_line = ~0u;

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

  // A lock that outlives its descriptor (F2) can only be dropped with all the others: it stays ours.
  void disown(std::uint32_t number) noexcept {
    if (is_lost()) return;
    QUEUEDUCT_FAILPOINT("participants.before_let_go");
    owned_[number].store(Owned::no, std::memory_order_relaxed);
    lock_byte_of(number, F_UNLCK);
    QUEUEDUCT_FAILPOINT("participants.let_go");
  }

  template <class IsSettled>
  [[nodiscard]] Joined take_line(IsSettled is_settled, std::uint32_t& line) noexcept {
    if (is_one_process_ && generation() != 0) return Joined::forked_off;
    if (is_lost()) return Joined::lost;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!read_lock_if_settled(i, is_settled)) continue;
      if (!lock_byte_of(i, F_WRLCK)) {  // another participant checks it, too
        lock_byte_of(i, F_UNLCK);
        continue;
      }
      QUEUEDUCT_FAILPOINT("participants.locked");
      write_identity(lines_[i]);
      QUEUEDUCT_FAILPOINT("participants.identified");
      raise_used(i + 1);
      QUEUEDUCT_FAILPOINT("participants.joined");
      owned_[i].store(Owned::yes, std::memory_order_release);
      line = i;
      return Joined::yes;
    }
    return is_lost() ? Joined::lost : Joined::table_full;
  }

  // Takes the line of a thread of this process that has ended; it is kept for what it names.
  [[nodiscard]] bool take_from_ended(std::uint32_t& line) noexcept {
    for (line = 0; line < count_; ++line) {
      if (!is_of_an_ended_thread(line)) continue;
      ended_.fetch_sub(1, std::memory_order_relaxed);
      // for people who read the table: to other processes the line is still ours, and of the same tenure
      lines_[line].thread.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
      owned_[line].store(Owned::yes, std::memory_order_relaxed);
      return true;
    }
    return false;
  }

  // keeps R4
  void end_thread(std::uint32_t thread) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint32_t line = line_of_thread_[thread].exchange(0, std::memory_order_relaxed) - 1;
    if (line == no_line) return;
    if (has_nothing_ == nullptr || has_nothing_(context_, line)) return disown(line);
    owned_[line].store(Owned::by_an_ended_thread, std::memory_order_relaxed);
    ended_.fetch_add(1, std::memory_order_relaxed);
  }

  // Takes the line's read lock, and keeps it only if its last owner left nothing outstanding. keeps R2
  template <class IsSettled>
  [[nodiscard]] bool read_lock_if_settled(std::uint32_t i, IsSettled is_settled) noexcept {
    if (is_owned(i) || !lock_byte_of(i, F_RDLCK)) return false;
    QUEUEDUCT_FAILPOINT("participants.read_locked");
    if (lines_[i].intent.load(std::memory_order_acquire) != 0) {
      if (!is_settled(i)) {
        lock_byte_of(i, F_UNLCK);
        return false;
      }
      clear_intent(i);
    }
    return true;
  }

  void clear_intent(std::uint32_t line) noexcept {
    QUEUEDUCT_FAILPOINT("participants.before_clear");
    lines_[line].intent.store(0, std::memory_order_release);  // keeps R1
    QUEUEDUCT_FAILPOINT("participants.cleared");
  }

  void write_identity(ParticipantLine& line) noexcept {
    // release: a participant that sees the new tenure sees all that the last owner did
    line.tenure.fetch_add(1, std::memory_order_release);
    line.pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
    line.thread.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
    line.start_ticks.store(identity_.start_ticks, std::memory_order_relaxed);
    for (int i : {0, 1}) line.boot_id[i].store(identity_.boot_id[i], std::memory_order_relaxed);
    line.guarded.store(0, std::memory_order_relaxed);  // its last owner may have died with a read guard
    line.counters.last_use_ns.store(realtime_ns(), std::memory_order_relaxed);
  }

  void raise_used(std::uint32_t least) noexcept {
    std::uint32_t used = used_->load(std::memory_order_relaxed);
    // release: a claim by this line comes later, and a scan that sees the claim must reach this line
    while (used < least)
      if (used_->compare_exchange_weak(used, least, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  }

  void forget_lines() noexcept {
    for (auto& line : line_of_thread_) line.store(0, std::memory_order_relaxed);
    ended_.store(0, std::memory_order_relaxed);
    for (auto& owned : owned_) owned.store(Owned::no, std::memory_order_relaxed);
  }

  // All participant tables of this process, in every extension module (core/thread_slots.hpp), for the fork handlers.
  [[gnu::visibility("default")]] static inline std::mutex registry_mutex_;
  [[gnu::visibility("default")]] static inline ParticipantTable* registry_ = nullptr;
  [[gnu::visibility("default")]] static inline bool has_fork_handlers_ = false;
  ParticipantTable* next_ = nullptr;

  template <class Visit>
  static void for_each_table(Visit visit) noexcept {
    for (ParticipantTable* table = registry_; table != nullptr; table = table->next_) visit(*table);
  }

  void enlist(int fd) noexcept {
    const std::lock_guard lock(registry_mutex_);
    if (!has_fork_handlers_)
      has_fork_handlers_ = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    thread_number::at_end.store(end_of_a_thread, std::memory_order_release);
    if (fd >= 0) (void)file_.open(fd);  // F1
    next_ = registry_;
    registry_ = this;
  }

  void delist() noexcept {
    const std::lock_guard lock(registry_mutex_);
    ParticipantTable** at = &registry_;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
  }

  static void end_of_a_thread(std::uint32_t thread) noexcept {
    const std::lock_guard lock(registry_mutex_);
    for_each_table([thread](ParticipantTable& table) { table.end_thread(thread); });
  }

  static void before_fork() noexcept {
    registry_mutex_.lock();
    for_each_table([](ParticipantTable& table) { table.mutex_.lock(); });
    thread_number::mutex.lock();
  }

  static void after_fork_in_parent() noexcept {
    thread_number::mutex.unlock();
    for_each_table([](ParticipantTable& table) { table.mutex_.unlock(); });
    registry_mutex_.unlock();
  }

  // Async-signal-safe calls only: other threads of the parent may have held any lock of the C library.
  static void after_fork_in_child() noexcept {
    for (thread_number::Taken& taken : thread_number::taken)
      if (!pthread_equal(taken.thread, pthread_self())) taken.users = 0;
    new (&thread_number::mutex) std::mutex;
    for_each_table([](ParticipantTable& table) {
      table.start_anew();
      new (&table.mutex_) std::mutex;
    });
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
  std::atomic<std::uint32_t> ended_{0};  // lines that are kept after their threads have ended
  bool (*has_nothing_)(void* context, std::uint32_t line) = nullptr;
  void* context_ = nullptr;
  std::atomic<std::uint32_t> generation_{0};
};

}  // namespace queueduct
