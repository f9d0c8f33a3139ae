#include "pipeline/source/format/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/collected_samples.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const MemoryScan kTarScan{scan_tar, "a.tar"};

// "NAME LABEL OFFSET+LENGTH" for each sample.
std::vector<std::string> tar_lines(const CollectedSamples& found) {
  std::vector<std::string> lines;
  for (const auto& sample : found.samples) {
    lines.push_back(sample.name + " " + sample.label + " " + std::to_string(sample.found.offset) +
                    "+" + std::to_string(sample.found.length));
  }
  return lines;
}

std::vector<std::string> tar_labels(const std::string& tar, const std::string& label) {
  return labels_of(kTarScan(tar, {"", label}));
}

TEST(Tar, MembersOfOneKeyAreASampleInAnyOrder) {
  const std::string tar = tar_member("a.cls", "3\n") + tar_member("a.jpg", "image") +
                          tar_member("b.PNG", std::string(513, 'i')) + tar_member("b.json", "{}") +
                          tar_member("b.cls", " cat ") + tar_end();
  const CollectedSamples found = kTarScan(tar);
  EXPECT_THAT(tar_lines(found), ElementsAre("a.jpg 3 1536+5", "b.PNG text cat 2560+513"));
  EXPECT_THAT(found.left_out, IsEmpty());
  EXPECT_EQ(found.samples[0].found.storage, BlobStorage::bytes);
}

TEST(Tar, AKeyEndsAtTheFirstDotOfTheBaseName) {
  const std::string tar = tar_member("./v1.0/a.left.jpg", "l") + tar_member("v1.0/a.cls", "1") +
                          tar_member("v1.0/a.right.JPG", "r") + tar_end();
  EXPECT_THAT(tar_lines(kTarScan(tar, {"left.jpg", ""})), ElementsAre("v1.0/a.left.jpg 1 512+1"));
  EXPECT_THAT(tar_lines(kTarScan(tar, {"Right.jpg", ""})),
              ElementsAre("v1.0/a.right.JPG 1 2560+1"));
}

TEST(Tar, ADotAtTheStartIsDroppedWithItsSlashes) {
  const std::string tar = tar_member("././/a.jpg", "x") + tar_member(".//", "") +
                          tar_member(".//./n//b.jpg", "x") + tar_end();
  EXPECT_THAT(tar_lines(kTarScan(tar, {"", "none"})),
              ElementsAre("a.jpg none 512+1", "n//b.jpg none 2048+1"));
}

TEST(Tar, EveryUsualExtensionIsAnImage) {
  std::string tar;
  for (const char* extension : {"jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "ppm", "pgm",
                                "avif", "gif", "jp2", "pbm", "JPEG"}) {
    tar += tar_member(std::string(extension) + "." + extension, "x");
  }
  EXPECT_EQ(kTarScan(tar + tar_end(), {"", "none"}).samples.size(), 14u);
}

TEST(Tar, LabelsOfEachKind) {
  const std::string tar = tar_member("x/n1/a.cls", "-7") + tar_member("x/n1/a.jpg", "x") +
                          tar_member("x/n1/a.txt", "7\n") +
                          tar_member("x/n1/a.json", R"({"l": {"id": 5, "name": "d\u00f6g"}})") +
                          tar_end();
  EXPECT_THAT(tar_labels(tar, ""), ElementsAre("-7"));
  EXPECT_THAT(tar_labels(tar, "cls"), ElementsAre("-7"));
  EXPECT_THAT(tar_labels(tar, "txt"), ElementsAre("text 7"));
  EXPECT_THAT(tar_labels(tar, "json:l.id"), ElementsAre("5"));
  EXPECT_THAT(tar_labels(tar, "json:l.name"), ElementsAre("text d\u00f6g"));
  EXPECT_THAT(tar_labels(tar, "folder"), ElementsAre("text n1"));
  EXPECT_THAT(tar_labels(tar, "none"), ElementsAre("none"));
}

