#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotate.h"
#include "pipeline/source/blob/blob_source.h"
#include "pipeline/source/blob/stored_location.h"
#include "pipeline/source/cifar_source.h"
#include "pipeline/source/folder_source.h"
#include "pipeline/source/growing_source.h"
#include "pipeline/source/listed_source.h"
#include "pipeline/source/stored_folder.h"
#include "pipeline/source/synthetic_source.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// Its end waits for threads, during which others may have Python's lock.
SharedSource begun(std::unique_ptr<Source> source) {
  return {source.release(), [](const Source* ended) {
            std::optional<Unlocked> unlocked;
            if (holds_python_lock()) unlocked.emplace();
            delete ended;
          }};
}

// Returns what `work(options)` opens; Ctrl-C ends it.
template <class Work>
SharedSource open_interruptible(SourceOptions options, const Work& work) {
  return run_interruptible([&](const std::atomic<bool>& stop) {
    options.go_on = [&](int64_t, int64_t) { return !stop; };
    return SharedSource(work(options));
  });
}

SharedSource open_path(const std::string& path, Split split, const std::string& image_from,
                       const std::string& label_from, const std::vector<std::string>& targets_from,
                       const std::string& objects, const std::string& objects_from,
                       const std::string& label_image_from,
                       const std::vector<std::string>& pictures_from, const StoreOptions& store,
                       bool wait) {
  return open_interruptible({.split = split,
                             .image_from = image_from,
                             .label_from = label_from,
                             .targets_from = targets_from,
                             .objects = objects,
                             .objects_from = objects_from,
                             .label_image_from = label_image_from,
                             .pictures_from = pictures_from,
                             .store = store},
                            [&](SourceOptions all) {
                              if (wait) return SharedSource(open_source(path, all));
                              all.go_on = nullptr;  // it would be called after this
                              return begun(begin_source(path, all));
                            });
}

SharedSource annotated_blobs(const BlobSet& blobs, const SourceOptions& options) {
  return annotate_source([&](const SourceOptions& plain) { return make_blob_source(blobs, plain); },
                         blobs.root(), options);
}

SharedSource open_blobs(const BlobSet& blobs, const std::string& image_from,
                        const std::string& label_from, const std::vector<std::string>& targets_from,
                        const std::string& objects, const std::string& objects_from,
                        const std::string& label_image_from,
                        const std::vector<std::string>& pictures_from, const StoreOptions& store,
                        bool wait) {
  return open_interruptible({.image_from = image_from,
                             .label_from = label_from,
                             .targets_from = targets_from,
                             .objects = objects,
                             .objects_from = objects_from,
                             .label_image_from = label_image_from,
                             .pictures_from = pictures_from,
                             .store = store},
                            [&](SourceOptions all) {
                              if (!all.objects.empty()) return annotated_blobs(blobs, all);
                              if (wait) return SharedSource(make_blob_source(blobs, all));
                              all.go_on = nullptr;  // it would be called after this
                              return begun(begin_blob_source(blobs, all));
                            });
}

using PathList = nb::typed<nb::list, nb::bytes>;
using ImageList = nb::typed<nb::list, nb::any>;

// Paths of files may be bytes that are not UTF-8.
std::vector<std::string> paths_of(const PathList& paths) {
  std::vector<std::string> out;
  for (const nb::handle path : paths) {
    const auto bytes = nb::cast<nb::bytes>(path);
    out.emplace_back(bytes.c_str(), bytes.size());
  }
  return out;
}

SharedSource list_files(const PathList& paths, std::vector<int32_t> labels,
                        std::vector<std::string> class_names, std::string root) {
  return make_listed_source({.paths = paths_of(paths),
                             .labels = std::move(labels),
                             .class_names = std::move(class_names),
                             .root = std::move(root)});
}

