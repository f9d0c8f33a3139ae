// Every source on this machine with every view and every pair of views: it says and gives what a
// plain list of the samples does. (stored_compositions_test.cc has the sources in a store.)
#include "tests/pipeline/compositions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "pipeline/source/listed_source.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/support/format_maker.h"
#include "tests/support/mds_maker.h"
#include "tests/support/source_contents.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

namespace fs = std::filesystem;

int label_of(int number) { return number % kModelClasses; }

SourceOptions with_fields(std::vector<std::string> targets, const std::string& label = "") {
  return {.label_from = label, .targets_from = std::move(targets), .cache_dir = ""};
}

Composition opened(const std::string& name, const std::string& path, const SourceOptions& options,
                   const std::function<std::string(int)>& name_of) {
  // Stamps of files that were just written do not stand for their bytes.
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(path).parent_path())) {
    if (!entry.is_regular_file()) continue;
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  Model model = file_model(!options.targets_from.empty());
  for (int i = 0; i < kModelSamples; ++i) {
    model.samples[static_cast<size_t>(i)].name = name_of(i);
  }
  return {name, open_source(path, options), std::move(model)};
}

// ---- The sources

Composition in_folder(const TempFolder& data) {
  for (int i = 0; i < kModelSamples; ++i) {
    data.write("folder/" + std::to_string(label_of(i)) + "/" + model_key(i) + ".ppm",
               model_file(i));
  }
  Composition made = opened("folder", data.path() + "/folder", with_fields({}),
                            [](int i) { return model_key(i); });
  // They are sorted by their classes.
  for (size_t i = 0; i < made.model.samples.size(); ++i) {
    ModelSample& sample = made.model.samples[i];
    sample.name = std::to_string(sample.label) + "/" + sample.name + ".ppm";
  }
  std::stable_sort(made.model.samples.begin(), made.model.samples.end(),
                   [](const ModelSample& a, const ModelSample& b) { return a.label < b.label; });
  return made;
}

Composition in_cifar(const TempFolder& data) {
  constexpr Size kSize{32, 32};
  Model model;
  model.encoding = SampleEncoding::raw_planar;
  model.raw_size = kSize;
  for (int i = 0; i < 10; ++i) model.class_names.push_back(std::to_string(i));
  for (int i = 0; i < kModelSamples;) {
    const std::string file = "data_batch_" + std::to_string(i / 4 + 1) + ".bin";
    std::string records;
    for (const int end = std::min(i + 4, kModelSamples); i < end; ++i) {
      model.samples.push_back(
          {file + ":" + std::to_string(i % 4), label_of(i), model_pixels(i, kSize)});
      records += static_cast<char>(label_of(i)) + model_pixels(i, kSize);
    }
    data.write("cifar/" + file, records);
  }
  return {"CIFAR", open_source(data.path() + "/cifar", Split::train), std::move(model)};
}

Composition composed_tar(const TempFolder& data, bool has_targets) {
  const std::string path = data.write("tar/a.tar", model_tar());
  const auto fields = with_fields(has_targets ? model_tar_targets() : std::vector<std::string>());
  return opened("tar", path, fields, [](int i) { return "a.tar/" + model_key(i) + ".ppm"; });
}

Composition in_format(const TempFolder& data, const char* name, bool has_targets) {
  const MadeFormat& format = made_format(name);
  std::vector<MadeSample> samples;
  for (int i = 0; i < kModelSamples; ++i) {
    samples.push_back(
        {model_key(i), model_file(i), int64_t{label_of(i)}, model_age(i), model_soft(i)});
  }
  const std::string file = format.file_name("a"), content = format.make(samples);
  const std::string folder = std::string(name) + "/";
  data.write(folder + file, content);
  data.write(folder + "index.json", mds_index({{file, std::ssize(content)}}));
  const auto fields = has_targets ? with_fields(format.targets) : with_fields({});
  return opened(name, data.path() + "/" + name, fields,
                [&](int i) { return file + "#" + std::to_string(i); });
}

Composition in_list(const TempFolder& data, bool has_targets) {
  for (int i = 0; i < kModelSamples; ++i) {
    data.write("list/pictures/" + model_key(i) + ".ppm", model_file(i));
  }
  const std::string path = data.write("list/list.csv", model_list());
  const auto fields = has_targets ? with_fields({"age", "soft"}) : with_fields({});
  return opened("list", path, fields, [](int i) { return "pictures/" + model_key(i) + ".ppm"; });
}

