// Targets that vary, from a source into a batch: UTF-8, the choice of a text, dropped ones, bounds,
// the packed form, and rows of any threads, processes and states.
#include "pipeline/row/varying_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "pipeline/exchange/remote_filler.h"
#include "pipeline/exchange/remote_rows.h"
#include "pipeline/files/digest.h"
#include "pipeline/files/utf8.h"
#include "pipeline/row/packed_values.h"
#include "pipeline/source/forwarding_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

// ---- UTF-8

// The rule as code points: decodes a sequence and asks whether this is how it is written.
size_t plain_invalid(const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : 4;
    if (first >= 0x80 && first < 0xc0) return at;
    if (first >= 0xf8 || at + length > text.size()) return at;
    uint32_t point = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      if (byte >> 6 != 2) return at;
      point = point << 6 | (byte & 63);
    }
    const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return at;
    at += length;
  }
  return at;
}

TEST(Utf8, IsThatOfAPlainTwin) {
  std::mt19937 random(7);
  const std::string parts[] = {"a",
                               "word of ASCII",
                               "\xc3\xa9",
                               "\xe2\x82\xac",
                               "\xf0\x9f\x90\xb6",
                               "\xc0\x80",
                               "\xed\xa0\x80",
                               "\xf4\x90\x80\x80",
                               "\xff",
                               "\x80",
                               "\xe2\x82",
                               "\xed\x9f\xbf",
                               "\xef\xbf\xbf",
                               "\xf0\x8f\xbf\xbf"};
  int valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    const auto count = random() % 6;
    for (size_t k = 0; k < count; ++k) {
      text += parts[random() % (random() % 3 == 0 ? std::size(parts) : 5)];
    }
    if (random() % 4 == 0 && !text.empty()) text[random() % text.size()] ^= 1 << random() % 8;
    const size_t expected = plain_invalid(text);
    ASSERT_EQ(find_invalid_utf8(text), expected) << i;
    valid += expected == text.size();
    if (expected < text.size()) continue;
    for (size_t bytes = 0; bytes <= text.size(); ++bytes) {
      const std::string_view prefix = utf8_prefix(text, bytes);
      ASSERT_EQ(plain_invalid(std::string(prefix)), prefix.size());
      ASSERT_TRUE(prefix.size() <= bytes && bytes - prefix.size() < 4);
    }
  }
  EXPECT_GT(valid, 5'000);
  EXPECT_LT(valid, 15'000);
}

// ---- A source

constexpr int64_t kTextSamples = 41;

// Pictures with a caption or several, and with tokens.
class TextSource final : public ForwardingSource {
 public:
  explicit TextSource(const Source& pictures) : ForwardingSource(pictures), info_(pictures.info()) {
    info_.targets = {{"caption", TargetType::text, {}, true},
                     {"size", TargetType::int32, {}},
                     {"tokens", TargetType::int64, {}, true}};
    info_.targets_digest = 7;
    for (SampleId id = 0; id < info_.size; ++id) {
      std::string texts;
      for (int64_t i = 0; i <= id % 3; ++i) texts += caption(id, i) + "\0"s;
      captions[id] = texts;
      for (int64_t i = 0; i < id % 5; ++i) tokens[id].push_back(100 * id + i);
    }
  }
  static std::string caption(SampleId id, int64_t number) {
    return "caption " + std::to_string(number) + " of " + std::to_string(id) + " \xc3\xa9";
  }
  const SourceInfo& info() const override { return info_; }
  void read_targets(SampleId id, std::span<const uint8_t>, SampleTargets& out) const override {
    out.label = label(id);
    const auto number = static_cast<int32_t>(id);
    std::memcpy(out.columns[1], &number, sizeof number);
    out.varying[0] = std::as_bytes(std::span(captions.at(id)));
    const auto found = tokens.find(id);
    out.varying[2] = found == tokens.end() ? std::span<const std::byte>{}
                                           : std::as_bytes(std::span(found->second));
    if (missing.contains(id)) out.problem = "target 'caption' is null, and no text";
  }

  std::map<SampleId, std::string> captions;
  std::map<SampleId, std::vector<int64_t>> tokens;
  std::set<SampleId> missing;

 private:
  SourceInfo info_;
};

struct TextRow {
  SampleId id = 0;
  std::string text;
  std::vector<int64_t> tokens;
  int32_t size = 0;
  bool bad = false;
  uint64_t digest = 0;
  bool operator==(const TextRow&) const = default;
};

std::vector<TextRow> varying_rows_of(const DeviceBatch& batch,
                                     const std::vector<TargetColumn>& columns, Stream& stream) {
  const PackedValues texts = packed_values(batch, columns, 0),
                     tokens = packed_values(batch, columns, 2);
  std::vector<int32_t> sizes(static_cast<size_t>(batch.shape().rows));
  stream.copy(sizes.data(), batch.target(1), sizes.size() * sizeof(int32_t),
              CopyKind::device_to_host);
  stream.synchronize();
  EXPECT_EQ(texts.offsets[0], 0);
  std::vector<TextRow> rows;
  for (size_t row = 0; row < sizes.size(); ++row) {
    const char* const bytes = reinterpret_cast<const char*>(texts.values);
    const auto* const numbers = reinterpret_cast<const int64_t*>(tokens.values);
    const RowNote& note = row_notes(batch)[row];
    rows.push_back({batch.ids()[row],
                    {bytes + texts.offsets[row], bytes + texts.offsets[row + 1]},
                    {numbers + tokens.offsets[row], numbers + tokens.offsets[row + 1]},
                    sizes[row],
                    note.bad,
                    note.digest});
  }
  return rows;
}

std::vector<TextRow> all_rows(Feed& feed) {
  std::vector<TextRow> all;
  Delivered batch;
  while (feed.next(0, batch, [&](const DeviceBatch& leased) {
    const auto rows = varying_rows_of(leased, feed.loader().targets(), feed.stream(0));
    all.insert(all.end(), rows.begin(), rows.end());
  })) {
  }
  return all;
}

LoaderOptions text_options(int workers = 1, VaryingOptions varying = {.max_bytes = 64}) {
  LoaderOptions options{.batch_size = 8,
                        .seed = 3,
                        .last_batch = LastBatch::drop,
                        .epochs = 2,
                        .feed = {.workers = workers, .max_bad = 0.5},
                        .varying = varying};
  return options;
}

class TextsTest : public ::testing::Test {
 protected:
  std::vector<TextRow> rows(const LoaderOptions& options, const AugmentSpec& spec = crop_spec()) {
    Feed feed(source_, spec, options);
    return all_rows(feed);
  }
  const std::unique_ptr<FakeSource> pictures_ = half_cached_source(kTextSamples);
  TextSource source_{*pictures_};
};

TEST_F(TextsTest, EveryRowHasThoseOfItsSample) {
  std::vector<TextRow> first;
  for (const DeviceKind kind : {DeviceKind::host, DeviceKind::nasty, DeviceKind::far}) {
    for (const int workers : {0, 1, 3}) {
      Feed feed(source_, crop_spec(), text_options(workers), 1, kind);
      const std::vector<TextRow> rows = all_rows(feed);
      ASSERT_EQ(rows.size(), 80U);
      for (const TextRow& row : rows) {
        ASSERT_EQ(row.text, TextSource::caption(row.id, 0));
        ASSERT_EQ(row.tokens, source_.tokens[row.id]);
        ASSERT_EQ(row.size, row.id);
      }
      if (first.empty()) first = rows;
      EXPECT_EQ(rows, first);
    }
  }
}

TEST_F(TextsTest, RowsOfOneSampleAndPairsAreTheSame) {
  LoaderOptions options = text_options();
  options.digests = true;
  const auto alone = rows(options);
  const auto mixed = rows(options, AugmentSpec("random_resized_crop | mix(mixup=0.4)", {24, 24}));
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].text, mixed[i].text);
    EXPECT_EQ(alone[i].tokens, mixed[i].tokens);
  }
}

