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

// Which files of a folder share a compilation changes with every new one.
TEST_F(CheckTypes, NamesOfOneFileDifferFromTheirNeighbours) {
  const std::string inside = "namespace stoker {\nnamespace {\n", end = "\n}\n}\n";
  put("tools/b.cc", inside + "constexpr int kMax = 3;\nint size_of(int a) { return a; }" + end);
  for (const std::string text :
       {"void size_of() {}", "template <typename T>\nT size_of(const std::vector<T>& a);",
        "struct size_of {};", "const char* const size_of[] = {\"a\", \"b\"};", "int size_of{3};",
        "int other() { return 3; }\nint size_of = 3;", "[[maybe_unused]] int size_of(int = {});"}) {
    put("tools/a.cc", inside + text + end);
    const ProgramResult result = check();
    EXPECT_EQ(result.exit_code, 1) << text;
    EXPECT_EQ(
        result.out,
        "size_of: tools/a.cc and tools/b.cc: one name in unnamed namespaces of files that are "
        "compiled together\n");
  }
  for (const std::string text :
       {"int other(int size_of) { return size_of; }", "struct Other { void size_of(); };",
        "int other() { int kMax = 3; return kMax; }", "static_assert(size_of(3) == 3);",
        "void Other::size_of() {}", "// int size_of = 3;"}) {
    put("tools/a.cc", inside + text + end);
    EXPECT_EQ(check().exit_code, 0) << text;
  }
  put("pipeline/a.cc", inside + "int size_of;" + end);
  EXPECT_EQ(check().exit_code, 0) << "another folder";
}

TEST_F(CheckTypes, TheSameAliasMayBeRepeated) {
  const std::string begin = "namespace stoker {\nnamespace {\n", end = "}\n}\n";
  put("tools/b.cc", begin + "namespace fs = std::filesystem;\nusing Json = nlohmann::json;" + end);
  put("tools/a.cc", begin + "namespace fs = std::filesystem;\nusing Json = nlohmann::json;" + end);
  EXPECT_EQ(check().exit_code, 0);
  put("tools/a.cc", begin + "using Json = nlohmann::ordered_json;" + end);
  EXPECT_EQ(check().exit_code, 1);
}

}  // namespace
}  // namespace stoker
