#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/core/bind.h"
#include "python/core/image_ops.h"
#include "python/core/python_lock.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using BoxTuple = std::tuple<int, int, int, int>;  // x, y, width, height

// The memory of a bytes-like object; keeps it while this lives.
class Bytes {
 public:
  explicit Bytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::span<const uint8_t> span() const {
    return {static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_;
};

CropRequest request_of(const std::optional<BoxTuple>& crop, const std::optional<SizeTuple>& size,
                       bool flip, Filter filter) {
  CropRequest request;
  request.flip = flip;
  request.filter = filter;
  if (crop) {
    const auto [x, y, width, height] = *crop;
    request.crop = Box{x, y, width, height};
  }
  if (size) request.size = Size{std::get<1>(*size), std::get<0>(*size)};
  return request;
}

std::string ndarray_shape(const nb::ndarray<nb::ro>& array) {
  std::string text;
  for (size_t i = 0; i < array.ndim(); ++i) {
    text += (text.empty() ? "" : ", ") + std::to_string(array.shape(i));
  }
  return "(" + text + ")";
}

ImageView image_view(const nb::ndarray<nb::ro>& image) {
  if (image.device_type() != nb::device::cpu::value) {
    throw std::invalid_argument("an image on a GPU: this works on the host only");
  }
  if (image.ndim() != 3 || image.shape(2) != 3 || image.dtype() != nb::dtype<uint8_t>()) {
    throw std::invalid_argument("an image must be (height, width, 3) uint8, this is " +
                                ndarray_shape(image) + " of another type or shape");
  }
  if (image.stride(2) != 1 || image.stride(1) != 3) {
    throw std::invalid_argument(
        "an image's rows must be whole, pixel by pixel, as RGB; make it "
        "contiguous");
  }
  return {static_cast<const uint8_t*>(image.data()), static_cast<int>(image.shape(1)),
          static_cast<int>(image.shape(0)), static_cast<ptrdiff_t>(image.stride(0))};
}

nb::tuple info(nb::handle data, const DecodeOptions& options) {
  static constexpr const char* kFormats[] = {"unknown", "jpeg", "png", "bmp",      "webp",
                                             "tiff",    "gif",  "pnm", "jpeg2000", "avif"};
  const Bytes bytes(data);
  const ImageInfo found = image_info(bytes.span(), options);
  return nb::make_tuple(found.size.height, found.size.width,
                        kFormats[static_cast<size_t>(found.format)], found.orientation);
}

Array decode(nb::handle data, std::optional<BoxTuple> crop, std::optional<SizeTuple> size,
             bool flip, Filter filter, const DecodeOptions& options) {
  const Bytes bytes(data);
  Unlocked unlocked;
  return decode_image(bytes.span(), request_of(crop, size, flip, filter), options);
}

Array resize(const nb::ndarray<nb::ro>& image, std::optional<BoxTuple> crop,
             std::optional<SizeTuple> size, bool flip, Filter filter, PixelPolicy pixels) {
  const ImageView view = image_view(image);
  Unlocked unlocked;
  return resize_image(view, request_of(crop, size, flip, filter), pixels);
}

using PluginTuple = std::tuple<std::string, std::string, std::string, std::string>;

// (format, library, version, problem) of each; one of the last two is empty.
std::vector<PluginTuple> codec_plugins() {
  std::vector<PluginTuple> plugins;
  for (const CodecPluginStatus& plugin : query_codec_plugins()) {
    plugins.emplace_back(plugin.format, plugin.library, plugin.version, plugin.problem);
  }
  return plugins;
}

}  // namespace

void bind_image(nb::module_& module) {
  nb::exception<DecodeError>(module, "DecodeError", PyExc_ValueError);
  module.def(
      "info", info, "data"_a, "options"_a,
      nb::sig("def info(data: object, options: DecodeOptions) -> tuple[int, int, str, int]"));
  module.def("decode", decode, "data"_a, "crop"_a.none(), "size"_a.none(), "flip"_a, "filter"_a,
             "options"_a);
  module.def("resize", resize, "image"_a, "crop"_a.none(), "size"_a.none(), "flip"_a, "filter"_a,
             "pixels"_a,
             nb::sig("def resize(image: object, crop: tuple[int, int, int, int] | None, size: "
                     "tuple[int, int] | None, flip: bool, filter: Filter, pixels: PixelPolicy) "
                     "-> Array"));
  module.def("codec_plugins", codec_plugins);
}

}  // namespace stoker::python
