#include "pipeline/source/source_digests.h"

#include <xxhash.h>

#include <array>

#include "pipeline/files/digest.h"
#include "pipeline/source.h"

namespace stoker {

struct LabelDigest::State {
  // Labels are collected here first: a call of XXH3 for each would take longer than the digest.
  std::array<int32_t, 1024> pending;
  size_t count = 0;
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash{XXH3_createState(),
                                                                       XXH3_freeState};

  void flush() {
    XXH3_64bits_update(hash.get(), pending.data(), count * sizeof(int32_t));
    count = 0;
  }
};

LabelDigest::LabelDigest() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(state_->hash.get());
}

LabelDigest::~LabelDigest() = default;

void LabelDigest::add(int32_t label, int64_t count) {
  State& state = *state_;
  for (; count > 0; --count) {
    if (state.count == state.pending.size()) state.flush();
    state.pending[state.count++] = label;
  }
}

uint64_t LabelDigest::value() const {
  state_->flush();
  return XXH3_64bits_digest(state_->hash.get());
}

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

// With its length, so that two captions are not one.
void TargetDigest::add_piece(size_t column, std::span<const std::byte> values, bool is_problem) {
  const uint64_t length = values.size() | uint64_t{is_problem} << 63;
  add(column, std::as_bytes(std::span(&length, 1)));
  add(column, values);
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

const SampleStorage& Source::storage() const {
  static const SampleStorage none;
  return none;
}

uint64_t Source::labels_digest() const {
  if (!knows_labels()) return fingerprint();
  LabelDigest digest;
  for (SampleId id = 0; id < size(); ++id) digest.add(label(id));
  return digest.value();
}

}  // namespace stoker
