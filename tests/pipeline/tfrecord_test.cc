#include "pipeline/source/format/tfrecord.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "pipeline/source/format/crc32c.h"
#include "tests/support/collected_samples.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

using Sample = CollectedSamples::Sample;

const MemoryScan kRecordScan{scan_tfrecord, "blob"};

// A record as TensorFlow's own programs for ImageNet write it.
std::string imagenet_record(const std::string& image, int64_t label) {
  return make_record(make_example({{"image/class/label", int64_feature({label})},
                                   {"image/encoded", bytes_feature({image})},
                                   {"image/format", bytes_feature({"JPEG"})}}));
}

// A map entry, from the value of its feature.
std::string entry(const std::string& key, const std::string& feature) {
  return wire_bytes(1, wire_bytes(1, key) + wire_bytes(2, feature));
}

TEST(Crc32c, HasTheValuesOfRfc3720) {
  const auto both = [](const std::string& text) {
    EXPECT_EQ(crc32c(bytes_of(text)), crc32c_by_table(bytes_of(text)));
    return crc32c(bytes_of(text));
  };
  std::string ascending, descending;
  for (char i = 0; i < 32; ++i) {
    ascending += i;
    descending += static_cast<char>(31 - i);
  }
  EXPECT_EQ(both(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(both(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(both(ascending), 0x46dd794eu);
  EXPECT_EQ(both(descending), 0x113fdb5cu);
  EXPECT_EQ(both("123456789"), 0xe3069283u);
  EXPECT_EQ(both(""), 0u);
}

TEST(Crc32c, InstructionsAndTableAgreeWithTheSumBitByBit) {
  if (!has_crc32c_instructions()) GTEST_LOG_(INFO) << "no CRC instructions: the table alone";
  const std::string all = patternless(20000);
  for (size_t length = 0; length < all.size(); length += length < 50 ? 1 : 397) {
    for (const size_t begin : {0u, 1u, 7u}) {
      const std::string_view part = std::string_view(all).substr(begin, length);
      const uint32_t expected = plain_crc32c(part);
      ASSERT_EQ(crc32c(bytes_of(part)), expected) << length << " bytes from " << begin;
      ASSERT_EQ(crc32c_by_table(bytes_of(part)), expected) << length << " bytes from " << begin;
    }
  }
}

TEST(Tfrecord, TheFirstRecordDecidesWhichOfTheUsualKeysIsMeant) {
  const auto file = [](const std::string& image, const std::string& label) {
    return make_record(make_example({{"image", bytes_feature({"third"})},
                                     {image, bytes_feature({"chosen"})},
                                     {"label", int64_feature({3})},
                                     {label, int64_feature({4})}}));
  };
  const auto found = [](const std::string& bytes) {
    const Sample sample = kRecordScan(bytes).samples[0];
    return image_of(bytes, sample) + " " + sample.label;
  };
  EXPECT_EQ(found(file("image/encoded", "image/class/label")), "chosen 4");
  EXPECT_EQ(found(file("image_raw", "x")), "chosen 3");
  EXPECT_EQ(found(file("x", "x")), "third 3");
  const std::string mixed = file("image_raw", "x") + file("image/encoded", "image/class/label");
  EXPECT_EQ(kRecordScan.refusal(mixed),
            std::to_string(file("image_raw", "x").size()) +
                ": record 1 has no key 'image_raw' for the image: its keys are 'image', "
                "'image/encoded', 'label', 'image/class/label'");
}

TEST(Tfrecord, FieldsNameKeys) {
  const std::string file = make_record(make_example({{"image", bytes_feature({"usual"})},
                                                     {"jpg", bytes_feature({"named"})},
                                                     {"label", int64_feature({3})},
                                                     {"text", bytes_feature({"tabby cat"})}}));
  const Sample sample = kRecordScan(file, {"jpg", "text"}).samples[0];
  EXPECT_EQ(image_of(file, sample), "named");
  EXPECT_EQ(sample.label, "text tabby cat");
  EXPECT_EQ(kRecordScan(file, {"", "none"}).samples[0].label, "none");
}

TEST(Tfrecord, WithoutLabelsARecordNeedsNone) {
  const std::string file = make_record(make_example({{"image", bytes_feature({"x"})}}));
  EXPECT_EQ(kRecordScan(file, {"", "none"}).samples[0].label, "none");
  EXPECT_EQ(
      kRecordScan.refusal(file),
      "0: record 0 has no key 'image/class/label' or 'label' for the label: its keys are 'image'");
}

TEST(Tfrecord, TakesIntegersPackedOrNot) {
  for (const int64_t value :
       {int64_t{0}, int64_t{127}, int64_t{128}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    for (const bool packed : {false, true}) {
      const std::string file = make_record(make_example(
          {{"image", bytes_feature({"x"})}, {"label", int64_feature({value}, packed)}}));
      EXPECT_EQ(kRecordScan(file).samples[0].label, std::to_string(value));
    }
  }
}

TEST(Tfrecord, UnknownFieldsAreLeftOut) {
  // Every wire type, on every level, with a number that no proto has.
  const std::string unknown = wire_number(9, 300) + wire_bytes(10, "abc") +
                              wire_varint(11 << 3 | 1) + std::string(8, 'f') +
                              wire_varint(12 << 3 | 5) + std::string(4, 'f');
  const std::string image = unknown + wire_bytes(1, unknown + wire_bytes(1, "pixels") + unknown);
  const std::string label = wire_bytes(3, unknown + wire_number(1, 5));
  const std::string map =
      unknown + wire_bytes(1, unknown + wire_bytes(2, image) + unknown + wire_bytes(1, "image"));
  const std::string file =
      make_record(unknown + wire_bytes(1, map + entry("label", label)) + unknown);
  const Sample sample = kRecordScan(file).samples[0];
  EXPECT_EQ(image_of(file, sample), "pixels");
  EXPECT_EQ(sample.label, "5");
}

TEST(Tfrecord, WhatComesTwiceIsMergedAsProtobufDoes) {
  // The last entry of a key wins, also over two maps; another list takes the place of the first.
  const std::string first = entry("image", bytes_feature({"old"})) +
                            entry("label", int64_feature({1})) +
                            entry("image", bytes_feature({"new"}));
  const std::string second =
      entry("label", bytes_feature({"text"}) + int64_feature({2}) + wire_bytes(3, ""));
  std::string file = make_record(wire_bytes(1, first) + wire_bytes(1, second));
  Sample sample = kRecordScan(file).samples[0];
  EXPECT_EQ(image_of(file, sample), "new");
  EXPECT_EQ(sample.label, "2");
  // Two lists of one kind are one list.
  file =
      make_record(wire_bytes(1, first + entry("label", int64_feature({1}) + int64_feature({2}))));
  EXPECT_EQ(kRecordScan.refusal(file),
            "0: record 0 has 2 int64 values at 'label', and a label is one int64 or bytes value");
}

TEST(Tfrecord, ListsOfAnotherLengthOrKindAreErrors) {
  const auto error = [](const std::string& image, const std::string& label) {
    return kRecordScan.refusal(make_record(make_example({{"image", image}, {"label", label}})));
  };
  const std::string good_image = bytes_feature({"x"}), good_label = int64_feature({1});
  EXPECT_EQ(error(good_image, good_label), "nothing was thrown");
  const std::string record = "0: record 0 has ";
  const std::string no_image = " at 'image', and an image is one bytes value";
  EXPECT_EQ(error(bytes_feature({}), good_label), record + "0 bytes values" + no_image);
  EXPECT_EQ(error(bytes_feature({"a", "b"}), good_label), record + "2 bytes values" + no_image);
  EXPECT_EQ(error(int64_feature({1}), good_label), record + "1 int64 values" + no_image);
  EXPECT_EQ(error(float_feature({1}), good_label), record + "float values" + no_image);
  EXPECT_EQ(error("", good_label), record + "nothing" + no_image);
  const std::string no_label = " at 'label', and a label is one int64 or bytes value";
  EXPECT_EQ(error(good_image, int64_feature({})), record + "0 int64 values" + no_label);
  EXPECT_EQ(error(good_image, int64_feature({1, 2}, false)), record + "2 int64 values" + no_label);
  EXPECT_EQ(error(good_image, bytes_feature({"a", "b"})), record + "2 bytes values" + no_label);
  EXPECT_EQ(error(good_image, float_feature({1})), record + "float values" + no_label);
}

TEST(Tfrecord, AMissingKeyIsAnErrorWithSomeOfThoseThatAreThere) {
  const std::string good = imagenet_record("x", 1);
  const std::string at = std::to_string(good.size()) + ": record 1 has no key ";
  std::vector<std::pair<std::string, std::string>> features;
  EXPECT_EQ(kRecordScan.refusal(good + make_record(make_example(features))),
            at + "'image/encoded' for the image: it has no keys");
  EXPECT_EQ(kRecordScan.refusal(make_record("")),
            "0: record 0 has no key 'image/encoded' or 'image_raw' or 'image' for the image: it "
            "has no keys");
  features = {{"new\nline", int64_feature({1})}, {std::string(500, 'k'), int64_feature({1})}};
  // The beginning and the end of a long name.
  std::string keys =
      "'new\\x0aline', '" + std::string(300, 'k') + "..." + std::string(100, 'k') + "'";
  EXPECT_EQ(kRecordScan.refusal(good + make_record(make_example(features))),
            at + "'image/encoded' for the image: its keys are " + keys);
  for (int i = 2; i < 15; ++i) {
    features.emplace_back(std::to_string(i), int64_feature({1}));
    if (i < 12) keys += ", '" + std::to_string(i) + "'";
  }
  EXPECT_EQ(kRecordScan.refusal(good + make_record(make_example(features))),
            at + "'image/encoded' for the image: its keys are " + keys + " and 3 more");
  EXPECT_EQ(kRecordScan.refusal(good, {"im\x01", ""}),
            "0: record 0 has no key 'im\\x01' for the image: its keys are 'image/class/label', "
            "'image/encoded', 'image/format'");
}

TEST(Tfrecord, WrongChecksumsAreErrors) {
  const std::string first = imagenet_record("x", 1);
  const std::string good = first + imagenet_record("abcdef", 1);
  std::string bad = good;
  bad[first.size() + 1] ^= 1;
  const auto stored = [&](size_t at) {
    char text[9];
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) {
      value |= uint32_t{static_cast<uint8_t>(bad[at + i])} << (8 * i);
    }
    std::snprintf(text, sizeof(text), "%08x", value);
    return std::string(text);
  };
  const auto computed = [](const std::string& bytes) {
    char text[9];
    std::snprintf(text, sizeof(text), "%08x", masked_crc32c(bytes));
    return std::string(text);
  };
  const std::string at = std::to_string(first.size()) + ": record 1 ";
  EXPECT_EQ(kRecordScan.refusal(bad),
            at + "has a wrong checksum of its length: " + stored(first.size() + 8) +
                " in the file, computed " + computed(bad.substr(first.size(), 8)) +
                "; the file is damaged, or no TFRecord file");
  bad = good;
  bad[bad.size() - 10] ^= 4;
  const size_t length = bad.size() - first.size() - 16;
  EXPECT_EQ(kRecordScan.refusal(bad),
            at + "has a wrong checksum of its " + std::to_string(length) +
                " bytes: " + stored(bad.size() - 4) + " in the file, computed " +
                computed(bad.substr(first.size() + 12, length)) + "; the file is damaged");
  bad = good;
  bad.back() ^= 4;
  EXPECT_NE(kRecordScan.refusal(bad).find("has a wrong checksum of its " + std::to_string(length)),
            std::string::npos);
}

TEST(Tfrecord, ACutFileIsAnErrorWhereverItIsCut) {
  const std::string first = imagenet_record("x", 1);
  const std::string good = first + imagenet_record("abcdef", 1);
  const std::string at = std::to_string(first.size()) + ": record 1 is cut: its ";
  for (size_t length = first.size() + 1; length < good.size(); ++length) {
    const std::string end = "end behind the file's end at byte " + std::to_string(length) +
                            "; the file is probably incomplete";
    const std::string data = std::to_string(good.size() - first.size() - 16);
    std::string expected = at + data + " bytes and their checksum " + end;
    if (length < first.size() + 12) {
      expected = at + "header of 12 bytes ends behind the file's end at byte " +
                 std::to_string(length) + "; the file is probably incomplete";
    }
    EXPECT_EQ(kRecordScan.refusal(good.substr(0, length)), expected);
  }
}

TEST(Tfrecord, RecordsAreNoLargerThanOneGibibyte) {
  std::string file(12, '\0');
  for (const uint64_t length : {(uint64_t{1} << 30) + 1, ~uint64_t{0}}) {
    for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i) & 0xff);
    const uint32_t crc = masked_crc32c(file.substr(0, 8));
    for (size_t i = 0; i < 4; ++i) file[8 + i] = static_cast<char>(crc >> (8 * i) & 0xff);
    EXPECT_EQ(kRecordScan.refusal(file),
              "0: record 0 has " + std::to_string(length) + " bytes, more than 1 GiB");
  }
}

TEST(Tfrecord, SaysThatAFileIsCompressed) {
  const std::string rest(50, 'z');
  for (const std::string begin : {"\x1f\x8b", "\x78\x01", "\x78\x5e", "\x78\x9c", "\x78\xda"}) {
    EXPECT_EQ(kRecordScan.refusal(begin + rest),
              std::string("0: the file is compressed with ") + (begin[0] == 'x' ? "zlib" : "gzip") +
                  "; write its records without compression, or unpack it");
  }
  // Only the first bytes of a file say so.
  const std::string first = imagenet_record("x", 1);
  EXPECT_NE(kRecordScan.refusal(first + "\x1f\x8b" + rest)
                .find("record 1 has a wrong checksum of its length"),
            std::string::npos);
  // Records of 0x8b1f and 0x9c78 bytes begin with the same bytes.
  for (const size_t length : {0x8b1fu, 0x9c78u}) {
    const std::string around = make_example({{"image", bytes_feature({patternless(30000)})}});
    const std::string example =
        make_example({{"image", bytes_feature({patternless(length - around.size() + 30000)})}});
    ASSERT_EQ(example.size(), length);
    EXPECT_EQ(kRecordScan(make_record(example), {"", "none"}).samples.size(), 1u);
  }
}

TEST(Tfrecord, WhatIsNoExampleIsAnErrorWithTheByte) {
  const std::string at = "record 0 is no tf.train.Example: ";
  EXPECT_EQ(kRecordScan.refusal(make_record("\x80")), "12: " + at + "a number is cut");
  EXPECT_EQ(kRecordScan.refusal(make_record(std::string("\x0a\x05") + "abc")),
            "12: " + at + "a field of 5 bytes is longer than the 3 that are left of its message");
  EXPECT_EQ(kRecordScan.refusal(make_record(wire_number(2, 1) + std::string(11, '\xff'))),
            "14: " + at + "a number has more than 10 bytes");
  EXPECT_EQ(kRecordScan.refusal(make_record(std::string(10, '\xff') + '\x01')),
            "12: " + at + "a number has more than 10 bytes");
  EXPECT_EQ(kRecordScan.refusal(make_record(std::string(1, '\0'))),
            "12: " + at + "a field has the number 0");
  EXPECT_EQ(kRecordScan.refusal(make_record("\x0b")),
            "12: " + at + "wire type 3 is not used there");
  EXPECT_EQ(kRecordScan.refusal(make_record("\x09"
                                            "1234567")),
            "12: " + at + "a field of 8 bytes is longer than the 7 that are left of its message");
  EXPECT_EQ(kRecordScan.refusal(make_record("\x0d"
                                            "123")),
            "12: " + at + "a field of 4 bytes is longer than the 3 that are left of its message");
  // On each level below: in the map, an entry, its feature, its list, and packed numbers.
  const std::string cut = "\x80", key = wire_bytes(1, "image");
  const auto error_in_map = [](const std::string& map) {
    return kRecordScan.refusal(make_record(wire_bytes(1, map)));
  };
  const auto error_in_feature = [&](const std::string& feature) {
    return error_in_map(wire_bytes(1, key + wire_bytes(2, feature)));
  };
  EXPECT_EQ(error_in_map(cut), "14: " + at + "a number is cut");
  EXPECT_EQ(error_in_map(wire_bytes(1, cut)), "16: " + at + "a number is cut");
  EXPECT_EQ(error_in_feature(cut), "25: " + at + "a number is cut");
  EXPECT_EQ(error_in_feature(wire_bytes(1, cut)), "27: " + at + "a number is cut");
  EXPECT_EQ(error_in_feature(wire_bytes(3, wire_bytes(1, cut))), "29: " + at + "a number is cut");
}

}  // namespace
}  // namespace stoker
