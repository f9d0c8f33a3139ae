// The fixture of tests that run on every instruction set that this machine has:
// INSTANTIATE_TEST_SUITE_P(AllTargets, SUITE, every_target(), target_name).
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>

namespace stoker {

class EveryTarget : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

// Static, because files are compiled for different sets of them.
static inline auto every_target() {
  return ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets());
}

inline std::string target_name(const ::testing::TestParamInfo<int64_t>& target) {
  return hwy::TargetName(target.param);
}

}  // namespace stoker
