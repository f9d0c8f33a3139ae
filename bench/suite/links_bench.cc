#include "bench/suite/links_bench.h"

#include <fmt/format.h>

#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "staging/batch_layout.h"
#include "staging/device_list.h"
#include "staging/threads.h"
#include "tools/machine/numa_nodes.h"
#include "train/model/models.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

using Values = std::vector<double>;  // GB/s, one per repeat

double gb_per_second(double bytes, double seconds) { return 1e-9 * bytes / seconds; }

// Every CPU of the node `cpus` copies its own part inside the memory of the node `memory`.
Values host_copies(const NumaNode& cpus, const NumaNode& memory, const LinksOptions& options) {
  const auto threads = static_cast<int>(cpus.cpus.size());
  const size_t part = static_cast<size_t>(options.bytes) / threads;
  Values values(options.repeats);
  std::barrier all(threads);
  run_threads("copies", threads, [&](int64_t i) {
    bind_thread(memory);
    std::vector<std::byte> source(part, std::byte{1}), target(part, std::byte{2});
    bind_thread(cpus);
    std::memcpy(target.data(), source.data(), part);  // warm-up
    for (double& value : values) {
      all.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      std::memcpy(target.data(), source.data(), part);
      all.arrive_and_wait();
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (i == 0) value = gb_per_second(2.0 * static_cast<double>(part) * threads, seconds);
    }
  });
  return values;
}

// Measures copies on a stream by events around each.
Values copies(Device& device, void* target, const void* source, CopyKind kind,
              const LinksOptions& options) {
  const auto stream = device.make_stream();
  const auto begin = device.make_event(true), end = device.make_event(true);
  const auto once = [&] {
    stream->record(*begin);
    stream->copy(target, source, static_cast<size_t>(options.bytes), kind);
    stream->record(*end);
    end->synchronize();
    return gb_per_second(static_cast<double>(options.bytes), 1e-3 * end->elapsed_ms(*begin));
  };
  once();  // warm-up
  Values values;
  for (int i = 0; i < options.repeats; ++i) values.push_back(once());
  return values;
}

struct Link {
  std::string device, direction, memory;  // "cuda:0", "host to device", "pinned"
  Values values;
};

std::vector<Link> device_links(Device& device, const LinksOptions& options) {
  const auto bytes = static_cast<size_t>(options.bytes);
  const auto here = device.allocate(bytes, MemoryKind::device);
  const auto there = device.allocate(bytes, MemoryKind::device);
  const auto pinned = device.allocate(bytes, MemoryKind::pinned);
  std::vector<std::byte> pageable(bytes, std::byte{1});
  std::memset(pinned->data(), 1, bytes);
  const std::string& name = device.name();
  std::vector<Link> links;
  for (const auto& [memory, host] :
       {std::pair("pinned", pinned->data()), std::pair("pageable", pageable.data())}) {
    links.push_back({name, "host to device", memory,
                     copies(device, here->data(), host, CopyKind::host_to_device, options)});
    links.push_back({name, "device to host", memory,
                     copies(device, host, here->data(), CopyKind::device_to_host, options)});
  }
  links.push_back(
      {name, "inside the device", "device",
       copies(device, there->data(), here->data(), CopyKind::device_to_device, options)});
  return links;
}

// Measures copies from each device to each of the others.
std::vector<Link> links_between(const std::vector<std::unique_ptr<Device>>& devices,
                                const LinksOptions& options) {
  const auto bytes = static_cast<size_t>(options.bytes);
  std::vector<Link> links;
  for (const auto& from : devices) {
    for (const auto& to : devices) {
      if (from == to) continue;
      const auto source = from->allocate(bytes, MemoryKind::device);
      const auto target = to->allocate(bytes, MemoryKind::device);
      links.push_back(
          {from->name(), "to " + to->name(), "device",
           copies(*from, target->data(), source->data(), CopyKind::device_to_device, options)});
    }
  }
  return links;
}

struct Payload {
  std::string name;
  double bytes;
};

std::vector<Payload> payloads(const LinksOptions& options) {
  const BatchLayout layout({.rows = options.batch, .height = options.size, .width = options.size});
  std::vector<Payload> all = {{fmt::format("batch of {} x {} px", options.batch, options.size),
                               static_cast<double>(layout.device_bytes())}};
  for (const std::string& model : options.models) {
    const NetSpec net = make_net(model, default_recipe(model).input, 1000);
    const auto count = static_cast<double>(total_count(parameter_table(net)));
    all.push_back({"gradient of " + model + ", fp32", 4 * count});
    all.push_back({"gradient of " + model + ", bf16", 2 * count});
  }
  return all;
}

