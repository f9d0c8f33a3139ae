#include "pipeline/augment/timm_policies.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

namespace stoker {
namespace {

using Op = TimmOp;

// The sets of timm's RandAugment, in its order, with their weights.
constexpr Op kPlainOps[] = {Op::auto_contrast, Op::equalize,    Op::invert,       Op::rotate,
                            Op::posterize,     Op::solarize,    Op::solarize_add, Op::color,
                            Op::contrast,      Op::brightness,  Op::sharpness,    Op::shear_x,
                            Op::shear_y,       Op::translate_x, Op::translate_y};
constexpr Op kIncreasing[] = {Op::auto_contrast,
                              Op::equalize,
                              Op::invert,
                              Op::rotate,
                              Op::posterize_increasing,
                              Op::solarize_increasing,
                              Op::solarize_add,
                              Op::color_increasing,
                              Op::contrast_increasing,
                              Op::brightness_increasing,
                              Op::sharpness_increasing,
                              Op::shear_x,
                              Op::shear_y,
                              Op::translate_x,
                              Op::translate_y};
constexpr Op kThree[] = {Op::solarize_increasing, Op::desaturate, Op::gaussian_blur};
constexpr Op kWeightedThree[] = {Op::solarize_increasing,
                                 Op::desaturate,
                                 Op::gaussian_blur,
                                 Op::rotate,
                                 Op::shear_x,
                                 Op::shear_y,
                                 Op::posterize_increasing,
                                 Op::auto_contrast,
                                 Op::color_increasing,
                                 Op::sharpness_increasing,
                                 Op::contrast_increasing,
                                 Op::brightness_increasing,
                                 Op::equalize,
                                 Op::invert};
constexpr Op kWeighted[] = {Op::rotate,
                            Op::shear_x,
                            Op::shear_y,
                            Op::translate_x,
                            Op::translate_y,
                            Op::color_increasing,
                            Op::sharpness_increasing,
                            Op::auto_contrast,
                            Op::solarize_increasing,
                            Op::solarize_add,
                            Op::contrast_increasing,
                            Op::brightness_increasing,
                            Op::equalize,
                            Op::posterize_increasing,
                            Op::invert};
constexpr Op kMixOps[] = {Op::auto_contrast,
                          Op::color_increasing,
                          Op::contrast_increasing,
                          Op::brightness_increasing,
                          Op::sharpness_increasing,
                          Op::equalize,
                          Op::rotate,
                          Op::posterize_increasing,
                          Op::solarize_increasing,
                          Op::shear_x,
                          Op::shear_y,
                          Op::translate_x,
                          Op::translate_y};
constexpr double kThreeWeights[] = {6, 6, 6, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr double kOpWeights[] = {3,    2,    2,    1,    1,    0.25, 0.25, 0.25,
                                 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05};

// The policy of EfficientNet's training on TPUs.
constexpr TimmPair kV0[] = {
    {{{Op::equalize, 0.8, 1}, {Op::shear_y, 0.8, 4}}},
    {{{Op::color, 0.4, 9}, {Op::equalize, 0.6, 3}}},
    {{{Op::color, 0.4, 1}, {Op::rotate, 0.6, 8}}},
    {{{Op::solarize, 0.8, 3}, {Op::equalize, 0.4, 7}}},
    {{{Op::solarize, 0.4, 2}, {Op::solarize, 0.6, 2}}},
    {{{Op::color, 0.2, 0}, {Op::equalize, 0.8, 8}}},
    {{{Op::equalize, 0.4, 8}, {Op::solarize_add, 0.8, 3}}},
    {{{Op::shear_x, 0.2, 9}, {Op::rotate, 0.6, 8}}},
    {{{Op::color, 0.6, 1}, {Op::equalize, 1, 2}}},
    {{{Op::invert, 0.4, 9}, {Op::rotate, 0.6, 0}}},
    {{{Op::equalize, 1, 9}, {Op::shear_y, 0.6, 3}}},
    {{{Op::color, 0.4, 7}, {Op::equalize, 0.6, 0}}},
    {{{Op::posterize, 0.4, 6}, {Op::auto_contrast, 0.4, 7}}},
    {{{Op::solarize, 0.6, 8}, {Op::color, 0.6, 9}}},
    {{{Op::solarize, 0.2, 4}, {Op::rotate, 0.8, 9}}},
    {{{Op::rotate, 1, 7}, {Op::translate_y, 0.8, 9}}},
    {{{Op::shear_x, 0, 0}, {Op::solarize, 0.8, 4}}},
    {{{Op::shear_y, 0.8, 0}, {Op::color, 0.6, 4}}},
    {{{Op::color, 1, 0}, {Op::rotate, 0.6, 2}}},
    {{{Op::equalize, 0.8, 4}, {Op::equalize, 0, 8}}},
    {{{Op::equalize, 1, 4}, {Op::auto_contrast, 0.6, 2}}},
    {{{Op::shear_y, 0.4, 7}, {Op::solarize_add, 0.6, 7}}},
    {{{Op::posterize, 0.8, 2}, {Op::solarize, 0.6, 10}}},
    {{{Op::solarize, 0.6, 8}, {Op::equalize, 0.6, 1}}},
    {{{Op::color, 0.8, 6}, {Op::rotate, 0.4, 5}}},
};
// ImageNet's policy (Cubuk et al. 2018, "AutoAugment", table 9).
constexpr TimmPair kOriginal[] = {
    {{{Op::posterize_original, 0.4, 8}, {Op::rotate, 0.6, 9}}},
    {{{Op::solarize, 0.6, 5}, {Op::auto_contrast, 0.6, 5}}},
    {{{Op::equalize, 0.8, 8}, {Op::equalize, 0.6, 3}}},
    {{{Op::posterize_original, 0.6, 7}, {Op::posterize_original, 0.6, 6}}},
    {{{Op::equalize, 0.4, 7}, {Op::solarize, 0.2, 4}}},
    {{{Op::equalize, 0.4, 4}, {Op::rotate, 0.8, 8}}},
    {{{Op::solarize, 0.6, 3}, {Op::equalize, 0.6, 7}}},
    {{{Op::posterize_original, 0.8, 5}, {Op::equalize, 1, 2}}},
    {{{Op::rotate, 0.2, 3}, {Op::solarize, 0.6, 8}}},
    {{{Op::equalize, 0.6, 8}, {Op::posterize_original, 0.4, 6}}},
    {{{Op::rotate, 0.8, 8}, {Op::color, 0.4, 0}}},
    {{{Op::rotate, 0.4, 9}, {Op::equalize, 0.6, 2}}},
    {{{Op::equalize, 0, 7}, {Op::equalize, 0.8, 8}}},
    {{{Op::invert, 0.6, 4}, {Op::equalize, 1, 8}}},
    {{{Op::color, 0.6, 4}, {Op::contrast, 1, 8}}},
    {{{Op::rotate, 0.8, 8}, {Op::color, 1, 2}}},
    {{{Op::color, 0.8, 8}, {Op::solarize, 0.8, 7}}},
    {{{Op::sharpness, 0.4, 7}, {Op::invert, 0.6, 8}}},
    {{{Op::shear_x, 0.6, 5}, {Op::equalize, 1, 9}}},
    {{{Op::color, 0.4, 0}, {Op::equalize, 0.6, 3}}},
    {{{Op::equalize, 0.4, 7}, {Op::solarize, 0.2, 4}}},
    {{{Op::solarize, 0.6, 5}, {Op::auto_contrast, 0.6, 5}}},
    {{{Op::invert, 0.6, 4}, {Op::equalize, 1, 8}}},
    {{{Op::color, 0.6, 4}, {Op::contrast, 1, 8}}},
    {{{Op::equalize, 0.8, 8}, {Op::equalize, 0.6, 3}}},
};
// 3-Augment (Touvron et al. 2022, "DeiT III"): one operation, and none behind it.
constexpr TimmPair kThreeAugment[] = {
    {{{Op::solarize, 1, 5}, {Op::auto_contrast, 0, 0}}},
    {{{Op::desaturate, 1, 10}, {Op::auto_contrast, 0, 0}}},
    {{{Op::gaussian_blur_random, 1, 10}, {Op::auto_contrast, 0, 0}}},
};

}  // namespace

TimmSet timm_set(const std::string& name, bool increasing) {
  if (name == "weights") return {kWeighted, kOpWeights};
  if (name == "3aw") return {kWeightedThree, kThreeWeights};
  if (name == "3a") return {kThree, {}};
  return {increasing ? kIncreasing : kPlainOps, {}};
}

std::span<const TimmOp> timm_mix_operations() { return kMixOps; }

std::vector<TimmPair> timm_policy(const std::string& name) {
  std::span<const TimmPair> pairs = kThreeAugment;
  if (name.starts_with("v0")) pairs = kV0;
  if (name.starts_with("original")) pairs = kOriginal;
  std::vector<TimmPair> policy(pairs.begin(), pairs.end());
  if (!name.ends_with("r")) return policy;
  for (TimmPair& pair : policy) {
    for (TimmChoice& choice : pair) {
      const bool posterizes = choice.op == Op::posterize || choice.op == Op::posterize_original;
      if (posterizes) choice.op = Op::posterize_increasing;
    }
  }
  return policy;
}

namespace {

constexpr const char* kSchemes[] = {"rand", "augmix", "original", "originalr", "v0", "v0r", "3a"};
constexpr const char* kSets[] = {"weights", "3a", "3aw"};
constexpr double kAnyDeviation = 1e9;

template <size_t kCount>
bool is_one_of(const std::string& word, const char* const (&words)[kCount]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Which keys a scheme has, and what they must be.
struct Key {
  const char* name;
  const char* schemes;  // by their kinds: r(and), m(ix), a(uto)
  double low, high;
  bool whole;
};
constexpr Key kKeys[] = {{"m", "rm", 0, 100, true},
                         {"n", "r", 1, 16, true},
                         {"p", "r", 0, 1, false},
                         {"mstd", "rma", 0, kAnyDeviation, false},
                         {"mmax", "r", 1, 100, true},
                         {"inc", "r", 0, 1, true},
                         {"w", "m", 1, kMaxTimmChains, true},
                         {"d", "m", 1, 16, true},
                         {"a", "m", 0, 1000, false}};

class ConfigReader {
 public:
  ConfigReader(const Arguments& arguments, const char* name) : arguments_(arguments), name_(name) {}

  TimmConfig read() {
    const std::string& text = arguments_.word(name_);
    size_t end = text.find('-');
    config_.scheme = text.substr(0, end);
    if (!is_one_of(config_.scheme, kSchemes)) {
      refuse("rand, augmix, original, originalr, v0, v0r or 3a, and then sections as in -m9");
    }
    const bool is_mix = config_.scheme == "augmix";
    if (is_mix) config_.magnitude = {3, std::numeric_limits<double>::infinity(), 10};
    kind_ = is_mix ? 'm' : config_.scheme == "rand" ? 'r' : 'a';
    while (end != std::string::npos) {
      const size_t begin = end + 1;
      end = text.find('-', begin);
      section(text.substr(begin, end - begin));
    }
    return config_;
  }

 private:
  [[noreturn]] void refuse(const std::string& rule) const { arguments_.refuse(name_, rule); }

  void section(const std::string& text) {
    if (kind_ == 'r' && text.starts_with("t")) return take_set(text.substr(1));
    const size_t digits = std::min(text.find_first_of("0123456789"), text.size());
    const std::string key = text.substr(0, digits);
    const auto found = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& each) {
      return key == each.name && std::string(each.schemes).find(kind_) != std::string::npos;
    });
    if (found == std::end(kKeys)) {
      refuse("without the section '" + text + "': " + config_.scheme + " has " + keys());
    }
    if (!seen_.insert(key).second) refuse("with " + key + " only once");
    set(key, number(*found, text.substr(digits)));
  }

