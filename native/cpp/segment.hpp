// Opens a queue's file and checks every field of its header before a byte of it is used, as Python does
// (src/queueduct/segments/segment.py). The header is copied once, and only the copy is believed.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "cpp/names.hpp"
#include "cpp/record.hpp"
#include "events/layout.hpp"
#include "overwriting/layout.hpp"

namespace queueduct::facade {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  [[nodiscard]] int number() const noexcept { return number_; }
  // The caller closes it.
  [[nodiscard]] int take() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

// An open file whose header is valid.
struct Segment {
  std::string name;
  std::string path;
  SegmentHeader header{};
  EventsShape events{};             // of an event queue
  std::uint64_t header_offset = 0;  // behind the messages of an overwriting queue
  std::string item_text;
  Dtype item;  // of records; else opaque
  Descriptor file{};

  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(header.kind); }
  [[nodiscard]] ItemKind item_kind() const noexcept { return static_cast<ItemKind>(header.item_kind); }
  [[nodiscard]] bool varies() const noexcept { return item_kind() != ItemKind::record; }
  [[nodiscard]] std::string label() const { return quoted(name); }
};

[[nodiscard]] inline const char* name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::bounded: return "bounded";
    case Kind::growing: return "growing";
    case Kind::overwriting: return "overwriting";
    case Kind::slots: return "slots";
    case Kind::events: return "events";
  }
  return "";
}

// crc32 as of zlib.
[[nodiscard]] inline std::uint32_t crc32(std::string_view bytes) noexcept {
  static constexpr std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb8'8320u : 0u);
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t value = 0xffff'ffffu;
  for (const char c : bytes) value = value >> 8 ^ table[(value ^ static_cast<unsigned char>(c)) & 0xff];
  return ~value;
}

// Of a power of two times an odd number of units: true if no product overflows the limit of a segment.
[[nodiscard]] inline bool is_within_a_segment(std::uint64_t count, std::uint64_t size) noexcept {
  std::uint64_t all = 0;
  return !__builtin_mul_overflow(count, size, &all) && all <= segment_bytes_limit;
}

class Validation {
 public:
  explicit Validation(Segment& segment) noexcept : segment_(segment), header_(segment.header) {}

  // Fills in all but name, path and file, or throws CorruptSegment.
  void run() {
    find_header();
    if (std::memcmp(header_.magic, magic, sizeof magic) != 0)
      refuse("magic must be QUEUDUCT at offset " + std::to_string(segment_.header_offset) +
             (segment_.header_offset == 0 ? "" : "; a file of another program's must be adopted in Python first"));
    expect("byte_order", header_.byte_order, byte_order_mark);
    expect("layout_version", header_.layout_version, layout_version);
    between("kind", header_.kind, 1, 5);
    between("participants", header_.participants, 1, participants_limit);
    between("producers", header_.producers, 0, producers_limit);
    between("item_text_bytes", header_.item_text_bytes, 1, item_text_limit);
    const bool is_log = segment_.kind() == Kind::events;
    if (is_log) read(&segment_.events, sizeof segment_.events, segment_.header_offset + sizeof header_);
    if (segment_.kind() == Kind::growing || segment_.kind() == Kind::slots)
      throw WrongType(segment_.label() + " is a queue of kind '" + name_of(segment_.kind()) +
                      "': C++ opens bounded, events and overwriting queues");
    segment_.item_text.resize(header_.item_text_bytes);
    const std::uint64_t text_at = segment_.header_offset + sizeof header_ + (is_log ? sizeof segment_.events : 0);
    read(segment_.item_text.data(), segment_.item_text.size(), text_at);
    check_item();
    check_sizes();
    check_offsets();
    if (file_bytes_ != header_.total_bytes)
      refuse("the file has " + std::to_string(file_bytes_) +
             " bytes, total_bytes=" + std::to_string(header_.total_bytes));
    zero("reserved", header_.reserved, sizeof header_.reserved);
    if (is_log) zero("unused", segment_.events.unused, sizeof segment_.events.unused);
    check_checksum(is_log);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw CorruptSegment(segment_.path + ": " + what); }
  void expect(const char* field, std::uint64_t found, std::uint64_t expected) const {
    if (found != expected)
      refuse(std::string(field) + " must be " + std::to_string(expected) + ": " + field + "=" + std::to_string(found));
  }
  void between(const char* field, std::uint64_t found, std::uint64_t least, std::uint64_t most) const {
    if (found < least || found > most)
      refuse(std::string(field) + " must be between " + std::to_string(least) + " and " + std::to_string(most) + ": " +
             field + "=" + std::to_string(found));
  }
  void product(const char* fields, std::uint64_t count, std::uint64_t size) const {
    if (!is_within_a_segment(count, size))
      refuse(std::string(fields) + " must be at most " + std::to_string(segment_bytes_limit) +
             " bytes: " + std::to_string(count) + " * " + std::to_string(size));
  }
  void zero(const char* field, const std::uint8_t* bytes, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      if (bytes[i] != 0) refuse(std::string(field) + " must be zero: byte " + std::to_string(i) + " is not");
  }

