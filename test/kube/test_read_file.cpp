#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "kube/credentials.hpp"

using namespace kwatt;

namespace {

// A folder of its own that is gone at the end.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kwatt-read-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};

}  // namespace

TEST_CASE("a file is read whole, and kept in no more memory than it needs") {
  const Folder folder;
  for (const std::size_t size : {0, 1, 4095, 4096, 4097, 300'000, 1'048'576}) {
    CAPTURE(size);
    const std::string text(size, 'x');
    const auto read = kube::read_file(folder.write("file", text));
    REQUIRE(read.has_value());
    CHECK(*read == text);
    CHECK(read->capacity() <= 2 * size + 8192);
  }
}

TEST_CASE("a file that is too large, missing or a folder is refused by name") {
  const Folder folder;
  const auto large = kube::read_file(folder.write("large", std::string(1'048'577, 'x')));
  REQUIRE_FALSE(large.has_value());
  CHECK(large.error().text().find("large is larger than 1048576 bytes") != std::string::npos);
  const auto missing = kube::read_file((folder.path / "missing").string());
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().text().find("missing: No such file or directory") != std::string::npos);
  CHECK_FALSE(kube::read_file(folder.path.string()).has_value());
}
