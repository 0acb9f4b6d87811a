// Batches: one compare-and-swap for many slots, every slot checked, since the other side gives them on out of order.
#include <algorithm>
#include <array>
#include <numeric>

#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

// Counts compare-and-swaps and remembers the last claim: a policy that watches the real one.
struct Watched {
  int* claims;
  Span* last;
  static void count_put(std::uint64_t, std::uint64_t) noexcept {}
  static void clear() noexcept {}
  [[nodiscard]] bool claim(std::atomic<std::uint64_t>& word, Side side, std::uint64_t position,
                           std::uint64_t count) const noexcept {
    ++*claims;
    *last = {position, count};
    return NoLedger::claim(word, side, position, count);
  }
};

constexpr Shape records{.capacity = 8, .slot_bytes = 8, .participants = 8, .varying = false};

TEST(a_batch_of_records_across_the_wrap_is_one_claim) {
  for (std::uint64_t start = 0; start < 16; ++start) {
    Segment segment(records);
    segment.reset(start);
    Attachment attached(segment);
    int claims = 0;
    Span last;
    std::array<std::uint64_t, 8> in{};
    std::iota(in.begin(), in.end(), 100 * start);
    std::uint64_t put = 0;
    CHECK_EQUAL(try_put_records(attached.ring(), Watched{&claims, &last}, in.data(), 8, put), Outcome::done);
    CHECK_EQUAL(put, 8u);
    CHECK_EQUAL(claims, 1);
    CHECK_EQUAL(last.slots, 8u);
    Peeked peeked;
    REQUIRE(peek(attached.ring(), NoLedger{}, peeked) == Outcome::done);
    widen_records(attached.ring(), 8, peeked);
    CHECK_EQUAL(peeked.span.slots, 8u);
    CHECK(claim_pop(attached.ring(), Watched{&claims, &last}, peeked.span));
    CHECK_EQUAL(claims, 2);
    std::array<std::uint64_t, 8> out{};
    finish_pop(attached.ring(), NoLedger{}, peeked, out.data());
    CHECK(in == out);
    CHECK_EQUAL(attached.ring().pop_position->load(), start + 8);
    for (std::uint64_t p = start + 8; p < start + 16; ++p) CHECK_EQUAL(attached.ring().generation_of(p).load(), p);
  }
}

TEST(a_batch_longer_than_the_ring_goes_through_it_in_pieces_at_every_capacity) {
  for (const std::uint64_t capacity : {1u, 2u, 3u, 5u, 7u, 100u}) {
    Segment segment({.capacity = capacity, .slot_bytes = 8, .participants = 8, .varying = false});
    segment.reset(capacity - 1);
    Attachment attached(segment);
    std::array<std::uint64_t, 256> in{};
    std::array<std::uint64_t, 256> out{};
    std::iota(in.begin(), in.end(), 1000);
    std::uint64_t got = 0;
    for (std::uint64_t sent = 0; sent < in.size();) {
      std::uint64_t put = 0;
      REQUIRE(try_put_records(attached.ring(), attached.ledger(), &in[sent], in.size() - sent, put) == Outcome::done);
      CHECK_EQUAL(put, std::min(capacity, in.size() - sent));
      sent += put;
      Peeked peeked;
      REQUIRE(peek(attached.ring(), attached.ledger(), peeked) == Outcome::done);
      widen_records(attached.ring(), 1000, peeked);
      CHECK_EQUAL(peeked.span.slots, put);
      REQUIRE(claim_pop(attached.ring(), attached.ledger(), peeked.span));
      finish_pop(attached.ring(), attached.ledger(), peeked, &out[got]);
      got += peeked.span.slots;
    }
    CHECK(in == out);
  }
}

TEST(a_batch_takes_as_many_as_fit_and_says_how_many) {
  Segment segment(records);
  Attachment attached(segment);
  std::array<std::uint64_t, 12> in{};
  std::iota(in.begin(), in.end(), 0);
  std::uint64_t put = 0;
  CHECK_EQUAL(try_put_records(attached.ring(), attached.ledger(), in.data(), 5, put), Outcome::done);
  CHECK_EQUAL(put, 5u);
  CHECK_EQUAL(try_put_records(attached.ring(), attached.ledger(), in.data() + 5, 7, put), Outcome::done);
  CHECK_EQUAL(put, 3u);
  CHECK_EQUAL(try_put_records(attached.ring(), attached.ledger(), in.data() + 8, 4, put), Outcome::full);
  CHECK_EQUAL(put, 0u);
}

TEST(a_batch_of_puts_ends_before_a_slot_that_is_still_being_read) {
  Segment segment(records);
  Attachment slow(segment);
  Attachment other(segment);
  std::array<std::uint64_t, 8> in{};
  std::uint64_t put = 0;
  REQUIRE(try_put_records(other.ring(), other.ledger(), in.data(), 8, put) == Outcome::done);
  std::array<Peeked, 4> taken;
  for (Peeked& each : taken) {
    REQUIRE(peek(slow.ring(), slow.ledger(), each) == Outcome::done);
    REQUIRE(claim_pop(slow.ring(), slow.ledger(), each.span));
  }
  // released out of order: slots 0, 1 and 3, but not 2
  for (const int i : {3, 0, 1}) release(slow.ring(), taken[static_cast<std::size_t>(i)].span);
  CHECK_EQUAL(try_put_records(other.ring(), other.ledger(), in.data(), 4, put), Outcome::done);
  CHECK_EQUAL(put, 2u);
  CHECK_EQUAL(try_put_records(other.ring(), other.ledger(), in.data(), 4, put), Outcome::full);
  release(slow.ring(), taken[2].span);
  CHECK_EQUAL(try_put_records(other.ring(), other.ledger(), in.data(), 4, put), Outcome::done);
  CHECK_EQUAL(put, 2u);
}

