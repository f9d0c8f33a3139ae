// The same pictures in the same order give the same receipt, whatever they are stored in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/source/listed_source.h"
#include "tests/pipeline/receipt_support.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/tar_maker.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker::testing {
namespace {

class SameReceiptTest : public ReceiptTest {
 protected:
  static constexpr int kClasses = 3, kPerClass = 7;
  struct Picture {
    std::string name, bytes;
    int label = 0;
  };

  SameReceiptTest() {
    augment_ = crop_spec();
    for (int i = 0; i < kClasses * kPerClass; ++i) {
      const std::vector<uint8_t> jpeg = jpeg_file(40 + i, 60 - i, static_cast<uint64_t>(i));
      const int label = i / kPerClass;
      pictures_.push_back({"class" + std::to_string(label) + "/" + std::to_string(100 + i),
                           {jpeg.begin(), jpeg.end()},
                           label});
    }
    // One of them is damaged, so that substitutes and weights are compared, too.
    pictures_[5].bytes.resize(200);
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
    for (const Picture& picture : pictures_) {
      data_.write("folder/" + picture.name + ".jpg", picture.bytes);
    }
    return data_.path() + "/folder";
  }
  std::string in_tar() {
    for (int shard = 0; shard < kClasses; ++shard) {
      std::string tar;
      for (int i = shard * kPerClass; i < (shard + 1) * kPerClass; ++i) {
        tar += tar_member(pictures_[i].name + ".cls", std::to_string(pictures_[i].label));
        tar += tar_member(pictures_[i].name + ".jpg", pictures_[i].bytes);
      }
      data_.write("tar/" + std::to_string(shard) + ".tar", tar + tar_end());
    }
    return data_.path() + "/tar/{0..2}.tar";
  }
  std::string in_parquet(int codec, bool dictionary) {
    MadeColumn images, labels;
    images.names = {"image", "bytes"};
    images.dictionary = dictionary;
    labels.names = {"label"};
    labels.type = kMadeInt64;
    images.codec = labels.codec = codec;
    for (const Picture& picture : pictures_) {
      images.values.push_back(plain_bytes(picture.bytes));
      labels.values.push_back(plain_int64(static_cast<uint64_t>(picture.label)));
    }
    const MadeParquet file{.columns = {images, labels}, .rows_per_group = 8, .rows_per_page = 3};
    return data_.write("a" + std::to_string(codec) + ".parquet", file.bytes());
  }
  std::string in_tfrecord() {
    std::string file;
    for (const Picture& picture : pictures_) {
      file += make_record(make_example({{"image/encoded", bytes_feature({picture.bytes})},
                                        {"image/class/label", int64_feature({picture.label})}}));
    }
    return data_.write("train-00000-of-00001", file);
  }
  std::string in_list() {
    in_folder();
    std::string list = "path,label\n";
    for (const Picture& picture : pictures_) {
      list += "folder/" + picture.name + ".jpg," + std::to_string(picture.label) + "\n";
    }
    return data_.write("list.csv", list);
  }

  const TempFolder data_;
  std::vector<Picture> pictures_;
  std::unique_ptr<Source> opened_;
  std::vector<EpochDigest> epochs_;
};

TEST_F(SameReceiptTest, FolderTarParquetTfrecordAndList) {
  const nlohmann::json expected = receipt_of("folder", in_folder());
  const std::vector<EpochDigest> epochs = epochs_;
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_EQ(epochs[0].rows, kClasses * kPerClass - 1);  // the damaged one does not count
  const std::pair<const char*, std::string> others[] = {{"tar", in_tar()},
                                                        {"parquet", in_parquet(kMadePlain, false)},
                                                        {"snappy", in_parquet(kMadeSnappy, true)},
                                                        {"tfrecord", in_tfrecord()},
                                                        {"list", in_list()}};
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
  const nlohmann::json swapped = receipt_of("tar", in_tar());
  EXPECT_EQ(swapped["policies"], expected["policies"]);
  EXPECT_NE(swapped["epochs"], expected["epochs"]);
  EXPECT_FALSE(receipt_diff(path("folder"), path("tar")).same);
}

TEST_F(SameReceiptTest, AStateDoesNotMoveToSamplesOfOtherNames) {
  // Equal labels are no proof of equal pictures, so that only a run knows: see its receipt.
  const auto folder = open_source(in_folder(), {.cache_dir = ""});
  const auto tar = open_source(in_tar(), {.cache_dir = ""});
  LoaderOptions options;
  options.batch_size = 4;
  options.feed.workers = 0;
  Feed one(*folder, augment_, options), other(*tar, augment_, options);
  EXPECT_EQ(one.loader().fingerprint(), other.loader().fingerprint());
  EXPECT_THROW(Loader::resume_step(one.loader().state(), other.loader()), std::invalid_argument);
  EXPECT_EQ(Loader::resume_step(one.loader().state(), one.loader()), 0);
}

}  // namespace
}  // namespace stoker::testing
