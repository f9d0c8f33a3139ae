#include "tools/command/rewind_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/printable_name.h"
#include "staging/threads.h"
#include "tools/data/text_table.h"

namespace stoker {
namespace {

bool is_harder(const SampleHistory& a, const SampleHistory& b) {
  const auto loss = [](const SampleHistory& each) {
    return std::isnan(each.loss()) ? INFINITY : each.loss();
  };
  return loss(a) > loss(b);
}

template <typename Wanted>
std::vector<SampleId> by_loss(const std::vector<SampleHistory>& histories, const Wanted& wanted) {
  std::vector<SampleId> ids;
  for (size_t id = 0; id < histories.size(); ++id) {
    if (wanted(histories[id])) ids.push_back(static_cast<SampleId>(id));
  }
  std::ranges::stable_sort(ids, [&](SampleId a, SampleId b) {
    return is_harder(histories[static_cast<size_t>(a)], histories[static_cast<size_t>(b)]);
  });
  return ids;
}

struct SampleDigest {
  uint64_t digest = 0;  // 0: it cannot be read
  SampleId id = 0;
  auto operator<=>(const SampleDigest&) const = default;
};

std::vector<SampleDigest> digests_of(const Source& source, int threads) {
  std::vector<SampleDigest> digests(static_cast<size_t>(source.size()));
  std::atomic<SampleId> next{0};
  run_threads("reading", threads, [&](int64_t) {
    std::vector<uint8_t> buffer;
    for (SampleId id = next++; id < source.size(); id = next++) {
      std::span<const uint8_t> bytes;
      const bool read = source.read(id, buffer, bytes).ok;
      digests[static_cast<size_t>(id)] = {read ? pixel_digest(bytes) : 0, id};
    }
  });
  std::ranges::sort(digests);
  return digests;
}

std::string lines_of_names(const std::vector<SampleId>& ids, const Source& source) {
  std::string text;
  for (const SampleId id : ids) text += source.name(id) + "\n";
  return text;
}

}  // namespace

RankKind parse_rank(const std::string& text) {
  if (text == "hardest") return RankKind::hardest;
  if (text == "never") return RankKind::never;
  if (text == "duplicates") return RankKind::duplicates;
  throw std::invalid_argument("--rank: '" + text + "' is none of hardest, never, duplicates");
}

Ranking rank_hardest(const std::vector<SampleHistory>& histories) {
  Ranking ranking{"samples by their mean loss over the run"};
  ranking.samples = by_loss(histories, [](const SampleHistory& each) { return each.seen > 0; });
  return ranking;
}

Ranking rank_never_learned(const std::vector<SampleHistory>& histories) {
  Ranking ranking{"samples that came more than once and were never right"};
  ranking.samples = by_loss(histories, [](const SampleHistory& e) { return e.never_learned(); });
  return ranking;
}

Ranking rank_duplicates(const Source& source, int threads) {
  Ranking ranking{"samples whose bytes another one had before (XXH3 of the bytes as stored)"};
  const std::vector<SampleDigest> digests = digests_of(source, threads);
  std::vector<std::pair<SampleId, SampleId>> copies;
  size_t first = 0;
  for (size_t i = 1; i < digests.size(); ++i) {
    if (digests[i].digest != digests[first].digest) first = i;
    if (i == first || digests[i].digest == 0) continue;
    copies.emplace_back(digests[i].id, digests[first].id);
  }
  std::ranges::sort(copies);
  for (const auto& [copy, original] : copies) {
    ranking.samples.push_back(copy);
    ranking.same_as.push_back(original);
  }
  return ranking;
}

std::string ranking_text(const Ranking& ranking, const std::vector<SampleHistory>& histories,
                         const Source& source, size_t most) {
  const auto name = [&](SampleId id) { return printable_name(source.name(id)); };
  const auto label = [&](SampleId id) {
    const auto at = static_cast<size_t>(source.label(id));
    return at < source.class_names().size() ? valid_text(source.class_names()[at]) : "";
  };
  const bool copies = !ranking.same_as.empty();
  std::vector<std::vector<std::string>> lines = {{"sample", "label", "name"}};
  if (copies) lines[0] = {"sample", "label", "name", "same as", "label of that"};
  if (!histories.empty()) lines[0] = {"mean loss", "right", "forgotten", "sample", "label", "name"};
  const size_t count = std::min(most, ranking.samples.size());
  for (size_t i = 0; i < count; ++i) {
    const SampleId id = ranking.samples[i];
    std::vector<std::string> line;
    if (!histories.empty()) {
      const SampleHistory& history = histories[static_cast<size_t>(id)];
      line = {fmt::format("{:.4g}", history.loss()),
              fmt::format("{} of {}", history.right, history.seen),
              std::to_string(history.forgotten)};
    }
    line.insert(line.end(), {std::to_string(id), label(id), name(id)});
    if (copies) line.insert(line.end(), {name(ranking.same_as[i]), label(ranking.same_as[i])});
    lines.push_back(line);
  }
  std::string text =
      fmt::format("{} of {} {}\n", ranking.samples.size(), source.size(), ranking.title);
  if (count > 0) text += table_text(lines);
  if (count < ranking.samples.size()) {
    text += fmt::format("and {} more\n", ranking.samples.size() - count);
  }
  return text;
}

std::string list_of(const Ranking& ranking, const Source& source) {
  return lines_of_names(ranking.samples, source);
}

std::string list_of_others(const Ranking& ranking, const Source& source) {
  std::vector<bool> named(static_cast<size_t>(source.size()));
  for (const SampleId id : ranking.samples) named[static_cast<size_t>(id)] = true;
  std::vector<SampleId> others;
  for (SampleId id = 0; id < source.size(); ++id) {
    if (!named[static_cast<size_t>(id)]) others.push_back(id);
  }
  return lines_of_names(others, source);
}

}  // namespace stoker
