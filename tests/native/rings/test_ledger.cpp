// Who claims what, and who is dead: the ledger's words, the participant table's lines and the kernel's locks.
#include <sys/wait.h>

#include <memory>
#include <thread>

#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

TEST(an_intent_survives_packing) {
  for (const Side side : {Side::none, Side::push, Side::pop}) {
    for (const std::uint64_t position : {std::uint64_t{0}, std::uint64_t{77}, Intent::position_mask}) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, Intent::count_limit}) {
        const Intent back = Intent::unpack(Intent{side, position, count}.packed());
        CHECK_EQUAL(back.side, side);
        CHECK_EQUAL(back.position, position);
        CHECK_EQUAL(back.count, count);
      }
    }
  }
  CHECK_EQUAL(Intent{}.packed(), 0u);
}

TEST(an_intent_covers_its_positions_and_no_others_even_where_40_bits_wrap) {
  const std::uint64_t near_wrap = (std::uint64_t{5} << Intent::position_bits) - 2;
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1000}, near_wrap}) {
    const Intent intent = Intent::unpack(Intent{Side::push, first, 4}.packed());
    for (std::uint64_t i = 0; i < 4; ++i) {
      CHECK(intent.covers(Side::push, first + i));
      CHECK(!intent.covers(Side::pop, first + i));
    }
    CHECK(!intent.covers(Side::push, first + 4));
    CHECK(!intent.covers(Side::push, first - 1));
  }
}

TEST(a_claim_is_declared_until_it_is_given_on) {
  Segment segment({});
  Attachment attached(segment);
  Span span;
  REQUIRE(claim_slots(attached, 3, span) == Outcome::done);
  const Intent pushing = Intent::unpack(segment.lines()[0].intent.load());
  CHECK(pushing.covers(Side::push, 0) && pushing.covers(Side::push, 2) && !pushing.covers(Side::push, 3));
  attached.ledger().clear();
  CHECK_EQUAL(segment.lines()[0].intent.load(), 0u);
}

TEST(a_claim_that_lost_declares_nothing) {
  Segment segment({});
  Attachment attached(segment);
  REQUIRE(put_number(attached, 1) == Outcome::done);
  Peeked peeked;
  REQUIRE(peek(attached.ring(), attached.ledger(), peeked) == Outcome::done);
  std::uint64_t number = 0;
  REQUIRE(get_number(attached, number) == Outcome::done);
  CHECK(!claim_pop(attached.ring(), attached.ledger(), peeked.span));
  CHECK_EQUAL(segment.lines()[0].intent.load(), 0u);
}

TEST(each_thread_has_a_line_and_finds_it_again) {
  Segment segment({});
  Attachment attached(segment);
  const std::uint32_t mine = attached.ledger().number();
  std::uint32_t other = mine;
  std::thread([&] { other = attached.ledger().number(); }).join();
  CHECK(other != mine);
  CHECK_EQUAL(attached.ledger().number(), mine);
  std::uint32_t third = mine;
  std::thread([&] { third = attached.ledger().number(); }).join();
  CHECK_EQUAL(third, other);  // the line of a thread that has ended goes to the next
  CHECK_EQUAL(attached.queue().count_alive(), 1u);  // it is nobody's until then
}

TEST(a_thread_that_ends_in_the_midst_of_a_claim_is_dead) {
  Segment segment({});
  Attachment attached(segment);
  std::thread([&] {
    Span span;
    REQUIRE(claim_one(attached, span) == Outcome::done);
  }).join();
  CHECK(attached.queue().recovery().run().changed);
  CHECK_EQUAL(attached.ring().generation_of(0).load(), generation::tombstone(0));
}

