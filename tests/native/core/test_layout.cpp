// Facts that another build, or another program, relies on.
#include <random>

#include "support/check.hpp"
#include "support/segment.hpp"

namespace queueduct::testing {

// What the layout says of itself, said a second time: a change here is a change of the shared format.
static_assert(line_bytes == 128 && page_bytes == 4096);
static_assert(sizeof(SegmentHeader) == 256);
static_assert(offsetof(SegmentHeader, layout_version) == 8 && offsetof(SegmentHeader, byte_order) == 12);
static_assert(offsetof(SegmentHeader, total_bytes) == 24 && offsetof(SegmentHeader, capacity) == 32);
static_assert(offsetof(BoundedControl, push_position) == 0 && offsetof(BoundedControl, pop_position) == 128);
static_assert(offsetof(BoundedControl, items) == 256 && offsetof(BoundedControl, room) == 384);
static_assert(offsetof(BoundedControl, participants_used) == 512);
static_assert(offsetof(ParticipantLine, intent) == 0 && sizeof(ParticipantLine) == 128);
static_assert(offsetof(ParticipantLine, inherited) == 40 && offsetof(ParticipantLine, tenure) == 48 &&
              offsetof(ParticipantLine, guarded) == 56);
static_assert(offsetof(SegmentHeader, producers_offset) == 152 && offsetof(SegmentHeader, producers) == 160);
static_assert(offsetof(ProducerLine, owner) == 0 && offsetof(ProducerLine, progress) == 8);
static_assert(offsetof(ProducerLine, sequence) == 16 && offsetof(ProducerLine, position) == 32);
static_assert(offsetof(ProducerLine, extent) == 40 && offsetof(ProducerLine, kept) == 48);
static_assert(offsetof(ProducerLine, name) == 64);
static_assert(sizeof(ProducerLine) == 128 && sizeof(ProducersHead) == 128);
static_assert(closed_bit == 0x8000'0000'0000'0000);
static_assert(Modulus::of(8).index_of(13) == 5 && Modulus::of(1).index_of(13) == 0 && Modulus::of(5).index_of(13) == 3);
static_assert(lock_byte(0) > static_cast<std::int64_t>(segment_bytes_limit));

static_assert(generation::free(5) == 5 && generation::published(5) == (std::uint64_t{1} << 62 | 5));
static_assert(generation::times_redelivered(generation::redelivered(5, 16383)) == 16383);
static_assert(generation::times_redelivered(generation::published(5)) == 0);
static_assert(generation::next_redelivery(generation::published(5)) == 1);
static_assert(generation::next_redelivery(generation::redelivered(5, 1)) == 2);
static_assert(generation::next_redelivery(generation::redelivered(5, 16382)) == 16383);
static_assert(generation::next_redelivery(generation::redelivered(5, 16383)) == 8192);
static_assert(generation::redelivered(5, 1) != generation::redelivered(5, 2));
static_assert(generation::is_redelivered(generation::redelivered(5, 16383), 5));
static_assert(!generation::is_redelivered(generation::redelivered(5, 16383), 6));
static_assert(!generation::is_redelivered(generation::tombstone(5), 5));
static_assert(!generation::is_redelivered(generation::published(5), 5));

TEST(a_generation_says_one_thing_only) {
  // free, published, tombstone and redelivered of neighbouring positions and laps never look alike
  for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{1} << 40, (std::uint64_t{1} << 48) - 8}) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t p = base; p < base + 16; ++p) {
      words.push_back(generation::free(p));
      words.push_back(generation::published(p));
      words.push_back(generation::tombstone(p));
      words.push_back(generation::redelivered(p, 0));
      words.push_back(generation::redelivered(p, 16383));
    }
    for (std::size_t i = 0; i < words.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) CHECK(words[i] != words[j]);
  }
}

