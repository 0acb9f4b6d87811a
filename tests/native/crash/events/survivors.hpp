// What live processes do after a case of the events queue, or while others are stopped in it.
#pragma once

#include <algorithm>

#include "crash/events/script.hpp"

namespace queueduct::crash {

inline constexpr std::int64_t survivors_patience_ns = 2'000 * millisecond;

// Both survivors, in one process with two attachments: to the queue they are two.
class EventsSurvivors {
 public:
  EventsSurvivors(const EventsSegment& segment, EventsHistory& history, const EventsScene& scene)
      : segment_(segment), history_(history), scene_(scene), reader_(segment, today), writer_(segment, today) {
    for (EventsContext* context : {&reading_, &writing_}) {
      if (scene.occupancy.is_rebooted) open_log(*context);
      join(context->attached, probe_);
    }
  }

  // The end of every case: the queue must be as good as new.
  void close(Closing closing) {
    if (closing.attached_before) raise(SIGSTOP);  // until the case has happened
    const std::int64_t begin = monotonic_ns();
    if (closing.producer_first && !is_shut()) put_first();
    read_witness(true);
    if (!is_shut()) put_one();
    if (monotonic_ns() - begin > recovery_limit_ns) probe_.complain("slow");
    read_witness(false);
    check_readers();
    check_blocks();
    if (!is_shut()) put_several();
    if (!is_shut()) finish_plan();
    if (!is_shut()) fill_and_drain();
    check_lines();
  }

  // While others are stopped, and nobody has died: readers go on whatever is held, writers unless it is the lock.
  void go_on() {
    for (std::uint32_t i = 0; i < history_.probes_used; ++i)
      expect(history_, history_.probes[i], static_cast<EventsOp>(history_.probes[i].op));
    const std::uint64_t from = std::max(history_.base.load(), history_.start.load());
    const std::uint64_t end = segment_.end().position();
    if (!may_drop() && look_from(reading_, from) < end)
      probe_.complain("beside a stopped process a reader did not go on");
    const std::uint64_t repairs = segment_.control().repairs;
    if (segment_.control().lock & 0xffff) {
      writing_.patience_ns = 5 * millisecond;
      if (writer_.queue().enter(writer_.line(), writing_.patience_ns) == Entered::yes)
        probe_.complain("a living process lost its lock");
    } else if (!is_shut()) {
      for (int round = 0; round < 3; ++round) {  // memory is used again under whoever reads
        read_witness(round == 0);
        move_mover();
        for (int i = 0; i < 100 && put_items(writing_, {scene_.short_length()}) == 1; ++i) {
        }
        history_.is_full = true;
      }
      (void)put_planned(writing_);  // if nobody is at it
    }
    if (segment_.control().repairs != repairs) probe_.complain("a living process was taken for dead");
  }

 private:
  [[nodiscard]] bool is_shut() const noexcept { return segment_.end().is_closed(); }
  [[nodiscard]] bool may_drop() const noexcept { return scene_.shape.settings.may_drop; }

  // A full budget stays so as long as the mover needs it.
  void put_one() {
    const bool may_be_full = history_.is_full || scene_.occupancy.items == EventsOccupancy::all;
    if (put_items(writing_, {scene_.short_length()}) == 0 && !may_be_full)
      probe_.complain("a put beside nobody did not go in");
  }

  // Others put as many items as a publish of the plan has: an intent that nobody undid would now seem to have happened.
  void put_several() { (void)put_items(writing_, scene_.several()); }

  // A producer that was killed is the first to come again.
  void put_first() {
    bool is_planned = false;
    for (const EventsProbe& probe : history_.probes)
      is_planned |= probe.is_used() && probe.op == static_cast<std::uint8_t>(EventsOp::put_once);
    if (is_planned)
      (void)put_planned(writing_);
    else
      put_one();
  }

  // The producer is started again, with somebody who reads what is in its way: afterwards all of its plan is in.
  void finish_plan() {
    Planned outcome = Planned::full;
    for (int tries = 0; tries < 64 && outcome == Planned::full; ++tries) {
      outcome = put_planned(writing_);
      read_witness(false);
    }
    if (outcome != Planned::done) return probe_.complain("a producer that was started again did not come to its end");
    history_.plan.for_each([&](std::uint32_t id) {
      if (history_.items[id].position == nowhere) probe_.complain("an item of a producer is lost");
    });
    if (put_planned(writing_) != Planned::done) probe_.complain("a plan that is complete was not let be");
    if (!enter(writing_)) return probe_.complain("the lock is not to be had");
    if (!every_line_is_usable(writer_.producers(), owner_word(writing_)))
      probe_.complain("a line of the table of producers has leaked");
    writer_.queue().leave();
  }

