// Histories by single steps: what a row says, what a kill leaves of it, and what the stressed queues say they saw.
#include <vector>

#include "check.hpp"
#include "segment.hpp"
#include "stress_bounded.hpp"

namespace penstock::testing {

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
    const std::uint64_t* at = memory.data();
    const std::uint64_t count = read_history(at, memory.data() + memory.size(), columns, limit);
    std::vector<Operation> found;
    for (std::uint64_t i = 0; i < count; ++i)
      found.push_back({columns.op[i], columns.outcome[i], columns.flags[i], columns.value[i], columns.ticket[i],
                       columns.invoke[i], columns.returned[i]});
    return found;
  }

  std::vector<std::uint64_t> memory;
  HistoryWriter writer;
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

TEST(a_row_says_what_was_done_and_when) {
  Rows rows;
  rows.writer.begin(HistoryOp::put, 70, 1, 10);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {5, 1});
  rows.writer.time(20);
  rows.writer.begin(HistoryOp::put, 71, 1, 30);
  rows.writer.end(HistoryOp::put, HistoryOutcome::full, {3, 0, true});
  rows.writer.time(40);
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0, 50);
  rows.writer.end(HistoryOp::get, HistoryOutcome::empty, {Seen::unknown, 0});
  rows.writer.time(60);
  const auto found = rows.read();
  REQUIRE(found.size() == 3);
  check_operation(found[0], {put, ok, 0, 70, 5, 10, 20});
  check_operation(found[1], {put, full, HistoryColumns::weak, Seen::unknown, 3, 30, 40});
  check_operation(found[2], {get, empty, 0, Seen::unknown, Seen::unknown, 50, 60});
}

TEST(items_of_one_claim_are_operations_with_the_same_times) {
  Rows rows;
  rows.writer.begin(HistoryOp::put, 70, 3, 10);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {5, 2});  // the third did not fit
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0, 11);
  rows.writer.claim_value(0, 900);
  rows.writer.claim_value(1, 300);
  rows.writer.claim({8, 2, false, true});
  rows.writer.end(HistoryOp::get, HistoryOutcome::ok, {8, 2, false, true});
  rows.writer.time(20);
  const auto found = rows.read();
  REQUIRE(found.size() == 4);
  check_operation(found[0], {put, ok, 0, 70, 5, 10, 20});
  check_operation(found[1], {put, ok, 0, 71, 6, 10, 20});
  check_operation(found[2], {get, ok, HistoryColumns::redelivered, 900, 8, 11, 20});
  check_operation(found[3], {get, ok, HistoryColumns::redelivered, 300, 9, 11, 20});
}

TEST(who_is_killed_leaves_a_pending_row_with_what_it_had_claimed) {
  Rows rows;
  rows.writer.begin(HistoryOp::put, 70, 2, 10);
  auto found = rows.read();
  REQUIRE(found.size() == 2);
  check_operation(found[0], {put, HistoryColumns::pending, 0, 70, Seen::unknown, 10, 0});
  check_operation(found[1], {put, HistoryColumns::pending, 0, 71, Seen::unknown, 10, 0});

  Rows getting;
  getting.writer.begin(HistoryOp::get, Seen::unknown, 0, 10);
  found = getting.read();
  REQUIRE(found.size() == 1);
  check_operation(found[0], {get, HistoryColumns::pending, 0, Seen::unknown, Seen::unknown, 10, 0});
  getting.writer.claim_value(0, 300);
  getting.writer.claim({8, 1});
  found = getting.read();
  REQUIRE(found.size() == 1);
  check_operation(found[0], {get, HistoryColumns::pending, 0, 300, 8, 10, 0});
}

TEST(who_is_killed_with_a_refusal_in_its_hands_has_no_ticket) {
  for (const HistoryOp op : {HistoryOp::put, HistoryOp::get}) {
    Rows rows;
    rows.writer.begin(op, 70, 2, 10);
    rows.writer.end(op, op == HistoryOp::put ? HistoryOutcome::full : HistoryOutcome::empty, {5, 0});
    rows.memory[1] = 0;  // killed just before it was over
    const auto found = rows.read();
    REQUIRE(found.size() == 1);
    const std::uint64_t value = op == HistoryOp::put ? 70 : Seen::unknown;
    check_operation(found[0], {static_cast<std::uint8_t>(op), HistoryColumns::pending, 0, value, Seen::unknown, 10, 0});
  }
}

