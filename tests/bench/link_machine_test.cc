#include "bench/suite/link_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const char* const kTwoGpus = R"({
  "name": "mine", "memory_gb_per_second": 40, "latency_us": 5, "peers": "tree",
  "links": [{"name": "root", "pcie": 3, "lanes": 16},
            {"name": "a", "gb_per_second": 6},
            {"name": "b", "gb_per_second_down": 5, "gb_per_second_up": 4}],
  "gpus": [{"name": "gpu-a", "path": ["a", "root"], "memory_gib": 8},
           {"name": "gpu-b", "path": ["b", "root"]}]})";

std::string links_of(const LinkMachine& machine, const Route& route) {
  std::string text;
  for (const LinkUse& use : route.links) {
    text += machine.links[use.link].name + (use.down ? " down, " : " up, ");
  }
  return text;
}

TEST(LinkMachine, IsReadFromJsonAndWrittenSoThatItIsReadAgain) {
  const LinkMachine machine = parse_machine(Json::parse(kTwoGpus));
  EXPECT_DOUBLE_EQ(machine.memory_per_second, 40e9);
  EXPECT_DOUBLE_EQ(machine.latency_seconds, 5e-6);
  EXPECT_DOUBLE_EQ(machine.links[2].down, 5e9);
  EXPECT_DOUBLE_EQ(machine.links[2].up, 4e9);
  EXPECT_EQ(machine.gpus[0].memory_bytes, int64_t{8} << 30);
  const Json again = to_json(machine);
  EXPECT_EQ(to_json(parse_machine(again)), again);
  for (const LinkMachine& preset : machine_presets()) {
    EXPECT_EQ(to_json(parse_machine(to_json(preset))), to_json(preset)) << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
  }
}

TEST(LinkMachine, BytesBetweenGpusTurnAtTheLinkThatBothShare) {
  LinkMachine machine = parse_machine(Json::parse(kTwoGpus));
  EXPECT_EQ(links_of(machine, route_to_gpu(machine, 0)), "a down, root down, ");
  EXPECT_EQ(links_of(machine, route_to_host(machine, 1)), "b up, root up, ");
  EXPECT_EQ(links_of(machine, route_between(machine, 0, 1)), "a up, b down, ");
  EXPECT_EQ(route_between(machine, 0, 1).memory, 0);
  // Without copies between GPUs the bytes go through the host's memory: written and read.
  machine.peers = PeerWay::host;
  EXPECT_EQ(links_of(machine, route_between(machine, 0, 1)), "a up, root up, b down, root down, ");
  EXPECT_EQ(route_between(machine, 0, 1).memory, 2);
  machine.peers = PeerWay::direct;
  machine.links.push_back({"nvlink", 1e11, 1e11});
  machine.gpus[0].direct = machine.gpus[1].direct = 3;
  EXPECT_EQ(links_of(machine, route_between(machine, 0, 1)), "nvlink up, nvlink down, ");
}

// The study's measurements of its machines.
TEST(LinkMachine, PcieReachesWhatWasMeasured) {
  EXPECT_NEAR(pcie_bytes_per_second(3, 1), 0.765e9, 0.05 * 0.765e9);
  EXPECT_NEAR(pcie_bytes_per_second(3, 8), 6.234e9, 0.05 * 6.234e9);
  EXPECT_NEAR(pcie_bytes_per_second(3, 16), 11.7e9, 0.06 * 11.7e9);
  EXPECT_DOUBLE_EQ(pcie_bytes_per_second(5, 16), 4 * pcie_bytes_per_second(3, 16));
  EXPECT_THROW(pcie_bytes_per_second(9, 16), std::invalid_argument);
  EXPECT_THROW(pcie_bytes_per_second(3, 0), std::invalid_argument);
}

TEST(LinkMachine, RefusesWithWhatDoesNotFit) {
  const auto refused = [](auto change, const std::string& why) {
    Json json = Json::parse(kTwoGpus);
    change(json);
    try {
      parse_machine(json);
      ADD_FAILURE() << why;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  refused([](Json& j) { j["memory_gb_per_second"] = 0; }, "'memory_gb_per_second' from 1e-06");
  refused([](Json& j) { j["latency_us"] = 1e300; }, "'latency_us'");
  refused([](Json& j) { j["gpus"][0]["memory_gib"] = 1e12; }, "'memory_gib'");
  refused([](Json& j) { j["memory"] = 1; }, "unknown key 'memory'");
  refused([](Json& j) { j["peers"] = "nvlink"; }, "'nvlink'");
  refused([](Json& j) { j["peers"] = "direct"; }, "gpu-a");
  refused([](Json& j) { j["gpus"][0]["path"][0] = "c"; }, "the link 'c', which is not there");
  refused([](Json& j) { j["gpus"][0]["path"][0] = "root"; }, "twice");
  refused([](Json& j) { j["gpus"][1]["name"] = "gpu-a"; }, "two GPUs are 'gpu-a'");
  refused([](Json& j) { j["links"][0]["gb_per_second"] = 3; }, "link 'root' needs either");
  refused([](Json& j) { j["links"][0]["lanes"] = 2.5; }, "whole number 'lanes'");
  refused([](Json& j) { j["links"][0].erase("lanes"); }, "link 'root' needs either");
  refused([](Json& j) { j["gpus"] = Json::array(); }, "a list 'gpus'");
}

TEST(LinkMachine, IsFoundByPresetOrFile) {
  EXPECT_EQ(find_machine("7gforce").gpus.size(), 7u);
  EXPECT_EQ(find_machine("4xm60").gpus.size(), 4u);
  EXPECT_EQ(find_machine("8xh100").gpus.size(), 8u);
  TempFolder folder;
  folder.write("mine.json", kTwoGpus);
  EXPECT_EQ(find_machine(folder.path() + "/mine.json").name, "mine");
  folder.write("bad.json", "{");
  for (const char* name : {"/bad.json", "/none.json"}) {
    try {
      find_machine(folder.path() + name);
      ADD_FAILURE() << name;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(folder.path() + name));
    }
  }
}

}  // namespace
}  // namespace stoker
