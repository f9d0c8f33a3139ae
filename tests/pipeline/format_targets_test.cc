// The numbers of targets, as each format finds them: lists, tar, TFRecord and MDS. Parquet has a
// file of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pipeline/source/format/list.h"
#include "pipeline/source/format/mds.h"
#include "pipeline/source/format/npy.h"
#include "pipeline/source/format/number_bytes.h"
#include "pipeline/source/format/tar.h"
#include "pipeline/source/format/tfrecord.h"
#include "tests/support/collected_samples.h"
#include "tests/support/mds_maker.h"
#include "tests/support/tar_maker.h"
#include "tests/support/tfrecord_maker.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

FieldChoice choice_of(const std::vector<std::string>& fields) {
  FieldChoice choice{"", "none", {}};
  for (const std::string& field : fields) choice.targets.push_back({field, field, {}});
  return choice;
}

// The targets of each sample ("int64 (): 7; float32 (2): 0.5 1"), or the error.
std::vector<std::string> targets_in(const MemoryScan& scan, const std::string& file,
                                    const std::vector<std::string>& fields) {
  CollectedSamples found;
  const std::string error = thrown_by<BlobError>([&] { found = scan(file, choice_of(fields)); });
  if (error != "nothing was thrown") return {error};
  std::vector<std::string> lines;
  for (const auto& sample : found.samples) {
    std::string line;
    for (const FoundTarget& target : sample.targets) {
      line += (line.empty() ? "" : "; ") + text_of(target);
    }
    lines.push_back(line);
  }
  return lines;
}

// ---- Lists

std::vector<std::string> in_csv(const std::string& text, const std::vector<std::string>& fields) {
  return targets_in({scan_list, "l.csv"}, text, fields);
}

std::vector<std::string> in_json(const std::string& text, const std::vector<std::string>& fields) {
  return targets_in({scan_list, "l.jsonl"}, text, fields);
}

TEST(ListTargets, NumbersAndVectorsOfCsv) {
  EXPECT_THAT(in_csv("path,tags,age\na.jpg,1 0 1,3\nb.jpg,\" 0; 1;0 \",-4\n", {"age", "tags"}),
              ElementsAre("int64 (): 3; int64 (3): 1 0 1", "int64 (): -4; int64 (3): 0 1 0"));
  EXPECT_THAT(in_csv("path,x\na.jpg,0.5 1\nb.jpg,nan;-inf\nc.jpg,1e3;2\n", {"x"}),
              ElementsAre("float32 (2): 0.5 1", "float32 (2): nan -inf", "float32 (2): 1000 2"));
  EXPECT_THAT(targets_in({scan_list, "l.tsv"}, "path\tx\na b.jpg\t1 2\n", {"x"}),
              ElementsAre("int64 (2): 1 2"));
}

TEST(ListTargets, WhatIsNoNumberIsRefused) {
  EXPECT_THAT(in_csv("path,x\na.jpg,1\nb.jpg,\n", {"x"}),
              ElementsAre("l.csv: at byte 15: line 3: target 'x' is empty"));
  EXPECT_THAT(in_csv("path,x\na.jpg,1 cat\n", {"x"}),
              ElementsAre("l.csv: at byte 7: line 2: target 'x' has 'cat', which is no number"));
  EXPECT_THAT(in_csv("path,x\na.jpg,1\n", {"y"}),
              ElementsAre("l.csv: at byte 0: line 1: no 'y' is here; there is 'path', 'x': it is "
                          "named as a target"));
}

TEST(ListTargets, NumbersAndArraysOfJson) {
  EXPECT_THAT(in_json(R"({"path": "a", "n": 3, "box": [[1, 2.5], [true, false]]})"
                      "\n"
                      R"({"path": "b", "n": 4.0, "box": [[1, 2], [3, 4]]})",
                      {"n", "box"}),
              ElementsAre("int64 (): 3; float32 (2, 2): 1 2.5 1 0",
                          "float32 (): 4; int64 (2, 2): 1 2 3 4"));
}

