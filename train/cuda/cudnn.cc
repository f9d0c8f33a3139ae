#include "train/cuda/cudnn.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "train/cuda/plan_choices.h"

namespace stoker {
namespace {

// The number of configurations of one engine that are tried before the other engines get their
// turn. For ResNet-50 on an H100 cuDNN 9.19 lists 12 to 42 per pass. The first 11 to 32 of a
// forward pass all belong to engine 62, those of the input gradient to 67 or 73, those of the
// weights to 65, with knobs that differ in the size of a tile or of the cluster. The other engines
// (22 and 45; 57, 40 and 46; 33, 49, 10 and 47) come after these.
constexpr int kInARow = 4;

std::vector<CudnnDescriptor> engine_configs(const CudnnTarget& target, const CudnnDescriptor& graph,
                                            cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{mode});
  target.apply_to_heuristics(heuristics);
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return {};  // no heuristics
  int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "cudnnBackendGetAttribute(results)");
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().get());
  }
  check_cudnn(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
              "cudnnBackendGetAttribute(results)");
  configs.resize(static_cast<size_t>(count));
  return configs;
}

// Returns an attribute that is a single number.
template <typename Value>
Value number_of(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type) {
  int64_t count = 0;
  Value value{};
  check_cudnn(cudnnBackendGetAttribute(descriptor, name, type, 1, &count, &value),
              "cudnnBackendGetAttribute");
  return value;
}

// The descriptor of another kind that is an attribute of this one.
CudnnDescriptor descriptor_of(const CudnnDescriptor& whole, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptorType_t type) {
  CudnnDescriptor found(type);
  cudnnBackendDescriptor_t raw = found.get();
  int64_t count = 0;
  check_cudnn(
      cudnnBackendGetAttribute(whole.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
      "cudnnBackendGetAttribute(descriptor)");
  return found;
}

CudnnDescriptor engine_of(const CudnnDescriptor& config) {
  return descriptor_of(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
}

int64_t engine_index(const CudnnDescriptor& engine) {
  return number_of<int64_t>(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64);
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const CudnnDescriptor& engine) {
  int64_t count = 0;
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  check_cudnn(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                       CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                       &count, notes.data()),
              "cudnnBackendGetAttribute(notes)");
  notes.resize(static_cast<size_t>(count));
  return notes;
}

// fp32 is for comparisons: only fp32 products and sums. bf16 multiplies on tensor cores and sums in
// fp32. So neither allows configurations that sum, or hold their inputs, with fewer digits, or that
// round transformed tiles (Winograd, FFT). For the models' bf16 passes on A100, H200 and B200 cuDNN
// 9.19 lists only one of these: one configuration of each backward pass sums with fewer digits.
bool allowed(cudnnBackendNumericalNote_t note, const CudnnPlanWish& wish) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
      return true;
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return !wish.deterministic;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return wish.type == Precision::bf16;
    default:
      return false;
  }
}

// An upper bound, because the number of an engine's knobs is not known in advance.
constexpr size_t kMaxKnobs = CUDNN_KNOB_TYPE_COUNTS;

std::string name_of(const CudnnDescriptor& config) {
  std::string name = "eng" + std::to_string(engine_index(engine_of(config)));
  std::vector<CudnnDescriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t i = 0; i < kMaxKnobs; ++i) {
    choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    raw.push_back(choices.back().get());
  }
  int64_t count = 0;
  check_cudnn(
      cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, kMaxKnobs, &count, raw.data()),
      "cudnnBackendGetAttribute(knobs)");
  for (int64_t i = 0; i < count; ++i) {
    const auto type = number_of<cudnnBackendKnobType_t>(raw[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                        CUDNN_TYPE_KNOB_TYPE);
    const auto value =
        number_of<int64_t>(raw[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64);
    name += "_k" + std::to_string(static_cast<int>(type)) + "=" + std::to_string(value);
  }
  return name;
}

// Parses `prefix` and a number at the start of `text` and removes them.
template <typename Number>
bool take(std::string_view& text, std::string_view prefix, Number& number) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Returns the configuration with a name from name_of(); nothing if cuDNN has no such configuration
// for this graph.
std::optional<CudnnDescriptor> config_named(const CudnnTarget& target, const CudnnDescriptor& graph,
                                            std::string_view name) {
  int64_t index = 0;
  if (!take(name, "eng", index)) return std::nullopt;
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, Longs{index});
  target.apply_to_engine(engine);
  if (engine.try_finalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  std::vector<CudnnDescriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  while (!name.empty()) {
    int type = 0;
    int64_t value = 0;
    if (!take(name, "_k", type) || !take(name, "=", value)) return std::nullopt;
    CudnnDescriptor choice(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
               std::vector{static_cast<cudnnBackendKnobType_t>(type)});
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, Longs{value});
    if (choice.try_finalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
    raw.push_back(choice.get());
    choices.push_back(std::move(choice));
  }
  CudnnDescriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!raw.empty()) {
    config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
  }
  if (config.try_finalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  return config;
}

CudnnDescriptor config_of(const CudnnDescriptor& plan) {
  return descriptor_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                       CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

CudnnConfig described(CudnnDescriptor config) {
  CudnnConfig result;
  result.name = name_of(config);
  result.notes = notes_of(engine_of(config));
  result.config = std::move(config);
  return result;
}

bool allowed(const CudnnConfig& config, const CudnnPlanWish& wish) {
  return std::ranges::all_of(config.notes, [&](auto note) { return allowed(note, wish); });
}

// Makes a CudnnPlan of a finalised descriptor; nothing if it needs too much memory.
std::optional<CudnnPlan> described(CudnnDescriptor plan, const CudnnConfig& config,
                                   const CudnnPlanWish& wish) {
  CudnnPlan made;
  made.workspace_bytes =
      number_of<int64_t>(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
  if (made.workspace_bytes > wish.workspace_limit) return std::nullopt;
  made.plan = std::move(plan);
  made.name = config.name;
  made.notes = config.notes;
  return made;
}

// Returns nothing if `wish` forbids the plan, or if cuDNN rejects it for this graph.
std::optional<CudnnPlan> make_plan(const CudnnTarget& target, const CudnnConfig& config,
                                   const CudnnPlanWish& wish) {
  if (!allowed(config, wish)) return std::nullopt;
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  target.apply_to_plan(plan);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.config);
  if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  return described(std::move(plan), config, wish);
}

}  // namespace

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char reason[512] = "";
  cudnnGetLastErrorString(reason, sizeof reason);
  throw std::runtime_error(std::string("cuDNN: ") + call + ": " + cudnnGetErrorString(status) +
                           (reason[0] != 0 ? std::string(", ") + reason : std::string()));
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}

