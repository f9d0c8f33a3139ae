#include "staging/device_list.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "staging/cuda_driver.h"
#include "staging/plugin.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DeviceList, HostDevicesByName) {
  EXPECT_EQ(make_device("cpu:0")->name(), "cpu:0");
  EXPECT_EQ(make_device("cpu:12")->name(), "cpu:12");
  EXPECT_EQ(make_device("cpu:0")->cuda_ordinal(), -1);
}

TEST(DeviceList, NamesThatAreNoDevice) {
  for (const char* name :
       {"", "cpu", "cpu:", "cpu:-1", "cpu:1x", "cuda:+0", "cuda:", "gpu:0", "cuda:99999999999"}) {
    EXPECT_THROW(make_device(name), std::invalid_argument) << name;
  }
  EXPECT_EQ(message_of([] { make_device("gpu:0"); }),
            "\"gpu:0\" is no device: \"cpu:0\" and \"cuda:0\" are, with any number");
}

TEST(DeviceList, NoDriver) {
  const CudaStatus status = query_driver("libno-such-driver.so.1");
  EXPECT_TRUE(status.devices.empty());
  EXPECT_EQ(status.driver_version, 0);
  EXPECT_EQ(status.problem,
            "no NVIDIA driver (libno-such-driver.so.1: cannot open shared object file: No such "
            "file or directory)");
}

TEST(DeviceList, ALibraryThatIsNoDriver) {
  EXPECT_EQ(query_driver("libc.so.6").problem,
            "libc.so.6 is no usable NVIDIA driver: it has no cuInit");
}

TEST(DeviceList, WhatCannotBeUsedSaysWhyInOneLine) {
  const CudaStatus status = query_cuda();
  if (status.problem.empty()) GTEST_SKIP() << "there is a GPU: " << status.devices.front().model;
  const std::string message = message_of([] { make_device("cuda:0"); });
  EXPECT_EQ(message, "cuda:0: " + status.problem);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(DeviceList, NumaNodeOfADevice) {
  const std::string folder = ::testing::TempDir() + "/numa_node_of";
  std::filesystem::create_directories(folder + "/0000:3b:00.0");
  std::ofstream(folder + "/0000:3b:00.0/numa_node") << "1\n";
  EXPECT_EQ(numa_node_of("0000:3b:00.0", folder), 1);
  EXPECT_EQ(numa_node_of("0000:5e:00.0", folder), -1);
}

TEST(Plugin, IsNotThere) {
  const Plugin plugin = open_plugin("libstoker_no_such.so", "entry");
  EXPECT_EQ(plugin.entry, nullptr);
  EXPECT_THAT(plugin.problem, StartsWith("libstoker_no_such.so is not in /"));
}

TEST(Plugin, IsFromAnotherBuild) {
  EXPECT_EQ(other_build("libx.so", {2, "stoker 1.2.3 GNU 12"}, {2, "stoker 1.2.3 GNU 12"}), "");
  EXPECT_EQ(other_build("libx.so", {2, "stoker 1.2.2 GNU 12"}, {2, "stoker 1.2.3 GNU 12"}),
            "libx.so is from another build of stoker (stoker 1.2.2 GNU 12, table 2) than what "
            "opens it (stoker 1.2.3 GNU 12, table 2): install all packages of stoker in the same "
            "version");
  EXPECT_THAT(other_build("libx.so", {1, "stoker 1.2.3 GNU 12"}, {2, "stoker 1.2.3 GNU 12"}),
              HasSubstr("(stoker 1.2.3 GNU 12, table 1) than what opens it"));
}

}  // namespace
}  // namespace stoker
