#include "pipeline/source/cifar_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `count` records; pixel p of record r is first + r + p (mod 256), so that each record is known.
std::string records(int count, int first, int label_bytes, int classes) {
  std::string text;
  for (int r = 0; r < count; ++r) {
    if (label_bytes == 2) text += static_cast<char>(99);  // coarse: must not be used
    text += static_cast<char>((first + r) % classes);
    for (int p = 0; p < 3072; ++p) text += static_cast<char>(first + r + p);
  }
  return text;
}

void write_cifar10(const TempFolder& folder, const std::string& prefix = "") {
  for (int i = 1; i <= 5; ++i) {
    folder.write(prefix + "data_batch_" + std::to_string(i) + ".bin", records(i, 10 * i, 1, 10));
  }
  folder.write(prefix + "test_batch.bin", records(3, 100, 1, 10));
}

std::string cifar_error(const std::string& path, Split split) {
  return thrown_by<std::runtime_error>([&] { make_cifar_source(path, split); });
}

TEST(CifarSource, ReadsCifar10InTheOrderOfItsFiles) {
  const TempFolder folder;
  write_cifar10(folder);
  const auto source = make_cifar_source(folder.path(), Split::train);
  ASSERT_EQ(source->size(), 1 + 2 + 3 + 4 + 5);
  EXPECT_EQ(source->encoding(), SampleEncoding::raw_planar);
  EXPECT_EQ(source->raw_size(), (Size{32, 32}));
  std::vector<uint8_t> buffer;
  std::set<std::string> names;
  SampleId id = 0;
  for (int file = 1; file <= 5; ++file) {
    for (int r = 0; r < file; ++r, ++id) {
      std::span<const uint8_t> bytes, again;
      ASSERT_TRUE(source->read(id, buffer, bytes).ok);
      ASSERT_EQ(bytes.size(), 3072u);
      EXPECT_EQ(bytes[0], 10 * file + r);
      EXPECT_EQ(bytes[3071], static_cast<uint8_t>(10 * file + r + 3071));
      EXPECT_EQ(source->label(id), r);
      EXPECT_EQ(source->name(id),
                "data_batch_" + std::to_string(file) + ".bin:" + std::to_string(r));
      names.insert(source->name(id));
      source->read(id, buffer, again);
      EXPECT_EQ(bytes.data(), again.data());  // a view, not a copy
    }
  }
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(std::ssize(names), source->size());
}

TEST(CifarSource, SplitsChooseFiles) {
  const TempFolder folder;
  write_cifar10(folder);
  const auto test = make_cifar_source(folder.path(), Split::test);
  ASSERT_EQ(test->size(), 3);
  EXPECT_EQ(test->name(2), "test_batch.bin:2");
  const auto all = make_cifar_source(folder.path(), Split::all);
  ASSERT_EQ(all->size(), 18);
  EXPECT_EQ(all->name(15), "test_batch.bin:0");
  const auto train = make_cifar_source(folder.path(), Split::train);
  EXPECT_NE(all->fingerprint(), train->fingerprint());
  EXPECT_EQ(train->fingerprint(), make_cifar_source(folder.path(), Split::train)->fingerprint());
}

TEST(CifarSource, FingerprintFollowsLabelsNotPixels) {
  const TempFolder folder;
  write_cifar10(folder);
  const uint64_t before = make_cifar_source(folder.path(), Split::test)->fingerprint();
  std::string content = records(3, 100, 1, 10);
  content[1] ^= 1;  // a pixel
  folder.write("test_batch.bin", content);
  EXPECT_EQ(make_cifar_source(folder.path(), Split::test)->fingerprint(), before);
  content[0] ^= 1;  // a label
  folder.write("test_batch.bin", content);
  EXPECT_NE(make_cifar_source(folder.path(), Split::test)->fingerprint(), before);
}