TEST(ListTargets, JsonThatIsNoArrayOfOneShapeIsRefused) {
  const auto refusal = [](const std::string& value) {
    const std::string start = "l.jsonl: at byte 0: line 1: target 'x' ";
    const std::string line = in_json(R"({"path": "a", "x": )" + value + "}", {"x"})[0];
    return line.starts_with(start) ? line.substr(start.size()) : "other: " + line;
  };
  EXPECT_EQ(refusal("null"), "is or has null, and no number");
  EXPECT_EQ(refusal("\"7\""), "is or has string, and no number");
  EXPECT_EQ(refusal("[1, {}]"), "is or has object, and no number");
  EXPECT_EQ(refusal("[]"), "is or has an empty array");
  EXPECT_EQ(refusal("[[1], []]"), "is or has an empty array");
  EXPECT_EQ(refusal("[[1, 2], [3]]"), "has arrays of 2 and of 1 values beside each other");
  EXPECT_EQ(refusal("[1, [2]]"), "has numbers beside arrays");
  EXPECT_EQ(refusal("[[1], 2]"), "has numbers beside arrays");
  EXPECT_EQ(refusal("[[1], [[2]]]"), "has numbers beside arrays");
  EXPECT_EQ(refusal("9223372036854775808"),
            "has the value 9223372036854775808, which has more than 63 bits");
  EXPECT_EQ(refusal(std::string(40, '[') + "1" + std::string(40, ']')),
            "has arrays inside arrays, more than 32 levels");
}

// ---- NumPy's files

std::string npy_of(const std::string& header, const std::string& numbers, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += mds_number(header.size(), version == 1 ? 2 : 4);
  return file + header + numbers;
}

std::string header_of(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }   \n";
}

std::string in_npy(const std::string& file) {
  FoundTarget found;
  const std::string problem = read_npy(bytes_of(file), found);
  return problem.empty() ? text_of(found) : problem;
}

TEST(Npy, AllTypesAndShapes) {
  EXPECT_EQ(in_npy(npy_of(header_of("<f4", "(2, 2)"), raw<float>({1, 2.5, -3, 4}))),
            "float32 (2, 2): 1 2.5 -3 4");
  EXPECT_EQ(in_npy(npy_of(header_of("<f8", "(1,)"), raw<double>({0.1}))), "float32 (1): 0.1");
  EXPECT_EQ(in_npy(npy_of(header_of("<f2", "(4,)"), raw<uint16_t>({0x3c00, 0xc100, 1, 0x7c00}))),
            "float32 (4): 1 -2.5 5.96046e-08 inf");
  EXPECT_EQ(in_npy(npy_of(header_of("|b1", "()"), "\1")), "uint8 (): 1");
  EXPECT_EQ(in_npy(npy_of(header_of("|u1", "(2,)"), "\x05\xff")), "uint8 (2): 5 255");
  EXPECT_EQ(in_npy(npy_of(header_of("|i1", "(2,)"), "\x05\xff")), "int64 (2): 5 -1");
  EXPECT_EQ(in_npy(npy_of(header_of("<i2", "()"), raw<int16_t>({-300}))), "int64 (): -300");
  EXPECT_EQ(in_npy(npy_of(header_of("<u2", "()"), raw<uint16_t>({65535}))), "int64 (): 65535");
  EXPECT_EQ(in_npy(npy_of(header_of("<i4", "()"), raw<int32_t>({-70000}))), "int64 (): -70000");
  EXPECT_EQ(in_npy(npy_of(header_of("<u4", "()"), raw<uint32_t>({1u << 31}))),
            "int64 (): 2147483648");
  EXPECT_EQ(in_npy(npy_of(header_of("<i8", "()"), raw<int64_t>({-5}), 2)), "int64 (): -5");
  EXPECT_EQ(in_npy(npy_of(header_of("<u8", "()"), raw<uint64_t>({1ull << 63}), 3)),
            "has the value 9223372036854775808, which has more than 63 bits");
}

