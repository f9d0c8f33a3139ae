// The layer check finds what it should: each test adds one forbidden include to a small tree.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

class CheckLayers : public ::testing::Test {
 protected:
  CheckLayers() {
    put("decode/image.h", "#include <cstdint>\n");
    put("decode/jpeg/libjpeg_decoder.cc", "#include <jpeglib.h>\n#include \"decode/image.h\"\n");
    put("staging/ring.h", "#include <mutex>\n");
    put("pipeline/augment.h", "#include \"decode/image.h\"\n");
    put("pipeline/loader.h", "#include \"pipeline/augment.h\"\n#include \"staging/ring.h\"\n");
    put("pipeline/feed/feed_graph.cc", "#include <oneapi/tbb/flow_graph.h>\n");
    put("train/trainer.h", "#include \"pipeline/loader.h\"\n#include \"pipeline/augment.h\"\n");
    put("tools/command/x.cc", "#include \"train/trainer.h\"\n#include <CLI/CLI.hpp>\n");
    put("tools/data/png.cc", "#include <png.h>\n");
    put("tools/profile/page.h", "");
    put("bench/suite/plan.h", "#include \"train/trainer.h\"\n");
  }
  void put(const std::string& name, const std::string& text) { folder_.write(name, text); }
  ProgramResult check() {
    return run_program({STOKER_SOURCE_DIR "/tools/check-layers", folder_.path()});
  }
  void expect_refused(const std::string& name, const std::string& include) {
    put(name, "// first line\n#include " + include + "\n");
    const ProgramResult result = check();
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, HasSubstr(name + ":2: " + include));
    EXPECT_EQ(count_lines(result.out), 1) << result.out;
  }

  TempFolder folder_;
};