TEST(CifarSource, FindsTheFolderThatTheArchiveUnpacksTo) {
  const TempFolder folder;
  write_cifar10(folder, "cifar-10-batches-bin/");
  ASSERT_TRUE(is_cifar_folder(folder.path()));
  const auto source = open_source(folder.path(), Split::test);
  EXPECT_EQ(source->name(0), "cifar-10-batches-bin/test_batch.bin:0");
  EXPECT_EQ(source->root(), folder.path());
}

TEST(CifarSource, Cifar100UsesTheFineLabel) {
  const TempFolder folder;
  folder.write("train.bin", records(4, 50, 2, 100));
  folder.write("test.bin", records(2, 60, 2, 100));
  std::string names;
  for (int i = 0; i < 100; ++i) names += "fine" + std::to_string(i) + "\n";
  folder.write("fine_label_names.txt", names);
  const auto source = make_cifar_source(folder.path(), Split::train);
  ASSERT_EQ(source->size(), 4);
  EXPECT_EQ(source->label(3), 53);
  EXPECT_EQ(source->class_names()[53], "fine53");
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  source->read(1, buffer, bytes);
  EXPECT_EQ(bytes[0], 51);
}

TEST(CifarSource, ClassNamesComeFromTheMetaFileElseAreNumbers) {
  const TempFolder folder;
  write_cifar10(folder);
  EXPECT_EQ(make_cifar_source(folder.path(), Split::test)->class_names()[9], "9");
  // The original ends like this.
  folder.write("batches.meta.txt", "a\nb\nc\r\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_THAT(make_cifar_source(folder.path(), Split::test)->class_names(),
              ElementsAre("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"));
  folder.write("batches.meta.txt", "a\nb\n");
  EXPECT_THAT(cifar_error(folder.path(), Split::test),
              AllOf(HasSubstr("batches.meta.txt"), HasSubstr("2 class names, expected 10")));
}

TEST(CifarSource, DamagedFilesAreErrorsWithPathAndNumbers) {
  const TempFolder folder;
  write_cifar10(folder);
  const std::string good = records(3, 100, 1, 10);
  folder.write("test_batch.bin", good.substr(0, 5000));
  EXPECT_THAT(cifar_error(folder.path(), Split::test),
              AllOf(HasSubstr(folder.path() + "/test_batch.bin"), HasSubstr("5000 bytes"),
                    HasSubstr("3073")));
  folder.write("test_batch.bin", "");
  EXPECT_THAT(cifar_error(folder.path(), Split::test), HasSubstr("0 bytes"));
  std::string bad_label = good;
  bad_label[2 * 3073] = 10;
  folder.write("test_batch.bin", bad_label);
  EXPECT_THAT(cifar_error(folder.path(), Split::test), HasSubstr("record 2 has label 10"));
  EXPECT_EQ(make_cifar_source(folder.path(), Split::train)->size(), 15);  // does not read that file
  std::filesystem::remove(folder.path() + "/data_batch_4.bin");
  EXPECT_THAT(cifar_error(folder.path(), Split::train),
              AllOf(HasSubstr("data_batch_4.bin"), HasSubstr("No such file")));
  const TempFolder other;
  EXPECT_THAT(cifar_error(other.path(), Split::all), HasSubstr(other.path()));
}

TEST(CifarSource, RealFiles) {
  const char* data = std::getenv("STOKER_DATA");
  if (!data || !is_cifar_folder(data)) GTEST_SKIP() << "STOKER_DATA holds no CIFAR files";
  const auto source = make_cifar_source(data, Split::test);
  EXPECT_EQ(source->size(), 10000);
  std::vector<int> counts(source->class_names().size());
  for (SampleId id = 0; id < source->size(); ++id) {
    ++counts[static_cast<size_t>(source->label(id))];
  }
  for (int count : counts) EXPECT_EQ(count, 10000 / std::ssize(counts));
}

}  // namespace
}  // namespace stoker
