// Verdicts of made-up measurements: each names the slow stage, gives the change that arithmetic
// gives, and lists as unknown what was not measured.

#include "tools/profile/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

// A fed device: 100 rows per step of 100 ms, which is 1000 images/s. A row takes 1 ms to fill and 1
// ms to read; there are two workers and four I/O threads.
ProfileMeasurements fed() {
  ProfileMeasurements profile;
  profile.shape = {.rows = 100,
                   .devices = 1,
                   .workers = 2,
                   .io_threads = 4,
                   .ring_depth = 4,
                   .slots = 0,
                   .zero_copy = true,
                   .cores = 4};
  RunMeasurements& run = profile.measured;
  run.steps = 100;
  run.read_s = {1e-3};
  run.fill_cpu_s = {1e-3};
  run.copy_s = {1e-3};
  run.hold_s = {95e-3};
  run.rest_s = {5e-3};
  run.pixels_share = 0.1;
  run.own_cores = 1;
  run.other_cores = 0;
  profile.storage = {.warm = 4000, .warm_twice = 4000};
  return profile;
}

// Fills in what the run would have measured if the model were exact.
Verdict verdict_of(ProfileMeasurements profile) {
  RunMeasurements& run = profile.measured;
  run.samples_per_second = 1;
  const ModelledRun truth = FeedWhatIf(profile.shape, run, -1).modelled({});
  run.samples_per_second = truth.samples_per_second;
  run.split.step = truth.step_s;
  run.split.input_wait = truth.input_wait_s;
  run.split.copy_wait = truth.copy_wait_s;
  run.split.compute = truth.step_s - truth.input_wait_s - truth.copy_wait_s;
  run.busy_workers = std::min<double>(
      profile.shape.workers, truth.samples_per_second * run.fill_cpu_s[0] / run.worker_cpu_speed);
  return diagnose(profile);
}

// A feed whose rows take 1 ms was measured at full speed: 1,600 images/s of 2 workers, of which the
// model says 2,000. So a row takes 1.25 ms in truth, and other devices get what such rows allow.
TEST(FeedWhatIf, OtherDevicesKeepTheirStepsAndTheRowsTakeWhatTheModelLeavesOut) {
  ProfileMeasurements profile = fed();
  profile.measured.hold_s = profile.measured.rest_s = {1e-9};
  profile.measured.samples_per_second = 1600;
  profile.shape.io_threads = 0;
  profile.measured.read_s.clear();
  const FeedWhatIf feed(profile.shape, profile.measured, -1);
  ASSERT_TRUE(feed.possible());
  EXPECT_NEAR(feed.predict({}).samples_per_second, 1600, 1e-6);
  // Two devices of 400 images/s each: the steps limit, exactly.
  const auto fed_ones = feed.predict({.rows = 40, .devices = 2, .step_s = 0.1});
  EXPECT_NEAR(fed_ones.samples_per_second, 800, 0.1);
  EXPECT_NEAR(fed_ones.waiting_share, 0, 1e-3);
  // Two of 2,000: the rows limit, at what was measured.
  const auto starved = feed.predict({.rows = 40, .devices = 2, .step_s = 0.02});
  EXPECT_NEAR(starved.samples_per_second, 1600, 20);
  EXPECT_NEAR(starved.waiting_share, 0.6, 0.01);
  // With two workers and two cores more: twice as many.
  const auto more =
      feed.predict({.workers = 2, .cores = 2, .rows = 40, .devices = 2, .step_s = 0.02});
  EXPECT_NEAR(more.samples_per_second, 3200, 40);
}

// Two workers get 0.3 of a core each beside others, and the rest of the process a tenth of that.
// Alone on two cores a row takes 1.1 ms in all, whatever rate was measured beside the others.
TEST(FeedWhatIf, CoresWithoutOtherWorkAreModelledAsTheyWillBe) {
  ProfileMeasurements profile = fed();
  profile.shape.cores = 2;
  RunMeasurements& run = profile.measured;
  run.hold_s = run.rest_s = {1e-9};
  run.worker_cpu_speed = 0.3;
  run.worker_cores = 0.6;
  run.own_cores = 0.66;
  run.other_cores = 1.34;
  run.read_s = {1e-6};
  for (const double measured : {450, 600}) {
    run.samples_per_second = measured;
    const FeedWhatIf feed(profile.shape, run, -1);
    EXPECT_NEAR(feed.predict({.undisturbed = true}).samples_per_second, 2 / 1.1e-3, 40);
  }
}