  void read(void* to, std::uint64_t bytes, std::uint64_t at) const {
    const ssize_t got = pread(segment_.file.number(), to, bytes, static_cast<off_t>(at));
    if (got < 0) raise_system(errno, "reading " + segment_.path);
    if (static_cast<std::uint64_t>(got) != bytes)
      refuse("too short for a header: " + std::to_string(got) + " bytes at offset " + std::to_string(at) + ", not " +
             std::to_string(bytes));
  }

  // An overwriting segment begins with the published part.
  void find_header() {
    struct stat status{};
    if (fstat(segment_.file.number(), &status) != 0) raise_system(errno, "asking for the size of " + segment_.path);
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
    struct {
      char magic[8];
      std::uint32_t max_len, words;
    } start{};
    read(&start, sizeof start, 0);
    if (std::memcmp(start.magic, published_magic, sizeof published_magic) == 0) {
      between("QUEUE_MAX_LEN", start.max_len, 1, messages_limit);
      between("MSG_SIZE", start.words, 1, message_words_limit);
      product("QUEUE_MAX_LEN * (1 + MSG_SIZE)", start.max_len, message_stride(start.words));
      segment_.header_offset = overwriting_offsets(start.max_len, start.words, 0, 0).own;
    }
    if (segment_.header_offset == 0 || file_bytes_ >= segment_.header_offset + sizeof header_)
      read(&header_, sizeof header_, segment_.header_offset);
    if (segment_.header_offset != 0 && std::memcmp(header_.magic, magic, sizeof magic) == 0) {
      expect("kind", header_.kind, static_cast<std::uint64_t>(Kind::overwriting));
      expect("capacity", header_.capacity, start.max_len);
      expect("slot_bytes", header_.slot_bytes, std::uint64_t{start.words} * 8);
    } else if (segment_.header_offset == 0 && header_.kind == static_cast<std::uint32_t>(Kind::overwriting)) {
      refuse("a queue of kind 'overwriting' must begin with the published magic");
    }
  }

  void check_item() const {
    const std::string& text = segment_.item_text;
    between("item_kind", header_.item_kind, 1, 3);
    if (segment_.item_kind() != ItemKind::record) {
      if (text != (segment_.item_kind() == ItemKind::bytes ? "bytes" : "object"))
        refuse("item_text does not suit item_kind=" + std::to_string(header_.item_kind));
      return;
    }
    std::optional<Dtype> found = DtypeParser::parse(text);
    if (!found) refuse("item_text is not a dtype: " + text.substr(0, 80));
    segment_.item = std::move(*found);
    const std::uint64_t bytes = segment_.item.bytes();
    expect("slot_bytes", header_.slot_bytes, segment_.kind() == Kind::overwriting ? round_up(bytes, 8) : bytes);
  }

