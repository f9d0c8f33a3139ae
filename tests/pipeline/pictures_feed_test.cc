// Samples of several pictures: what their lists draw, and the rows that a feed makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/row/sample_reader.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/pictures_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/pipeline/loader_support.h"
#include "tests/pipeline/painted_source.h"
#include "tests/support/cache_folder.h"
#include "tests/support/plain_steps.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Random parts of each picture, and what both have in common.
constexpr char kAlike[] =
    "pictures(same(random_crop(24) | flip), control=same(random_crop(24) | flip))";
constexpr char kMixedLists[] =
    "pictures(same(random_crop(24) | flip) | color_jitter(0.4), "
    "control=rotate(20) | same(random_crop(24) | flip) | vertical_flip)";
constexpr char kApart[] = "pictures(random_crop(24) | flip, control=random_crop(24) | flip)";

std::shared_ptr<const Source> borrowed(const Source& source) {
  return {&source, [](const Source*) {}};
}

PicturesSource pair_of(const Source& source, const Source& other,
                       const std::string& name = "control") {
  return PicturesSource(borrowed(source), {{name, borrowed(other)}});
}

std::vector<uint8_t> ppm_file(Size size, uint8_t grey) {
  return picture_of(
      {.size = [=](int64_t) { return size; },
       .objects =
           [=](int64_t) {
             return std::vector<PaintedObject>{{{0, 0, size.width, size.height}, grey}};
           }},
      0);
}

// The pictures of a source, in their sizes, with other pixels.
FakeSource controls() { return pictures({.is_noisy = true}); }

struct PairRows {
  std::vector<uint8_t> own, other;
};

// The rows of the feed's samples, by id: the own picture's, and those of the first column.
std::vector<PairRows> rows_of(const Source& source, const AugmentSpec& spec, LoaderOptions options,
                              std::vector<RowNote>* notes = nullptr) {
  options.shuffle = false;
  Feed feed(source, spec, options);
  std::vector<PairRows> rows;
  Delivered batch;
  while (feed.next(0, batch, [&](const DeviceBatch& device) {
    const auto column = static_cast<size_t>(feed.loader().targets().at(0).bytes());
    const auto own = size_t{3} * static_cast<size_t>(spec.output.width * spec.output.height);
    for (size_t row = 0; row < static_cast<size_t>(device.shape().rows); ++row) {
      const auto* first = device.images() + own * row;
      const auto* second = reinterpret_cast<const uint8_t*>(device.target(0)) + column * row;
      rows.push_back({{first, first + own}, {second, second + column}});
      if (notes) notes->push_back(row_notes(device)[row]);
    }
  })) {
  }
  return rows;
}

LoaderOptions quiet_options(int workers = 0) {
  LoaderOptions options{.batch_size = 5, .digests = true};
  options.last_batch = LastBatch::drop;
  options.feed.workers = workers;
  options.feed.max_bad = 1000;
  return options;
}

TEST(Pictures, AreWrittenAndReadBack) {
  const AugmentSpec spec(kMixedLists);
  EXPECT_EQ(spec.stages_text(),
            "pictures(same(random_crop(24) | flip) | color_jitter(brightness=0.4), "
            "control=rotate(20) | same(random_crop(24) | flip) | vertical_flip)");
  EXPECT_EQ(AugmentSpec(spec.stages_text()).describe(), spec.describe());
  EXPECT_EQ(spec.views(), 2);
  EXPECT_EQ(spec.own_views(), 1);
  EXPECT_EQ(spec.more_views.at(0).picture, "control");
  EXPECT_EQ(AugmentSpec("pictures(resize((8, 9)), left=resize((4, 6)), right=center_crop(3))")
                .view(1)
                .output,
            (Size{6, 4}));
  EXPECT_EQ(AugmentSpec("pictures(flip, a=invert)", {5, 5}).view(1).output, (Size{5, 5}));
}

