#include "tests/decode/odd_files.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t kDht = 0xC4, kDqt = 0xDB;

// Damages a file in one of several ways, at `at`. REQUIRES: at < bytes.size().
void damage_bytes(Bytes& bytes, size_t at, std::mt19937& random) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
  const size_t length = std::min<size_t>(1 + random() % 9, bytes.size() - at);
  switch (random() % 8) {
    case 0:
      bytes[at] = static_cast<uint8_t>(random());
      break;
    case 1:
      bytes[at] = random() % 2 == 0 ? 0 : 0xFF;
      break;
    case 2:
      std::swap(bytes[at], bytes[std::min(at + 1, bytes.size() - 1)]);
      break;
    case 3:
      bytes.erase(begin, begin + static_cast<ptrdiff_t>(length));
      break;
    case 4: {
      const Bytes piece(begin, begin + static_cast<ptrdiff_t>(length));
      bytes.insert(begin, piece.begin(), piece.end());
      break;
    }
    case 5:
      if (random() % 4 == 0) bytes.resize(at);
      [[fallthrough]];
    default:
      if (at < bytes.size()) bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
  }
}

}  // namespace

std::vector<uint8_t> without_segments(const std::vector<uint8_t>& jpeg, uint8_t marker) {
  Bytes out(jpeg.begin(), jpeg.begin() + 2);
  for (size_t at = 2; at + 4 <= jpeg.size();) {
    const size_t length = size_t{2} + (jpeg[at + 2] << 8 | jpeg[at + 3]);
    const uint8_t found = jpeg[at + 1];
    // Entropy-coded data end at the next marker that cannot be part of them.
    size_t end = std::min(at + length, jpeg.size());
    if (found == 0xDA) {
      while (end + 1 < jpeg.size() &&
             (jpeg[end] != 0xFF || jpeg[end + 1] == 0 || (jpeg[end + 1] & 0xF8) == 0xD0)) {
        ++end;
      }
    }
    if (found != marker) out.insert(out.end(), &jpeg[at], jpeg.data() + end);
    at = end;
    if (at + 2 <= jpeg.size() && jpeg[at + 1] == 0xD9) {
      out.insert(out.end(), &jpeg[at], jpeg.data() + jpeg.size());
      break;
    }
  }
  return out;
}

std::vector<OddFile> jpegs_without_tables() {
  std::vector<OddFile> files;
  constexpr JpegColours kColours[] = {JpegColours::ycc, JpegColours::gray, JpegColours::cmyk};
  for (int i = 0; i < 12; ++i) {
    JpegKind kind{.colours = kColours[i % 3]};
    kind.sampling_x = kind.sampling_y = kind.colours == JpegColours::gray ? 1 : 1 + i / 3 % 2;
    kind.quality = 20 + 6 * i;
    kind.progressive = i >= 6;
    kind.restart_rows = i % 4 == 1 ? 1 : 0;
    const Bytes whole = make_jpeg({45, 38}, kind, static_cast<uint32_t>(i));
    const std::string name = describe(kind) + "_" + std::to_string(i);
    files.push_back({name + ".jpg", whole});
    files.push_back({name + "_no_huffman_tables.jpg", without_segments(whole, kDht)});
    files.push_back({name + "_no_quantisation_tables.jpg", without_segments(whole, kDqt)});
    if (!kind.progressive) {
      files.push_back({name + "_own_tables.jpg", recode_jpeg(whole, {0, true})});
    }
  }
  return files;
}

std::vector<OddFile> golden_images(const std::string& folder) {
  std::vector<OddFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/decode/images")) {
    files.push_back({entry.path().filename().string(), read_file(entry.path().string())});
  }
  std::sort(files.begin(), files.end(),
            [](const OddFile& a, const OddFile& b) { return a.name < b.name; });
  return files;
}

std::vector<OddFile> damaged(const OddFile& file, int copies, uint32_t seed) {
  std::vector<OddFile> files;
  std::mt19937 random(seed);
  const size_t dot = file.name.rfind('.');
  for (int i = 0; i < copies; ++i) {
    Bytes bytes = file.bytes;
    for (uint32_t hits = 1 + random() % 3; hits > 0 && !bytes.empty(); --hits) {
      const size_t end = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 200) : bytes.size();
      damage_bytes(bytes, random() % end, random);
    }
    files.push_back(
        {file.name.substr(0, dot) + "_damaged_" + std::to_string(i) + file.name.substr(dot),
         bytes});
  }
  return files;
}

}  // namespace stoker
