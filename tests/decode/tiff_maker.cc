#include "tests/decode/tiff_maker.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace stoker {
namespace {

struct Sink {
  std::vector<uint8_t> bytes;
  uint64_t at = 0;
};

tmsize_t read_some(thandle_t handle, void* to, tmsize_t count) {
  auto& sink = *static_cast<Sink*>(handle);
  const uint64_t left = sink.at < sink.bytes.size() ? sink.bytes.size() - sink.at : 0;
  const auto given = static_cast<tmsize_t>(std::min(left, static_cast<uint64_t>(count)));
  if (given > 0) std::memcpy(to, sink.bytes.data() + sink.at, static_cast<size_t>(given));
  sink.at += static_cast<uint64_t>(given);
  return given;
}
tmsize_t write_all(thandle_t handle, void* from, tmsize_t count) {
  auto& sink = *static_cast<Sink*>(handle);
  const uint64_t end = sink.at + static_cast<uint64_t>(count);
  if (end > sink.bytes.size()) sink.bytes.resize(end);
  std::memcpy(sink.bytes.data() + sink.at, from, static_cast<size_t>(count));
  sink.at = end;
  return count;
}
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto& sink = *static_cast<Sink*>(handle);
  const uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? sink.at : sink.bytes.size();
  return sink.at = from + offset;
}
int close(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<Sink*>(handle)->bytes.size(); }

void require(bool is_good, const char* what) {
  if (is_good) return;
  std::fprintf(stderr, "tiff_maker: libtiff cannot write %s\n", what);
  std::abort();
}

// Packs the samples of a part; what lies outside the picture is 0.
std::vector<uint8_t> pack(const TiffKind& kind, const std::vector<uint16_t>& samples, Box box,
                          int plane) {
  const int given = kind.is_separate ? 1 : kind.samples;
  const size_t line = (static_cast<size_t>(box.width) * given * kind.bits + 7) / 8;
  std::vector<uint8_t> part(line * static_cast<size_t>(box.height));
  for (int y = 0; y < std::min(box.height, kind.size.height - box.y); ++y) {
    uint8_t* to = part.data() + line * static_cast<size_t>(y);
    for (int x = 0; x < std::min(box.width, kind.size.width - box.x); ++x) {
      for (int c = 0; c < given; ++c) {
        const size_t pixel =
            static_cast<size_t>(box.y + y) * static_cast<size_t>(kind.size.width) + box.x + x;
        const uint16_t value = samples[pixel * kind.samples + plane + c];
        const size_t i = static_cast<size_t>(x) * given + c;
        if (kind.bits == 16) std::memcpy(to + 2 * i, &value, sizeof value);
        if (kind.bits == 8) to[i] = static_cast<uint8_t>(value);
        if (kind.bits == 1) to[i / 8] |= static_cast<uint8_t>(value << (7 - i % 8));
      }
    }
  }
  return part;
}

void set_fields(TIFF* tiff, const TiffKind& kind) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kind.size.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kind.size.height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, kind.samples);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind.compression);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC,
               kind.has_palette   ? PHOTOMETRIC_PALETTE
               : kind.samples < 3 ? PHOTOMETRIC_MINISBLACK
                                  : PHOTOMETRIC_RGB);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
               kind.is_separate ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (kind.has_differences) TIFFSetField(tiff, TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
  if (kind.is_bit_reversed) TIFFSetField(tiff, TIFFTAG_FILLORDER, FILLORDER_LSB2MSB);
  if (kind.has_palette) {
    std::vector<uint16_t> red(256), green(256), blue(256, 7 << 8);
    for (size_t i = 0; i < red.size(); ++i) {
      red[i] = static_cast<uint16_t>(i << 8);
      green[i] = static_cast<uint16_t>((255 - i) << 8);
    }
    TIFFSetField(tiff, TIFFTAG_COLORMAP, red.data(), green.data(), blue.data());
  }
  if (kind.samples == 2) {
    const auto extra = static_cast<uint16_t>(kind.extra);
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &extra);
  }
  if (kind.samples == 4) {
    const uint16_t alpha = EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &alpha);
  }
  if (kind.tile.width != 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, kind.tile.width);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, kind.tile.height);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP,
                 kind.rows_per_strip == 0 ? kind.size.height : kind.rows_per_strip);
  }
}

}  // namespace

bool can_make_tiff(int compression) {
  return TIFFIsCODECConfigured(static_cast<uint16_t>(compression)) != 0;
}

std::vector<uint8_t> make_tiff(const TiffKind& kind, const std::vector<uint16_t>& samples) {
  Sink sink;
  const std::string mode =
      std::string("w") + (kind.is_big_endian ? "b" : "l") + (kind.is_big ? "8" : "4");
  TIFF* tiff = TIFFClientOpen("", mode.c_str(), &sink, read_some, write_all, seek, close, size_of,
                              nullptr, nullptr);
  require(tiff != nullptr, "a file");
  set_fields(tiff, kind);
  const bool is_tiled = kind.tile.width != 0;
  const int strip = kind.rows_per_strip == 0 ? kind.size.height : kind.rows_per_strip;
  const int height = is_tiled ? kind.tile.height : strip;
  const int width = is_tiled ? kind.tile.width : kind.size.width;
  uint32_t number = 0;
  for (int plane = 0; plane < (kind.is_separate ? kind.samples : 1); ++plane) {
    for (int y = 0; y < kind.size.height; y += height) {
      const int rows = is_tiled ? height : std::min(height, kind.size.height - y);
      for (int x = 0; x < kind.size.width; x += width) {
        std::vector<uint8_t> part = pack(kind, samples, {x, y, width, rows}, plane);
        const auto size = static_cast<tmsize_t>(part.size());
        require((is_tiled ? TIFFWriteEncodedTile(tiff, number, part.data(), size)
                          : TIFFWriteEncodedStrip(tiff, number, part.data(), size)) == size,
                "a part");
        ++number;
      }
    }
  }
  TIFFClose(tiff);
  return sink.bytes;
}

std::vector<uint8_t> make_tiff(const TiffKind& kind, uint32_t seed,
                               std::vector<uint16_t>& samples) {
  std::mt19937 random(seed);
  const size_t count = static_cast<size_t>(kind.size.width) * kind.size.height * kind.samples;
  samples.resize(count);
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (random() % 4 == 0) value = static_cast<uint32_t>(random());
    samples[i] = static_cast<uint16_t>(value & ((1u << kind.bits) - 1));
  }
  return make_tiff(kind, samples);
}

}  // namespace stoker
