// Stopping at every step, in every way, is clean: nothing hangs, nothing is used after its end
// (AddressSanitizer, ThreadSanitizer and the fake device check this), and errors are reported and
// stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>

#include "staging/stager.h"
#include "tests/staging/feed.h"
#include "tests/support/fake_device.h"
#include "tests/support/thrown.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {
namespace {

constexpr Step kStopSteps = 7;

struct StoppedFeed : StagedFeed {
  StoppedFeed(Device& device, int slots, Step produced)
      : StagedFeed(device, {.slots = slots, .end = kStopSteps, .produced = produced}) {}

  // Queues work on the next batch and ends its lease immediately, as a trainer does.
  bool consume(Step step) {
    DeviceBatch batch = next();
    if (!batch) return false;
    EXPECT_EQ(host_difference(batch, ring.layout(), step), "");
    compute->call([this, step, view = DeviceView(batch)] {
      EXPECT_EQ(difference(view, ring.layout(), step), "");
    });
    return true;
  }
};

// Calls `body` with a new device for every way of staging and every step.
void at_every_step(const std::function<void(Device&, int slots, Step stop)>& body) {
  for (bool nasty : {false, true}) {
    for (const Staging& staging : every_staging()) {
      if (!nasty && !staging.host_accessible) continue;
      for (Step stop = 0; stop <= kStopSteps; ++stop) {
        SCOPED_TRACE(staging.name() + ", stop at " + std::to_string(stop));
        if (nasty) {
          FakeDevice device({.seed = static_cast<uint64_t>(stop) + 1,
                             .max_delay_us = 60,
                             .host_accessible = staging.host_accessible});
          body(device, staging.slots, stop);
          EXPECT_EQ(device.bytes_written_after_free(), 0);
        } else {
          body(*make_host_device(), staging.slots, stop);
        }
      }
    }
  }
}

TEST(StagerStop, DestroyingItAtEveryStep) {
  at_every_step([](Device& device, int slots, Step stop) {
    StoppedFeed feed(device, slots, kStopSteps);
    for (Step step = 0; step < stop; ++step) ASSERT_TRUE(feed.consume(step));
  });
}

TEST(StagerStop, TheStreamMayGoFirst) {
  at_every_step([](Device& device, int slots, Step stop) {
    StoppedFeed feed(device, slots, kStopSteps);
    for (Step step = 0; step < stop; ++step) ASSERT_TRUE(feed.consume(step));
    feed.compute.reset();
  });
}

TEST(StagerStop, StoppingTheRingEndsTheFeed) {
  at_every_step([](Device& device, int slots, Step stop) {
    StoppedFeed feed(device, slots, kStopSteps);
    for (Step step = 0; step < stop; ++step) ASSERT_TRUE(feed.consume(step));
    feed.ring.stop();
    EXPECT_FALSE(feed.next());
    EXPECT_FALSE(feed.next());
  });
}

TEST(StagerStop, StoppingTheRingWakesABlockedNext) {
  at_every_step([](Device& device, int slots, Step stop) {
    StoppedFeed feed(device, slots, stop);  // the producer stops there
    for (Step step = 0; step < stop; ++step) ASSERT_TRUE(feed.consume(step));
    std::thread stopper([&, consumer = gettid()] {
      EXPECT_TRUE(wait_until([&] { return is_asleep(consumer); }));
      feed.ring.stop();
    });
    EXPECT_FALSE(feed.next());
    stopper.join();
  });
}

TEST(StagerStop, AnErrorReachesNextEveryTime) {
  at_every_step([](Device& device, int slots, Step stop) {
    if (stop == kStopSteps) return;  // after the end there is nothing to stop
    StoppedFeed feed(device, slots, stop);
    for (Step step = 0; step < stop; ++step) ASSERT_TRUE(feed.consume(step));
    std::thread stopper([&] {
      feed.ring.stop(std::make_exception_ptr(std::runtime_error("the budget is spent")));
    });
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(thrown_by<std::runtime_error>([&] { feed.next(); }), "the budget is spent");
    }
    stopper.join();
  });
}

TEST(StagerStop, StoppingWhileALeaseIsHeld) {
  at_every_step([](Device& device, int slots, Step stop) {
    if (stop == kStopSteps) return;
    StoppedFeed feed(device, slots, kStopSteps);
    for (Step step = 0; step < stop; ++step) ASSERT_TRUE(feed.consume(step));
    DeviceBatch held = feed.next();
    ASSERT_TRUE(held);
    feed.ring.stop();
    held.synchronize();
    EXPECT_EQ(difference(DeviceView(held), feed.ring.layout(), stop), "");
  });
}

// The device fails permanently after any number of operations: the consumer gets the error,
// immediately or from the copying thread, and everything can be destroyed.
TEST(StagerStop, AFailingDeviceIsAnErrorForTheConsumer) {
  for (const Staging& staging : every_staging()) {
    for (int64_t operations = 0; operations < 40; ++operations) {
      SCOPED_TRACE(staging.name() + ", after " + std::to_string(operations));
      FakeDevice device({.max_delay_us = 60,
                         .host_accessible = staging.host_accessible,
                         .operations_left = operations});
      {
        StagedFeed feed(device, {.slots = staging.slots, .end = 100});
        auto consume_all = [&] {
          while (DeviceBatch batch = feed.next()) {
          }
        };
        for (int i = 0; i < 2; ++i) {
          EXPECT_THAT(thrown_by<std::runtime_error>([&] { consume_all(); }),
                      ::testing::HasSubstr("the device has failed"));
        }
      }
      EXPECT_EQ(device.bytes_written_after_free(), 0);
    }
  }
}

// The same, but the consumer does not call next() again: queued work must still end before the
// memory that it uses is freed, even if the event after it could not be recorded.
TEST(StagerStop, TakingDownAFailedDeviceWaitsForItsWork) {
  for (const Staging& staging : every_staging()) {
    for (int64_t operations = 0; operations < 14; ++operations) {
      SCOPED_TRACE(staging.name() + ", after " + std::to_string(operations));
      FakeDevice device({.max_delay_us = 500,
                         .host_accessible = staging.host_accessible,
                         .operations_left = operations});
      {
        StoppedFeed feed(device, staging.slots, kStopSteps);
        try {
          feed.consume(0);
        } catch (const std::runtime_error& error) {
          EXPECT_THAT(error.what(), ::testing::HasSubstr("the device has failed"));
        }
      }
      EXPECT_EQ(device.bytes_written_after_free(), 0);
    }
  }
}

}  // namespace
}  // namespace stoker::testing
