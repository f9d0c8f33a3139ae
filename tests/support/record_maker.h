// Shards of every format with the same objects in their records, for tests to compare what sources
// read from them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stoker {

struct MadeObject {
  std::array<double, 4>
      box{};  // x, y, width, height; multiples of 1/4 have the same bits everywhere
  int64_t label = 0;
  int64_t id = 0;
  double area = 0;
  bool is_crowd = false;
};
struct MadeRecord {
  std::string image;  // bytes
  std::vector<MadeObject> objects;
};

// The forms of JSON that a member or a column may have.
std::string json_list(const std::vector<MadeObject>& objects);   // COCO's: a list of objects
std::string json_lists(const std::vector<MadeObject>& objects);  // an object of lists

struct MadeShards {
  std::string name;     // of a test: "TarOfLists"
  std::string file;     // "x.tar"
  std::string objects;  // SourceOptions::objects_from
  std::string content;
};
// Each has these records. Pictures have 64 x 32 pixels, where a format must say so. `broken`: the
// record whose first box has three numbers (or a negative width, where a box cannot be so), -1:
// none.
std::vector<MadeShards> made_records(const std::vector<MadeRecord>& records, int broken = -1);

}  // namespace stoker
