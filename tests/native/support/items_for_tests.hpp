// Items as the native tests put and get them: a number in one slot, or bytes that say whether they are whole.
#pragma once

#include <optional>
#include <vector>

#include "support/segment.hpp"

namespace queueduct::testing {

// Numbers, of one slot each.

[[nodiscard]] inline Outcome put_number(Attachment& attached, std::uint64_t number) {
  return try_put_bytes(attached.ring(), attached.ledger(), &number, sizeof number);
}

[[nodiscard]] inline std::uint64_t read_claimed(Attachment& attached, const Peeked& peeked) {
  std::uint64_t number = 0;
  copy_out(attached.ring(), peeked.span.position, &number, sizeof number);
  return number;
}

[[nodiscard]] inline Outcome get_number(Attachment& attached, std::uint64_t& number) {
  Peeked peeked;
  for (;;) {
    const Outcome outcome = peek(attached.ring(), attached.ledger(), peeked);
    if (outcome != Outcome::done) return outcome;
    if (!claim_pop(attached.ring(), attached.ledger(), peeked.span)) continue;
    number = read_claimed(attached, peeked);
    release_copied(attached.ring(), attached.ledger(), peeked.span);
    return Outcome::done;
  }
}

// The steps of a put, one at a time.

[[nodiscard]] inline Outcome claim_slots(Attachment& attached, std::uint64_t slots, Span& span) {
  return claim_push(
      attached.ring(), attached.ledger(), slots,
      [slots](std::uint64_t ready) { return ready == slots ? slots : 0; }, span);
}

[[nodiscard]] inline Outcome claim_one(Attachment& attached, Span& span) { return claim_slots(attached, 1, span); }

inline void write_claimed(Attachment& attached, Span span, std::uint64_t number) {
  copy_in(attached.ring(), span.position, &number, sizeof number);
  if (attached.ring().lengths != nullptr) write_lengths(attached.ring(), span, sizeof number);
}

// Bytes of any length, each of which follows from the item's number and its place.

using Bytes = std::vector<unsigned char>;

[[nodiscard]] inline Bytes pattern(std::uint32_t number, std::size_t length) {
  Bytes bytes;
  bytes.reserve(length + 1);  // so that an empty item has an address, too
  bytes.resize(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<unsigned char>(number * 31 + i * 7 + length);
  return bytes;
}

[[nodiscard]] inline Outcome put_bytes(Attachment& attached, const Bytes& bytes) {
  return try_put_bytes(attached.ring(), attached.ledger(), bytes.data(), bytes.size());
}

[[nodiscard]] inline std::optional<Bytes> get_bytes(Attachment& attached) {
  Peeked peeked;
  for (;;) {
    if (peek(attached.ring(), attached.ledger(), peeked) != Outcome::done) return std::nullopt;
    if (!claim_pop(attached.ring(), attached.ledger(), peeked.span)) continue;
    Bytes bytes = pattern(0, peeked.bytes);
    finish_pop(attached.ring(), attached.ledger(), peeked, bytes.data());
    return bytes;
  }
}

}  // namespace queueduct::testing
