#include "bench/suite/layout_bench.h"

#include <fmt/format.h>

#include <stdexcept>

#include "staging/device_list.h"
#include "staging/normalise.h"

namespace stoker {
namespace {

constexpr int kLayoutWarmupRuns = 3;

struct LayoutVariant {
  std::string name;      // "bf16 NHWC, 3 channels"
  std::string category;  // "bf16, 3": of the plot, whose series are the orders
  NormaliseOptions options;
};

std::vector<LayoutVariant> variants(int size) {
  std::vector<LayoutVariant> all;
  for (const auto& [type_name, type] :
       {std::pair("bf16", PixelType::bf16), std::pair("fp16", PixelType::fp16),
        std::pair("fp32", PixelType::fp32)}) {
    for (const auto& [order_name, order] :
         {std::pair("NHWC", PixelOrder::nhwc), std::pair("NCHW", PixelOrder::nchw)}) {
      for (const int channels : {3, 4, 8}) {
        NormaliseOptions options;
        options.height = options.width = size;
        options.channels = channels;
        options.type = type;
        options.order = order;
        all.push_back({fmt::format("{} {}, {} channels", type_name, order_name, channels),
                       fmt::format("{}, {}", type_name, channels), options});
      }
    }
  }
  return all;
}

// Returns the milliseconds of each run, measured by events around it. The images are whatever the
// memory holds, because the kernel does the same work for all bytes.
std::vector<double> measure_layout(Device& device, const LayoutOptions& options,
                                   const Normaliser& normaliser) {
  const auto images =
      device.allocate(size_t{3} * options.rows * options.size * options.size, MemoryKind::device);
  const auto out = device.allocate(options.rows * normaliser.row_bytes(), MemoryKind::device);
  const auto stream = device.make_stream();
  const auto begin = device.make_event(true), end = device.make_event(true);
  std::vector<double> times;
  for (int run = 0; run < kLayoutWarmupRuns + options.repeats; ++run) {
    stream->record(*begin);
    normaliser.run(*stream, reinterpret_cast<const uint8_t*>(images->data()), out->data(),
                   options.rows);
    stream->record(*end);
    end->synchronize();
    if (run >= kLayoutWarmupRuns) times.push_back(end->elapsed_ms(*begin));
  }
  return times;
}

}  // namespace

Report bench_layout(const LayoutOptions& options) {
  if (options.rows < 1 || options.size < 1 || options.repeats < 1) {
    throw std::invalid_argument(
        fmt::format("bench layout: {} samples of {} px, {} repeats: at least 1 of each",
                    options.rows, options.size, options.repeats));
  }
  const auto device = make_device(options.device);
  Report report;
  report.bench = "layout";
  report.settings = {{"device", options.device},
                     {"batch", options.rows},
                     {"size", options.size},
                     {"repeats", options.repeats}};
  Table table{fmt::format("{} samples of {} px on {}", options.rows, options.size, device->name()),
              {"output", "ms", "GB/s"},
              {}};
  Plot plot{"layout", "Bytes to a net's input", "type, channels", "ms", {}, {}};
  const double pixels = 3.0 * options.size * options.size;
  for (const LayoutVariant& variant : variants(options.size)) {
    const Normaliser normaliser(*device, variant.options);
    const Summary ms = report.add(
        {variant.name, "ms", Better::lower, measure_layout(*device, options, normaliser)});
    const double bytes = options.rows * (pixels + static_cast<double>(normaliser.row_bytes()));
    const double rate = 1e-6 * bytes / ms.median;
    report.results[variant.name] = {{"ms", ms.median}, {"gb_per_s", rate}};
    table.rows.push_back({variant.name, with_interval(ms), significant(rate)});
    add_bar(plot, variant.category, variant.options.order == PixelOrder::nhwc ? "NHWC" : "NCHW",
            plot_point(ms));
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
  return report;
}

}  // namespace stoker