// Steps of 20 ms beside others, and of 10 ms where they replayed a batch.
TEST(FeedWhatIf, StepsWithoutOtherWorkAreThoseThatReplayedABatch) {
  ProfileMeasurements profile = fed();
  RunMeasurements& run = profile.measured;
  run.hold_s = {19e-3};
  run.rest_s = {1e-3};
  run.fill_cpu_s = run.read_s = {1e-7};
  run.samples_per_second = 5000;
  const FeedWhatIf feed(profile.shape, run, 10000);
  EXPECT_NEAR(feed.predict({.undisturbed = true}).unbounded, 10000, 100);
  EXPECT_NEAR(feed.predict({.ring_depth = 4}).samples_per_second, 5000, 100);
}

TEST(FeedWhatIf, TheNumberOfWorkersThatWasTriedGivesTheRateThatItGave) {
  ProfileMeasurements profile = fed();
  profile.shape.workers = 1;
  profile.measured.samples_per_second = 500;
  profile.measured.fill_cpu_s = {2e-3};
  const FeedWhatIf feed(profile.shape, profile.measured, -1, {2, 1, 777});
  EXPECT_EQ(feed.predict({.workers = 1}).samples_per_second, 777);
  EXPECT_NE(feed.predict({.workers = 2}).samples_per_second, 777);
}

TEST(Verdict, AFedDeviceIsItself) {
  const Verdict verdict = verdict_of(fed());
  EXPECT_EQ(verdict.limit, Limit::device);
  EXPECT_GT(verdict.confidence, 0.9);
  EXPECT_TRUE(verdict.recommendations.empty());
}

// As on a host that trains; not if the feed hardly works.
TEST(Verdict, AFeedThatTakesCoresFromAFedDeviceIsSaid) {
  ProfileMeasurements profile = fed();
  profile.replayed.steps = 20;
  profile.replayed.samples_per_second = 1300;
  EXPECT_THAT(verdict_of(profile).detail, HasSubstr("1.30 times"));
  profile.measured.fill_cpu_s = {1e-5};
  EXPECT_EQ(verdict_of(profile).detail, "");
}

TEST(Verdict, FewStepsAreSaidAndTrustedLess) {
  ProfileMeasurements profile = fed();
  profile.measured.steps = 4;
  const Verdict verdict = verdict_of(profile);
  EXPECT_LT(verdict.confidence, 0.8);
  EXPECT_THAT(verdict.confidence_text, HasSubstr("only 4 steps"));
}

TEST(Verdict, DecodingLimitsAndWorkersAreRecommended) {
  ProfileMeasurements profile = fed();
  profile.shape.workers = 1;
  profile.measured.fill_cpu_s = {2e-3};  // 500 images/s
  const Verdict verdict = verdict_of(profile);
  EXPECT_EQ(verdict.limit, Limit::decode);
  EXPECT_NEAR(verdict.waiting_share, 0.5, 0.02);
  const auto found =
      std::find_if(verdict.recommendations.begin(), verdict.recommendations.end(),
                   [](const Recommendation& each) { return each.what == "+1 worker"; });
  ASSERT_NE(found, verdict.recommendations.end()) << verdict.recommendations.front().what;
  EXPECT_NEAR(found->samples_per_second, 1000, 20);
  EXPECT_LT(found->waiting_share, 0.04);
}

TEST(Verdict, NoRecommendationAsksForWhatTheMachineHasNot) {
  ProfileMeasurements profile = fed();
  profile.shape.cores = 2;
  profile.shape.machine_cores = 2;
  profile.measured.fill_cpu_s = {8e-3};  // 250 images/s by two workers on two cores
  profile.measured.own_cores = 2;
  const Verdict full = verdict_of(profile);
  EXPECT_EQ(full.limit, Limit::decode);
  EXPECT_TRUE(full.recommendations.empty()) << full.recommendations.front().what;
  ASSERT_EQ(full.larger_machine.size(), 1u);
  EXPECT_THAT(full.larger_machine[0].what, HasSubstr("a machine with"));
  EXPECT_GT(full.larger_machine[0].samples_per_second, 900);

  profile.shape.machine_cores = 4;  // this process may use two of them
  const Verdict bound = verdict_of(profile);
  ASSERT_EQ(bound.recommendations.size(), 1u);
  EXPECT_EQ(bound.recommendations[0].what, "+2 cores with a worker on each");

  profile.shape.cores = 4;  // two are free
  const Verdict idle = verdict_of(profile);
  ASSERT_EQ(idle.recommendations.size(), 1u);
  EXPECT_EQ(idle.recommendations[0].what, "+2 workers");
  EXPECT_EQ(idle.larger_machine.size(), 1u);
}

