// The six traces of the published format, one step at a time, on raw bytes.
#include <algorithm>
#include <string>

#include "support/check.hpp"
#include "support/overwriting_segment.hpp"

namespace queueduct::testing {

// As the format's traces are drawn: "[X 0 1]  {X ...}  {. aaa}". A letter is a message of that letter's words;
// "..." is a message that nobody has written, or that was taken.
class Stage {
 public:
  explicit Stage(RingState state) : segment_({.capacity = 5, .words = 3}) { segment_.reset(state); }

  void fill(const std::string& letters) {
    for (std::size_t i = 0; i < letters.size(); ++i)
      for (std::size_t word = 0; word < 3 && letters[i] != '.'; ++word)
        segment_.write(segment_.message_at(i) + 8 + 8 * word, word_of(letters[i]));
  }

  // `locked` and `data`: a character a message.
  void expect(char header, std::uint32_t start, std::uint32_t length, const std::string& locked,
              const std::string& data, int line) const {
    CHECK_EQUAL(std::memcmp(segment_.base(), "\x57\x6f\x72\x6b\x20\x69\x73\x20\5\0\0\0\3\0\0\0", 16), 0);
    const std::string is = drawn();
    std::string should = std::string("[") + header + " " + std::to_string(start) + " " + std::to_string(length) + "]";
    for (std::size_t i = 0; i < 5; ++i) should += std::string(" {") + locked[i] + " " + std::string(3, data[i]) + "}";
    check_equal(is, should, __FILE__, line, "the bytes");
  }

  [[nodiscard]] OverwritingSegment& segment() noexcept { return segment_; }

  [[nodiscard]] static std::uint64_t word_of(char letter) noexcept {
    return 0x0101010101010101u * static_cast<unsigned char>(letter);
  }

 private:
  [[nodiscard]] std::string drawn() const {
    std::string text = std::string("[") + mark(16) + " " + std::to_string(segment_.read<std::uint32_t>(24)) + " " +
                       std::to_string(segment_.read<std::uint32_t>(28)) + "]";
    for (std::uint64_t i = 0; i < 5; ++i) {
      text += std::string(" {") + mark(32 + i * 32) + " ";
      for (std::uint64_t word = 0; word < 3; ++word) {
        const auto value = segment_.read<std::uint64_t>(40 + i * 32 + 8 * word);
        text += value == 0 ? '.' : value == word_of(static_cast<char>(value)) ? static_cast<char>(value) : '?';
      }
      text += "}";
    }
    return text;
  }
  [[nodiscard]] char mark(std::uint64_t offset) const { return segment_.read<std::uint64_t>(offset) == 0 ? '.' : 'X'; }

  OverwritingSegment segment_;
};

#define EXPECT(...) stage.expect(__VA_ARGS__, __LINE__)

// Each step of an operation, and what the bytes are after it.
class Stepper {
 public:
  explicit Stepper(Stage& stage) : attached_(stage.segment()), line_(attached_.line()) {}

  void lock_header() { REQUIRE(attached_.queue().enter(line_, 0) == Claim::done); }
  void claim_put() { CHECK_EQUAL(attached_.ring().claim_put(line_, true, claimed_), Claim::done); }
  [[nodiscard]] Claim claim_get() { return attached_.ring().claim_get(line_, claimed_); }
  void unlock_header() { attached_.queue().leave(); }
  void write(char letter) {
    const std::uint64_t data[3] = {Stage::word_of(letter), Stage::word_of(letter), Stage::word_of(letter)};
    attached_.ring().copy_in(claimed_, data, sizeof data);
  }
  void unlock_written() { attached_.ring().publish(claimed_); }
  [[nodiscard]] std::string read() {
    std::uint64_t data[3] = {};
    attached_.ring().copy_out(claimed_, data, sizeof data);
    return {static_cast<char>(data[0]), static_cast<char>(data[1]), static_cast<char>(data[2])};
  }
  void unlock_read() { CHECK(attached_.ring().finish_get(line_, claimed_)); }

