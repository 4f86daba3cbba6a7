#include "telemetry/history_csv.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <vector>

#include "base/log.hpp"
#include "telemetry/history_file.hpp"
#include "telemetry/history_format.hpp"

namespace kwatt::telemetry {
namespace {

using std::chrono::hours;
namespace fs = std::filesystem;

constexpr Duration kLate = std::chrono::minutes{2};
constexpr std::size_t kBufferBytes = 1 << 20;

}  // namespace

CsvWriter::CsvWriter(std::string history_path, std::string folder, TimePoint now)
    : history_path_(std::move(history_path)),
      folder_(std::move(folder)),
      next_(std::chrono::floor<hours>(now)) {}

void CsvWriter::write_due(TimePoint now) {
  // A clock that jumped makes no files of years.
  if (now - next_ > hours{25}) next_ = std::chrono::floor<hours>(now) - hours{24};
  while (next_ + hours{1} + kLate <= now) {
    const bool last = next_ + hours{2} + kLate > now;
    auto written = write(next_);
    if (written) {
      failing_ = false;
      remove_old();
    } else {
      if (!failing_) {
        log::warn("the hourly CSV file was not written",
                  {{"folder", folder_}, {"error", written.error()}});
      }
      failing_ = true;
      if (last) return;
    }
    next_ += hours{1};
  }
}

Result<void> CsvWriter::write(TimePoint hour) const {
  const fs::path path = fs::path(folder_) / csv_name(HistoryKind::samples, hour);
  const fs::path partial = path.string() + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  std::string text(csv_header(HistoryKind::samples));
  auto read = each_sample(history_path_, hour, hour + hours{1}, [&](const SampleRow& row) {
    append_csv(row, text);
    if (text.size() < kBufferBytes) return;
    out << text;
    text.clear();
  });
  out << text;
  out.close();
  std::error_code error;
  if (read && out) {
    fs::rename(partial, path, error);
    if (!error) return {};
  }
  std::error_code ignored;
  fs::remove(partial, ignored);
  if (!read) return read.error();
  return fail(ErrorCode::io, "cannot write " + path.string(), error ? error.message() : "");
}

void CsvWriter::remove_old() const {
  static const std::regex ours("metrics_\\d{8}T\\d{6}Z\\.csv");
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (std::regex_match(name, ours)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (std::size_t i = 0; i + kKept < names.size(); ++i) {
    fs::remove(fs::path(folder_) / names[i], error);
  }
}

}  // namespace kwatt::telemetry