TEST(an_index_is_the_position_modulo_the_capacity_for_every_capacity) {
  const std::uint64_t last = (std::uint64_t{1} << 63) - 1;
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> capacities;
  for (std::uint64_t c = 1; c <= 300; ++c) capacities.push_back(c);
  for (int bit = 8; bit <= 32; ++bit)
    for (const std::uint64_t c :
         {(std::uint64_t{1} << bit) - 1, std::uint64_t{1} << bit, (std::uint64_t{1} << bit) + 1})
      if (c <= capacity_limit) capacities.push_back(c);
  for (int i = 0; i < 500; ++i) capacities.push_back(random() % capacity_limit + 1);
  std::uint64_t wrong = 0;
  for (const std::uint64_t c : capacities) {
    const Modulus modulus = Modulus::of(c);
    const auto check = [&](std::uint64_t p) { wrong += modulus.index_of(p) != (p & last) % c; };
    for (std::uint64_t p = 0; p < 4; ++p) check(p), check(last - p), check(last + 1 + p), check(~p);
    for (const std::uint64_t laps : {std::uint64_t{1}, std::uint64_t{2}, last / c / 2, last / c - 1, last / c})
      for (std::uint64_t p = laps * c - 2; p != laps * c + 3; ++p) check(p);
    for (int bit = 1; bit < 64; ++bit)
      for (std::uint64_t p = (std::uint64_t{1} << bit) - 2; p != (std::uint64_t{1} << bit) + 3; ++p) check(p);
    for (int i = 0; i < 200; ++i) check(random() >> random() % 64), check(random() % (last / c + 1) * c - 1);
  }
  CHECK_EQUAL(wrong, 0u);
}

TEST(offsets_lie_in_order_aligned_and_do_not_overlap) {
  for (const bool varying : {false, true}) {
    for (const std::uint64_t capacity : {1u, 2u, 3u, 8u, 1000u, 1u << 10, 1u << 20}) {
      for (const std::uint64_t slot_bytes : {1u, 8u, 100u, 1u << 16}) {
        for (const std::uint32_t participants : {1u, 31u, 256u, participants_limit}) {
          const std::uint32_t producers = participants == 31 ? 0 : participants == 256 ? 32 : producers_limit;
          const BoundedOffsets at = bounded_offsets(capacity, slot_bytes, participants, producers, 77, varying);
          CHECK_EQUAL(at.item_text, sizeof(SegmentHeader));
          CHECK_EQUAL(at.control % page_bytes, 0u);
          CHECK(at.control >= at.item_text + 77);
          CHECK_EQUAL(at.participants, at.control + sizeof(BoundedControl));
          const std::uint64_t joined = at.participants + participants * sizeof(ParticipantLine);
          CHECK_EQUAL(at.producers, producers == 0 ? 0 : joined);
          CHECK(at.generations >= joined + (producers == 0 ? 0 : (1 + producers) * line_bytes));
          CHECK_EQUAL(at.generations % page_bytes, 0u);
          const std::uint64_t end = at.generations + capacity * 8;
          CHECK_EQUAL(at.lengths != 0, varying);
          if (varying) CHECK(at.lengths >= end && at.lengths % line_bytes == 0);
          CHECK(at.payload >= (varying ? at.lengths + capacity * 4 : end));
          CHECK_EQUAL(at.payload % page_bytes, 0u);
          CHECK(at.total >= at.payload + capacity * slot_bytes);
          CHECK_EQUAL(at.total % page_bytes, 0u);
        }
      }
    }
  }
}

TEST(the_largest_segment_overflows_nothing) {
  // slot_bytes such that the payload alone is the limit of a segment
  const std::uint64_t slot_bytes = segment_bytes_limit / capacity_limit;
  const BoundedOffsets at = bounded_offsets(capacity_limit, slot_bytes, participants_limit, producers_limit,
                                            item_text_limit, true);
  CHECK(at.total > segment_bytes_limit);
  CHECK(at.total < 2 * segment_bytes_limit);
  CHECK(at.payload < at.total);
}

TEST(a_length_word_tells_heads_from_the_rest) {
  CHECK(!Length{0}.is_continuation());
  CHECK(!Length{static_cast<std::uint32_t>(item_bytes_limit)}.is_continuation());
  const Length rest{Length::continuation_bit | 7};
  CHECK(rest.is_continuation());
  CHECK_EQUAL(rest.distance(), 7u);
}

TEST(positions_and_events_stand_in_lines_of_their_own) {
  Segment segment({});
  const auto line_of = [&](const void* word) {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(word) - segment.base()) / line_bytes;
  };
  const BoundedControl& control = segment.control();
  CHECK(line_of(&control.push_position) != line_of(&control.pop_position));
  CHECK(line_of(&control.items.word) != line_of(&control.room.word));
  CHECK(line_of(&segment.lines()[0].intent) != line_of(&segment.lines()[1].intent));
}

}  // namespace queueduct::testing
