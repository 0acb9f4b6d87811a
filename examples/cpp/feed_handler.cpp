// A feed handler: reads ticks as lines "SYMBOL PRICE SIZE" from stdin, and puts them into a queue.
//
//   feed_handler QUEUE
//
// The queue is of any kind that C++ can write: bounded, events or overwriting. Python has made it:
//
//   import numpy as np, queueduct
//   tick = np.dtype([("symbol", "S8"), ("price", "f8"), ("received", "M8[ns]"), ("size", "u4")], align=True)
//   queueduct.EventQueue.create("ticks", item=tick)
#include <queueduct/queueduct.hpp>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

struct Tick {
  char symbol[8];
  double price;
  std::chrono::sys_time<std::chrono::nanoseconds> received;
  std::uint32_t size;
};
QUEUEDUCT_RECORD(Tick, symbol, price, received, size);

namespace {

constexpr std::size_t batch_limit = 256;
volatile std::sig_atomic_t is_stopping = 0;

// Returns false for a line that is no tick.
bool parse(const std::string& line, Tick& tick) {
  std::istringstream fields(line);
  std::string symbol;
  tick = {};
  if (!(fields >> symbol >> tick.price >> tick.size) || symbol.size() > sizeof tick.symbol) return false;
  std::memcpy(tick.symbol, symbol.data(), symbol.size());
  tick.received = std::chrono::system_clock::now();
  return true;
}

// Puts the whole batch. A full queue makes us wait for its consumers, but never longer than a second at a time, so that
// we end when we are told to. Returns how many are in.
std::size_t put_all(queueduct::Writer<Tick>& queue, std::span<const Tick> batch) {
  std::size_t put = 0;
  while (put < batch.size() && !is_stopping) put += queue.put_many(batch.subspan(put), std::chrono::seconds(1));
  return put;
}

}  // namespace

int main(int count, char** given) {
  if (count != 2) {
    std::fprintf(stderr, "usage: feed_handler QUEUE\n");
    return 2;
  }
  std::signal(SIGTERM, [](int) { is_stopping = 1; });
  std::ios::sync_with_stdio(false);
  std::size_t put = 0, refused = 0;
  try {
    queueduct::Writer<Tick> queue(given[1]);
    std::vector<Tick> batch;
    for (std::string line; !is_stopping && std::getline(std::cin, line);) {
      Tick tick;
      if (parse(line, tick))
        batch.push_back(tick);
      else
        ++refused;
      // what has arrived goes in at once; a burst goes in batches
      if (batch.size() < batch_limit && std::cin.rdbuf()->in_avail() > 0) continue;
      put += put_all(queue, batch);
      batch.clear();
    }
    put += put_all(queue, batch);
  } catch (const queueduct::ShutDown&) {
    std::fprintf(stderr, "the queue was shut down\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("%zu ticks put, %zu lines refused\n", put, refused);
}
