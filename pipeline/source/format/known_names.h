// Names that mean something in a data set: the parts that a Split chooses, as folders or as first
// words of shards' names, and the extensions of image files. Pure functions.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr std::array<std::string_view, 1> kTrainNames = {"train"};
// Among several, the first one that exists is the test part.
inline constexpr std::array<std::string_view, 3> kTestNames = {"test", "val", "validation"};

// Returns the extension in lower case, with its dot; "" if there is none.
std::string extension_of(std::string_view name);
// Those of an image folder, which are torchvision's.
bool is_image_extension(std::string_view extension);
// Those of a tar shard: also the other formats that are decoded, as `stoker pack` names them.
bool is_shard_image_extension(std::string_view extension);

}  // namespace stoker
