#include "train/cuda/conv.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <utility>

#include "train/cuda/kernels.h"
#include "train/cuda/plan_trial.h"

namespace stoker {
namespace {

// The number of plans that are timed. The choice is stored.
constexpr int kCandidates = 20;
// The same for fused plans: cuDNN compiles each one for about a second before it can be timed.
constexpr int kFusedCandidates = 2;
// If the pass over the output is shorter than this, compiling is not worth it, because a fused plan
// saves at most the time of that pass.
constexpr float kWorthCompilingMs = 0.02f;
// The plan cache's entry if no fused plan is faster.
constexpr char kApart[] = "apart";

int64_t most_workspace(const std::vector<CudnnPlan>& plans) {
  int64_t most = 0;
  for (const CudnnPlan& plan : plans) most = std::max(most, plan.workspace_bytes);
  return most;
}

std::vector<std::string> plan_names(const std::vector<CudnnPlan>& plans) {
  std::vector<std::string> names;
  for (const CudnnPlan& plan : plans) names.push_back(plan.name);
  return names;
}

// Returns everything besides the convolution that a plan's speed depends on. MIG slices and
// variants of one GPU name differ in multiprocessors and memory.
std::string machine_name() {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp gpu;
  cuda::check(cudaGetDeviceProperties(&gpu, device), "cudaGetDeviceProperties");
  return std::string(gpu.name) + " " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) +
         ", " + std::to_string(gpu.multiProcessorCount) + " multiprocessors, " +
         std::to_string(gpu.totalGlobalMem) + " bytes, cuDNN " + std::to_string(cudnnGetVersion());
}

void say(const std::string& line) { std::fprintf(stderr, "stoker: %s\n", line.c_str()); }

}  // namespace

CudaConvs::CudaConvs(cudaStream_t stream, const DeviceTuning& tuning)
    : stream_(stream),
      tuning_(tuning),
      machine_(machine_name()),
      choices_(tuning.autotune ? tuning.plan_cache : "", say) {
  check_cudnn(cudnnCreate(&handle_), "cudnnCreate");
  check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
}

CudaConvs::~CudaConvs() {
  plans_.clear();
  with_statistics_.clear();
  cudnnDestroy(handle_);
}

std::unique_ptr<DeviceConv> CudaConvs::make(const ConvShape& shape, bool backward) {
  return make_lazy_conv(*this, shape, backward);
}

const CudnnPlan& CudaConvs::plan(const ConvShape& shape, ConvPass pass) {
  for (const Entry& entry : plans_) {
    if (entry.shape == shape && entry.pass == pass) return *entry.plan;
  }
  const ConvPlanWish wish{shape, pass, tuning_.deterministic, tuning_.workspace_limit};
  plans_.push_back({shape, pass, std::make_unique<CudnnPlan>(choose(wish))});
  return *plans_.back().plan;
}

std::string CudaConvs::question_of(const std::string& what, int candidates) const {
  return machine_ + "; " + what + "; " +
         (tuning_.deterministic ? "deterministic" : "in any order") + ", " +
         std::to_string(tuning_.workspace_limit) + " bytes of workspace, of " +
         std::to_string(candidates) + " plans";
}

CudnnPlan CudaConvs::choose(const ConvPlanWish& wish) {
  const CudnnTarget target(handle_);
  if (!tuning_.autotune) return std::move(list_conv_plans(target, wish, 1)[0]);
  std::optional<CudnnPlan> restored;
  std::vector<CudnnPlan> plans;
  std::optional<PlanTrial> trial;
  PlanSearch search;
  search.restore = [&](const std::string& name) {
    restored = find_conv_plan(target, wish, name);
    return restored.has_value();
  };
  search.candidates = [&] {
    plans = list_conv_plans(target, wish, kCandidates);
    std::vector<int64_t> sizes = operand_bytes(wish.shape, wish.pass);
    sizes.push_back(most_workspace(plans));
    trial.emplace(stream_, sizes);
    return plan_names(plans);
  };
  search.time = [&](size_t index, float best) {
    // Without memory for the trial the heuristics' choice is used.
    if (!trial->has_room()) return std::numeric_limits<float>::infinity();
    const CudnnDescriptor operands =
        bind_conv(trial->at(0), trial->at(1), trial->at(2), trial->at(3));
    return trial_ms(
        stream_, [&] { execute_plan(handle_, plans[index], operands); }, best);
  };
  const std::optional<size_t> chosen =
      choices_.choose(question_of(describe(wish.shape, wish.pass), kCandidates), search);
  return chosen ? std::move(plans[*chosen]) : std::move(*restored);
}

