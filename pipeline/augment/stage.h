// A stage of an augmentation: a name, parameters, and a function that draws what is done to one
// sample. A list of stages is what users write (grammar.h). Each stage is one file in stage/, and
// one line of stages.h.
//
// Values that are never changed after construction. Threads: drawing from any. Errors:
// std::invalid_argument that names the stage, the argument and its value.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/augment/combination.h"
#include "pipeline/augment/draws.h"
#include "pipeline/augment/grammar.h"

namespace stoker {

class StageList;
struct StageType;
using SharedStages = std::shared_ptr<const StageList>;

// The kinds of arguments.
enum class ArgumentKind : uint8_t {
  real,    // a number
  whole,   // a whole number
  range,   // (least, most); one number is both
  spread,  // as ColorJitter's: (least, most), or s for (max(0, 1 - s), 1 + s)
  size,    // height and width in pixels, one number for both; may be left out: the row's size
  sides,   // one number: the short side; (height, width): both
  colour,  // a grey or (red, green, blue), 0 to 255
  reals,   // any number of numbers
  choice,  // one of some words
  flag,    // True or False
  text,    // in quotes
  stages,  // lists of stages, as many as the limits say
};

struct Parameter {
  const char* name;
  ArgumentKind kind;
  // In the grammar; null: it must be given. "" for a size, numbers or a text that may be left out.
  const char* otherwise;
  double low = -1e9, high = 1e9;  // of each number, inclusive; of stages: how many lists
  std::span<const char* const> choices{};
};

// The probability with which a stage is applied: the last parameter of most.
inline constexpr Parameter kProbability{"p", ArgumentKind::real, "1", 0, 1};

// A stage's arguments, checked against its parameters, by their names.
class Arguments {
 public:
  // `type` outlives it.
  Arguments(const StageType& type, const StageText& text);

  double real(const char* name) const { return numbers(name)[0]; }
  int whole(const char* name) const { return static_cast<int>(numbers(name)[0]); }
  std::array<double, 2> range(const char* name) const;
  // A `spread` around `middle`: (max(lowest, middle - s), middle + s) for one number s.
  std::array<double, 2> spread(const char* name, double middle, double lowest) const;
  std::optional<Size> size(const char* name) const;
  Rgb colour(const char* name) const;
  const std::vector<double>& numbers(const char* name) const { return find(name).numbers; }
  uint8_t choice(const char* name) const;  // index into Parameter::choices
  bool flag(const char* name) const { return numbers(name)[0] != 0; }
  const std::string& word(const char* name) const { return find(name).word; }
  const std::vector<SharedStages>& stages(const char* name) const { return find(name).stages; }

  // Throws that `name` has this value, and the rule that it breaks.
  [[noreturn]] void refuse(const char* name, const std::string& rule) const;
  // "random_resized_crop(224, scale=(0.35, 1))": without what is as by default.
  std::string describe() const;
  // The same with the identities of inner lists.
  std::string identity() const;

 private:
  friend class StageMaker;
  struct Setting {
    std::vector<double> numbers{};
    std::string word{};
    std::vector<SharedStages> stages{};
    bool given = false;
  };
  const Setting& find(const char* name) const;
  void set(const Parameter& parameter, const ArgumentText& text, Setting& setting) const;
  std::string value_text(const Parameter& parameter, const Setting& setting,
                         bool identity = false) const;
  std::string text(bool identity) const;