TEST(Npy, WhatIsBrokenOrOfAnotherKindIsRefused) {
  EXPECT_EQ(in_npy("PK"), "is no .npy file");
  EXPECT_EQ(in_npy("\x93NUMPY"), "is no .npy file");
  EXPECT_EQ(in_npy(npy_of("", "", 4)), "is a .npy file of version 4; 1 to 3 are read");
  const std::string whole = npy_of(header_of("<f4", "(2,)"), raw<float>({1, 2}));
  EXPECT_EQ(in_npy(whole.substr(0, 9)), "ends inside its header");
  EXPECT_EQ(in_npy(whole.substr(0, 30)), "ends inside its header");
  const std::string size = " bytes behind its header, which its shape and type do not make";
  EXPECT_EQ(in_npy(whole.substr(0, whole.size() - 1)), "has 7" + size);
  EXPECT_EQ(in_npy(whole + "x"), "has 9" + size);
  EXPECT_EQ(in_npy(npy_of(header_of("<f4", "(4611686018427387904, 4)"), "")), "has 0" + size);
  EXPECT_EQ(in_npy(npy_of(header_of(">f4", "(1,)"), "1234")),
            "has the type '>f4'; bool, integers and floats of 2 to 8 bytes are read, the low byte "
            "first");
  EXPECT_EQ(in_npy(npy_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", "")),
            "has the type '[('a', '<f4')]'; bool, integers and floats of 2 to 8 bytes are read, "
            "the low byte first");
  EXPECT_EQ(in_npy(npy_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "1234")),
            "is in Fortran's order; write it with numpy.ascontiguousarray()");
  for (const std::string shape : {"(-1,)", "(a,)", "(1, 2", "7"}) {
    EXPECT_EQ(in_npy(npy_of(header_of("|u1", shape), "1")), "has a header without a shape");
  }
}

// ---- Tar

std::vector<std::string> in_tar(const std::string& members,
                                const std::vector<std::string>& fields) {
  return targets_in({scan_tar, "a.tar"}, members + tar_end(), fields);
}

TEST(TarTargets, AreInJsonAndNpyMembers) {
  const std::string box = npy_of(header_of("<f4", "(2,)"), raw<float>({1.5, 2}));
  EXPECT_THAT(
      in_tar(tar_member("1.json", R"({"a": {"b": [1, 2]}, "c": 0.5})") +
                 tar_member("1.jpg", "one") + tar_member("1.Box.NPY", box) +
                 tar_member("2.npy", "no image") + tar_member("3.jpg", "three") +
                 tar_member("3.box.npy", box) + tar_member("3.json", R"({"a": {"b": 7}, "c": 1})"),
             {"json:c", "box.npy", "json:a.b"}),
      ElementsAre("float32 (): 0.5; float32 (2): 1.5 2; int64 (2): 1 2",
                  "int64 (): 1; float32 (2): 1.5 2; int64 (): 7"));
}

