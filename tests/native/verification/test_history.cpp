// Histories by single steps: what a row says, what a kill leaves of it, and what the stressed queues say they saw.
#include <vector>

#include "support/check.hpp"
#include "verification/history_reader.hpp"
#include "support/segment.hpp"
#include "verification/ring_driver.hpp"

namespace queueduct::testing {

// A worker's memory, as its file has it: zeroed.
struct Rows {
  explicit Rows(std::uint64_t words = 1000) : memory(words), writer(memory.data(), memory.data() + words) {}

  struct Operation {
    std::uint8_t op, outcome, flags;
    std::uint64_t value, ticket, invoke, returned;
  };

  [[nodiscard]] std::vector<Operation> read(std::uint64_t limit = 1000) const {
    std::vector<std::uint8_t> small(3 * limit);
    std::vector<std::uint64_t> large(4 * limit);
    const HistoryColumns columns{small.data(),         small.data() + limit,     small.data() + 2 * limit,
                                 large.data(),         large.data() + limit,     large.data() + 2 * limit,
                                 large.data() + 3 * limit};
    std::vector<Operation> found;
    HistoryReader reader(memory.data(), memory.data() + memory.size(), step);
    while (const std::uint64_t count = reader.read(columns, limit)) append(found, columns, count);
    is_stuck = reader.is_stuck();
    return found;
  }
  static void append(std::vector<Operation>& found, const HistoryColumns& columns, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      found.push_back({columns.op[i], columns.outcome[i], columns.flags[i], columns.value[i], columns.ticket[i],
                       columns.invoke[i], columns.returned[i]});
  }

  static constexpr std::uint64_t step = 2;
  std::vector<std::uint64_t> memory;
  HistoryWriter writer;
  mutable bool is_stuck = false;
};

constexpr std::uint8_t ok = 0, full = 1, empty = 2;
constexpr std::uint8_t put = 0, get = 1;

static void check_operation(const Rows::Operation& is, const Rows::Operation& should_be) {
  CHECK_EQUAL(int{is.op}, int{should_be.op});
  CHECK_EQUAL(int{is.outcome}, int{should_be.outcome});
  CHECK_EQUAL(int{is.flags}, int{should_be.flags});
  CHECK_EQUAL(is.value, should_be.value);
  CHECK_EQUAL(is.ticket, should_be.ticket);
  CHECK_EQUAL(is.invoke, should_be.invoke);
  CHECK_EQUAL(is.returned, should_be.returned);
}

TEST(a_row_says_what_was_done_and_the_marks_around_it_when) {
  Rows rows;
  rows.writer.mark(10);
  rows.writer.begin(HistoryOp::put, 70, 1);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {5, 1});
  rows.writer.mark(20);
  rows.writer.begin(HistoryOp::put, 71, 1);
  rows.writer.end(HistoryOp::put, HistoryOutcome::full, {3, 0, true});
  rows.writer.mark(30);
  rows.writer.mark(40);  // a turn's end, and the next one's begin
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
  rows.writer.end(HistoryOp::get, HistoryOutcome::empty, {Seen::unknown, 0});
  rows.writer.mark(60);
  const auto found = rows.read();
  REQUIRE(found.size() == 3);
  check_operation(found[0], {put, ok, 0, 70, 5, 12, 20});
  check_operation(found[1], {put, full, HistoryColumns::weak, Seen::unknown, 3, 22, 30});
  check_operation(found[2], {get, empty, 0, Seen::unknown, Seen::unknown, 42, 60});
}

TEST(items_of_one_claim_are_operations_with_the_same_times) {
  Rows rows;
  rows.writer.mark(10);
  rows.writer.begin(HistoryOp::put, 70, 3);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {5, 2});  // the third did not fit
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
  rows.writer.claim_value(0, 900);
  rows.writer.claim_value(1, 300);
  rows.writer.claim({8, 2, false, true});
  rows.writer.end(HistoryOp::get, HistoryOutcome::ok, {8, 2, false, true});
  rows.writer.begin(HistoryOp::put, 72, 1);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {7, 1});
  rows.writer.mark(20);
  const auto found = rows.read();
  REQUIRE(found.size() == 5);
  check_operation(found[0], {put, ok, 0, 70, 5, 12, 20});
  check_operation(found[1], {put, ok, 0, 71, 6, 12, 20});
  check_operation(found[2], {get, ok, HistoryColumns::redelivered, 900, 8, 12, 20});
  check_operation(found[3], {get, ok, HistoryColumns::redelivered, 300, 9, 12, 20});
  check_operation(found[4], {put, ok, 0, 72, 7, 12, 20});
}