void CudnnDescriptor::reset() noexcept {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

CudnnTarget::CudnnTarget(const std::string& device_json)
    : device_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  device_.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              std::vector<char>(device_json.begin(), device_json.end()));
  device_.finalize();
}

void CudnnTarget::apply_to_graph(CudnnDescriptor& graph) const {
  if (handle_ == nullptr) return;
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle_});
}

void CudnnTarget::apply_to_heuristics(CudnnDescriptor& heuristics) const {
  if (handle_ == nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_);
}

void CudnnTarget::apply_to_engine(CudnnDescriptor& engine) const {
  if (handle_ == nullptr) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, device_);
}

void CudnnTarget::apply_to_plan(CudnnDescriptor& plan) const {
  if (handle_ != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle_});
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_);
  }
}

std::vector<CudnnConfig> list_configs(const CudnnTarget& target, const CudnnDescriptor& graph,
                                      const CudnnPlanWish& wish) {
  std::vector<CudnnConfig> all;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<CudnnDescriptor> configs = engine_configs(target, graph, mode);
    Longs engines;
    for (const CudnnDescriptor& config : configs)
      engines.push_back(engine_index(engine_of(config)));
    for (const size_t i : spread_over_engines(engines, kInARow)) {
      CudnnConfig config = described(std::move(configs[i]));
      // The fallback mode repeats some configurations.
      const bool is_new = std::ranges::find(all, config.name, &CudnnConfig::name) == all.end();
      if (is_new && allowed(config, wish)) all.push_back(std::move(config));
    }
  }
  return all;
}

std::vector<CudnnPlan> list_plans(const CudnnTarget& target, const CudnnDescriptor& graph,
                                  const CudnnPlanWish& wish, int most) {
  std::vector<CudnnPlan> plans;
  for (const CudnnConfig& config : list_configs(target, graph, wish)) {
    if (std::ssize(plans) >= most) break;
    std::optional<CudnnPlan> plan = make_plan(target, config, wish);
    if (plan) plans.push_back(std::move(*plan));
  }
  return plans;
}

std::optional<CudnnPlan> find_plan(const CudnnTarget& target, const CudnnDescriptor& graph,
                                   const CudnnPlanWish& wish, const std::string& name) {
  std::optional<CudnnDescriptor> config = config_named(target, graph, name);
  if (!config) return std::nullopt;
  return make_plan(target, described(std::move(*config)), wish);
}

std::string text_of(const CudnnPlan& plan) {
  const auto name = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  int64_t bytes = 0;
  check_cudnn(cudnnBackendGetAttribute(plan.plan.get(), name, CUDNN_TYPE_CHAR, 0, &bytes, nullptr),
              "cudnnBackendGetAttribute(JSON)");
  std::string text(static_cast<size_t>(bytes), 0);
  check_cudnn(
      cudnnBackendGetAttribute(plan.plan.get(), name, CUDNN_TYPE_CHAR, bytes, &bytes, text.data()),
      "cudnnBackendGetAttribute(JSON)");
  return text;
}

std::optional<CudnnPlan> plan_of(const CudnnTarget& target, const CudnnPlanWish& wish,
                                 const std::string& name, const std::string& text) {
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  target.apply_to_plan(plan);
  if (cudnnBackendSetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                               CUDNN_TYPE_CHAR, static_cast<int64_t>(text.size()),
                               text.data()) != CUDNN_STATUS_SUCCESS ||
      plan.try_finalize() != CUDNN_STATUS_SUCCESS) {
    return std::nullopt;
  }
  CudnnConfig config = described(config_of(plan));
  config.name = name;
  if (!allowed(config, wish)) return std::nullopt;
  return described(std::move(plan), config, wish);
}

CudnnDescriptor bind_operands(const std::vector<CudnnOperand>& operands, void* workspace) {
  Longs ids;
  std::vector<void*> pointers;
  for (const CudnnOperand& operand : operands) {
    ids.push_back(operand.id);
    pointers.push_back(const_cast<void*>(operand.data));
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector{workspace});
  pack.finalize();
  return pack;
}

void execute_plan(cudnnHandle_t handle, const CudnnPlan& plan, const CudnnDescriptor& operands) {
  check_cudnn(cudnnBackendExecute(handle, plan.plan.get(), operands.get()), "cudnnBackendExecute");
}

}  // namespace stoker
