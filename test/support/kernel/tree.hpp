#pragma once
// A tree of kernel attributes: each is a pair of functions, as in the kernel. Knows nothing of
// kwatt, so that an error in kwatt's idea of sysfs is not repeated here.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kernel_rules {

// What the kernel answers: a text, or an errno.
struct Answer {
  int error = 0;
  std::string text = {};
};

struct Attribute {
  int mode = 0444;
  std::function<Answer()> show;
  std::function<int(const std::string& buffer)> store;  // errno; 0: taken
};
Attribute constant(std::string text);

// Paths are relative, without a leading slash. Not thread-safe.
class Tree {
 public:
  void add(const std::string& path, Attribute attribute);
  void link(const std::string& path, const std::string& target);
  // With everything below.
  void remove(const std::string& path);

  // Faults: a file that is missing or answers with an errno, whatever its rules say.
  void hide(const std::string& path) { hidden_.insert(path); }
  void unhide(const std::string& path) { hidden_.erase(path); }
  void break_at(const std::string& path, int error) { broken_[path] = error; }
  void refuse(const std::string& path, int error) { refused_[path] = error; }  // stores only

  enum class Kind { none, directory, file, link };
  Kind kind(const std::string& path) const;
  int mode(const std::string& path) const;
  std::string target(const std::string& path) const;
  std::vector<std::string> list(const std::string& path) const;
  // The path with all symbolic links in it followed; nullopt: there is nothing.
  std::optional<std::string> resolve(const std::string& path) const;

  // As open(2) of a sysfs file does: 0, ENOENT, or EACCES for what the mode forbids even to root.
  int open(const std::string& path, bool write) const;
  // As read(2) and write(2) of an open one: ENODEV once it is gone.
  Answer read(const std::string& path) const;
  int write(const std::string& path, const std::string& buffer);

  struct Store {
    std::string path, value;
    int error = 0;
  };
  void on_store(std::function<void(const Store&)> listener) { listener_ = std::move(listener); }

 private:
  struct Entry {
    Attribute attribute;
    std::string link;  // not empty: a symbolic link
  };
  std::map<std::string, Entry> entries_;
  std::set<std::string> hidden_;
  std::map<std::string, int> broken_, refused_;
  std::function<void(const Store&)> listener_;
};

// How the kernel reads numbers and words.
// kstrtoul: digits (0x too) and at most one newline; nullopt: EINVAL or ERANGE.
std::optional<unsigned long long> kstrtoull(const std::string& buffer, int base = 10);
// sscanf("%u"): leading blanks, digits, anything behind.
std::optional<unsigned> scan_unsigned(const std::string& buffer);
// sscanf("%Ns"): the first word, cut at `longest`.
std::string scan_word(const std::string& buffer, std::size_t longest);

}  // namespace kernel_rules
