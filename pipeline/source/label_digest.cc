#include "pipeline/source/label_digest.h"

#include <xxhash.h>

#include <array>

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
