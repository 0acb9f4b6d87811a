// What one does and dies of between two steps of another: whoever asks whether somebody lives has looked before.
#define QUEUEDUCT_FAILPOINTS

#include <cstring>
#include <functional>
#include <string>

#include "support/check.hpp"
#include "support/events_for_tests.hpp"
#include "support/overwriting_segment.hpp"

namespace queueduct::testing {

// When this point is reached for the first time, the deed is done there.
class Meanwhile {
 public:
  Meanwhile(const char* point, std::function<void()> deed) {
    point_ = point;
    deed_ = std::move(deed);
    failpoint::armed = [](const char* name) {
      if (std::strcmp(name, point_) != 0) return;
      failpoint::disarm();
      deed_();
      was_reached_ = true;
    };
    was_reached_ = false;
  }
  ~Meanwhile() { failpoint::disarm(); }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

  [[nodiscard]] static bool was_reached() noexcept { return was_reached_; }

 private:
  static inline const char* point_ = nullptr;
  static inline std::function<void()> deed_;
  static inline bool was_reached_ = false;
};

static void keep_last(EventsAttachment& attached, std::uint64_t items) {
  const Inside inside(attached);
  attached.queue().keep_last(items);
}

TEST(what_a_durable_reader_committed_before_it_died_stays_committed) {
  for (const bool may_drop : {false, true}) {
    EventsSegment segment({.may_drop = may_drop});
    EventsAttachment attached(segment);
    put_each(attached, 0, 30);
    std::optional<EventsAttachment> dying(std::in_place, segment);
    EventsReader reader(*dying, 0, "durable");
    CHECK(reader.read(20) == counted(0, 20));
    {
      const Meanwhile meanwhile("readers.before_question", [&] {
        CHECK(reader.commit());
        dying.reset();
      });
      keep_last(attached, 20);  // from 10 on
      CHECK(meanwhile.was_reached());
    }
    CHECK(EventsReader(attached, 0, "durable").read() == counted(20, 10));
  }
}

TEST(a_durable_reader_that_died_before_it_committed_goes_on_with_what_is_kept) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  put_each(attached, 0, 30);
  std::optional<EventsAttachment> dying(std::in_place, segment);
  EventsReader reader(*dying, 0, "durable");
  CHECK(reader.read(20) == counted(0, 20));
  {
    const Meanwhile meanwhile("readers.before_question", [&] { dying.reset(); });
    keep_last(attached, 20);
    CHECK(meanwhile.was_reached());
  }
  std::uint32_t slowest = 0;
  CHECK_EQUAL(attached.log().readers().least_place(30, slowest), 10u);
  CHECK(EventsReader(attached, 0, "durable").read() == counted(10, 20));
}

// A writer that has claimed its place, and what it does when it goes on.
class SlowWriter {
 public:
  SlowWriter(OverwritingAttachment& attached, std::uint64_t number)
      : attached_(attached), message_(attached.ring().message_bytes() / 8, number) {
    const std::uint32_t line = attached.line();
    REQUIRE(attached.queue().enter(line, 0) == Claim::done);
    CHECK_EQUAL(attached.ring().claim_put(line, true, claimed_), Claim::done);
    attached.queue().leave();
  }
  void publish_and_die() {
    attached_.ring().copy_in(claimed_, message_.data(), attached_.ring().message_bytes());
    attached_.ring().publish(claimed_);
    attached_.die();
  }

 private:
  OverwritingAttachment& attached_;
  std::vector<std::uint64_t> message_;
  Claimed claimed_;
};

TEST(a_message_that_was_published_before_its_writer_died_is_got) {
  OverwritingSegment segment({.capacity = 2, .words = 2});
  OverwritingAttachment attached(segment);
  OverwritingAttachment dying(segment);
  SlowWriter writer(dying, 7);
  (void)attached.line();
  const Meanwhile meanwhile("message.before_question", [&] { writer.publish_and_die(); });
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get(number), Claim::done);
  CHECK(meanwhile.was_reached());
  CHECK_EQUAL(number, 7u);
  CHECK_EQUAL(attached.ring().fates().torn, 0u);
}

TEST(a_message_that_was_published_before_its_writer_died_is_overwritten_and_not_torn) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  OverwritingAttachment attached(segment);
  OverwritingAttachment dying(segment);
  SlowWriter writer(dying, 7);
  (void)attached.line();
  const Meanwhile meanwhile("message.before_question", [&] { writer.publish_and_die(); });
  CHECK_EQUAL(attached.put(8), Claim::done);
  CHECK(meanwhile.was_reached());
  CHECK_EQUAL(attached.ring().fates().torn, 0u);
  CHECK_EQUAL(attached.ring().fates().overwritten, 1u);
}

// At each step from the ring to the cell, and until the release: a join would end while the message is nowhere.
TEST(a_message_that_is_being_leased_is_seen_at_every_step) {
  OverwritingSegment segment({.capacity = 2, .words = 2});
  OverwritingAttachment attached(segment);
  OverwritingAttachment other(segment);
  static OverwritingShared* looking = nullptr;
  static int looks = 0;
  static const char* missed = nullptr;
  looking = &other.queue();
  CHECK_EQUAL(attached.put(7), Claim::done);
  CHECK(!looking->is_all_done());
  OverwritingLease lease(attached.queue());
  REQUIRE(lease.join() == ParticipantTable::Joined::yes);
  LeasedMessage leased;
  std::uint64_t count = 0;
  failpoint::armed = [](const char* name) {
    ++looks;
    if (looking->is_all_done() && missed == nullptr) missed = name;
  };
  CHECK_EQUAL(lease.try_claim(&leased, 1, 0, count), Claim::done);
  failpoint::disarm();
  CHECK_EQUAL(std::string(missed == nullptr ? "" : missed), std::string());
  CHECK(looks > 20);
  CHECK(!looking->is_all_done());
  lease.release(&leased, count);
  CHECK(looking->is_all_done());
}

}  // namespace queueduct::testing