TEST(Pictures, AreRefusedWithAReason) {
  const auto problem = [](const std::string& text) {
    return problem_of([&] { AugmentSpec spec(text); });
  };
  EXPECT_THAT(problem("pictures(resize((8, 8)))"), HasSubstr("1 lists, must be 2 to 8"));
  EXPECT_THAT(problem("pictures(a=resize((8, 8)), resize((8, 8)))"),
              HasSubstr("own picture comes first, without a name"));
  EXPECT_THAT(problem("pictures(resize((8, 8)), image=resize((8, 8)))"),
              HasSubstr("own picture comes first, without a name"));
  EXPECT_THAT(problem("pictures(resize((8, 8)), a=flip, a=flip)"), HasSubstr("a is given twice"));
  EXPECT_THAT(problem("pictures(resize((8, 8)), flip)"),
              HasSubstr("a list without a name is given twice"));
  EXPECT_THAT(problem("pictures(resize((8, 8)), a=3)"),
              HasSubstr("a list of stages is missing: pictures(LIST, a=LIST)"));
  EXPECT_THAT(problem("flip | pictures(flip, a=flip)"), HasSubstr("pictures must stand alone"));
  EXPECT_THAT(problem("pictures(flip, a=views(flip, flip))"), HasSubstr("views must stand alone"));
  EXPECT_THAT(problem("pictures(resize((8, 8)), a=mix(mixup=0.2))"), HasSubstr("mix"));
  EXPECT_THAT(problem("pictures(mosaic(8), a=resize((8, 8)))"),
              HasSubstr("neither mix nor views nor pictures"));
  EXPECT_THAT(problem("pictures(resize((8, 8)), a=mosaic(8))"),
              HasSubstr("neither mix nor views nor pictures"));
  EXPECT_THAT(problem("same(random_crop(8)) | flip"),
              HasSubstr("same(random_crop(8)) stands in a list of pictures(...)"));
  EXPECT_THAT(problem("views(same(random_crop(8)), random_crop(8))"),
              HasSubstr("it cannot stand inside views"));
  EXPECT_THAT(problem("pictures(random_apply(same(flip)) | resize((8, 8)), a=same(flip))"),
              HasSubstr("it cannot stand inside random_apply"));
  EXPECT_THAT(problem("pictures(same(random_crop(8)), a=random_crop(8))"),
              HasSubstr("is in one list of pictures(...) alone"));
  EXPECT_THAT(problem("pictures(same(random_crop(8)), a=same(random_crop(8) | flip))"),
              HasSubstr("there are 'same(random_crop(8))' and 'same(random_crop(8) | flip)'"));
  EXPECT_THAT(problem("pictures(same(flip) | same(random_crop(8)), a=same(random_crop(8)) | "
                      "same(flip))"),
              HasSubstr("must be the same in all lists that have it"));
}

// Whatever else stands in the lists: same(...) draws alike, and nothing else does.
TEST(Pictures, DrawTheSameInsideOfSameAlone) {
  const AugmentSpec spec(
      "pictures(same(random_crop(24) | rotate(30)) | flip, a=random_crop((50, 60)) | rotate(10) | "
      "flip | same(random_crop(24) | rotate(30)) | vertical_flip)");
  const auto shared = [](const Draws& draws) {
    const auto crop = std::ranges::find(draws.steps(), Size{24, 24}, &PixelStep::size);
    return steps_text({crop, crop + 2});
  };
  Draws own, other;
  int alike = 0;
  std::set<std::string> drawn;
  for (int64_t sample = 0; sample < 200; ++sample) {
    draw_augmentation(spec, {60, 50}, 1, 2, sample, own);
    draw_augmentation(spec, {60, 50}, 1, 2, sample, other, 1);
    drawn.insert(shared(own));
    EXPECT_EQ(shared(own), shared(other));
    EXPECT_TRUE(std::ranges::equal(own.shared_sizes(), other.shared_sizes()));
    alike += is_mirrored(own) == is_mirrored(other);
  }
  EXPECT_GT(drawn.size(), 190u);
  EXPECT_GT(alike, 60);
  EXPECT_LT(alike, 140);
}

// A second same(...) draws other numbers, and so does what stands outside.
TEST(Pictures, DrawEachSameForItself) {
  for (const char* text : {"pictures(same(flip) | same(flip), a=same(flip) | same(flip))",
                           "pictures(flip | same(flip), a=same(flip))"}) {
    const AugmentSpec spec(text, {8, 8});
    Draws draws;
    int once = 0;
    for (int64_t sample = 0; sample < 200; ++sample) {
      draw_augmentation(spec, {8, 8}, 1, 2, sample, draws);
      once += draws.steps().size() == 1;
    }
    EXPECT_GT(once, 60) << text;
    EXPECT_LT(once, 140) << text;
  }
}