// Whatever they are: runs that end, that are too long for a word, that would go over into a value that is too long.
TEST(the_values_of_a_get_come_back) {
  const std::uint64_t limit = HistoryRun::limit;
  std::vector<std::vector<std::uint64_t>> gets = {
      {7}, {7, 8, 9}, {7, 8, 3, 4, 4, 5}, {limit - 2, limit - 1, limit, limit + 1}, {~std::uint64_t{7}, 8},
      {0, ~std::uint64_t{0}, 0, 1}, {std::uint64_t{5} << 56 | 1, std::uint64_t{5} << 56 | 2, 3}};
  gets.emplace_back();
  for (std::uint64_t i = 0; i < 2 * HistoryRun::most + 3; ++i) gets.back().push_back(1000 + i);
  Rows rows(2000);
  rows.writer.mark(10);
  std::vector<std::uint64_t> all;
  for (const auto& values : gets) {
    rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
    for (std::uint64_t i = 0; i < values.size(); ++i) rows.writer.claim_value(i, values[i]);
    rows.writer.end(HistoryOp::get, HistoryOutcome::ok, {all.size(), values.size()});
    all.insert(all.end(), values.begin(), values.end());
  }
  rows.writer.mark(20);
  const auto found = rows.read();
  REQUIRE(found.size() == all.size());
  for (std::uint64_t i = 0; i < all.size(); ++i) check_operation(found[i], {get, ok, 0, all[i], i, 12, 20});
  const auto words = static_cast<std::uint64_t>(rows.writer.at() - rows.memory.data());
  CHECK_EQUAL(words, 2 + gets.size() + 1 + 1 + 3 + 5 + 3 + 4 + 5 + 3);  // two marks, and of the last 259 values three
}

TEST(who_is_killed_leaves_a_pending_row_with_what_it_had_claimed) {
  Rows rows;
  rows.writer.mark(8);
  rows.writer.begin(HistoryOp::put, 70, 2);
  auto found = rows.read();
  REQUIRE(found.size() == 2);
  check_operation(found[0], {put, HistoryColumns::pending, 0, 70, Seen::unknown, 10, 0});
  check_operation(found[1], {put, HistoryColumns::pending, 0, 71, Seen::unknown, 10, 0});

  Rows getting;
  getting.writer.mark(8);
  getting.writer.begin(HistoryOp::get, Seen::unknown, 0);
  found = getting.read();
  REQUIRE(found.size() == 1);
  check_operation(found[0], {get, HistoryColumns::pending, 0, Seen::unknown, Seen::unknown, 10, 0});
  getting.writer.claim_value(0, 300);
  check_operation(getting.read()[0], {get, HistoryColumns::pending, 0, Seen::unknown, Seen::unknown, 10, 0});
  getting.writer.claim({8, 1});
  found = getting.read();
  REQUIRE(found.size() == 1);
  check_operation(found[0], {get, HistoryColumns::pending, 0, 300, 8, 10, 0});
}

// What a get wrote of values that it then did not have is no word of the history.
TEST(what_is_left_behind_a_row_is_void) {
  const std::uint64_t looks_like_a_mark = HistoryMark(HistoryMark::Of::between, 99).word();
  for (const bool is_killed : {false, true}) {
    Rows rows;
    rows.writer.mark(8);
    rows.writer.begin(HistoryOp::put, 70, 1);
    rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {0, 1});
    rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
    for (std::uint64_t i = 0; i < 4; ++i) rows.writer.claim_value(i, looks_like_a_mark + 2 * i);
    if (!is_killed) rows.writer.end(HistoryOp::get, HistoryOutcome::empty, {1, 0});
    const auto found = rows.read();
    REQUIRE(found.size() == 2);
    CHECK_EQUAL(found[0].returned, HistoryColumns::over);  // by whatever time
    CHECK_EQUAL(int{found[1].outcome}, int{is_killed ? HistoryColumns::pending : empty});
    CHECK(!rows.is_stuck);
  }
}

TEST(what_is_over_before_the_clock_was_read_is_not_pending) {
  Rows rows;
  rows.writer.mark(8);
  rows.writer.begin(HistoryOp::put, 70, 1);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {5, 1});
  const auto found = rows.read();
  REQUIRE(found.size() == 1);
  check_operation(found[0], {put, ok, 0, 70, 5, 10, HistoryColumns::over});
}