void add_host(const LinksOptions& options, Report& report) {
  Table table{
      "Host memory", {"CPUs of node", "memory of node", "CPUs", "GB/s, read + written"}, {}};
  const std::vector<NumaNode> nodes = numa_nodes();
  for (const NumaNode& cpus : nodes) {
    for (const NumaNode& memory : nodes) {
      const Summary summary = report.add(
          {fmt::format("memory copy, CPUs of node {}, memory of node {}", cpus.id, memory.id),
           "GB/s", Better::higher, host_copies(cpus, memory, options)});
      table.rows.push_back({std::to_string(cpus.id), std::to_string(memory.id),
                            std::to_string(cpus.cpus.size()), with_interval(summary)});
      report.results["host"].push_back(
          {{"cpus", cpus.id}, {"memory", memory.id}, {"gb_per_second", summary.median}});
    }
  }
  report.tables.push_back(std::move(table));
}

void add_costs(const LinksOptions& options, const std::vector<Link>& links, Report& report) {
  Table table{"Cost of the payloads, ms", {"payload", "MB", "link", "ms"}, {}};
  for (const Payload& payload : payloads(options)) {
    for (const Link& link : links) {
      if (link.memory == "pageable" || link.direction == "inside the device") continue;
      const double ms = 1e-6 * payload.bytes / median(link.values);
      const std::string name = link.device + " " + link.direction;
      table.rows.push_back(
          {payload.name, significant(1e-6 * payload.bytes), name, significant(ms)});
      report.results["costs"].push_back(
          {{"payload", payload.name}, {"bytes", payload.bytes}, {"link", name}, {"ms", ms}});
    }
  }
  report.tables.push_back(std::move(table));
}

// Draws a group of bars per device, one for each way of its copies.
Plot device_plot(const std::vector<Link>& links) {
  Plot plot{"links", "Bandwidth of copies", "device", "GB/s", {}, {}};
  for (const Link& link : links) {
    const std::string way = link.direction == "inside the device"
                                ? link.direction
                                : fmt::format("{}, {}", link.direction, link.memory);
    add_bar(plot, link.device, way, plot_point(summarise(link.values)));
  }
  return plot;
}

// Draws a bar per pair of devices.
Plot between_plot(const std::vector<Link>& links) {
  Plot plot{"links_between", "Bandwidth between devices", "from, to", "GB/s", {}, {}};
  for (const Link& link : links) {
    add_bar(plot, link.device + " " + link.direction, "measured",
            plot_point(summarise(link.values)));
  }
  return plot;
}

void add_links(const std::vector<Link>& links, Report& report) {
  Table table{"Devices", {"device", "direction", "memory", "GB/s"}, {}};
  for (const Link& link : links) {
    const Summary summary =
        report.add({fmt::format("{} {}, {}", link.device, link.direction, link.memory), "GB/s",
                    Better::higher, link.values});
    table.rows.push_back({link.device, link.direction, link.memory, with_interval(summary)});
    report.results["devices"].push_back({{"device", link.device},
                                         {"direction", link.direction},
                                         {"memory", link.memory},
                                         {"gb_per_second", summary.median}});
  }
  report.tables.push_back(std::move(table));
}

}  // namespace

Report bench_links(const LinksOptions& options) {
  if (options.devices.empty() || options.bytes < 1 || options.repeats < 1) {
    throw std::invalid_argument(
        fmt::format("bench links: {} devices, {} bytes, {} repeats: at least 1 of each",
                    options.devices.size(), options.bytes, options.repeats));
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (const std::string& name : options.devices) devices.push_back(make_device(name));
  Report report;
  report.bench = "links";
  report.settings = {{"devices", options.devices}, {"bytes", options.bytes},
                     {"repeats", options.repeats}, {"batch", options.batch},
                     {"size", options.size},       {"models", options.models}};
  add_host(options, report);
  std::vector<Link> links;
  for (const auto& device : devices) {
    for (Link& link : device_links(*device, options)) links.push_back(std::move(link));
  }
  report.plots.push_back(device_plot(links));
  std::vector<Link> between = links_between(devices, options);
  if (!between.empty()) report.plots.push_back(between_plot(between));
  for (Link& link : between) links.push_back(std::move(link));
  add_links(links, report);
  add_costs(options, links, report);
  report.notes = {
      "A sum over N devices in a ring moves 2 (N - 1) / N of a gradient over every link.",
      "Copies of a host device are made by the host's CPUs."};
  return report;
}

}  // namespace stoker