  void check_sizes() const {
    if (segment_.kind() == Kind::overwriting) return expect("producers", header_.producers, 0);
    between("slot_bytes", header_.slot_bytes, 1, slot_bytes_limit);
    if (segment_.kind() == Kind::bounded) {
      between("capacity", header_.capacity, 1, capacity_limit);
      return product("capacity * slot_bytes", header_.capacity, header_.slot_bytes);
    }
    const EventsShape& log = segment_.events;
    between("capacity", header_.capacity, 1, blocks_limit);
    between("block_bytes", log.block_bytes, page_bytes, block_bytes_limit);
    expect("block_bytes modulo a page", log.block_bytes % page_bytes, 0);
    between("first_items", log.first_items, 1, first_items_limit);
    between("chunk_lines", log.chunk_lines, 2, 2 * blocks_limit);
    expect("chunk_lines & (chunk_lines - 1)", log.chunk_lines & (log.chunk_lines - 1), 0);
    between("readers", log.readers, 1, readers_limit);
    between("on_full", log.on_full, 1, 3);
    between("sync", log.sync, 1, 3);
    expect("padding", log.padding, 0);
    between("sync_interval_ns", log.sync_interval_ns, 1'000'000, 86'400'000'000'000);
    product("capacity * block_bytes", header_.capacity, log.block_bytes);
    const std::uint64_t first = log.first_items * (header_.slot_bytes + (segment_.varies() ? 4 : 0)) + 8;
    between("max_bytes", log.max_bytes, 2 * first, segment_bytes_limit / 8);
  }

  void check_offsets() const {
    const auto expect_all = [this](const auto& at, std::uint64_t generations, std::uint64_t lengths,
                                   std::uint64_t payload, std::uint64_t producers) {
      expect("item_text_offset", header_.item_text_offset, at.item_text);
      expect("control_offset", header_.control_offset, at.control);
      expect("participants_offset", header_.participants_offset, at.participants);
      expect("producers_offset", header_.producers_offset, producers);
      expect("generations_offset", header_.generations_offset, generations);
      expect("lengths_offset", header_.lengths_offset, lengths);
      expect("payload_offset", header_.payload_offset, payload);
      expect("total_bytes", header_.total_bytes, at.total);
    };
    if (segment_.kind() == Kind::bounded) {
      const BoundedOffsets at = bounded();
      return expect_all(at, at.generations, at.lengths, at.payload, at.producers);
    }
    if (segment_.kind() == Kind::overwriting) return expect_all(overwriting(), 0, 0, sizeof(PublishedHeader), 0);
    const EventsOffsets at = events();
    expect_all(at, 0, 0, 0, at.producers);
    expect("readers_offset", segment_.events.readers_offset, at.readers);
    expect("chunks_offset", segment_.events.chunks_offset, at.chunks);
    expect("blocks_offset", segment_.events.blocks_offset, at.blocks);
    expect("arena_offset", segment_.events.arena_offset, at.arena);
  }
  [[nodiscard]] BoundedOffsets bounded() const noexcept {
    return bounded_offsets(header_.capacity, header_.slot_bytes, header_.participants, header_.producers,
                           header_.item_text_bytes, segment_.varies());
  }
  [[nodiscard]] OverwritingOffsets overwriting() const noexcept {
    return overwriting_offsets(header_.capacity, header_.slot_bytes / 8, header_.participants, header_.item_text_bytes);
  }
  [[nodiscard]] EventsOffsets events() const noexcept {
    const EventsShape& log = segment_.events;
    return events_offsets(header_.capacity, log.block_bytes, log.chunk_lines, header_.participants, log.readers,
                          header_.producers, header_.item_text_bytes);
  }

  void check_checksum(bool is_log) const {
    SegmentHeader copy = header_;
    copy.checksum = 0;
    std::string bytes(reinterpret_cast<const char*>(&copy), sizeof copy);
    if (is_log) bytes.append(reinterpret_cast<const char*>(&segment_.events), sizeof segment_.events);
    expect("checksum", header_.checksum, crc32(bytes + segment_.item_text));
  }

  Segment& segment_;
  SegmentHeader& header_;
  std::uint64_t file_bytes_ = 0;
};

// Where files cannot be made without a name, a creator links the name and then unlinks the hidden one. It may be
// killed in between, so the opener does that step for it. Returns how many names are left.
[[nodiscard]] inline nlink_t unlink_hidden_names(const std::filesystem::path& folder, int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0 || status.st_nlink <= 1) return status.st_nlink;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    struct stat hidden{};
    if (!entry.path().filename().string().starts_with(".new-") || lstat(entry.path().c_str(), &hidden) != 0) continue;
    if (hidden.st_dev == status.st_dev && hidden.st_ino == status.st_ino) unlink(entry.path().c_str());
  }
  (void)fstat(fd, &status);
  return status.st_nlink;
}

