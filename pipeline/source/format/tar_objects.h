// The objects in a tar shard: a .json member of each key, or a field of it. Owner: one scan.
// Threads: one at a time. Errors: BlobError for a shard that has no such member at all; a key
// without one, and everything that is wrong with the JSON, is a problem of that sample.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/found_objects.h"
#include "pipeline/source/format/tar_reader.h"

namespace stoker {

class TarObjects {
 public:
  // "json", "NAME.json", "json:FIELD" (a dot goes to an inner object). Throws for another field.
  TarObjects(BlobReader& blob, const ObjectField& wanted);

  bool is_wanted() const { return !extension_.empty(); }
  void begin_key();
  // Reads a member of the current key, if the objects are in it.
  void take(const TarMember& member, std::string_view name, std::string_view extension);
  // Returns the objects of the current key, valid until the next call; null if none are wanted.
  const FoundObjects* finish();
  // `extensions`: of the first key, for a message. Throws if no key had objects.
  void finish_all(const std::string& extensions) const;

 private:
  BlobReader& blob_;
  std::string extension_;  // in lower case; "": none are wanted
  FoundObjects found_;
  std::string member_;  // of the current key; "": there is none
  bool any_ = false;
};

}  // namespace stoker