TEST(Tar, ByItselfTheFolderIsTheLabelWhereTheFirstSampleHasNoCls) {
  const std::string tar = tar_member("n1/x.cls", "1") + tar_member("n1/a.jpg", "x") +
                          tar_member("n2/b.jpg", "x") + tar_member("n2/b.cls", "1") + tar_end();
  const CollectedSamples found = kTarScan(tar);
  EXPECT_EQ(found.samples.at(0).label, "text n1");
  EXPECT_EQ(found.samples.at(1).label, "text n2");
  EXPECT_THAT(found.left_out, ElementsAre("a key without an image: n1/x"));
}

TEST(Tar, WhatIsNoSampleIsPassedOverOrLeftOut) {
  const std::string tar = tar_member("./", "", '5') + tar_member("a/", "", '5') +
                          tar_member("old/", "", '\0') + tar_member("__meta__.json", "{}") +
                          tar_member("a/._1.jpg", "x") + tar_member("a/1.jpg", "x") +
                          tar_member("a/._1.cls", "x") + tar_member("a/README", "x") +
                          tar_member("a/1.cls", "1", '\0') + tar_member("a/hard.jpg", "", '1') +
                          tar_member("a/soft.jpg", "", '2') + tar_member("a/pipe.jpg", "", '6') +
                          tar_member("a/2.json", "{}") + tar_member("a/3.jpg", "x", '7') +
                          tar_member("a/3.cls", "2") + tar_end();
  const CollectedSamples found = kTarScan(tar);
  EXPECT_THAT(tar_lines(found), ElementsAre("a/1.jpg 1 4096+1", "a/3.jpg 2 10752+1"));
  EXPECT_THAT(found.left_out, ElementsAre("a name without an extension: a/README",
                                          "a link: a/hard.jpg", "a link: a/soft.jpg",
                                          "not a file: a/pipe.jpg", "a key without an image: a/2"));
}

TEST(Tar, AHardLinkHasNoDataWhateverItsSize) {
  TarHeader link{.name = "b.jpg", .type = '1', .size = 100000};
  const std::string tar = tar_header(link) + tar_member("a.jpg", "x") + tar_end();
  EXPECT_THAT(tar_lines(kTarScan(tar, {"", "none"})), ElementsAre("a.jpg none 1024+1"));
}

TEST(Tar, LongNamesOfUstarGnuAndPax) {
  const std::string folder(150, 'f'), base = std::string(90, 'b') + ".jpg";
  const std::string name = folder + "/" + base;
  TarHeader header{.name = base, .prefix = folder};
  EXPECT_EQ(kTarScan(tar_header(header) + tar_end(), {"", "none"}).samples.at(0).name, name);
  // GNU has times where POSIX has the prefix.
  header.magic = std::string("ustar  \0", 8);
  EXPECT_EQ(kTarScan(tar_header(header) + tar_end(), {"", "none"}).samples.at(0).name, base);

  const std::string cut = tar_member(name.substr(0, 100), "x");
  const std::string gnu = tar_long_name(name) + cut;
  const std::string pax =
      pax_header(pax_record("mtime", "1.5") + pax_record("path", name), 'x') + cut;
  const std::string global = pax_header(pax_record("path", "of all"), 'g');
  const std::string link = tar_member("././@LongLink", std::string(200, 'l'), 'K');
  CollectedSamples found =
      kTarScan(global + gnu + tar_member("b.jpg", "y") + tar_end(), {"", "none"});
  EXPECT_THAT(tar_lines(found), ElementsAre(name + " none 2560+1", "b.jpg none 3584+1"));
  EXPECT_THAT(found.left_out, IsEmpty());
  found = kTarScan(pax + link + tar_member("b.jpg", "", '2') + tar_end(), {"", "none"});
  EXPECT_THAT(tar_lines(found), ElementsAre(name + " none 1536+1"));
  EXPECT_THAT(found.left_out, ElementsAre("a link: b.jpg"));
}