// Opens a regular file of this user, with one name.
[[nodiscard]] inline Descriptor open_regular(const std::filesystem::path& path) {
  // O_NONBLOCK: an open of a FIFO must not wait; it changes nothing for a regular file
  Descriptor file(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const std::string text = path.string();
  if (file.number() < 0) {
    if (errno == ENOENT)
      throw QueueNotFound("there is no queue named " + quoted(path.filename().string()) + " in " +
                          path.parent_path().string());
    if (errno == ELOOP) throw CorruptSegment(text + " is a symbolic link, not a segment");
    if (errno == EISDIR) throw CorruptSegment(text + " is a directory, not a segment");
    if (errno == ENXIO) throw CorruptSegment(text + " is a socket or a device, not a segment");
    raise_system(errno, "opening " + text);
  }
  struct stat status{};
  if (fstat(file.number(), &status) != 0) raise_system(errno, "asking for the owner of " + text);
  if (!S_ISREG(status.st_mode)) throw CorruptSegment(text + " is not a regular file");
  if (status.st_uid != geteuid())
    throw CorruptSegment(text + " belongs to another user: owner=" + std::to_string(status.st_uid) + ", we are " +
                         std::to_string(geteuid()));
  if (const nlink_t links = unlink_hidden_names(path.parent_path(), file.number()); links > 1)
    throw CorruptSegment(text + " has other hard links: links=" + std::to_string(links));
  return file;
}

[[nodiscard]] inline Segment open_segment(std::string_view name, const Options& options) {
  Segment segment;
  segment.name = name;
  check_name(segment.name);
  const std::filesystem::path path = directory_of(options) / segment.name;
  segment.path = path.string();
  Descriptor file = open_regular(path);
  Segment opened{std::move(segment.name), std::move(segment.path), {}, {}, 0, {}, {}, std::move(file)};
  Validation(opened).run();
  return opened;
}

inline void check_kind(const Segment& segment, Kind wanted) {
  if (segment.kind() != wanted)
    throw WrongType(segment.label() + " is a queue of kind '" + name_of(segment.kind()) + "', not '" + name_of(wanted) +
                    "'");
}

// For a program whose items are strings of bytes.
inline void check_bytes(const Segment& segment) {
  if (segment.item_kind() == ItemKind::bytes) return;
  if (segment.item_kind() == ItemKind::object)
    throw WrongType(segment.label() + " carries pickled Python objects; create it with item=bytes or a dtype");
  throw WrongType(segment.label() + " carries records, and the program puts bytes: dtype " + segment.item.numpy_text() +
                  "; name a record of this dtype, or create the queue with item=bytes");
}

// For a program whose items are `mine`.
inline void check_record(const Segment& segment, const Dtype& mine) {
  const std::string name = mine.record_name.empty() ? "its record" : mine.record_name;
  const std::string remedy =
      is_opaque(mine)
          ? "declare its fields by QUEUEDUCT_RECORD, and make them those of np.dtype(" + segment.item.numpy_text() + ")"
          : "create the queue with item=np.dtype(" + mine.numpy_text() + "), or change " + name;
  if (segment.item_kind() != ItemKind::record)
    throw WrongType(segment.label() + " carries " +
                    (segment.item_kind() == ItemKind::bytes ? "bytes" : "pickled Python objects") +
                    ", and the program's items are " + name + "; " +
                    (is_opaque(mine) ? "create the queue with a dtype of its fields" : remedy));
  if (const std::uint64_t bytes = segment.item.bytes(); bytes != mine.bytes())
    throw WrongType("a record must have the " + std::to_string(bytes) + " bytes of the dtype of " + segment.label() +
                    ": " + name + " has " + std::to_string(mine.bytes()) + "; " + remedy);
  if (const std::string found = difference(segment.item, mine, ""); !found.empty())
    throw WrongType(segment.label() + " has other records than " + name + ": " + found + "; " + remedy);
}

// Returns true if the file outlives a crash of the machine. Those of a tmpfs do not.
[[nodiscard]] inline bool is_on_disk(int fd) {
  struct statfs found{};
  constexpr std::uint64_t tmpfs = 0x0102'1994, ramfs = 0x8584'58f6;
  if (fstatfs(fd, &found) != 0) return true;
  const auto type = static_cast<std::uint64_t>(static_cast<std::uint32_t>(found.f_type));
  return type != tmpfs && type != ramfs;
}

}  // namespace queueduct::facade