TEST_F(TextsTest, ARandomTextIsDrawnForEachSampleAndEpoch) {
  const VaryingOptions varying{.max_bytes = 64, .texts = TextChoice::random};
  const auto drawn = rows(text_options(2, varying));
  EXPECT_EQ(drawn, rows(text_options(0, varying)));
  std::map<SampleId, std::set<std::string>> seen;
  std::map<std::string, int> numbers;
  for (const TextRow& row : drawn) {
    seen[row.id].insert(row.text);
    ++numbers[row.text.substr(0, 9)];
    EXPECT_THAT(source_.captions[row.id], HasSubstr(row.text));
  }
  const auto differs = [](const auto& each) { return each.second.size() > 1; };
  EXPECT_GT(std::ranges::count_if(seen, differs), 5);
  EXPECT_EQ(numbers.size(), 3U);
  LoaderOptions other = text_options(1, varying);
  other.seed = 4;
  std::map<SampleId, std::set<std::string>> again;
  for (const TextRow& row : rows(other)) again[row.id].insert(row.text);
  EXPECT_NE(seen, again);
}

TEST_F(TextsTest, AllTextsAreEndedByNul) {
  for (const TextRow& row : rows(text_options(1, {.max_bytes = 128, .texts = TextChoice::all}))) {
    EXPECT_EQ(row.text, source_.captions[row.id]);
  }
}

