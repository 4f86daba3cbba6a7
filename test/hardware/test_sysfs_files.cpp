#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "hardware/sysfs_files.hpp"
#include "test/hardware/fake_host_fs.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

namespace stdfs = std::filesystem;

// A plain directory tree that goes away with the test.
class Tree {
 public:
  Tree() {
    std::string name = (stdfs::temp_directory_path() / "kwatt-sysfs-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~Tree() { stdfs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    stdfs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string get(const std::string& path) const {
    std::ifstream in(root_ / path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void link(const std::string& path, const std::string& target) const {
    stdfs::create_directories((root_ / path).parent_path());
    stdfs::create_symlink(target, root_ / path);
  }
  stdfs::path root() const { return root_; }

 private:
  stdfs::path root_;
};

TEST_CASE("files below the root are read, written as one line, and listed in order") {
  Tree tree;
  tree.put("class/b", "performance\nrest\n");
  tree.put("class/a", "1\n");
  auto fs = RootedFs::open(tree.root().string());
  REQUIRE(fs);
  CHECK(*fs->read("class/b") == "performance\nrest\n");
  CHECK(*fs->read("class/b", 4) == "perf");
  CHECK(*read_line(*fs, "class/b") == "performance");
  REQUIRE(fs->write("class/b", "power"));
  CHECK(tree.get("class/b") == "power\n");
  CHECK(*fs->list("class") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a symbolic link works inside the root and cannot lead out of it") {
  Tree outside, tree;
  outside.put("secret", "outside\n");
  tree.put("devices/zone/name", "package-0\n");
  tree.link("class/zone", "../devices/zone");
  tree.link("class/up", "../../../../../../../../../../" + outside.root().string().substr(1));
  tree.link("class/absolute", outside.root().string());
  auto fs = RootedFs::open(tree.root().string());
  REQUIRE(fs);
  CHECK(*read_line(*fs, "class/zone/name") == "package-0");
  for (const char* path : {"class/up/secret", "class/absolute/secret", "../secret"}) {
    CAPTURE(path);
    CHECK(fs->read(path).error().code == ErrorCode::not_found);
    CHECK(fs->write(path, "x").error().code == ErrorCode::not_found);
  }
  CHECK(outside.get("secret") == "outside\n");
}

TEST_CASE("writing never creates a file") {
  Tree tree;
  auto fs = RootedFs::open(tree.root().string());
  REQUIRE(fs);
  CHECK(fs->write("new", "1").error().code == ErrorCode::not_found);
  CHECK_FALSE(stdfs::exists(tree.root() / "new"));
}

TEST_CASE("a root that does not exist is an error that names it") {
  auto fs = RootedFs::open("/no/such/root");
  REQUIRE_FALSE(fs);
  CHECK(fs.error().code == ErrorCode::not_found);
  CHECK(fs.error().text().find("/no/such/root") != std::string::npos);
}

TEST_CASE("errno keeps its meaning") {
  const struct {
    int error;
    ErrorCode code;
  } cases[] = {{ENOENT, ErrorCode::not_found},        {EACCES, ErrorCode::forbidden},
               {EPERM, ErrorCode::forbidden},         {EROFS, ErrorCode::forbidden},
               {EINVAL, ErrorCode::invalid_argument}, {EBUSY, ErrorCode::unavailable},
               {ENODATA, ErrorCode::unsupported},     {ENOSYS, ErrorCode::unsupported},
               {EOPNOTSUPP, ErrorCode::unsupported},  {EIO, ErrorCode::io}};
  for (const auto& c : cases) {
    CAPTURE(c.error);
    const Error error = errno_error(c.error, "write x");
    CHECK(error.code == c.code);
    CHECK(error.message == "write x");
    CHECK_FALSE(error.server_text.empty());
  }
}

TEST_CASE("attributes are one line, its blanks do not count") {
  FakeHostFs fs;
  fs.put("governors", "powersave  performance \n");
  fs.put("empty", "\n");
  fs.put("number", " 42\n");
  fs.put("negative", "-1\n");
  fs.put("huge", "18446744073709551615\n");
  CHECK(*read_words(fs, "governors") == std::vector<std::string>{"powersave", "performance"});
  CHECK(read_words(fs, "empty")->empty());
  CHECK(*read_number(fs, "number") == 42);
  for (const char* path : {"empty", "negative", "huge"}) {
    CAPTURE(path);
    CHECK(read_number(fs, path).error().code == ErrorCode::parse);
  }
  CHECK(read_number(fs, "missing").error().code == ErrorCode::not_found);
}

TEST_CASE("a store is read back") {
  struct Case {
    const char* name;
    const char* written;
    const char* shown;
    std::int64_t tolerance;
    bool any_word;
    bool good;
  };
  const Case cases[] = {
      {"the same word", "powersave", "powersave", 0, false, true},
      {"another word", "powersave", "performance", 0, false, false},
      {"a word the kernel chose", "default", "balance_power", 0, true, true},
      {"nothing at all", "default", "", 0, true, false},
      {"a rounded number", "100100000", "100000000", 1'000'000, false, true},
      {"a clamped number", "100000000", "60000000", 1'000'000, false, false},
      {"a number without tolerance", "100", "101", 0, false, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    FakeHostFs fs;
    fs.put("file", "old\n");
    fs.on_write("file", [&](const std::string&) { return FakeHostFs::Answer{c.shown, 0}; });
    const auto done = perform(fs, {"file", c.written, "setting", c.tolerance, c.any_word});
    CHECK(done.has_value() == c.good);
    if (!done) CHECK(done.error().code == ErrorCode::conflict);
  }
}

TEST_CASE("the kernel's refusal of a store is reported with what was attempted") {
  FakeHostFs fs;
  fs.put("file", "old\n");
  fs.fail_write("file", EBUSY);
  const auto done = perform(fs, {"file", "power", "preference of policy0"});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::unavailable);
  CHECK(done.error().message == "preference of policy0 to power: write file");
}

}  // namespace
}  // namespace kwatt::hardware
