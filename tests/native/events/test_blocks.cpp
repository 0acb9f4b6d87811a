// Blocks: which are taken, what memory they keep, and what is left of it after a kill.
#include "support/check.hpp"
#include "support/events_segment.hpp"

namespace queueduct::testing {

constexpr std::uint64_t page = page_bytes;

// Blocks of four pages, and nothing else of a queue.
struct Arena {
  EventsSegment segment{{.block_bytes = 4 * page, .blocks = 8}};
  Blocks blocks{segment.map()};
  Backing backing{segment.fd(), segment.offsets().arena};
  int error = 0;

  std::uint64_t take(std::uint64_t bytes) { return blocks.take(backing, blocks.blocks_for(bytes), bytes, error); }
  void give(std::uint64_t first, std::uint64_t bytes) { blocks.give(backing, first, blocks.blocks_for(bytes), bytes); }
  [[nodiscard]] std::uint64_t memory() const { return segment.memory_of_blocks() / page; }
  [[nodiscard]] std::uint64_t spare() const { return segment.control().spare_bytes / page; }
};

TEST(a_block_has_only_the_memory_that_its_chunk_needs) {
  Arena arena;
  CHECK_EQUAL(arena.take(1), 0u);
  CHECK_EQUAL(arena.memory(), 1u);
  CHECK_EQUAL(arena.take(3 * page), 1u);
  CHECK_EQUAL(arena.memory(), 4u);
  CHECK_EQUAL(arena.segment.blocks_in_use(), 2u);
}

TEST(a_long_item_takes_blocks_in_a_row) {
  Arena arena;
  CHECK_EQUAL(arena.take(page), 0u);
  CHECK_EQUAL(arena.take(page), 1u);
  CHECK_EQUAL(arena.take(page), 2u);
  arena.give(1, page);
  CHECK_EQUAL(arena.take(9 * page), 3u);  // not the hole, which is too short
  CHECK_EQUAL(arena.memory(), 12u);
  CHECK_EQUAL(arena.take(9 * page), Blocks::none);
  CHECK_EQUAL(arena.error, 0);
  CHECK_EQUAL(arena.take(8 * page), 6u);
  arena.give(3, 9 * page);
  CHECK_EQUAL(arena.take(9 * page), 3u);
  CHECK_EQUAL(arena.segment.blocks_in_use(), 7u);
}

TEST(freed_memory_is_used_again_and_more_than_two_chunks_of_it_goes_back) {
  Arena arena;
  for (std::uint64_t i = 0; i < 5; ++i) CHECK_EQUAL(arena.take(2 * page), i);
  for (std::uint64_t i = 0; i < 5; ++i) arena.give(i, 2 * page);
  CHECK_EQUAL(arena.segment.blocks_in_use(), 0u);
  CHECK_EQUAL(arena.spare(), 4u);
  CHECK_EQUAL(arena.memory(), 4u);
  CHECK_EQUAL(arena.take(page), 0u);
  CHECK_EQUAL(arena.spare(), 2u);
  CHECK_EQUAL(arena.take(2 * page), 1u);
  CHECK_EQUAL(arena.spare(), 0u);
  CHECK_EQUAL(arena.memory(), 4u);
}

TEST(a_spare_that_is_too_small_is_made_larger) {
  Arena arena;
  CHECK_EQUAL(arena.take(page), 0u);
  arena.give(0, page);
  CHECK_EQUAL(arena.take(4 * page), 0u);
  CHECK_EQUAL(arena.memory(), 4u);
  CHECK_EQUAL(arena.spare(), 0u);
}

TEST(a_row_of_spares_is_no_spare_any_more) {
  Arena arena;
  CHECK_EQUAL(arena.take(page), 0u);
  CHECK_EQUAL(arena.take(page), 1u);
  arena.give(0, page);
  arena.give(1, page);
  CHECK_EQUAL(arena.spare(), 2u);
  CHECK_EQUAL(arena.take(6 * page), 0u);
  CHECK_EQUAL(arena.spare(), 0u);
  CHECK_EQUAL(arena.memory(), 6u);
}

TEST(a_rebuild_gives_back_all_that_no_chunk_claims) {
  Arena arena;
  for (std::uint64_t i = 0; i < 4; ++i) CHECK_EQUAL(arena.take(2 * page), i);
  arena.give(2, 2 * page);
  arena.blocks.forget();
  CHECK(arena.blocks.claim(1, 1, 2 * page));
  CHECK(!arena.blocks.claim(1, 1, 2 * page));  // it is another chunk's already
  CHECK(!arena.blocks.claim(0, 2, 5 * page));
  CHECK(!arena.blocks.claim(8, 1, page));
  CHECK(!arena.blocks.claim(7, 2, page));
  CHECK(!arena.blocks.claim(3, 0, page));
  arena.blocks.drop_rest(arena.backing);
  CHECK_EQUAL(arena.segment.blocks_in_use(), 1u);
  CHECK_EQUAL(arena.memory(), 2u);
  CHECK_EQUAL(arena.spare(), 0u);
}

TEST(a_rebuild_remembers_memory_that_the_chunk_does_not_need) {
  Arena arena;
  CHECK_EQUAL(arena.take(4 * page), 0u);
  arena.give(0, 4 * page);
  CHECK_EQUAL(arena.take(page), 0u);
  arena.blocks.forget();
  CHECK(arena.blocks.claim(0, 1, page));
  arena.blocks.drop_rest(arena.backing);
  arena.give(0, page);
  CHECK_EQUAL(arena.memory(), arena.spare());
}

TEST(a_page_count_is_not_believed_beyond_its_block) {
  Arena arena;
  CHECK_EQUAL(arena.take(page), 0u);
  CHECK_EQUAL(arena.take(page), 1u);
  arena.segment.map().blocks[0].store(block_in_use | 1000);
  arena.give(0, page);
  CHECK_EQUAL(arena.memory(), 1u);  // the neighbour's is still there
}

TEST(a_full_file_system_is_an_error_and_nothing_is_taken) {
  Arena arena;
  const Backing nowhere{open("/dev/full", O_RDWR | O_CLOEXEC), 0};
  CHECK_EQUAL(arena.blocks.take(nowhere, 1, page, arena.error), Blocks::none);
  CHECK(arena.error != 0);
  CHECK_EQUAL(arena.segment.blocks_in_use(), 0u);
  close(nowhere.fd);
  CHECK_EQUAL(arena.take(page), 0u);
  CHECK_EQUAL(arena.error, 0);
}

TEST(within_a_process_memory_needs_no_file) {
  Arena arena;
  const Backing anonymous;
  CHECK_EQUAL(arena.blocks.take(anonymous, 1, page, arena.error), 0u);
  arena.blocks.give(anonymous, 0, 1, page);
  CHECK_EQUAL(arena.blocks.take(anonymous, 2, 5 * page, arena.error), 0u);
}

}  // namespace queueduct::testing
