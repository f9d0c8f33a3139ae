#include "pipeline/source/subset_source.h"

#include <gtest/gtest.h>

#include "tests/support/fake_source.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

// Both ways of reading return the sample that label() and name() describe.
TEST(SubsetSource, ReadsTheSamplesThatItNames) {
  std::vector<std::vector<uint8_t>> files;
  for (uint8_t i = 0; i < 10; ++i) files.push_back({i});
  FakeSource whole(files, 10, 10);
  for (SampleId id = 0; id < 10; id += 2) whole.cache(id);
  const SubsetSource some(whole, 4);
  ASSERT_EQ(some.size(), 4);
  int cached = 0;
  for (SampleId id = 0; id < some.size(); ++id) {
    std::vector<uint8_t> buffer;
    std::span<const uint8_t> bytes;
    ASSERT_TRUE(some.read(id, buffer, bytes).ok);
    EXPECT_EQ(bytes[0], some.label(id));
    EXPECT_EQ(some.name(id), whole.name(some.label(id)));
    if (!some.storage().read_cached(id, buffer, bytes)) continue;
    ++cached;
    EXPECT_EQ(bytes[0], some.label(id));
    EXPECT_EQ(bytes[0] % 2, 0);
  }
  EXPECT_EQ(cached, 2);  // of 0, 2, 5, 7
}

// Files that a source leaves out are left out of its subsets too, and must not go unreported there.
TEST(SubsetSource, HasTheNotesOfTheWhole) {
  const TempFolder folder;
  folder.write("cat/1.jpg", "not looked at");
  folder.write("cat/2.gif", "not read");
  const auto whole = open_source(folder.path(), Split::all);
  ASSERT_EQ(whole->notes().size(), 1u);
  const SubsetSource some(*whole, 1);
  ASSERT_EQ(some.notes().size(), 1u);
  EXPECT_EQ(some.notes()[0].message, whole->notes()[0].message);
}

}  // namespace
}  // namespace stoker