  // The witness reads all that it needs, and lets it go.
  void read_witness(bool is_first) {
    EventsSubscription witness;
    probe_.begin_operation();
    if (!enter(reading_)) return probe_.complain("the lock is not to be had");
    const Subscribed subscribed = subscribe(reading_, "witness", 0, witness);
    reader_.queue().leave();
    if (subscribed != Subscribed::yes) return probe_.complain("the witness is not found again");
    ReaderLine& line = reader_.map().readers[witness.line];
    ReadResult found = ReadResult::lost;
    std::uint64_t from = witness.cursor.position;
    if (!(line.place.load() & dropped_bit)) found = read_all(reading_, witness);
    if (found == ReadResult::lost && may_drop()) {
      if (!enter(reading_)) return probe_.complain("the lock is not to be had");
      from = reader_.queue().rejoin(witness.line, witness.cursor);
      reader_.queue().leave();
      found = read_all(reading_, witness);
    } else if (is_first && !may_drop() && from != std::max(history_.base.load(), history_.start.load())) {
      probe_.complain("the witness does not begin where it must");
    }
    if (found != ReadResult::nothing && found != ReadResult::ended)
      probe_.complain("the witness cannot read to the end");
    if (is_first) history_.read_from.store(from);
    if (!move_to(reader_.map(), line, witness.cursor.position)) probe_.complain("the witness cannot commit");
    history_.base.store(witness.cursor.position);
    reader_.queue().participant_table().let_go(reader_lock_number(witness.line));
  }

  // The mover needs nothing any more, unless somebody has it.
  void move_mover() {
    if (!enter(reading_)) return probe_.complain("the lock is not to be had");
    const std::uint32_t line = reader_.log().readers().find("mover", 5);
    if (line != Readers::none && reader_.queue().participant_table().hold(reader_lock_number(line))) {
      if (move_to(reader_.map(), reader_.map().readers[line], segment_.end().position()))
        history_.mover.place = segment_.end().position();
      reader_.queue().participant_table().let_go(reader_lock_number(line));
    }
    reader_.queue().leave();
  }

  // The durable readers are where they must be, the ephemeral ones of the dead are gone.
  void check_readers() {
    if (!enter(reading_)) return probe_.complain("the lock is not to be had");
    (void)reader_.queue().abandon_dead_readers(true);
    check_told();
    check_durable("mover", history_.mover.place);
    check_durable("fresh", history_.fresh.place);
    const Readers& readers = reader_.log().readers();
    for (std::uint32_t i = 0; i < readers.used(); ++i)
      if (readers.kind(i) == ReaderKind::ephemeral) probe_.complain("a dead reader stays");
    (void)reader_.log().reclaim(reader_.queue().backing());
    reader_.queue().leave();
  }

  // Until it says that it knows, the mover will be told that what it had committed is gone.
  void check_told() {
    const std::uint32_t line = reader_.log().readers().find("mover", 5);
    if (!scene_.occupancy.is_rebooted || line == Readers::none) return;
    if (reader_.map().readers[line].beyond != moved_before_boot) probe_.complain("a reader is not told of the cut");
  }

  void check_durable(const char* name, std::uint64_t place) {
    const std::uint32_t line = reader_.log().readers().find(name, static_cast<std::uint32_t>(std::strlen(name)));
    if ((line == Readers::none) != (place == nowhere))
      return probe_.complain("a durable reader came or went by itself");
    if (line == Readers::none) return;
    const std::uint64_t is = reader_.map().readers[line].place;
    if (!may_drop() && is != place && is != std::max(place, history_.start.load()))
      probe_.complain("a durable reader is not where it was");
    if (!reader_.queue().forget_reader(line)) probe_.complain("a dead reader's line is held");
  }

  // Nobody is inside: every block is a kept chunk's, and no memory is forgotten.
  void check_blocks() {
    std::uint64_t used = 0;
    for (std::uint64_t n = segment_.control().head_chunk; n < segment_.control().chunks_made; ++n)
      used += segment_.map().chunk(n).bytes;
    if (segment_.blocks_in_use() != segment_.blocks_of_chunks()) probe_.complain("blocks have leaked");
    if (segment_.control().used_bytes != used) probe_.complain("the bytes in use are miscounted");
    // a dropped reader that looks once more makes the kernel give the page that it looks at
    if (!may_drop() && segment_.memory_of_blocks() > segment_.memory_noted()) probe_.complain("memory has leaked");
  }

  // Twice the whole budget goes through.
  void fill_and_drain() {
    const EventsSettings& settings = scene_.shape.settings;
    for (int round = 0; round < 2; ++round) {
      std::uint64_t put = 0;
      const std::uint64_t most = 2 * settings.max_bytes / settings.item_bytes;
      if (may_drop()) {
        for (; put < 20; ++put) (void)put_items(writing_, {scene_.short_length()});
      } else {
        while (put < most && put_items(writing_, {scene_.short_length()}) == 1) ++put;
        const std::uint64_t smallest = writer_.log().chunk_bytes(settings.first_items, 0);
        if (segment_.control().used_bytes + smallest <= settings.max_bytes &&
            segment_.kept() + 1 < settings.chunk_lines)
          probe_.complain("it holds less than its budget");
      }
      read_witness(false);
    }
    check_blocks();
  }

  void check_lines() {
    EventsAttachment others(segment_);
    std::uint32_t joined = 0;
    while (others.queue().join() == ParticipantTable::Joined::yes) ++joined;
    if (joined + 2 != scene_.shape.settings.participants) probe_.complain("lines of the dead cannot be used again");
  }

  const EventsSegment& segment_;
  EventsHistory& history_;
  const EventsScene& scene_;
  EventsAttachment reader_;
  EventsAttachment writer_;
  EventsProbe& probe_ = history_.probes[survivor_probe];
  EventsContext reading_{reader_, history_, probe_, survivors_patience_ns};
  EventsContext writing_{writer_, history_, probe_, survivors_patience_ns};
};

}  // namespace queueduct::crash
