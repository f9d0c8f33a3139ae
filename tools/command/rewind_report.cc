#include "tools/command/rewind_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "pipeline/files/printable_name.h"
#include "tools/data/png_writer.h"
#include "tools/data/text_table.h"

namespace stoker {
namespace {

using PageJson = nlohmann::ordered_json;

std::string text_of_label(const Source& source, int label) {
  const std::vector<std::string>& names = source.class_names();
  if (names.empty()) return "";
  const auto index = static_cast<size_t>(label);
  return label >= 0 && index < names.size() ? fmt::format("{} {}", label, valid_text(names[index]))
                                            : std::to_string(label);
}

std::string shown_name(const Source& source, SampleId id) {
  return printable_name(source.name(id));
}

// A row's text on what it has besides its own picture.
std::string note_of(const Source& source, const RowNote& note, bool changed) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (changed) add("not what it was in the run");
  if (note.bad) {
    const char* why = note.code == DecodeCode::ok ? "unreadable" : to_string(note.code);
    add(fmt::format(
        "bad: {}{}", why,
        note.pixels_of < 0 ? "" : ", the picture of " + shown_name(source, note.pixels_of)));
  }
  if (note.mix.partner >= 0) {
    add(fmt::format("with {:.0f}% of {}", 100 * (1 - note.mix.draw.own_share),
                    shown_name(source, note.mix.partner)));
  }
  for (const SampleId partner : note.partners) {
    if (partner >= 0) add("with " + shown_name(source, partner));
  }
  return text;
}

std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string percent_or_dash(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f}%", 100 * share);
}

std::string outcomes_text(const ShownStep& shown) {
  std::vector<std::vector<std::string>> lines = {
      {"the step", "loss", "gradient norm", "loss after"}};
  const std::vector<StepOutcome>& outcomes = shown.replay->outcomes;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    lines.push_back({i == 0 ? "as it was" : "without " + shown.without[i - 1],
                     fmt::format("{:.5g}", outcomes[i].loss),
                     fmt::format("{:.5g}", outcomes[i].gradient_norm),
                     fmt::format("{:.5g}", outcomes[i].loss_after)});
  }
  return table_text(lines);
}

std::string replay_text(const ShownStep& shown) {
  const Replay& replay = *shown.replay;
  const std::string from =
      replay.from.empty() ? "the run's beginning" : printable_name(replay.from);
  const std::string same = replay.compared == 0 ? "the run has kept nothing of them to compare"
                           : replay.difference.empty()
                               ? "all losses and pixels are those of the run"
                               : "NOT as in the run: " + replay.difference;
  return fmt::format("replayed steps {} to {} from {}: {}\n", replay.first_step, shown.step, from,
                     same);
}

PageJson finite_or_null(double value) {
  return std::isfinite(value) ? PageJson(value) : PageJson(nullptr);
}

PageJson row_json(const ShownRow& row) {
  PageJson json = {{"row", row.row},     {"sample_id", row.sample}, {"name", row.name},
                   {"label", row.label}, {"weight", row.weight},    {"draws", row.draws},
                   {"note", row.note}};
  if (row.result) {
    json["loss"] = finite_or_null(row.result->loss);
    json["right"] = row.result->right;
  }
  if (row.share) {
    json["loss_share"] = finite_or_null(row.share->loss);
    json["gradient_share"] = finite_or_null(row.share->gradient);
  }
  return json;
}

