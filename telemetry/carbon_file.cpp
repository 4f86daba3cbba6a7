// Carbon intensities of a CSV file.
#include <sstream>

#include <fmt/format.h>

#include "telemetry/carbon_source.hpp"

namespace kwatt::telemetry {
namespace {

using models::carbon::Reading;

class CarbonFileSource final : public CarbonSource {
 public:
  CarbonFileSource(std::string name, CarbonFile file)
      : name_(std::move(name)), file_(std::move(file)) {}
  const std::string& name() const override { return name_; }
  net::Task<Result<std::vector<Reading>>> fetch(std::string zone, TimePoint) override {
    co_return read(zone);
  }

 private:
  Result<std::vector<Reading>> read(const std::string& zone) const {
    auto text = file_.read(file_.path);
    if (!text) return text.error().with_context(name_);
    std::istringstream in(std::move(*text));
    auto all = models::carbon::read_csv(in, file_.path, file_.shape);
    if (!all) return all.error().with_context(name_);
    auto found = all->zones.find(zone);
    // A file without a zone column is of one zone, whatever it is called.
    if (found == all->zones.end()) found = all->zones.find("");
    if (found == all->zones.end()) {
      return fail(ErrorCode::not_found,
                  fmt::format("{}: {} has no zone \"{}\"", name_, file_.path, zone));
    }
    std::vector<Reading> out;
    const models::carbon::IntensitySeries& series = found->second;
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (const auto grams = series.value(i)) out.push_back({series.time_of(i), *grams});
    }
    return out;
  }

  std::string name_;
  CarbonFile file_;
};

}  // namespace

std::unique_ptr<CarbonSource> make_carbon_file(std::string name, CarbonFile file) {
  return std::make_unique<CarbonFileSource>(std::move(name), std::move(file));
}

}  // namespace kwatt::telemetry
