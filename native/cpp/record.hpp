// C++ records: which numpy dtype a struct is, from its declared fields, and whether that is a queue's.
//
// Shape      QUEUEDUCT_RECORD(Tick, symbol, price)      once, outside any namespace, after the struct
//            A number, an enum, a char[n], a std::chrono time, and arrays of these need no declaration.
//            Of a struct without one, only the size is compared.
#pragma once

#include <array>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <ratio>
#include <string>
#include <type_traits>
#include <vector>

#include "cpp/dtype.hpp"

namespace queueduct {

// What QUEUEDUCT_RECORD specialises.
template <class Record>
struct Fields {
  static constexpr bool are_declared = false;
};

template <class T>
[[nodiscard]] Dtype dtype_of();

namespace facade {

template <class T>
struct ArrayOf {
  static constexpr bool is_array = false;
};
template <class T, std::size_t n>
struct ArrayOf<T[n]> {
  static constexpr bool is_array = true;
  static constexpr std::size_t count = n;
  using Element = T;
};
template <class T, std::size_t n>
struct ArrayOf<std::array<T, n>> : ArrayOf<T[n]> {};

template <class T>
struct TimeOf {
  static constexpr char kind = 0;
};
template <class Rep, class Period>
struct TimeOf<std::chrono::duration<Rep, Period>> {
  static constexpr char kind = 'm';
  using Unit = Period;
  using Count = Rep;
};
template <class Length>
struct TimeOf<std::chrono::time_point<std::chrono::system_clock, Length>> : TimeOf<Length> {
  static constexpr char kind = 'M';
};

template <class Period>
[[nodiscard]] constexpr const char* unit_of() noexcept {
  if constexpr (std::is_same_v<Period, std::nano>)
    return "ns";
  else if constexpr (std::is_same_v<Period, std::micro>)
    return "us";
  else if constexpr (std::is_same_v<Period, std::milli>)
    return "ms";
  else if constexpr (std::is_same_v<Period, std::ratio<1>>)
    return "s";
  else
    return nullptr;
}

template <class T>
inline constexpr bool is_text = std::is_same_v<T, char> || std::is_same_v<T, char32_t> || std::is_same_v<T, std::byte>;

// What numpy calls a number of that kind and size: single bytes have no order.
[[nodiscard]] inline Dtype scalar(char kind, std::uint64_t number, std::uint64_t bytes, const std::string& unit = "") {
  const bool has_order = bytes > 1 && kind != 'S' && kind != 'V';
  return {(has_order ? "<" : "|") + std::string(1, kind) + std::to_string(number) + unit, {}, {}, bytes};
}

// A text of n characters: char is S, char32_t is U, std::byte is V.
template <class T>
[[nodiscard]] Dtype text(std::uint64_t n) {
  if constexpr (std::is_same_v<T, char32_t>) {
    Dtype found = scalar('U', n, 4 * n);
    found.code[0] = '<';
    return found;
  }
  return scalar(std::is_same_v<T, char> ? 'S' : 'V', n, n);
}

template <class T>
[[nodiscard]] Dtype number() {
  if constexpr (std::is_same_v<T, bool>)
    return scalar('b', 1, 1);
  else if constexpr (std::is_enum_v<T>)
    return number<std::underlying_type_t<T>>();
  else if constexpr (std::is_floating_point_v<T>)
    return scalar('f', sizeof(T), sizeof(T));
  else
    return scalar(std::is_signed_v<T> ? 'i' : 'u', sizeof(T), sizeof(T));
}

template <class T>
[[nodiscard]] Dtype time() {
  static_assert(sizeof(typename TimeOf<T>::Count) == 8 && std::is_signed_v<typename TimeOf<T>::Count>,
                "numpy's times are signed 64-bit numbers");
  static_assert(unit_of<typename TimeOf<T>::Unit>() != nullptr, "use ns, us, ms or s");
  return scalar(TimeOf<T>::kind, 8, 8, std::string("[") + unit_of<typename TimeOf<T>::Unit>() + "]");
}

}  // namespace facade

// Returns the dtype of a type; without code and fields if only its size is known.
template <class T>
Dtype dtype_of() {
  using namespace facade;
  static_assert(std::is_trivially_copyable_v<T>, "an item is copied as bytes: no pointers of its own, no std::string");
  if constexpr (Fields<T>::are_declared) {
    return {"", Fields<T>::list(), {}, sizeof(T), Fields<T>::name};
  } else if constexpr (ArrayOf<T>::is_array) {
    using Element = typename ArrayOf<T>::Element;
    if constexpr (is_text<Element>) {
      return text<Element>(ArrayOf<T>::count);
    } else {
      Dtype found = dtype_of<Element>();
      found.shape.insert(found.shape.begin(), ArrayOf<T>::count);
      return found;
    }
  } else if constexpr (TimeOf<T>::kind != 0) {
    return time<T>();
  } else if constexpr (is_text<T>) {
    return text<T>(1);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return number<T>();
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return scalar('c', sizeof(T), sizeof(T));
  } else {
    return {"", {}, {}, sizeof(T)};
  }
}

namespace facade {

[[nodiscard]] inline bool is_opaque(const Dtype& type) noexcept { return type.code.empty() && type.fields.empty(); }

// An int64 may hold a time, and bytes may hold anything of their size.
[[nodiscard]] inline bool is_same_scalar(const std::string& queues, const std::string& mine) noexcept {
  if (queues == mine) return true;
  if (mine == "<i8") return queues.starts_with("<M8") || queues.starts_with("<m8");
  return mine[1] == 'V' && queues.starts_with("|S");
}

// Returns where the two differ, or nothing. Both are of one size.
[[nodiscard]] inline std::string difference(const Dtype& queues, const Dtype& mine, const std::string& where) {
  const auto differ = [&] {
    const std::string what = where.empty() ? "an item" : "field " + where;
    return what + " is " + queues.numpy_text() + " in the queue, and " + mine.numpy_text() + " in the program";
  };
  if (is_opaque(mine) && queues.bytes() == mine.bytes()) return "";
  if (queues.bytes() != mine.bytes() || queues.shape != mine.shape || queues.code.empty() != mine.code.empty())
    return differ();
  if (!mine.code.empty()) return is_same_scalar(queues.code, mine.code) ? "" : differ();
  const std::string prefix = where.empty() ? "" : where + ".";
  for (const Dtype::Field& field : mine.fields) {
    const Dtype::Field* found = nullptr;
    for (const Dtype::Field& each : queues.fields)
      if (each.name == field.name) found = &each;
    const std::string name = prefix + field.name;
    if (found == nullptr) return "field " + name + " is not in the queue";
    if (found->offset != field.offset)
      return "field " + name + " is at offset " + std::to_string(found->offset) + " in the queue, and at " +
             std::to_string(field.offset) + " in the program";
    if (std::string inner = difference(found->type, field.type, name); !inner.empty()) return inner;
  }
  for (const Dtype::Field& each : queues.fields) {
    bool is_declared = false;
    for (const Dtype::Field& field : mine.fields) is_declared |= field.name == each.name;
    if (!is_declared) return "field " + prefix + each.name + " of the queue is not in the program";
  }
  return "";
}

}  // namespace facade
}  // namespace queueduct

