// The duties of every subcommand: help with examples, one line that gives the reason for refused
// options, exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

class EverySubcommand : public ::testing::TestWithParam<const char*> {};

TEST_P(EverySubcommand, HasHelpWithExamplesAndExitCodes) {
  const ProgramResult result = run_stoker({GetParam(), "--help"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Examples:\n  stoker " + std::string(GetParam())));
  EXPECT_THAT(result.out, HasSubstr("--config"));
  EXPECT_THAT(result.out, HasSubstr("Exit codes"));
  EXPECT_EQ(result.err, "");
}

TEST_P(EverySubcommand, RefusesAnUnknownOption) {
  const ProgramResult result = run_stoker({GetParam(), "--no-such-option", "3"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
}

INSTANTIATE_TEST_SUITE_P(Cli, EverySubcommand,
                         ::testing::Values("train", "eval", "peek", "plan", "profile", "top",
                                           "dump", "check", "index", "pack", "info", "make-shapes"),
                         [](const auto& command) {
                           std::string name = command.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Cli, ListsTheSubcommands) {
  const ProgramResult result = run_stoker({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("make-shapes"));
}

TEST(Cli, NoSubcommandAndAnUnknownOneAreUsageErrors) {
  EXPECT_EQ(run_stoker({}).exit_code, 2);
  ProgramResult result = run_stoker({"trian"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "stoker: there is no subcommand 'trian'; did you mean train? (see stoker --help)\n");
  result = run_stoker({"nosuch"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "stoker: there is no subcommand 'nosuch' (see stoker --help)\n");
}

TEST(Cli, InfoPrintsJson) {
  const ProgramResult result = run_stoker({"info", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto info = nlohmann::json::parse(result.out);
  EXPECT_GE(info["cores_usable"].get<int>(), 1);
  EXPECT_GT(info["memory_bytes"].get<int64_t>(), int64_t{1} << 26);
  EXPECT_EQ(info["devices"][0]["name"], "cpu");
  EXPECT_TRUE(info["libraries"].contains("oneDNN"));
  for (const char* library : {"OpenJPEG", "libavif"}) {
    const auto& codec = info["codecs"][library];
    EXPECT_NE(codec["version"] == "", codec["problem"] == "") << library;
  }
}

TEST(Cli, OptionsComeFromAConfigFileAndTheCommandLineWins) {
  TempFolder folder;
  folder.write("shapes.toml", "out = \"" + (folder.path() + "/shapes") +
                                  "\"\ncount = 20\ntest-count = 10\nsize = 16\n");
  const ProgramResult result =
      run_stoker({"make-shapes", "--config", folder.path() + "/shapes.toml", "--size", "24"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("20 training and 10 test images of 24 x 24"));
}

TEST(Cli, AConfigFileMayHaveSectionsOfSubcommands) {
  TempFolder folder;
  folder.write("all.toml", "seed = 4\n[train]\nepochs = 3\n[make-shapes]\nout = \"" +
                               folder.path() + "/s\" # here\ncount = 20\ntest-count = 10\n");
  const ProgramResult result =
      run_stoker({"make-shapes", "--config", folder.path() + "/all.toml", "--size", "16"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("20 training and 10 test images of 16 x 16"));
}

TEST(Cli, AConfigFileWithAnUnknownKeyOrABadValueIsRefused) {
  TempFolder folder;
  folder.write("unknown.toml", "out = \"x\"\ncuont = 20\n");
  ProgramResult result = run_stoker({"make-shapes", "--config", folder.path() + "/unknown.toml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown.toml"));
  EXPECT_THAT(result.err, HasSubstr("unknown key cuont"));

  folder.write("section.toml", "[make-shaeps]\nout = \"x\"\n");
  result = run_stoker({"make-shapes", "--config", folder.path() + "/section.toml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("make-shaeps"));

  folder.write("bad.toml", "out = \"x\"\ncount = -5\n");
  result = run_stoker({"make-shapes", "--config", folder.path() + "/bad.toml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("-5"));

  result = run_stoker({"make-shapes", "--config", folder.path() + "/missing.toml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("missing.toml"));
}

// Not "0.000000 to 1797693134862315708145...".
TEST(Cli, WritesRangesAsAPersonDoes) {
  ProgramResult result = run_stoker({"train", "--data", "x", "--max-bad", "-1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("--max-bad: Value -1 not in range 0 or more (see stoker train"));
  result = run_stoker({"profile", "--data", "x", "--seconds", "0.25"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--seconds: Value 0.25 not in range 0.5 to 3600 (see"));
}

TEST(Cli, OutputThatCannotBeWrittenIsAFailure) {
  const ProgramResult result =
      run_program({"sh", "-c", std::string(STOKER_PROGRAM) + " info --json > /dev/full"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("standard output cannot be written: No space left on device"));
}

TEST(Cli, EvalOfACheckpointThatIsNotThereIsAUsageError) {
  const ProgramResult result = run_stoker({"eval", "--data", "x", "--checkpoint", "no/such/run"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--checkpoint: no/such/run: No such file or directory"));
}

TEST(Scripts, RefuseUnknownOptionsAndExplainThemselves) {
  for (const std::string script : {"install-deps", "test", "quickstart"}) {
    const std::string path = STOKER_SOURCE_DIR "/tools/" + script;
    EXPECT_EQ(run_program({path, "--no-such-option"}).exit_code, 2) << script;
    const ProgramResult help = run_program({path, "--help"});
    EXPECT_EQ(help.exit_code, 0) << script;
    EXPECT_THAT(help.out, HasSubstr("tools/" + script + " ["));
  }
  EXPECT_EQ(run_program({STOKER_SOURCE_DIR "/tools/quickstart", "--data", "/no/such"}).exit_code,
            2);
}

}  // namespace
}  // namespace stoker
