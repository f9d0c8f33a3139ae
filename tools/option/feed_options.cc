#include "tools/option/feed_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/store/object_store.h"
#include "staging/stage_stats.h"
#include "staging/threads.h"
#include "tools/console/interrupt.h"
#include "tools/console/progress.h"
#include "tools/option/parser.h"

namespace stoker {
namespace {

const std::map<std::string, Split> kSplits = {
    {"all", Split::all},
    {"train", Split::train},
    {"test", Split::test},
    {"val", Split::test},  // what such folders are called, too
    {"validation", Split::test}};
const std::map<std::string, ExifPolicy> kExifPolicies = {{"ignore", ExifPolicy::ignore},
                                                         {"apply", ExifPolicy::apply}};
const std::map<std::string, PixelPolicy> kPixelPolicies = {
    {"exact", PixelPolicy::exact},
    {"exact-pillow12", PixelPolicy::exact_pillow12},
    {"fast", PixelPolicy::fast}};
const std::map<std::string, OnBadSample> kOnBad = {{"substitute", OnBadSample::substitute},
                                                   {"fail", OnBadSample::fail}};
const std::map<std::string, TextChoice> kTexts = {
    {"first", TextChoice::first}, {"random", TextChoice::random}, {"all", TextChoice::all}};
const std::map<std::string, TooLong> kTooLong = {{"fail", TooLong::fail}, {"cut", TooLong::cut}};

}  // namespace

DecodeOptions DataOptions::decode() const {
  return {.pixels = kPixelPolicies.at(pixels),
          .exif = kExifPolicies.at(exif),
          .max_pixels = max_pixels};
}

OnBadSample DataOptions::on_bad_sample() const { return kOnBad.at(on_bad); }

VaryingOptions DataOptions::varying() const {
  return {
      .max_bytes = max_target_bytes, .texts = kTexts.at(texts), .too_long = kTooLong.at(too_long)};
}

FeedOptions DataOptions::feed() const {
  const std::optional<DecodedCacheOptions> kept = store.decoded();
  return {.memory = memory,
          .workers = workers,
          .io_threads = io_threads,
          .decode = decode(),
          .seek_index = seek_index,
          .cache = kept ? std::make_shared<DecodedCache>(*kept) : nullptr,
          .on_bad_sample = on_bad_sample(),
          .max_bad = max_bad};
}

void add_data_option(CLI::App& app, DataOptions& options) {
  app.add_option(
         "--data", options.data,
         "The data: " + data_forms() +
             ", as a file, a folder, a glob \"train-*.tar\" or \"train-{000..127}.tar\"; on this "
             "machine or in a store, as s3://BUCKET/PREFIX or https://HOST/train-{000..127}.tar")
      ->required();
  add_field_options(app, options);
}

void add_field_options(CLI::App& app, DataOptions& options) {
  app.add_option("--image-from", options.image_from,
                 "Where shards or a list have the image: a column, a TFRecord's key, or a tar "
                 "member's extension (default: the usual one)");
  app.add_option("--label-from", options.label_from,
                 "Where shards or a list have the label: a column or key; in tar shards cls, txt, "
                 "json:FIELD or folder; none if there are no labels (default: the usual one)");
  add_store_options(app, options.store);
}

void add_target_options(CLI::App& app, DataOptions& options) {
  app.add_option("--target-from", options.targets_from,
                 "Where shards or a list have targets besides the label (numbers, or arrays of one "
                 "shape in all samples), several times: a column or key; in tar shards json:FIELD, "
                 "npy or NAME.npy. A suffix such as :float32 says the type; with :int32[] samples "
                 "have lists of different lengths, and with :text texts (in tar shards txt:text, "
                 "or any other extension; in an image folder the file beside each image). They "
                 "stay as they are: boxes do not move with the "
                 "pixels")
      ->allow_extra_args(false)
      ->default_str("");
  app.add_option("--texts", options.texts,
                 "Which of a sample's texts its row has: the first; a random one, which is another "
                 "one in each epoch; or all")
      ->check(CLI::IsMember(&kTexts));
  app.add_option("--max-target-bytes", options.max_target_bytes,
                 "Place in each row for a text, or for a list of numbers")
      ->check(CLI::Range(8, 1 << 24));
  app.add_option("--too-long", options.too_long,
                 "What happens to texts and lists that have more: fail makes a bad sample of it, "
                 "cut takes the characters that have place")
      ->check(CLI::IsMember(&kTooLong));
}

void add_objects_options(CLI::App& app, DataOptions& options) {
  app.add_option(
         "--objects", options.objects,
         "What lies on the pictures: a JSON file as COCO's (boxes, masks, keypoints, panoptic "
         "segments), or a folder with a file for each picture: VOC's XML, YOLO's text, or "
         "label images as PNG. A folder of --data may then have its pictures in any "
         "folders")
      ->default_str("");
  app.add_option("--objects-from", options.objects_from,
                 "Where the records of shards have the objects on their pictures: in tar shards "
                 "json, NAME.json or json:FIELD; in TFRecord files the keys' prefix, image/object; "
                 "in MDS shards a column of JSON, in Parquet files one of structs, or their "
                 "columns, as boxes=bbox,labels=category. A suffix says what a box is: :xywh "
                 "(default), :xyxy or :cxcywh")
      ->default_str("");
  app.add_option("--label-image-from", options.label_image_from,
                 "Where the records of shards have label images (PNG, a class for each pixel): in "
                 "tar shards an extension, as seg.png, else a column or key")
      ->default_str("");
  app.add_option("--picture-from", options.pictures_from,
                 "NAME=FIELD, several times: further pictures of each sample, as its control map, "
                 "where shards or a list have them: in tar shards an extension, as "
                 "control=control.png, else a column or key. With a folder of --data, NAME=PATH of "
                 "another folder with files of the same names. --augment has a list for each: "
                 "pictures(LIST, NAME=LIST)")
      ->allow_extra_args(false)
      ->default_str("");
}

void add_learned_target_option(CLI::App& app, DataOptions& options) {
  app.add_option(
         "--target-from", options.targets_from,
         "Where shards or a list have what a model learns instead of labels: a vector of numbers "
         "from 0 to 1, one for each class, of which several may be 1. A column or key with the "
         "suffix :float32, such as tags:float32; in tar shards json:FIELD, npy or NAME.npy. The "
         "loss is a binary cross-entropy of each output; top-1 is then the share of outputs that "
         "are right, top-5 that of samples with all of theirs")
      ->expected(1)
      ->default_str("");
}

void add_split_option(CLI::App& app, DataOptions& options) {
  app.add_option("--split", options.split,
                 "Part of the data to take. val and validation are other names for test")
      ->check(CLI::IsMember(&kSplits));
}

void add_decode_options(CLI::App& app, DataOptions& options) {
  app.add_option("--exif", options.exif,
                 "Orientation in EXIF data. ignore leaves images as they are stored, as Pillow "
                 "does; apply turns them")
      ->check(CLI::IsMember(&kExifPolicies));
  app.add_option("--pixels", options.pixels,
                 "Exactness of decoded pixels. exact gives the bytes of Pillow 13, exact-pillow12 "
                 "those of Pillow 9 to 12; fast is faster and differs from the latter by about 0.2 "
                 "of 255 grey levels on average (decode/README.md)")
      ->check(CLI::IsMember(&kPixelPolicies));
  app.add_option("--max-pixels", options.max_pixels,
                 "Largest image in pixels; a larger one counts as bad (as in Pillow)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
}

void add_feed_options(CLI::App& app, DataOptions& options) {
  options.store.feeds = true;
  app.add_option("--workers", options.workers,
                 "Threads that decode. -1 takes one per core; with 0 the consumer decodes itself")
      ->check(CLI::Range(-1, 1024));
  app.add_option("--memory", options.memory,
                 "Memory that the feed takes at most, as 2G or 512M: slabs, scratch, pictures on "
                 "the way, files read ahead, a store's window, a cache in memory. A picture that "
                 "needs more waits for others; one that can never have so much is a bad sample "
                 "(default: three quarters of what is free here)")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("");
  app.add_option("--io-threads", options.io_threads,
                 "Threads that read the files that are not in memory")
      ->check(CLI::Range(1, 1024));
  app.add_option("--max-bad", options.max_bad,
                 "Bad samples that an epoch may have: a count, or a share if it is below 1. One "
                 "more ends the run")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seek-index", options.seek_index,
                 "File of seek indexes, with which less of each JPEG is read. auto takes the one "
                 "beside the data (stoker pack makes it) or in the cache directory (stoker index "
                 "makes it; a run of several epochs adds what is not there yet, about 0.3 % of the "
                 "images' bytes); off takes none");
  app.add_option("--on-bad", options.on_bad,
                 "What happens to a bad sample. substitute gives its place to another image with "
                 "weight 0 and lists it; with fail the first one ends the run")
      ->check(CLI::IsMember(&kOnBad));
}

void check_feed_options(const CLI::App& app, const DataOptions& options,
                        const std::vector<std::string>& paths) {
  options.store.check_used(paths);
  if (options.workers == 0) {
    refuse_if_given(app, {"--io-threads"}, "with --workers 0 the consumer reads the files itself");
  }
  if (options.on_bad_sample() == OnBadSample::fail) {
    refuse_if_given(app, {"--max-bad"}, "with --on-bad fail the first bad sample ends the run");
  }
}

void check_seek_index(const DataOptions& options) {
  const std::string& path = options.seek_index;
  if (path == "auto" || path == "off") return;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_regular_file(status)) return;
  throw std::invalid_argument(
      "--seek-index: " + shown_path(path) + ": " +
      (std::filesystem::exists(status) ? "not a regular file" : "no such file"));
}