// The own picture's row is that of its list alone.
TEST(Pictures, TheOwnOneIsDrawnAsWithoutOthers) {
  const AugmentSpec pair(kApart), alone("random_crop(24) | flip");
  Draws one, other;
  for (int64_t sample = 0; sample < 20; ++sample) {
    draw_augmentation(pair, {60, 50}, 1, 2, sample, one);
    draw_augmentation(alone, {60, 50}, 1, 2, sample, other);
    EXPECT_EQ(steps_text(one.steps()), steps_text(other.steps()));
    EXPECT_EQ(needed_box(pair, {60, 50}, 1, 2, sample, one),
              needed_box(alone, {60, 50}, 1, 2, sample, other));
  }
}

TEST(Pictures, OfOnePictureAreEqualUnderSameAndNotWithout) {
  const auto source = half_cached_source();
  const PicturesSource twice = pair_of(*source, *source);
  const std::vector<PairRows> alike = rows_of(twice, AugmentSpec(kAlike), quiet_options());
  ASSERT_EQ(alike.size(), 40u);
  for (const PairRows& rows : alike) EXPECT_EQ(rows.own, rows.other);
  int equal = 0;
  for (const PairRows& rows : rows_of(twice, AugmentSpec(kApart), quiet_options())) {
    equal += rows.own == rows.other;
  }
  EXPECT_LT(equal, 5);
}

// Each picture's row is what its list draws for it, made in the plain way.
TEST(Pictures, AreTheStepsOfTheirListsInThePlainWay) {
  const FakeSource images = pictures(), others = controls();
  const PicturesSource source = pair_of(images, others);
  const AugmentSpec spec(kMixedLists);
  LoaderOptions options = quiet_options(2);
  options.seed = 9;
  std::vector<RowNote> notes;
  const std::vector<PairRows> rows = rows_of(source, spec, options, &notes);
  ASSERT_EQ(rows.size(), 20u);
  for (SampleId id = 0; id < std::ssize(rows); ++id) {
    const Size size = size_of(id);
    for (const int view : {0, 1}) {
      std::vector<uint8_t> file = picture_of({.is_noisy = view == 1}, id);
      file.erase(file.begin(), file.end() - 3 * size.width * size.height);
      Draws draws;
      draw_row(spec, 9, 0, notes[static_cast<size_t>(id)], draws, view);
      EXPECT_EQ(draws.source(), size);
      const PairRows& row = rows[static_cast<size_t>(id)];
      EXPECT_EQ(view == 0 ? row.own : row.other, plain_steps(draws, file, PixelPolicy::exact))
          << id << " " << view;
    }
  }
}

std::vector<std::byte> bytes_of_feed(const Source& source, const AugmentSpec& spec,
                                     const LoaderOptions& options) {
  Feed feed(source, spec, options);
  return all_bytes(feed);
}

TEST(Pictures, AreTheSameForAnyThreads) {
  const auto files = half_cached_source(41), faulty = faulty_source(41);
  const auto raw = make_synthetic_source(41, {40, 30}, 10, 3);
  const std::vector<std::pair<const Source*, const Source*>> pairs = {
      {files.get(), files.get()}, {faulty.get(), files.get()}, {files.get(), faulty.get()},
      {raw.get(), raw.get()},     {raw.get(), files.get()},    {files.get(), raw.get()}};
  const AugmentSpec spec("pictures(random_crop(16) | flip, control=random_crop((12, 14)) | flip)");
  for (const auto& [own, other] : pairs) {
    const PicturesSource source = pair_of(*own, *other);
    LoaderOptions options = quiet_options();
    options.epochs = 2;
    const std::vector<std::byte> expected = bytes_of_feed(source, spec, options);
    for (const int workers : {1, 3}) {
      for (const int io_threads : {0, 2}) {
        options.feed.workers = workers;
        options.feed.io_threads = io_threads;
        EXPECT_EQ(bytes_of_feed(source, spec, options), expected) << workers << " " << io_threads;
      }
    }
    options.first_step = 3;
    const std::vector<std::byte> resumed = bytes_of_feed(source, spec, options);
    ASSERT_LT(resumed.size(), expected.size());
    EXPECT_TRUE(std::equal(resumed.rbegin(), resumed.rend(), expected.rbegin()));
  }
}

