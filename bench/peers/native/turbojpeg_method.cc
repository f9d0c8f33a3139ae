// TurboJPEG's API (tjDecompress2), one handle for all images. It cannot crop: it decodes whole
// images only, which is enough for CIFAR as JPEG.
#include <turbojpeg.h>

#include <stdexcept>

#include "bench/peers/native/method.h"

namespace stoker::peers {
namespace {

class TurboJpeg final : public Method {
 public:
  TurboJpeg() : handle_(tjInitDecompress()) {
    if (handle_ == nullptr) throw std::runtime_error("tjInitDecompress failed");
  }
  ~TurboJpeg() override { tjDestroy(handle_); }

  void decode(int, std::span<const uint8_t> bytes, const CropSpec& spec,
              MutableImageView out) override {
    int width = 0, height = 0, sampling = 0, colours = 0;
    if (tjDecompressHeader3(handle_, bytes.data(), bytes.size(), &width, &height, &sampling,
                            &colours) != 0) {
      fail();
    }
    if (width != spec.window.width || height != spec.window.height || spec.flip) {
      throw std::runtime_error("TurboJPEG decodes whole images only");
    }
    if (tjDecompress2(handle_, bytes.data(), bytes.size(), out.data, width,
                      static_cast<int>(out.stride_bytes), height, TJPF_RGB, 0) != 0) {
      fail();
    }
  }

 private:
  [[noreturn]] void fail() {
    throw std::runtime_error(std::string("TurboJPEG: ") + tjGetErrorStr2(handle_));
  }
  const tjhandle handle_;
};

}  // namespace

std::unique_ptr<Method> make_turbojpeg() { return std::make_unique<TurboJpeg>(); }

}  // namespace stoker::peers