TEST_F(CheckLayers, AcceptsATreeThatKeepsTheTable) {
  const ProgramResult result = check();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(CheckLayers, DecodeMayNotSeeStaging) { expect_refused("decode/a.cc", "\"staging/ring.h\""); }
TEST_F(CheckLayers, StagingMayNotSeeDecode) { expect_refused("staging/a.h", "\"decode/image.h\""); }
TEST_F(CheckLayers, PipelineMayNotSeeTrain) {
  expect_refused("pipeline/a.h", "\"train/trainer.h\"");
}
TEST_F(CheckLayers, NobodyBelowMaySeeTools) {
  expect_refused("train/a.cc", "\"tools/data/output_file.h\"");
}
TEST_F(CheckLayers, NobodyMaySeeTests) {
  expect_refused("tools/command/a.cc", "\"tests/support/temp_folder.h\"");
}
TEST_F(CheckLayers, RoomsOfDecodeHaveAnOrder) {
  expect_refused("decode/resize/a.cc", "\"decode/jpeg/headers.h\"");
}
TEST_F(CheckLayers, SourcesMayNotSeeTheFeeder) {
  expect_refused("pipeline/source/a.cc", "\"pipeline/row/row_filler.h\"");
}
TEST_F(CheckLayers, TheFeederMayNotSeeItsReceipt) {
  expect_refused("pipeline/feed/a.cc", "\"pipeline/receipt/files.h\"");
}
TEST_F(CheckLayers, PipelineSeesTheDoorsOfDecode) {
  expect_refused("pipeline/a.cc", "\"decode/jpeg/headers.h\"");
}
TEST_F(CheckLayers, TheGraphMayNotSeeAnEngineBelowIt) {
  expect_refused("train/graph/a.cc", "\"train/cpu/engine.h\"");
}
TEST_F(CheckLayers, OneEngineMayNotSeeTheOther) {
  expect_refused("train/cpu/a.cc", "\"train/device/ops.h\"");
}
TEST_F(CheckLayers, TheProfilerMayNotSeeTheBenches) {
  expect_refused("tools/profile/a.cc", "\"bench/suite/plan.h\"");
}
TEST_F(CheckLayers, BenchesMayNotSeeTheProfiler) {
  expect_refused("bench/suite/a.cc", "\"tools/profile/page.h\"");
}
TEST_F(CheckLayers, ReportsStandAlone) {
  expect_refused("bench/report/a.cc", "\"bench/suite/plan.h\"");
}
TEST_F(CheckLayers, ADoorIsNotForItsOwnFolder) {
  put("pipeline/loader.cc", "#include \"pipeline/loader.h\"\n");
  EXPECT_EQ(check().exit_code, 0);
  expect_refused("pipeline/feed/feed_graph.h", "\"pipeline/loader.h\"");
}
TEST_F(CheckLayers, TheTrainersDoorIsNotForItsRooms) {
  expect_refused("train/run/a.cc", "\"train/trainer.h\"");
}
TEST_F(CheckLayers, ANewRoomMustBeInTheTable) {
  expect_refused("bench/attic/a.cc", "\"decode/image.h\"");
}
TEST_F(CheckLayers, TestsSeeEverything) {
  put("tests/x/a.cc", "#include <tiffio.h>\n#include \"train/cpu/engine.h\"\n");
  EXPECT_EQ(check().exit_code, 0);
}
TEST_F(CheckLayers, ProjectsOfTheirOwnAreLeftAlone) {
  put("tests/consumer/feed/a.cc", "#include \"a.h\"\n");
  EXPECT_EQ(check().exit_code, 0);
}
TEST_F(CheckLayers, CommandLinesBelongToTheProgram) {
  expect_refused("bench/suite/a.cc", "<CLI/CLI.hpp>");
}
TEST_F(CheckLayers, MpiBelongsToItsPlugin) {
  expect_refused("train/collective/process/chain.cc", "<mpi.h>");
}
TEST_F(CheckLayers, TrainDoesNotSeeTheRoomsBehindTheLoader) {
  expect_refused("train/a.cc", "\"pipeline/feed/feed_graph.h\"");
}
TEST_F(CheckLayers, TbbBelongsToTheFeedGraph) {
  expect_refused("pipeline/a.cc", "<oneapi/tbb/task_arena.h>");
}
TEST_F(CheckLayers, OneDnnBelongsToTheEngine) {
  expect_refused("train/trainer.cc", "<oneapi/dnnl/dnnl.hpp>");
}
TEST_F(CheckLayers, CodecsBelongToDecode) { expect_refused("pipeline/a.cc", "<tiffio.h>"); }
TEST_F(CheckLayers, LibjpegBelongsToItsFiles) {
  expect_refused("decode/jpeg/headers.cc", "<jpeglib.h>");
}
TEST_F(CheckLayers, CodecsBelongToTheirReaders) { expect_refused("decode/a.cc", "<tiffio.h>"); }
TEST_F(CheckLayers, CudaBelongsToItsFiles) {
  expect_refused("staging/device.cc", "<cuda_runtime.h>");
}
TEST_F(CheckLayers, PythonBelongsToTheBindings) {
  put("python/core/bind_feed.cc",
      "#include <nanobind/nanobind.h>\n#include \"pipeline/loader.h\"\n");
  EXPECT_EQ(check().exit_code, 0);
  expect_refused("python/core/feed.cc", "<nanobind/nanobind.h>");
}
TEST_F(CheckLayers, PythonMayNotSeeTrain) {
  expect_refused("python/core/feed.cc", "\"train/trainer.h\"");
}
TEST_F(CheckLayers, FrameworksBelongToTheirAdapters) {
  put("python/stoker/torch.py", "import torch\n");
  EXPECT_EQ(check().exit_code, 0);
  put("python/stoker/_loader.py", "import os\nimport torch\n");
  const ProgramResult result = check();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("python/stoker/_loader.py:2: import torch"));
}
TEST_F(CheckLayers, IncludesAreWrittenFromTheRoot) { expect_refused("decode/a.cc", "\"image.h\""); }
TEST_F(CheckLayers, ThereAreNoDrawers) {
  put("pipeline/utils/x.h", "");
  EXPECT_EQ(check().exit_code, 1);
}

}  // namespace
}  // namespace stoker
