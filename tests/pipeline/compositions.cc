#include "tests/pipeline/compositions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <numeric>
#include <thread>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/sample_order.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/growing_source.h"
#include "pipeline/source/look_ahead.h"
#include "pipeline/source/picture_sizes.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/target_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/source_contents.h"
#include "tests/support/tar_maker.h"

namespace stoker::testing {
namespace {

template <class T>
std::string bytes_of_values(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::span<const std::byte> span_of(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

std::string joined_values(const std::vector<float>& values, const char* between) {
  std::string text;
  for (const float value : values) {
    text.append(text.empty() ? "" : between).append(std::to_string(value));
  }
  return text;
}

// ---- The model as a source

class ModelSource final : public Source {
 public:
  explicit ModelSource(const Model& model)
      : model_(model),
        info_{.size = std::ssize(model.samples),
              .encoding = model.encoding,
              .raw_size = model.raw_size,
              .class_names = model.class_names,
              .targets = model.columns,
              .fingerprint = 1} {}
  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return at(id).label; }
  std::string name(SampleId id) const override { return at(id).name; }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    buffer.assign(at(id).bytes.begin(), at(id).bytes.end());
    bytes = buffer;
    return {};
  }
  void read_targets(SampleId id, std::span<const uint8_t>, SampleTargets& out) const override {
    out.label = label(id);
    for (size_t i = 0; i < model_.columns.size(); ++i) {
      std::memcpy(out.columns[i], at(id).targets[i].data(), at(id).targets[i].size());
    }
  }

 private:
  const ModelSample& at(SampleId id) const { return model_.samples[static_cast<size_t>(id)]; }

  const Model& model_;
  const SourceInfo info_;
};

// ---- Views

void choose(Model& model, const std::vector<SampleId>& ids) {
  std::vector<ModelSample> chosen;
  for (const SampleId id : ids) chosen.push_back(model.samples[static_cast<size_t>(id)]);
  model.samples = std::move(chosen);
}

void add_subset(Composition& made, const char* view, const std::vector<SampleId>& ids) {
  made.add(view, std::make_unique<SubsetSource>(made.source(), ids));
  choose(made.model, ids);
}

// Two columns, behind those that the source has.
void add_targets(Composition& made) {
  struct Values {
    std::string bits, sums;
  };
  const auto values = std::make_shared<Values>();
  std::vector<ModelSample>& samples = made.model.samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    const char bits[] = {static_cast<char>(i), '\1', static_cast<char>(3 * i)};
    samples[i].targets.emplace_back(bits, sizeof bits);
    samples[i].targets.push_back(bytes_of_values(std::vector{static_cast<int64_t>(i * i) - 5}));
    values->bits += samples[i].targets.end()[-2];
    values->sums += samples[i].targets.back();
  }
  std::vector<TargetColumn>& columns = made.model.columns;
  const std::string number = std::to_string(columns.size());
  columns.push_back({"bits" + number, TargetType::uint8, {3}});
  columns.push_back({"sum" + number, TargetType::int64});
  std::vector<TargetTable> tables;
  tables.push_back({.column = columns.end()[-2], .values = span_of(values->bits)});
  tables.push_back({.column = columns.back(), .values = span_of(values->sums)});
  made.add("targets", std::make_unique<TargetSource>(made.source(), std::move(tables)), values);
}

void add_spread(Composition& made) {
  const auto size = std::ssize(made.model.samples);
  const int64_t limit = size - 5;
  made.add("spread", std::make_unique<SubsetSource>(made.source(), limit));
  std::vector<SampleId> ids;
  for (int64_t i = 0; i < limit; ++i) ids.push_back(i * size / limit);
  choose(made.model, ids);
}

void add_listed(Composition& made) {
  std::vector<SampleId> ids;
  for (SampleId id = std::ssize(made.model.samples) - 1; id >= 0; --id) {
    if (id % 4 != 1) ids.push_back(id);
  }
  add_subset(made, "listed", ids);
}

void add_classes(Composition& made) {
  std::vector<SampleId> ids;
  for (size_t i = 0; i < made.model.samples.size(); ++i) {
    if (made.model.samples[i].label != 1) ids.push_back(static_cast<SampleId>(i));
  }
  EXPECT_EQ(ids_with_labels(made.source(), {0, 2}), ids);
  add_subset(made, "classes", ids);
}

void add_split(Composition& made) {
  add_subset(made, "split", random_split(made.source().size(), {0.7, 0.3}, 3)[0]);
}

// The source, and behind it a part of it.
void add_concat(Composition& made) {
  const auto part = std::make_shared<SubsetSource>(made.source(), std::vector<SampleId>{2, 0});
  const Model before = made.model;
  choose(made.model, {2, 0});
  std::vector<ModelSample> samples = before.samples;
  samples.insert(samples.end(), made.model.samples.begin(), made.model.samples.end());
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].name = (i < before.samples.size() ? "0/" : "1/") + samples[i].name;
  }
  made.model.samples = std::move(samples);
  made.add("concat",
           std::make_unique<ConcatSource>(std::vector<const Source*>{&made.source(), part.get()}),
           part);
}

