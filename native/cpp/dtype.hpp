// A numpy dtype as a segment's item text has it, and as a C++ record is declared: one tree for both.
//
// Shape      text = '<f8' | ('array', text, (3, 2)) | ('record', [('name', text, offset), ...], itemsize)
//            These are Python literals. Only literals are read: nothing of the text is run.
// Roles      a program that opens a queue; the text may be anybody's, so every number and every depth is bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queueduct {

struct Dtype {
  struct Field;

  std::string code;                  // of a scalar: '<f8'; empty for a record
  std::vector<Field> fields;         // of a record
  std::vector<std::uint64_t> shape;  // of an array of these
  std::uint64_t element_bytes = 0;   // of one scalar or record
  std::string record_name = {};      // of a declared C++ record; only for messages

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t all = element_bytes;
    for (const std::uint64_t count : shape) all *= count;
    return all;
  }
  // Returns what np.dtype() takes.
  [[nodiscard]] std::string numpy_text() const;
};

struct Dtype::Field {
  std::string name;
  std::uint64_t offset;
  Dtype type;
};

namespace facade {

[[nodiscard]] inline std::string list_of(const std::vector<std::string>& parts) {
  std::string text = "[";
  for (const std::string& part : parts) text += (text.size() > 1 ? ", " : "") + part;
  return text + "]";
}

}  // namespace facade

inline std::string Dtype::numpy_text() const {
  std::string text = "'" + code + "'";
  if (code.empty()) {
    std::vector<std::string> names, formats, offsets;
    for (const Field& field : fields) {
      names.push_back("'" + field.name + "'");
      formats.push_back(field.type.numpy_text());
      offsets.push_back(std::to_string(field.offset));
    }
    text = "{'names': " + facade::list_of(names) + ", 'formats': " + facade::list_of(formats) +
           ", 'offsets': " + facade::list_of(offsets) + ", 'itemsize': " + std::to_string(element_bytes) + "}";
  }
  if (shape.empty()) return text;
  std::string dimensions;
  for (const std::uint64_t count : shape) dimensions += std::to_string(count) + ",";
  return "(" + text + ", (" + dimensions + "))";
}

namespace facade {

// Reads the text of a dtype, by recursive descent. Every function returns false at the first surprise.
class DtypeParser {
 public:
  [[nodiscard]] static std::optional<Dtype> parse(std::string_view text) {
    DtypeParser parser(text);
    Dtype found;
    if (!parser.read_type(found, 0) || !parser.left_.empty() || found.bytes() == 0) return std::nullopt;
    return found;
  }

 private:
  static constexpr int depth_limit = 32;
  static constexpr std::uint64_t bytes_limit = std::uint64_t{1} << 32;  // of a slot

  explicit DtypeParser(std::string_view text) noexcept : left_(text) {}

  [[nodiscard]] bool skip(char expected) noexcept {
    while (left_.starts_with(' ')) left_.remove_prefix(1);
    if (!left_.starts_with(expected)) return false;
    left_.remove_prefix(1);
    return true;
  }

  [[nodiscard]] bool read_number(std::uint64_t& number) noexcept {
    while (left_.starts_with(' ')) left_.remove_prefix(1);
    std::size_t digits = 0;
    for (number = 0; digits < left_.size() && left_[digits] >= '0' && left_[digits] <= '9'; ++digits) {
      number = number * 10 + static_cast<std::uint64_t>(left_[digits] - '0');
      if (number > bytes_limit) return false;
    }
    left_.remove_prefix(digits);
    return digits > 0;
  }

  // A str as Python's repr() writes it. An escape sequence is kept as it is written: a C++ name has none.
  [[nodiscard]] bool read_string(std::string& value) {
    while (left_.starts_with(' ')) left_.remove_prefix(1);
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) return false;
    const char quote = left_[0];
    std::size_t at = 1;
    for (; at < left_.size() && left_[at] != quote; ++at)
      if (left_[at] == '\\') ++at;
    if (at >= left_.size()) return false;
    value = left_.substr(1, at - 1);
    left_.remove_prefix(at + 1);
    return true;
  }

  [[nodiscard]] bool read_type(Dtype& type, int depth) {
    if (depth == depth_limit) return false;
    if (!skip('(')) return read_string(type.code) && measure(type);
    std::string tag;
    if (!read_string(tag) || !skip(',')) return false;
    if (tag == "array") return read_type(type, depth + 1) && skip(',') && read_shape(type) && skip(')');
    return tag == "record" && read_fields(type, depth) && skip(',') && read_number(type.element_bytes) && skip(')') &&
           are_within(type);
  }

  [[nodiscard]] bool read_shape(Dtype& type) {
    if (!skip('(')) return false;
    std::vector<std::uint64_t> shape;
    while (!skip(')')) {
      std::uint64_t count;
      if (!read_number(count)) return false;
      shape.push_back(count);
      (void)skip(',');
    }
    type.shape.insert(type.shape.begin(), shape.begin(), shape.end());
    std::uint64_t all = type.element_bytes;
    for (const std::uint64_t count : type.shape)
      if (__builtin_mul_overflow(all, count, &all) || all > bytes_limit) return false;
    return true;
  }

  [[nodiscard]] bool read_fields(Dtype& type, int depth) {
    if (!skip('[')) return false;
    while (!skip(']')) {
      Dtype::Field field{};
      if (!skip('(') || !read_string(field.name) || !skip(',') || !read_type(field.type, depth + 1) || !skip(',') ||
          !read_number(field.offset))
        return false;
      std::string title;
      if (skip(',') && !read_string(title)) return false;
      if (!skip(')')) return false;
      type.fields.push_back(std::move(field));
      (void)skip(',');
    }
    return true;
  }
  // Sets the size of a scalar from its code: byte order, kind, number, perhaps a unit of time.
  [[nodiscard]] static bool measure(Dtype& type) {
    std::string_view code = type.code;
    if (code.size() < 3 || std::string_view("<>|=").find(code[0]) == code.npos) return false;
    const char kind = code[1];
    if (std::string_view("biufcSUVMm").find(kind) == code.npos) return false;
    std::uint64_t number = 0;
    std::size_t at = 2;
    for (; at < code.size() && code[at] >= '0' && code[at] <= '9'; ++at) {
      number = number * 10 + static_cast<std::uint64_t>(code[at] - '0');
      if (number > bytes_limit) return false;
    }
    const bool is_time = kind == 'M' || kind == 'm';
    if (at == 2 || (at != code.size() && !(is_time && code[at] == '['))) return false;
    type.element_bytes = kind == 'U' ? 4 * number : number;
    return true;
  }

  [[nodiscard]] static bool are_within(const Dtype& type) noexcept {
    for (const Dtype::Field& field : type.fields)
      if (field.offset > type.element_bytes || field.type.bytes() > type.element_bytes - field.offset) return false;
    return true;
  }

  std::string_view left_;
};

}  // namespace facade
}  // namespace queueduct