TEST(Tar, ANameThatEndsWithADotHasNoLabel) {
  const std::string tar =
      tar_member("n/a.jpg", "x") + tar_member("n/a.", "x") + tar_member("n/a.", "x") + tar_end();
  EXPECT_THAT(tar_labels(tar, "none"), ElementsAre("none"));
  EXPECT_THAT(tar_labels(tar, "folder"), ElementsAre("text n"));
}

TEST(Tar, SizesOfEachForm) {
  TarHeader header{.name = "a.jpg"};
  const std::string data = tar_data(std::string(600, 'x')) + tar_end();
  std::string binary(12, '\0');
  binary[0] = '\x80';
  binary[10] = 2;
  binary[11] = 88;
  for (const std::string& size :
       {std::string("       1130 "), std::string("000000001130"), binary}) {
    header.size_field = size;
    EXPECT_THAT(tar_lines(kTarScan(tar_header(header) + data, {"", "none"})),
                ElementsAre("a.jpg none 512+600"));
  }
  // PAX's value goes before the field, which then may hold anything.
  header.size_field = "nothing here";
  EXPECT_THAT(tar_lines(kTarScan(pax_header(pax_record("size", "600")) + tar_header(header) + data,
                                 {"", "none"})),
              ElementsAre("a.jpg none 1536+600"));
}

TEST(Tar, ImagesAreNotRead) {
  const std::string tar =
      tar_member("a.cls", "1") + tar_member("a.jpg", std::string(1 << 20, 'x')) +
      tar_member("b.cls", "1") + tar_member("b.jpg", std::string(1 << 20, 'x')) + tar_end();
  const TempFolder folder;
  BlobReader blob(folder.write("a.tar", tar));
  std::vector<int64_t> pieces;
  blob.set_progress([&](int64_t offset) { pieces.push_back(offset); });
  CollectedSamples found;
  scan_tar(blob, {}, found);
  // Each piece is a page: at the start, at b's headers and at the end.
  EXPECT_THAT(pieces, ElementsAre(0, 1536 + (1 << 20), 3072 + (2 << 20)));
}

TEST(TarErrors, WhatIsNoTar) {
  const auto packed = [](const std::string& start) { return kTarScan.refusal(start + tar_end()); };
  EXPECT_EQ(packed("\x1f\x8b"),
            "0: compressed with gzip: unpack it; only plain tar can be read at random");
  EXPECT_THAT(packed("\x28\xb5\x2f\xfd"), StartsWith("0: compressed with zstd:"));
  EXPECT_THAT(packed("BZh9"), StartsWith("0: compressed with bzip2:"));
  EXPECT_THAT(packed(std::string("\xfd"
                                 "7zXZ\0",
                                 6)),
              StartsWith("0: compressed with xz:"));
  EXPECT_EQ(packed("hello"),
            "0: this is no tar file, or it is damaged: the header of 'hello' has the checksum '?', "
            "and its bytes give 788");
}

TEST(TarErrors, DamagedHeaders) {
  const std::string first = tar_member("a.jpg", "x");
  std::string tar = first + tar_member("b\n.jpg", "x") + tar_end();
  tar[1024 + 100] ^= 1;
  EXPECT_EQ(kTarScan.refusal(tar, {"", "none"}),
            "1024: the header is damaged: that of 'b\\x0a.jpg' has the checksum 2313, and its "
            "bytes give 2314");
  const auto with_size = [&](const std::string& size) {
    TarHeader header{.name = "b.jpg", .size_field = size};
    return kTarScan.refusal(first + tar_header(header) + tar_end(), {"", "none"});
  };
  EXPECT_EQ(with_size("00000000009 "),
            "1024: the size of 'b.jpg' is '00000000009 ', and no octal number");
  EXPECT_EQ(with_size("            "),
            "1024: the size of 'b.jpg' is '            ', and no octal number");
  EXPECT_EQ(with_size("-0000000001 "),
            "1024: the size of 'b.jpg' is '-0000000001 ', and no octal number");
  // Negative, and with more than 63 bits.
  EXPECT_THAT(with_size(std::string(12, '\xff')), StartsWith("1024: the size of"));
  EXPECT_THAT(with_size("\x80" + std::string(11, '\xff')), StartsWith("1024: the size of"));
  EXPECT_EQ(with_size("77777777777 "),
            "1024: 'b.jpg' has 8589934591 bytes, and after its header the file has 1024: it is "
            "probably half downloaded");
  const std::string largest = "\x80" + std::string(3, '\0') + "\x7f" + std::string(7, '\xff');
  EXPECT_EQ(with_size(largest),
            "1024: 'b.jpg' has 9223372036854775807 bytes, and after its header the file has 1024: "
            "it is probably half downloaded");
}

