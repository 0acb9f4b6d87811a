// The participant line of a lease: whether it is this process's, and which thread is noted as the lease's holder.
//
// Roles      the lease that has it, one call at a time. `Queue` is any queue with leases.
// Invariants as of the lease: H2, H4 and H5 of ring/lease.hpp and overwriting/lease.hpp.
#pragma once

#include "segment/participants.hpp"
#include "segment/rest.hpp"

namespace queueduct {

template <class Queue>
class LeaseLine {
 public:
  explicit LeaseLine(Queue& queue) noexcept : queue_(&queue) {}

  // H4
  [[nodiscard]] bool is_ours() const noexcept { return is_joined_ && generation_ == table().generation(); }

  // The queue's join_apart() joins `line`, which is its number, or a Participant.
  template <class Line>
  [[nodiscard]] ParticipantTable::Joined join(Line& line) noexcept {
    generation_ = table().generation();
    const ParticipantTable::Joined joined = queue_->join_apart(line);
    is_joined_ = joined == ParticipantTable::Joined::yes;
    return joined;
  }
  // H5: the line is the thread's until set_apart() makes it the lease's, and again after take_back().
  void borrow() noexcept {
    is_joined_ = false;
    generation_ = table().generation();
  }
  void set_apart(std::uint32_t number) noexcept {
    QUEUEDUCT_FAILPOINT("lease.before_set_apart");
    std::uint32_t line = 0;
    generation_ = table().generation();
    is_joined_ = table().set_apart(line) && line == number;
    QUEUEDUCT_FAILPOINT("lease.set_apart");
  }
  void take_back(std::uint32_t number) noexcept {
    QUEUEDUCT_FAILPOINT("lease.before_take_back");
    table().take_back(number);
    is_joined_ = false;
  }
  // keeps H2
  void let_go(std::uint32_t number) noexcept {
    if (!is_ours()) return;
    QUEUEDUCT_FAILPOINT("lease.before_let_go");
    table().let_go(number);
    QUEUEDUCT_FAILPOINT("lease.let_go");
    is_joined_ = false;
    forget_holder();
  }

  void note_holder() noexcept {
    noted_at_ = queue_->rest().note();
    is_noted_ = true;
  }
  void forget_holder() noexcept {
    if (!is_noted_) return;
    is_noted_ = false;
    queue_->rest().forget(noted_at_);
    queue_->wake_the_rest();
  }

 private:
  [[nodiscard]] ParticipantTable& table() const noexcept { return queue_->participant_table(); }

  Queue* queue_;
  std::uint32_t generation_ = 0;
  std::uint32_t noted_at_ = Rest::not_noted;  // in the list of threads that have leases
  bool is_noted_ = false;
  bool is_joined_ = false;
};

}  // namespace queueduct
