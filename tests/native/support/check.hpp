// A test framework in one screen: TEST(name_that_is_a_promise) { CHECK(...); CHECK_EQUAL(is, should_be); }
//
// A failed check is printed and the test goes on; REQUIRE ends the test, for what nothing after it can do without.
// run_tests() runs those whose name contains argv[1], or all.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <type_traits>
#include <vector>

namespace queueduct::testing {

inline constexpr std::int64_t second = 1'000'000'000;  // in ns

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int failed_checks = 0;

struct Registration {
  Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

struct TestAbandoned {};

template <class T>
void print_value(std::ostream& out, const T& value) {
  if constexpr (std::is_enum_v<T>)
    out << static_cast<long long>(value);
  else
    out << value;
}

inline void report(const char* file, int line, const char* text) {
  ++failed_checks;
  std::printf("%s:%d: failed: %s\n", file, line, text);
}

template <class Is, class Should>
void check_equal(const Is& is, const Should& should, const char* file, int line, const char* text) {
  if (is == should) return;
  std::ostringstream values;
  values << text << ": is ";
  print_value(values, is);
  values << ", should be ";
  print_value(values, should);
  report(file, line, values.str().c_str());
}

inline int run_tests(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was printed before a crash should be there
  const char* wanted = argc > 1 ? argv[1] : "";
  int failed_tests = 0;
  int run = 0;
  for (const Test& test : tests()) {
    if (std::strstr(test.name, wanted) == nullptr) continue;
    const int before = failed_checks;
    try {
      test.body();
    } catch (const TestAbandoned&) {
    }
    const bool passed = failed_checks == before;
    failed_tests += !passed;
    ++run;
    std::printf("%s %s\n", passed ? "ok    " : "FAILED", test.name);
  }
  std::printf("%d tests, %d failed\n", run, failed_tests);
  return failed_tests == 0 && run > 0 ? 0 : 1;
}

}  // namespace queueduct::testing

#define TEST(name)                                                                        \
  static void name();                                                                     \
  static const ::queueduct::testing::Registration registration_of_##name(#name, name);     \
  static void name()

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) ::queueduct::testing::report(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQUAL(is, should) \
  ::queueduct::testing::check_equal((is), (should), __FILE__, __LINE__, #is)

#define REQUIRE(condition)                                           \
  do {                                                               \
    if (!(condition)) {                                              \
      ::queueduct::testing::report(__FILE__, __LINE__, #condition);   \
      throw ::queueduct::testing::TestAbandoned{};                    \
    }                                                                \
  } while (false)