  double number(const Key& key, const std::string& text) const {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool is_number = error == std::errc() && stop == end;
    if (!is_number || value < key.low || value > key.high ||
        (key.whole && value != std::floor(value))) {
      refuse(std::string("with ") + (key.whole ? "a whole number" : "a number") + " from " +
             number_text(key.low) + " to " + number_text(key.high) + " behind " + key.name);
    }
    return value;
  }

  void set(const std::string& key, double value) {
    const int whole = static_cast<int>(value);
    if (key == "m") config_.magnitude.mean = value;
    if (key == "mstd") take_deviation(value);
    if (key == "mmax") config_.magnitude.most = value;
    if (key == "n") config_.layers = whole;
    if (key == "p") config_.probability = value;
    if (key == "inc") config_.increasing = whole == 1;
    if (key == "w") config_.width = whole;
    if (key == "d") config_.depth = whole;
    if (key == "a" && value == 0) refuse("with a number above 0 behind a");
    if (key == "a") config_.alpha = value;
  }

  void take_deviation(double value) {
    const bool evenly = kind_ == 'r' && value > 100;
    config_.magnitude.deviation = evenly ? std::numeric_limits<double>::infinity() : value;
  }

  void take_set(const std::string& set) {
    if (!is_one_of(set, kSets)) refuse("with weights, 3a or 3aw behind t");
    if (!seen_.insert("t").second) refuse("with t only once");
    config_.set = set;
  }

  std::string keys() const {
    std::string all;
    for (const Key& key : kKeys) {
      if (std::string(key.schemes).find(kind_) == std::string::npos) continue;
      all.append(all.empty() ? "" : ", ").append(key.name);
    }
    return kind_ == 'r' ? all + ", t" : all;
  }

  const Arguments& arguments_;
  const char* const name_;
  TimmConfig config_;
  char kind_ = 'r';
  std::set<std::string> seen_;
};

}  // namespace

TimmConfig timm_config(const Arguments& arguments, const char* name) {
  return ConfigReader(arguments, name).read();
}

}  // namespace stoker
