#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/loader_types.h"
#include "python/core/bind.h"
#include "python/core/feed.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;

void bind_enums(nb::module_& module) {
  nb::enum_<Split>(module, "Split")
      .value("all", Split::all)
      .value("train", Split::train)
      .value("test", Split::test);
  nb::enum_<LastBatch>(module, "LastBatch")
      .value("pad", LastBatch::pad)
      .value("drop", LastBatch::drop)
      .value("wrap", LastBatch::wrap)
      .value("merge", LastBatch::merge);
  nb::enum_<OnBadSample>(module, "OnBadSample")
      .value("substitute", OnBadSample::substitute)
      .value("fail", OnBadSample::fail);
  nb::enum_<PixelPolicy>(module, "PixelPolicy")
      .value("exact", PixelPolicy::exact)
      .value("exact_pillow12", PixelPolicy::exact_pillow12)
      .value("fast", PixelPolicy::fast);
  nb::enum_<ExifPolicy>(module, "ExifPolicy")
      .value("ignore", ExifPolicy::ignore)
      .value("apply", ExifPolicy::apply);
  nb::enum_<Filter>(module, "Filter")
      .value("bilinear", Filter::bilinear)
      .value("bicubic", Filter::bicubic)
      .value("nearest", Filter::nearest)
      .value("box", Filter::box)
      .value("hamming", Filter::hamming)
      .value("lanczos", Filter::lanczos);
  nb::enum_<PixelType>(module, "PixelType")
      .value("bfloat16", PixelType::bf16)
      .value("float16", PixelType::fp16)
      .value("float32", PixelType::fp32);
  nb::enum_<PixelOrder>(module, "PixelOrder")
      .value("nhwc", PixelOrder::nhwc)
      .value("nchw", PixelOrder::nchw);
}

using AnnotationState = std::tuple<int, TooManyObjects, BoxFormat, RowMasks, int32_t, bool>;

void bind_annotation_options(nb::module_& module) {
  nb::enum_<BoxFormat>(module, "BoxFormat")
      .value("xyxy", BoxFormat::xyxy)
      .value("xywh", BoxFormat::xywh)
      .value("cxcywh", BoxFormat::cxcywh)
      .value("xyxyxyxy", BoxFormat::xyxyxyxy)
      .value("xywhr", BoxFormat::xywhr)
      .value("cxcywhr", BoxFormat::cxcywhr);
  nb::enum_<RowMasks>(module, "RowMasks")
      .value("none", RowMasks::none)
      .value("bytes", RowMasks::bytes)
      .value("bits", RowMasks::bits);
  nb::enum_<TooManyObjects>(module, "TooManyObjects")
      .value("keep_largest", TooManyObjects::keep_largest)
      .value("fail", TooManyObjects::fail);
  nb::class_<AnnotationOptions>(module, "AnnotationOptions")
      .def(nb::init<>())
      .def_rw("max_objects", &AnnotationOptions::max_objects)
      .def_rw("too_many", &AnnotationOptions::too_many)
      .def_rw("box_format", &AnnotationOptions::box_format)
      .def_rw("masks", &AnnotationOptions::masks)
      .def_rw("ignore_label", &AnnotationOptions::ignore_label)
      .def_rw("packed", &AnnotationOptions::packed)
      .def("__getstate__",
           [](const AnnotationOptions& o) {
             return AnnotationState(o.max_objects, o.too_many, o.box_format, o.masks,
                                    o.ignore_label, o.packed);
           })
      .def("__setstate__", [](AnnotationOptions& o, const AnnotationState& state) {
        const auto [max_objects, too_many, box_format, masks, ignore_label, packed] = state;
        new (&o) AnnotationOptions{max_objects, too_many, box_format, masks, ignore_label, packed};
      });
}

using VaryingState = std::tuple<int, TextChoice, TooLong>;

void bind_varying_options(nb::module_& module) {
  nb::enum_<TextChoice>(module, "TextChoice")
      .value("first", TextChoice::first)
      .value("random", TextChoice::random)
      .value("all", TextChoice::all);
  nb::enum_<TooLong>(module, "TooLong").value("fail", TooLong::fail).value("cut", TooLong::cut);
  nb::class_<VaryingOptions>(module, "VaryingOptions")
      .def(nb::init<>())
      .def_rw("max_bytes", &VaryingOptions::max_bytes)
      .def_rw("texts", &VaryingOptions::texts)
      .def_rw("too_long", &VaryingOptions::too_long)
      .def("__getstate__",
           [](const VaryingOptions& o) { return VaryingState(o.max_bytes, o.texts, o.too_long); })
      .def("__setstate__", [](VaryingOptions& o, const VaryingState& state) {
        const auto [max_bytes, texts, too_long] = state;
        new (&o) VaryingOptions{max_bytes, texts, too_long};
      });
}

