// An item is known by its id. Its bytes are the id, its length and a pattern of both, so that a torn one shows.
#pragma once

#include <cstdint>
#include <cstring>

namespace queueduct::crash {

inline constexpr std::uint32_t item_limit = 1 << 16;
inline constexpr std::size_t item_header = 8;
inline constexpr std::size_t item_bytes_limit = 1 << 14;

inline void write_item(std::uint32_t id, std::uint16_t length, unsigned char* to) noexcept {
  const std::uint32_t header[2] = {id, length};
  std::memcpy(to, header, sizeof header);
  for (std::size_t i = item_header; i < length; ++i) to[i] = static_cast<unsigned char>(id * 31 + i * 7 + length);
}

// The id of what was got; 0 if it is torn.
template <class History>
[[nodiscard]] std::uint32_t read_item(const History& history, const unsigned char* from,
                                      std::uint64_t length) noexcept {
  std::uint32_t header[2] = {};
  if (length < item_header || length > item_bytes_limit) return 0;
  std::memcpy(header, from, sizeof header);
  if (header[0] == 0 || header[0] >= item_limit || header[1] != length) return 0;
  if (history.items[header[0]].length.load() != length) return 0;
  unsigned char expected[item_bytes_limit];
  write_item(header[0], static_cast<std::uint16_t>(length), expected);
  return std::memcmp(expected, from, length) == 0 ? header[0] : 0;
}

}  // namespace queueduct::crash
