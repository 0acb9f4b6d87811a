// A worker of a stress run with any queue and any clock, for _worker.pyx.
#pragma once

#include <memory>
#include <vector>

#include "verification/events_driver.hpp"
#include "verification/overwriting_driver.hpp"
#include "verification/ring_driver.hpp"
#include "verification/slots_driver.hpp"

namespace queueduct {

enum class RowClock : std::uint8_t { none, monotonic, cycles };

class AnyWorker {
 public:
  virtual ~AnyWorker() = default;
  virtual Turn put_some() noexcept = 0;
  virtual Turn get_some() noexcept = 0;
};

template <class Queue, class Record>
class WorkerOn final : public AnyWorker {
 public:
  WorkerOn(const Queue& queue, const Record& record, const StressPlan& plan, StressBoard& board, StressLine& line)
      : queue_(queue),
        items_(plan.batch * plan.item_bytes),
        worker_(queue_, record, plan, items_.data(), board, line) {}
  Turn put_some() noexcept override { return worker_.put_some(); }
  Turn get_some() noexcept override { return worker_.get_some(); }

 private:
  Queue queue_;
  std::vector<std::byte> items_;
  StressWorker<Queue, Record> worker_;
};

template <class Queue>
AnyWorker* make_worker(const Queue& queue, RowClock clock, HistoryWriter* rows, const StressPlan& plan,
                       StressBoard& board, StressLine& line) {
  if (clock == RowClock::none) return new WorkerOn(queue, NoRecording{}, plan, board, line);
  if (clock == RowClock::monotonic)
    return new WorkerOn(queue, Recording<MonotonicClock>(*rows, plan), plan, board, line);
  return new WorkerOn(queue, Recording<CycleCounter>(*rows, plan), plan, board, line);
}

}  // namespace queueduct
