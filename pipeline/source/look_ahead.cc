#include "pipeline/source/look_ahead.h"

namespace stoker {

std::unique_ptr<LookAhead> look_ahead_in_order(const Source& source) {
  return source.storage().look_ahead(
      [next = SampleId{0}, size = source.size()](SampleId& id) mutable {
        if (next >= size) return NextSample::end;
        id = next++;
        return NextSample::found;
      });
}

}  // namespace stoker