#define QUEUEDUCT_PARENS ()
#define QUEUEDUCT_EXPAND(...) QUEUEDUCT_EXPAND3(QUEUEDUCT_EXPAND3(QUEUEDUCT_EXPAND3(__VA_ARGS__)))
#define QUEUEDUCT_EXPAND3(...) QUEUEDUCT_EXPAND2(QUEUEDUCT_EXPAND2(QUEUEDUCT_EXPAND2(__VA_ARGS__)))
#define QUEUEDUCT_EXPAND2(...) QUEUEDUCT_EXPAND1(QUEUEDUCT_EXPAND1(QUEUEDUCT_EXPAND1(__VA_ARGS__)))
#define QUEUEDUCT_EXPAND1(...) QUEUEDUCT_EXPAND0(QUEUEDUCT_EXPAND0(QUEUEDUCT_EXPAND0(__VA_ARGS__)))
#define QUEUEDUCT_EXPAND0(...) __VA_ARGS__
#define QUEUEDUCT_EACH(use, ...) __VA_OPT__(QUEUEDUCT_EXPAND(QUEUEDUCT_FIRST(use, __VA_ARGS__)))
#define QUEUEDUCT_FIRST(use, first, ...) use(first) __VA_OPT__(QUEUEDUCT_AGAIN QUEUEDUCT_PARENS(use, __VA_ARGS__))
#define QUEUEDUCT_AGAIN() QUEUEDUCT_FIRST
#define QUEUEDUCT_FIELD(member) \
  {#member, offsetof(Declared, member), ::queueduct::dtype_of<decltype(Declared::member)>()},

// Declares the fields of a record, all of them, at most 80. A struct in a namespace is named with it:
// QUEUEDUCT_RECORD(feed::Tick, symbol, price).
#define QUEUEDUCT_RECORD(Record, ...)                                                                               \
  template <>                                                                                                       \
  struct queueduct::Fields<Record> {                                                                                \
    static_assert(std::is_standard_layout_v<Record>, "a record has no bases and no virtual functions");             \
    using Declared = Record;                                                                                        \
    static constexpr bool are_declared = true;                                                                      \
    static constexpr const char* name = #Record;                                                                    \
    static std::vector<::queueduct::Dtype::Field> list() { return {QUEUEDUCT_EACH(QUEUEDUCT_FIELD, __VA_ARGS__)}; } \
  }