TEST(TarTargets, WhatIsMissingOrBrokenIsRefused) {
  const std::string image = tar_member("1.jpg", "one");
  EXPECT_THAT(in_tar(image, {"npy"}),
              ElementsAre("a.tar: at byte 0: '1.jpg' has no target 'npy': its key has no .npy"));
  EXPECT_THAT(in_tar(image, {"json:x"}), ElementsAre("a.tar: at byte 0: '1.jpg' has no target "
                                                     "'json:x': its key has no .json"));
  EXPECT_THAT(in_tar(image, {"cls"}),
              ElementsAre("a.tar: at byte 0: a tar has no target field "
                          "'cls': a target is json:FIELD, npy or NAME.npy, "
                          "NAME.safetensors:TENSOR, or a text (EXTENSION:text)"));
  const auto of_json = [&](const std::string& json) {
    return in_tar(image + tar_member("1.json", json), {"json:x"});
  };
  EXPECT_THAT(of_json("{"), ElementsAre("a.tar: at byte 1536: target 'json:x' in '1.json' cannot "
                                        "be read: that is no JSON"));
  EXPECT_THAT(of_json("{}"), ElementsAre("a.tar: at byte 1536: target 'json:x' in '1.json' is not "
                                         "there: no field 'x'"));
  EXPECT_THAT(of_json(R"({"x": null})"), ElementsAre("a.tar: at byte 1536: target 'json:x' in "
                                                     "'1.json' is or has null, and no number"));
  EXPECT_THAT(in_tar(image + tar_member("1.npy", "x"), {"npy"}),
              ElementsAre("a.tar: at byte 1536: target 'npy' in '1.npy' is no .npy file"));
  EXPECT_THAT(in_tar(image + tar_member("1.json", "{}") + tar_member("1.JSON", "{}"), {"json:x"}),
              ElementsAre("a.tar: at byte 2048: '1.json' and '1.JSON' are one key's, and have one "
                          "extension"));
  EXPECT_THAT(in_tar(image + tar_member("1.json", std::string((1 << 20) + 1, ' ')), {"json:x"}),
              ElementsAre("a.tar: at byte 1536: target 'json:x' in '1.json' has 1048577 bytes; at "
                          "most 1048576"));
}

// ---- TFRecord

std::vector<std::string> in_records(const std::vector<std::string>& features,
                                    const std::string& field = "x") {
  std::string file;
  for (const std::string& feature : features) {
    file += make_record(make_example({{"image", bytes_feature({"one"})}, {"x", feature}}));
  }
  return targets_in({scan_tfrecord, "a.tfrecord"}, file, {field});
}

TEST(TfrecordTargets, AreListsOfNumbers) {
  EXPECT_THAT(
      in_records({int64_feature({7}), int64_feature({-1, 2}), int64_feature({3, 4}, false)}),
      ElementsAre("int64 (): 7", "int64 (2): -1 2", "int64 (2): 3 4"));
  EXPECT_THAT(in_records({float_feature({0.5}), float_feature({1, 2})}),
              ElementsAre("float32 (): 0.5", "float32 (2): 1 2"));
  // Floats that are not packed, in two lists of one feature, which belong together.
  std::string half = raw<float>({0.5});
  const std::string unpacked = wire_bytes(2, std::string("\x0d") + half);
  EXPECT_THAT(in_records({unpacked + unpacked}), ElementsAre("float32 (2): 0.5 0.5"));
  // A list of another kind takes the place of what was there.
  EXPECT_THAT(in_records({float_feature({1}) + int64_feature({5, 6})}),
              ElementsAre("int64 (2): 5 6"));
}

TEST(TfrecordTargets, WhatHasNoNumbersIsRefused) {
  const std::string start = "a.tfrecord: at byte 0: record 0 has ";
  const std::string end = " at 'x', and a target is int64 or float values";
  EXPECT_THAT(in_records({bytes_feature({"a", "b"})}), ElementsAre(start + "2 bytes values" + end));
  EXPECT_THAT(in_records({""}), ElementsAre(start + "no values" + end));
  EXPECT_THAT(in_records({float_feature({})}), ElementsAre(start + "no values" + end));
  EXPECT_THAT(in_records({int64_feature({1})}, "y"),
              ElementsAre(start + "no key 'y' for the target: its keys are 'image', 'x'"));
  EXPECT_THAT(in_records({wire_bytes(2, wire_bytes(1, "12345"))}),
              ElementsAre("a.tfrecord: at byte 43: record 0 has a list of floats of 5 bytes, which "
                          "is no multiple of 4"));
}

// ---- MDS

// The target of one sample whose column has this encoding and value.
std::string in_mds(const std::string& encoding, const std::string& value, bool is_fixed = true) {
  const std::vector<MadeMdsColumn> columns = {
      {"image", "bytes", 0}, {"x", encoding, is_fixed ? static_cast<int64_t>(value.size()) : 0}};
  const std::string file = mds_shard(mds_settings(columns), {mds_sample(columns, {"one", value})});
  return targets_in({scan_mds, "a.mds"}, file, {"x"})[0];
}