Split parse_split(const std::string& name) { return kSplits.at(name); }

namespace {

// Prints each note once: a command may open its data several times.
void say_notes(const std::string& path, const Source& source) {
  static std::set<std::string> said;
  for (const SourceNote& note : source.notes()) {
    if (said.insert(path + note.message).second) {
      fmt::print(stderr, "{}: {}\n", shown_path(path), note.message);
    }
  }
}

}  // namespace

namespace {

// Asks to stop on Ctrl-C while an index is made, and draws a bar once that takes a second.
class IndexProgress {
 public:
  bool go_on(int64_t done, int64_t total) {
    if (steady_now_ns() - begin_ns_ > 1'000'000'000) {
      if (!bar_) bar_.emplace(total);
      constexpr double kMb = 1e6;
      bar_->update(
          done, fmt::format("making the index of all samples first, {:.0f} of {:.0f} MB of shards",
                            static_cast<double>(done) / kMb, static_cast<double>(total) / kMb));
    }
    return interrupt_.signal() == 0;
  }
  int signal() const { return interrupt_.signal(); }

 private:
  const int64_t begin_ns_ = steady_now_ns();
  const Interrupt interrupt_{[](void*) {}, nullptr, "\nstopping\n"};
  std::optional<Progress> bar_;
};

std::unique_ptr<Source> open_with_progress(const DataOptions& options, const std::string& path,
                                           Split split) {
  std::optional<IndexProgress> progress;
  const auto go_on = [&](int64_t done, int64_t total) {
    if (!progress) progress.emplace();
    return progress->go_on(done, total);
  };
  std::unique_ptr<Source> source;
  std::exception_ptr error;
  try {
    source = open_source(path, {.split = split,
                                .image_from = options.image_from,
                                .label_from = options.label_from,
                                .targets_from = options.targets_from,
                                .objects = options.objects,
                                .objects_from = options.objects_from,
                                .label_image_from = options.label_image_from,
                                .pictures_from = options.pictures_from,
                                .go_on = go_on,
                                .store = options.store.store_for(path)});
  } catch (...) {
    error = std::current_exception();
  }
  const int signal = progress ? progress->signal() : 0;
  progress.reset();  // restores the handlers: the signal does now what it would have done before
  if (signal != 0) std::raise(signal);
  if (error) std::rethrow_exception(error);
  return source;
}

}  // namespace

