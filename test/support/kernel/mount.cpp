// kwatt-test-sysfs: mounts a machine's /sys (and the little of /proc that an agent reads) with
// FUSE.
//
//   MOUNTPOINT/sys      the kernel's rules; one write is one store, nothing is cached
//   MOUNTPOINT/proc     stat, sys/kernel/random/boot_id
//   MOUNTPOINT/control  takes the commands of machine.hpp, one per write
//   MOUNTPOINT/stores   every store so far: seconds, path, value, errno
//
// Runs in the foreground until SIGTERM, which unmounts.
#define FUSE_USE_VERSION 34

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fuse.h>
#include <iostream>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "test/support/kernel/machine.hpp"

namespace {

using namespace kernel_rules;

double seconds_since_start() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The whole mount is one tree.
struct Mount {
  Tree tree;
  std::unique_ptr<Machine> machine;
  std::string stores;
};
Mount* mounted = nullptr;

// An open file: a read at the beginning shows the attribute anew, one further on goes on with that.
struct Handle {
  std::string path;
  std::string text;
};

constexpr std::string_view kSys = "sys";

// The tree that a path lies in, and its path there.
std::pair<Tree&, std::string> locate(const char* absolute) {
  const std::string path = absolute + 1;
  if (path == kSys) return {mounted->machine->sys(), ""};
  if (path.starts_with("sys/")) return {mounted->machine->sys(), path.substr(4)};
  return {mounted->tree, path};
}

int get_attributes(const char* absolute, struct stat* found, fuse_file_info*) {
  auto [tree, path] = locate(absolute);
  std::memset(found, 0, sizeof *found);
  found->st_nlink = 1;
  switch (tree.kind(path)) {
    case Tree::Kind::none:
      return -ENOENT;
    case Tree::Kind::directory:
      found->st_mode = S_IFDIR | 0755;
      return 0;
    case Tree::Kind::link:
      found->st_mode = S_IFLNK | 0777;
      found->st_size = static_cast<off_t>(tree.target(path).size());
      return 0;
    case Tree::Kind::file:
      found->st_mode = S_IFREG | static_cast<mode_t>(tree.mode(path));
      found->st_size = 4096;
      return 0;
  }
  return -EIO;
}

int read_link(const char* absolute, char* buffer, size_t size) {
  auto [tree, path] = locate(absolute);
  if (tree.kind(path) != Tree::Kind::link) return -EINVAL;
  fmt::format_to_n(buffer, size - 1, "{}", tree.target(path)).out[0] = '\0';
  return 0;
}

int read_directory(const char* absolute, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                   fuse_readdir_flags) {
  auto [tree, path] = locate(absolute);
  if (tree.kind(path) != Tree::Kind::directory) return -ENOENT;
  auto names = tree.list(path);
  if (std::strcmp(absolute, "/") == 0) names.emplace_back(kSys);
  for (const char* name : {".", ".."}) fill(buffer, name, nullptr, 0, fuse_fill_dir_flags{});
  for (const auto& name : names) fill(buffer, name.c_str(), nullptr, 0, fuse_fill_dir_flags{});
  return 0;
}

int open_file(const char* absolute, fuse_file_info* info) {
  auto [tree, path] = locate(absolute);
  const int access = info->flags & O_ACCMODE;
  if (access != O_WRONLY) {
    if (const int error = tree.open(path, false)) return -error;
  }
  if (access != O_RDONLY) {
    if (const int error = tree.open(path, true)) return -error;
  }
  info->direct_io = 1;
  info->fh = reinterpret_cast<std::uint64_t>(new Handle{path, {}});
  return 0;
}

int release_file(const char*, fuse_file_info* info) {
  delete reinterpret_cast<Handle*>(info->fh);
  return 0;
}

int read_file(const char* absolute, char* buffer, size_t size, off_t offset, fuse_file_info* info) {
  Handle& handle = *reinterpret_cast<Handle*>(info->fh);
  if (offset == 0) {
    auto [tree, path] = locate(absolute);
    Answer answer = tree.read(path);
    if (answer.error != 0) return -answer.error;
    handle.text = std::move(answer.text);
  }
  if (static_cast<size_t>(offset) >= handle.text.size()) return 0;
  const size_t count = std::min(size, handle.text.size() - static_cast<size_t>(offset));
  std::memcpy(buffer, handle.text.data() + offset, count);
  return static_cast<int>(count);
}

int write_file(const char* absolute, const char* buffer, size_t size, off_t, fuse_file_info*) {
  auto [tree, path] = locate(absolute);
  const int error = tree.write(path, std::string(buffer, size));
  return error != 0 ? -error : static_cast<int>(size);
}

int truncate_file(const char* absolute, off_t, fuse_file_info*) {
  auto [tree, path] = locate(absolute);
  return tree.kind(path) == Tree::Kind::file ? 0 : -ENOENT;
}

void* initialize(fuse_conn_info*, fuse_config* config) {
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  config->use_ino = 0;
  config->hard_remove = 1;
  config->nullpath_ok = 0;
  return nullptr;
}

// A third of the CPU time is busy.
std::string proc_stat() {
  const auto ticks = static_cast<long>(seconds_since_start() * 100) + 1000;
  return fmt::format("cpu  {} 0 {} {} 0 0 0 0 0 0\n", ticks / 4, ticks / 12, ticks - ticks / 3);
}

void build(const MachineSpec& spec, const std::string& boot_id) {
  mounted->machine = std::make_unique<Machine>(spec, seconds_since_start);
  Tree& tree = mounted->tree;
  tree.add("proc/stat", {.mode = 0444, .show = [] { return Answer{0, proc_stat()}; }, .store = {}});
  tree.add("proc/sys/kernel/random/boot_id", constant(boot_id + "\n"));
  tree.add("stores", {.mode = 0444,
                      .show =
                          [] {
                            return Answer{0, mounted->stores};
                          },
                      .store = {}});
  tree.add("control", {.mode = 0200, .show = {}, .store = [](const std::string& line) {
                         return mounted->machine->command(line) ? 0 : EINVAL;
                       }});
  mounted->machine->sys().on_store([](const Tree::Store& store) {
    const std::string value = store.value.substr(0, store.value.find('\n'));
    mounted->stores += fmt::format("{:.3f} {} {} {}\n", seconds_since_start(), store.path,
                                   value.empty() ? "-" : value, store.error);
  });
}

struct Option {
  const char* name;
  std::function<void(const std::string&)> take;
};

bool take_option(const std::string& argument, const std::vector<Option>& options) {
  const auto equals = argument.find('=');
  for (const Option& option : options) {
    if (argument.substr(0, equals) != option.name) continue;
    option.take(equals == std::string::npos ? "1" : argument.substr(equals + 1));
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  MachineSpec spec;
  std::string boot_id = "11111111-2222-3333-4444-555555555555", mountpoint;
  const auto number = [](auto& target) {
    return [&target](const std::string& text) {
      target = static_cast<std::remove_reference_t<decltype(target)>>(std::stoll(text));
    };
  };
  const std::vector<Option> options{
      {"--driver", [&](const std::string& text) { spec.cpu.driver = text; }},
      {"--cpus", number(spec.cpu.cpus)},
      {"--cpus-per-policy", number(spec.cpu.cpus_per_policy)},
      {"--packages", number(spec.cpu.packages)},
      {"--inactive-error", number(spec.cpu.inactive_error)},
      {"--rapl", number(spec.power.rapl)},
      {"--dram", number(spec.power.dram)},
      {"--psys", number(spec.power.psys)},
      {"--mmio", number(spec.power.mmio)},
      {"--hwmon", number(spec.power.hwmon)},
      {"--uncore", number(spec.power.uncore)},
      {"--boot-id", [&](const std::string& text) { boot_id = text; }},
  };
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') {
      mountpoint = argv[i];
    } else if (!take_option(argv[i], options)) {
      std::cerr << "unknown option " << argv[i] << '\n';
      return 2;
    }
  }
  if (mountpoint.empty()) {
    std::cerr << "usage: kwatt-test-sysfs [--driver=NAME …] MOUNTPOINT\n";
    return 2;
  }
  Mount mount;
  mounted = &mount;
  build(spec, boot_id);

  fuse_operations operations{};
  operations.getattr = get_attributes;
  operations.readlink = read_link;
  operations.readdir = read_directory;
  operations.open = open_file;
  operations.release = release_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.truncate = truncate_file;
  operations.init = initialize;
  // In the foreground, on one thread: stores happen one after the other, as under the kernel's
  // locks.
  std::vector<std::string> words{argv[0], "-f", "-s", "-o", "fsname=kwatt-test-sysfs", mountpoint};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return fuse_main(static_cast<int>(arguments.size()), arguments.data(), &operations, nullptr);
}
