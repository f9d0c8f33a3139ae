#include "python/core/source_views.h"

#include "pipeline/source/concat_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/target_source.h"

namespace stoker::python {
namespace {

// A view and the sources that it shows, which must outlive it: members end in reverse order.
template <class View>
struct KeptView {
  std::vector<std::shared_ptr<const Source>> shown;
  View view;
};

template <class View>
std::shared_ptr<const Source> view_that_keeps(std::shared_ptr<const KeptView<View>> kept) {
  const View* view = &kept->view;
  return {std::move(kept), view};
}

}  // namespace

std::shared_ptr<const Source> subset(std::shared_ptr<const Source> source,
                                     const std::vector<SampleId>& ids) {
  const Source& shown = *source;
  return view_that_keeps(std::shared_ptr<const KeptView<SubsetSource>>(
      new KeptView<SubsetSource>{{std::move(source)}, SubsetSource(shown, ids)}));
}

std::shared_ptr<const Source> concat(const std::vector<std::shared_ptr<const Source>>& sources) {
  std::vector<const Source*> shown;
  for (const auto& source : sources) shown.push_back(source.get());
  return view_that_keeps(std::shared_ptr<const KeptView<ConcatSource>>(
      new KeptView<ConcatSource>{sources, ConcatSource(std::move(shown))}));
}

std::shared_ptr<const Source> with_targets(std::shared_ptr<const Source> source,
                                           std::vector<TargetTable> tables) {
  const Source& shown = *source;
  return view_that_keeps(std::shared_ptr<const KeptView<TargetSource>>(
      new KeptView<TargetSource>{{std::move(source)}, TargetSource(shown, std::move(tables))}));
}

}  // namespace stoker::python
