// The corpus of the fuzzers with every build and compiler, and some thousand damaged copies of it:
// the same ones each time.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "test/fuzz/targets.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<std::string> corpus(const std::string& name) {
  const fs::path test = fs::path(KWATT_SOURCE_DIR) / "test";
  std::vector<fs::path> folders{test / "fuzz/corpus" / name};
  if (name == "object") folders.push_back(test / "golden/bodies");
  std::vector<fs::path> files;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

std::string damaged(std::string text, std::mt19937& random) {
  static constexpr std::string_view kWords[] = {"\"",   "{",   "}",     "[",
                                                "]",    ",",   ":",     "\\u0000",
                                                "null", "-1",  "1e999", "18446744073709551616",
                                                "\n",   "\xff"};
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    switch (below(4)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 2:
        text.insert(at, kWords[below(std::size(kWords))]);
        break;
      default:
        text.insert(at, text.substr(below(text.size() + 1), below(64)));
    }
  }
  return text;
}

}  // namespace

TEST_CASE("whatever comes, what reads foreign bytes keeps its promises") {
  for (const auto& target : kwatt::fuzz::targets()) {
    CAPTURE(target.name);
    const auto texts = corpus(target.name);
    CHECK(!texts.empty());
    std::mt19937 random(20261121);
    for (const std::string& text : texts) {
      target.run(text);
      for (int i = 0; i < 200; ++i) target.run(damaged(text, random));
    }
  }
}
