#include "tests/support/format_maker.h"

#include <sstream>
#include <stdexcept>

#include "pipeline/source/format/mds.h"
#include "pipeline/source/format/parquet.h"
#include "pipeline/source/format/tar.h"
#include "pipeline/source/format/tfrecord.h"
#include "pipeline/source/format/unpack.h"
#include "tests/support/mds_maker.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/tar_maker.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

using Samples = std::vector<MadeSample>;

bool has_targets(const Samples& samples) { return !samples.empty() && !samples[0].soft.empty(); }

template <class Kind>
bool has_labels_of(const Samples& samples) {
  return !samples.empty() && std::holds_alternative<Kind>(samples[0].label);
}

std::string label_text(const MadeSample& sample) {
  if (const auto* number = std::get_if<int64_t>(&sample.label)) return std::to_string(*number);
  return std::get<std::string>(sample.label);
}

std::string plain_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string make_tar(const Samples& samples) {
  std::string tar;
  for (const MadeSample& sample : samples) {
    tar += tar_member(sample.key + ".jpg", sample.image);
    if (sample.label.index() > 0) tar += tar_member(sample.key + ".cls", label_text(sample));
    if (!sample.soft.empty()) {
      std::ostringstream json;
      json << "{\"age\": " << sample.age << ", \"soft\": ";
      for (size_t i = 0; i < sample.soft.size(); ++i) json << (i ? ", " : "[") << sample.soft[i];
      tar += tar_member(sample.key + ".json", json.str() + "]}");
    }
  }
  return tar + tar_end();
}

void repair_tar(std::string& tar) {
  for (size_t at = 0; at + 512 <= tar.size(); at += 512) {
    // A piece that still looks like a header.
    if (tar.compare(at + 257, 5, "ustar") == 0) repair_tar_header(tar, at);
  }
}

MadeParquet parquet_of(const Samples& samples) {
  MadeColumn images, labels, ages, softs;
  images.names = {"image", "bytes"};
  labels.names = {"label"};
  ages.names = {"age"};
  softs.names = {"soft", "list", "element"};
  if (!has_labels_of<std::string>(samples)) labels.type = kMadeInt64;
  ages.type = kMadeInt64;
  softs.type = kMadeFloat;
  softs.repeated_at = {1};
  for (const MadeSample& sample : samples) {
    images.values.push_back(plain_bytes(sample.image));
    if (const auto* number = std::get_if<int64_t>(&sample.label)) {
      labels.values.push_back(plain_int64(static_cast<uint64_t>(*number)));
    } else if (const auto* text = std::get_if<std::string>(&sample.label)) {
      labels.values.push_back(plain_bytes(*text));
    }
    ages.values.push_back(plain_int64(static_cast<uint64_t>(sample.age)));
    softs.lists.emplace_back();
    for (const float value : sample.soft) softs.lists.back().push_back(plain_floats({value}));
  }
  MadeParquet file{.columns = {images}};
  if (!labels.values.empty()) file.columns.push_back(labels);
  if (has_targets(samples)) file.columns.insert(file.columns.end(), {ages, softs});
  file.rows_per_group = samples.size() > 100 ? 5000 : 8;
  file.rows_per_page = samples.size() > 100 ? 400 : 3;
  return file;
}

std::string make_parquet(const Samples& samples) { return parquet_of(samples).bytes(); }

// Packed; what is not an image also has dictionaries.
std::string make_snappy_parquet(const Samples& samples) {
  MadeParquet file = parquet_of(samples);
  for (MadeColumn& column : file.columns) {
    column.codec = kMadeSnappy;
    column.dictionary = &column != file.columns.data();
  }
  return file.bytes();
}

// Packed, and images are in a dictionary, too.
std::string make_dictionary_parquet(const Samples& samples) {
  MadeParquet file = parquet_of(samples);
  for (MadeColumn& column : file.columns) {
    column.codec = kMadeSnappy;
    column.dictionary = true;
  }
  return file.bytes();
}

// Pages of version 2, with dictionaries of all but the images.
std::string make_new_parquet(const Samples& samples) {
  MadeParquet file = parquet_of(samples);
  file.page_version = 2;
  for (size_t i = 1; i < file.columns.size(); ++i) file.columns[i].dictionary = true;
  return file.bytes();
}

std::string make_tfrecord(const Samples& samples) {
  std::string file;
  for (const MadeSample& sample : samples) {
    std::vector<std::pair<std::string, std::string>> features;
    if (const auto* number = std::get_if<int64_t>(&sample.label)) {
      features.emplace_back("image/class/label", int64_feature({*number}));
    } else if (const auto* text = std::get_if<std::string>(&sample.label)) {
      features.emplace_back("image/class/label", bytes_feature({*text}));
    }
    features.emplace_back("image/encoded", bytes_feature({sample.image}));
    features.emplace_back("image/format", bytes_feature({"JPEG"}));
    if (!sample.soft.empty()) {
      features.emplace_back("age", int64_feature({sample.age}));
      features.emplace_back("soft", float_feature(sample.soft));
    }
    file += make_record(make_example(features));
  }
  return file;
}

