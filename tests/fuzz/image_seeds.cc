// Seeds for the decoders: small JPEG files of every kind, and the golden files of all formats.
#include <random>
#include <string_view>

#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"
#include "tests/decode/odd_files.h"
#include "tests/decode/png_maker.h"
#include "tests/decode/progressive_scripts.h"
#include "tests/fuzz/seed_folder.h"

namespace stoker {

void add_jpeg_seeds(SeedFolder& seeds) {
  for (int kind = 0; kind < 64; ++kind) {
    JpegKind jpeg{.quality = 30 + kind,
                  .sampling_x = kind % 9 == 8 ? 4 : 1 + kind % 2,
                  .sampling_y = 1 + kind / 2 % 2};
    if (kind % 7 == 0) jpeg.colours = JpegColours::gray;
    if (kind % 17 == 3) jpeg.colours = JpegColours::ycck;
    jpeg.progressive = kind % 11 == 5;
    if (jpeg.progressive && kind % 2 == 0) jpeg.scans_kept = 3;
    jpeg.interleaved = kind % 19 != 6;
    if (kind % 13 == 4) jpeg.exif_orientation = 1 + kind % 8;
    std::vector<uint8_t> file =
        make_jpeg({17 + kind, 80 - kind}, jpeg, static_cast<uint32_t>(kind));
    if (!jpeg.progressive && kind % 3 == 0) file = recode_jpeg(file, {kind % 4, kind % 2 == 0});
    seeds.add("coefficients_fuzz", file);
    seeds.add("jpeg_headers_fuzz", file);
    const auto some = [&](int factor) { return static_cast<uint8_t>(kind * factor); };
    const uint8_t resized = kind % 2 == 0 ? 24 : some(5);
    file.insert(file.begin(), {200, 180, 100, 30, resized, resized, some(37), some(91)});
    seeds.add("crop_decoder_fuzz", file);
    seeds.add("jpeg_decoder_fuzz", file);
    const uint8_t kind_of_index = static_cast<uint8_t>(kind % 2);
    file.insert(file.begin() + 8, {kind_of_index, 9, 1, 17, 4, 33, 16, 65, 64});
    file.insert(file.begin() + 17, 8, 0);
    seeds.add("seek_index_fuzz", file);
  }
}

// Adds files with enough blocks for skipping in two places at once.
void add_long_scan_seeds(SeedFolder& seeds) {
  for (int kind = 0; kind < 12; ++kind) {
    JpegKind jpeg;
    jpeg.sampling_x = jpeg.sampling_y = 1 + kind % 2;
    jpeg.quality = 5 + 6 * kind;
    if (kind % 4 == 0) jpeg.colours = JpegColours::gray;
    const std::vector<uint8_t> file =
        make_jpeg({248 - 4 * kind, 200}, jpeg, static_cast<uint32_t>(kind));
    seeds.add("coefficients_fuzz", kind % 3 == 0 ? recode_jpeg(file, {0, true}) : file);
  }
}

// Adds progressive files with scans of every kind.
void add_progressive_seeds(SeedFolder& seeds) {
  std::mt19937 random(1);
  for (int kind = 0; kind < 48; ++kind) {
    JpegKind jpeg{.quality = 30 + kind, .sampling_x = 1 + kind % 2, .sampling_y = 1 + kind / 2 % 2};
    const bool is_grey = kind % 5 == 0;
    if (is_grey) jpeg.colours = JpegColours::gray;
    const int components = is_grey ? 1 : 3;
    const std::vector<ScanScript> usual = usual_scripts(components);
    Recoding recoding{kind % 3 == 0 ? 2 : 0, true};
    recoding.scans = kind % 2 == 0 ? usual[static_cast<size_t>(kind / 2) % usual.size()].scans
                                   : random_script(components, random).scans;
    std::vector<uint8_t> file = recode_jpeg(
        make_jpeg({9 + kind, 40 - kind / 2}, jpeg, static_cast<uint32_t>(kind)), recoding);
    seeds.add("jpeg_headers_fuzz", file);
    const auto some = [&](int factor) { return static_cast<uint8_t>(kind * factor); };
    file.insert(file.begin(), {some(3), some(5), some(7), some(11)});
    seeds.add("progressive_fuzz", file);
    file.insert(file.begin(), {200, 180, 100, 30});
    seeds.add("crop_decoder_fuzz", file);
  }
}

// Adds small files of all kinds, each after another one, intact and damaged.
void add_pair_seeds(SeedFolder& seeds) {
  std::vector<OddFile> files = jpegs_without_tables();
  uint32_t seed = 1;
  for (const OddFile& file : golden_images(STOKER_GOLDEN_DIR)) {
    files.push_back(file);
    const std::vector<OddFile> copies = damaged(file, 2, seed++);
    files.insert(files.end(), copies.begin(), copies.end());
  }
  std::erase_if(files, [](const OddFile& file) { return file.bytes.size() > 8000; });
  for (size_t i = 0; i < files.size(); ++i) {
    const std::vector<uint8_t>& before = files[i * 37 % files.size()].bytes;
    const auto some = [&](size_t factor) { return static_cast<uint8_t>(i * factor); };
    std::vector<uint8_t> input = {255, 255, 0,   0,  24, some(5), 4,        some(91),
                                  200, 180, 100, 30, 24, 24,      some(37), 1};
    input.push_back(some(1));
    input.push_back(static_cast<uint8_t>(before.size() & 0xff));
    input.push_back(static_cast<uint8_t>(before.size() >> 8));
    input.insert(input.end(), before.begin(), before.end());
    input.insert(input.end(), files[i].bytes.begin(), files[i].bytes.end());
    seeds.add("decoder_pair_fuzz", input);
  }
}

// Small PNGs of every kind, and their streams. The first byte is the fuzz target's.
void add_png_seeds(SeedFolder& seeds) {
  constexpr int kKinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
  uint32_t seed = 0;
  for (const auto& [colours, bits] : kKinds) {
    for (int way = 0; way < 6; ++way) {
      PngKind kind{.size = {3 + way * 2, 12 - way}, .colours = colours, .bits = bits};
      kind.is_interlaced = way % 2 == 1;
      kind.level = way * 2 % 10;
      kind.strategy = way % 5;
      kind.piece = way % 3 == 0 ? 0 : 30;
      std::vector<uint8_t> file = make_png(kind, ++seed);
      file.insert(file.begin(), static_cast<uint8_t>(37 * seed));
      seeds.add("png_fuzz", file);
      seeds.add("label_image_fuzz", file);
      std::vector<uint8_t> stream = deflate(make_png_rows(kind, seed), kind.level, kind.strategy);
      stream.insert(stream.begin(), static_cast<uint8_t>(5 * seed));
      seeds.add("inflate_fuzz", stream);
    }
  }
}

// The golden files of all formats; the first byte of a format's own target is that of its part, but
// for AVIF's, which decodes all of a picture. The pixels of JPEG 2000 are OpenJPEG's, and the
// header is codec_headers_fuzz's.
void add_golden_seeds(SeedFolder& seeds) {
  const std::filesystem::path golden = std::filesystem::path(STOKER_GOLDEN_DIR) / "decode";
  uint8_t part = 0;
  for (const char* folder : {"images", "variants", "avifs"}) {
    for (const auto& entry : std::filesystem::directory_iterator(golden / folder)) {
      std::vector<uint8_t> file = read_file(entry.path());
      if (file.size() >= 8000) continue;
      seeds.add("codec_headers_fuzz", file);
      const std::string extension = entry.path().extension().string().substr(1);
      const bool is_pnm = extension == "pbm" || extension == "pgm" || extension == "ppm";
      const std::string format = is_pnm ? "pnm" : extension == "tif" ? "tiff" : extension;
      if (format == "jpg" || format == "png" || format == "jp2") continue;
      if (format != "avif") file.insert(file.begin(), part += 37);
      seeds.add(format + "_fuzz", file);
    }
  }
}

void add_codec_seeds(SeedFolder& seeds) {
  add_golden_seeds(seeds);
  for (const std::string_view text :
       {"P6\n2 1\n255\nabcdef", "P5 # gray\n1 2 255\nab", "P2 1 1 9 3"}) {
    seeds.add("codec_headers_fuzz", std::vector<uint8_t>(text.begin(), text.end()));
  }
  JpegKind jpeg;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    jpeg.exif_orientation = orientation;
    jpeg.exif_big_endian = orientation % 2 == 0;
    const std::vector<uint8_t> file = make_jpeg({9, 7}, jpeg);
    seeds.add("codec_headers_fuzz", file);
    // Only the EXIF block: after the start marker, the JFIF segment, APP1's marker and length.
    seeds.add("codec_headers_fuzz", std::vector<uint8_t>(file.begin() + 24, file.begin() + 56));
  }
}

}  // namespace stoker
