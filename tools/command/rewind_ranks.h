// The samples of a run in the order in which somebody should look at them, as `stoker rewind
// --rank` lists them. Errors: std::invalid_argument for an unknown ranking.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"
#include "train/run/sample_history.h"

namespace stoker {

enum class RankKind : uint8_t { hardest, never, duplicates };
RankKind parse_rank(const std::string& text);

// Samples that a ranking names, the first one first.
struct Ranking {
  std::string title;
  std::vector<SampleId> samples{};
  std::vector<SampleId> same_as{};  // of duplicates: the first sample with these bytes
};
Ranking rank_hardest(const std::vector<SampleHistory>& histories);
Ranking rank_never_learned(const std::vector<SampleHistory>& histories);
// Samples whose bytes, as the source has them, another one had before: by XXH3 of all samples,
// which `threads` read. Samples that cannot be read are left out.
Ranking rank_duplicates(const Source& source, int threads);

// `histories` may be empty.
std::string ranking_text(const Ranking& ranking, const std::vector<SampleHistory>& histories,
                         const Source& source, size_t most);
// A list for --subset, of these samples or of all others.
std::string list_of(const Ranking& ranking, const Source& source);
std::string list_of_others(const Ranking& ranking, const Source& source);

}  // namespace stoker
