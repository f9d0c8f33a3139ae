// The sources in a store with every view and every pair of views, as compositions_test.cc has those
// on this machine.
#include <gtest/gtest.h>

#include "pipeline/source/growing_source.h"
#include "tests/pipeline/compositions.h"
#include "tests/support/object_server.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

class StoredCompositionsTest : public ::testing::Test {
 protected:
  StoredCompositionsTest() {
    put("/a.tar", model_tar());
    put("/list.csv", model_list());
    for (int i = 0; i < kModelSamples; ++i) {
      put("/pictures/" + model_key(i) + ".ppm", model_file(i));
    }
  }
  void put(const std::string& path, const std::string& bytes) {
    server_.put(path, {bytes.begin(), bytes.end()}, "\"1\"");
  }

  using Open = std::unique_ptr<Source> (*)(const std::string& path, const SourceOptions& options);
  Composition tar(Open open, const SourceOptions& store) const {
    SourceOptions options = store;
    options.targets_from = model_tar_targets();
    return made(open(server_.url("/a.tar"), options), "a.tar/");
  }
  static Composition made(std::unique_ptr<Source> source, const std::string& folder) {
    Model model = file_model(true);
    for (int i = 0; i < kModelSamples; ++i) {
      model.samples[static_cast<size_t>(i)].name = folder + model_key(i) + ".ppm";
    }
    return {"store", std::move(source), std::move(model)};
  }

  ObjectServer server_;
  const SourceOptions plain_{.cache_dir = ""};
};

TEST_F(StoredCompositionsTest, OfAShard) {
  expect_all_compositions([&] { return tar(&open_source, plain_); });
}

TEST_F(StoredCompositionsTest, OfAShardWhoseSamplesAreKept) {
  const TempFolder cache;
  SourceOptions options = plain_;
  options.store.cache = cache.path();
  options.store.cache_bytes = 1 << 20;
  expect_all_compositions([&] { return tar(&open_source, options); });
}

TEST_F(StoredCompositionsTest, OfAShardThatIsIndexedMeanwhile) {
  expect_all_compositions([&] { return tar(&begin_source, plain_); });
}

TEST_F(StoredCompositionsTest, OfAList) {
  SourceOptions options = plain_;
  options.targets_from = {"age", "soft:float32"};
  expect_all_compositions(
      [&] { return made(open_source(server_.url("/list.csv"), options), "pictures/"); });
}

}  // namespace
}  // namespace stoker::testing
