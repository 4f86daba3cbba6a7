#include "test/support/kernel/tree.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace kernel_rules {
namespace {

constexpr int kMostLinks = 8;

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

Attribute constant(std::string text) {
  return {.mode = 0444, .show = [text = std::move(text)] { return Answer{0, text}; }, .store = {}};
}

void Tree::add(const std::string& path, Attribute attribute) {
  entries_[path] = {std::move(attribute), {}};
}

void Tree::link(const std::string& path, const std::string& target) {
  // Not assigned as a whole: GCC 12 takes a moved-from empty std::function for uninitialized.
  Entry& entry = entries_[path];
  entry.attribute = {};
  entry.link = target;
}

void Tree::remove(const std::string& path) {
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.first == path || entry.first.starts_with(path + "/");
  });
}

Tree::Kind Tree::kind(const std::string& path) const {
  if (path.empty()) return Kind::directory;
  if (hidden_.contains(path)) return Kind::none;
  const auto found = entries_.find(path);
  if (found != entries_.end()) return found->second.link.empty() ? Kind::file : Kind::link;
  const auto below = entries_.lower_bound(path + "/");
  return below != entries_.end() && below->first.starts_with(path + "/") ? Kind::directory
                                                                         : Kind::none;
}

int Tree::mode(const std::string& path) const {
  return entries_.at(path).attribute.mode;
}

std::string Tree::target(const std::string& path) const {
  return entries_.at(path).link;
}

std::vector<std::string> Tree::list(const std::string& path) const {
  const std::string prefix = path.empty() ? "" : path + "/";
  std::set<std::string> names;
  for (auto it = entries_.lower_bound(prefix); it != entries_.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    if (hidden_.contains(it->first)) continue;
    const std::size_t end = it->first.find('/', prefix.size());
    names.insert(it->first.substr(prefix.size(), end - prefix.size()));
  }
  return {names.begin(), names.end()};
}

std::optional<std::string> Tree::resolve(const std::string& path) const {
  std::vector<std::string> todo = parts_of(path), done;
  std::reverse(todo.begin(), todo.end());
  int links = 0;
  const auto joined = [&done] {
    std::string text;
    for (const std::string& part : done) text += (text.empty() ? "" : "/") + part;
    return text;
  };
  while (!todo.empty()) {
    const std::string part = todo.back();
    todo.pop_back();
    if (part == ".") continue;
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(part);
    const Kind found = kind(joined());
    if (found == Kind::none) return std::nullopt;
    if (found != Kind::link) continue;
    if (++links > kMostLinks) return std::nullopt;
    auto target = parts_of(entries_.at(joined()).link);
    done.pop_back();
    todo.insert(todo.end(), target.rbegin(), target.rend());
  }
  return joined();
}

int Tree::open(const std::string& path, bool write) const {
  if (kind(path) != Kind::file) return ENOENT;
  const int wanted = write ? 0222 : 0444;
  return (entries_.at(path).attribute.mode & wanted) != 0 ? 0 : EACCES;
}

Answer Tree::read(const std::string& path) const {
  if (kind(path) != Kind::file) return {ENODEV};
  if (const auto broken = broken_.find(path); broken != broken_.end()) return {broken->second};
  const Attribute& attribute = entries_.at(path).attribute;
  return attribute.show ? attribute.show() : Answer{EIO};
}

int Tree::write(const std::string& path, const std::string& buffer) {
  int error = ENODEV;
  if (kind(path) == Kind::file) {
    const auto broken = broken_.find(path), refused = refused_.find(path);
    if (broken != broken_.end()) {
      error = broken->second;
    } else if (refused != refused_.end() && refused->second != 0) {
      error = refused->second;
    } else {
      // A store may remove its own attribute (a driver that is switched off).
      const auto store = entries_.at(path).attribute.store;
      error = store ? store(buffer) : EIO;
    }
  }
  if (listener_) listener_({path, buffer, error});
  return error;
}

std::optional<unsigned long long> kstrtoull(const std::string& buffer, int base) {
  std::string digits = buffer;
  if (digits.ends_with('\n')) digits.pop_back();
  if (digits.empty() || digits.find_first_of(" \t\n-+") != std::string::npos) return std::nullopt;
  errno = 0;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(digits.c_str(), &end, base);
  if (errno != 0 || end != digits.c_str() + digits.size()) return std::nullopt;
  return value;
}

std::optional<unsigned> scan_unsigned(const std::string& buffer) {
  const std::size_t begin = buffer.find_first_not_of(" \t\n");
  if (begin == std::string::npos || buffer[begin] < '0' || buffer[begin] > '9') return std::nullopt;
  return static_cast<unsigned>(std::strtoul(buffer.c_str() + begin, nullptr, 10));
}

std::string scan_word(const std::string& buffer, std::size_t longest) {
  const std::size_t begin = buffer.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return {};
  const std::size_t end = std::min(buffer.find_first_of(" \t\n", begin), buffer.size());
  return buffer.substr(begin, std::min(end - begin, longest));
}

}  // namespace kernel_rules
