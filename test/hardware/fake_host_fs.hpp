#pragma once
// FakeHostFs: attribute files in memory, with the answers a kernel would give.
#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware {

class FakeHostFs final : public HostFs {
 public:
  // What a store does: the text to be shown from then on, or an errno.
  struct Answer {
    std::string text;
    int error = 0;
  };
  using Store = std::function<Answer(const std::string& value)>;

  void put(const std::string& path, const std::string& text) { files_[path].text = text; }
  void on_write(const std::string& path, Store store) { files_[path].store = std::move(store); }
  void fail_write(const std::string& path, int error) {
    on_write(path, [error](const std::string&) { return Answer{{}, error}; });
  }
  void fail_read(const std::string& path, int error) { files_[path].read_error = error; }
  void forget(const std::string& path) { files_.erase(path); }
  std::string text(const std::string& path) const {
    const auto found = files_.find(path);
    return found == files_.end() ? "<no such file>" : found->second.text;
  }
  // Every accepted or refused store, as "path=value", in order.
  const std::vector<std::string>& writes() const { return writes_; }
  void clear_writes() { writes_.clear(); }

  Result<std::string> read(const std::string& path, std::size_t limit) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return errno_error(ENOENT, "open " + path);
    if (found->second.read_error != 0) return errno_error(found->second.read_error, "read " + path);
    return found->second.text.substr(0, limit);
  }

  Result<void> write(const std::string& path, std::string_view value) override {
    const auto found = files_.find(path);
    if (found == files_.end()) return errno_error(ENOENT, "open " + path);
    writes_.push_back(path + "=" + std::string(value));
    Answer answer{std::string(value), 0};
    if (found->second.store) answer = found->second.store(std::string(value));
    if (answer.error != 0) return errno_error(answer.error, "write " + path);
    files_[path].text = answer.text + "\n";
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) const override {
    std::set<std::string> names;
    const std::string prefix = path + "/";
    for (auto it = files_.lower_bound(prefix); it != files_.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      names.insert(
          it->first.substr(prefix.size(), it->first.find('/', prefix.size()) - prefix.size()));
    }
    if (names.empty()) return errno_error(ENOENT, "open " + path);
    return std::vector<std::string>(names.begin(), names.end());
  }

 private:
  struct File {
    std::string text;
    Store store;
    int read_error = 0;
  };
  std::map<std::string, File> files_;
  std::vector<std::string> writes_;
};

}  // namespace kwatt::hardware