// A source that was of its first half before.
void add_growing(Composition& made) {
  const Source& whole = made.source();
  auto open = [&whole](GrowingSource& self, const std::function<bool()>&) {
    std::vector<SampleId> ids(static_cast<size_t>(whole.size() / 2));
    std::iota(ids.begin(), ids.end(), 0);
    self.grow(std::make_shared<SubsetSource>(whole, ids));
    return std::make_unique<ForwardingSource>(whole);
  };
  made.add("growing", std::make_unique<GrowingSource>(whole.root(), std::move(open)));
}

// ---- What a source says

std::vector<std::string> describe_model(std::span<const TargetColumn> columns) {
  std::vector<std::string> texts;
  for (const TargetColumn& column : columns) texts.push_back(column.describe());
  return texts;
}

// There is a column more than the source has, as where a view stands above it: it must stay.
void expect_targets(const Source& source, const Model& model, SampleId id) {
  const ModelSample& sample = model.samples[static_cast<size_t>(id)];
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  ASSERT_TRUE(source.read(id, buffer, bytes).ok);
  std::vector<std::string> found;
  for (const TargetColumn& column : model.columns) {
    found.emplace_back(static_cast<size_t>(column.bytes()), '?');
  }
  found.emplace_back(64, '?');
  SampleTargets targets;
  for (std::string& column : found) {
    targets.columns.push_back(reinterpret_cast<std::byte*>(column.data()));
  }
  source.read_targets(id, bytes, targets);
  EXPECT_EQ(targets.label, sample.label);
  EXPECT_EQ(found.back(), std::string(64, '?'));
  found.pop_back();
  EXPECT_EQ(found, sample.targets);
}

void expect_reads(const Source& source, const ModelSample& sample, SampleId id) {
  EXPECT_EQ(text_of(source, id), sample.bytes);
  const std::string cached = cached_text_of(source, id);
  if (cached != "not cached") {
    EXPECT_EQ(cached, sample.bytes);
  }
  const FileStamp stamp = source.storage().stamp(id);
  if (!stamp.is_known()) return;
  std::vector<uint8_t> begin(5), end(7);
  const auto end_at = static_cast<int64_t>(sample.bytes.size() - end.size());
  const BytePiece pieces[] = {{0, begin}, {end_at, end}};
  if (!source.storage().read_pieces(id, stamp, pieces, MayWait::yes)) return;
  EXPECT_EQ(std::string(begin.begin(), begin.end()), sample.bytes.substr(0, begin.size()));
  EXPECT_EQ(std::string(end.begin(), end.end()), sample.bytes.substr(sample.bytes.size() - 7));
}

// ---- Feeds

LoaderOptions model_options() {
  return {.batch_size = 4, .shuffle = false, .feed = {.workers = 0, .seek_index = "off"}};
}

AugmentSpec model_augment(const Model& model) {
  const bool raw = model.encoding != SampleEncoding::image_file;
  return raw ? AugmentSpec("resize", model.raw_size) : AugmentSpec("resize", kModelSize);
}

// The row that shows the whole image.
std::string sample_pixels(const Model& model, const ModelSample& sample) {
  if (model.encoding == SampleEncoding::image_file)
    return sample.bytes.substr(sample.bytes.find('\n') + 1);
  if (model.encoding == SampleEncoding::raw_rgb) return sample.bytes;
  const size_t plane = sample.bytes.size() / 3;
  std::string pixels;
  for (size_t i = 0; i < sample.bytes.size(); ++i) pixels += sample.bytes[i % 3 * plane + i / 3];
  return pixels;
}

