// Damaged and malicious files, baseline and progressive: CropDecoder accepts no file that
// libjpeg-turbo calls bad for the same crop, and gives libjpeg-turbo's pixels under the policy
// `exact`; and it never accesses memory that is not its own (run this under ASan, too).
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <random>

#include "decode/crop_decoder.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"
#include "tests/decode/libjpeg_path.h"
#include "tests/decode/progressive_scripts.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

constexpr int64_t kVerdictMaxPixels = 1 << 24;

class CropVerdict : public ::testing::Test {
 protected:
  // Runs both decoders on the same bytes, copied to memory of exactly their size.
  void expect_agreement(const std::vector<uint8_t>& file, const CropSpec& spec) {
    const std::vector<uint8_t> bytes(file);
    const bool accepted = fast_.decode(bytes, spec, fast_pixels_.view());
    accepted_ += accepted;
    const bool exact_accepted = exact_.decode(bytes, spec, exact_pixels_.view());
    if (!accepted && !exact_accepted) return;
    const DecodeStatus status = oracle_.decode(bytes, spec, pixels_.view());
    EXPECT_TRUE(status.ok()) << to_string(status.code) << ": " << status.message;
    if (exact_accepted) {
      EXPECT_EQ(exact_pixels_.packed(), pixels_.packed());
    }
  }

  static CropSpec random_spec(Size image, std::mt19937& random) {
    return {random_box(image, random), {24, 24}, {0, 0, 24, 24}};
  }

  CropDecoder fast_{kVerdictMaxPixels, PixelPolicy::fast};
  CropDecoder exact_{kVerdictMaxPixels, PixelPolicy::exact};
  LibjpegPath oracle_{kVerdictMaxPixels};
  Pixels fast_pixels_{{24, 24}}, exact_pixels_{{24, 24}}, pixels_{{24, 24}};
  int accepted_ = 0;
};

std::vector<uint8_t> sample(uint32_t seed, bool progressive) {
  JpegKind kind{.quality = seed % 3 == 0 ? 95 : 70,
                .sampling_x = seed % 2 == 0 ? 1 : 2,
                .sampling_y = seed / 2 % 2 == 0 ? 1 : 2};
  if (seed % 7 == 0) kind.colours = JpegColours::gray;
  Recoding recoding{seed % 5 == 0 ? 3 : 0, seed % 2 == 0};
  std::mt19937 random(seed);
  if (progressive) recoding.scans = random_script(seed % 7 == 0 ? 1 : 3, random).scans;
  return recode_jpeg(make_jpeg({72, 88}, kind, seed), recoding);
}

class CropVerdictOf : public CropVerdict, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, CropVerdictOf, ::testing::Bool(), [](const auto& progressive) {
  return progressive.param ? "progressive" : "baseline";
});

TEST_P(CropVerdictOf, AgreesAboutFlippedBits) {
  std::mt19937 random(1);
  int trials = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const std::vector<uint8_t> file = sample(seed, GetParam());
    for (int trial = 0; trial < 60; ++trial, ++trials) {
      std::vector<uint8_t> bad = file;
      for (int flips = 1 + trial % 3; flips > 0; --flips) {
        // Most flips are in the entropy-coded data, at the end of the file.
        const size_t at =
            trial % 4 == 0 ? random() % bad.size() : bad.size() - 1 - random() % (bad.size() / 2);
        bad[at] ^= static_cast<uint8_t>(1u << random() % 8);
      }
      SCOPED_TRACE("seed " + std::to_string(seed) + " trial " + std::to_string(trial));
      expect_agreement(bad, random_spec({72, 88}, random));
    }
  }
  // Damage below the crop is not seen in a baseline file. Bits of values may change unseen.
  EXPECT_GT(accepted_, GetParam() ? trials / 25 : trials / 4);
  EXPECT_LT(accepted_, trials);
}

TEST_P(CropVerdictOf, AgreesAboutTruncation) {
  std::mt19937 random(2);
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const std::vector<uint8_t> file = sample(seed, GetParam());
    for (size_t length = 0; length < file.size(); length += 1 + random() % 40) {
      std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(length));
      expect_agreement(cut, random_spec({72, 88}, random));
      EXPECT_EQ(accepted_, 0) << length;
      cut.insert(cut.end(), {0xFF, 0xD9});  // an end marker too early
      expect_agreement(cut, random_spec({72, 88}, random));
      accepted_ = 0;
    }
  }
}