TEST(what_is_over_has_the_time_of_the_next_mark) {
  Rows rows;
  rows.writer.mark(8);
  for (std::uint64_t i = 0; i < 3; ++i) {
    rows.writer.begin(HistoryOp::put, 70 + i, 1);
    rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {i, 1});
  }
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
  rows.writer.lose({4, 1});
  CHECK(rows.writer.has_untimed());
  rows.writer.mark_before_wait(20);  // the get goes on
  CHECK(!rows.writer.has_untimed());
  CHECK_EQUAL(rows.read().size(), 5u);
  rows.writer.end(HistoryOp::get, HistoryOutcome::empty, {7, 0});
  rows.writer.begin(HistoryOp::put, 90, 1);  // as if others had been put elsewhere
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {7, 1});
  rows.writer.mark(30);
  rows.writer.begin(HistoryOp::put, 91, 1);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {8, 1});
  for (const std::uint64_t limit : {1000u, 2u}) {
    const auto found = rows.read(limit);
    REQUIRE(found.size() == 7);
    check_operation(found[0], {put, ok, 0, 70, 0, 10, 20});
    check_operation(found[1], {put, ok, 0, 71, 1, 10, 20});
    check_operation(found[2], {put, ok, 0, 72, 2, 10, 20});
    check_operation(found[3], {get, HistoryColumns::pending, HistoryColumns::lost, Seen::unknown, 4, 10, 0});
    check_operation(found[4], {get, empty, 0, Seen::unknown, 7, 10, 30});
    check_operation(found[5], {put, ok, 0, 90, 7, 10, 30});
    check_operation(found[6], {put, ok, 0, 91, 8, 32, HistoryColumns::over});
  }
}

TEST(a_cancelled_operation_was_never_there) {
  Rows rows;
  rows.writer.begin(HistoryOp::put, 70, 1);
  rows.writer.cancel();
  CHECK_EQUAL(rows.read().size(), 0u);
  rows.writer.begin(HistoryOp::put, 70, 1);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {0, 1});
  CHECK_EQUAL(rows.read().size(), 1u);
}

TEST(a_get_that_loses_what_it_took_leaves_a_row_that_never_returns) {
  Rows rows;
  rows.writer.mark(8);
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
  rows.writer.claim({4, 0});
  check_operation(rows.read()[0], {get, HistoryColumns::pending, 0, Seen::unknown, 4, 10, 0});
  rows.writer.lose({4, 1});
  CHECK_EQUAL(rows.read().size(), 2u);
  rows.writer.claim_value(0, 300);
  rows.writer.end(HistoryOp::get, HistoryOutcome::ok, {6, 1});
  rows.writer.mark(20);
  const auto found = rows.read();
  REQUIRE(found.size() == 2);
  check_operation(found[0], {get, HistoryColumns::pending, HistoryColumns::lost, Seen::unknown, 4, 10, 0});
  check_operation(found[1], {get, ok, 0, 300, 6, 10, 20});
}

TEST(rows_are_read_in_blocks_and_one_that_cannot_be_ends_them) {
  Rows rows;
  for (std::uint64_t i = 0; i < 5; ++i) {
    rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
    rows.writer.claim_value(0, i);
    rows.writer.end(HistoryOp::get, HistoryOutcome::ok, {i, 1});
  }
  CHECK_EQUAL(rows.read(3).size(), 5u);
  CHECK(!rows.is_stuck);
  const std::vector<std::uint64_t> right = rows.memory;
  rows.memory[5] |= HistoryRun::one_more;  // the third get's one value is two
  CHECK_EQUAL(rows.read().size(), 2u);
  CHECK(rows.is_stuck);
  rows.memory = right;
  rows.memory[6] |= 3;  // neither a row nor a mark
  CHECK_EQUAL(rows.read(3).size(), 3u);
  CHECK(rows.is_stuck);
  for (const std::uint64_t last : {std::uint64_t{4}, HistoryRun::too_long}) {  // and there is no more memory
    Rows cut(4);
    cut.memory = {HistoryRow(HistoryOp::get, HistoryOutcome::ok, {0, 1}).with(HistoryRow::over_bit).word(), 1,
                  HistoryRow(HistoryOp::get, HistoryOutcome::ok, {1, 2}).with(HistoryRow::over_bit).word(), last};
    CHECK_EQUAL(cut.read().size(), 1u);
    CHECK(cut.is_stuck);
  }
}

TEST(a_writer_says_when_there_is_no_room_for_another_row) {
  Rows rows(HistoryWriter::around + HistoryWriter::lost_at_once + 20);
  CHECK(rows.writer.has_room(10));
  CHECK(!rows.writer.has_room(11));
  rows.writer.mark(1);
  CHECK(!rows.writer.has_room(10));
}

