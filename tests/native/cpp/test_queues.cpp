// What C++ programs call, under the sanitizers: segments that are made here, then opened, used, and refused.
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "queueduct.hpp"
#include "support/check.hpp"

namespace {

struct Tick {
  char symbol[8];
  std::int64_t number;
};

}  // namespace
QUEUEDUCT_RECORD(Tick, symbol, number);

namespace queueduct::testing {
namespace {

constexpr const char* tick_text = "('record', [('symbol', '|S8', 0), ('number', '<i8', 8)], 16)";

// A folder of queues in memory, gone afterwards.
class Folder {
 public:
  Folder() : path_("/dev/shm/queueduct-native-" + std::to_string(getpid())) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] Options options() const { return {path_}; }

  // Makes the queue "q", with the sizes that `header` and `log` have, as Python would.
  void make(SegmentHeader header, const std::string& text, EventsShape* log, std::uint64_t slots) const {
    std::memcpy(header.magic, magic, sizeof magic);
    header.layout_version = layout_version;
    header.byte_order = byte_order_mark;
    header.item_text_bytes = static_cast<std::uint32_t>(text.size());
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    if (log != nullptr) bytes.append(reinterpret_cast<const char*>(log), sizeof *log);
    header.checksum = facade::crc32(bytes + text);
    bytes.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
    std::ofstream file(path_ / "q", std::ios::binary | std::ios::trunc);
    file << bytes << text;
    for (std::uint64_t i = 0; i < slots; ++i) {
      file.seekp(static_cast<std::streamoff>(header.generations_offset + i * sizeof i));
      file.write(reinterpret_cast<const char*>(&i), sizeof i);
    }
    file.close();
    std::filesystem::resize_file(path_ / "q", header.total_bytes);
  }

  void make_bounded(std::uint64_t capacity, ItemKind kind, const std::string& text) const {
    SegmentHeader header{};
    const bool varies = kind == ItemKind::bytes;
    const BoundedOffsets at = bounded_offsets(capacity, 16, 8, 2, static_cast<std::uint32_t>(text.size()), varies);
    header.kind = static_cast<std::uint32_t>(Kind::bounded);
    header.item_kind = static_cast<std::uint32_t>(kind);
    header.capacity = capacity;
    header.generations_offset = at.generations;
    header.lengths_offset = at.lengths;
    header.payload_offset = at.payload;
    fill(header, at);
    make(header, text, nullptr, capacity);
  }

  void make_events(std::uint64_t max_bytes) const {
    SegmentHeader header{};
    EventsShape log{};
    log.max_bytes = max_bytes;
    log.block_bytes = page_bytes;
    log.first_items = 4;
    header.capacity = 3 * max_bytes / page_bytes + 64;
    log.chunk_lines = std::bit_ceil(header.capacity + 2);
    log.readers = 4;
    log.on_full = static_cast<std::uint32_t>(OnFull::wait);
    log.sync = static_cast<std::uint32_t>(Sync::interval);
    log.sync_interval_ns = 1'000'000;
    const EventsOffsets at = events_offsets(header.capacity, log.block_bytes, log.chunk_lines, 8, log.readers, 2,
                                            static_cast<std::uint32_t>(std::strlen(tick_text)));
    log.readers_offset = at.readers;
    log.chunks_offset = at.chunks;
    log.blocks_offset = at.blocks;
    log.arena_offset = at.arena;
    header.kind = static_cast<std::uint32_t>(Kind::events);
    header.item_kind = static_cast<std::uint32_t>(ItemKind::record);
    fill(header, at);
    make(header, tick_text, &log, 0);
  }

 private:
  static void fill(SegmentHeader& header, const auto& at) {
    header.slot_bytes = 16;
    header.participants = 8;
    header.producers = 2;
    header.total_bytes = at.total;
    header.item_text_offset = at.item_text;
    header.control_offset = at.control;
    header.participants_offset = at.participants;
    header.producers_offset = at.producers;
  }

