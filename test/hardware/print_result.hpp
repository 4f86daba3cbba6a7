#pragma once
// Lets doctest print a Result in a failed check: the error's text, or that there is none.
#include <doctest/doctest.h>

#include "base/result.hpp"

namespace doctest {

template <class T>
struct StringMaker<boost::system::result<T, kwatt::Error>> {
  static String convert(const boost::system::result<T, kwatt::Error>& result) {
    if (result) return "a value";
    return ("error: " + result.error().text()).c_str();
  }
};

}  // namespace doctest