TEST(a_process_without_its_descriptor_keeps_its_lines_and_gets_no_more) {
  Segment segment({});
  Attachment attached(segment);
  Attachment observer(segment);
  const std::uint32_t line = attached.ledger().number();
  const int number = attached.lock_fd();
  close(number);
  CHECK_EQUAL(dup2(segment.fd(), number), number);  // the same file, and none of ours
  CHECK(observer.queue().participant_table().is_alive(line));
  CHECK(attached.queue().participant_table().is_lost());
  Participant apart;
  CHECK(attached.queue().join_apart(apart) == ParticipantTable::Joined::lost);
  CHECK(attached.queue().participant_table().is_alive(line + 1));  // it cannot say, and says so to be safe
  attached.die();
  CHECK(!observer.queue().participant_table().is_alive(line));
  CHECK(fcntl(number, F_GETFD) >= 0);  // a stranger's is not closed
  close(number);
}

TEST(a_line_is_alive_to_everybody_until_its_owner_is_gone) {
  Segment segment({});
  Attachment one(segment);
  Attachment two(segment);
  const std::uint32_t line = two.ledger().number();
  (void)one.ledger();
  CHECK(one.queue().participant_table().is_alive(line));
  CHECK(two.queue().participant_table().is_alive(line));
  two.die();
  CHECK(!one.queue().participant_table().is_alive(line));
  CHECK_EQUAL(one.queue().count_alive(), 1u);
}

