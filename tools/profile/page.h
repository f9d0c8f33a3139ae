// profile.html: one self-contained page about a profile, for a browser without a network. The page
// is profile_page.html, which draws from the JSON in it; the Python package fills the same file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stoker {

// `profile` as profile_json() gives it; parts that it lacks are left out of the page. Nothing in it
// can end the script that holds it. Names that are not UTF-8 show U+FFFD.
std::string profile_page(const nlohmann::ordered_json& profile);

}  // namespace stoker
