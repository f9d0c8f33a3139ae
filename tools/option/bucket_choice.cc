#include "tools/option/bucket_choice.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "pipeline/source/picture_sizes.h"
#include "staging/stage_stats.h"
#include "tools/console/progress.h"
#include "tools/option/parser.h"

namespace stoker {
namespace {

// Reads a whole number at the beginning of the text, and takes it off.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// "896x1152": width x height.
std::optional<Size> read_size(std::string_view text) {
  const std::optional<int> width = take_number(text);
  if (!width || !text.starts_with('x')) return {};
  text.remove_prefix(1);
  const std::optional<int> height = take_number(text);
  if (!height || !text.empty()) return {};
  return Size{*width, *height};
}

}  // namespace

Size largest_of(const std::vector<Size>& sizes) {
  return *std::max_element(sizes.begin(), sizes.end(), [](Size a, Size b) {
    return int64_t{a.width} * a.height < int64_t{b.width} * b.height;
  });
}

BucketOptions BucketChoice::options() const {
  BucketOptions options{.enlarge = !no_enlarge};
  std::string_view text = buckets;
  if (const std::optional<int> side = take_number(text); side && text.empty()) {
    options.sizes = aspect_sizes(int64_t{*side} * *side, step, ratio);
    return options;
  }
  if (is_step_given) options.multiple_of = step;
  for (const std::string& each : CLI::detail::split(buckets, ',')) {
    const std::optional<Size> size = read_size(each);
    if (!size) {
      throw std::invalid_argument(
          fmt::format("--buckets: {} is no list of sizes, as 1024x1024,896x1152 (width x height), "
                      "and no side of a square, as 1024",
                      buckets));
    }
    options.sizes.push_back(*size);
  }
  return options;
}

SharedBuckets BucketChoice::of(const Source& source, const DecodeOptions& decode) const {
  const int64_t begin_ns = steady_now_ns();
  std::optional<Progress> bar;
  const std::vector<Size> sizes =
      picture_sizes(source, {.decode = decode, .go_on = [&](int64_t done, int64_t total) {
                               if (steady_now_ns() - begin_ns > 1'000'000'000) {
                                 if (!bar) bar.emplace(total);
                                 bar->update(done, "reading the sizes of the pictures");
                               }
                               return true;
                             }});
  bar.reset();
  return std::make_shared<const AspectBuckets>(sizes, options());
}

void add_bucket_choice(CLI::App& app, BucketChoice& choice) {
  app.add_option("--buckets", choice.buckets,
                 "Aspect buckets: sizes, as 1024x1024,896x1152,1152x896 (width x height), or the "
                 "side of a square, as 1024: all sizes of about its area. Each picture goes to the "
                 "one that crops least of it")
      ->default_str("");
  app.add_option("--bucket-step", choice.step,
                 "Both sides of a bucket are multiples of so many pixels (of a list: default any)")
      ->check(CLI::Range(1, 1 << 14));
  app.add_option("--bucket-ratio", choice.ratio,
                 "Most that the longer side of a bucket is of the shorter one, with the side of a "
                 "square")
      ->check(CLI::Range(1.0, 100.0));
  app.add_flag("--no-enlarge", choice.no_enlarge,
               "Leave pictures out that are smaller than every bucket");
}

void check_bucket_choice(const CLI::App& app, BucketChoice& choice) {
  choice.is_step_given = is_given(app, "--bucket-step");
  if (!choice.is_wanted()) {
    refuse_if_given(app, {"--bucket-step", "--bucket-ratio", "--no-enlarge"},
                    "it is for --buckets");
  }
}

}  // namespace stoker