TEST_F(TextsTest, DroppedTextsAreEmptyAndThePixelsStay) {
  LoaderOptions options = text_options();
  options.digests = true;
  const auto whole = rows(options);
  const std::string list = crop_spec().stages_text();
  const auto dropped = rows(options, AugmentSpec(list + " | drop_text(0.4)", {24, 24}));
  ASSERT_EQ(dropped.size(), whole.size());
  int empty = 0;
  std::map<SampleId, std::set<bool>> seen;
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(dropped[i].tokens, whole[i].tokens);
    EXPECT_TRUE(dropped[i].text.empty() || dropped[i].text == whole[i].text);
    EXPECT_EQ(dropped[i].text.empty(), dropped[i].digest != whole[i].digest);
    empty += dropped[i].text.empty();
    seen[whole[i].id].insert(dropped[i].text.empty());
  }
  EXPECT_NEAR(empty, 32, 12);
  EXPECT_GT(std::ranges::count_if(seen, [](auto& each) { return each.second.size() == 2; }), 5);
  // Where it stands makes no difference.
  EXPECT_EQ(rows(options, AugmentSpec("drop_text(0.4) | " + list, {24, 24})), dropped);
  for (const TextRow& row : rows(options, AugmentSpec(list + " | drop_text(1)", {24, 24}))) {
    EXPECT_EQ(row.text, "");
  }
}

TEST_F(TextsTest, WhatIsDamagedOrTooLongIsABadSample) {
  source_.captions[4] = "good until \xff here\0"s;
  source_.captions[5] = "";
  source_.captions[6] = std::string(65, 'x') + "\0"s;
  source_.captions[7] = std::string(64, 'x') + "\0"s;
  source_.tokens[8] = std::vector<int64_t>(9, 1);
  source_.tokens[9] = std::vector<int64_t>(8, 1);
  source_.missing = {10};
  const TempFolder folder;
  for (const int workers : {0, 2}) {
    LoaderOptions options = text_options(workers);
    options.quarantine_file = folder.path() + "/bad" + std::to_string(workers);
    options.epochs = 1;
    options.last_batch = LastBatch::pad;
    std::map<SampleId, TextRow> found;
    for (const TextRow& row : rows(options)) found[row.id] = row;
    for (const SampleId id : {4, 5, 6, 8, 10}) {
      EXPECT_TRUE(found[id].bad) << id;
      EXPECT_EQ(found[id].text, "");
      EXPECT_THAT(found[id].tokens, ElementsAre());
    }
    EXPECT_EQ(found[7].text, std::string(64, 'x'));
    EXPECT_EQ(found[9].tokens.size(), 8U);
    std::ifstream file(options.quarantine_file);
    const std::string lines{std::istreambuf_iterator<char>(file), {}};
    for (const char* part :
         {"fake/4", "target 'caption' is no UTF-8 at byte 11 of 18", "target 'caption' has no text",
          "target 'caption' has 65 bytes, a row has max_bytes=64 of them",
          "target 'tokens' has 72 bytes, a row has max_bytes=64 of them",
          "target 'caption' is null, and no text"}) {
      EXPECT_THAT(lines, HasSubstr(part));
    }
    EXPECT_EQ(std::ranges::count(lines, '\n'), 5);
  }
}

