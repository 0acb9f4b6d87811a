// What the tests let a C++ program do: peer COMMAND QUEUE ARGUMENT ... An error goes to stderr, with its class.
#include <queueduct/overwriting/published.h>
#include <queueduct/queueduct.hpp>

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>

static_assert(QUEUEDUCT_HEADER_LOCK_AT == offsetof(queueduct::PublishedHeader, header_lock));
static_assert(QUEUEDUCT_RING_STATE_AT == offsetof(queueduct::PublishedHeader, ring_state));
static_assert(QUEUEDUCT_MESSAGES_AT == sizeof(queueduct::PublishedHeader));
static_assert(QUEUEDUCT_CONTROL_OFFSET_AT == offsetof(queueduct::SegmentHeader, control_offset));
static_assert(QUEUEDUCT_PAGE == queueduct::page_bytes);

namespace feed {

// The ticks of tests/spark/rows.py.
struct Tick {
  char sym[8];
  double px;
  std::chrono::sys_time<std::chrono::microseconds> ts;
  std::int64_t number;
};

enum class Side : std::uint8_t { buy, sell };
struct Level {
  double price;
  float sizes[2];
};
struct Book {
  std::uint32_t id;
  Side side;
  bool is_firm;
  std::array<char, 6> venue;
  char32_t note[3];
  std::int16_t flags;
  Level levels[2];
  std::chrono::nanoseconds age;
};
struct Undeclared {
  std::int64_t words[4];
};

}  // namespace feed

QUEUEDUCT_RECORD(feed::Tick, sym, px, ts, number);
QUEUEDUCT_RECORD(feed::Level, price, sizes);
QUEUEDUCT_RECORD(feed::Book, id, side, is_firm, venue, note, flags, levels, age);

namespace {

using namespace std::chrono_literals;
using feed::Tick;
using Arguments = std::vector<std::string>;

long number(const Arguments& given, std::size_t i) { return i < given.size() ? std::stol(given[i]) : 0; }

Tick tick(std::int64_t number) {
  constexpr const char* names[] = {"ACME", "BOLT", "CORE"};
  Tick made{};
  std::strncpy(made.sym, names[number % 3], sizeof made.sym);
  made.px = static_cast<double>(number) / 4;
  made.ts = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1) + number * 1ms;
  made.number = number;
  return made;
}

std::vector<Tick> ticks(std::int64_t first, std::int64_t count) {
  std::vector<Tick> made;
  for (std::int64_t i = first; i < first + count; ++i) made.push_back(tick(i));
  return made;
}

// QUEUE FIRST COUNT: one a call
void put(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  for (const Tick& each : ticks(number(given, 1), number(given, 2))) out.put(each);
}

// QUEUE FIRST COUNT TIMEOUT_MS: prints how many are in
void put_many(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  const auto timeout = given.size() > 3 ? 1ms * number(given, 3) : queueduct::forever;
  std::cout << out.put_many(ticks(number(given, 1), number(given, 2)), timeout) << "\n";
}

// QUEUE ITEM ...
void put_bytes(const Arguments& given) {
  queueduct::Writer<> out(given[0]);
  if (given.size() == 2)
    out.put(given[1]);
  else
    out.put_many(std::span(given).subspan(1));
}

// QUEUE FIRST BATCH: without end; writes the number of each tick whose put has returned, as a u64
void put_acknowledged(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  const std::int64_t batch = number(given, 2);
  for (std::int64_t first = number(given, 1);; first += batch) {
    if (batch == 1)
      out.put(tick(first));
    else
      out.put_many(ticks(first, batch));
    const std::int64_t last = first + batch;
    if (write(STDOUT_FILENO, &last, sizeof last) != sizeof last) std::abort();
  }
}

// QUEUE BATCH: without end; writes the numbers of each call that has returned, in one write
void get_acknowledged(const Arguments& given) {
  queueduct::BoundedQueue<Tick> queue(given[0]);
  for (;;) {
    std::vector<std::int64_t> numbers;
    for (const Tick& each : queue.get_many(static_cast<std::size_t>(number(given, 1)))) numbers.push_back(each.number);
    const auto bytes = static_cast<ssize_t>(numbers.size() * sizeof numbers[0]);
    if (write(STDOUT_FILENO, numbers.data(), numbers.size() * sizeof numbers[0]) != bytes) std::abort();
  }
}

