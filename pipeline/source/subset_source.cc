#include "pipeline/source/subset_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/random/permutation.h"
#include "pipeline/random/random_key.h"

namespace stoker {
namespace {

// Draw numbers of their own: a split is not the order of any epoch.
constexpr uint32_t kSplitAdd = 0x53504C00, kSplitMultiply = 0x53504C01;

IdList checked_ids(const Source& source, const std::vector<SampleId>& ids) {
  if (ids.empty()) {
    throw std::invalid_argument("SubsetSource: no ids are listed of a source of " +
                                std::to_string(source.size()) + " samples");
  }
  std::vector<bool> listed(static_cast<size_t>(source.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string problem = "SubsetSource: id " + std::to_string(ids[i]) + " at place " +
                                std::to_string(i) + " of " + std::to_string(ids.size());
    if (ids[i] < 0 || ids[i] >= source.size()) {
      throw std::invalid_argument(problem + ": the source has the samples 0 to " +
                                  std::to_string(source.size() - 1));
    }
    if (listed[static_cast<size_t>(ids[i])]) {
      throw std::invalid_argument(problem + ": it is listed before");
    }
    listed[static_cast<size_t>(ids[i])] = true;
  }
  return IdList(ids);
}

void check_shares(int64_t samples, const std::vector<double>& shares) {
  double sum = 0;
  for (const double share : shares) {
    if (!(share >= 0 && share <= 1)) {
      throw std::invalid_argument("random_split: a share is " + std::to_string(share) +
                                  ", must be 0 to 1");
    }
    sum += share;
  }
  if (std::abs(sum - 1) > 1e-9) {
    throw std::invalid_argument("random_split: the sum of " + std::to_string(shares.size()) +
                                " shares is " + std::to_string(sum) + ", must be 1");
  }
  if (samples < 0) {
    throw std::invalid_argument("random_split: samples is " + std::to_string(samples) +
                                ", must be 0 or more");
  }
}

std::vector<int64_t> split_sizes(int64_t samples, const std::vector<double>& shares) {
  std::vector<int64_t> sizes;
  int64_t left = samples;
  for (const double share : shares) {
    const double wanted = std::floor(static_cast<double>(samples) * share);
    sizes.push_back(std::min(left, static_cast<int64_t>(wanted)));
    left -= sizes.back();
  }
  for (size_t i = 0; left > 0; i = (i + 1) % sizes.size(), --left) ++sizes[i];
  return sizes;
}

}  // namespace

SubsetSource::SubsetSource(const Source& source, int64_t limit)
    : ForwardingSource(source), info_(source.info()) {
  if (limit > 0) info_.size = std::min(limit, info_.size);
  set_digests();
}

SubsetSource::SubsetSource(const Source& source, const std::vector<SampleId>& ids)
    : ForwardingSource(source), info_(source.info()), ids_(checked_ids(source, ids)) {
  info_.size = static_cast<int64_t>(ids.size());
  set_digests();
}

void SubsetSource::set_digests() {
  const bool is_listed = ids_.size() > 0;
  const std::string size = std::to_string(info_.size);
  const std::string ids = is_listed ? hex64(ids_.digest()) : "spread";
  if (is_listed) {
    info_.fingerprint = text_digest("stoker subset; source " + hex64(source_.fingerprint()) +
                                    "; ids " + size + " " + ids);
  } else {
    info_.fingerprint ^= static_cast<uint64_t>(source_.size() - info_.size) * 0x9e3779b97f4a7c15;
  }
  if (is_whole()) return;
  const auto digest_of_part = [&](const char* what, uint64_t digest) {
    return text_digest("stoker subset; " + std::string(what) + " " + hex64(digest) + "; ids " +
                       size + " " + ids);
  };
  if (!info_.targets.empty()) {
    info_.targets_digest = digest_of_part("targets", source_.targets_digest());
  }
  if (info_.annotations.any()) {
    info_.annotations.digest = digest_of_part("annotations", source_.annotations().digest);
  }
}

uint64_t SubsetSource::labels_digest() const {
  return is_whole() ? source_.labels_digest() : Source::labels_digest();
}

std::vector<SampleId> ids_with_labels(const Source& source, const std::set<int>& labels) {
  const auto classes = static_cast<int>(source.class_names().size());
  for (const int label : labels) {
    if (label >= 0 && label < classes) continue;
    throw std::invalid_argument("ids_with_labels: label " + std::to_string(label) +
                                " of a source of " + std::to_string(classes) + " classes");
  }
  std::vector<SampleId> ids;
  for (SampleId id = 0; id < source.size(); ++id) {
    if (labels.contains(source.label(id))) ids.push_back(id);
  }
  return ids;
}

std::vector<std::vector<SampleId>> random_split(int64_t samples, const std::vector<double>& shares,
                                                uint64_t seed) {
  check_shares(samples, shares);
  std::vector<std::vector<SampleId>> lists;
  if (samples == 0) return std::vector<std::vector<SampleId>>(shares.size());
  const RandomKey random(seed, 0, -1);
  const Permutation order(samples, {random.bits(kSplitAdd), random.bits(kSplitMultiply) | 1});
  int64_t position = 0;
  for (const int64_t size : split_sizes(samples, shares)) {
    std::vector<SampleId>& list = lists.emplace_back();
    list.reserve(static_cast<size_t>(size));
    for (const int64_t end = position + size; position < end; ++position) {
      list.push_back(order.at(position));
    }
    std::sort(list.begin(), list.end());
  }
  return lists;
}

}  // namespace stoker