void set_order(LoaderOptions& options, const BoundOrder& bound) { options.order = bound.order; }

void set_buckets(LoaderOptions& options, const BoundBuckets& bound) {
  options.buckets = bound.buckets;
}

// Pieces: (first epoch, sizes).
void set_step_sizes(LoaderOptions& options,
                    const std::vector<std::tuple<int64_t, std::vector<SizeTuple>>>& pieces,
                    int64_t hold) {
  std::vector<ShapePiece> all;
  for (const auto& [first_epoch, sizes] : pieces) {
    ShapePiece& piece = all.emplace_back(ShapePiece{first_epoch, {}});
    for (const auto& [height, width] : sizes) piece.sizes.push_back({width, height});
  }
  options.shapes = std::make_shared<const ShapeSchedule>(std::move(all), hold);
}

}  // namespace

// Plain values, which one thread at a time may use: those of a Loader are guarded by the lock of
// its MovingFeed (stoker/_feeds.py), and nobody else has them.
void bind_options(nb::module_& module) {
  bind_enums(module);
  bind_annotation_options(module);
  bind_varying_options(module);
  nb::class_<DecodeOptions>(module, "DecodeOptions")
      .def(nb::init<>())
      .def_rw("pixels", &DecodeOptions::pixels)
      .def_rw("exif", &DecodeOptions::exif)
      .def_rw("max_pixels", &DecodeOptions::max_pixels);
  nb::class_<DecodedCache>(module, "DecodedCache")
      .def(nb::new_([](const std::string& folder, int64_t bytes) {
             return std::make_shared<DecodedCache>(DecodedCacheOptions{folder, bytes});
           }),
           nb::arg("folder"), nb::arg("bytes"));
  nb::class_<FeedOptions>(module, "FeedOptions")
      .def(nb::init<>())
      .def_rw("memory", &FeedOptions::memory)
      .def_rw("workers", &FeedOptions::workers)
      .def_rw("io_threads", &FeedOptions::io_threads)
      .def_rw("decode", &FeedOptions::decode)
      .def_rw("seek_index", &FeedOptions::seek_index)
      .def_rw("cache", &FeedOptions::cache, nb::arg().none())
      .def_rw("on_bad_sample", &FeedOptions::on_bad_sample)
      .def_rw("max_bad", &FeedOptions::max_bad);
  nb::class_<ShareOptions>(module, "ShareOptions")
      .def(nb::init<>())
      .def_rw("name", &ShareOptions::name)
      .def_rw("steps", &ShareOptions::steps)
      .def_rw("wait_s", &ShareOptions::wait_s);
  nb::class_<LoaderOptions>(module, "LoaderOptions")
      .def(nb::init<>())
      .def(nb::init<const LoaderOptions&>(), nb::arg("options"))
      .def_rw("batch_size", &LoaderOptions::batch_size)
      .def_rw("seed", &LoaderOptions::seed)
      .def_rw("shuffle", &LoaderOptions::shuffle)
      .def("set_order", set_order, nb::arg("order"))
      .def("set_buckets", set_buckets, nb::arg("buckets"))
      .def("set_step_sizes", set_step_sizes, nb::arg("pieces"), nb::arg("hold"))
      .def_rw("last_batch", &LoaderOptions::last_batch)
      .def_rw("rank", &LoaderOptions::rank)
      .def_rw("world", &LoaderOptions::world)
      .def_rw("epochs", &LoaderOptions::epochs)
      .def_rw("first_step", &LoaderOptions::first_step)
      .def_rw("feed", &LoaderOptions::feed)
      .def_rw("ring_depth", &LoaderOptions::ring_depth)
      .def_rw("leases", &LoaderOptions::leases)
      .def_rw("remote_rows", &LoaderOptions::remote_rows)
      .def_rw("share", &LoaderOptions::share)
      .def_rw("annotations", &LoaderOptions::annotations)
      .def_rw("varying", &LoaderOptions::varying)
      .def_rw("quarantine_file", &LoaderOptions::quarantine_file);
  nb::class_<ImageFormat>(module, "ImageFormat")
      .def(nb::init<>())
      .def_rw("type", &ImageFormat::type, nb::arg().none())
      .def_rw("order", &ImageFormat::order)
      .def_rw("channels_second", &ImageFormat::channels_second)
      .def_rw("mean", &ImageFormat::mean)
      .def_rw("stddev", &ImageFormat::stddev);
}

}  // namespace stoker::python