TEST(Pictures, TravelUnderTheirNames) {
  const auto files = jpeg_source(12);
  const PicturesSource source = pair_of(*files, *files);
  const AugmentSpec spec("pictures(resize((8, 9)), control=resize((4, 6)))");
  LoaderOptions options{.batch_size = 6, .feed = {.workers = 0}};
  EXPECT_EQ(Feed(source, spec, options).loader().targets().at(0).describe(),
            "'control': uint8 (4, 6, 3)");
  options.format = {.type = PixelType::fp32, .order = PixelOrder::nchw};
  EXPECT_EQ(Feed(source, spec, options).loader().targets().at(0).describe(),
            "'control': float32 (3, 4, 6)");
}

// A digest is of all pictures, and a feed's fingerprint knows them.
TEST(Pictures, AreInDigestsAndFingerprints) {
  const FakeSource images = pictures(), others = controls();
  const PicturesSource pair = pair_of(images, others), twice = pair_of(images, images);
  const AugmentSpec spec(kApart);
  const LoaderOptions options = quiet_options();
  Feed one(pair, spec, options), other(twice, spec, options);
  Delivered first, second;
  ASSERT_TRUE(one.next(first) && other.next(second));
  EXPECT_NE(first.rows[0].noted, second.rows[0].noted);
  const std::vector<SampleId> ids(kPictures, 0);
  const PicturesSource first_ones(borrowed(images), {{"control", borrowed(others), ids}});
  EXPECT_NE(pair.fingerprint(), images.fingerprint());
  EXPECT_NE(pair.fingerprint(), first_ones.fingerprint());
  EXPECT_NE(pair.fingerprint(), pair_of(images, others, "depth").fingerprint());
}

// The message about the first sample that a feed could not use.
std::string fault_of(const Source& source, const AugmentSpec& spec) {
  LoaderOptions options = quiet_options();
  options.shuffle = false;
  options.feed.on_bad_sample = OnBadSample::fail;
  Feed feed(source, spec, options);
  return message_of([&] { feed.all(); });
}

TEST(Pictures, APairWithOneHalfIsABadSampleThatNamesIt) {
  const FakeSource images = pictures();
  FakeSource others = controls();
  const AugmentSpec spec(kApart);
  const auto problem = [&](const PicturesSource& source) { return fault_of(source, spec); };
  others.fail(3, "read: Input/output error");
  EXPECT_THAT(problem(pair_of(images, others)),
              HasSubstr("fake/3 (unreadable: picture 'control': read: Input/output error)"));
  FakeSource broken = controls();
  broken.replace(2, random_bytes(100));
  EXPECT_THAT(problem(pair_of(images, broken)),
              HasSubstr("fake/2 (not_an_image: picture 'control': no known signature)"));
  std::vector<SampleId> ids(kPictures);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i == 1 ? -1 : static_cast<SampleId>(i);
  const FakeSource whole = controls();
  EXPECT_THAT(problem(PicturesSource(borrowed(images), {{"control", borrowed(whole), ids}})),
              HasSubstr("fake/1 (unreadable: picture 'control': there is none)"));

  // Another sample takes its place, with both of its pictures.
  std::vector<RowNote> notes;
  const PicturesSource source = pair_of(images, others);
  const std::vector<PairRows> rows = rows_of(source, spec, quiet_options(), &notes);
  EXPECT_TRUE(notes[3].bad);
  const SampleId instead = notes[3].pixels_of;
  ASSERT_GE(instead, 0);
  for (const int view : {0, 1}) {
    std::vector<uint8_t> file = picture_of({.is_noisy = view == 1}, instead);
    const Size size = size_of(instead);
    file.erase(file.begin(), file.end() - 3 * size.width * size.height);
    Draws draws;
    draw_row(spec, 0, 0, notes[3], draws, view);
    EXPECT_EQ(view == 0 ? rows[3].own : rows[3].other,
              plain_steps(draws, file, PixelPolicy::exact));
  }
}