struct Way {
  const char* name;
  // Changes the options and the list for so many samples.
  std::function<void(const Source&, LoaderOptions&, AugmentSpec&)> change;
};

std::vector<int32_t> labels_as_classes(const Source& source) {
  std::vector<int32_t> labels;
  for (SampleId id = 0; id < source.size(); ++id) labels.push_back(source.label(id));
  return labels;
}

const std::vector<Way>& ways() {
  const auto set = [](AugmentSpec& augment, const char* stages) { augment.set_stages(stages); };
  static const std::vector<Way> kWays = {
      {"shuffled, threads",
       [=](const Source&, LoaderOptions& options, AugmentSpec& augment) {
         options.shuffle = true;
         options.epochs = 2;
         options.feed.workers = 2;
         set(augment, "resize | random_crop(padding=2) | flip");
       }},
      {"weighted",
       [](const Source& source, LoaderOptions& options, AugmentSpec&) {
         std::vector<double> weights;
         for (SampleId id = 0; id < source.size(); ++id) weights.push_back(1 + id % 3);
         options.shuffle = true;
         options.order = weighted_order(weights, {.length = source.size()});
       }},
      {"class balanced",
       [](const Source& source, LoaderOptions& options, AugmentSpec&) {
         options.shuffle = true;
         options.order = class_balanced_order(labels_as_classes(source), source.size());
       }},
      {"repeated, blocks",
       [](const Source& source, LoaderOptions& options, AugmentSpec&) {
         options.shuffle = true;
         options.order = repeated_order({.samples = source.size(), .repeats = 2});
       }},
      {"blend",
       [](const Source& source, LoaderOptions& options, AugmentSpec&) {
         options.shuffle = true;
         options.order = blend_order(
             {.sizes = {2, source.size() - 2}, .schedule = {{0, {1, 3}}}, .length = source.size()});
       }},
      {"aspect buckets",
       [=](const Source& source, LoaderOptions& options, AugmentSpec& augment) {
         options.buckets = std::make_shared<const AspectBuckets>(
             picture_sizes(source), BucketOptions{.sizes = {{12, 8}, {8, 12}}});
         options.last_batch = LastBatch::merge;
         set(augment, "resize_cover | random_crop");
       }},
      {"sizes of steps, mixed",
       [=](const Source&, LoaderOptions& options, AugmentSpec& augment) {
         options.shapes = std::make_shared<const ShapeSchedule>(
             std::vector<ShapePiece>{{0, {{8, 8}, {12, 10}}}});
         set(augment, "resize | mix(mixup=1)");
       }},
      {"mixed", [=](const Source&, LoaderOptions&,
                    AugmentSpec& augment) { set(augment, "resize | mix(mixup=1)"); }},
      {"views",
       [=](const Source&, LoaderOptions&, AugmentSpec& augment) {
         set(augment, "views(resize | flip, resize | invert, counts=(1, 1))");
       }},
  };
  return kWays;
}

std::vector<std::byte> fed_bytes(const Source& source, const AugmentSpec& augment,
                                 const LoaderOptions& options) {
  Feed feed(source, augment, options);
  return all_bytes(feed);
}

void expect_shared(const Composition& made, const std::vector<std::byte>& expected) {
  static int number = 0;
  LoaderOptions options = model_options();
  options.share = {"compositions-" + std::to_string(getpid()) + "-" + std::to_string(++number), 64};
  const AugmentSpec augment = model_augment(made.model);
  Feed feeds[] = {{made.source(), augment, options}, {made.source(), augment, options}};
  std::vector<std::byte> second;
  std::thread other([&] { second = all_bytes(feeds[1]); });
  EXPECT_EQ(all_bytes(feeds[0]), expected);
  other.join();
  EXPECT_EQ(second, expected);
}

void expect_remote(const Composition& made, const std::vector<std::byte>& expected) {
  LoaderOptions options = model_options();
  options.remote_rows = true;
  const AugmentSpec augment = model_augment(made.model);
  Feed feed(made.source(), augment, options);
  const auto rows = feed.loader().remote_rows();
  std::thread carrier([&] { fill_remotely(*rows, made.source(), augment, options); });
  EXPECT_EQ(all_bytes(feed), expected);
  feed.loader().stop();
  carrier.join();
}

