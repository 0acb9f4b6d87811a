// The guard: a page that cannot be had ends a copy, or marks a range, and kills nobody.
#include "segment/fault_guard.hpp"

#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/mapping.hpp"

namespace queueduct::testing {

namespace guard = fault_guard;

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// A file of so many pages, mapped, whose bytes are all 7.
class Mapped {
 public:
  explicit Mapped(std::size_t pages) : bytes_(pages * page), fd_(open_nameless_file(bytes_)) {
    base_ = reinterpret_cast<unsigned char*>(map_file(fd_, bytes_));
    std::memset(base_, 7, bytes_);
  }
  ~Mapped() {
    munmap(base_, bytes_);
    close(fd_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  void cut(std::size_t pages) const { CHECK_EQUAL(ftruncate(fd_, static_cast<off_t>(pages * page)), 0); }
  [[nodiscard]] unsigned char* base() const noexcept { return base_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
  int fd_;
  unsigned char* base_ = nullptr;
};

unsigned char read_byte(const unsigned char* at) { return *static_cast<const volatile unsigned char*>(at); }

TEST(a_touched_page_beyond_the_end_marks_its_range_and_no_other) {
  const Mapped cut(4);
  const Mapped whole(4);
  guard::Range* const first = guard::watch(cut.base(), cut.bytes());
  guard::Range* const second = guard::watch(whole.base(), whole.bytes());
  cut.cut(1);
  CHECK_EQUAL(read_byte(cut.base() + 3 * page), 0);
  CHECK(first->broken.load());
  CHECK(!second->broken.load());
  CHECK_EQUAL(read_byte(whole.base() + 3 * page), 7);
  guard::forget(first);
  guard::forget(second);
}

TEST(a_write_beyond_the_end_marks_its_range) {
  const Mapped cut(2);
  guard::Range* const range = guard::watch(cut.base(), cut.bytes());
  cut.cut(0);
  cut.base()[page] = 1;
  CHECK(range->broken.load());
  guard::forget(range);
}

#ifndef __SANITIZE_THREAD__  // ThreadSanitizer's own handler does not expect a jump out of ours

TEST(a_copy_is_given_up_and_leaves_the_range_to_others) {
  const Mapped cut(4);
  guard::Range* const range = guard::watch(cut.base(), cut.bytes());
  std::vector<unsigned char> to(3 * page);
  CHECK(guard::copy(guard::current_attempt(), to.data(), cut.base() + 100, 2 * page));
  CHECK_EQUAL(to[2 * page - 1], 7);
  cut.cut(2);
  for (int i = 0; i < 3; ++i)
    CHECK(!guard::copy(guard::current_attempt(), to.data(), cut.base() + 100, 2 * page));
  CHECK(!range->broken.load());
  CHECK(*guard::current_attempt() == nullptr);
  CHECK_EQUAL(read_byte(cut.base() + page), 7);  // nothing was put in its place
  CHECK(guard::copy(guard::current_attempt(), to.data(), cut.base() + 100, page));
  guard::forget(range);
}

TEST(each_thread_gives_up_its_own_copy) {
  const Mapped cut(2);
  const Mapped whole(2);
  guard::install();
  cut.cut(1);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (const bool is_cut : {true, false, true, false})
    threads.emplace_back([&, is_cut] {
      std::vector<unsigned char> to(2 * page);
      for (int i = 0; i < 500; ++i)
        wrong +=
            guard::copy(guard::current_attempt(), to.data(), is_cut ? cut.base() : whole.base(), 2 * page) == is_cut;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(wrong.load(), 0);
}

#endif

TEST(there_is_a_line_for_any_number_of_ranges) {
  const Mapped cut(1);
  std::vector<guard::Range*> others;
  for (std::size_t i = 0; i < 20'000; ++i) {
    others.push_back(guard::watch(reinterpret_cast<void*>(page * (i + 1)), 1));  // where nobody can be
    REQUIRE(others.back() != nullptr);
  }
  guard::Range* const last = guard::watch(cut.base(), cut.bytes());
  cut.cut(0);
  CHECK_EQUAL(read_byte(cut.base()), 0);
  CHECK(last->broken.load());
  for (guard::Range* range : others) guard::forget(range);
  const guard::Range* const again = guard::watch(cut.base(), cut.bytes());
  CHECK(again >= guard::first.ranges && again < guard::first.ranges + guard::Table::lines);  // lines are used again
  CHECK(!again->broken.load());
  guard::forget(const_cast<guard::Range*>(again));
  guard::forget(last);
}

TEST(threads_that_watch_at_once_have_lines_of_their_own) {
  constexpr std::size_t each = 3'000;
  std::vector<std::vector<guard::Range*>> found(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&found, t] {
      for (std::size_t i = 0; i < each; ++i)
        found[t].push_back(guard::watch(reinterpret_cast<void*>(page * (1 + t * each + i)), 1));
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < found.size(); ++t)
    for (std::size_t i = 0; i < each; ++i) {
      CHECK_EQUAL(found[t][i]->begin.load(), page * (1 + t * each + i));
      guard::forget(found[t][i]);
    }
}

}  // namespace queueduct::testing