 private:
  OverwritingAttachment attached_;
  std::uint32_t line_;
  Claimed claimed_;
};

TEST(trace_1_enqueue_to_empty) {
  Stage stage({0, 0});
  Stepper step(stage);
  EXPECT('.', 0, 0, ".....", ".....");
  step.lock_header();
  EXPECT('X', 0, 0, ".....", ".....");
  step.claim_put();
  EXPECT('X', 0, 1, "X....", ".....");
  step.unlock_header();
  EXPECT('.', 0, 1, "X....", ".....");
  step.write('a');
  EXPECT('.', 0, 1, "X....", "a....");
  step.unlock_written();
  EXPECT('.', 0, 1, ".....", "a....");
}

TEST(trace_2_enqueue_to_full) {
  Stage stage({0, 5});
  stage.fill("abcde");
  Stepper step(stage);
  EXPECT('.', 0, 5, ".....", "abcde");
  step.lock_header();
  EXPECT('X', 0, 5, ".....", "abcde");
  step.claim_put();
  EXPECT('X', 1, 5, "X....", "abcde");
  step.unlock_header();
  EXPECT('.', 1, 5, "X....", "abcde");
  step.write('f');
  EXPECT('.', 1, 5, "X....", "fbcde");
  step.unlock_written();
  EXPECT('.', 1, 5, ".....", "fbcde");
}

TEST(trace_3_enqueue_to_full_with_max_shift) {
  Stage stage({4, 5});
  stage.fill("fghie");
  Stepper step(stage);
  EXPECT('.', 4, 5, ".....", "fghie");
  step.lock_header();
  EXPECT('X', 4, 5, ".....", "fghie");
  step.claim_put();
  EXPECT('X', 0, 5, "....X", "fghie");
  step.unlock_header();
  EXPECT('.', 0, 5, "....X", "fghie");
  step.write('j');
  EXPECT('.', 0, 5, "....X", "fghij");
  step.unlock_written();
  EXPECT('.', 0, 5, ".....", "fghij");
}

TEST(trace_4_dequeue_from_empty) {
  Stage stage({4, 0});
  Stepper step(stage);
  EXPECT('.', 4, 0, ".....", ".....");
  step.lock_header();
  CHECK_EQUAL(step.claim_get(), Claim::empty);
  step.unlock_header();
  EXPECT('.', 4, 0, ".....", ".....");
  Stepper writer(stage);
  for (const char letter : {'a', 'b'}) {
    writer.lock_header();
    writer.claim_put();
    writer.unlock_header();
    writer.write(letter);
    writer.unlock_written();
  }
  EXPECT('.', 4, 2, ".....", "b...a");
  step.lock_header();
  EXPECT('X', 4, 2, ".....", "b...a");
  CHECK_EQUAL(step.claim_get(), Claim::done);
  EXPECT('X', 0, 1, "....X", "b...a");
  step.unlock_header();
  CHECK_EQUAL(step.read(), std::string("aaa"));
  step.unlock_read();
  EXPECT('.', 0, 1, ".....", "b...a");
}

TEST(trace_5_dequeue_from_half_full) {
  Stage stage({0, 3});
  stage.fill("abc");
  Stepper step(stage);
  EXPECT('.', 0, 3, ".....", "abc..");
  step.lock_header();
  EXPECT('X', 0, 3, ".....", "abc..");
  CHECK_EQUAL(step.claim_get(), Claim::done);
  EXPECT('X', 1, 2, "X....", "abc..");
  step.unlock_header();
  EXPECT('.', 1, 2, "X....", "abc..");
  CHECK_EQUAL(step.read(), std::string("aaa"));
  EXPECT('.', 1, 2, "X....", "abc..");
  step.unlock_read();
  EXPECT('.', 1, 2, ".....", "abc..");
}

TEST(trace_6_dequeue_from_shifted) {
  Stage stage({3, 3});
  stage.fill("f..de");
  Stepper step(stage);
  EXPECT('.', 3, 3, ".....", "f..de");
  step.lock_header();
  EXPECT('X', 3, 3, ".....", "f..de");
  CHECK_EQUAL(step.claim_get(), Claim::done);
  EXPECT('X', 4, 2, "...X.", "f..de");
  step.unlock_header();
  EXPECT('.', 4, 2, "...X.", "f..de");
  CHECK_EQUAL(step.read(), std::string("ddd"));
  EXPECT('.', 4, 2, "...X.", "f..de");
  step.unlock_read();
  EXPECT('.', 4, 2, ".....", "f..de");
}

}  // namespace queueduct::testing
