// One page of a list of objects, as ListObjectsV2 answers (Amazon S3 API Reference). A function of
// its argument. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/store/object_store.h"

namespace stoker {

struct ListPage {
  std::vector<StoredObject> objects;
  std::vector<std::string> folders;  // common prefixes
  bool is_last = true;
  std::string next;  // the token of the next page, if it is not the last
};

// Throws std::runtime_error for what is no such answer.
ListPage parse_list_page(std::string_view xml);

}  // namespace stoker
