// Builds the program of a MicroBatchNet: oneDNN's views of the plan's buffers, and the primitives
// of its steps. Layers with parameters have files of their own (*_steps.cc). Owner: MicroBatchNet's
// constructor. One thread.
#pragma once

#include <memory>

#include "train/cpu/micro_batch_net.h"
#include "train/cpu/rules.h"
#include "train/graph/plan_builder.h"

namespace stoker {

// A view whose data pointer is set when the arena is placed, or before every run.
struct Binding {
  dnnl::memory memory;
  int64_t where = 0;  // a buffer, a node, or an offset in floats: see MicroBatchProgram
};

// A view of a parameter's gradient.
struct GradientBinding {
  dnnl::memory memory;
  int64_t offset = 0, in_scratch = 0;  // in a gradient buffer; in MicroBatchRun::scratch
};

struct MicroBatchProgram : ProgramOf<MicroBatchRun> {
  std::vector<Binding> arena;             // where = buffer
  std::vector<Binding> forward_weights;   // where = node
  std::vector<Binding> backward_weights;  // where = node
  std::vector<Binding> parameters;        // where = offset in the masters
  std::vector<Binding> statistics;        // where = offset in the statistics
  std::vector<GradientBinding> gradients;
  int64_t scratch_floats = 0;  // that the gradients of a layer take
  std::vector<ConvLayout> conv_layouts;
  dnnl::memory input;
};

inline float* floats(const dnnl::memory& memory) {
  return static_cast<float*>(memory.get_data_handle());
}

// A layer may lack a bias.
inline float* floats_or_null(const dnnl::memory& memory) {
  return memory.get(true) == nullptr ? nullptr : floats(memory);
}

constexpr dnnl::memory::data_type data_type(Precision precision) {
  return precision == Precision::bf16 ? dnnl::memory::data_type::bf16
                                      : dnnl::memory::data_type::f32;
}

class CpuPlanBuilder final : public KernelBuilder<MicroBatchRun> {
 public:
  CpuPlanBuilder(const NetSpec& net, const PlanOptions& options, const GradientLayout& layout,
                 const dnnl::engine& engine, MicroBatchProgram& program);

  const dnnl::engine& engine() const { return engine_; }
  const TensorPrecisions& held() const { return held_; }
  // A node's output and its gradient. Vectors are fp32, as the head is: the layers between them
  // read their master weights, of which bf16 would need copies.
  Precision precision(int index) const;
  ActivationLayout activation_layout() const { return activation_layout_; }
  onednn::Desc activation(int index) const {  // (rows, C, H, W)
    return activation(index, precision(index));
  }
  onednn::Desc activation(int index, Precision in) const;
  bool in_blocks(int index) const;  // its channels lie in blocks of kBlockChannels
  int64_t value_bytes(int index) const override {
    return static_cast<int64_t>(activation(index).get_size());
  }
  // Views of buffers.
  dnnl::memory view(const onednn::Desc& desc, int buffer);
  dnnl::memory new_view(const onednn::Desc& desc) {
    return view(desc, new_buffer(static_cast<int64_t>(desc.get_size())));
  }
  dnnl::memory read_view(const onednn::Desc& desc, int buffer) { return view(desc, read(buffer)); }
  dnnl::memory new_value(int index) { return new_value(index, activation(index)); }
  dnnl::memory new_value(int index, const onednn::Desc& desc) {  // another view of the same bytes
    return view(desc, define_value(index));
  }
  dnnl::memory value_view(int index) { return view(activation(index), value(index)); }
  dnnl::memory gradient_view(int index, int buffer) { return view(activation(index), buffer); }

  // Views of memory that is set before every run.
  dnnl::memory parameter(const onednn::Desc& desc, int index, ParameterKind kind);
  dnnl::memory statistics(const onednn::Desc& desc, int64_t offset);
  // In the backward steps of the layer, once for each parameter.
  dnnl::memory parameter_gradient(const onednn::Desc& desc, int index, ParameterKind kind);
  dnnl::memory forward_weights(const onednn::Desc& desc, int index);
  dnnl::memory backward_weights(const onednn::Desc& desc, int index);
  void add_conv_layout(const ConvLayout& layout) { program_.conv_layouts.push_back(layout); }

  template <typename Primitive, typename PrimitiveDesc>
  void execute(const char* name, const PrimitiveDesc& desc, onednn::Args args) {
    note_implementation(std::string(name) + " " + desc.impl_info_str());
    const onednn::Desc scratchpad = desc.scratchpad_desc();
    if (scratchpad.get_size() > 0) args[DNNL_ARG_SCRATCHPAD] = new_view(scratchpad);
    append(name, 0,
           [primitive = Primitive(desc), args = std::move(args),
            stream = stream_](const MicroBatchRun&) { primitive.execute(stream, args); });
  }
  void copy(const dnnl::memory& from, const dnnl::memory& to);  // reorder

 private:
  bool is_vector(int index) const;  // (rows, C): of a fully connected layer, or computed from it
  dnnl::memory bind(std::vector<Binding>& list, const onednn::Desc& desc, int64_t where);
  void activate(int index, int x, int y) override;
  void activate_back(int index, int seen, int dy, int dx) override;
  void add(int index, int a, int b, int y) override;
  void add_gradients(int index, int a, int b, int sum) override;
  void concat(int index, const std::vector<int>& parts, int y) override;
  void concat_back(int index, int part, int first, int dy, int dx) override;
  void dropout(const char* name, int index, int from, int to) override;
  void pool(int index, int x, int y) override;
  void pool_back(int index, int dy, int dx) override;
  void pad_channels(int index, int x, int y) override;
  void pad_channels_back(int index, int dy, int dx) override;
  void layer(int index) override;
  void layer_back(int index) override;

  const dnnl::engine engine_;
  const dnnl::stream stream_;
  const TensorPrecisions held_;
  const ActivationLayout activation_layout_;
  MicroBatchProgram& program_;
  std::vector<std::unique_ptr<LayerSteps<CpuPlanBuilder>>> layers_;  // per node

  struct LayerGradient {
    int64_t offset, count, in_scratch;  // as in GradientBinding
  };
  std::vector<LayerGradient> own_gradients_;  // of the layer whose backward steps are made
  int64_t layer_floats_ = 0;                  // of the scratch that they take
};

using CpuSteps = LayerSteps<CpuPlanBuilder>;
// Convolutions and fully connected layers.
std::unique_ptr<CpuSteps> make_cpu_conv(const CpuPlanBuilder& builder, int index);
std::unique_ptr<CpuSteps> make_cpu_norm(const CpuPlanBuilder& builder, int index);
std::unique_ptr<CpuSteps> make_cpu_head(int index);  // linear, loss
// Null where a convolution by winograd.h is not possible, or does not pay.
std::unique_ptr<CpuSteps> make_winograd_steps(const CpuPlanBuilder& builder, int index);

// oneDNN's algorithm of an activation.
dnnl::algorithm forward_algorithm(Activation activation);

}  // namespace stoker
