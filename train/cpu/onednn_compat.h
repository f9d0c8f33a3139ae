// Hides the differences between oneDNN 2.6 (Debian 12) and 3.x (Ubuntu 24.04: 3.1), and defines a
// few short names. The only file that checks the version. Every primitive takes its scratchpad from
// the caller, so that it is in the planned arena.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace stoker::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Args = std::unordered_map<int, dnnl::memory>;
using Norm = dnnl::normalization_flags;

// Version 2 uses operation descriptors and takes some memory descriptors once for two uses. Version
// 3 takes everything at the primitive descriptor and rejects the shift in batch norm's backward
// pass.
#if DNNL_VERSION_MAJOR >= 3
inline constexpr bool kNormBackwardTakesShift = false;
#else
inline constexpr bool kNormBackwardTakesShift = true;
#endif

inline dnnl::primitive_attr caller_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

template <typename Primitive, typename... Rest>
typename Primitive::primitive_desc make_forward(const dnnl::engine& engine,
                                                const dnnl::primitive_attr& attr,
                                                const Rest&... rest) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine, rest..., attr);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(rest...), attr, engine);
#endif
}

template <typename Primitive, typename Hint, typename... Rest>
typename Primitive::primitive_desc make_backward(const dnnl::engine& engine, const Hint& hint,
                                                 const Rest&... rest) {
  const dnnl::primitive_attr attr = caller_scratchpad();
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine, rest..., hint, attr);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(rest...), attr, engine, hint);
#endif
}

// The number of an instruction set contains the bits of all sets that it includes.
inline bool cpu_has(dnnl::cpu_isa isa) {
  const auto have = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto want = static_cast<unsigned>(isa);
  return (have & want) == want;
}

inline dnnl::batch_normalization_forward::primitive_desc norm_forward(const dnnl::engine& engine,
                                                                      dnnl::prop_kind kind,
                                                                      const Desc& data, float eps,
                                                                      Norm flags) {
  using Forward = dnnl::batch_normalization_forward;
#if DNNL_VERSION_MAJOR >= 3
  return make_forward<Forward>(engine, caller_scratchpad(), kind, data, data, eps, flags);
#else
  return make_forward<Forward>(engine, caller_scratchpad(), kind, data, eps, flags);
#endif
}

inline dnnl::batch_normalization_backward::primitive_desc norm_backward(
    const dnnl::engine& engine, const dnnl::batch_normalization_forward::primitive_desc& hint,
    const Desc& data, float eps, Norm flags) {
  using Backward = dnnl::batch_normalization_backward;
  constexpr auto kind = dnnl::prop_kind::backward;
#if DNNL_VERSION_MAJOR >= 3
  return make_backward<Backward>(engine, hint, kind, data, data, data, eps, flags);
#else
  return make_backward<Backward>(engine, hint, kind, data, data, eps, flags);
#endif
}

inline dnnl::eltwise_forward::primitive_desc eltwise_forward(const dnnl::engine& engine,
                                                             dnnl::algorithm algorithm,
                                                             const Desc& data) {
  using Forward = dnnl::eltwise_forward;
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return make_forward<Forward>(engine, caller_scratchpad(), kind, algorithm, data, data, 0.f, 0.f);
#else
  return make_forward<Forward>(engine, caller_scratchpad(), kind, algorithm, data, 0.f, 0.f);
#endif
}

inline dnnl::eltwise_backward::primitive_desc eltwise_backward(
    const dnnl::engine& engine, const dnnl::eltwise_forward::primitive_desc& hint,
    dnnl::algorithm algorithm, const Desc& data) {
  using Backward = dnnl::eltwise_backward;
#if DNNL_VERSION_MAJOR >= 3
  return make_backward<Backward>(engine, hint, algorithm, data, data, data, 0.f, 0.f);
#else
  return make_backward<Backward>(engine, hint, algorithm, data, data, 0.f, 0.f);
#endif
}

struct PoolWindow {
  Dims stride, kernel, padding_before, padding_after;
};

inline dnnl::pooling_forward::primitive_desc pool_forward(const dnnl::engine& engine,
                                                          dnnl::algorithm algorithm, const Desc& in,
                                                          const Desc& out, const PoolWindow& w) {
  using Forward = dnnl::pooling_forward;
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  const Dims no_dilation(w.kernel.size(), 0);
  return make_forward<Forward>(engine, caller_scratchpad(), kind, algorithm, in, out, w.stride,
                               w.kernel, no_dilation, w.padding_before, w.padding_after);
#else
  return make_forward<Forward>(engine, caller_scratchpad(), kind, algorithm, in, out, w.stride,
                               w.kernel, w.padding_before, w.padding_after);
#endif
}

inline dnnl::pooling_backward::primitive_desc pool_backward(
    const dnnl::engine& engine, const dnnl::pooling_forward::primitive_desc& hint,
    dnnl::algorithm algorithm, const Desc& in, const Desc& out, const PoolWindow& w) {
  using Backward = dnnl::pooling_backward;
#if DNNL_VERSION_MAJOR >= 3
  const Dims no_dilation(w.kernel.size(), 0);
  return make_backward<Backward>(engine, hint, algorithm, in, out, w.stride, w.kernel, no_dilation,
                                 w.padding_before, w.padding_after);
#else
  return make_backward<Backward>(engine, hint, algorithm, in, out, w.stride, w.kernel,
                                 w.padding_before, w.padding_after);
#endif
}

inline dnnl::post_ops eltwise_post_op(dnnl::algorithm algorithm) {
  dnnl::post_ops post_ops;
#if DNNL_VERSION_MAJOR >= 3
  post_ops.append_eltwise(algorithm, 0.f, 0.f);
#else
  post_ops.append_eltwise(1.f, algorithm, 0.f, 0.f);
#endif
  return post_ops;
}

// Describes a + b, followed by a ReLU if `relu`.
inline dnnl::binary::primitive_desc binary_add(const dnnl::engine& engine, const Desc& data,
                                               bool relu) {
  dnnl::primitive_attr attr = caller_scratchpad();
  if (relu) attr.set_post_ops(eltwise_post_op(dnnl::algorithm::eltwise_relu));
  return make_forward<dnnl::binary>(engine, attr, dnnl::algorithm::binary_add, data, data, data);
}

}  // namespace stoker::onednn
