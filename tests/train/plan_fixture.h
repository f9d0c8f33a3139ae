// Checks that every execution plan must pass, for both engines. Values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "train/graph/execution_plan.h"
#include "train/model/models.h"
#include "train/model/net_builder.h"

namespace stoker {

// An arena that records which buffer wrote each of its cells last.
class ShadowArena {
 public:
  explicit ShadowArena(const ExecutionPlan& plan)
      : plan_(plan), writers_(static_cast<size_t>(plan.memory.bytes / kCell), -1) {}

  void write(int buffer) {
    for (int& writer : cells(buffer)) writer = buffer;
  }
  bool holds(int buffer) {
    return std::ranges::all_of(cells(buffer), [&](int writer) { return writer == buffer; });
  }

 private:
  static constexpr int64_t kCell = kArenaAlignment;
  std::span<int> cells(int buffer) {
    return std::span(writers_).subspan(plan_.memory.offsets[buffer] / kCell,
                                       plan_.buffer_bytes[buffer] / kCell);
  }

  const ExecutionPlan& plan_;
  std::vector<int> writers_;
};

// Simulates the steps that are not left out: before and after each step the arena must hold the
// buffers that it uses.
inline void expect_nothing_is_overwritten(const ExecutionPlan& plan, const std::string& what) {
  ShadowArena arena(plan);
  arena.write(plan.input);
  for (const PlanStep& step : plan.steps) {
    if (step.left_out) continue;
    for (const int buffer : step.reads) {
      ASSERT_TRUE(arena.holds(buffer)) << what << ": before " << step.name << " of " << step.node;
    }
    for (const int buffer : step.writes) arena.write(buffer);
    for (const std::vector<int>* named : {&step.reads, &step.writes}) {
      for (const int buffer : *named) {
        ASSERT_TRUE(arena.holds(buffer)) << what << ": after " << step.name << " of " << step.node;
      }
    }
  }
}

// Checks the plan with all tensors trained, with the first tensors frozen, and with all but the
// first ones frozen.
inline void expect_sound(ExecutionPlan plan, const GradientLayout& layout,
                         const std::string& what) {
  expect_nothing_is_overwritten(plan, what);
  const size_t count = layout.tensors().size();
  for (size_t frozen = 0; frozen <= count; frozen += std::max<size_t>(1, count / 7)) {
    std::vector<bool> tensors(count, false);
    std::fill_n(tensors.begin(), frozen, true);
    plan.leave_out(tensors, layout);
    expect_nothing_is_overwritten(plan, what + ", the first " + std::to_string(frozen) + " frozen");
    tensors.flip();
    plan.leave_out(tensors, layout);
    expect_nothing_is_overwritten(plan, what + ", but the first " + std::to_string(frozen));
  }
}

// Returns all models, at a small input size, and narrow where they are made for wide ones.
inline std::vector<NetSpec> zoo() {
  const std::map<std::string, std::pair<Size, std::vector<int>>> special{
      {"alexnet", {{64, 64}, {16, 16, 16, 16, 16, 32}}},
      {"inception_v3", {{299, 299}, {}}},
      {"mlp41m", {{100, 80}, {40, 30, 20, 10}}},
      {"vgg16", {{32, 32}, {16, 16, 16, 16, 16, 32}}},
      {"vgg16_bn", {{32, 32}, {16, 16, 16, 16, 16, 32}}},
      {"vgg19", {{32, 32}, {16, 16, 16, 16, 16, 32}}},
      {"vgg19_bn", {{32, 32}, {16, 16, 16, 16, 16, 32}}}};
  std::vector<NetSpec> nets;
  for (const std::string& name : list_models()) {
    const auto found = special.find(name);
    const auto& [size, widths] =
        found != special.end() ? found->second : std::pair(Size{32, 32}, std::vector<int>{});
    nets.push_back(make_net(name, size, name == "mlp41m" ? 2 : 10, {widths}));
  }
  return nets;
}

// Returns a net with a value that has several readers, and an addition of a value to itself.
inline NetSpec many_readers() {
  NetBuilder net("many-readers", {8, 8}, 5);
  const int stem = net.conv("stem", 0, 16, 3, 1, 1);
  const int norm = net.batch_norm("norm", stem, 1e-5f, 0.1f);
  const int doubled = net.add(norm, norm);
  const int left = net.conv("left", norm, 16, 1, 1, 0);
  const int sum = net.plain(OpKind::relu, net.add(net.add(left, norm), doubled));
  net.linear("fc", net.adaptive_avg_pool(sum, {1, 1}), true, 1.0f);
  return net.finish();
}

}  // namespace stoker