// `images` are bytes, or views of bytes that stay as long as the list; it is not changed after
// this.
SharedSource list_images(const ImageList& images, std::vector<int32_t> labels,
                         std::vector<std::string> class_names) {
  ListedSamples samples{.labels = std::move(labels), .class_names = std::move(class_names)};
  for (const nb::handle image : images) {
    Py_buffer view;
    if (PyObject_GetBuffer(image.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    samples.bytes.emplace_back(static_cast<const uint8_t*>(view.buf),
                               static_cast<size_t>(view.len));
    PyBuffer_Release(&view);
  }
  samples.owner = keep_object(images);
  return make_listed_source(std::move(samples));
}

// Images at addresses, in memory that `owner` keeps. At address 0 there is none: that sample is the
// file at its path. REQUIRES: lists of one length.
SharedSource list_addresses(const std::vector<uintptr_t>& addresses,
                            const std::vector<size_t>& lengths, const PathList& paths,
                            nb::object owner, std::vector<int32_t> labels,
                            std::vector<std::string> class_names, std::string root) {
  ListedSamples samples{.paths = paths_of(paths),
                        .owner = keep_object(std::move(owner)),
                        .labels = std::move(labels),
                        .class_names = std::move(class_names),
                        .root = std::move(root)};
  for (size_t i = 0; i < addresses.size(); ++i) {
    samples.bytes.emplace_back(reinterpret_cast<const uint8_t*>(addresses[i]), lengths.at(i));
  }
  return make_listed_source(std::move(samples));
}

StoreOptions store_options(const std::string& endpoint, const std::string& region,
                           const std::string& profile, const std::string& style, bool anonymous,
                           const std::string& ca_file, int requests, int64_t memory, int tries,
                           const std::string& cache, int64_t cache_bytes) {
  using Style = StoreOptions::Style;
  return {.endpoint = endpoint,
          .region = region,
          .profile = profile,
          .style = style == "path"   ? Style::path
                   : style == "host" ? Style::host
                                     : Style::automatic,
          .anonymous = anonymous,
          .ca_file = ca_file,
          .requests = requests,
          .read_ahead_bytes = memory,
          .tries = tries,
          .cache = cache,
          .cache_bytes = cache_bytes};
}

void bind_stores(nb::module_& module) {
  nb::exception<StoreError>(module, "StoreError", PyExc_OSError);
  nb::class_<StoreOptions>(module, "StoreOptions").def(nb::new_(&store_options));
}

// The function of Python that opens files of a format.
std::string function_of(const std::string& format) { return format == "list" ? "csv" : format; }

// {function: words for its files in sentences}.
nb::dict blob_words() {
  nb::dict all;
  for (const auto& [format, words] : format_words()) {
    all[function_of(format).c_str()] = words.c_str();
  }
  return all;
}

void bind_blobs(nb::module_& module) {
  nb::class_<BlobSet>(module, "BlobSet")
      .def_prop_ro("function",
                   [](const BlobSet& set) { return function_of(to_string(set.format)); })
      .def_prop_ro("first", [](const BlobSet& set) { return printable_name(set.blobs.front()); });
  module.def("find_blobs", find_blobs, nb::call_guard<Unlocked>(), "path"_a, "split"_a, "store"_a);
  module.def("blob_words", blob_words, nb::sig("def blob_words() -> dict[str, str]"));
  module.def("blob_set_of", blob_set_of, nb::call_guard<Unlocked>(), "paths"_a, "store"_a);
  module.def("has_blob_parts", has_blob_parts, nb::call_guard<Unlocked>(), "path"_a, "store"_a);
  module.def("local_path", local_path, "path"_a);
  module.def("shown_path", shown_path, "path"_a);
  module.def("shown_word", shown_word, "word"_a);
  module.def("has_parts", has_parts, nb::call_guard<Unlocked>(), "path"_a, "store"_a);
  module.def("open_blobs", open_blobs, "blobs"_a, "image_from"_a, "label_from"_a, "targets_from"_a,
             "objects"_a, "objects_from"_a, "label_image_from"_a, "pictures_from"_a, "store"_a,
             "wait"_a);
}

void bind_lists(nb::module_& module) {
  module.def("list_files", list_files, "paths"_a, "labels"_a, "class_names"_a, "root"_a);
  module.def("list_images", list_images, "images"_a, "labels"_a, "class_names"_a);
  module.def("list_addresses", list_addresses, "addresses"_a, "lengths"_a, "paths"_a, "owner"_a,
             "labels"_a, "class_names"_a, "root"_a);
}

}  // namespace

void bind_open(nb::module_& module) {
  bind_stores(module);
  bind_blobs(module);
  bind_lists(module);
  module.def(
      "folder",
      [](const std::string& path, Split split, const StoreOptions& store) {
        if (!is_store_address(path)) {
          return SharedSource(make_folder_source(path, {.split = split}));
        }
        return SharedSource(
            make_stored_folder(stored_location(path, store), {.split = split, .store = store}));
      },
      nb::call_guard<Unlocked>(), "path"_a, "split"_a, "store"_a);
  module.def(
      "cifar",
      [](const std::string& path, Split split, const StoreOptions& store) {
        if (!is_store_address(path)) return SharedSource(make_cifar_source(path, split));
        if (!store.cache.empty()) {
          throw std::invalid_argument("cache: CIFAR's files are read once and stay in memory");
        }
        return SharedSource(make_cifar_source(*stored_location(path, store), split));
      },
      nb::call_guard<Unlocked>(), "path"_a, "split"_a, "store"_a);
  module.def("open", open_path, "path"_a, "split"_a, "image_from"_a, "label_from"_a,
             "targets_from"_a, "objects"_a, "objects_from"_a, "label_image_from"_a,
             "pictures_from"_a, "store"_a, "wait"_a);
  module.def("is_cifar_folder", nb::overload_cast<const std::string&>(is_cifar_folder), "path"_a);
  module.def(
      "synthetic",
      [](int64_t samples, int height, int width, int classes, uint64_t seed) {
        return SharedSource(make_synthetic_source(samples, {width, height}, classes, seed));
      },
      nb::call_guard<Unlocked>(), "samples"_a, "height"_a, "width"_a, "classes"_a, "seed"_a);
}

}  // namespace stoker::python
