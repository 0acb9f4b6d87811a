// Runs a broken queue between threads and records it: broken_queues FAULT DIRECTORY ITEMS SEED
//
// FAULT is none, no_generation_check, false_empty, double_delivery, lost_item or naive_growing. The directory gets a
// file of rows for each of two producers and two consumers. Prints the capacity, or 0 where there is none.
#include "broken_queues.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace queueduct::testing {

constexpr std::uint64_t item_bytes = 64;
constexpr std::uint64_t file_bytes = std::uint64_t{1} << 28;  // sparse
constexpr std::uint32_t producers = 2;
constexpr std::uint32_t consumers = 2;
constexpr std::uint64_t capacity = 8;

class RowsInFile {
 public:
  RowsInFile(const std::string& directory, std::uint32_t worker) {
    char name[32];
    std::snprintf(name, sizeof name, "/worker-%05u.rows", worker);
    const int fd = open((directory + name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, file_bytes) != 0) std::exit(2);
    words_ = static_cast<std::uint64_t*>(mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    if (words_ == MAP_FAILED) std::exit(2);
    HistoryHeader::write(words_, worker, HistoryHeader::no_reader, 1);
    writer_ = std::make_unique<HistoryWriter>(words_ + HistoryHeader::words, words_ + file_bytes / 8);
  }
  ~RowsInFile() { munmap(words_, file_bytes); }
  RowsInFile(const RowsInFile&) = delete;
  RowsInFile& operator=(const RowsInFile&) = delete;

  [[nodiscard]] HistoryWriter& writer() noexcept { return *writer_; }

 private:
  std::uint64_t* words_ = nullptr;
  std::unique_ptr<HistoryWriter> writer_;
};

// Everybody works until all is put; then close() is called, and consumers go on until the queue says that it has ended.
template <class MakeQueue, class Close>
void run(const std::string& directory, std::uint64_t items, std::uint64_t seed, MakeQueue make_queue, Close close) {
  StressBoard board{};
  const auto work = [&](std::uint32_t worker, bool puts) {
    RowsInFile rows(directory, worker);
    StressPlan plan;
    plan.first_value = std::uint64_t{worker} << 40;
    plan.items = items / producers;
    plan.item_bytes = item_bytes;
    plan.seed = seed + worker;
    plan.tries = 1;
    std::byte item[item_bytes];
    StressLine line{};
    auto queue = make_queue(plan.seed);
    StressWorker worker_on(queue, Recording<MonotonicClock>(rows.writer(), plan), plan, item, board, line);
    while ((puts ? worker_on.put_some() : worker_on.get_some()) == Turn::again) {
    }
  };
  std::vector<std::thread> getting, putting;
  for (std::uint32_t i = 0; i < consumers; ++i) getting.emplace_back(work, i, false);
  for (std::uint32_t i = 0; i < producers; ++i) putting.emplace_back(work, consumers + i, true);
  for (std::thread& thread : putting) thread.join();
  close();
  for (std::thread& thread : getting) thread.join();
}

static int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s FAULT DIRECTORY ITEMS SEED\n", argv[0]);
    return 2;
  }
  const std::string fault = argv[1];
  const std::uint64_t items = std::strtoull(argv[3], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[4], nullptr, 10);
  if (fault == "naive_growing") {
    NaiveGrowing queue(item_bytes);
    run(
        argv[2], items, seed, [&](std::uint64_t s) { return NaiveGrowingQueue(queue, s); },
        [&] { queue.is_closed.store(true); });
    std::puts("0");
    return 0;
  }
  const char* names[] = {"none", "no_generation_check", "false_empty", "double_delivery", "lost_item"};
  for (int i = 0; i < 5; ++i) {
    if (fault != names[i]) continue;
    BrokenRing ring(capacity, item_bytes);
    run(argv[2], items, seed, [&](std::uint64_t s) { return BrokenQueue(ring, static_cast<Fault>(i), s); },
        [&] { ring.is_closed.store(true); });
    std::printf("%llu\n", static_cast<unsigned long long>(capacity));
    return 0;
  }
  std::fprintf(stderr, "no such fault: %s\n", fault.c_str());
  return 2;
}

}  // namespace queueduct::testing

int main(int argc, char** argv) { return queueduct::testing::main(argc, argv); }