// The most that one operation can take, with a turn's end and begin behind it: what has_room() promises is enough.
TEST(what_there_was_room_for_fits) {
  constexpr std::uint64_t items = 5;
  const std::uint64_t words = HistoryWriter::around + HistoryWriter::lost_at_once + 2 * items;
  Rows rows(words);
  rows.memory.resize(words);
  REQUIRE(rows.writer.has_room(items));
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0);
  for (std::uint64_t i = 0; i < HistoryWriter::lost_at_once; ++i) rows.writer.lose({i, 1});
  rows.writer.mark_before_wait(1);
  for (std::uint64_t i = 0; i < items; ++i) rows.writer.claim_value(i, ~i);
  rows.writer.end(HistoryOp::get, HistoryOutcome::ok, {0, items});
  for (std::uint64_t i = 0; i < 4; ++i) rows.writer.mark(2 + i);  // after it; a turn's end, begin, and end
  CHECK(rows.writer.at() < rows.memory.data() + words);
  CHECK_EQUAL(rows.read().size(), HistoryWriter::lost_at_once + items);
}

TEST(an_item_of_which_a_word_is_another_ones_is_torn) {
  std::byte item[64];
  stress_item::write(item, sizeof item, 77);
  CHECK_EQUAL(stress_item::read(item, sizeof item), 77u);
  std::byte other[64];
  stress_item::write(other, sizeof other, 78);
  std::memcpy(item + 32, other + 32, 8);
  CHECK(stress_item::is_torn(stress_item::read(item, sizeof item)));
}

struct Nothing {
  static void copied(const std::byte*, const Seen&) noexcept {}
};

struct Stressed {
  Stressed()
      : segment({.capacity = 4, .slot_bytes = 8, .varying = false}),
        attached(segment),
        queue(attached.queue(), attached.ledger()) {}
  Answer put(std::uint64_t value) { return queue.try_put(reinterpret_cast<const std::byte*>(&value), 1, seen); }
  Answer get() {
    std::uint64_t value;
    return queue.try_get(reinterpret_cast<std::byte*>(&value), 1, seen, nothing);
  }
  Segment segment;
  Attachment attached;
  RingDriver<BoundedQueueHandle> queue;
  Seen seen;
  Nothing nothing;
};

TEST(the_tickets_of_a_bounded_queue_are_its_positions) {
  Stressed stressed;
  stressed.segment.reset(6);
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK_EQUAL(stressed.put(i), Answer::done);
    CHECK_EQUAL(stressed.seen.ticket, 6 + i);
  }
  CHECK_EQUAL(stressed.put(4), Answer::refused);
  CHECK_EQUAL(stressed.seen.ticket, 6u);  // it held 6 … 9
  CHECK(!stressed.seen.weak);
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK_EQUAL(stressed.get(), Answer::done);
    CHECK_EQUAL(stressed.seen.ticket, 6 + i);
  }
  CHECK_EQUAL(stressed.get(), Answer::refused);
  CHECK_EQUAL(stressed.seen.ticket, 10u);
  CHECK(!stressed.seen.weak);
}

TEST(full_is_weak_while_somebody_is_reading_the_oldest_item) {
  Stressed stressed;
  for (std::uint64_t i = 0; i < 4; ++i) CHECK_EQUAL(stressed.put(i), Answer::done);
  Attachment slow(stressed.segment);
  Peeked peeked;
  REQUIRE(peek(slow.ring(), slow.ledger(), peeked) == Outcome::done);
  REQUIRE(claim_pop(slow.ring(), slow.ledger(), peeked.span));
  CHECK_EQUAL(stressed.put(4), Answer::refused);
  CHECK_EQUAL(stressed.seen.ticket, 0u);
  CHECK(stressed.seen.weak);  // by now it held three
}

TEST(empty_is_weak_while_somebody_is_writing_the_next_item) {
  Stressed stressed;
  Attachment slow(stressed.segment);
  Span span;
  REQUIRE(claim_push(slow.ring(), slow.ledger(), 1, [](std::uint64_t ready) { return ready; }, span) == Outcome::done);
  CHECK_EQUAL(stressed.put(7), Answer::done);
  CHECK_EQUAL(stressed.get(), Answer::refused);
  CHECK_EQUAL(stressed.seen.ticket, 0u);
  CHECK(stressed.seen.weak);
}

TEST(what_a_dead_consumer_had_is_got_as_redelivered) {
  Stressed stressed;
  CHECK_EQUAL(stressed.put(7), Answer::done);
  Attachment doomed(stressed.segment);
  Peeked peeked;
  REQUIRE(peek(doomed.ring(), doomed.ledger(), peeked) == Outcome::done);
  REQUIRE(claim_pop(doomed.ring(), doomed.ledger(), peeked.span));
  doomed.die();
  CHECK_EQUAL(stressed.get(), Answer::done);
  CHECK_EQUAL(stressed.seen.ticket, 0u);
  CHECK(stressed.seen.redelivered);
}

}  // namespace queueduct::testing
