// The data of the feed benches: the user's, or pictures that are drawn for them, from files or from
// memory.
#pragma once

#include <memory>
#include <string>

#include "pipeline/source.h"
#include "tools/option/augment_choice.h"
#include "tools/option/feed_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

struct BenchDataOptions {
  DataOptions data;
  AugmentChoice augment;
  bool in_memory = false;
};

void add_bench_data_options(CLI::App& app, BenchDataOptions& options);

class BenchData {
 public:
  // Without options.data.data, draws 64 JPEGs of 500 x 375 into a temporary folder, which the
  // destructor removes. Throws what open_data() throws.
  explicit BenchData(const BenchDataOptions& options);
  ~BenchData();
  BenchData(const BenchData&) = delete;
  BenchData& operator=(const BenchData&) = delete;

  const Source& source() const { return memory_ ? *memory_ : *files_; }
  // Returns text for the report's settings: the folder, or what was drawn, and whether it is in
  // memory.
  std::string describe() const;

 private:
  const std::string drawn_;  // the temporary folder; "": none
  std::unique_ptr<Source> files_, memory_;
};

}  // namespace stoker
