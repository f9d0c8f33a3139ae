#include <algorithm>

#include "pipeline/augment.h"
#include "pipeline/augment/erasing.h"
#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/program.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// Images and samples that show what the stages do: one that is wide, one that is high.
constexpr Size kExamples[] = {{500, 375}, {375, 500}};
constexpr int kSeenSamples = 64;

// Who did the steps of one stage, in the rows that were looked at.
struct Seen {
  int decoder = 0, joined = 0, alone = 0, boxes = 0, absent = 0, combined = 0;
};

std::string sentence(const Seen& seen) {
  std::string text;
  const auto add = [&](int count, const char* what) {
    if (count > 0) text.append(text.empty() ? "" : ", or ").append(what);
  };
  add(seen.decoder, "done by the decoder while it decodes");
  add(seen.joined, "joined with its neighbours into one table of bytes");
  add(seen.alone, "a pass of its own");
  add(seen.boxes, "of boxes alone, no pixel changes");
  add(seen.combined, "puts pictures of other samples to it, each decoded as far as it is seen");
  add(seen.absent, "nothing");
  return text;
}

bool is_joined(std::span<const PixelStep> steps, size_t i) {
  const auto is_table = [&](size_t at) { return at < steps.size() && steps[at].kind->table; };
  return is_table(i) && (is_table(i + 1) || (i > 0 && is_table(i - 1)));
}

bool are_of_boxes(std::span<const PixelStep> steps) {
  return std::ranges::all_of(
      steps, [](const PixelStep& step) { return is_of_objects(step.kind->motion); });
}

// `decoded`: so many of the steps are the decoder's. `ends`: the number of the first step after
// each stage.
void see_steps(std::span<const PixelStep> steps, size_t decoded, std::span<const size_t> ends,
               Seen* seen) {
  for (size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
    if (begin == ends[i]) {
      ++seen[i].absent;
    } else if (are_of_boxes(steps.subspan(begin, ends[i] - begin))) {
      ++seen[i].boxes;
    } else if (ends[i] <= decoded) {
      ++seen[i].decoder;
    } else {
      ++(is_joined(steps, begin) ? seen[i].joined : seen[i].alone);
    }
  }
}

void see_sample(const AugmentView& view, Size source, int64_t sample, std::vector<Seen>& seen) {
  const std::vector<StageLevel> levels = view.stages.levels();
  Seen* of_stage = seen.data();
  for (size_t level = 0; level < levels.size(); ++level) {
    if (level > 0) ++of_stage++->combined;
    Draws draws;
    std::vector<size_t> ends;
    draw_example(view, level, source, sample, draws, &ends);
    see_steps(draws.steps(), level == 0 ? plan_decode(draws).steps : 0, ends, of_stage);
    of_stage += ends.size();
  }
}

// A GPU makes the last changes itself (device_edits.h); a receipt has the final pixels' digests.
constexpr const char* kOnGpu = "; by a GPU behind the copy, unless a receipt is written";

void explain(const AugmentView& view, const std::string& indent, std::vector<std::string>& lines) {
  std::vector<Seen> seen(view.stages.stages().size());
  for (const Size source : kExamples) {
    for (int64_t sample = 0; sample < kSeenSamples; ++sample) {
      see_sample(view, source, sample, seen);
    }
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    lines.push_back(indent + view.stages.stages()[i].describe() + ": " + sentence(seen[i]));
  }
}

// "view 1, 224 x 224, of the same decoding:"
std::string heading(const AugmentSpec& spec, int number) {
  const AugmentView view = spec.view(number);
  const std::string what = !spec.has_pictures()   ? "view " + std::to_string(number)
                           : view.picture.empty() ? "the sample's own picture"
                                                  : "picture " + view.picture;
  return what + ", " + std::to_string(view.output.height) + " x " +
         std::to_string(view.output.width) +
         (spec.has_pictures() ? ":" : ", of the same decoding:");
}

}  // namespace

std::vector<std::string> explain_augmentation(const AugmentSpec& spec) {
  std::vector<std::string> lines;
  if (spec.views() == 1) {
    explain(spec.view(0), "", lines);
    if (last_erasing(spec.stages)) lines.back() += kOnGpu;
  }
  for (int number = 0; spec.views() > 1 && number < spec.views(); ++number) {
    lines.push_back(heading(spec, number));
    explain(spec.view(number), "  ", lines);
  }
  if (spec.mix.on()) {
    lines.push_back(mix_text(spec.mix) + ": finished rows with their neighbours, in pairs" +
                    kOnGpu);
  }
  return lines;
}

}  // namespace stoker
