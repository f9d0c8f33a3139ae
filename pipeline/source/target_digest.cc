#include "pipeline/source/target_digest.h"

#include <xxhash.h>

#include "pipeline/files/digest.h"

namespace stoker {

struct TargetDigest::State {
  using Hash = std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)>;
  std::vector<TargetColumn> columns;
  uint64_t others = 0;
  std::vector<Hash> hashes;  // of each column
};

TargetDigest::TargetDigest(std::vector<TargetColumn> columns, uint64_t others)
    : state_(std::make_unique<State>()) {
  state_->columns = std::move(columns);
  state_->others = others;
  for (size_t i = 0; i < state_->columns.size(); ++i) {
    state_->hashes.emplace_back(XXH3_createState(), XXH3_freeState);
    XXH3_64bits_reset(state_->hashes.back().get());
  }
}

TargetDigest::~TargetDigest() = default;

void TargetDigest::add(size_t column, std::span<const std::byte> values) {
  XXH3_64bits_update(state_->hashes[column].get(), values.data(), values.size());
}

uint64_t TargetDigest::value() const {
  if (state_->columns.empty()) return state_->others;
  std::string text = "stoker targets; source " + hex64(state_->others);
  for (size_t i = 0; i < state_->columns.size(); ++i) {
    text.append("; ").append(state_->columns[i].describe()).append(" ");
    text.append(hex64(XXH3_64bits_digest(state_->hashes[i].get())));
  }
  return text_digest(text);
}

}  // namespace stoker