TEST_F(TextsTest, LongOnesAreCutBehindACharacter) {
  source_.captions[4] =
      "1234567\xe2\x82\xac"
      "9\0"s;
  source_.tokens[4] = {1, 2};
  std::map<SampleId, TextRow> found;
  const VaryingOptions first{.max_bytes = 9, .too_long = TooLong::cut};
  for (const TextRow& row : rows(text_options(1, first))) found[row.id] = row;
  EXPECT_EQ(found[4].text, "1234567");
  EXPECT_THAT(found[4].tokens, ElementsAre(1));
  EXPECT_EQ(found[7].text, "caption 0");
  source_.captions[4] =
      "12\0"
      "345\0"
      "6\xc3\xa9\0"s;
  source_.captions[5] =
      "12\0"
      "34567\0"
      "8\0"s;
  VaryingOptions all{.max_bytes = 9, .texts = TextChoice::all, .too_long = TooLong::cut};
  for (const TextRow& row : rows(text_options(1, all))) found[row.id] = row;
  EXPECT_EQ(found[4].text,
            "12\0"
            "345\0"
            "6\0"s);
  EXPECT_EQ(found[5].text,
            "12\0"
            "34567\0"s);
}

TEST_F(TextsTest, AFeedGoesOnAnywhere) {
  const LoaderOptions options = text_options(2, {.max_bytes = 64, .texts = TextChoice::random});
  const AugmentSpec spec("random_resized_crop | drop_text(0.3)", {24, 24});
  const auto whole = rows(options, spec);
  for (const Step step : {1, 5, 7}) {
    LoaderOptions rest = options;
    rest.first_step = step;
    const auto expected = std::vector(whole.begin() + step * 8, whole.end());
    EXPECT_EQ(rows(rest, spec), expected);
  }
}

TEST_F(TextsTest, RowsThatOthersFillAreTheSame) {
  source_.captions[4] = "\xff\0"s;
  LoaderOptions options = text_options(0, {.max_bytes = 64, .texts = TextChoice::random});
  options.digests = true;
  const auto expected = rows(options);
  options.remote_rows = true;
  Feed feed(source_, crop_spec(), options);
  const std::shared_ptr<RemoteRows> remote = feed.loader().remote_rows();
  RemoteFiller filler(source_, crop_spec(), options, {.threads = 2, .devices = 1, .edits = {}});
  std::thread carrier([&] {
    while (!remote->ended()) {
      const auto claim = remote->claim(1, 20);
      if (!claim) continue;
      std::vector<std::byte> message(filler.message_bytes(claim->range.rows));
      const auto bad = filler.fill(claim->range, message);
      remote->deliver(*claim, message, bad);
    }
  });
  const auto carried = all_rows(feed);
  feed.loader().stop();
  carrier.join();
  EXPECT_EQ(carried, expected);
}

TEST_F(TextsTest, ProcessesShareThem) {
  LoaderOptions options = text_options();
  const auto expected = rows(options);
  options.share = {.name = "texts-" + std::to_string(getpid()), .steps = 3};
  Feed one(source_, crop_spec(), options), two(source_, crop_spec(), options);
  std::vector<TextRow> first;
  std::thread other([&] { first = all_rows(one); });
  const auto second = all_rows(two);
  other.join();
  EXPECT_EQ(first, expected);
  EXPECT_EQ(second, expected);
}

