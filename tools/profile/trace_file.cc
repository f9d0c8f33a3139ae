#include "tools/profile/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace stoker {
namespace {

constexpr int kProcess = 1;
// The device's number is added to these.
constexpr int kCopyTracks = 10000;
constexpr int kDeviceTracks = 20000;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class TraceText {
 public:
  TraceText(const TraceSink& append, int64_t origin_ns) : append_(append), origin_ns_(origin_ns) {
    append_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  }
  // `body`: the event without its braces.
  void add(const std::string& body) { append_((events_++ > 0 ? ",\n{" : "{") + body + "}"); }
  int64_t close() {
    append_("\n]}\n");
    return events_;
  }
  double us(int64_t ns) const { return static_cast<double>(ns - origin_ns_) * 1e-3; }

 private:
  const TraceSink& append_;
  const int64_t origin_ns_;
  int64_t events_ = 0;
};

// A batch's way: for each kind of span its first begin, its last end, and the track of the last
// one.
struct Leg {
  int64_t begin_ns = 0, end_ns = 0;
  int track = 0;
  bool known() const { return end_ns > 0; }
};
struct Batch {
  std::map<SpanKind, Leg> legs;
};
using Batches = std::map<std::pair<int, Step>, Batch>;  // by device and step

class TraceWriter {
 public:
  TraceWriter(const ProfiledRun& run, TraceText& text,
              const std::function<std::string(SampleId)>& name_of)
      : run_(run), text_(text), name_of_(name_of) {
    for (const TrackedSpan& span : run.spans) {
      if (span.kind == SpanKind::launch) queued_.insert(span.device);
    }
  }

  void write() {
    for (size_t i = 0; i < run_.tracks.size(); ++i) {
      name_track(static_cast<int>(i) + 1, run_.tracks[i].name);
    }
    for (const TrackedSpan& span : run_.spans) {
      write_span(span);
      note(span);
    }
    for (const auto& [key, batch] : batches_) write_batch(key.first, key.second, batch);
    write_phases();
  }

 private:
  int track_of(const TrackedSpan& span) {
    if (span.kind == SpanKind::copy) return stream_track(kCopyTracks, span.device, "copy stream");
    const bool on_device = span.kind == SpanKind::compute && queued_.count(span.device) > 0;
    return on_device ? stream_track(kDeviceTracks, span.device, "device") : span.track + 1;
  }
  int stream_track(int first, int device, const char* name) {
    if (named_.insert(first + device).second) {
      name_track(first + device, fmt::format("{} {}", name, device));
    }
    return first + device;
  }
  void name_track(int track, const std::string& name) {
    text_.add(fmt::format(
        "\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}",
        kProcess, track, quoted(name)));
  }

  void write_span(const TrackedSpan& span) {
    // These are drawn in the batch's row.
    if (span.kind == SpanKind::commit || span.kind == SpanKind::lease) return;
    std::string args = fmt::format("\"step\":{}", span.step);
    if (span.sample >= 0) {
      args += fmt::format(",\"sample\":{}", span.sample);
      if (span.kind == SpanKind::read) {
        args += fmt::format(",\"bytes\":{},\"file\":{}", span.bytes, quoted(name_of_(span.sample)));
      }
    }
    if (span.cpu_ns >= 0) {
      args += fmt::format(",\"cpu_us\":{:.1f}", static_cast<double>(span.cpu_ns) * 1e-3);
    }
    text_.add(
        fmt::format("\"ph\":\"X\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:."
                    "3f},\"args\":{{{}}}",
                    to_string(span.kind), kProcess, track_of(span), text_.us(span.begin_ns),
                    static_cast<double>(span.end_ns - span.begin_ns) * 1e-3, args));
  }

  void note(const TrackedSpan& span) {
    if (span.step < 0) return;
    Leg& leg = batches_[{span.device, span.step}].legs[span.kind];
    if (!leg.known() || span.begin_ns < leg.begin_ns) leg.begin_ns = span.begin_ns;
    if (span.end_ns >= leg.end_ns) {
      leg.end_ns = span.end_ns;
      leg.track = track_of(span);
    }
  }

  // Writes the nested rows of one batch, and the arrows along its way.
  void write_batch(int device, Step step, const Batch& batch) {
    const auto leg = [&](SpanKind kind) {
      const auto at = batch.legs.find(kind);
      return at == batch.legs.end() ? Leg{} : at->second;
    };
    const Leg commit = leg(SpanKind::commit), lease = leg(SpanKind::lease);
    Leg first = leg(SpanKind::read);
    if (!first.known()) first = leg(SpanKind::decode);
    if (!first.known()) first = leg(SpanKind::pixels);
    if (!first.known() || !commit.known() || !lease.known()) return;
    const std::string id = fmt::format("{}.{}", device, step);
    row(id, fmt::format("batch {}", step), first.begin_ns, lease.end_ns);
    row(id, "filling", first.begin_ns, commit.end_ns);
    row(id, "ready", commit.end_ns, lease.begin_ns);
    row(id, "leased", lease.begin_ns, lease.end_ns);
    arrow("s", id, first);
    for (const SpanKind kind : {SpanKind::pixels, SpanKind::copy, SpanKind::input_wait}) {
      if (leg(kind).known()) arrow("t", id, leg(kind));
    }
    if (leg(SpanKind::compute).known()) arrow("f", id, leg(SpanKind::compute));
  }
  void row(const std::string& id, const std::string& name, int64_t begin_ns, int64_t end_ns) {
    for (const auto& [phase, ns] : {std::pair{"b", begin_ns}, std::pair{"e", end_ns}}) {
      text_.add(
          fmt::format("\"ph\":\"{}\",\"cat\":\"batch\",\"name\":{},\"id\":\"{}\",\"pid\":{},"
                      "\"tid\":0,\"ts\":{:.3f}",
                      phase, quoted(name), id, kProcess, text_.us(ns)));
    }
  }
  // The arrow is bound to the end of the leg's last span.
  void arrow(const char* phase, const std::string& id, const Leg& leg) {
    text_.add(
        fmt::format("\"ph\":\"{}\",\"cat\":\"way\",\"name\":\"way\",\"id\":\"{}\",\"pid\":{},"
                    "\"tid\":{},\"ts\":{:.3f},\"bp\":\"e\"",
                    phase, id, kProcess, leg.track, text_.us(leg.end_ns) - 0.001));
  }

  void write_phases() {
    for (const PhaseWindow& window : run_.windows) {
      row(fmt::format("phase {}", window.begin_ns), to_string(window.phase), window.begin_ns,
          window.end_ns);
    }
  }

  const ProfiledRun& run_;
  TraceText& text_;
  const std::function<std::string(SampleId)>& name_of_;
  std::set<int> queued_;  // devices whose work is queued and done later
  std::set<int> named_;
  Batches batches_;
};

}  // namespace

int64_t write_trace(const TraceSink& append, const ProfiledRun& run,
                    const std::function<std::string(SampleId)>& name_of) {
  int64_t origin_ns = run.windows.empty() ? 0 : run.windows.front().begin_ns;
  for (const TrackedSpan& span : run.spans) origin_ns = std::min(origin_ns, span.begin_ns);
  TraceText text(append, origin_ns);
  TraceWriter(run, text, name_of).write();
  return text.close();
}

}  // namespace stoker
