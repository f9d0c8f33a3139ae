// The same pictures in the same order give the same receipt, whatever they are stored in.
#include <gtest/gtest.h>

#include "pipeline/source/listed_source.h"
#include "tests/pipeline/receipt_support.h"
#include "tests/support/format_maker.h"

namespace stoker::testing {
namespace {

class SameReceiptTest : public ReceiptTest {
 protected:
  static constexpr int kClasses = 3, kPerClass = 7;

  SameReceiptTest() {
    augment_ = crop_spec();
    for (int i = 0; i < kClasses * kPerClass; ++i) {
      const std::vector<uint8_t> jpeg = jpeg_file(40 + i, 60 - i, static_cast<uint64_t>(i));
      const int64_t label = i / kPerClass;
      pictures_.push_back({"class" + std::to_string(label) + "/" + std::to_string(100 + i),
                           {jpeg.begin(), jpeg.end()},
                           label});
    }
    // One of them is damaged, so that substitutes and weights are compared, too.
    pictures_[5].image.resize(200);
  }

  nlohmann::json receipt_of(const std::string& name, const std::string& data,
                            const SourceOptions& options = {.cache_dir = ""}) {
    opened_ = open_source(data, options);
    epochs_ = run(name, {.workers = 2});
    nlohmann::json receipt = json(name);
    receipt["options"].erase("root");
    return receipt;
  }
  const Source& source() override { return *opened_; }

  std::string in_folder() {
    for (const MadeSample& picture : pictures_) {
      data_.write("folder/" + picture.key + ".jpg", picture.image);
    }
    return data_.path() + "/folder";
  }
  // Three shards.
  std::string in_format(const MadeFormat& format) {
    for (int shard = 0; shard < kClasses; ++shard) {
      const auto first = pictures_.begin() + shard * kPerClass;
      data_.write(format.name + ("/" + format.file_name(std::to_string(shard))),
                  format.make({first, first + kPerClass}));
    }
    return data_.path() + "/" + format.name + "/{0..2}." + format.ending;
  }
  std::string in_list() {
    in_folder();
    std::string list = "path,label\n";
    for (const MadeSample& picture : pictures_) {
      list += "folder/" + picture.key + ".jpg," + std::to_string(std::get<int64_t>(picture.label)) +
              "\n";
    }
    return data_.write("list.csv", list);
  }

  const TempFolder data_;
  std::vector<MadeSample> pictures_;
  std::unique_ptr<Source> opened_;
  std::vector<EpochDigest> epochs_;
};

TEST_F(SameReceiptTest, FolderListAndEveryFormat) {
  const nlohmann::json expected = receipt_of("folder", in_folder());
  const std::vector<EpochDigest> epochs = epochs_;
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_EQ(epochs[0].rows, kClasses * kPerClass - 1);  // the damaged one does not count
  std::vector<std::pair<std::string, std::string>> others = {{"list", in_list()}};
  for (const MadeFormat& format : made_formats())
    others.emplace_back(format.name, in_format(format));
  for (const auto& [name, path] : others) {
    SCOPED_TRACE(name);
    EXPECT_EQ(receipt_of(name, path), expected);
    EXPECT_EQ(epochs_, epochs);
    const ReceiptDifference found = receipt_diff(this->path("folder"), this->path(name));
    EXPECT_TRUE(found.same) << found.text;
  }
}

TEST_F(SameReceiptTest, AnotherOrderGivesAnotherReceipt) {
  const nlohmann::json expected = receipt_of("folder", in_folder());
  std::swap(pictures_[0], pictures_[1]);  // of one class: the labels stay the same
  const nlohmann::json swapped = receipt_of("tar", in_format(made_format("Tar")));
  EXPECT_EQ(swapped["policies"], expected["policies"]);
  EXPECT_NE(swapped["epochs"], expected["epochs"]);
  EXPECT_FALSE(receipt_diff(path("folder"), path("tar")).same);
}

TEST_F(SameReceiptTest, AStateDoesNotMoveToSamplesOfOtherNames) {
  // Equal labels are no proof of equal pictures, so that only a run knows: see its receipt.
  const auto folder = open_source(in_folder(), {.cache_dir = ""});
  const auto tar = open_source(in_format(made_format("Tar")), {.cache_dir = ""});
  LoaderOptions options{.batch_size = 4, .feed = {.workers = 0}};
  Feed one(*folder, augment_, options), other(*tar, augment_, options);
  EXPECT_EQ(one.loader().fingerprint(), other.loader().fingerprint());
  EXPECT_THROW(Loader::resume_step(one.loader().state(), other.loader()), std::invalid_argument);
  EXPECT_EQ(Loader::resume_step(one.loader().state(), one.loader()), 0);
}

}  // namespace
}  // namespace stoker::testing
