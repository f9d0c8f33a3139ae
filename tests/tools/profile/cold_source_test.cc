// A file that is read through a ColdSource comes from storage, whatever was in memory.
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "pipeline/source/synthetic_source.h"
#include "tests/support/temp_folder.h"
#include "tools/machine/load.h"
#include "tools/profile/storage_probe.h"

namespace stoker {
namespace {

int64_t read_from_storage() { return read_machine_load({}).disk_read_bytes; }

TEST(ColdSource, ReadsFromStorageWhatLiesInMemory) {
  constexpr int kFiles = 60, kBytes = 9000;
  const TempFolder folder;
  const std::string name = folder.make_folder("class");
  for (int i = 0; i < kFiles; ++i) {
    std::ofstream(name + "/" + std::to_string(i) + ".jpg") << std::string(kBytes, 'x');
  }
  if (read_from_storage() < 0) GTEST_SKIP() << "the kernel does not say what came from storage";
  const auto files = open_source(folder.path(), Split::all);
  std::unique_ptr<ColdSource> cold;
  try {
    cold = std::make_unique<ColdSource>(*files);
  } catch (const std::invalid_argument& error) {
    GTEST_SKIP() << error.what();  // a file system in memory
  }
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const int64_t before = read_from_storage();
    for (SampleId id = 0; id < files->size(); ++id) {
      ASSERT_TRUE(cold->read(id, buffer, bytes).ok);
      EXPECT_EQ(bytes.size(), size_t{kBytes});
      EXPECT_FALSE(cold->storage().read_cached(id, buffer, bytes));
    }
    // Not all of them, because the kernel keeps a page that it is using, to write it for example.
    EXPECT_GT(read_from_storage() - before, int64_t{kFiles} * kBytes / 3) << "epoch " << epoch;
  }
}

TEST(ColdSource, RefusesSamplesThatAreNoFiles) {
  const auto made = make_synthetic_source(8, {4, 4}, 2, 1);
  EXPECT_THROW(ColdSource{*made}, std::invalid_argument);
}

}  // namespace
}  // namespace stoker