TEST(Pictures, HaveOneSizeWhereTheyAreMovedAlike) {
  const FakeSource images = pictures();
  FakeSource others = controls();
  others.replace(4, ppm_file({30, 40}, 7));
  const PicturesSource source = pair_of(images, others);
  const AugmentSpec alike("pictures(same(random_crop(24)), control=same(random_crop(24)))");
  EXPECT_THAT(
      fault_of(source, alike),
      HasSubstr("fake/4 (unsupported: picture 'control': augment: same(...) is for pictures of "
                "one size, and this one has 30 x 40 pixels there, the first one 78 x 53)"));
  // They may be made so.
  const AugmentSpec resized(
      "pictures(resize((40, 30)) | same(random_crop(24)), "
      "control=resize((40, 30)) | same(random_crop(24)))");
  EXPECT_EQ(rows_of(source, resized, quiet_options()).size(), 20u);
  const AugmentSpec apart(kApart);
  EXPECT_EQ(rows_of(source, apart, quiet_options()).size(), 20u);
}

TEST(Pictures, EachHasAListAndEachListAPicture) {
  const FakeSource images = pictures(), others = controls();
  const PicturesSource source = pair_of(images, others);
  const auto problem = [&](const Source& each, const char* text) {
    return problem_of([&] { Feed(each, AugmentSpec(text), quiet_options()); });
  };
  EXPECT_THAT(problem(source, "random_crop(24)"),
              HasSubstr("the samples have the picture 'control', and 'random_crop(24)' has no list "
                        "for it: pictures(LIST, control=LIST)"));
  EXPECT_THAT(problem(source, "pictures(random_crop(24), depth=random_crop(24))"),
              HasSubstr("the samples have the picture 'control'"));
  EXPECT_THAT(
      problem(source, "pictures(random_crop(24), control=random_crop(24), depth=random_crop(24))"),
      HasSubstr("there is a list for the picture 'depth', and the samples have 'control'"));
  EXPECT_THAT(problem(images, kApart), HasSubstr("the samples have no further pictures"));
  const PaintedSource painted(source);
  EXPECT_THAT(problem(painted, kApart), HasSubstr("carry no boxes, masks or label images"));
}

// Names in another order than the lists.
TEST(Pictures, MayBeSeveral) {
  const FakeSource images = pictures(), noisy = controls();
  const auto raw = make_synthetic_source(kPictures, {40, 30}, 10, 3);
  const PicturesSource source(borrowed(images),
                              {{"depth", borrowed(*raw)}, {"control", borrowed(noisy)}});
  const AugmentSpec spec(
      "pictures(center_crop(24), control=center_crop(24), depth=center_crop(16))");
  std::vector<RowNote> notes;
  const std::vector<PairRows> both = rows_of(source, spec, quiet_options(1), &notes);
  const std::vector<PairRows> one =
      rows_of(pair_of(images, noisy),
              AugmentSpec("pictures(center_crop(24), control=center_crop(24))"), quiet_options());
  ASSERT_EQ(both.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(both[i].own, one[i].own);
    EXPECT_EQ(both[i].other, one[i].other);
    EXPECT_EQ(notes[i].picture_sizes[0], size_of(static_cast<int64_t>(i)));
    EXPECT_EQ(notes[i].picture_sizes[1], (Size{40, 30}));
  }
}

TEST(Pictures, ViewsOfASourcePassThemOn) {
  const FakeSource images = pictures(), others = controls();
  const PicturesSource source = pair_of(images, others);
  const SubsetSource some(source, std::vector<SampleId>{7, 2, 5, 3, 11});
  const ConcatSource both({&some, &source});
  const AugmentSpec spec("pictures(center_crop(24), control=center_crop(24))");
  const std::vector<PairRows> all = rows_of(source, spec, quiet_options()),
                              joined = rows_of(both, spec, quiet_options());
  const SampleId ids[] = {7, 2, 5, 3, 11, 0, 1, 2};
  for (size_t i = 0; i < std::size(ids); ++i) {
    EXPECT_EQ(joined[i].own, all[static_cast<size_t>(ids[i])].own);
    EXPECT_EQ(joined[i].other, all[static_cast<size_t>(ids[i])].other);
  }
  EXPECT_THAT(problem_of([&] {
                ConcatSource({&source, &images});
              }),
              HasSubstr("no further pictures, not the pictures control"));
}

