// A folder of unusual files, intact and damaged, of all formats: the result for each does not
// depend on the order, on the workers, or on what a worker decoded before.
#include "tests/decode/odd_files.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "pipeline/source/folder_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

void write(const TempFolder& folder, const std::string& class_name, const OddFile& file) {
  folder.write(class_name + "/" + file.name,
               {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
}

void write_odd_files(const TempFolder& folder) {
  for (const OddFile& file : jpegs_without_tables()) write(folder, "tables", file);
  uint32_t seed = 100;
  for (const OddFile& file : golden_images(STOKER_GOLDEN_DIR)) {
    write(folder, "sound", file);
    for (const OddFile& copy : damaged(file, 9, seed++)) write(folder, "damaged", copy);
  }
}

struct Verdict {
  float weight = 0;
  bool bad = false;
  DecodeCode code = DecodeCode::ok;
  uint64_t pixels = 0;  // 0 for a bad sample: its row has another sample's
  bool operator==(const Verdict&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Verdict& verdict) {
  return out << "weight " << verdict.weight << ", " << to_string(verdict.code) << ", pixels "
             << std::hex << verdict.pixels << std::dec;
}

// Returns the verdicts of an epoch by sample. `seed` determines the order: nothing else is random
// here.
std::map<SampleId, Verdict> verdicts(const Source& source, PixelPolicy pixels, int workers,
                                     uint64_t seed) {
  const AugmentSpec augment("resize", {24, 24});
  LoaderOptions options{.batch_size = 16,
                        .seed = seed,
                        .feed = {.workers = workers, .decode = {.pixels = pixels}, .max_bad = 1e9},
                        .digests = true};
  Feed feed(source, augment, options);
  std::map<SampleId, Verdict> found;
  for (const Delivered& batch : feed.all()) {
    // The last batch is padded with samples that came before.
    for (const DeliveredRow& row : batch.rows) {
      EXPECT_EQ(row.pixels, row.noted);
      found.emplace(row.id, Verdict{row.weight, row.bad, row.code, row.bad ? 0 : row.pixels});
    }
  }
  return found;
}

TEST(OddFiles, HaveOneVerdictInEveryOrderAndWithAnyWorkers) {
  const TempFolder folder;
  write_odd_files(folder);
  const auto source = make_folder_source(folder.path(), {.cache_dir = ""});
  ASSERT_GT(source->size(), 500);
  for (const PixelPolicy pixels : {PixelPolicy::exact, PixelPolicy::fast}) {
    SCOPED_TRACE(to_string(pixels));
    const std::map<SampleId, Verdict> expected = verdicts(*source, pixels, 0, 1);
    ASSERT_EQ(std::ssize(expected), source->size());
    int64_t bad = 0;
    for (const auto& [id, verdict] : expected) bad += verdict.bad;
    EXPECT_GT(bad, 200);
    EXPECT_LT(bad, source->size() - 200);
    for (const int workers : {0, 1, 2}) {
      for (const uint64_t seed : {1, 2}) {
        SCOPED_TRACE(std::to_string(workers) + " workers, order " + std::to_string(seed));
        const std::map<SampleId, Verdict> found = verdicts(*source, pixels, workers, seed);
        ASSERT_EQ(found.size(), expected.size());
        for (const auto& [id, verdict] : found) {
          EXPECT_EQ(verdict, expected.at(id)) << source->name(id);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker::testing
