// The check of type names finds two types of one name, and nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

class CheckTypes : public ::testing::Test {
 protected:
  CheckTypes() {
    put("decode/image.h", "namespace stoker {\nstruct Size { int width = 0; };\n}\n");
  }
  void put(const std::string& name, const std::string& text) { folder_.write(name, text); }
  ProgramResult check() {
    return run_program({STOKER_SOURCE_DIR "/tools/check-types", folder_.path()});
  }
  void expect_refused(const std::string& text) {
    put("tools/a.cc", text);
    const ProgramResult result = check();
    EXPECT_EQ(result.exit_code, 1) << text;
    EXPECT_EQ(result.out, "stoker::Size: decode/image.h and tools/a.cc: two types of one name\n");
  }
  void expect_accepted(const std::string& text) {
    put("tools/a.cc", text);
    const ProgramResult result = check();
    EXPECT_EQ(result.exit_code, 0) << text << result.out;
    EXPECT_THAT(result.out, HasSubstr("has a name of its own"));
  }

  TempFolder folder_;
};

TEST_F(CheckTypes, OneNameIsForOneType) {
  for (const std::string type :
       {"struct Size { int a; };", "class Size final : public Base<int> {};",
        "enum class Size : char { small };", "enum Size { small };", "union Size { int a; };",
        "template <typename T, int N>\nstruct Size { T a[N]; };",
        "class CAPABILITY(\"mutex\") Size { void f() {} };"}) {
    expect_refused("namespace stoker {\nint one() { return 1; }\n" + type + "\n}\n");
  }
}

TEST_F(CheckTypes, WhatNobodyElseSeesMayHaveAnyName) {
  for (const std::string text :
       {"namespace { struct Size {}; }", "void f() { struct Size {}; }", "struct Size;",
        "struct Box { struct Size {}; };", "namespace other { struct Size {}; }",
        "Size size() { return {}; }", "// struct Size {};",
        "const char* s = \"{ struct Size {}; \";", "#define SIZE struct Size {};",
        "const char* s = R\"x({ struct Size {)x\";"}) {
    expect_accepted("namespace stoker {\n" + text + "\n}\n");
  }
}

}  // namespace
}  // namespace stoker