TEST(Pictures, AreRefusedWhereTheyDoNotFit) {
  const FakeSource images = pictures(), others = controls();
  const FakeSource few({picture_of({}, 0)}, 3, 1);
  const PicturesSource source = pair_of(images, others);
  const auto problem = [&](const Source& own, const Source& other, const char* name) {
    return problem_of([&] { pair_of(own, other, name); });
  };
  EXPECT_EQ(problem(images, few, "control"), "3 pictures 'control' for 23 samples");
  EXPECT_EQ(problem(source, others, "control"), "the samples have two pictures 'control'");
  EXPECT_EQ(problem(images, source, "b"), "the pictures 'b' have further pictures themselves");
  EXPECT_THAT(problem(images, others, "image"), HasSubstr("no picture can be called 'image'"));
  EXPECT_THAT(problem(images, others, "a b"), HasSubstr("names are words"));
  EXPECT_EQ(pair_of(source, others, "more").pictures().size(), 2u);
}

TEST(Pictures, AreExplainedAndShownOneByOne) {
  const AugmentSpec spec("pictures(random_crop(8) | invert, control=center_crop((4, 6)))");
  EXPECT_THAT(explain_augmentation(spec),
              ElementsAre("the sample's own picture, 8 x 8:",
                          "  random_crop(8): done by the decoder while it decodes",
                          "  invert: a pass of its own", "picture control, 4 x 6:",
                          "  center_crop((4, 6)): done by the decoder while it decodes"));
  RowNote note{.source = {20, 10}, .pixels_of = 3};
  note.picture_sizes[0] = {30, 12};
  std::string lines;
  for (int view = 0; view < 2; ++view) {
    Draws draws;
    draw_augmentation(spec, view == 0 ? Size{20, 10} : Size{30, 12}, 5, 6, 3, draws, view);
    lines += (view > 0 ? "\n" : "") + steps_text(draws.steps());
  }
  EXPECT_EQ(row_steps_text(spec, 5, 6, note), lines);
}

// Feeds of one process that share rows, as those of several do.
TEST(Pictures, TravelBetweenProcesses) {
  const auto files = half_cached_source(41), faulty = faulty_source(41);
  const PicturesSource source = pair_of(*files, *faulty);
  const AugmentSpec spec("pictures(random_crop(16) | flip, control=random_crop((12, 14)) | flip)");
  for (const bool converts : {false, true}) {
    LoaderOptions options = exchange_options(0);
    options.feed.max_bad = 1000;
    if (converts) options.format = {.type = PixelType::fp32};
    const std::vector<std::byte> expected = bytes_of_feed(source, spec, options);
    options.share = {"pictures-" + std::to_string(getpid()) + (converts ? "-f" : ""), 64, 0};
    Feed one(source, spec, options), other(source, spec, options);
    EXPECT_EQ(all_bytes(one), expected);
    EXPECT_EQ(all_bytes(other), expected);
    EXPECT_GT(other.loader().stats().share.taken, 0);
  }
}