TEST(TarErrors, TheEnd) {
  const std::string member = tar_member("a.jpg", "x");
  const std::string cut =
      "the file ends without the two blocks of zeros that end a tar: it is probably half "
      "downloaded";
  const FieldChoice none = {"", "none"};
  EXPECT_EQ(kTarScan.refusal(member, none), "1024: " + cut);
  EXPECT_EQ(kTarScan.refusal(member + std::string(512, '\0'), none), "1024: " + cut);
  EXPECT_EQ(kTarScan.refusal(member + std::string(1023, '\0'), none), "1024: " + cut);
  EXPECT_EQ(kTarScan.refusal(member.substr(0, 300), none), "0: " + cut);
  EXPECT_EQ(kTarScan.refusal(member.substr(0, 1000), none), "513: " + cut);
  EXPECT_EQ(kTarScan.refusal(member + std::string(512, '\0') + member, none),
            "1536: data after the zeros at byte 1024 that end the tar; files that were joined must "
            "be unpacked and packed again");
  const std::string far = member + std::string(200000, '\0') + "x";
  EXPECT_THAT(kTarScan.refusal(far, none), StartsWith("201024: data after the zeros"));
}

TEST(TarErrors, ExtendedHeaders) {
  const auto error = [](const std::string& before) {
    return kTarScan.refusal(before + tar_member("a.jpg", "x") + tar_end(), {"", "none"});
  };
  const std::string length = "a record of an extended header has a wrong length";
  EXPECT_EQ(error(pax_header("9 path=b\nx")), "521: " + length);
  EXPECT_EQ(error(pax_header("99 path=b\n")), "512: " + length);
  EXPECT_EQ(error(pax_header("2 \n")), "512: " + length);
  EXPECT_EQ(error(pax_header("0 path=b\n")), "512: " + length);
  EXPECT_EQ(error(pax_header("-9 path=b\n")), "512: " + length);
  EXPECT_EQ(error(pax_header("11")), "512: " + length);
  EXPECT_EQ(error(pax_header("8 path=b\n")), "512: " + length);
  EXPECT_EQ(error(pax_header(pax_record("path", std::string("b\0c", 3)))),
            "0: a name with a NUL byte: 'b\\x00c'");
  EXPECT_EQ(error(pax_header(pax_record("path", ""))), "1024: a member without a name");
  EXPECT_EQ(error(tar_long_name("")), "1024: a member without a name");
  EXPECT_EQ(error(pax_header(pax_record("size", "-1"))), "0: a size that is no number: '-1'");
  EXPECT_EQ(error(pax_header(pax_record("size", "9223372036854775808"))),
            "0: a size that is no number: '9223372036854775808'");
  EXPECT_EQ(error(tar_long_name(std::string((1 << 20), 'x'))),
            "0: an extended header of 1048577 bytes; at most 1048576");
  EXPECT_EQ(kTarScan.refusal(tar_long_name("b.jpg") + tar_end()),
            "1024: an extended header at the end, and no member after it");
}

