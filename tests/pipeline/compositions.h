// Sources below views below feeds, and what they must give: a plain list of samples. A view's row
// of the table makes the view, and does to the list by itself what the view should do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker::testing {

struct ModelSample {
  std::string name;
  int label = 0;
  std::string bytes;                   // as Source::read() gives them
  std::vector<std::string> targets{};  // the bytes of each column
};

// The expected source.
struct Model {
  std::vector<ModelSample> samples;
  std::vector<TargetColumn> columns{};
  std::vector<std::string> class_names{};
  SampleEncoding encoding = SampleEncoding::image_file;
  Size raw_size = {};
  bool has_own_labels_digest = false;  // generated samples, which are nowhere else
};

// A source with views of it, and its model.
struct Composition {
  Composition(std::string name, std::unique_ptr<const Source> source, Model model);

  const Source& source() const { return *top; }
  // `needs`: what the view shows besides source().
  void add(const std::string& view, std::unique_ptr<const Source> source,
           std::shared_ptr<const void> needs = nullptr);

  std::string name;
  Model model;
  std::shared_ptr<const Source> top;  // keeps those that it shows
};

struct View {
  const char* name;
  std::function<void(Composition&)> add;  // and changes the model
  bool of_files_only = false;
};
// Targets, parts, splits, classes, several as one, a list that grows, and a plain view.
const std::vector<View>& all_views();

// The samples that the tests' sources have: small PPM files of known pixels, three classes, and two
// targets, "age" (int64) and "soft" (float32, 3).
inline constexpr int kModelSamples = 17, kModelClasses = 3;
inline constexpr Size kModelSize{12, 10};
std::string model_pixels(int number, Size size);
std::string model_file(int number);
std::string model_key(int number);  // the file's name, without an extension
int64_t model_age(int number);
std::vector<float> model_soft(int number);
// Names of samples without names, and of the files above.
Model file_model(bool has_targets);
// A shard "a.tar" of them, and its fields of targets; a list of "pictures/KEY.ppm", with columns of
// the targets' names.
std::string model_tar();
std::vector<std::string> model_tar_targets();
std::string model_list();

// Compares everything that a source says with the model, and what feeds of all kinds make of it
// with what they make of the model.
void expect_model(const Composition& made);
// One feed, in order: pixels, labels, targets.
void expect_fed(const Composition& made);
// Orders, mixed rows, views, other threads, shared rows, rows of other machines, kept pictures.
void expect_fed_in_all_ways(const Composition& made);

// Makes every view and every pair of views on what `make` gives, and compares all of them.
void expect_all_compositions(const std::function<Composition()>& make);

}  // namespace stoker::testing
