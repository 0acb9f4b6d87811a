// The table of producers by itself: names, sequences, who owns a line. No queue is involved.
#include <string>
#include <thread>

#include "support/check.hpp"
#include "support/segment.hpp"

namespace queueduct::testing {

// Somebody who uses the table, as another process would.
struct User {
  explicit User(const Segment& segment)
      : attached(segment),
        me(owner::word_of(attached.queue().participant_table(), attached.ledger().number())) {}

  Producers::Taken take(const std::string& name, std::uint64_t sequence, std::uint64_t total) {
    ProducerName wanted;
    REQUIRE(ProducerName::of(name.data(), name.size(), wanted));
    return producers.take(wanted, me, sequence, total, line);
  }
  Producers::Taken forget(const std::string& name) {
    ProducerName wanted;
    REQUIRE(ProducerName::of(name.data(), name.size(), wanted));
    return producers.forget(wanted, me);
  }

  Attachment attached;
  Producers& producers = attached.queue().producers();
  std::uint64_t me;
  ProducerLine* line = nullptr;
};

static const Shape with_two{.producers = 2};
using Taken = Producers::Taken;

TEST(a_name_has_1_to_64_bytes_and_no_zero) {
  ProducerName name;
  CHECK(!ProducerName::of("", 0, name));
  CHECK(!ProducerName::of("a\0b", 3, name));
  CHECK(!ProducerName::of(std::string(65, 'x').data(), 65, name));
  CHECK(ProducerName::of(std::string(64, 'x').data(), 64, name));
  CHECK_EQUAL(name.bytes(), 64u);
  CHECK(ProducerName::of("x", 1, name));
  CHECK_EQUAL(std::string(name.text(), name.bytes()), "x");
}

TEST(a_progress_word_holds_its_limits) {
  const Progress most{true, Phase::claimed, 1, Progress::count_limit, Progress::count_limit};
  const Progress back = Progress::unpack(most.packed());
  CHECK(back.is_used && back.phase == Phase::claimed);
  CHECK_EQUAL(back.which, 1u);
  CHECK_EQUAL(back.total, Progress::count_limit);
  CHECK_EQUAL(back.done, Progress::count_limit);
  CHECK_EQUAL(Progress{}.packed(), 0u);
}

TEST(a_name_is_made_once_and_found_again) {
  Segment segment(with_two);
  User user(segment);
  CHECK_EQUAL(user.take("first", 7, 3), Taken::yes);
  ProducerLine* const line = user.line;
  Producers::leave(*line);
  CHECK_EQUAL(user.take("second", 1, 1), Taken::yes);
  CHECK(user.line != line);
  Producers::leave(*user.line);
  CHECK_EQUAL(user.take("first", 7, 3), Taken::yes);
  CHECK(user.line == line);
}

TEST(a_full_table_has_room_again_when_a_name_is_forgotten) {
  Segment segment(with_two);
  User user(segment);
  for (const char* name : {"a", "b"}) {
    CHECK_EQUAL(user.take(name, 0, 1), Taken::yes);
    Producers::leave(*user.line);
  }
  CHECK_EQUAL(user.take("c", 0, 1), Taken::table_full);
  CHECK_EQUAL(user.forget("nobody"), Taken::unknown);
  CHECK_EQUAL(user.forget("a"), Taken::yes);
  CHECK_EQUAL(user.forget("a"), Taken::unknown);
  CHECK_EQUAL(user.take("c", 0, 1), Taken::yes);
  CHECK_EQUAL(segment.producers()->registrar.load(), 0u);
}

TEST(without_a_table_every_name_is_one_too_many) {
  Segment segment({});
  User user(segment);
  CHECK_EQUAL(user.take("a", 0, 1), Taken::table_full);
  CHECK_EQUAL(user.forget("a"), Taken::unknown);
}

TEST(a_line_in_use_by_the_living_is_left_to_them) {
  Segment segment(with_two);
  User user(segment);
  User other(segment);
  CHECK_EQUAL(user.take("a", 0, 1), Taken::yes);
  CHECK_EQUAL(other.take("a", 0, 1), Taken::in_use);
  CHECK_EQUAL(user.take("a", 0, 1), Taken::in_use);  // also to ourselves
  CHECK_EQUAL(other.forget("a"), Taken::in_use);
  Producers::leave(*user.line);
  CHECK_EQUAL(other.take("a", 0, 1), Taken::yes);
}

TEST(a_line_of_the_dead_can_be_taken_even_if_their_number_has_a_new_owner) {
  Segment segment(with_two);
  std::uint64_t dead = 0;
  {
    User user(segment);
    CHECK_EQUAL(user.take("a", 0, 1), Taken::yes);
    dead = user.me;
  }  // gone without leave()
  User next(segment);  // has the same line of the participant table
  CHECK_EQUAL(next.me & 0xffff'ffff, dead & 0xffff'ffff);
  CHECK(next.me != dead);
  CHECK_EQUAL(next.take("a", 0, 1), Taken::yes);
}

TEST(a_registrar_that_died_is_succeeded) {
  Segment segment(with_two);
  {
    User user(segment);
    segment.producers()->registrar.store(user.me);
  }
  User next(segment);
  CHECK_EQUAL(next.take("a", 0, 1), Taken::yes);
  CHECK_EQUAL(segment.producers()->registrar.load(), 0u);
}

TEST(sequences_only_rise_and_each_is_finished_before_the_next) {
  Segment segment(with_two);
  User user(segment);
  CHECK_EQUAL(user.take("a", 5, 3), Taken::yes);
  ProducerLine& line = *user.line;
  CHECK_EQUAL(begin(line, 5, 3), Begun::yes);
  CHECK_EQUAL(begin(line, 4, 9), Begun::complete);
  CHECK_EQUAL(begin(line, 5, 4), Begun::other_total);
  CHECK_EQUAL(begin(line, 6, 1), Begun::unfinished);
  intend(line, 100, {2, 2});
  CHECK(!progress_of(line).is_complete());
  confirm(line);
  complete(line, 2);
  CHECK_EQUAL(progress_of(line).done, 2u);
  CHECK_EQUAL(begin(line, 6, 1), Begun::unfinished);
  complete(line, 1);
  CHECK_EQUAL(begin(line, 5, 3), Begun::complete);
  CHECK_EQUAL(begin(line, 5, 2), Begun::other_total);
  CHECK_EQUAL(begin(line, 9, 0), Begun::complete);
  CHECK_EQUAL(begin(line, 8, 2), Begun::complete);
  CHECK_EQUAL(begin(line, ~std::uint64_t{0}, 2), Begun::yes);
  CHECK_EQUAL(progress_of(line).done, 0u);
}

TEST(a_look_shows_what_is_there) {
  Segment segment(with_two);
  User user(segment);
  CHECK_EQUAL(user.take("täglich", 5, 3), Taken::yes);
  complete(*user.line, 2);
  Producers::Listed listed;
  CHECK(user.producers.snapshot(0, listed));
  CHECK_EQUAL(std::string(listed.name.text(), listed.name.bytes()), "täglich");
  CHECK_EQUAL(listed.sequence, 5u);
  CHECK_EQUAL(listed.total, 3u);
  CHECK_EQUAL(listed.done, 2u);
  CHECK(!user.producers.snapshot(1, listed));
}

TEST(many_who_make_the_same_names_make_each_once) {
  Segment segment({.producers = 8});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      User user(segment);
      for (int round = 0; round < 200; ++round) {
        const std::string name = "producer " + std::to_string(round % 8);
        const Taken taken = user.take(name, 0, 1);
        if (taken == Taken::yes) {
          if (round % 16 >= 8 && round < 150) store_progress(*user.line, {}, "", "");  // as forget() does
          Producers::leave(*user.line);
        } else if (taken != Taken::in_use && taken != Taken::table_busy) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(wrong.load(), 0);
  User user(segment);
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < 8; ++i) {
    Producers::Listed listed;
    if (!user.producers.snapshot(i, listed)) continue;
    names.emplace_back(listed.name.text(), listed.name.bytes());
    for (std::size_t j = 0; j + 1 < names.size(); ++j) CHECK(names[j] != names.back());
  }
}

}  // namespace queueduct::testing