std::string mds_of(const Samples& samples, bool has_number_texts) {
  std::vector<MadeMdsColumn> columns;
  if (has_labels_of<int64_t>(samples)) {
    columns.push_back(has_number_texts ? MadeMdsColumn{"label", "str_int"}
                                       : MadeMdsColumn{"label", "int", 8});
  }
  if (has_labels_of<std::string>(samples)) columns.push_back({"label", "str"});
  columns.push_back({"image", "jpeg"});
  if (has_targets(samples)) {
    const auto floats = static_cast<int64_t>(samples[0].soft.size());
    columns.push_back({"age", "int64", 8});
    columns.push_back({"soft", "ndarray:float32:" + std::to_string(floats), 4 * floats});
  }
  std::vector<std::string> packed;
  for (const MadeSample& sample : samples) {
    std::vector<std::string> values;
    const auto* number = std::get_if<int64_t>(&sample.label);
    if (number != nullptr && !has_number_texts) {
      values.push_back(mds_number(static_cast<uint64_t>(*number), 8));
    } else if (sample.label.index() > 0) {
      values.push_back(label_text(sample));
    }
    values.push_back(sample.image);
    if (!sample.soft.empty()) {
      values.push_back(mds_number(static_cast<uint64_t>(sample.age), 8));
      values.push_back(plain_floats(sample.soft));
    }
    packed.push_back(mds_sample(columns, values));
  }
  return mds_shard(mds_settings(columns), packed);
}
std::string make_mds(const Samples& samples) { return mds_of(samples, false); }
std::string make_text_mds(const Samples& samples) { return mds_of(samples, true); }

}  // namespace

const std::vector<MadeFormat>& made_formats() {
  static const std::vector<MadeFormat> formats = [] {
    MadeFormat parquet{.name = "Parquet",
                       .ending = "parquet",
                       .scan = scan_parquet,
                       .make = make_parquet,
                       .is_parquet = true,
                       .empty = "no Parquet file is as short as 0 bytes"};
    MadeFormat snappy = parquet, pages = parquet, dictionary = parquet;
    snappy.is_packed = dictionary.is_packed = true;
    dictionary.name = "DictionaryParquet";
    dictionary.make = make_dictionary_parquet;
    snappy.name = "SnappyParquet";
    snappy.make = make_snappy_parquet;
    pages.name = "NewParquet";
    pages.make = make_new_parquet;
    const MadeFormat mds{.name = "Mds",
                         .ending = "mds",
                         .scan = scan_mds,
                         .make = make_mds,
                         .empty =
                             "the number of samples of 4 bytes is needed here, and the file "
                             "ends at byte 0",
                         .no_samples = "the shard has no samples"};
    MadeFormat texts = mds;
    texts.name = "TextMds";
    texts.make = make_text_mds;
    return std::vector<MadeFormat>{{.name = "Tar",
                                    .ending = "tar",
                                    .scan = scan_tar,
                                    .make = make_tar,
                                    .targets = {"json:age", "json:soft"},
                                    .has_names = true,
                                    .repair = repair_tar,
                                    .empty = "the file is empty"},
                                   parquet,
                                   snappy,
                                   dictionary,
                                   pages,
                                   {.name = "Tfrecord",
                                    .ending = "tfrecord",
                                    .scan = scan_tfrecord,
                                    .make = make_tfrecord,
                                    .ends_anywhere = true,
                                    .repair = repair_checksums,
                                    .empty = "the file has no records",
                                    .no_samples = "the file has no records"},
                                   mds,
                                   texts};
  }();
  return formats;
}

const MadeFormat& made_format(const std::string& name) {
  for (const MadeFormat& format : made_formats()) {
    if (format.name == name) return format;
  }
  throw std::logic_error("no format " + name);
}

std::string image_in(const std::string& file, const FoundSample& found) {
  const auto offset = static_cast<size_t>(found.offset);
  if (found.storage == BlobStorage::bytes) {
    return file.substr(offset, static_cast<size_t>(found.length));
  }
  const std::string packed = file.substr(offset, static_cast<size_t>(found.packed_length));
  std::vector<uint8_t> out(static_cast<size_t>(found.skip + found.length));
  const std::string problem =
      unpack(found.storage, {reinterpret_cast<const uint8_t*>(packed.data()), packed.size()}, out);
  if (!problem.empty()) return "cannot be unpacked: " + problem;
  return {out.begin() + found.skip, out.end()};
}

}  // namespace stoker