TEST(a_batch_of_gets_ends_before_a_slot_that_is_still_being_written) {
  Segment segment(records);
  Attachment attached(segment);
  const Ring& ring = attached.ring();
  std::array<Span, 4> claimed;
  for (Span& each : claimed) REQUIRE(claim_one(attached, each) == Outcome::done);
  for (const int i : {3, 0, 1}) {
    const Span span = claimed[static_cast<std::size_t>(i)];
    write_claimed(attached, span, span.position);
    publish(ring, span);
  }
  Peeked peeked;
  REQUIRE(peek(ring, attached.ledger(), peeked) == Outcome::done);
  widen_records(ring, 8, peeked);
  CHECK_EQUAL(peeked.span.slots, 2u);
  write_claimed(attached, claimed[2], 2);
  publish(ring, claimed[2]);
  widen_records(ring, 8, peeked);
  CHECK_EQUAL(peeked.span.slots, 4u);
  widen_records(ring, 3, peeked);
  CHECK_EQUAL(peeked.span.slots, 3u);
}

TEST(a_batch_of_bytes_is_one_claim_and_keeps_items_whole) {
  for (std::uint64_t start = 0; start < 8; ++start) {
    Segment segment({});
    segment.reset(start);
    Attachment attached(segment);
    int claims = 0;
    Span last;
    // 1 + 3 + 1 + 2 slots, and a fifth item of 3 slots that does not fit
    const std::array<Bytes, 5> in{pattern(1, 9), pattern(2, 40), pattern(3, 0), pattern(4, 32), pattern(5, 48)};
    std::array<Buffer, 5> buffers{};
    for (std::size_t i = 0; i < 5; ++i) buffers[i] = {in[i].data(), in[i].size()};
    std::uint64_t put = 0;
    CHECK_EQUAL(try_put_bytes_many(attached.ring(), Watched{&claims, &last}, buffers.data(), 5, put), Outcome::done);
    CHECK_EQUAL(put, 4u);
    CHECK_EQUAL(claims, 1);
    CHECK_EQUAL(last.slots, 7u);
    CHECK_EQUAL(count_items(attached.ring(), true), 4u);
    Peeked peeked;
    REQUIRE(peek(attached.ring(), NoLedger{}, peeked) == Outcome::done);
    std::array<std::uint64_t, 3> lengths{};
    REQUIRE(widen_bytes(attached.ring(), 3, lengths.data(), peeked) == 3);
    CHECK_EQUAL(peeked.span.slots, 5u);
    REQUIRE(claim_pop(attached.ring(), Watched{&claims, &last}, peeked.span));
    CHECK_EQUAL(claims, 2);
    std::uint64_t position = peeked.span.position;
    for (std::size_t i = 0; i < 3; ++i) {
      Bytes out = pattern(0, lengths[i]);
      copy_out(attached.ring(), position, out.data(), lengths[i]);
      position += attached.ring().slots_for(lengths[i]);
      CHECK(out == in[i]);
    }
    release_copied(attached.ring(), attached.ledger(), peeked.span);
    CHECK(get_bytes(attached) == in[3]);
    CHECK(!get_bytes(attached).has_value());
  }
}

TEST(a_batch_whose_first_item_does_not_fit_puts_nothing) {
  Segment segment({});
  Attachment attached(segment);
  for (std::uint64_t i = 0; i < 6; ++i) REQUIRE(put_number(attached, i) == Outcome::done);
  const Bytes three = pattern(1, 48);
  const Bytes one = pattern(2, 16);
  const std::array<Buffer, 2> buffers{Buffer{three.data(), 48}, Buffer{one.data(), 16}};
  std::uint64_t put = 99;
  CHECK_EQUAL(try_put_bytes_many(attached.ring(), attached.ledger(), buffers.data(), 2, put), Outcome::full);
  CHECK_EQUAL(put, 0u);
  CHECK_EQUAL(attached.ring().push_position->load(), 6u);
}

TEST(a_batch_larger_than_the_ring_is_taken_up_to_the_ring) {
  Segment segment({});
  Attachment attached(segment);
  const Bytes item = pattern(1, 16);
  const std::vector<Buffer> buffers(20, Buffer{item.data(), 16});
  std::uint64_t put = 0;
  CHECK_EQUAL(try_put_bytes_many(attached.ring(), attached.ledger(), buffers.data(), 20, put), Outcome::done);
  CHECK_EQUAL(put, 8u);
  CHECK_EQUAL(segment.lines()[0].intent.load(), 0u);
}

}  // namespace queueduct::testing