TEST(TarErrors, SparseFiles) {
  const std::string sparse =
      "'a.jpg' is a sparse file, whose bytes do not lie in one piece: make the tar without `tar "
      "--sparse`";
  EXPECT_EQ(kTarScan.refusal(tar_member("a.jpg", "x", 'S') + tar_end()), "0: " + sparse);
  EXPECT_EQ(kTarScan.refusal(pax_header(pax_record("GNU.sparse.major", "1")) +
                             tar_member("a.jpg", "x") + tar_end()),
            "1024: " + sparse);
}

TEST(TarErrors, NamesThatLeaveTheFolder) {
  const auto error = [](const std::string& name) {
    return kTarScan.refusal(tar_member(name, "x") + tar_end(), {"", "none"});
  };
  EXPECT_EQ(error("/a.jpg"), "0: an absolute name: '/a.jpg'");
  EXPECT_EQ(error("a/../b.jpg"), "0: a name that leaves its folder: 'a/../b.jpg'");
  EXPECT_EQ(error("../b.jpg"), "0: a name that leaves its folder: '../b.jpg'");
  EXPECT_EQ(error("b/.."), "0: a name that leaves its folder: 'b/..'");
  EXPECT_EQ(error("a..b/..c/d../e..jpg"),
            "0: no key has an image (jpg, jpeg, png, webp, bmp, tif, tiff); the first key has "
            "'..jpg': say which is the image with `image_from`, an extension");
}

TEST(TarErrors, KeysThatOccurTwice) {
  const std::string tar = tar_member("a.jpg", "x") + tar_member("b.jpg", "x") +
                          tar_member("b.cls", "1") + tar_member("c.jpg", "x") +
                          tar_member("b.txt", "1") + tar_member("a.cls", "1") + tar_end();
  EXPECT_EQ(kTarScan.refusal(tar, {"", "none"}),
            "4096: the key of 'b.txt' is already at byte 1024: the members of a sample must follow "
            "each other, and a key must not occur twice");
}

TEST(TarErrors, OfManyKeysThatOccurTwiceTheFirstIsNamed) {
  std::string tar;
  for (int i = 0; i < 40; ++i) tar += tar_member(std::to_string(i % 20) + ".jpg", "x");
  EXPECT_THAT(kTarScan.refusal(tar + tar_end(), {"", "none"}),
              StartsWith("20480: the key of '0.jpg' is already at byte 0: "));
}

TEST(TarErrors, LongNamesAreCut) {
  const std::string name = "/" + std::string(1000, 'a') + "/" + std::string(99, 'b');
  EXPECT_EQ(
      kTarScan.refusal(tar_long_name(name) + tar_member("x", "x") + tar_end()),
      "2048: an absolute name: '/" + std::string(299, 'a') + ".../" + std::string(99, 'b') + "'");
}

TEST(TarErrors, TwoPartsOfOneKindInAKey) {
  EXPECT_EQ(kTarScan.refusal(tar_member("a.jpg", "x") + tar_member("a.png", "x") + tar_end()),
            "1024: 'a.jpg' and 'a.png' are two images of one key: say which with `image_from`");
  EXPECT_EQ(kTarScan.refusal(tar_member("a.jpg", "x") + tar_member("./a.JPG", "x") + tar_end(),
                             {"jpg", ""}),
            "1024: 'a.jpg' and 'a.JPG' are one key's, and have one extension");
  EXPECT_EQ(kTarScan.refusal(tar_member("a.cls", "1") + tar_member("a.cls", "2") + tar_end()),
            "1024: 'a.cls' and 'a.cls' are one key's, and have one extension");
}

TEST(TarErrors, NoImage) {
  EXPECT_EQ(kTarScan.refusal(tar_member("a.jpx", "x") + tar_member("a.cls", "1") + tar_end()),
            "0: no key has an image (jpg, jpeg, png, webp, bmp, tif, tiff); the first key has "
            "'.jpx', '.cls': say which is the image with `image_from`, an extension");
  EXPECT_EQ(kTarScan.refusal(tar_member("a.jpg", "x") + tar_end(), {"png", ""}),
            "0: no key has an image ('png'); the first key has '.jpg': say which is the image with "
            "`image_from`, an extension");
}

