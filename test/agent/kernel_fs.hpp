#pragma once
// KernelFs: the kernel's rules of test/support/kernel in the place of /sys, in this process. The
// same rules are mounted for the real program in test_agent_on_sysfs.py.
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "hardware/sysfs_files.hpp"
#include "test/support/kernel/machine.hpp"

namespace kwatt::agent {

class KernelFs final : public hardware::HostFs {
 public:
  explicit KernelFs(kernel_rules::MachineSpec spec)
      : machine_(std::move(spec), [this] { return seconds; }) {
    machine_.sys().on_store([this](const kernel_rules::Tree::Store& store) {
      stores.push_back(store.path + "=" + store.value.substr(0, store.value.find('\n')));
    });
  }

  double seconds = 0;               // of the energy counters
  std::vector<std::string> stores;  // all of them, refused ones too

  bool command(const std::string& line) { return machine_.command(line); }
  // What people see and set, in one line each: the text, or "errno N".
  std::string text(const std::string& path) const {
    const auto answer = show(path);
    return answer.error != 0 ? "errno " + std::to_string(answer.error)
                             : answer.text.substr(0, answer.text.find('\n'));
  }
  void by_hand(const std::string& path, const std::string& value) { (void)write(path, value); }
  std::size_t stores_to(const std::string& file) const {
    return static_cast<std::size_t>(std::count_if(
        stores.begin(), stores.end(),
        [&](const std::string& store) { return store.find(file + "=") != std::string::npos; }));
  }

  Result<std::string> read(const std::string& path, std::size_t limit) const override {
    const auto answer = show(path);
    if (answer.error != 0) return hardware::errno_error(answer.error, "read " + path);
    return answer.text.substr(0, limit);
  }
  Result<void> write(const std::string& path, std::string_view value) override {
    auto& tree = machine_.sys();
    const auto real = tree.resolve(path);
    int error = real ? tree.open(*real, true) : ENOENT;
    if (error == 0) error = tree.write(*real, std::string(value) + "\n");
    if (error != 0) return hardware::errno_error(error, "write " + path);
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    auto& tree = machine_.sys();
    const auto real = tree.resolve(path);
    if (!real || tree.kind(*real) != kernel_rules::Tree::Kind::directory) {
      return hardware::errno_error(ENOENT, "list " + path);
    }
    return tree.list(*real);
  }

 private:
  kernel_rules::Answer show(const std::string& path) const {
    auto& tree = machine_.sys();
    const auto real = tree.resolve(path);
    const int error = real ? tree.open(*real, false) : ENOENT;
    return error != 0 ? kernel_rules::Answer{error, {}} : tree.read(*real);
  }
  mutable kernel_rules::Machine machine_;
};

}  // namespace kwatt::agent