// Twice of the same cache: what is kept, and what was.
void expect_cached(const Composition& made, const std::vector<std::byte>& expected) {
  LoaderOptions options = model_options();
  options.feed.cache = std::make_shared<DecodedCache>(DecodedCacheOptions{"", 1 << 20});
  const AugmentSpec augment = model_augment(made.model);
  const std::string refusal = decoded_cache_refusal(made.source(), augment, options.feed.decode);
  if (!refusal.empty()) {
    EXPECT_THROW(Feed(made.source(), augment, options), std::invalid_argument);
    return;
  }
  EXPECT_EQ(fed_bytes(made.source(), augment, options), expected);
  EXPECT_EQ(fed_bytes(made.source(), augment, options), expected);
}

}  // namespace

Composition::Composition(std::string name_in, std::unique_ptr<const Source> source, Model model_in)
    : name(std::move(name_in)), model(std::move(model_in)), top(std::move(source)) {}

void Composition::add(const std::string& view, std::unique_ptr<const Source> source,
                      std::shared_ptr<const void> needs) {
  name += " > " + view;
  top = {source.release(),
         [below = top, needs = std::move(needs)](const Source* above) { delete above; }};
}

const std::vector<View>& all_views() {
  static const std::vector<View> kViews = {
      {"targets", add_targets},
      {"spread", add_spread},
      {"listed", add_listed},
      {"classes", add_classes},
      {"split", add_split},
      {"concat", add_concat},
      {"growing", add_growing, true},
      {"plain",
       [](Composition& made) {
         made.add("plain", std::make_unique<ForwardingSource>(made.source()));
       }},
  };
  return kViews;
}

std::string model_pixels(int number, Size size) {
  std::string pixels;
  for (int i = 0; i < 3 * size.width * size.height; ++i) {
    pixels += static_cast<char>(number * 37 + i * 5 + i / 7);
  }
  return pixels;
}

std::string model_file(int number) {
  return "P6 " + std::to_string(kModelSize.width) + " " + std::to_string(kModelSize.height) +
         " 255\n" + model_pixels(number, kModelSize);
}

std::string model_key(int number) { return std::to_string(100 + number); }

int64_t model_age(int number) { return 10 * number - 3; }

std::vector<float> model_soft(int number) {
  return {static_cast<float>(number), 0.5F, -static_cast<float>(number)};
}

Model file_model(bool has_targets) {
  Model model;
  for (int i = 0; i < kModelSamples; ++i) {
    ModelSample& sample =
        model.samples.emplace_back(ModelSample{"", i % kModelClasses, model_file(i)});
    if (!has_targets) continue;
    sample.targets = {bytes_of_values(std::vector{model_age(i)}), bytes_of_values(model_soft(i))};
  }
  for (int i = 0; i < kModelClasses; ++i) model.class_names.push_back(std::to_string(i));
  if (has_targets) {
    model.columns = {{"age", TargetType::int64}, {"soft", TargetType::float32, {3}}};
  }
  return model;
}

std::string model_tar() {
  std::string tar;
  for (int i = 0; i < kModelSamples; ++i) {
    const std::string json = "{\"age\": " + std::to_string(model_age(i)) + ", \"soft\": [" +
                             joined_values(model_soft(i), ", ") + "]}";
    tar += tar_member(model_key(i) + ".cls", std::to_string(i % kModelClasses));
    tar += tar_member(model_key(i) + ".json", json);
    tar += tar_member(model_key(i) + ".ppm", model_file(i));
  }
  return tar + tar_end();
}

std::vector<std::string> model_tar_targets() { return {"json:age", "json:soft:float32"}; }

std::string model_list() {
  std::string list = "path,label,age,soft\n";
  for (int i = 0; i < kModelSamples; ++i) {
    list += "pictures/" + model_key(i) + ".ppm," + std::to_string(i % kModelClasses) + "," +
            std::to_string(model_age(i)) + "," + joined_values(model_soft(i), " ") + "\n";
  }
  return list;
}