// The process waits for its own quota, and nobody else uses the cores.
TEST(Verdict, MoreOfAQuotaIsRecommended) {
  ProfileMeasurements profile = fed();
  profile.shape.cores = 1.5;
  profile.shape.machine_cores = 2;
  profile.measured.fill_cpu_s = {8e-3};
  profile.measured.own_cores = 1.5;
  profile.measured.worker_cpu_speed = 0.7;
  const Verdict verdict = verdict_of(profile);
  ASSERT_EQ(verdict.recommendations.size(), 1u);
  EXPECT_EQ(verdict.recommendations[0].what, "+0.5 cores");
  EXPECT_EQ(verdict.recommendations[0].change, FeedChange{.cores = 0.5});
}

TEST(Verdict, PixelWorkIsToldFromDecoding) {
  ProfileMeasurements profile = fed();
  profile.measured.fill_cpu_s = {4e-3};
  profile.measured.pixels_share = 0.7;
  EXPECT_EQ(verdict_of(profile).limit, Limit::pixels);
}

TEST(Verdict, StorageIsToldFromTooFewWhoAsk) {
  ProfileMeasurements profile = fed();
  profile.measured.read_s = {8e-3};  // 500 images/s by four
  profile.storage = {.warm = 500, .warm_twice = 505};
  EXPECT_EQ(verdict_of(profile).limit, Limit::storage);
  profile.storage = {.warm = 500, .warm_twice = 990};
  const Verdict few = verdict_of(profile);
  EXPECT_EQ(few.limit, Limit::io_threads);
  EXPECT_THAT(few.recommendations,
              Contains(Field(&Recommendation::what, HasSubstr("I/O threads"))));
}

TEST(Verdict, AShortRingIsToldFromSlowStages) {
  ProfileMeasurements profile = fed();
  profile.shape.ring_depth = 1;
  const Verdict verdict = verdict_of(profile);
  EXPECT_EQ(verdict.limit, Limit::ring_depth);
  ASSERT_FALSE(verdict.recommendations.empty());
  EXPECT_NEAR(verdict.recommendations[0].samples_per_second, 1000, 20);
}

TEST(Verdict, NoRingHelpsWhereAllCpuTimeIsUsed) {
  ProfileMeasurements profile = fed();
  profile.shape.ring_depth = 1;
  profile.measured.own_cores = 4;
  EXPECT_EQ(verdict_of(profile).limit, Limit::decode);
}

// It fetches samples ahead, whatever the number of I/O threads.
TEST(Verdict, AStoreIsNotShortOfThreads) {
  ProfileMeasurements profile = fed();
  profile.measured.read_s = {8e-3};
  profile.storage = {.warm = 500, .warm_twice = 990};
  profile.store = StoreStats{.requests = 100, .ranges = 100};
  EXPECT_EQ(verdict_of(profile).limit, Limit::storage);
}

TEST(Verdict, APredictionSaysHowFarItMayBeOff) {
  ProfileMeasurements profile = fed();
  profile.shape.workers = 1;
  profile.measured.fill_cpu_s = {2e-3};  // 500 images/s
  profile.measured.spread = 0;
  const auto recommended = [](const Verdict& verdict) {
    return *std::ranges::find(verdict.recommendations, "+1 worker", &Recommendation::what);
  };
  const Recommendation sure = recommended(verdict_of(profile));
  EXPECT_NEAR(sure.low, sure.samples_per_second / 1.08, 5);
  EXPECT_NEAR(sure.high, sure.samples_per_second * 1.08, 5);
  // The run with two workers made 600 where the model says 1,000.
  profile.other_workers = 2;
  profile.other.steps = 20;
  profile.other.samples_per_second = 600;
  profile.other.worker_cpu_speed = 1;
  const Recommendation doubted = recommended(verdict_of(profile));
  EXPECT_EQ(doubted.samples_per_second, 600);
  EXPECT_LT(doubted.low, 400);
  EXPECT_GT(doubted.high, 900);
  // Steps that make no more than 1010 bound it.
  profile.other_workers = 0;
  profile.replayed.steps = 20;
  profile.replayed.samples_per_second = 1010;
  EXPECT_NEAR(recommended(verdict_of(profile)).high, 1010 * 1.04, 1);
}

TEST(Verdict, ASlowCopyIsNamed) {
  ProfileMeasurements profile = fed();
  profile.shape.slots = 2;
  profile.shape.zero_copy = false;
  profile.measured.copy_s = {150e-3};
  EXPECT_EQ(verdict_of(profile).limit, Limit::copy);
}