template <class Queue>
void print_numbers(Queue& queue, const Arguments& given) {
  const auto timeout = 1ms * number(given, 2);
  const long batch = number(given, 3);
  for (long left = number(given, 1); left > 0;) {
    std::vector<Tick> found;
    if (batch > 1)
      found = queue.get_many(static_cast<std::size_t>(std::min(batch, left)), timeout);
    else if (const auto one = queue.get(timeout))
      found.push_back(*one);
    if (found.empty()) throw std::runtime_error("nothing came");
    for (const Tick& each : found) std::cout << each.number << "\n";
    left -= static_cast<long>(found.size());
  }
}

// QUEUE COUNT TIMEOUT_MS BATCH: prints the numbers
void get(const Arguments& given) {
  queueduct::BoundedQueue<Tick> queue(given[0]);
  print_numbers(queue, given);
}
void get_newest(const Arguments& given) {
  queueduct::OverwritingQueue<Tick> queue(given[0]);
  if (const auto newest = queue.peek()) std::cout << "newest " << newest->number << "\n";
  print_numbers(queue, given);
}

// QUEUE LIMIT
void get_bytes(const Arguments& given) {
  queueduct::BoundedQueue<> queue(given[0]);
  if (given.size() == 1)
    std::cout << queue.get(0ms).value_or("(nothing)") << "\n";
  else
    for (const std::string& item : queue.get_many(static_cast<std::size_t>(number(given, 1)), 1s))
      std::cout << item << "\n";
}

// QUEUE TIMEOUT_MS: a put that may find the queue full
void put_within(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  const auto began = std::chrono::steady_clock::now();
  const bool is_in = out.put(tick(0), 1ms * number(given, 1));
  const auto waited = std::chrono::steady_clock::now() - began;
  std::cout << (is_in ? "in" : "full") << (waited >= 1ms * number(given, 1) ? " in time" : " early") << "\n";
}

// QUEUE: opens it as what its second argument says
void open(const Arguments& given) {
  const std::map<std::string, void (*)(const std::string&)> kinds = {
      {"bounded", [](const std::string& name) { queueduct::BoundedQueue<Tick> queue(name); }},
      {"events", [](const std::string& name) { queueduct::EventQueue<Tick> queue(name); }},
      {"overwriting", [](const std::string& name) { queueduct::OverwritingQueue<Tick> queue(name); }},
      {"any", [](const std::string& name) { queueduct::Writer<Tick> queue(name); }},
      {"bytes", [](const std::string& name) { queueduct::Writer<> queue(name); }},
      {"double", [](const std::string& name) { queueduct::Writer<double> queue(name); }},
      {"book", [](const std::string& name) { queueduct::Writer<feed::Book> queue(name); }},
      {"undeclared", [](const std::string& name) { queueduct::Writer<feed::Undeclared> queue(name); }},
  };
  kinds.at(given[1])(given[0]);
}

// QUEUE: one whole record of every kind of field
void put_book(const Arguments& given) {
  queueduct::Writer<feed::Book> out(given[0]);
  feed::Book book{7, feed::Side::sell, true, {'X', 'P', 'A', 'R'}, {}, -5, {{1.5, {2, 3}}, {2.5, {4, 5}}}, 12ns};
  book.note[0] = U'\u00e9';
  out.put(book);
}

// QUEUE THREADS COUNT: each thread puts COUNT, with its own numbers
void put_by_threads(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  std::vector<std::thread> threads;
  for (long t = 0; t < number(given, 1); ++t)
    threads.emplace_back([&, t] {
      for (long i = 0; i < number(given, 2); ++i) out.put(tick(t * number(given, 2) + i));
    });
  for (std::thread& thread : threads) thread.join();
}

// QUEUE COUNT: the handle is used, and then by a forked child, too
void put_by_fork(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  const long count = number(given, 1);
  out.put(tick(0));
  const pid_t child = fork();
  for (long i = 1; i < count; ++i) out.put(tick(child == 0 ? count + i : i));
  if (child == 0) std::_Exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the child failed");
}

