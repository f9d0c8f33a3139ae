// stoker pack: writes a data set as shards that other software reads.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/durable_file.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/seek_index/build.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source/look_ahead.h"
#include "pipeline/source/sample_checker.h"
#include "pipeline/store/object_store.h"
#include "staging/allowed_cores.h"
#include "tools/command/command.h"
#include "tools/console/interrupt.h"
#include "tools/console/progress.h"
#include "tools/data/image_file_reader.h"
#include "tools/data/output_file.h"
#include "tools/data/parquet_writer.h"
#include "tools/data/sample_keys.h"
#include "tools/data/tar_writer.h"
#include "tools/option/feed_options.h"

namespace stoker {
namespace {

enum class ShardFormat { tar, parquet };

const std::map<std::string, ShardFormat> kFormats = {{"tar", ShardFormat::tar},
                                                     {"parquet", ShardFormat::parquet}};

struct PackArguments {
  DataOptions data;
  std::string out;
  std::string format;
  int64_t shard_mib = 256;
  bool json = false;
};

struct PackResult {
  int64_t packed = 0;
  int64_t shards = 0;
  int64_t image_bytes = 0;
  int64_t file_bytes = 0;  // of all shards
  int64_t indexed = 0;     // images with a seek index
  std::vector<Finding> bad;
  int signal = 0;  // what stopped it, so that nothing was written; 0: none
};

// The shards of one run, as they are named by those who use the format.
class ShardSet {
 public:
  ShardSet(const std::string& folder, const PackArguments& arguments,
           const std::vector<std::string>& class_names)
      : stem_(folder + "/" + (arguments.data.split == "all" ? "data" : arguments.data.split)),
        format_(kFormats.at(arguments.format)),
        max_bytes_(arguments.shard_mib << 20),
        class_names_(class_names) {}

  void add(const ShardSample& sample) {
    if (shard_ && shard_->bytes_with(sample) > max_bytes_) finish_shard();
    if (!shard_) shard_ = make_shard();
    shard_->add(sample);
  }
  void finish() {
    if (shard_) finish_shard();
    if (format_ == ShardFormat::tar) return;
    for (int64_t shard = 0; shard < shards_; ++shard) {
      std::filesystem::rename(path_of(shard),
                              fmt::format("{}-{:05}-of-{:05}.parquet", stem_, shard, shards_));
    }
  }
  int64_t shards() const { return shards_ + (shard_ ? 1 : 0); }
  int64_t bytes() const { return bytes_; }  // of the finished ones

 private:
  // For a Parquet shard: until the number of all is known.
  std::string path_of(int64_t shard) const {
    return format_ == ShardFormat::tar ? fmt::format("{}-{:06}.tar", stem_, shard)
                                       : fmt::format("{}-{:05}.parquet", stem_, shard);
  }
  std::unique_ptr<ShardWriter> make_shard() const {
    const std::string path = path_of(shards_);
    if (format_ == ShardFormat::tar) return std::make_unique<TarShardWriter>(path);
    return std::make_unique<ParquetShardWriter>(path, class_names_);
  }
  void finish_shard() {
    bytes_ += shard_->finish();
    shard_.reset();
    ++shards_;
  }

