// Builds the tape of a ShardNet: values and gradients of ops, their buffers' lifetimes, and the
// steps. Ops (one file per kind) append their steps through it.
// Owner: ShardNet's constructor; lives only there. One thread.
// Time is the index of the next step: whoever names a buffer keeps it alive until then.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/cpu/shard_net.h"
#include "train/cpu/shard_net_lowering.h"
#include "train/cpu/shard_net_tape.h"

namespace stoker {

class TapeBuilder {
 public:
  TapeBuilder(const NetSpec& net, const ShardNetOptions& options, const dnnl::engine& engine,
              ShardTape& tape);

  const dnnl::engine& engine() const { return engine_; }
  const dnnl::stream& stream() const { return stream_; }
  const ShardNetOptions& options() const { return options_; }
  const NetSpec& net() const { return net_; }
  const std::vector<LoweredOp>& ops() const { return ops_; }
  const LoweredOp& op(int index) const { return ops_[index]; }
  const NetNode& node(int op_index) const { return net_.nodes[ops_[op_index].node]; }
  const PartLayout& part() const { return part_; }
  dnnl::memory::data_type activation_type() const;
  ActivationLayout layout() const { return layout_; }
  onednn::Desc activation(int op_index) const;  // (rows, C, H, W)
  bool is_padded(int op_index) const;           // its last block of channels is not full

  // Buffers of the arena.
  int new_buffer(int64_t bytes);
  dnnl::memory bind(const onednn::Desc& desc, int buffer);  // at this time
  dnnl::memory temporary(const onednn::Desc& desc) {
    return bind(desc, new_buffer(static_cast<int64_t>(desc.get_size())));
  }

  int last_buffer() const { return static_cast<int>(tape_.buffers.size()) - 1; }

  // The output of an op. In place of `reuse` if that is not -1.
  dnnl::memory define_value(int op_index, int reuse = -1);
  dnnl::memory value(int op_index);  // read at this time
  int value_buffer(int op_index) const { return values_[op_index]; }
  bool value_needed_backward(int op_index) const;

  // The gradient of an op's output. Where it has several readers their gradients are added up.
  struct Target {
    dnnl::memory memory;
    int buffer = -1;
    bool adds = false;
  };
  bool wants_gradient(int op_index) const { return ops_[op_index].kind != OpKind::input; }
  dnnl::memory gradient(int op_index);  // complete, read at this time
  // Where an op writes the gradient of its input; in place of its own output's if that is allowed.
  Target open_gradient(int input_op, int own_op, bool in_place);
  void close_gradient(int input_op, const Target& target);
  void share_gradient(int input_op, int own_op);  // passes own_op's gradient on as it is
  // Where own_op may change its own gradient: the same buffer unless somebody else reads it.
  dnnl::memory rewritten_gradient(int own_op);
  void release_gradient(int own_op);

  // Parameters, statistics and parts: handles come with every run.
  int64_t parameter_offset(int node, ParameterKind kind) const;
  std::vector<int> parameter_ops() const;
  int64_t statistics_offset(int node) const;  // mean; the variance follows
  dnnl::memory parameter(const onednn::Desc& desc, int64_t offset);
  dnnl::memory statistics(const onednn::Desc& desc, int64_t offset);
  dnnl::memory in_part(const onednn::Desc& desc, int64_t offset);
  dnnl::memory forward_weights(const onednn::Desc& desc, int node);
  dnnl::memory backward_weights(const onednn::Desc& desc, int node);
  void add_conv_layout(const ConvLayout& layout) { tape_.conv_layouts.push_back(layout); }

  // Steps. Those that follow are for this use of this op.
  void begin(int op_index, StepUse use) {
    current_op_ = op_index;
    current_use_ = use;
  }
  template <typename Primitive, typename PrimitiveDesc>
  void execute(const char* what, const PrimitiveDesc& desc, onednn::Args args) {
    note_implementation(what, desc.impl_info_str());
    const onednn::Desc scratchpad = desc.scratchpad_desc();
    if (scratchpad.get_size() > 0) args[DNNL_ARG_SCRATCHPAD] = temporary(scratchpad);
    append(what, [primitive = Primitive(desc), args = std::move(args),
                  stream = stream_](const ShardRun&) { primitive.execute(stream, args); });
  }
  void copy(const dnnl::memory& from, const dnnl::memory& to);  // reorder
  void append(const char* what, std::function<void(const ShardRun&)> run);

 private:
  dnnl::memory unplaced(const onednn::Desc& desc);
  void note_implementation(const char* what, const char* name);

  const NetSpec& net_;
  const ShardNetOptions options_;
  const ActivationLayout layout_;
  const dnnl::engine engine_;
  const dnnl::stream stream_;
  const std::vector<LoweredOp> ops_;
  const std::vector<TensorInfo> parameters_;
  const std::vector<TensorInfo> statistics_;
  const PartLayout part_;
  ShardTape& tape_;
  int current_op_ = 0;
  StepUse current_use_ = StepUse::always;
  std::vector<int> values_;     // per op: buffer
  std::vector<int> gradients_;  // per op: buffer of the (partial) sum
  std::vector<int> sharers_;  // per buffer: ops whose gradient it is and that have not read it yet
};

// One op's share of the tape. build_backward follows build_forward after all later ops'.
class TapeOp {
 public:
  virtual ~TapeOp() = default;
  virtual void build_forward(TapeBuilder& tape) = 0;
  virtual void build_backward(TapeBuilder& tape) = 0;
};

std::unique_ptr<TapeOp> make_conv_op(int op_index);
std::unique_ptr<TapeOp> make_norm_op(int op_index);
std::unique_ptr<TapeOp> make_activation_op(int op_index);  // relu, gelu
std::unique_ptr<TapeOp> make_add_op(int op_index);
std::unique_ptr<TapeOp> make_pool_op(int op_index);  // max, global average
std::unique_ptr<TapeOp> make_pad_channels_op(int op_index);
std::unique_ptr<TapeOp> make_head_op(int op_index);  // linear, loss

}  // namespace stoker
