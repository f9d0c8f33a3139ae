// A file that was read through a ColdSource does not lie in memory afterwards.
#include "bench/profile/cold_source.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "bench/profile/storage_probe.h"
#include "pipeline/synthetic_source.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

TEST(ColdSource, PutsFilesOutAgainWhenTheyWereRead) {
  constexpr int kFiles = 20;
  const TempFolder folder;
  const std::string name = folder.make_folder("class");
  for (int i = 0; i < kFiles; ++i) {
    std::ofstream(name + "/" + std::to_string(i) + ".jpg") << std::string(9000, 'x');
  }
  const auto files = open_source(folder.path(), Split::all);
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  ASSERT_TRUE(files->read(0, buffer, bytes).ok);
  if (!files->read_cached(0, buffer, bytes)) GTEST_SKIP() << "no way to see what lies in memory";
  std::unique_ptr<ColdSource> cold;
  try {
    cold = std::make_unique<ColdSource>(*files);
  } catch (const std::invalid_argument& error) {
    GTEST_SKIP() << error.what();  // a file system in memory
  }
  for (SampleId id = 0; id < files->size(); ++id) {
    EXPECT_FALSE(files->read_cached(id, buffer, bytes)) << id;
    ASSERT_TRUE(cold->read(id, buffer, bytes).ok);
    EXPECT_EQ(bytes.size(), 9000u);
    EXPECT_FALSE(files->read_cached(id, buffer, bytes)) << id;
    EXPECT_FALSE(cold->read_cached(id, buffer, bytes));
  }
}

TEST(ColdSource, RefusesSamplesThatAreNoFiles) {
  const auto made = make_synthetic_source(8, {4, 4}, 2, 1);
  EXPECT_THROW(ColdSource{*made}, std::invalid_argument);
}

}  // namespace
}  // namespace stoker