// The own picture is read and decoded as without others: by pieces, and from what is kept of it.
TEST(Pictures, TheOwnOneKeepsItsFastPaths) {
  const TempFolder folder;
  const CacheFolder cache(folder.path() + "/cache");
  for (int i = 0; i < 20; ++i) {
    for (const char* of : {"a", "b"}) {
      const std::vector<uint8_t> file = make_jpeg({240, 200}, JpegKind{.quality = 97},
                                                  static_cast<uint32_t>(3 * i + (*of == 'b')));
      const std::string path =
          folder.write(std::string(of) + "/" + std::to_string(i) + ".jpg",
                       {reinterpret_cast<const char*>(file.data()), file.size()});
      settle(path);
    }
  }
  const auto source =
      open_source(folder.path() + "/a", {.pictures_from = {"control=" + folder.path() + "/b"}});
  LoaderOptions options = quiet_options();
  options.epochs = 3;
  const AugmentSpec drawn(kAlike),
      fixed("pictures(resize((30, 30)) | center_crop(24), control=center_crop(9))");
  bytes_of_feed(*source, drawn, options);  // makes the index
  // Two pairs have one half, which the other half's fast path must not hide.
  std::filesystem::remove(folder.path() + "/b/3.jpg");
  folder.write("b/5.jpg", "no picture");
  const auto lines_in = [&](const char* name) {
    std::ifstream file(folder.path() + "/" + name);
    std::multiset<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.insert(line);
    return lines;
  };
  options.feed.seek_index = "off";
  options.quarantine_file = folder.path() + "/plain";
  const std::vector<std::byte> expected = bytes_of_feed(*source, drawn, options),
                               expected_fixed = bytes_of_feed(*source, fixed, options);
  for (const int workers : {0, 2}) {
    LoaderOptions fast = options;
    fast.feed.workers = workers;
    fast.feed.seek_index = "auto";
    fast.quarantine_file = folder.path() + "/fast" + std::to_string(workers);
    Feed feed(*source, drawn, fast);
    EXPECT_EQ(all_bytes(feed), expected);
    EXPECT_GT(feed.loader().stats().seek_index.used, workers == 0 ? 20 : 0);
    fast.feed.seek_index = "off";
    fast.feed.cache = std::make_shared<DecodedCache>(DecodedCacheOptions{.bytes = 64 << 20});
    Feed kept(*source, fixed, fast);
    EXPECT_EQ(all_bytes(kept), expected_fixed);
    EXPECT_GT(kept.loader().stats().cache->hits, 10);
    EXPECT_EQ(lines_in(workers == 0 ? "fast0" : "fast2"), lines_in("plain"));
  }
  EXPECT_EQ(lines_in("plain").size(), 12u);  // of two feeds
}

TEST(Pictures, OfRowsThatOthersFillArriveToo) {
  const auto files = half_cached_source(41), faulty = faulty_source(41);
  const PicturesSource source = pair_of(*files, *faulty);
  const AugmentSpec spec("pictures(random_crop(16) | flip, control=random_crop((12, 14)) | flip)");
  LoaderOptions options = exchange_options(0);
  options.feed.max_bad = 1000;
  options.format = {.type = PixelType::fp32};
  const std::vector<std::byte> expected = bytes_of_feed(source, spec, options);
  options.remote_rows = true;
  Feed feed(source, spec, options);
  const auto rows = feed.loader().remote_rows();
  std::thread carrier([&] { fill_remotely(*rows, source, spec, options); });
  EXPECT_EQ(all_bytes(feed), expected);
  EXPECT_GT(feed.loader().stats().remote.rows, 0);
  feed.loader().stop();
  carrier.join();
}

// A picture whose list names no size has the step's.
TEST(Pictures, HaveTheSizeOfTheStepsBucket) {
  const FakeSource images = pictures(), others = controls();
  const PicturesSource source = pair_of(images, others);
  LoaderOptions options = quiet_options();
  options.shuffle = true;
  options.last_batch = LastBatch::pad;
  std::vector<Size> sizes;
  for (int id = 0; id < kPictures; ++id) sizes.push_back(size_of(id));
  options.buckets =
      std::make_shared<const AspectBuckets>(sizes, BucketOptions{.sizes = {{48, 40}, {32, 40}}});
  const AugmentSpec spec(
      "pictures(same(resize_cover | random_crop), control=same(resize_cover | random_crop))",
      Size{48, 40});
  std::set<std::string> shapes;
  Feed feed(source, spec, options);
  Delivered batch;
  while (feed.next(0, batch, [&](const DeviceBatch& device) {
    const BatchShape shape = device.shape();
    const TargetColumn& column = feed.loader().targets(device.header().shape).at(0);
    EXPECT_EQ(column.shape, (std::vector<int64_t>{shape.height, shape.width, 3}));
    shapes.insert(column.describe());
    const auto bytes = static_cast<size_t>(column.bytes());
    for (size_t row = 0; row < static_cast<size_t>(shape.rows); ++row) {
      const RowNote& note = row_notes(device)[row];
      std::vector<uint8_t> file = picture_of({.is_noisy = true}, note.pixels_of);
      const Size size = size_of(note.pixels_of);
      file.erase(file.begin(), file.end() - 3 * size.width * size.height);
      Draws draws;
      draw_row(spec, 0, 0, note, draws, 1);
      const auto* const made = reinterpret_cast<const uint8_t*>(device.target(0)) + bytes * row;
      EXPECT_EQ(std::vector<uint8_t>(made, made + bytes),
                plain_steps(draws, file, PixelPolicy::exact));
    }
  })) {
  }
  EXPECT_EQ(shapes.size(), 2u);
}

