#pragma once
// A temporary folder that is gone when the test is.
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>

namespace kwatt::test {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kwatt-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Replaces the file in one step, as a mounted Secret does.
  void write(const std::string& name, const std::string& text) const {
    const std::string next = path(name) + ".next";
    std::ofstream(next, std::ios::binary) << text;
    std::filesystem::rename(next, path(name));
  }
  void remove(const std::string& name) const { std::filesystem::remove(path(name)); }

 private:
  std::string path_;
};

}  // namespace kwatt::test
