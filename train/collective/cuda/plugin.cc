// The second entry of libstoker_cuda_train.so.
#include "train/collective/cuda/plugin.h"

#include "staging/cuda_context.h"
#include "train/collective/cuda/nccl.h"
#include "train/collective/cuda/reduce.h"

namespace stoker {
namespace {

SumKernel make_sum(int ordinal) {
  auto context = std::make_shared<const CudaContext>(ordinal);
  return [context](Stream& stream, const BufferSum& sum) {
    CudaContext::Current current(*context);
    context->check(launch_sum_buffers(static_cast<cudaStream_t>(stream.native_handle()), sum),
                   "sum_buffers");
  };
}

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::CudaCollectivePlugin*
stoker_cuda_collective_plugin() {
  static const stoker::CudaCollectivePlugin plugin = {stoker::kCudaCollectivePluginVersion,
                                                      STOKER_BUILD_STAMP,
                                                      stoker::make_sum,
                                                      stoker::make_nccl_id,
                                                      stoker::make_nccl_collective,
                                                      stoker::make_nccl_group};
  return &plugin;
}