// Both files of a sample are read and kept by whoever makes rows, and the largest row counts.
TEST(Pictures, AreInTheMemoryPlan) {
  const auto files = jpeg_source(20);
  const PicturesSource pair = pair_of(*files, *files);
  const auto plan_of = [&](const Source& source, const char* text) {
    return Feed(source, AugmentSpec(text), quiet_options(2)).loader().memory_plan();
  };
  const MemoryPlan own = plan_of(*files, "center_crop(16)"),
                   both = plan_of(pair, "pictures(center_crop(16), control=center_crop(16))"),
                   larger = plan_of(pair, "pictures(center_crop(16), control=center_crop(900))");
  // Two workers, and eight units that are read ahead.
  EXPECT_EQ(both.scratch_bytes - own.scratch_bytes, int64_t{10} * kKeptFileBytes);
  // Each worker has ten bytes for each of a picture's on the way, and more for its row.
  EXPECT_GT(larger.scratch_bytes - both.scratch_bytes, 2 * 11 * int64_t{3} * (900 * 900 - 16 * 16));
  EXPECT_GE(both.ring_bytes, own.ring_bytes + int64_t{4} * 5 * 3 * 16 * 16);
}

// A store is told of both pictures, and of what will not be read.
class ToldSource final : public ForwardingSource {
 public:
  explicit ToldSource(const Source& source) : ForwardingSource(source) {}
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    SampleId id = 0;
    NextSample kind = NextSample::found;
    while ((kind = next(id)) == NextSample::found) told.push_back(id);
    end = kind;
    return std::make_unique<LookAhead>();
  }
  void will_not_read(SampleId id) const override { left_out.push_back(id); }
  int64_t look_ahead_bytes() const override { return 100; }

  mutable std::vector<SampleId> told, left_out;
  mutable NextSample end = NextSample::later;
};

TEST(Pictures, AreAnnouncedToTheirOwnSources) {
  const FakeSource three({picture_of({}, 0)}, 3, 1), others = controls();
  const ToldSource first(three), second(others);
  const PicturesSource source(
      borrowed(first), {{"a", borrowed(second), {2, -1, 0}}, {"b", borrowed(others), {0, 1, 2}}});
  const std::vector<SampleId> ids = {0, 1, 2, 1};
  size_t next = 0;
  const auto sequence = [&](SampleId& id) {
    if (next == ids.size()) return NextSample::end;
    id = ids[next++];
    return NextSample::found;
  };
  const auto ahead = source.storage().look_ahead(sequence);
  EXPECT_NE(ahead, nullptr);
  EXPECT_EQ(first.told, ids);
  EXPECT_THAT(second.told, ElementsAre(2, 0));
  EXPECT_EQ(second.end, NextSample::end);
  for (const SampleId id : {0, 1}) source.storage().will_not_read(id);
  EXPECT_THAT(first.left_out, ElementsAre(0, 1));
  EXPECT_THAT(second.left_out, ElementsAre(2));
  EXPECT_EQ(source.storage().look_ahead_bytes(), 200);
  EXPECT_EQ(pair_of(others, others).storage().look_ahead(sequence), nullptr);
}

// One that is far ahead waits for the others.
TEST(Pictures, AreAnnouncedInStep) {
  const FakeSource many({picture_of({}, 0)}, 1 << 20, 1);
  const ToldSource first(many), second(many);
  const PicturesSource source = pair_of(first, second);
  SampleId next = 0;
  const auto ahead = source.storage().look_ahead([&](SampleId& id) {
    id = next++;
    return NextSample::found;
  });
  EXPECT_EQ(first.end, NextSample::later);
  EXPECT_EQ(first.told.size(), size_t{64} << 10);
  EXPECT_GE(second.told.size(), first.told.size());
  EXPECT_EQ(second.end, NextSample::later);
}

}  // namespace
}  // namespace stoker::testing