TEST(Verdict, CoresThatOthersTakeAreToldFromCoresThatAreFull) {
  ProfileMeasurements profile = fed();
  profile.shape.cores = 2;
  profile.measured.worker_cpu_speed = 0.3;
  profile.measured.own_cores = 0.6;
  profile.measured.other_cores = 1.4;
  EXPECT_EQ(verdict_of(profile).limit, Limit::stolen_cpu);
  profile.shape.cores = 0.6;
  profile.measured.other_cores = 0;
  const Verdict full = verdict_of(profile);
  EXPECT_EQ(full.limit, Limit::decode);
  EXPECT_THAT(full.detail, HasSubstr("cores"));
}

// With one worker fewer, a worker got twice the time: together they get one core, whatever their
// number. Their speed is measured while they have a row, not while they wait for a core before they
// take one.
TEST(Verdict, TwoWorkersOnOneCoreGetNoMoreThanThatCore) {
  ProfileMeasurements profile = fed();
  profile.shape.cores = 1;
  RunMeasurements& run = profile.measured;
  run.hold_s = {60e-3};
  run.worker_cpu_speed = 0.75;
  run.busy_workers = 1.33;
  run.samples_per_second = 1000;
  run.split.step = 100e-3;
  run.split.compute = 65e-3;
  run.split.input_wait = 35e-3;
  const Verdict verdict = diagnose(profile);
  EXPECT_EQ(verdict.limit, Limit::decode);
  EXPECT_NEAR(verdict.model_error, 0, 0.05);
}

TEST(Verdict, MoreWorkersArePredictedFromWhatFewerOnesGot) {
  ProfileMeasurements profile = fed();
  profile.shape.cores = 8;
  profile.measured.fill_cpu_s = {4e-3};  // on 2 half cores: 250 images/s
  profile.measured.worker_cpu_speed = 0.5;
  profile.measured.own_cores = 1;
  profile.measured.other_cores = 3;
  const auto best = [](const Verdict& verdict) {
    double rate = 0;
    for (const Recommendation& found : verdict.recommendations) {
      if (found.change.workers > 0 && found.change.cores == 0) rate = found.samples_per_second;
    }
    return rate;
  };
  EXPECT_GT(best(verdict_of(profile)), 300);
  profile.other_workers = 1;
  profile.other.steps = 20;
  profile.other.samples_per_second = 250;
  profile.other.worker_cpu_speed = 1;
  EXPECT_NEAR(best(verdict_of(profile)), 250, 10);
}

TEST(Verdict, AWaitThatNoStageExplainsIsOfTheThreadThatHadNoCore) {
  ProfileMeasurements profile = fed();
  profile.measured.split = {.step = 0.1, .compute = 0.09, .input_wait = 0.01};
  profile.measured.samples_per_second = 1000;
  profile.measured.busy_workers = 1;
  EXPECT_EQ(diagnose(profile).limit, Limit::unknown);
  profile.measured.consumer_delay_share = 0.08;
  EXPECT_EQ(diagnose(profile).limit, Limit::stolen_cpu);
  profile.measured.own_cores = 4;
  EXPECT_EQ(diagnose(profile).limit, Limit::launch);
}

TEST(Verdict, NoRecommendationGoesAboveWhatTheStepTakesWithoutInput) {
  ProfileMeasurements profile = fed();
  profile.shape.workers = 1;
  profile.measured.fill_cpu_s = {2e-3};
  profile.replayed.steps = 20;
  profile.replayed.samples_per_second = 700;
  const Verdict verdict = verdict_of(profile);
  ASSERT_FALSE(verdict.recommendations.empty());
  for (const Recommendation& found : verdict.recommendations)
    EXPECT_LE(found.samples_per_second, 700);
}

TEST(Verdict, WhatWasNotMeasuredIsUnknown) {
  ProfileMeasurements profile;
  profile.shape.workers = 2;
  const Verdict verdict = diagnose(profile);
  EXPECT_EQ(verdict.limit, Limit::unknown);
  EXPECT_EQ(verdict.confidence, 0);
  EXPECT_THAT(verdict.unknown, Contains(HasSubstr("no step replayed")));
  EXPECT_THAT(verdict.unknown, Contains(HasSubstr("no step was measured")));
  EXPECT_THAT(verdict.unknown, Contains(HasSubstr("not probed")));
}

}  // namespace
}  // namespace stoker
