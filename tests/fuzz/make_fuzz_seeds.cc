// Writes seeds for the fuzz targets: small JPEG files of every kind, with and without the bytes
// that say which crop.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"

namespace stoker {
namespace {

void write(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

int run(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(folder / "plain");
  std::filesystem::create_directories(folder / "index");
  int number = 0;
  for (int kind = 0; kind < 48; ++kind) {
    JpegKind jpeg;
    jpeg.sampling_x = 1 + kind % 2;
    jpeg.sampling_y = 1 + kind / 2 % 2;
    jpeg.quality = 30 + kind;
    if (kind % 7 == 0) jpeg.colours = JpegColours::gray;
    jpeg.progressive = kind % 11 == 5;
    if (kind % 13 == 4) jpeg.exif_orientation = 1 + kind % 8;
    std::vector<uint8_t> file =
        make_jpeg({17 + kind, 60 - kind}, jpeg, static_cast<uint32_t>(kind));
    if (!jpeg.progressive && kind % 3 == 0) file = recode_jpeg(file, {kind % 4, kind % 2 == 0});
    const std::string name = std::to_string(number++) + ".jpg";
    write(folder / "plain" / name, file);
    file.insert(file.begin(), {200, 180, 100, 30, 24, 24, 255, 255});
    write(folder / name, file);
    const uint8_t kind_of_index = static_cast<uint8_t>(kind % 2);
    file.insert(file.begin() + 8, {kind_of_index, 9, 1, 17, 4, 33, 16, 65, 64});
    file.insert(file.begin() + 17, 8, 0);
    write(folder / "index" / name, file);
  }
  std::printf("%d seeds in %s, the same without a crop in %s, for seek indexes in %s\n", number,
              folder.c_str(), (folder / "plain").c_str(), (folder / "index").c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fuzz_seeds FOLDER\n");
    return 2;
  }
  return stoker::run(argv[1]);
}