// QUEUE: closes all descriptors, as a daemon does
void put_without_descriptors(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  out.put(tick(0));
  for (int fd = 3; fd < 64; ++fd) close(fd);
  out.put(tick(1));
  std::thread([&] {
    try {
      out.put(tick(2));
    } catch (const queueduct::QueueClosed&) {
      std::cout << "closed to another thread\n";
    }
  }).join();
}

// QUEUE: puts, waits for a line on stdin, puts
void put_twice(const Arguments& given) {
  queueduct::Writer<Tick> out(given[0]);
  out.put(tick(0));
  std::cout << "put" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  for (const Tick& each : ticks(1, 1000)) out.put(each);
}

// QUEUE on a disk: puts and stays; a line on stdin ends it
void stay(const Arguments& given) {
  queueduct::EventQueue<Tick> out(given[0]);
  out.put_many(ticks(0, number(given, 1)));
  if (given.size() > 2) out.sync();
  std::cout << out.end() << std::endl;
  std::string line;
  std::getline(std::cin, line);
}

void shut_down(const Arguments& given) { queueduct::BoundedQueue<Tick>(given[0]).shut_down(); }

void print_witnesses(const Arguments&) {
  const queueduct::BootWitnesses found = queueduct::facade::boot_witnesses(true);
  const queueduct::Identity identity = queueduct::facade::own_identity();
  std::cout << found.boot_id[0] << " " << found.boot_id[1] << " " << found.has_clock << " " << found.clock_offset_ns
            << "\n"
            << identity.boot_id[0] << " " << identity.boot_id[1] << " " << getpid() << " " << identity.start_ticks
            << std::endl;
  std::string line;
  std::getline(std::cin, line);
}

// PATH MOUNTS: what process.hpp makes of a table of mounts
void print_is_kernels_own(const Arguments& given) {
  std::cout << queueduct::facade::is_kernels_own(given[0], given[1]) << "\n";
}

// TEXT: what is read of a dtype's text
void print_dtype(const Arguments& given) {
  const auto found = queueduct::facade::DtypeParser::parse(given[0]);
  std::cout << (found ? found->numpy_text() + " " + std::to_string(found->bytes()) : "no dtype") << "\n";
}

const std::map<std::string, void (*)(const Arguments&)> commands = {
    {"put", put},
    {"put_many", put_many},
    {"put_bytes", put_bytes},
    {"put_acknowledged", put_acknowledged},
    {"get_acknowledged", get_acknowledged},
    {"put_within", put_within},
    {"put_book", put_book},
    {"put_by_threads", put_by_threads},
    {"put_by_fork", put_by_fork},
    {"put_without_descriptors", put_without_descriptors},
    {"put_twice", put_twice},
    {"stay", stay},
    {"get", get},
    {"get_newest", get_newest},
    {"get_bytes", get_bytes},
    {"open", open},
    {"shut_down", shut_down},
    {"witnesses", print_witnesses},
    {"is_kernels_own", print_is_kernels_own},
    {"dtype", print_dtype},
};

int fail(const char* what, const std::exception& error) {
  std::cerr << what << ": " << error.what() << "\n";
  return 1;
}

}  // namespace

int main(int count, char** given) {
  std::ios::sync_with_stdio(false);
  try {
    commands.at(given[1])(Arguments(given + 2, given + count));
    return 0;
  } catch (const queueduct::QueueNotFound& error) {
    return fail("QueueNotFound", error);
  } catch (const queueduct::CorruptSegment& error) {
    return fail("CorruptSegment", error);
  } catch (const queueduct::WrongType& error) {
    return fail("WrongType", error);
  } catch (const queueduct::ShutDown& error) {
    return fail("ShutDown", error);
  } catch (const queueduct::TooManyParticipants& error) {
    return fail("TooManyParticipants", error);
  } catch (const std::invalid_argument& error) {
    return fail("invalid_argument", error);
  } catch (const std::exception& error) {
    return fail("another", error);
  }
}
