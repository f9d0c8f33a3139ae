// The output folder of make_fuzz_seeds: FOLDER/<target>/<number>. Each function makes the seeds of
// some targets.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

class SeedFolder {
 public:
  explicit SeedFolder(std::filesystem::path path) : path_(std::move(path)) {}

  void add(const std::string& target, std::string_view bytes) {
    std::filesystem::create_directories(path_ / target);
    const auto name = path_ / target / ("seed_" + std::to_string(counts_[target]++));
    std::ofstream file(name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error(name.string() + ": cannot be written");
  }
  void add(const std::string& target, const std::vector<unsigned char>& bytes) {
    add(target, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  std::filesystem::path path_;
  std::map<std::string, int> counts_;
};

void add_jpeg_seeds(SeedFolder& seeds);
void add_long_scan_seeds(SeedFolder& seeds);
void add_progressive_seeds(SeedFolder& seeds);
void add_pair_seeds(SeedFolder& seeds);
void add_codec_seeds(SeedFolder& seeds);
void add_png_seeds(SeedFolder& seeds);
void add_cifar_seeds(SeedFolder& seeds);
void add_tfrecord_seeds(SeedFolder& seeds);
void add_mds_seeds(SeedFolder& seeds);
void add_index_seeds(SeedFolder& seeds);
void add_annotation_seeds(SeedFolder& seeds);
void add_list_seeds(SeedFolder& seeds);
void add_list_page_seeds(SeedFolder& seeds);
void add_npy_seeds(SeedFolder& seeds);
void add_run_lengths_seeds(SeedFolder& seeds);
void add_tar_seeds(SeedFolder& seeds);
void add_blob_index_seeds(SeedFolder& seeds);
void add_plan_file_seeds(SeedFolder& seeds);
void add_seek_file_seeds(SeedFolder& seeds);
void add_parquet_seeds(SeedFolder& seeds);
void add_receipt_seeds(SeedFolder& seeds);
void add_train_seeds(SeedFolder& seeds);
void add_checkpoint_seeds(SeedFolder& seeds);

}  // namespace stoker