std::unique_ptr<Source> open_path(const DataOptions& options, const std::string& path, Split split,
                                  const std::string& option) {
  try {
    std::unique_ptr<Source> source = open_with_progress(options, path, split);
    say_notes(path, *source);
    return source;
  } catch (const InvalidField&) {
    throw;  // another option
  } catch (const NoThread&) {
    throw;  // the machine, and not the data
  } catch (const StoreError&) {
    throw;  // a server or the right to ask it, which another try may find mended
  } catch (const std::logic_error& error) {
    throw std::invalid_argument(option + ": " + error.what());
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(option + ": " + error.what());
  }
}

std::unique_ptr<Source> open_data(const DataOptions& options, Split split) {
  options.store.check_used({options.data});
  return open_path(options, options.data, split, "--data");
}

std::unique_ptr<Source> open_eval_data(const DataOptions& options, const std::string& path,
                                       const std::string& option) {
  bool parts = false;
  try {
    parts = has_parts(path, options.store.store());
  } catch (const StoreError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(option + ": " + error.what());
  }
  return open_path(options, path, parts ? Split::test : Split::all, option);
}

std::unique_ptr<Source> open_test_part(const DataOptions& options, const std::string& path,
                                       std::string& problem) {
  try {
    return open_with_progress(options, path, Split::test);
  } catch (const NoThread&) {
    throw;
  } catch (const std::runtime_error& error) {
    problem = error.what();
    return nullptr;
  }
}

}  // namespace stoker
