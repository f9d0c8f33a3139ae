// Writes seeds for the fuzz targets, made with the same code as the files of the tests.
#include <cstdio>
#include <exception>

#include "tests/fuzz/seed_folder.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fuzz_seeds FOLDER\n");
    return 2;
  }
  try {
    stoker::SeedFolder seeds(argv[1]);
    stoker::add_jpeg_seeds(seeds);
    stoker::add_long_scan_seeds(seeds);
    stoker::add_progressive_seeds(seeds);
    stoker::add_pair_seeds(seeds);
    stoker::add_codec_seeds(seeds);
    stoker::add_png_seeds(seeds);
    stoker::add_cifar_seeds(seeds);
    stoker::add_tfrecord_seeds(seeds);
    stoker::add_mds_seeds(seeds);
    stoker::add_index_seeds(seeds);
    stoker::add_annotation_seeds(seeds);
    stoker::add_list_seeds(seeds);
    stoker::add_list_page_seeds(seeds);
    stoker::add_npy_seeds(seeds);
    stoker::add_run_lengths_seeds(seeds);
    stoker::add_tar_seeds(seeds);
    stoker::add_blob_index_seeds(seeds);
    stoker::add_plan_file_seeds(seeds);
    stoker::add_seek_file_seeds(seeds);
    stoker::add_parquet_seeds(seeds);
    stoker::add_receipt_seeds(seeds);
    stoker::add_train_seeds(seeds);
    stoker::add_checkpoint_seeds(seeds);
    for (const auto& [target, count] : seeds.counts()) {
      std::printf("%-20s %3d seeds\n", target.c_str(), count);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_fuzz_seeds: %s\n", error.what());
    return 3;
  }
  return 0;
}