// Bytes in memory, paths, and both by turns.
Composition listed(const TempFolder& data, const char* name, bool has_bytes, bool has_paths) {
  Model model = file_model(false);
  ListedSamples samples{.class_names = model.class_names, .root = data.path()};
  const auto files = std::make_shared<std::vector<std::string>>();
  for (int i = 0; i < kModelSamples; ++i) files->push_back(model_file(i));
  samples.owner = files;
  for (int i = 0; i < kModelSamples; ++i) {
    const std::string path = "listed/" + model_key(i) + ".ppm";
    data.write(path, model_file(i));
    const bool in_memory = has_bytes && !(has_paths && i % 2 == 0);
    const std::string& file = (*files)[static_cast<size_t>(i)];
    const std::span bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
    if (has_bytes) samples.bytes.push_back(in_memory ? bytes : std::span<const uint8_t>());
    if (has_paths) samples.paths.push_back(in_memory ? "" : path);
    samples.labels.push_back(label_of(i));
    model.samples[static_cast<size_t>(i)].name = in_memory ? "#" + std::to_string(i) : path;
  }
  return {name, make_listed_source(std::move(samples)), std::move(model)};
}

Composition in_synthetic() {
  auto source = make_synthetic_source(kModelSamples, kModelSize, kModelClasses, 1);
  Model model;
  model.encoding = source->encoding();
  model.has_own_labels_digest = true;
  model.raw_size = kModelSize;
  model.class_names = source->class_names();
  for (SampleId id = 0; id < source->size(); ++id) {
    model.samples.push_back(
        {source->name(id), label_of(static_cast<int>(id)), text_of(*source, id)});
  }
  return {"synthetic", std::move(source), std::move(model)};
}

struct CompositionKind {
  const char* name;
  Composition (*make)(const TempFolder& data);
};
void PrintTo(const CompositionKind& kind, std::ostream* out) { *out << kind.name; }

class CompositionsTest : public ::testing::TestWithParam<CompositionKind> {};

INSTANTIATE_TEST_SUITE_P(
    Sources, CompositionsTest,
    ::testing::Values(
        CompositionKind{"Folder", in_folder}, CompositionKind{"Cifar", in_cifar},
        CompositionKind{"Tar", [](const TempFolder& data) { return composed_tar(data, false); }},
        CompositionKind{"TarWithTargets",
                        [](const TempFolder& data) { return composed_tar(data, true); }},
        CompositionKind{"Parquet",
                        [](const TempFolder& data) { return in_format(data, "Parquet", false); }},
        CompositionKind{"ParquetWithTargets",
                        [](const TempFolder& data) { return in_format(data, "Parquet", true); }},
        CompositionKind{"Tfrecord",
                        [](const TempFolder& data) { return in_format(data, "Tfrecord", false); }},
        CompositionKind{"TfrecordWithTargets",
                        [](const TempFolder& data) { return in_format(data, "Tfrecord", true); }},
        CompositionKind{"Mds",
                        [](const TempFolder& data) { return in_format(data, "Mds", false); }},
        CompositionKind{"MdsWithTargets",
                        [](const TempFolder& data) { return in_format(data, "Mds", true); }},
        CompositionKind{"List", [](const TempFolder& data) { return in_list(data, false); }},
        CompositionKind{"ListWithTargets",
                        [](const TempFolder& data) { return in_list(data, true); }},
        CompositionKind{"Memory",
                        [](const TempFolder& data) { return listed(data, "memory", true, false); }},
        CompositionKind{"Files",
                        [](const TempFolder& data) { return listed(data, "files", false, true); }},
        CompositionKind{
            "MemoryAndFiles",
            [](const TempFolder& data) { return listed(data, "memory and files", true, true); }},
        CompositionKind{"Synthetic", [](const TempFolder&) { return in_synthetic(); }}),
    [](const auto& row) { return row.param.name; });

TEST_P(CompositionsTest, GiveWhatAPlainListGives) {
  const TempFolder data;
  expect_all_compositions([&] { return GetParam().make(data); });
}

}  // namespace
}  // namespace stoker::testing
