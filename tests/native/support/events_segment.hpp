// An events segment in a file, as these tests make it: no header, just what the queue itself uses.
#pragma once

#include <new>

#include "events/queue.hpp"
#include "support/mapping.hpp"

namespace queueduct::testing {

struct EventsSettings {
  std::uint64_t max_bytes = 1 << 20;
  std::uint64_t block_bytes = 1 << 14;
  std::uint64_t blocks = 64;
  std::uint64_t first_items = 4;
  std::uint64_t item_bytes = 16;
  std::uint64_t chunk_lines = 64;
  std::uint32_t participants = 8;
  std::uint32_t readers = 8;
  std::uint32_t producers = 4;
  bool varies = false;  // bytes; else records
  bool may_drop = false;

  [[nodiscard]] EventsOffsets offsets() const noexcept {
    return events_offsets(blocks, block_bytes, chunk_lines, participants, readers, producers, 0);
  }
  [[nodiscard]] EventsMap map() const noexcept {
    EventsMap map;
    map.block_count = blocks;
    map.block_bytes = block_bytes;
    map.chunk_lines = chunk_lines;
    map.max_bytes = max_bytes;
    map.first_items = first_items;
    map.item_bytes = item_bytes;
    map.reader_lines = readers;
    map.varies = varies;
    map.may_drop = may_drop;
    return map;
  }
};

// The file, and a view of it that belongs to no participant: for raw looks, and to start afresh.
class EventsSegment {
 public:
  explicit EventsSegment(const EventsSettings& settings)
      : settings_(settings),
        at_(settings.offsets()),
        fd_(open_nameless_file(at_.total)),
        base_(map_file(fd_, at_.total)),
        map_(EventsQueue::placed(base_, at_, settings.map())) {}
  ~EventsSegment() {
    munmap(base_, at_.total);
    close(fd_);
  }
  EventsSegment(const EventsSegment&) = delete;
  EventsSegment& operator=(const EventsSegment&) = delete;

  // As created, without any memory.
  void reset() noexcept {
    (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(at_.total));
  }

  [[nodiscard]] const EventsSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] const EventsOffsets& offsets() const noexcept { return at_; }
  [[nodiscard]] const EventsMap& map() const noexcept { return map_; }
  [[nodiscard]] EventsControl& control() const noexcept { return *map_.control; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::byte* base() const noexcept { return base_; }

  [[nodiscard]] EventsWord end() const noexcept { return map_.end(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t kept() const noexcept { return control().chunks_made - control().head_chunk; }
  [[nodiscard]] std::uint64_t blocks_in_use() const noexcept {
    std::uint64_t used = 0;
    for (std::uint64_t i = 0; i < settings_.blocks; ++i) used += (map_.blocks[i].load() & block_in_use) != 0;
    return used;
  }
  [[nodiscard]] std::uint64_t blocks_of_chunks() const noexcept {
    std::uint64_t blocks = 0;
    for (std::uint64_t n = control().head_chunk; n < control().chunks_made; ++n) blocks += map_.chunk(n).blocks;
    return blocks;
  }
  // What the block words say that they have.
  [[nodiscard]] std::uint64_t memory_noted() const noexcept {
    std::uint64_t pages = 0;
    for (std::uint64_t i = 0; i < settings_.blocks; ++i) pages += map_.blocks[i].load() & ~block_in_use;
    return pages * page_bytes;
  }
  // What the file system has given for the arena: the file's memory without that of the pages before it. Memory that
  // was never touched is no data to lseek, so what is before is counted, and not what is in it.
  [[nodiscard]] std::uint64_t memory_of_blocks() const noexcept {
    struct stat status {};
    fstat(fd_, &status);
    std::uint64_t bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
    const auto end = static_cast<off_t>(at_.arena);
    for (off_t at = 0; at < end;) {
      const off_t data = lseek(fd_, at, SEEK_DATA);
      if (data < 0 || data >= end) break;
      const off_t hole = lseek(fd_, data, SEEK_HOLE);
      at = hole < 0 || hole > end ? end : hole;
      bytes -= static_cast<std::uint64_t>(at - data);
    }
    return bytes;
  }

 private:
  EventsSettings settings_;
  EventsOffsets at_;
  int fd_;
  std::byte* base_;
  EventsMap map_;
};

// A mapping of one's own and an open file description of one's own, as another process has them.
class EventsAttachment {
 public:
  explicit EventsAttachment(const EventsSegment& segment, Identity identity = {})
      : EventsAttachment(segment, identity, segment.settings().map()) {}
  // With a map of its own: as if the queue had been created another way.
  EventsAttachment(const EventsSegment& segment, Identity identity, const EventsMap& map)
      : mapping_(segment.fd(), segment.base(), segment.offsets().total),
        queue_(mapping_.base(), offsets_to_use(segment), map, segment.settings().participants,
               segment.settings().producers, open_again(segment.fd()), identity, false, witnesses_of(identity)),
        producers_(segment.offsets().producers == 0
                       ? nullptr
                       : reinterpret_cast<ProducersHead*>(mapping_.base() + segment.offsets().producers),
                   segment.settings().producers, queue_.participant_table()) {}
  ~EventsAttachment() { queue_.participant_table().leave(); }
  EventsAttachment(const EventsAttachment&) = delete;
  EventsAttachment& operator=(const EventsAttachment&) = delete;

  [[nodiscard]] EventsQueue& queue() noexcept { return queue_; }
  [[nodiscard]] const EventsMap& map() const noexcept { return queue_.map(); }
  [[nodiscard]] EventLog& log() noexcept { return queue_.log(); }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }

  // The calling thread's line, joined at the first call.
  [[nodiscard]] std::uint32_t line() {
    std::uint32_t line = 0;
    while (!queue_.find_line(line)) {
      // who joins at the same moment may be in our way on every line that is free
      if (queue_.join() == ParticipantTable::Joined::table_full && queue_.participant_table().is_full_of_the_living())
        throw std::runtime_error("cannot join: the participant table is full");
    }
    return line;
  }

  // To others this looks like a process that was killed: the kernel has dropped its locks.
  void die() noexcept { queue_.participant_table().leave(); }

 private:
  static EventsOffsets offsets_to_use(const EventsSegment& segment) noexcept {
    EventsOffsets at = segment.offsets();
    if (hides_producers) at.producers = 0;
    return at;
  }

  // Of boots that are told apart by every witness: the lower the first number, the longer ago it began.
  static BootWitnesses witnesses_of(Identity identity) noexcept {
    const std::uint64_t number = identity.boot_id[0];
    if (number == 0) return {};
    return {{number, identity.boot_id[1]}, true, -1'000'000'000'000'000 / static_cast<std::int64_t>(number), true};
  }

  OwnMapping mapping_;
  EventsQueue queue_;
  Producers producers_;  // as the queue has them, unless they are hidden from it
};

// The lock, held as long as this lives.
class Inside {
 public:
  explicit Inside(EventsAttachment& attached) : queue_(attached.queue()) {
    if (queue_.enter(attached.line(), 5'000'000'000) != Entered::yes) throw std::runtime_error("cannot enter");
  }
  ~Inside() { queue_.leave(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  EventsQueue& queue_;
};

}  // namespace queueduct::testing
