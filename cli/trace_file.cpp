#include "cli/trace_file.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "simulator/synthetic.hpp"
#include "simulator/traces/ecsched.hpp"
#include "simulator/traces/jobs_csv.hpp"
#include "simulator/traces/machines_csv.hpp"
#include "simulator/traces/snapshot.hpp"
#include "simulator/traces/swf.hpp"

namespace kwatt::cli {
namespace {

namespace traces = simulator::traces;

constexpr std::string_view kSynthetic = "synthetic:";
constexpr std::size_t kSwfFields = 18;
constexpr std::size_t kLooked = 4096;  // bytes that tell the format

// The format of a file by its name and first bytes.
std::string format_of(const std::string& name, std::string_view head) {
  if (name.ends_with(".swf") || head.starts_with(";")) return "swf";
  if (name.ends_with(".jsonl") || head.find("\"kwattRecording\"") != head.npos) return "recording";
  if (head.find_first_not_of(" \t\r\n") != head.npos &&
      head[head.find_first_not_of(" \t\r\n")] == '{') {
    const bool kubernetes = head.find("\"apiVersion\"") != head.npos;
    return kubernetes ? "kubectl" : "slurm";
  }
  std::string_view line = head;
  while (line.starts_with("#")) line.remove_prefix(std::min(line.find('\n') + 1, line.size()));
  line = line.substr(0, line.find('\n'));
  if (line.find("arrival_s") != line.npos) return "csv";
  if (line.find(',') == line.npos && traces::split_blanks(line).size() == kSwfFields) return "swf";
  return "ecsched";
}

template <class Reader>
void use(OpenTrace& trace, std::unique_ptr<Reader> reader) {
  trace.report = [raw = reader.get()] { return raw->report(); };
  trace.jobs = std::move(reader);
}

}  // namespace

std::string bad_rows_text(const std::string& name, const traces::Report& report) {
  std::string text = fmt::format("warning: {}: {} bad row{} left out\n", name, report.bad,
                                 report.bad == 1 ? " was" : "s were");
  for (const std::string& why : report.first_bad) text += fmt::format("  {}\n", why);
  return text;
}

std::string OpenTrace::remarks() const {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("note: {}: {}\n", name, note);
  if (!report) return text;
  const traces::Report rows = report();
  if (rows.bad > 0) text += bad_rows_text(name, rows);
  if (rows.passed_over > 0) {
    text +=
        fmt::format("note: {}: {} jobs that never ran were passed over\n", name, rows.passed_over);
  }
  return text;
}

Result<OpenTrace> open_trace(const std::string& trace, const std::string& format,
                             traces::Reading reading, std::uint64_t seed, Duration job_duration) {
  OpenTrace open;
  open.name = trace;
  if (trace == "synthetic" || trace.starts_with(kSynthetic)) {
    auto spec = simulator::parse_synthetic(trace == "synthetic"
                                               ? std::string_view()
                                               : std::string_view(trace).substr(kSynthetic.size()));
    if (!spec) return spec.error();
    open.jobs = std::make_unique<simulator::SyntheticJobs>(*spec, seed);
    return open;
  }
  open.file = std::make_unique<std::ifstream>(trace, std::ios::binary);
  if (!*open.file || std::filesystem::is_directory(trace)) {
    return fail(ErrorCode::not_found, fmt::format("cannot read the trace {}", trace));
  }
  std::string kind = format;
  if (kind == "auto") {
    std::string head(kLooked, '\0');
    open.file->read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(open.file->gcount()));
    open.file->clear();
    open.file->seekg(0);
    if (head.size() < kLooked && head.find_first_not_of(" \t\r\n") == head.npos) {
      return fail(ErrorCode::parse, fmt::format("{}: the file is empty", trace));
    }
    kind = format_of(trace, head);
  }
  if (kind == "csv") {
    use(open, std::make_unique<traces::JobsCsv>(*open.file, trace, reading));
  } else if (kind == "swf") {
    use(open, std::make_unique<traces::Swf>(*open.file, trace, reading));
  } else if (kind == "ecsched") {
    use(open, std::make_unique<traces::Ecsched>(*open.file, trace, reading));
  } else {
    auto scene = kind == "kubectl" ? traces::read_kubectl(*open.file, trace, job_duration)
                 : kind == "slurm" ? traces::read_slurm(*open.file, trace, job_duration)
                                   : traces::read_recording(*open.file, trace, reading);
    if (!scene) return scene.error();
    open.machines = std::move(scene->machines);
    open.services = std::move(scene->services);
    open.length = scene->length;
    open.notes = std::move(scene->notes);
    open.report = [rows = scene->report] { return rows; };
    open.jobs = std::make_unique<simulator::JobList>(std::move(scene->jobs));
  }
  return open;
}

Result<std::vector<simulator::MachineSpec>> open_machines(const std::string& text) {
  std::ifstream file(text, std::ios::binary);
  if (file && !std::filesystem::is_directory(text)) return traces::read_machines(file, text);
  if (text.find('/') != text.npos || text.ends_with(".csv")) {
    return fail(ErrorCode::not_found, fmt::format("--machines: cannot read {}", text));
  }
  return traces::parse_machines(text);
}

}  // namespace kwatt::cli
