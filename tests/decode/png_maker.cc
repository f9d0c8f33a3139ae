#include "tests/decode/png_maker.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace stoker {
namespace {

void put_u32(std::vector<uint8_t>& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<uint8_t>(value >> shift));
}

int channels_of(int colours) { return colours == 2 ? 3 : colours == 4 ? 2 : colours == 6 ? 4 : 1; }

uint8_t filtered(int filter, int value, int left, int above, int corner) {
  int prediction = 0;
  if (filter == 1) prediction = left;
  if (filter == 2) prediction = above;
  if (filter == 3) prediction = (left + above) / 2;
  if (filter == 4) {
    const int base = left + above - corner;
    const int a = std::abs(base - left), b = std::abs(base - above), c = std::abs(base - corner);
    prediction = a <= b && a <= c ? left : b <= c ? above : corner;
  }
  return static_cast<uint8_t>(value - prediction);
}

// Appends the filtered rows of a picture of this size.
void add_rows(const PngKind& kind, Size size, std::mt19937& random, std::vector<uint8_t>& to) {
  if (size.width == 0 || size.height == 0) return;
  const size_t pixel_bits = static_cast<size_t>(kind.bits * channels_of(kind.colours));
  const size_t bytes = (static_cast<size_t>(size.width) * pixel_bits + 7) / 8;
  const size_t pixel = std::max<size_t>(pixel_bits / 8, 1);
  std::vector<uint8_t> above(bytes), row(bytes);
  for (int y = 0; y < size.height; ++y) {
    for (size_t i = 0; i < bytes; ++i) {
      const int smooth = i < pixel ? above[i] : (row[i - pixel] + above[i]) / 2;
      row[i] = static_cast<uint8_t>(kind.is_smooth ? smooth + static_cast<int>(random() % 7) - 2
                                                   : static_cast<int>(random() % 256));
    }
    const int filter = kind.filter >= 0 ? kind.filter : static_cast<int>(random() % 5);
    to.push_back(static_cast<uint8_t>(filter));
    for (size_t i = 0; i < bytes; ++i) {
      const bool is_first = i < pixel;
      to.push_back(filtered(filter, row[i], is_first ? 0 : row[i - pixel], above[i],
                            is_first ? 0 : above[i - pixel]));
    }
    above = row;
  }
}

}  // namespace

std::vector<uint8_t> make_png_rows(const PngKind& kind, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> rows;
  if (!kind.is_interlaced) {
    add_rows(kind, kind.size, random, rows);
    return rows;
  }
  constexpr int kPasses[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  for (const auto& [x, y, across, down] : kPasses) {
    const Size size{std::max(0, kind.size.width - x + across - 1) / across,
                    std::max(0, kind.size.height - y + down - 1) / down};
    add_rows(kind, size, random, rows);
  }
  return rows;
}

std::vector<uint8_t> make_png(const PngKind& kind, uint32_t seed) {
  std::mt19937 random(seed ^ 0x9e3779b9u);
  std::vector<PngChunk> chunks(1);
  chunks[0].name = "IHDR";
  std::vector<uint8_t>& header = chunks[0].data;
  put_u32(header, static_cast<uint32_t>(kind.size.width));
  put_u32(header, static_cast<uint32_t>(kind.size.height));
  header.insert(header.end(), {static_cast<uint8_t>(kind.bits), static_cast<uint8_t>(kind.colours),
                               0, 0, static_cast<uint8_t>(kind.is_interlaced)});
  if (kind.colours == 3) {
    const int colours = kind.palette != 0 ? kind.palette : 1 << kind.bits;
    chunks.push_back({"PLTE", {}});
    for (int i = 0; i < 3 * colours; ++i) {
      chunks.back().data.push_back(static_cast<uint8_t>(random()));
    }
  }
  const std::vector<uint8_t> data = deflate(make_png_rows(kind, seed), kind.level, kind.strategy);
  const size_t piece = kind.piece != 0 ? kind.piece : data.size();
  for (size_t at = 0; at < data.size(); at += piece) {
    const size_t end = std::min(at + piece, data.size());
    chunks.push_back(
        {"IDAT",
         {data.begin() + static_cast<ptrdiff_t>(at), data.begin() + static_cast<ptrdiff_t>(end)}});
  }
  chunks.push_back({"IEND", {}});
  return join_png(chunks);
}

std::vector<uint8_t> join_png(const std::vector<PngChunk>& chunks) {
  std::vector<uint8_t> file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  for (const PngChunk& chunk : chunks) {
    put_u32(file, static_cast<uint32_t>(chunk.data.size()));
    const size_t begin = file.size();
    file.insert(file.end(), chunk.name.begin(), chunk.name.end());
    file.insert(file.end(), chunk.data.begin(), chunk.data.end());
    put_u32(file, static_cast<uint32_t>(
                      ::crc32(0, file.data() + begin, static_cast<uInt>(file.size() - begin))));
  }
  return file;
}

std::vector<PngChunk> split_png(std::span<const uint8_t> file) {
  std::vector<PngChunk> chunks;
  for (size_t at = 8; at + 12 <= file.size();) {
    const uint32_t length =
        uint32_t{file[at]} << 24 | file[at + 1] << 16 | file[at + 2] << 8 | file[at + 3];
    if (length > file.size() - at - 12) break;
    const std::span<const uint8_t> name = file.subspan(at + 4, 4);
    const std::span<const uint8_t> data = file.subspan(at + 8, length);
    chunks.push_back({std::string(name.begin(), name.end()), {data.begin(), data.end()}});
    at += 12 + length;
  }
  return chunks;
}

std::vector<uint8_t> deflate(std::span<const uint8_t> bytes, int level, int strategy) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 15, 8, strategy) != Z_OK) std::abort();
  std::vector<uint8_t> out(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());  // zlib does not write there
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  if (::deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace stoker