TEST_P(CropVerdictOf, AgreesAboutMissingRestartMarkers) {
  std::mt19937 random(3);
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    Recoding recoding{4, false};
    if (GetParam()) recoding.scans = usual_scripts(3)[seed % 3].scans;
    const std::vector<uint8_t> file = recode_jpeg(make_jpeg({72, 88}, {}, seed), recoding);
    for (size_t at = 2; at + 1 < file.size(); ++at) {
      if (file[at] != 0xFF || file[at + 1] < 0xD0 || file[at + 1] > 0xD7) continue;
      std::vector<uint8_t> bad = file;
      switch (random() % 3) {
        case 0:  // another number
          bad[at + 1] = static_cast<uint8_t>(0xD0 + random() % 8);
          break;
        case 1:  // gone
          bad.erase(bad.begin() + static_cast<ptrdiff_t>(at),
                    bad.begin() + static_cast<ptrdiff_t>(at) + 2);
          break;
        default:  // something in front of it
          bad.insert(bad.begin() + static_cast<ptrdiff_t>(at), 3, 0x11);
      }
      expect_agreement(bad, random_spec({72, 88}, random));
    }
  }
}

// Damage in the row of MCUs below the crop counts if libjpeg's upsampling reads it.
TEST_F(CropVerdict, AgreesAboutTheRowBelowTheCrop) {
  JpegKind kind;
  kind.sampling_x = kind.sampling_y = 2;
  kind.restart_rows = 1;
  const std::vector<uint8_t> file = make_jpeg({64, 96}, kind);
  std::vector<size_t> rows;  // where the rows of MCUs begin, after their markers
  for (size_t at = 2; at + 1 < file.size(); ++at) {
    if (file[at] == 0xFF && file[at + 1] >= 0xD0 && file[at + 1] <= 0xD7) rows.push_back(at + 2);
  }
  ASSERT_EQ(rows.size(), 5u);
  int differing = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<uint8_t> bad = file;
    bad.erase(bad.begin() + static_cast<ptrdiff_t>(rows[row]),
              bad.begin() + static_cast<ptrdiff_t>(rows[row]) + 20);
    for (int bottom = 1; bottom <= 96; ++bottom) {
      const CropSpec spec{{0, 0, 64, bottom}, {24, 24}, {0, 0, 24, 24}};
      const bool accepted = fast_.decode(bad, spec, fast_pixels_.view());
      const bool exact = oracle_.decode(bad, spec, pixels_.view()).ok();
      EXPECT_TRUE(!accepted || exact) << "row " << row << " bottom " << bottom;
      EXPECT_EQ(exact_.decode(bad, spec, exact_pixels_.view()), accepted);
      differing += accepted != exact;
    }
  }
  EXPECT_EQ(differing, 0);
}

TEST_P(CropVerdictOf, SurvivesRandomTables) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 1500; ++trial) {
    std::vector<uint8_t> file = sample(1 + static_cast<uint32_t>(trial % 12), GetParam());
    // Any change in the headers, or random data after them.
    const size_t header = file.size() < 700 ? file.size() : 700;
    if (trial % 2 == 0) {
      file[random() % header] = static_cast<uint8_t>(random());
    } else {
      for (size_t i = file.size() - 300; i < file.size() - 2; ++i) {
        file[i] = static_cast<uint8_t>(random() % 255);
      }
    }
    expect_agreement(file, random_spec({72, 88}, random));
  }
}

// libjpeg reads a progressive file to its end, whatever the crop. So does CropDecoder: damage
// counts wherever it is, and the verdict does not depend on the crop.
TEST_F(CropVerdict, OfAProgressiveFileIsTheSameForEveryCrop) {
  std::mt19937 random(5);
  int sound = 0, damaged = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::vector<uint8_t> file = sample(seed, true);
    file[file.size() - 1 - random() % (file.size() / 2)] ^= static_cast<uint8_t>(1u << seed % 8);
    const bool is_sound =
        fast_.decode(file, {{0, 0, 72, 88}, {24, 24}, {0, 0, 24, 24}}, fast_pixels_.view());
    (is_sound ? sound : damaged) += 1;
    for (int crop = 0; crop < 10; ++crop) {
      const CropSpec spec = random_spec({72, 88}, random);
      EXPECT_EQ(fast_.decode(file, spec, fast_pixels_.view()), is_sound) << seed;
      expect_agreement(file, spec);
    }
  }
  EXPECT_GT(sound, 2);
  EXPECT_GT(damaged, 30);
}

}  // namespace
}  // namespace stoker