TEST(TarErrors, ChoiceOfTheLabel) {
  const std::string tar =
      tar_member("x.cls", "1") + tar_member("a.jpg", "x") + tar_member("a.json", "{}") + tar_end();
  const std::string choices = "`label_from` takes cls, txt, json:FIELD, folder or none";
  EXPECT_EQ(kTarScan.refusal(tar, {"", "class"}),
            "0: a tar has no label field 'class': " + choices);
  EXPECT_EQ(kTarScan.refusal(tar, {"", "json:"}),
            "0: a tar has no label field 'json:': " + choices);
  EXPECT_EQ(
      kTarScan.refusal(tar),
      "1024: the first sample, 'a.jpg', has no .cls and is in no folder; it has '.jpg', '.json': "
      "say what the label is with `label_from`: cls, txt, json:FIELD, folder or none");
}

TEST(TarErrors, MissingLabels) {
  const std::string tar = tar_member("n/a.jpg", "x") + tar_member("n/a.cls", "1") +
                          tar_member("b.jpg", "x") + tar_end();
  EXPECT_EQ(kTarScan.refusal(tar), "2048: 'b.jpg' has no label: its key has no .cls");
  EXPECT_EQ(kTarScan.refusal(tar, {"", "folder"}),
            "2048: 'b.jpg' has no label: it is in no folder");
  EXPECT_EQ(kTarScan.refusal(tar, {"", "txt"}), "0: 'n/a.jpg' has no label: its key has no .txt");
  EXPECT_EQ(kTarScan.refusal(tar, {"", "json:x"}),
            "0: 'n/a.jpg' has no label: its key has no .json");
}

TEST(TarErrors, Labels) {
  const auto error = [](const std::string& extension, const std::string& content,
                        const std::string& label) {
    return kTarScan.refusal(
        tar_member("a.jpg", "x") + tar_member("a." + extension, content) + tar_end(), {"", label});
  };
  EXPECT_EQ(error("cls", " \n", "cls"), "1536: the label in 'a.cls' is empty");
  EXPECT_EQ(error("txt", std::string("a\0b", 3), "txt"),
            "1536: the label in 'a.txt' has a NUL byte");
  EXPECT_EQ(error("cls", std::string((1 << 20) + 1, ' '), "cls"),
            "1024: the label 'a.cls' has 1048577 bytes; at most 1048576");
  const auto json = [&](const std::string& content) { return error("json", content, "json:a.b"); };
  const std::string start = "1536: the label in 'a.json' ";
  EXPECT_EQ(json("{"), start + "cannot be read: that is no JSON");
  EXPECT_EQ(json(""), start + "cannot be read: that is no JSON");
  EXPECT_EQ(json(std::string(100000, '[')), start + "cannot be read: that is no JSON");
  EXPECT_EQ(json("{\"a\": 1}"), start + "is not there: no field 'a.b'");
  EXPECT_EQ(json("[]"), start + "is not there: no field 'a.b'");
  EXPECT_EQ(json("{\"a\": {\"c\": 1}}"), start + "is not there: no field 'a.b'");
  EXPECT_EQ(json("{\"a\": {\"b\": null}}"), start + "is null, and no integer or text");
  EXPECT_EQ(json("{\"a\": {\"b\": true}}"), start + "is boolean, and no integer or text");
  EXPECT_EQ(json("{\"a\": {\"b\": [1]}}"), start + "is array, and no integer or text");
  EXPECT_EQ(json("{\"a\": {\"b\": 1.0}}"),
            start + "is a number with a fraction, and no integer or text");
  EXPECT_EQ(json("{\"a\": {\"b\": 9223372036854775808}}"), start + "has more than 63 bits");
  EXPECT_EQ(json("{\"a\": {\"b\": \"\"}}"), start + "is empty");
  EXPECT_EQ(json("{\"a\": {\"b\": \"a\\u0000\"}}"), start + "has a NUL byte");
}

}  // namespace
}  // namespace stoker
