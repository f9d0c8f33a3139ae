// profile.html: one self-contained page about a profile, for a browser without a network. The
// template is profile_page.html, which draws from the JSON in it; the Python package fills the same
// template.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stoker {

// `profile` is from profile_json(); parts that it lacks are left out of the page. Its text is
// escaped so that it cannot end the <script> element. Names that are not UTF-8 show U+FFFD.
std::string profile_page(const nlohmann::ordered_json& profile);

}  // namespace stoker