TEST(what_is_over_before_the_clock_was_read_is_not_pending) {
  Rows rows;
  rows.writer.begin(HistoryOp::put, 70, 1, 10);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {5, 1});
  const auto found = rows.read();
  REQUIRE(found.size() == 1);
  check_operation(found[0], {put, ok, 0, 70, 5, 10, HistoryRow::over});
}

TEST(what_is_over_has_the_time_of_the_next_row_that_has_one) {
  Rows rows;
  for (std::uint64_t i = 0; i < 3; ++i) {
    rows.writer.begin(HistoryOp::put, 70 + i, 1, 10);
    rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {i, 1});
  }
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0, 10);
  rows.writer.lose({4, 1});
  rows.writer.time(20);  // before a wait: the get goes on
  CHECK(!rows.writer.has_untimed());
  rows.writer.end(HistoryOp::get, HistoryOutcome::empty, {7, 0});
  rows.writer.begin(HistoryOp::put, 73, 1, 10);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {7, 1});
  rows.writer.time(30);
  rows.writer.begin(HistoryOp::put, 74, 1, 31);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {8, 1});
  for (const std::uint64_t limit : {1000u, 2u}) {
    const auto found = rows.read(limit);
    REQUIRE(found.size() == (limit == 2 ? 2 : 7));
    const std::uint64_t times[] = {20, 20, 20, 0, 30, 30, HistoryRow::over};
    for (std::uint64_t i = 0; i < found.size(); ++i) CHECK_EQUAL(found[i].returned, times[i]);
  }
}

TEST(a_cancelled_operation_was_never_there) {
  Rows rows;
  rows.writer.begin(HistoryOp::put, 70, 1, 10);
  rows.writer.cancel();
  CHECK_EQUAL(rows.read().size(), 0u);
  rows.writer.begin(HistoryOp::put, 70, 1, 11);
  rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {0, 1});
  CHECK_EQUAL(rows.read().size(), 1u);
}

TEST(a_get_that_loses_what_it_took_leaves_a_row_that_never_returns) {
  Rows rows;
  rows.writer.begin(HistoryOp::get, Seen::unknown, 0, 10);
  rows.writer.lose({4, 1});
  rows.writer.claim_value(0, 300);
  rows.writer.end(HistoryOp::get, HistoryOutcome::ok, {6, 1});
  rows.writer.time(20);
  const auto found = rows.read();
  REQUIRE(found.size() == 2);
  check_operation(found[0], {get, HistoryColumns::pending, HistoryColumns::lost, Seen::unknown, 4, 10, 0});
  check_operation(found[1], {get, ok, 0, 300, 6, 10, 20});
}

TEST(rows_are_read_in_blocks_and_one_that_cannot_be_ends_them) {
  Rows rows;
  for (std::uint64_t i = 0; i < 5; ++i) {
    rows.writer.begin(HistoryOp::put, i, 1, 10 + i);
    rows.writer.end(HistoryOp::put, HistoryOutcome::ok, {i, 1});
  }
  CHECK_EQUAL(rows.read(3).size(), 3u);
  rows.memory[4] = std::uint64_t{1} << 63 | 1;  // a get of more items than there is memory
  CHECK_EQUAL(rows.read().size(), 0u);
}

TEST(a_writer_says_when_there_is_no_room_for_another_row) {
  Rows rows(HistoryRow::words * (HistoryWriter::lost_at_once + 1) + 10);
  CHECK(rows.writer.has_room(10));
  CHECK(!rows.writer.has_room(11));
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
      : segment({.capacity = 4, .slot_bytes = 8, .varying = false}), attached(segment), queue(attached.queue(), attached.ledger()) {}
  Answer put(std::uint64_t value) { return queue.try_put(reinterpret_cast<const std::byte*>(&value), 1, seen); }
  Answer get() {
    std::uint64_t value;
    return queue.try_get(reinterpret_cast<std::byte*>(&value), 1, seen, nothing);
  }
  Segment segment;
  Attachment attached;
  StressedBounded queue;
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

}  // namespace penstock::testing

int main(int argc, char** argv) { return penstock::testing::run_tests(argc, argv); }