std::string base64(std::span<const uint8_t> bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t word = 0;
    for (size_t i = 0; i < 3; ++i) word = word << 8 | (i < count ? bytes[at + i] : 0u);
    for (size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[word >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::string page_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string card(const ShownRow& row, const FedStep& step) {
  const BatchShape shape = step.batch().shape();
  const size_t image_bytes = static_cast<size_t>(shape.height) * shape.width * 3;
  const std::vector<uint8_t> png =
      encode_png({step.batch().images() + static_cast<size_t>(row.row) * image_bytes, shape.width,
                  shape.height, ptrdiff_t{3} * shape.width});
  std::string figures = fmt::format("row {}, weight {:g}", row.row, row.weight);
  if (row.result) {
    figures += fmt::format(", loss {:.4g}{}", row.result->loss, row.result->right ? "" : ", wrong");
  }
  if (row.share) {
    figures += fmt::format(", {} of the loss, {} of the gradient", percent_or_dash(row.share->loss),
                           percent_or_dash(row.share->gradient));
  }
  return fmt::format(
      "<figure><img src=\"data:image/png;base64,{}\" alt=\"\"><figcaption><b>{}</b><br>{}<br>{}"
      "<br>{}<pre>{}</pre></figcaption></figure>\n",
      base64(png), page_text(row.label), page_text(row.name), page_text(figures),
      page_text(row.note), page_text(row.draws));
}

std::string head_text(const ShownStep& shown) {
  std::string text = fmt::format("step {} of {}, epoch {}: {} rows", shown.step,
                                 printable_name(shown.run), shown.epoch, shown.rows.size());
  if (shown.kept) {
    text += fmt::format(", loss {:.5g}", shown.kept->loss());
    if (!std::isnan(shown.kept->gradient_norm)) {
      text += fmt::format(", gradient norm {:.5g}", shown.kept->gradient_norm);
    }
  }
  return text + "\n" + shown.receipt.text + "\n";
}

}  // namespace

void add_rows(const FedStep& step, const TrainOptions& options, std::span<const RowLoss> results,
              ShownStep& shown) {
  const DeviceBatch& batch = step.batch();
  for (int row = 0; row < step.rows(); ++row) {
    const RowNote& note = row_notes(batch)[row];
    const SampleId id = batch.ids()[row];
    ShownRow made{row,
                  id,
                  shown_name(step.source(), id),
                  text_of_label(step.source(), batch.labels()[row]),
                  batch.weights()[row],
                  row_steps_text(options.recipe.train, options.seed, batch.header().epoch, note,
                                 &step.source(), options.feed.decode),
                  note_of(step.source(), note, std::ranges::count(shown.receipt.changed, row) > 0)};
    if (!results.empty()) made.result = from_row_loss(results[static_cast<size_t>(row)]);
    shown.rows.push_back(std::move(made));
  }
  if (shown.replay) {
    for (const RowShare& share : shown.replay->rows) {
      ShownRow& row = shown.rows[static_cast<size_t>(share.row)];
      row.share = share;
      row.result = KeptRow{share.result.loss, share.result.top1 >= 0.5f};
    }
  }
  std::ranges::stable_sort(shown.rows, std::greater<>(), [](const ShownRow& row) {
    if (!row.result) return -1.0;
    return std::isnan(row.result->loss) ? INFINITY : static_cast<double>(row.result->loss);
  });
}

std::string spikes_text(const std::vector<Spike>& spikes, size_t most) {
  if (spikes.empty()) return "no step stands out from those around it; --step takes any\n";
  std::vector<std::vector<std::string>> lines = {
      {"step", "loss", "deviations", "gradient norm", "deviations"}};
  for (const Spike& spike : std::span(spikes).first(std::min(spikes.size(), most))) {
    const bool norm = !std::isnan(spike.gradient_norm);
    lines.push_back({std::to_string(spike.step), fmt::format("{:.5g}", spike.loss),
                     fmt::format("{:.1f}", spike.loss_score),
                     norm ? fmt::format("{:.5g}", spike.gradient_norm) : "-",
                     norm ? fmt::format("{:.1f}", spike.norm_score) : "-"});
  }
  return fmt::format("{} steps stand out from the 25 before and the 25 behind them:\n",
                     spikes.size()) +
         table_text(lines);
}

std::string step_text(const ShownStep& shown, size_t most_rows) {
  std::string text = head_text(shown);
  if (shown.replay) text += replay_text(shown);
  const bool losses =
      std::ranges::any_of(shown.rows, [](const ShownRow& row) { return row.result.has_value(); });
  std::vector<std::vector<std::string>> lines = {{"row"}};
  if (losses) lines[0].insert(lines[0].end(), {"loss", ""});
  if (shown.replay) lines[0].insert(lines[0].end(), {"of loss", "of gradient"});
  lines[0].insert(lines[0].end(), {"sample", "label", "name", "draws"});
  const size_t count = std::min(most_rows, shown.rows.size());
  for (const ShownRow& row : std::span(shown.rows).first(count)) {
    std::vector<std::string> line = {std::to_string(row.row)};
    if (losses) {
      line.push_back(row.result ? fmt::format("{:.4g}", row.result->loss) : "-");
      line.emplace_back(row.result && !row.result->right ? "wrong" : "");
    }
    if (shown.replay) {
      line.push_back(row.share ? percent_or_dash(row.share->loss) : "-");
      line.push_back(row.share ? percent_or_dash(row.share->gradient) : "-");
    }
    const std::string zero = row.weight == 0 ? "weight 0; " : "";
    line.insert(line.end(),
                {std::to_string(row.sample), row.label, row.name,
                 zero + (row.note.empty() ? "" : row.note + "; ") + in_one_line(row.draws)});
    lines.push_back(line);
  }
  text += "\n" + table_text(lines);
  if (count < shown.rows.size()) {
    text += fmt::format("and {} rows more\n", shown.rows.size() - count);
  }
  if (shown.replay) text += "\n" + outcomes_text(shown);
  return text;
}

nlohmann::ordered_json step_json(const ShownStep& shown) {
  PageJson json = {
      {"run", printable_name(shown.run)},
      {"step", shown.step},
      {"epoch", shown.epoch},
      {"receipt",
       {{"kept", shown.receipt.kept}, {"same", shown.receipt.same}, {"text", shown.receipt.text}}}};
  if (shown.kept) {
    json["loss"] = finite_or_null(shown.kept->loss());
    json["gradient_norm"] = finite_or_null(shown.kept->gradient_norm);
  }
  for (const Spike& spike : shown.spikes) {
    json["spikes"].push_back({{"step", spike.step},
                              {"loss", finite_or_null(spike.loss)},
                              {"loss_deviations", finite_or_null(spike.loss_score)},
                              {"gradient_norm", finite_or_null(spike.gradient_norm)},
                              {"norm_deviations", finite_or_null(spike.norm_score)}});
  }
  if (shown.replay) {
    const Replay& replay = *shown.replay;
    PageJson& out = json["replay"] = {{"from", printable_name(replay.from)},
                                      {"first_step", replay.first_step},
                                      {"compared", replay.compared},
                                      {"difference", replay.difference}};
    for (size_t i = 0; i < replay.outcomes.size(); ++i) {
      const StepOutcome& outcome = replay.outcomes[i];
      out["outcomes"].push_back({{"without", i == 0 ? "" : shown.without[i - 1]},
                                 {"loss", finite_or_null(outcome.loss)},
                                 {"gradient_norm", finite_or_null(outcome.gradient_norm)},
                                 {"loss_after", finite_or_null(outcome.loss_after)}});
    }
  }
  json["rows"] = PageJson::array();
  for (const ShownRow& row : shown.rows) json["rows"].push_back(row_json(row));
  return json;
}

std::string step_page(const ShownStep& shown, const FedStep& step, size_t most_rows) {
  std::string text = page_text(head_text(shown));
  if (!shown.spikes.empty()) text = page_text(spikes_text(shown.spikes, 10)) + "\n" + text;
  if (shown.replay) text += page_text(replay_text(shown)) + "\n" + page_text(outcomes_text(shown));
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>step {} of "
      "{}</title>\n<style>body{{font:14px sans-serif;margin:16px}}main{{display:flex;flex-wrap:"
      "wrap;gap:16px}}figure{{margin:0;width:260px}}img{{width:256px;image-rendering:pixelated}}"
      "figcaption{{overflow-wrap:anywhere}}figcaption "
      "pre{{white-space:pre-wrap;color:#666;font-size:11px;margin:4px 0}}</style></head>\n"
      "<body><pre>{}</pre>\n<main>\n",
      shown.step, page_text(printable_name(shown.run)), text);
  const size_t count = std::min(most_rows, shown.rows.size());
  for (const ShownRow& row : std::span(shown.rows).first(count)) page += card(row, step);
  return page + "</main></body></html>\n";
}

}  // namespace stoker