void expect_model(const Composition& made) {
  SCOPED_TRACE(made.name);
  const Source& source = made.source();
  const Model& model = made.model;
  ASSERT_EQ(source.size(), std::ssize(model.samples));
  EXPECT_EQ(source.class_names(), model.class_names);
  EXPECT_EQ(source.encoding(), model.encoding);
  EXPECT_EQ(source.raw_size(), model.raw_size);
  EXPECT_EQ(describe_model(source.targets()), describe_model(model.columns));
  const ModelSource plain(model);
  EXPECT_EQ(names_of(source), names_of(plain));
  EXPECT_EQ(labels_of(source), labels_of(plain));
  const uint64_t labels = source.labels_digest();
  if (!model.has_own_labels_digest) {
    EXPECT_EQ(labels, plain.labels_digest());
  }
  EXPECT_EQ(source.targets_digest() == 0, model.columns.empty());
  const uint64_t fingerprint = source.fingerprint(), targets = source.targets_digest();
  // Fetched before, where a source does that.
  const auto ahead =
      source.storage().look_ahead([next = SampleId{0}, &source](SampleId& id) mutable {
        id = next++;
        return id < source.size() ? NextSample::found : NextSample::end;
      });
  for (SampleId id = 0; id < source.size(); ++id) {
    SCOPED_TRACE(source.name(id));
    expect_targets(source, model, id);
    expect_reads(source, model.samples[static_cast<size_t>(id)], id);
  }
  EXPECT_EQ(source.fingerprint(), fingerprint);
  EXPECT_EQ(source.targets_digest(), targets);
  EXPECT_EQ(source.labels_digest(), labels);
}

void expect_fed(const Composition& made) {
  SCOPED_TRACE(made.name);
  const Model& model = made.model;
  Feed feed(made.source(), model_augment(model), model_options());
  size_t row = 0;
  Delivered batch;
  while (feed.next(0, batch, [&](const DeviceBatch& leased) {
    const BatchShape shape = leased.shape();
    const auto pixels = size_t{3} * shape.height * shape.width;
    for (int i = 0; i < leased.header().valid; ++i, ++row) {
      const ModelSample& sample = model.samples[row];
      const auto* image = reinterpret_cast<const char*>(leased.images()) + i * pixels;
      EXPECT_EQ(std::string(image, pixels), sample_pixels(model, sample)) << sample.name;
      EXPECT_EQ(leased.labels()[i], sample.label) << sample.name;
      for (size_t column = 0; column < model.columns.size(); ++column) {
        const auto bytes = static_cast<size_t>(model.columns[column].bytes());
        const auto* values = reinterpret_cast<const char*>(leased.target(column)) + i * bytes;
        EXPECT_EQ(std::string(values, bytes), sample.targets[column]) << sample.name;
      }
    }
  })) {
  }
  EXPECT_EQ(row, model.samples.size());
}

void expect_fed_in_all_ways(const Composition& made) {
  SCOPED_TRACE(made.name);
  const ModelSource plain(made.model);
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    LoaderOptions options = model_options();
    AugmentSpec augment = model_augment(made.model);
    way.change(plain, options, augment);
    EXPECT_EQ(fed_bytes(made.source(), augment, options), fed_bytes(plain, augment, options));
  }
  const auto expected = fed_bytes(plain, model_augment(made.model), model_options());
  expect_shared(made, expected);
  expect_remote(made, expected);
  expect_cached(made, expected);
}

void expect_all_compositions(const std::function<Composition()>& make) {
  // Sources of other samples have other fingerprints, or sizes, whatever they are made of.
  std::map<std::pair<uint64_t, int64_t>, std::string> contents;
  const auto compare = [&](const Composition& made) {
    expect_model(made);
    if (::testing::Test::HasFatalFailure()) return;
    std::string content;
    for (const ModelSample& sample : made.model.samples) {
      const std::string& name = sample.name;
      content += name.substr(name.rfind('/') + 1) + " " + std::to_string(sample.label) + "; ";
    }
    const std::pair key(made.source().fingerprint(), made.source().size());
    EXPECT_EQ(contents.try_emplace(key, content).first->second, content) << made.name;
  };
  const Composition bare = make();
  compare(bare);
  expect_fed(bare);
  expect_fed_in_all_ways(bare);
  const bool of_files = bare.source().encoding() == SampleEncoding::image_file;
  for (const View& first : all_views()) {
    if (first.of_files_only && !of_files) continue;
    Composition one = bare;
    first.add(one);
    compare(one);
    expect_fed_in_all_ways(one);
    for (const View& second : all_views()) {
      if (second.of_files_only && !of_files) continue;
      Composition two = one;
      second.add(two);
      compare(two);
      expect_fed(two);
    }
  }
}

}  // namespace stoker::testing
