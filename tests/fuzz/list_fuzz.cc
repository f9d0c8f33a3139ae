// Lists of paths and labels: BlobError, or samples that are files, each with a path that can be one
// and all with labels of one kind. Input: a byte that chooses the form, a byte that chooses the
// fields, the list.
#include <array>
#include <cstdlib>
#include <string>

#include "pipeline/source/format/list.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/collected_samples.h"

namespace {

void check_samples(const stoker::CollectedSamples& found, size_t size, bool has_labels) {
  size_t bytes = 0;
  for (const auto& sample : found.samples) {
    if (sample.name.empty() || sample.name.size() > 4095) std::abort();
    if (sample.name.find('\0') != std::string::npos) std::abort();
    if (sample.found.storage != stoker::BlobStorage::file) std::abort();
    if (sample.found.offset != 0 || sample.found.length != 0) std::abort();
    const bool is_text = sample.label.starts_with("text ");
    if (is_text != found.samples[0].label.starts_with("text ")) std::abort();
    if ((sample.label == "none") == has_labels) std::abort();
    if (is_text && (sample.label.size() == 5 || sample.label.find('\0') != std::string::npos)) {
      std::abort();
    }
    bytes += sample.name.size();
  }
  // The parts of paths are in the list.
  if (bytes > size) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr std::array<const char*, 4> kNames = {"l.csv", "l.tsv", "l.jsonl", "l.ndjson"};
  const std::array<FieldChoice, 6> fields = {fuzz_choice("", ""),       fuzz_choice("", "none"),
                                             fuzz_choice("a", ""),      fuzz_choice("a", "b"),
                                             fuzz_choice("a", "b,c,d"), fuzz_choice("", "none,c")};
  if (size < 2) return 0;
  const FieldChoice& choice = fields[data[1] % fields.size()];
  BlobReader blob(kNames[data[0] % kNames.size()], {data + 2, size - 2});
  CollectedSamples found;
  try {
    scan_list(blob, choice, found);
  } catch (const BlobError&) {
    return 0;
  }
  check_samples(found, size, choice.label != "none");
  for (const auto& sample : found.samples) check_fuzz_targets(sample.found_with_targets(), choice);
  return 0;
}
