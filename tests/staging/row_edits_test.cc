// Edits of rows on devices that are no GPUs: the twin of the kernel, and when it runs.
#include "staging/row_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "staging/stager.h"
#include "tests/staging/edited_rows.h"
#include "tests/staging/feed.h"
#include "tests/support/fake_device.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

TEST(RowEdits, TheTwinIsThePlainLoops) {
  EditMaker maker(1);
  for (const auto& [height, width] : {std::pair{1, 1}, std::pair{8, 12}, std::pair{5, 7}}) {
    for (const int rows : {1, 2, 3, 16}) {
      for (int i = 0; i < 30; ++i) {
        EditedRows batch = maker.make(rows, height, width);
        const std::vector<uint8_t> expected = edited_plainly(batch);
        edit_rows_on_host(batch.args());
        ASSERT_EQ(batch.images, expected) << rows << " rows of " << height << " x " << width;
      }
    }
  }
}

// Pixels that are not aligned are edited one by one.
TEST(RowEdits, MemoryNeedNotBeAligned) {
  EditMaker maker(2);
  EditedRows batch = maker.make(4, 6, 8);
  const std::vector<uint8_t> expected = edited_plainly(batch);
  std::vector<uint8_t> shifted(batch.images.size() + 1);
  std::memcpy(shifted.data() + 1, batch.images.data(), batch.images.size());
  RowEditArgs args = batch.args();
  args.images = shifted.data() + 1;
  edit_rows_on_host(args);
  EXPECT_EQ(std::vector<uint8_t>(shifted.begin() + 1, shifted.end()), expected);
}

// A stream that runs nothing and notes what it was asked to do.
class NotingStream final : public Stream {
 public:
  void copy(void*, const void*, size_t, CopyKind) override { notes += "copy "; }
  void record(Event&) override { notes += "record "; }
  void wait(const Event&) override { notes += "wait "; }
  void call(std::function<void()>) override { notes += "call "; }
  void synchronize() override { notes += "synchronize "; }
  std::string notes;
};

TEST(RowEdits, OneCallForABatchAndNoneForNothing) {
  const auto device = make_host_device();
  const RowEditor editor(*device);
  const BatchLayout layout({.rows = 4, .height = 2, .width = 2, .edits = true});
  std::vector<std::byte> batch(layout.device_bytes());
  std::vector<RowEdit> edits(4);
  NotingStream stream;
  editor.run(stream, layout, edits, batch.data());
  EXPECT_EQ(stream.notes, "");
  edits[2].erasing = RowErasing::colour;
  editor.run(stream, layout, edits, batch.data());
  EXPECT_EQ(stream.notes, "call ");
  edits[3].mixing = RowMixing::mean;
  editor.run(stream, layout, edits, batch.data());
  EXPECT_EQ(stream.notes, "call call ");
}

// Whoever waits for the event of a batch waits for its edits. The last call returns the slab.
TEST(RowEdits, TheyAreBetweenTheCopyAndTheEvent) {
  const BatchLayout layout({.rows = 2, .height = 2, .width = 2, .edits = true});
  FakeDevice device({.host_accessible = false});
  PinnedRing ring(device, layout, 1);
  Slab& slab = ring.begin(0);
  slab.edits[0] = {.mixing = RowMixing::mean};
  slab.edits[1] = {};
  ring.commit(0);
  const RowEditor editor(device);
  NotingStream stream;
  Stager stager(device, ring, 0, 0, 1, 1, nullptr, 0, &editor);
  const DeviceBatch batch = stager.next(stream);
  EXPECT_EQ(stream.notes, "wait copy call record call ");
}

// Late copies, through slots and without: what a consumer sees is edited, once.
TEST(RowEdits, AStagerEditsBehindTheCopy) {
  constexpr Step kSteps = 12;
  const BatchLayout layout({.rows = 6, .height = 5, .width = 8, .edits = true});
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    FakeDevice device({.seed = static_cast<uint64_t>(slots), .host_accessible = false});
    EditMaker maker(static_cast<uint32_t>(slots));
    PinnedRing ring(device, layout, kSteps);
    std::vector<std::vector<uint8_t>> expected;
    const NoiseBytes noise = maker.make(1, 1, 1).noise;
    const RowEditor editor(device, &noise);
    for (Step step = 0; step < kSteps; ++step) {
      EditedRows batch = maker.make(6, 5, 8);
      batch.noise = noise;
      if (step % 3 == 2) batch.edits.assign(6, {});
      Slab& slab = ring.begin(step);
      std::memcpy(slab.images, batch.images.data(), batch.images.size());
      std::copy(batch.edits.begin(), batch.edits.end(), slab.edits);
      expected.push_back(edited_plainly(batch));
      ring.commit(step);
    }
    const auto compute = device.make_stream();
    std::vector<std::vector<uint8_t>> seen(kSteps, std::vector<uint8_t>(expected[0].size()));
    {
      Stager stager(device, ring, slots, 0, kSteps, 1, nullptr, 0, &editor);
      for (std::vector<uint8_t>& each : seen) {
        const DeviceBatch batch = stager.next(*compute);
        ASSERT_TRUE(batch);
        compute->call(
            [&each, images = batch.images()] { std::memcpy(each.data(), images, each.size()); });
      }
    }
    compute->synchronize();
    for (size_t step = 0; step < seen.size(); ++step) {
      ASSERT_EQ(seen[step], expected[step]) << "step " << step << ", " << slots << " slots";
    }
    EXPECT_EQ(device.copies(), kSteps + 1) << "the noise, and edits travel with their rows";
    EXPECT_EQ(editor.device_bytes(), 3 * 4096);
  }
}

TEST(RowEdits, AStagerRefusesEditsThatItCannotMake) {
  const BatchLayout with({.rows = 2, .height = 2, .width = 2, .edits = true});
  const BatchLayout without({.rows = 2, .height = 2, .width = 2});
  const auto refusal = [](const BatchLayout& layout, bool accessible, int slots, bool edits) {
    FakeDevice device({.host_accessible = accessible});
    PinnedRing ring(device, layout, 1);
    const RowEditor editor(device);
    return thrown_by<std::invalid_argument>([&] {
      const Stager stager(device, ring, slots, 0, 0, 1, nullptr, 0, edits ? &editor : nullptr);
    });
  };
  EXPECT_EQ(refusal(with, true, 0, true),
            "Stager: fake with 0 slots: rows with edits need an editor, and memory of their own");
  EXPECT_THAT(refusal(with, false, 2, false), ::testing::StartsWith("Stager: fake with 2 slots"));
  EXPECT_THAT(refusal(without, false, 2, true), ::testing::StartsWith("Stager: fake with 2 slots"));
  EXPECT_EQ(refusal(with, true, 1, true), "nothing was thrown");
  EXPECT_EQ(refusal(with, false, 0, true), "nothing was thrown");
  EXPECT_EQ(refusal(without, false, 0, false), "nothing was thrown");
}

}  // namespace
}  // namespace stoker::testing
