// The targets of a tar shard: fields of the .json member of each key, its .npy members, tensors of
// .safetensors members, and members that are texts. Owner: one scan. Threads: one at a time.
// Errors: BlobError with the member's name; what is wrong with a target that varies is its sample's
// problem.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"
#include "pipeline/source/format/tar_reader.h"

namespace stoker {

// Before the name of a field that is in a .json member.
inline constexpr std::string_view kJsonPrefix = "json:";
// Returns where the name of a tensor begins in a field: "latent.safetensors:x"; npos: it names
// none.
size_t tensor_at(std::string_view field);

class TarTargets {
 public:
  // Throws for a field that is none of these.
  TarTargets(BlobReader& blob, const FieldChoice& fields);

  void begin_key();
  // Reads a member of the current key, if targets are in it; the others are left alone.
  void take(const TarMember& member, std::string_view name, std::string_view extension);
  // Returns the numbers of the current key, valid until the next call. The image's name and the
  // offset of the key's first header are for messages.
  std::span<const FoundTarget> finish(std::string_view image, int64_t key_at);

 private:
  // A member of the current key: .json, or the .npy or text of one target.
  struct Part {
    bool found = false;
    std::string name;
    int64_t data_at = 0;
    std::string problem;  // "": it was read
  };
  void set(Part& part, const TarMember& member, std::string_view name) const;
  void read_json(const TarMember& member);
  std::string read_member(const TarMember& member, size_t target);
  void finish_json();
  void finish_json_field(const nlohmann::json& json, size_t target);
  bool is_json(size_t target) const;
  void refuse(const Part& part, size_t target, const std::string& problem);

  BlobReader& blob_;
  const std::vector<TargetField> fields_;
  // The extension of each target's member, in lower case, and of a tensor its name.
  std::vector<std::string> extensions_, tensors_;
  bool wants_json_ = false;
  Part json_part_;
  std::string json_text_;
  std::vector<Part> own_parts_;  // of each target that has a member of its own
  std::vector<FoundTarget> found_;
};

}  // namespace stoker