TEST_F(TextsTest, AStateBelongsToTheOptions) {
  const auto fingerprint = [&](VaryingOptions varying) {
    Feed feed(source_, crop_spec(), text_options(0, varying));
    return feed.loader().fingerprint();
  };
  const uint64_t own = fingerprint({.max_bytes = 64});
  EXPECT_EQ(fingerprint({.max_bytes = 64}), own);
  EXPECT_NE(fingerprint({.max_bytes = 72}), own);
  EXPECT_NE(fingerprint({.max_bytes = 64, .texts = TextChoice::random}), own);
  EXPECT_NE(fingerprint({.max_bytes = 64, .too_long = TooLong::cut}), own);
  // Where nothing varies, they change nothing.
  const auto bare = [&](int max_bytes) {
    Feed feed(*pictures_, crop_spec(), text_options(0, {.max_bytes = max_bytes}));
    return feed.loader().fingerprint();
  };
  EXPECT_EQ(bare(64), bare(2048));
}

TEST_F(TextsTest, TheMemoryPlanHasThem) {
  Feed with(source_, crop_spec(), text_options()), without(*pictures_, crop_spec(), text_options());
  // Four slabs: two columns of 8 rows of 64 bytes, two of offsets, and one of numbers, aligned.
  EXPECT_EQ(with.loader().memory_plan().ring_bytes,
            without.loader().memory_plan().ring_bytes + 4 * (2 * 512 + 3 * 256));
}

TEST_F(TextsTest, WhatCannotBeIsRefused) {
  const auto refusal = [&](const AugmentSpec& spec, const VaryingOptions& varying,
                           int batch_size = 8) {
    LoaderOptions options = text_options(0, varying);
    options.batch_size = batch_size;
    return message_of([&] { Feed(source_, spec, options); });
  };
  EXPECT_THAT(refusal(crop_spec(), {.max_bytes = 7}),
              HasSubstr("varying.max_bytes is 7, must be 8 to 16777216"));
  EXPECT_THAT(refusal(crop_spec(), {.max_bytes = 1 << 24}, 128),
              HasSubstr("a batch of 128 rows has 2^31 bytes or more"));
  EXPECT_THAT(refusal(AugmentSpec("random_apply(drop_text) | resize_center_crop", {24, 24}), {}),
              HasSubstr("drop_text stands inside of another stage"));
  EXPECT_THAT(
      refusal(AugmentSpec("views(resize_center_crop, resize_center_crop | drop_text)", {24, 24}),
              {}),
      HasSubstr("drop_text stands inside of another stage"));
  EXPECT_THAT(
      message_of([&] {
        Feed(*pictures_, AugmentSpec("random_resized_crop | drop_text", {24, 24}), text_options());
      }),
      HasSubstr("drop_text, but the samples have no texts"));
}

TEST(PaddedValues, AreFilledUpToAMultiple) {
  const int32_t offsets[] = {0, 2, 2, 5};
  const int16_t values[] = {1, 2, 3, 4, 5};
  const int16_t fill = -1;
  const PackedValues packed{offsets, reinterpret_cast<const std::byte*>(values)};
  const auto padded = [&](int64_t multiple, int64_t& places) {
    const auto bytes = padded_values(packed, std::as_bytes(std::span(&fill, 1)), multiple, places);
    std::vector<int16_t> numbers(bytes.size() / sizeof(int16_t));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  };
  int64_t places = 0;
  EXPECT_THAT(padded(1, places), ElementsAre(1, 2, -1, -1, -1, -1, 3, 4, 5));
  EXPECT_EQ(places, 3);
  EXPECT_THAT(padded(4, places), ElementsAre(1, 2, -1, -1, -1, -1, -1, -1, 3, 4, 5, -1));
  EXPECT_EQ(places, 4);
  const int32_t nothing[] = {0, 0};
  EXPECT_EQ(padded_values({nothing, nullptr}, std::as_bytes(std::span(&fill, 1)), 8, places).size(),
            0U);
}

}  // namespace
}  // namespace stoker::testing
