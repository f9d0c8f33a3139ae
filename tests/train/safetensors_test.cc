#include "train/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>

#include "pipeline/files/durable_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  const std::string folder_ = ::testing::TempDir() + "/safetensors_" +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                              std::to_string(getpid());
  const std::string path_ = folder_ + "/t.safetensors";
};

// Returns a file with this header and this many bytes of data.
std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\1');
}

TEST_F(Safetensors, WritesTheBytesOfTheFormat) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {-0.5f};
  const TensorView tensors[] = {{"layer.weight", {2, 3}, a}, {"bias", {1}, b}};
  write_safetensors(path_, tensors, {{"format", "pt"}});
  const std::string bytes = read_whole_file(path_);
  std::string header =
      R"({"__metadata__":{"format":"pt"},"bias":{"data_offsets":[24,28],"dtype":"F32","shape":[1]},)"
      R"("layer.weight":{"data_offsets":[0,24],"dtype":"F32","shape":[2,3]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  ASSERT_EQ(bytes.size(), 8 + header.size() + 28);
  EXPECT_EQ(bytes.substr(0, 8 + header.size()), file_of(header, 0));
  EXPECT_EQ(0, std::memcmp(bytes.data() + 8 + header.size(), a.data(), 24));
  EXPECT_EQ(0, std::memcmp(bytes.data() + 8 + header.size() + 24, b.data(), 4));
}

TEST_F(Safetensors, ReadsWhatItWrote) {
  const std::vector<float> values = {1, -2, 3.5f, 1e-30f}, none;
  const TensorView tensors[] = {
      {"x", {4, 1}, values}, {"empty", {0, 3}, none}, {"e", {}, {&values[2], 1}}};
  write_safetensors(path_, tensors, {{"who", "\"stoker\"\n"}});
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata().at("who"), "\"stoker\"\n");
  ASSERT_TRUE(file.has("x"));
  std::vector<float> back(4), one(1);
  file.read("x", std::vector<int64_t>{4, 1}, back);
  EXPECT_EQ(back, values);
  file.read("e", {}, one);
  EXPECT_EQ(one[0], 3.5f);
  EXPECT_THROW(file.read("x", std::vector<int64_t>{4}, back), std::runtime_error);
  EXPECT_THROW(file.read("y", std::vector<int64_t>{4, 1}, back), std::runtime_error);
}

TEST_F(Safetensors, RefusesToWriteNonsense) {
  const std::vector<float> values = {1, 2};
  const TensorView twice[] = {{"x", {2}, values}, {"x", {2}, values}};
  const TensorView misfit[] = {{"x", {3}, values}};
  EXPECT_THROW(write_safetensors(path_, twice, {}), std::invalid_argument);
  EXPECT_THROW(write_safetensors(path_, misfit, {}), std::invalid_argument);
}

TEST_F(Safetensors, RefusesHostileHeaders) {
  const auto refused = [](const std::string& header, size_t data) {
    EXPECT_THROW(SafetensorsFile(file_of(header, data), "test"), std::runtime_error) << header;
  };
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"x":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}}";
  };
  EXPECT_NO_THROW(SafetensorsFile(file_of(tensor("\"F32\"", "[2]", "[0,8]"), 8), "test"));
  EXPECT_NO_THROW(SafetensorsFile(file_of("{}", 0), "test"));
  refused("", 0);
  refused(" {}", 0);
  refused("{", 0);
  refused("[]", 0);
  refused("{}", 1);                               // bytes of no tensor
  refused(tensor("\"F32\"", "[2]", "[0,8]"), 9);  // more bytes than tensors
  refused(tensor("\"F32\"", "[2]", "[0,8]"), 7);  // fewer
  refused(tensor("\"F32\"", "[2]", "[1,9]"), 9);  // a gap
  refused(tensor("\"F32\"", "[3]", "[0,8]"), 8);  // shape and bytes differ
  refused(tensor("\"F32\"", "[-2]", "[0,8]"), 8);
  refused(tensor("\"F32\"", "[2.0]", "[0,8]"), 8);
  refused(tensor("\"F32\"", "\"2\"", "[0,8]"), 8);
  refused(tensor("\"F32\"", "[2]", "[8,0]"), 8);
  refused(tensor("\"F32\"", "[2]", "[0]"), 8);
  refused(tensor("\"F99\"", "[2]", "[0,8]"), 8);
  refused(tensor("32", "[2]", "[0,8]"), 8);
  refused(tensor("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0);  // 2^66 bytes: wraps to 0
  refused(tensor("\"F32\"", "[18446744073709551615]", "[0,8]"), 8);
  refused(R"({"x":1})", 0);
  refused(R"({"x":{"dtype":"F32","shape":[0]}})", 0);
  refused(R"({"__metadata__":{"a":1}})", 0);
  refused(R"({"__metadata__":[]})", 0);
  refused(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
          R"("y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          1);  // overlap
  refused(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
          R"("x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          1);  // twice
  refused(std::string(100000, '['), 0);
  refused("{\"x\":" + std::string(100000, '['), 0);
}

TEST_F(Safetensors, RefusesHeaderLengthsBeyondTheFile) {
  for (const uint64_t length : {uint64_t{3}, uint64_t{1} << 32, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_THROW(SafetensorsFile(bytes + "{}", "test"), std::runtime_error);
  }
  EXPECT_THROW(SafetensorsFile("1234567", "test"), std::runtime_error);
}

// A damaged file is either rejected, or all of its tensors are inside it.
TEST_F(Safetensors, SurvivesDamagedBytes) {
  const std::vector<float> values(6, 1.0f);
  const TensorView tensors[] = {{"a", {2, 3}, values}, {"b", {6}, values}};
  write_safetensors(path_, tensors, {});
  const std::string sound = read_whole_file(path_);
  std::mt19937 generator(1);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes = sound.substr(0, trial % 3 == 0 ? generator() % sound.size() : sound.size());
    for (int change = 0; change < 2 && !bytes.empty(); ++change) {
      bytes[generator() % bytes.size()] = static_cast<char>(generator());
    }
    const size_t size = bytes.size();
    try {
      const SafetensorsFile file(std::move(bytes), "damaged");
      for (const auto& [name, tensor] : file.tensors()) ASSERT_LE(tensor.end, size);
    } catch (const std::runtime_error&) {
    }
  }
}

}  // namespace
}  // namespace stoker