TEST(a_killed_process_is_dead_at_once_even_as_a_zombie) {
  Segment segment({});
  Attachment parent(segment);
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Attachment attached(segment);
    const std::uint32_t line = attached.ledger().number();
    if (write(ready[1], &line, sizeof line) != sizeof line) _exit(1);
    for (;;) pause();
  }
  std::uint32_t line = 0;
  REQUIRE(read(ready[0], &line, sizeof line) == sizeof line);
  CHECK(parent.queue().participant_table().is_alive(line));
  kill(child, SIGKILL);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);  // dead, not reaped
  CHECK(!parent.queue().participant_table().is_alive(line));
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(a_forked_child_starts_without_lines_and_its_end_leaves_its_parents_alive) {
  Segment segment({});
  Attachment parent(segment);
  Attachment observer(segment);
  const std::uint32_t line = parent.ledger().number();
  const pid_t child = fork();
  if (child == 0) {
    Participant ledger;
    if (parent.queue().find_participant(ledger)) _exit(1);
    if (parent.ledger().number() == line) _exit(2);  // joined anew, next to the parent's
    if (!parent.queue().participant_table().is_alive(line)) _exit(3);
    if (put_number(parent, 7) != Outcome::done) _exit(4);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  CHECK(observer.queue().participant_table().is_alive(line));
  std::uint64_t number = 0;
  CHECK_EQUAL(get_number(parent, number), Outcome::done);
  CHECK_EQUAL(number, 7u);
}

TEST(lines_of_the_dead_are_used_again_so_joining_never_runs_out) {
  Segment segment({.participants = 2});
  Attachment observer(segment);
  (void)observer.ledger();
  for (int i = 0; i < 50; ++i) {
    Attachment passing(segment);
    CHECK_EQUAL(passing.ledger().number(), 1u);
    CHECK_EQUAL(put_number(passing, 1), Outcome::done);
    std::uint64_t number = 0;
    CHECK_EQUAL(get_number(passing, number), Outcome::done);
    passing.die();
  }
}

TEST(a_full_table_of_the_living_is_refused) {
  Segment segment({.participants = 2});
  Attachment one(segment);
  Attachment two(segment);
  Attachment three(segment);
  (void)one.ledger();
  (void)two.ledger();
  CHECK_EQUAL(three.queue().join(), ParticipantTable::Joined::table_full);
  one.die();
  CHECK_EQUAL(three.queue().join(), ParticipantTable::Joined::yes);
}

// The dead may have filled the whole table, each with a claim, and nobody else is attached to abandon it.
TEST(a_table_full_of_the_dead_with_claimed_slots_does_not_keep_a_newcomer_out) {
  for (const std::uint32_t participants : {1u, 2u}) {
    Segment segment({.participants = participants});
    for (std::uint32_t i = 0; i < participants; ++i) {
      Attachment doomed(segment);
      Span span;
      REQUIRE(claim_one(doomed, span) == Outcome::done);
      doomed.die();
    }
    Attachment newcomer(segment);
    REQUIRE(newcomer.queue().join() == ParticipantTable::Joined::yes);
    CHECK_EQUAL(put_number(newcomer, 1), Outcome::done);
  }
}

static void put_take_and_die(const Segment& segment, std::uint64_t number) {
  Attachment doomed(segment);
  REQUIRE(put_number(doomed, number) == Outcome::done);
  Peeked peeked;
  REQUIRE(peek(doomed.ring(), doomed.ledger(), peeked) == Outcome::done);
  REQUIRE(claim_pop(doomed.ring(), doomed.ledger(), peeked.span));
  doomed.die();
}

static std::uint64_t redeliver_number(Attachment& attached) {
  const Recovery::RecoveryScan found = attached.queue().recovery().run();
  REQUIRE(found.redeliverable && attached.queue().recovery().try_redeliver(attached.ledger(), found));
  const std::uint64_t number = read_claimed(attached, found.peeked);
  Recovery::release_redelivered(found.ring, attached.ledger(), found.peeked.span);
  return number;
}

// The newcomer may be a producer: then what the dead had taken waits for a consumer, on a line that lives.
TEST(a_table_full_of_the_dead_with_taken_items_does_not_keep_a_newcomer_out) {
  for (const std::uint32_t participants : {1u, 2u}) {
    Segment segment({.participants = participants});
    for (std::uint64_t i = 0; i < 5; ++i) put_take_and_die(segment, 40 + i);
    Attachment newcomer(segment);
    REQUIRE(newcomer.queue().join() == ParticipantTable::Joined::yes);
    CHECK_EQUAL(put_number(newcomer, 1), Outcome::done);
    for (std::uint64_t sum = 0, i = 0; i < 5; ++i) {
      sum += redeliver_number(newcomer);
      if (i == 4) CHECK_EQUAL(sum, 40u + 41 + 42 + 43 + 44);
    }
    CHECK(!newcomer.queue().recovery().run().redeliverable);
    for (std::uint32_t line = 0; line < participants; ++line) CHECK_EQUAL(segment.lines()[line].inherited.load(), 0u);
  }
}

TEST(a_consumer_that_died_with_an_item_can_be_replaced_while_the_producer_holds_the_only_other_line) {
  Segment segment({.participants = 2});
  Attachment producer(segment);
  (void)producer.ledger();
  for (std::uint64_t i = 0; i < 20; ++i) {
    REQUIRE(put_number(producer, i) == Outcome::done);
    Attachment doomed(segment);
    Peeked peeked;
    REQUIRE(peek(doomed.ring(), doomed.ledger(), peeked) == Outcome::done);
    REQUIRE(claim_pop(doomed.ring(), doomed.ledger(), peeked.span));
    doomed.die();
    Attachment consumer(segment);
    CHECK_EQUAL(redeliver_number(consumer), i);
  }
}

// Looking whether a dead line can be cleared takes its lock for a moment: that must not look like a full table.
TEST(a_newcomer_is_not_kept_out_by_somebody_who_only_looks_at_the_dead) {
  Segment segment({.participants = 2});
  Attachment observer(segment);
  (void)observer.ledger();
  std::atomic<bool> over{false};
  std::thread looking([&] {
    while (!over.load()) observer.queue().participant_table().clear_settled(1, [](std::uint32_t) { return true; });
  });
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    Attachment newcomer(segment);
    refused += newcomer.queue().join() != ParticipantTable::Joined::yes;
  }
  over.store(true);
  looking.join();
  CHECK_EQUAL(refused, 0);
}

}  // namespace queueduct::testing