  std::filesystem::path path_;
};

template <class Exception>
[[nodiscard]] bool throws(auto call) {
  try {
    call();
  } catch (const Exception&) {
    return true;
  }
  return false;
}

TEST(threads_put_and_get_through_one_handle) {
  const Folder folder;
  folder.make_bounded(16, ItemKind::record, tick_text);
  BoundedQueue<Tick> queue("q", folder.options());
  constexpr int threads = 3, each = 500;
  std::vector<std::thread> producers;
  for (int t = 0; t < threads; ++t)
    producers.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) (void)queue.put({"ACME", t * each + i});
    });
  std::vector<bool> seen(threads * each);
  for (int left = threads * each; left > 0;)
    for (const Tick& tick : queue.get_many(8)) {
      CHECK(!seen[static_cast<std::size_t>(tick.number)]);
      seen[static_cast<std::size_t>(tick.number)] = true;
      --left;
    }
  for (std::thread& producer : producers) producer.join();
  CHECK_EQUAL(queue.size(), 0u);
}

TEST(a_wait_that_never_ends_is_no_number_that_overflows) {
  const facade::Deadline never(forever), soon(std::chrono::milliseconds(1)), now(at_once);
  CHECK(never.left_ns() <= INT64_MAX - monotonic_ns());
  CHECK(never.left_ns() > std::int64_t{3600} * 24 * 365 * second);
  CHECK(soon.left_ns() <= 1'000'000);
  CHECK_EQUAL(now.left_ns(), 0);
}

TEST(a_full_queue_takes_what_fits_and_then_times_out) {
  const Folder folder;
  folder.make_bounded(4, ItemKind::record, tick_text);
  Writer<Tick> writer("q", folder.options());
  const std::vector<Tick> ticks(6);
  CHECK_EQUAL(writer.put_many(ticks, at_once), 4u);
  CHECK(!writer.put(ticks[0], std::chrono::milliseconds(2)));
}

TEST(strings_of_any_length_come_back_as_they_were) {
  const Folder folder;
  folder.make_bounded(64, ItemKind::bytes, "bytes");
  BoundedQueue<> queue("q", folder.options());
  const std::vector<std::string> items = {"", "a", std::string(16, 'b'), std::string(900, 'c')};
  CHECK_EQUAL(queue.put_many(items), items.size());
  CHECK(queue.get_many(10) == items);
  CHECK(queue.put(items[3]));
  CHECK(queue.get() == items[3]);
  CHECK(!queue.get(at_once));
  CHECK(throws<std::invalid_argument>([&] { queue.put(std::string(2000, 'd')); }));
}

TEST(a_log_takes_records_until_it_is_full_or_shut_down) {
  const Folder folder;
  folder.make_events(1 << 16);
  EventQueue<Tick> log("q", folder.options());
  const std::vector<Tick> ticks(100);
  CHECK_EQUAL(log.put_many(ticks), 100u);
  CHECK(log.put({"BOLT", 1}));
  CHECK_EQUAL(log.end(), 101u);
  log.sync();
  log.shut_down();
  CHECK(throws<ShutDown>([&] { log.put({"BOLT", 2}); }));
}

TEST(a_forked_child_uses_the_handle) {
  const Folder folder;
  folder.make_bounded(16, ItemKind::record, tick_text);
  BoundedQueue<Tick> queue("q", folder.options());
  CHECK(queue.put({"ACME", 1}));
  const pid_t child = fork();
  if (child == 0) std::_Exit(queue.put({"ACME", 2}) && queue.get()->number == 1 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(queue.get()->number, 2);
}

TEST(what_does_not_fit_is_refused) {
  const Folder folder;
  folder.make_bounded(16, ItemKind::record, tick_text);
  CHECK(throws<WrongType>([&] { EventQueue<Tick>("q", folder.options()); }));
  CHECK(throws<WrongType>([&] { Writer<double>("q", folder.options()); }));
  CHECK(throws<WrongType>([&] { Writer<>("q", folder.options()); }));
  CHECK(throws<QueueNotFound>([&] { Writer<Tick>("none", folder.options()); }));
  CHECK(throws<std::invalid_argument>([&] { Writer<Tick>("../q", folder.options()); }));
}

TEST(a_text_that_is_cut_or_doubled_anywhere_is_read_or_refused) {
  const std::string text = "('record', [('a', ('array', '<f8', (2, 3)), 0), ('b', '|S8', 48, 'title')], 56)";
  CHECK(facade::DtypeParser::parse(text).has_value());
  for (std::size_t i = 0; i < text.size(); ++i) {
    CHECK(!facade::DtypeParser::parse(text.substr(0, i)));
    (void)facade::DtypeParser::parse(text.substr(i));
    (void)facade::DtypeParser::parse(text.substr(0, i) + text);
  }
}

}  // namespace
}  // namespace queueduct::testing