const CudnnPlan* CudaConvs::with_statistics(const ConvShape& shape) {
  if (!tuning_.autotune) return nullptr;
  for (const StatisticsEntry& entry : with_statistics_) {
    if (entry.shape == shape) return entry.plan.get();
  }
  with_statistics_.push_back({shape, choose_with_statistics(shape)});
  return with_statistics_.back().plan.get();
}

std::unique_ptr<CudnnPlan> CudaConvs::choose_with_statistics(const ConvShape& shape) {
  const CudnnTarget target(handle_);
  const FusedConvWish wish{shape, ConvFusion::statistics, tuning_.deterministic,
                           tuning_.workspace_limit};
  const std::string question =
      question_of(describe(shape, ConvPass::forward) + ", and its sums", kFusedCandidates);
  const CudnnPlan& plain = plan(shape, ConvPass::forward);
  std::unique_ptr<CudnnPlan> restored;
  std::vector<CudnnPlan> plans;
  std::optional<PlanTrial> trial;
  const auto keep = [](std::optional<CudnnPlan> found) {
    return found ? std::make_unique<CudnnPlan>(std::move(*found)) : nullptr;
  };
  PlanSearch search;
  search.restore = [&](const std::string& name) {
    if (name == kApart) return true;
    if (const std::optional<std::string> text = choices_.compiled(question, name)) {
      restored = keep(restore_fused_plan(target, wish, name, *text));
    }
    if (restored == nullptr) {
      restored = keep(find_fused_plan(target, wish, name));
      if (restored != nullptr) choices_.keep_compiled(question, name, text_of(*restored));
    }
    return restored != nullptr;
  };
  search.candidates = [&] {
    if (sum_pass_ms(stream_, shape) > kWorthCompilingMs) {
      plans = list_fused_plans(target, wish, kFusedCandidates);
    }
    std::vector<int64_t> sizes = operand_bytes(shape, ConvPass::forward);
    const int64_t channel_bytes = shape.out_channels * static_cast<int64_t>(sizeof(float));
    sizes.insert(sizes.end(), {channel_bytes, channel_bytes, sum_pass_scratch_bytes(shape),
                               std::max(plain.workspace_bytes, most_workspace(plans))});
    trial.emplace(stream_, sizes);
    std::vector<std::string> names = plan_names(plans);
    names.insert(names.begin(), kApart);
    return names;
  };
  search.time = [&](size_t index, float best) {
    if (!trial->has_room()) return std::numeric_limits<float>::infinity();
    std::byte* const y = trial->at(2);
    if (index == 0) {
      const CudnnDescriptor operands = bind_conv(trial->at(0), trial->at(1), y, trial->at(6));
      const auto run = [&] {
        execute_plan(handle_, plain, operands);
        queue_sum_pass(stream_, shape, y, trial->at(5));
      };
      return trial_ms(stream_, run, best);
    }
    const CudnnDescriptor operands =
        bind_statistics(trial->at(0), trial->at(1), y, trial->at(3), trial->at(4), trial->at(6));
    return trial_ms(
        stream_, [&] { execute_plan(handle_, plans[index - 1], operands); }, best);
  };
  const std::optional<size_t> chosen = choices_.choose(question, search);
  if (!chosen) return restored;
  if (*chosen == 0) return nullptr;
  CudnnPlan& best = plans[*chosen - 1];
  choices_.keep_compiled(question, best.name, text_of(best));
  return std::make_unique<CudnnPlan>(std::move(best));
}

void CudaConvs::execute(const CudnnPlan& plan, const CudnnDescriptor& operands) {
  choices_.save();  // everything is planned before the first step
  execute_plan(handle_, plan, operands);
}

}  // namespace stoker