TEST(MdsTargets, NumbersArraysAndText) {
  EXPECT_EQ(in_mds("int", mds_number(static_cast<uint64_t>(-7), 8)), "int64 (): -7");
  EXPECT_EQ(in_mds("int8", "\xfe"), "int64 (): -2");
  EXPECT_EQ(in_mds("int16", raw<int16_t>({-2})), "int64 (): -2");
  EXPECT_EQ(in_mds("int32", raw<int32_t>({-3})), "int64 (): -3");
  EXPECT_EQ(in_mds("int64", raw<int64_t>({-4})), "int64 (): -4");
  EXPECT_EQ(in_mds("uint8", "\xfe"), "uint8 (): 254");
  EXPECT_EQ(in_mds("uint16", raw<uint16_t>({65534})), "int64 (): 65534");
  EXPECT_EQ(in_mds("uint32", raw<uint32_t>({1u << 31})), "int64 (): 2147483648");
  EXPECT_EQ(in_mds("uint64", raw<uint64_t>({5})), "int64 (): 5");
  EXPECT_EQ(in_mds("float16", raw<uint16_t>({0x3800})), "float32 (): 0.5");
  EXPECT_EQ(in_mds("float32", raw<float>({0.5})), "float32 (): 0.5");
  EXPECT_EQ(in_mds("float64", raw<double>({0.25})), "float32 (): 0.25");
  EXPECT_EQ(in_mds("str_int", "-12", false), "int64 (): -12");
  EXPECT_EQ(in_mds("str_float", "3", false), "float32 (): 3");
  EXPECT_EQ(in_mds("ndarray:float32:2,2", raw<float>({1, 2, 3, 4})), "float32 (2, 2): 1 2 3 4");
  EXPECT_EQ(in_mds("ndarray:uint8:3", "\1\2\3"), "uint8 (3): 1 2 3");
}

TEST(MdsTargets, WhatIsNoNumberOfFixedShapeIsRefused) {
  const std::string rule =
      "' cannot be the target: its encoding is not a number's, str_int, str_float or "
      "ndarray:DTYPE:SHAPE";
  for (const std::string encoding :
       {"ndarray", "ndarray:float32", "ndarray:bool:2", "ndarray:float32:", "ndarray:float32:2,0",
        "ndarray:float32:a", "ndarray::2", "str", "json", "bool"}) {
    const std::string error = in_mds(encoding, "12345678");
    EXPECT_THAT(error, ::testing::HasSubstr("column 'x' (" + encoding +
                                            ") cannot be the target: "
                                            "its encoding is not a number's, str_int, str_float or "
                                            "ndarray:DTYPE:SHAPE"));
  }
  const auto refusal = [](const std::string& encoding, const std::string& value) {
    const std::string error = in_mds(encoding, value, false);
    const std::string start = "target 'x' (" + encoding + ") of sample 0 ";
    const size_t at = error.find(start);
    return at == std::string::npos ? error : error.substr(at + start.size());
  };
  const std::string size = " bytes, which its encoding does not make";
  EXPECT_EQ(refusal("int32", "123"), "has 3" + size);
  EXPECT_EQ(refusal("int32", "12345"), "has 5" + size);
  EXPECT_EQ(refusal("int32", "12345678"), "has 8" + size);
  EXPECT_EQ(refusal("ndarray:float32:2,2", "12345678"), "has 8" + size);
  EXPECT_EQ(refusal("ndarray:uint8:9999999999,9999999999", "1"), "has 1" + size);
  EXPECT_EQ(refusal("str_int", "cat"), "has 'cat', which is no number");
  EXPECT_EQ(refusal("str_float", "1 2"), "has several numbers");
  EXPECT_EQ(refusal("uint64", raw<uint64_t>({1ull << 63})),
            "has the value 9223372036854775808, which has more than 63 bits");
}

}  // namespace
}  // namespace stoker
