// The plugins of codecs: what each says of itself, and what its format gives without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

// All tests of this program find the plugins; those without one run in a process of their own.
const bool kPluginsAreFound = setenv("STOKER_PLUGIN_DIR", STOKER_PLUGINS, 0) == 0;

struct PluginOfCodec {
  const char* format;
  const char* library;
  bool is_built;
  const char* file;     // a golden one of 23x17 pixels
  const char* refusal;  // without the plugin: a regular expression
};

class CodecPluginDeathTest : public ::testing::TestWithParam<PluginOfCodec> {};

INSTANTIATE_TEST_SUITE_P(
    Plugins, CodecPluginDeathTest,
    ::testing::Values(
        PluginOfCodec{"JPEG 2000", "OpenJPEG", STOKER_HAS_OPENJPEG, "variants/rgb_reversible.jp2",
                      "unsupported: JPEG 2000 needs OpenJPEG: libstoker_openjpeg.so is not in "
                      "/nowhere .it is built with libopenjp2-7-dev"},
        PluginOfCodec{"AVIF", "libavif", STOKER_HAS_AVIF, "avifs/420_full.avif",
                      "unsupported: AVIF needs libavif: libstoker_avif.so is not in /nowhere .it "
                      "is built with libavif-dev and libdav1d-dev"}),
    [](const auto& plugin) { return std::string(plugin.param.library); });

std::vector<uint8_t> golden_picture(const char* file) {
  return read_file(std::string(STOKER_GOLDEN_DIR) + "/decode/" + file);
}

DecodeStatus decode_by_plugin(const std::vector<uint8_t>& bytes) {
  ImageDecoder decoder;
  Pixels out({23, 17});
  return decoder.decode(bytes, plain_crop({0, 0, 23, 17}), out.view());
}
DecodeStatus decode_by_plugin(const char* file) { return decode_by_plugin(golden_picture(file)); }

TEST_P(CodecPluginDeathTest, SaysWhatItIs) {
  ASSERT_TRUE(kPluginsAreFound);
  const bool is_built = GetParam().is_built;
  int found = 0;
  for (const CodecPluginStatus& status : query_codec_plugins()) {
    if (status.library != GetParam().library) continue;
    ++found;
    EXPECT_EQ(status.format, GetParam().format);
    EXPECT_EQ(status.version.empty(), !is_built) << status.problem;
    EXPECT_EQ(status.problem.empty(), is_built) << status.problem;
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(decode_by_plugin(GetParam().file).code,
            is_built ? DecodeCode::ok : DecodeCode::unsupported);
}

TEST_P(CodecPluginDeathTest, WithoutItTheFormatIsUnsupported) {
  ::testing::FLAGS_gtest_death_test_style =
      "threadsafe";  // a new process, which has opened nothing
  const auto report = [] {
    setenv("STOKER_PLUGIN_DIR", "/nowhere", 1);
    const DecodeStatus status = decode_by_plugin(GetParam().file);
    std::fprintf(stderr, "%s: %s\n", to_string(status.code), status.message.c_str());
    std::_Exit(7);
  };
  EXPECT_EXIT(report(), ::testing::ExitedWithCode(7), GetParam().refusal);
}

// OpenJPEG's own tools print what its handlers get.
TEST(OpenjpegPluginDeathTest, PrintsNothingOfItsOwn) {
  if (!STOKER_HAS_OPENJPEG) GTEST_SKIP() << "built without OpenJPEG";
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto report = [] {
    const std::vector<uint8_t> good = golden_picture("variants/rgb_reversible.jp2");
    int refused = 0;
    for (size_t at = good.size() / 3; at < good.size(); ++at) {
      std::vector<uint8_t> bytes = good;
      bytes[at] ^= 0xFF;
      refused += decode_by_plugin(bytes).message.starts_with("OpenJPEG: ");
    }
    std::cerr << (refused > 0 ? "refused" : "none is refused") << std::endl;
    std::_Exit(7);
  };
  EXPECT_EXIT(report(), ::testing::ExitedWithCode(7), ::testing::Eq("refused\n"));
}

TEST(CodecPluginOfAnotherBuildDeathTest, IsRefused) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto report = [] {
    setenv("STOKER_PLUGIN_DIR", STOKER_OTHER_BUILD, 1);
    std::fprintf(stderr, "%s\n", decode_by_plugin("avifs/420_full.avif").message.c_str());
    std::_Exit(7);
  };
  EXPECT_EXIT(report(), ::testing::ExitedWithCode(7),
              "libstoker_avif.so comes from another build of stoker");
}

}  // namespace
}  // namespace stoker