  const StageType* type_;
  std::vector<Setting> settings_;  // one for each parameter
};

// The numbers of one stage for one sample.
struct StageKey {
  uint64_t salt = 0;          // of Draws::key()
  RandomKey key = {0, 0, 0};  // the stage's own for this sample
};

struct StageActions {
  // Null: the stage combines pictures.
  std::function<void(const StageKey& key, Draws& draws)> draw;
  // The size after the stage, where it is the same for every sample. `before`: the same before it.
  // Throws if the stage can never work there. Null: the size stays.
  std::function<std::optional<Size>(std::optional<Size> before, Size output)> size{};
  // Names what the pixels depend on, if it is not what the text of the stage says.
  std::string identity{};
  // Puts the sample's own picture, the first, and those of its partners together; the own one alone
  // if the stage is not applied. `pictures`: their sizes.
  std::function<Combination(const RandomKey& key, std::span<const Size> pictures)> combine{};
  // The stages of partners' samples; null: those that stand before this one.
  SharedStages partner{};
};

// StageActions::size of a stage after which each image has a size of its own.
inline std::optional<Size> no_one_size(std::optional<Size>, Size) { return {}; }

struct StageType {
  const char* name;
  const char* help;          // one line, for --help
  const char* details = "";  // more sentences; lines end in \n
  std::vector<Parameter> parameters;
  StageActions (*make)(const Arguments& arguments);
  // Whether the stage decides itself with its parameter `p`; otherwise it is drawn before it.
  bool draws_probability = false;
  // The first one of its name in a list draws from the sample's own key, as it did before there
  // were lists: the pixels of older runs are kept.
  bool shares_key = false;
  // The samples whose pictures the stage puts to that of its own (combination.h).
  int partners = 0;
};

// One stage of a list.
class Stage {
 public:
  // `occurrence`: how many stages of this type a list has before it.
  Stage(const StageType& type, const Arguments& arguments, int occurrence);
  // A stage that no text says; its actions have an identity.
  explicit Stage(StageActions actions);

  void draw(Draws& draws) const;
  // How many partners a stage that combines pictures has, and how many for this sample's row.
  int partners() const { return type_ ? type_->partners : 0; }
  int partners_of(uint64_t seed, int64_t epoch, int64_t sample) const {
    return is_applied(seed, epoch, sample) ? partners() : 0;
  }
  // Whether the probability `p` of a stage lets it be done to this sample.
  bool is_applied(uint64_t seed, int64_t epoch, int64_t sample) const;
  const StageList* partner_stages() const { return actions_.partner.get(); }
  // Draws of this stage alone.
  RandomKey own_key(uint64_t seed, int64_t epoch, int64_t sample) const {
    return {seed ^ own_salt_, epoch, sample};
  }
  Combination combine(const RandomKey& own_key, std::span<const Size> pictures) const {
    return actions_.combine(own_key, pictures);
  }
  std::optional<Size> size(std::optional<Size> before, Size output) const;
  const std::string& describe() const { return describe_; }
  const std::string& identity() const { return identity_; }
  const StageType* type() const { return type_; }  // null: none of the table's

 private:
  const StageType* type_ = nullptr;
  std::string describe_, identity_;
  StageActions actions_;
  double probability_ = 1;
  uint64_t salt_ = 0;      // of the draws
  uint64_t own_salt_ = 0;  // of the probability
};

// The stages that work on one canvas: those before the first that combines pictures work on a
// sample's picture, the others on what their `combines` has made.
struct StageLevel {
  const Stage* combines = nullptr;  // null: a sample's picture
  std::span<const Stage> stages{};
};

// Stages that run one after the other. An empty list leaves the image as it is.
class StageList {
 public:
  StageList() = default;
  // Throws std::invalid_argument for what is no list of known stages.
  explicit StageList(std::string_view text);
  explicit StageList(const std::vector<StageText>& texts);

  void add(Stage stage) { stages_.push_back(std::move(stage)); }
  void draw(Draws& draws) const;
  // As StageActions::size, through all of them.
  std::optional<Size> size(std::optional<Size> before, Size output) const;
  std::string describe() const;
  // Reads back as the same list, without stages that no text says.
  std::string text() const;
  // The same text, but with what the pixels depend on.
  std::string identity() const;
  std::span<const Stage> stages() const { return stages_; }
  // Whether a stage combines pictures: then a row is made of several samples.
  bool combines() const;
  std::vector<StageLevel> levels() const;  // of this list, which outlives them

 private:
  friend class StageMaker;
  std::vector<Stage> stages_;
};

// Checks arguments, and makes the lists among them. Throws as StageList.
Arguments read_arguments(const StageType& type, const StageText& text);

// All stages there are, by name.
std::span<const StageType* const> all_stages();
// Null: there is none.
const StageType* find_stage(std::string_view name);

// One view of a sample: the stages that make a row of it.
struct AugmentView {
  Size output = {};       // pixels of every row; {}: as the first view's
  StageList stages{};     // the last image has the output's size
  std::string picture{};  // which of the sample's pictures (SourceInfo::pictures); "": its own
};

}  // namespace stoker