  const std::string stem_;
  const ShardFormat format_;
  const int64_t max_bytes_;
  const std::vector<std::string>& class_names_;
  std::unique_ptr<ShardWriter> shard_;  // the one that is being written
  int64_t shards_ = 0, bytes_ = 0;      // the finished ones
};

// Returns the text of classes.txt.
std::string class_lines(const Source& source, const std::string& data) {
  std::string lines;
  for (size_t i = 0; i < source.class_names().size(); ++i) {
    const std::string& name = source.class_names()[i];
    if (name.find_first_of("\r\n") != std::string::npos) {
      throw std::invalid_argument(
          fmt::format("--data: {}: the name of class {} has a line break, and classes.txt has a "
                      "name per line: {}",
                      shown_path(data), i, printable_name(name)));
    }
    lines += name + "\n";
  }
  return lines;
}

std::unique_ptr<NewFolder> make_out_folder(const std::string& path) {
  try {
    return std::make_unique<NewFolder>(path);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--out: ") + error.what());
  }
}

// Writes all samples, or fewer if `stop` is set meanwhile.
void pack_samples(const Source& source, const std::atomic<bool>& stop, ShardSet& shards,
                  PackResult& result) {
  Progress progress(source.size());
  const SampleKeys keys(source);
  ImageFileReader reader(source);
  const auto look_ahead = look_ahead_in_order(source);
  ImageFile image;
  Finding finding;
  for (SampleId id = 0; id < source.size() && !stop; ++id) {
    if (reader.read(id, image, finding)) {
      const std::string key = keys.key(id);
      shards.add({key, image.name, image.extension, source.label(id), image.bytes});
      result.image_bytes += static_cast<int64_t>(image.bytes.size());
      ++result.packed;
    } else {
      result.bad.push_back(finding);
    }
    if (progress.due()) {
      progress.update(id + 1, fmt::format("{} of {} images, {} shards, {} bad", id + 1,
                                          source.size(), shards.shards(), result.bad.size()));
    }
  }
}

// Makes the seek indexes of the shards in `folder`, beside them. They are found by the names of the
// samples, which have no part of the folder's own path.
void index_shards(const std::string& folder, const std::atomic<bool>& stop, PackResult& result) {
  const auto shards = open_source(folder, {.cache_dir = ""});
  Progress progress(shards->size());
  const auto go_on = [&](int64_t done, const SeekIndexTotals& so_far) {
    if (progress.due()) {
      progress.update(
          done, fmt::format("{} of {} images, {} indexed", done, shards->size(), so_far.indexed));
    }
    return !stop;
  };
  const std::string path = folder + "/" + kSeekIndexName;
  const auto totals =
      build_seek_indexes(*shards, path, {.workers = usable_cores(), .go_on = go_on});
  if (!totals) return;
  result.indexed = totals->indexed;
  if (totals->indexed == 0) std::filesystem::remove(path);
}

PackResult pack(const Source& source, const PackArguments& arguments) {
  const std::string classes = class_lines(source, arguments.data.data);
  const auto folder = make_out_folder(arguments.out);
  std::atomic<bool> stop{false};
  const Interrupt interrupt([](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; },
                            &stop, "\nstopping; once more to stop at once\n");
  ShardSet shards(folder->temporary(), arguments, source.class_names());
  PackResult result;
  pack_samples(source, stop, shards, result);
  if (!stop && result.packed > 0) {
    shards.finish();
    if (!classes.empty()) {
      write_flushed(folder->temporary() + "/classes.txt", std::array{std::string_view(classes)});
    }
    index_shards(folder->temporary(), stop, result);
  }
  if (stop) {
    result.signal = interrupt.signal();
  } else if (result.packed > 0) {
    folder->publish();
  }
  result.shards = shards.shards();
  result.file_bytes = shards.bytes();
  return result;
}

void print_pack_json(const Source& source, const PackArguments& arguments, const PackResult& result,
                     double seconds) {
  nlohmann::ordered_json bad = nlohmann::ordered_json::array();
  for (const Finding& finding : result.bad) bad.push_back(to_json(source, finding));
  const nlohmann::ordered_json json = {{"folder", arguments.out},
                                       {"format", arguments.format},
                                       {"images", source.size()},
                                       {"packed", result.packed},
                                       {"shards", result.shards},
                                       {"image_bytes", result.image_bytes},
                                       {"file_bytes", result.file_bytes},
                                       {"indexed", result.indexed},
                                       {"seconds", seconds},
                                       {"bad", bad}};
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_pack_text(const Source& source, const PackArguments& arguments, const PackResult& result,
                     double seconds) {
  fmt::print("{}", to_jsonl(source, result.bad));
  fmt::print(stderr, "{} images, {} packed, {} indexed, {} bad, {:.1f} s, {:.0f} images/s\n",
             source.size(), result.packed, result.indexed, result.bad.size(), seconds,
             static_cast<double>(source.size()) / seconds);
  if (result.packed == 0) return;
  fmt::print(stderr, "{}: {} {} of {} bytes, {} bytes of images\n", arguments.out, result.shards,
             result.shards == 1 ? "shard" : "shards", result.file_bytes, result.image_bytes);
}

}  // namespace

int run_pack(int argc, char** argv) {
  PackArguments arguments;
  arguments.data.split = "all";
  auto app = make_parser(
      "pack",
      "Writes a data set as shards that other software reads: tar archives for WebDataset\n"
      "(SPLIT-000000.tar), or Parquet files for Hugging Face datasets\n"
      "(SPLIT-00000-of-00004.parquet), in the order of the samples; SPLIT is data for all of "
      "them.\n"
      "The bytes of image files stay as they are; CIFAR's become PNG files with the same pixels.\n"
      "In a tar shard a sample is KEY.jpg (or png, webp, bmp, tif) and KEY.cls, its label as "
      "text;\n"
      "targets and other members or columns are not written.\n"
      "KEY is its path with dots in the file's name replaced by _. classes.txt has the names of\n"
      "the classes, and seek-index.bin the seek indexes (see stoker index), which stoker finds "
      "there.\n"
      "Files that cannot be read, or whose header is not that of an image, are left out and "
      "listed\n"
      "as by stoker check; the exit code is 1 if there are any. The folder appears when all is\n"
      "written.",
      "  stoker pack --data data/imagenette --format tar --out shards\n"
      "  stoker pack --data data/cifar --split train --format parquet --shard-mib 64 --out hub\n");
  add_data_option(*app, arguments.data);
  add_split_option(*app, arguments.data);
  app->add_option("--out,-o", arguments.out, "Folder to make, or an empty one")->required();
  app->add_option("--format", arguments.format, "Format of the shards")
      ->check(CLI::IsMember(&kFormats))
      ->required();
  app->add_option("--shard-mib", arguments.shard_mib,
                  "Largest size of a shard in MiB; a larger image has a shard of its own")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app->add_flag("--json", arguments.json, "Print JSON");
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  const auto source = open_data(arguments.data, parse_split(arguments.data.split));
  const auto begin = std::chrono::steady_clock::now();
  const PackResult result = pack(*source, arguments);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (result.signal != 0) {
    fmt::print(stderr, "interrupted: nothing was written\n");
    return kExitSignal + result.signal;
  }
  arguments.json ? print_pack_json(*source, arguments, result, seconds.count())
                 : print_pack_text(*source, arguments, result, seconds.count());
  if (result.packed == 0) throw std::runtime_error("no image could be read: nothing was written");
  return result.bad.empty() ? kExitOk : kExitFound;
}

}  // namespace stoker
