#include "reconcilers/decisions.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace kwatt::reconcilers {
namespace {

// Words that are amounts: "31s", "12.3", "(80". Dates and times of day are none.
bool is_amount(std::string_view word) {
  while (!word.empty() && (word.front() == '(' || word.front() == '-')) word.remove_prefix(1);
  if (word.empty() || word.front() < '0' || word.front() > '9') return false;
  return word.find_first_of(":/") == std::string_view::npos;
}

std::vector<std::string_view> words_of(std::string_view sentence) {
  std::vector<std::string_view> words;
  while (!sentence.empty()) {
    const std::string_view word = sentence.substr(0, sentence.find(' '));
    if (!is_amount(word)) words.push_back(word);
    sentence.remove_prefix(std::min(sentence.size(), word.size() + 1));
  }
  return words;
}

}  // namespace

bool says_the_same(const api::NodeDecision& a, const api::NodeDecision& b) {
  return a.desired == b.desired && a.reason == b.reason && a.policy == b.policy &&
         (a.message == b.message || words_of(a.message) == words_of(b.message));
}

}  // namespace kwatt::reconcilers
