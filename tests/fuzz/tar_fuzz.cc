// Tar shards: BlobError, or samples that lie inside the file, one after the other and apart, each
// with a name of its own that stays in its folder. Input: a byte that chooses the label and the
// targets, a byte
// that says whether checksums are made right first (hardly an input has right ones), the tar.
#include <array>
#include <cstdlib>
#include <set>
#include <string>

#include "pipeline/source/format/tar.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/collected_samples.h"
#include "tests/support/tar_maker.h"

namespace {

void repair(std::string& tar) {
  for (size_t at = 0; at + 512 <= tar.size(); at += 512) {
    if (tar.compare(at + 257, 5, "ustar") == 0) stoker::repair_tar_header(tar, at);
  }
}

void check_name(const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos || name[0] == '/') std::abort();
  if (("/" + name + "/").find("/../") != std::string::npos) std::abort();
}

void check_samples(const stoker::CollectedSamples& found, size_t size) {
  std::set<std::string> names;
  int64_t end = 512;
  for (const auto& sample : found.samples) {
    check_name(sample.name);
    if (!names.insert(sample.name).second) std::abort();
    if (sample.found.storage != stoker::BlobStorage::bytes) std::abort();
    if (sample.found.offset % 512 != 0 || sample.found.offset < end) std::abort();
    if (sample.found.length < 0) std::abort();
    // The next image comes after this one and a header of its own; after all come two blocks.
    end = sample.found.offset + sample.found.length + 512;
    if (end + 512 > static_cast<int64_t>(size)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr std::array<const char*, 6> kTargets = {
      "", ",json:a.b", ",npy", ",json:a.b,b.npy", ",txt:text,json:a.b:text", ",npy:int32[]"};
  constexpr std::array<const char*, 6> kLabels = {"", "cls", "txt", "json:a.b", "folder", "none"};
  if (size < 2) return 0;
  std::string tar(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[1] % 2 != 0) repair(tar);
  BlobReader blob("a.tar", {reinterpret_cast<const uint8_t*>(tar.data()), tar.size()});
  const std::string label = kLabels[data[0] % kLabels.size()];
  const FieldChoice fields =
      fuzz_choice("", label + kTargets[data[0] / kLabels.size() % kTargets.size()]);
  CollectedSamples found;
  try {
    scan_tar(blob, fields, found);
  } catch (const BlobError&) {
    return 0;
  }
  check_samples(found, tar.size());
  for (const auto& sample : found.samples) check_fuzz_targets(sample.found_with_targets(), fields);
  return 0;
}
